use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::desktop::{Desktop, Event};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::hubs;
use crate::json::{self, Value};
use crate::scene::{self, Scene};
use crate::service::until;

/// A notification server to be started.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) program: &'a Path,
    /// Whether it replaces by tags as well as by numbers.
    pub(super) by_tag: bool,
}

/// For a command that nobody kills.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A home whose hub runs a command that writes down the id of every notification, and perhaps has a desktop to show
/// popups on.
pub(super) struct Stage {
    /// Ends before its folder goes.
    desktop: Option<Desktop>,
    scene: Scene,
    /// How long its hubs stay without anything to do, where that is not as usual.
    idle_ms: Option<u64>,
}

impl Stage {
    pub(super) fn new(purpose: &str, ringer: &Path, server: Option<Server<'_>>) -> Result<Self, Failure> {
        let scene = Scene::new(purpose, ringer)?;
        let start =
            |server: Server<'_>| Desktop::start(&scene.path("desktop"), server.program, server.by_tag);
        let desktop = server.map(start).transpose()?;
        let stage = Self { desktop, scene, idle_ms: None };
        let run = stage.scene.path("run");
        fs::create_dir(&run).map_err(|error| scene::failed(&run, &error))?;
        // One write of less than a page at the end of a file: nobody's line is ever torn.
        let command = format!(
            "[\"sh\", \"-c\", 'echo \"$RINGER_NOTIFICATION_ID\" >> \"$0\"', \"{}\"]",
            stage.sink().display()
        );
        let popup = if stage.desktop.is_some() { "desktop" } else { "off" };
        let settings = format!("[notify]\nrate_limit = \"off\"\npopup = \"{popup}\"\ncommand = {command}\n");
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
        if let Some(desktop) = &self.desktop {
            command.env("DBUS_SESSION_BUS_ADDRESS", desktop.address());
        }
        if let Some(idle_ms) = self.idle_ms {
            command.env("RINGER_HUB_IDLE_MS", idle_ms.to_string());
        }
        Ok(command)
    }

    /// Sends a message of a surface; without one it comes from the developer's terminal, where there is one, and else
    /// from none. Gives its id, or `None` when it was not acknowledged.
    pub(super) fn notify(&self, body: &str, surface: &str) -> Result<Option<String>, Failure> {
        let mut command = self.ringer(["notify", "--json", body])?;
        command.env("RINGER_SURFACE", surface);
        let ending = Ending::of(&mut command, PATIENCE)?;
        let id = || json::parse(&String::from_utf8_lossy(&ending.output))?.text("id").map(str::to_owned);
        Ok(ending.is_success().then(id).flatten())
    }

    /// Reads notifications, or everything with `--all`. `false` when that failed: it may have asked a hub that was killed.
    pub(super) fn read(&self, which: &[&str]) -> Result<bool, Failure> {
        let mut command = self.ringer(["read"].iter().chain(which).copied())?;
        Ok(Ending::of(&mut command, PATIENCE)?.is_success())
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
        self.recorded().contains_key(id)
    }

    /// Whether this text was on the desktop.
    pub(super) fn has_shown(&self, body: &str) -> bool {
        self.desktop.as_ref().is_some_and(|desktop| desktop.has_shown(body))
    }

    /// Everything that happened on the desktop.
    pub(super) fn events(&self) -> Vec<Event> {
        self.desktop.as_ref().map(Desktop::events).unwrap_or_default()
    }

    /// Waits until a hub has nothing left to do. `false` when it took too long.
    pub(super) fn settles(&self) -> Result<bool, Failure> {
        let mut failed = None;
        let settled = until(PATIENCE, || match self.ask(["hub", "status", "--json"]) {
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

    /// The steps of a message's way.
    pub(super) fn trail(&self, id: &str) -> Result<Vec<String>, Failure> {
        let answer = self.ask(["why", id, "--json"])?;
        let steps = answer.as_ref().map(|answer| answer.list("trail")).unwrap_or_default();
        Ok(steps.iter().filter_map(|step| step.text("text")).map(str::to_owned).collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for pid in hubs::of(&self.home()) {
            // It may be gone already; then so much the better.
            let _ = hubs::kill(pid);
        }
        until(PATIENCE, || hubs::of(&self.home()).is_empty());
    }
}
