use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::hubs;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::json::{self, Value};
use crate::scene::{self, Scene};

/// For a command that nobody kills.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A home whose hub runs a command that writes down the id of every notification.
pub(super) struct Stage {
    scene: Scene,
    /// How long its hubs stay without anything to do, where that is not as usual.
    idle_ms: Option<u64>,
}

impl Stage {
    pub(super) fn new(purpose: &str, ringer: &Path) -> Result<Self, Failure> {
        let stage = Self { scene: Scene::new(purpose, ringer)?, idle_ms: None };
        let run = stage.scene.path("run");
        fs::create_dir(&run).map_err(|error| scene::failed(&run, &error))?;
        // One write of less than a page at the end of a file: nobody's line is ever torn.
        let command = format!(
            "[\"sh\", \"-c\", 'echo \"$RINGER_NOTIFICATION_ID\" >> \"$0\"', \"{}\"]",
            stage.sink().display()
        );
        let settings = format!("[notify]\nrate_limit = \"off\"\npopup = \"off\"\ncommand = {command}\n");
        let config = stage.config();
        fs::write(&config, settings).map_err(|error| scene::failed(&config, &error))?;
        Ok(stage)
    }

    /// With hubs that stay only so long.
    pub(super) fn idle_after(mut self, milliseconds: u64) -> Self {
        self.idle_ms = Some(milliseconds);
        self
    }

    fn sink(&self) -> PathBuf {
        self.scene.path("sink")
    }

    fn config(&self) -> PathBuf {
        self.scene.path("config.toml")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.scene.home()
    }

    pub(super) fn complaints(&self) -> String {
        self.scene.first_complaints()
    }

    /// `ringer`, which may start a hub.
    pub(super) fn ringer<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Command, Failure> {
        let mut command = self.alone(arguments)?;
        command.env_remove("RINGER_HUB");
        Ok(command)
    }

    /// `ringer`, which may not.
    pub(super) fn alone<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Command, Failure> {
        let mut command = self.scene.ringer(arguments);
        command
            .env("XDG_RUNTIME_DIR", self.scene.path("run"))
            .env("RINGER_CONFIG", self.config())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .env_remove("RINGER_WORKSPACE")
            .env_remove("TMUX")
            .stderr(self.scene.complaints()?);
        if let Some(idle_ms) = self.idle_ms {
            command.env("RINGER_HUB_IDLE_MS", idle_ms.to_string());
        }
        Ok(command)
    }

    /// Sends a message of a surface. Gives its id, or `None` when it was not acknowledged.
    pub(super) fn notify(&self, body: &str, surface: &str) -> Result<Option<String>, Failure> {
        let mut command = self.ringer(["notify", "--json", body])?;
        // Said each time: otherwise it is the terminal of the developer, for all of them.
        command.env("RINGER_SURFACE", surface);
        let ending = Ending::of(&mut command, PATIENCE)?;
        let id = || json::parse(&String::from_utf8_lossy(&ending.output))?.text("id").map(str::to_owned);
        Ok(ending.is_success().then(id).flatten())
    }

    /// Asks for something in JSON.
    pub(super) fn ask<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Value>, Failure> {
        let path = self.scene.path("answer");
        let file = fs::File::create(&path).map_err(|error| scene::failed(&path, &error))?;
        // A list may be long, so it goes to a file.
        let status = self.alone(arguments)?.stdout(file).status();
        status.map_err(|error| Failure::io("ringer", &error))?;
        Ok(json::parse(&fs::read_to_string(&path).unwrap_or_default()))
    }

    /// How often each id reached the command.
    pub(super) fn recorded(&self) -> HashMap<String, u64> {
        let mut times = HashMap::new();
        for line in fs::read_to_string(self.sink()).unwrap_or_default().lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
        times
    }

    /// Whether the command ran for it.
    pub(super) fn has_recorded(&self, id: &str) -> bool {
        fs::read_to_string(self.sink()).unwrap_or_default().lines().any(|line| line == id)
    }

    /// Waits until a hub has nothing left to do. `false` when it took too long.
    pub(super) fn settles(&self) -> Result<bool, Failure> {
        let mut failed = None;
        let settled = hubs::until(PATIENCE, || match self.ask(["hub", "status", "--json"]) {
            Ok(Some(status)) => {
                let is = |name: &str, word: &str| status.word(name) == Some(word);
                is("running", "true") && is("undecided", "0") && is("under_way", "0")
            }
            Ok(None) => false,
            Err(failure) => {
                failed = Some(failure);
                true
            }
        });
        failed.map_or(Ok(settled), Err)
    }

    /// Whether something of a message's way was written down.
    pub(super) fn has_trail(&self, id: &str) -> Result<bool, Failure> {
        let answer = self.ask(["why", id, "--json"])?;
        let Some(Value::Object(fields)) = answer else { return Ok(false) };
        let is_told = |(name, value): &(String, Value)| {
            name == "trail" && matches!(value, Value::List(steps) if !steps.is_empty())
        };
        Ok(fields.iter().any(is_told))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for pid in hubs::of(&self.home()) {
            // It may be gone already; then so much the better.
            let _ = hubs::kill(pid);
        }
        hubs::until(PATIENCE, || hubs::of(&self.home()).is_empty());
    }
}
