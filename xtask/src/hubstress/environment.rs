use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::desktop::{Desktop, Event};
use crate::background::until;
use crate::environment::{self, SCRIPTS_DECIDE, TestEnvironment};
use crate::failure::Failure;
use crate::hubs;
use crate::process_result::ProcessResult;

/// How to start a notification server.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) program: &'a Path,
    /// The server also replaces popups by tag, and not only by number.
    pub(super) by_tag: bool,
}

/// The timeout for a command that is not killed.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// A home whose hub runs a command that records the id of every notification. It may have a desktop for popups.
pub(super) struct HubEnvironment {
    /// Declared first, so that it ends before its folder is removed.
    desktop: Option<Desktop>,
    environment: TestEnvironment,
    /// The idle timeout of its hubs, if it is not the default.
    idle_ms: Option<u64>,
}

impl HubEnvironment {
    pub(super) fn new(purpose: &str, ringer: &Path, server: Option<Server<'_>>) -> Result<Self, Failure> {
        let environment = TestEnvironment::new(purpose, ringer)?;
        let start =
            |server: Server<'_>| Desktop::start(&environment.path("desktop"), server.program, server.by_tag);
        let desktop = server.map(start).transpose()?;
        let environment = Self { desktop, environment, idle_ms: None };
        let run = environment.environment.path("run");
        fs::create_dir(&run).map_err(|error| environment::failed(&run, &error))?;
        // A single append of less than a page, so that lines of parallel writers never mix.
        let command = format!(
            "[\"sh\", \"-c\", 'echo \"$RINGER_NOTIFICATION_ID\" >> \"$0\"', \"{}\"]",
            environment.recorded_file().display()
        );
        let popup = if environment.desktop.is_some() { "desktop" } else { "off" };
        let settings = format!(
            "{SCRIPTS_DECIDE}[notify]\nrate_limit = \"off\"\npopup = \"{popup}\"\ncommand = {command}\n"
        );
        let config = environment.environment.config();
        fs::write(&config, settings).map_err(|error| environment::failed(&config, &error))?;
        Ok(environment)
    }

    /// Sets the idle timeout of its hubs.
    pub(super) fn idle_after(mut self, milliseconds: u64) -> Self {
        self.idle_ms = Some(milliseconds);
        self
    }

    fn recorded_file(&self) -> PathBuf {
        self.environment.path("sink")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.environment.home()
    }

    pub(super) fn complaints(&self) -> String {
        self.environment.first_errors()
    }

    /// Returns a `ringer` command that may start a hub.
    pub(super) fn ringer<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Command, Failure> {
        let mut command = self.ringer_without_hub(arguments)?;
        command.env_remove("RINGER_HUB");
        Ok(command)
    }

    /// Returns a `ringer hook` command that may start a hub.
    pub(super) fn hook<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Command, Failure> {
        let mut command = self.settled(self.environment.hook(arguments))?;
        command.env_remove("RINGER_HUB");
        Ok(command)
    }

    /// Returns a `ringer` command that must not start a hub.
    pub(super) fn ringer_without_hub<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Command, Failure> {
        self.settled(self.environment.ringer(arguments))
    }

    fn settled(&self, mut command: Command) -> Result<Command, Failure> {
        command
            .env("XDG_RUNTIME_DIR", self.environment.path("run"))
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
            .env_remove("RINGER_WORKSPACE")
            .env_remove("TMUX")
            .stderr(self.environment.complaints()?);
        if let Some(desktop) = &self.desktop {
            command.env("DBUS_SESSION_BUS_ADDRESS", desktop.address());
        }
        if let Some(idle_ms) = self.idle_ms {
            command.env("RINGER_HUB_IDLE_MS", idle_ms.to_string());
        }
        Ok(command)
    }

    /// Sends a message of a surface. If `surface` is empty, it comes from the developer's terminal, or from none. Returns its
    /// id, or `None` if it was not acknowledged.
    pub(super) fn notify(&self, body: &str, surface: &str) -> Result<Option<String>, Failure> {
        let mut command = self.ringer(["notify", "--json", body])?;
        command.env("RINGER_SURFACE", surface);
        let ending = ProcessResult::of(&mut command, COMMAND_TIMEOUT)?;
        let id = || serde_json::from_slice::<Value>(&ending.output).ok()?["id"].as_str().map(str::to_owned);
        Ok(ending.is_success().then(id).flatten())
    }

    /// Marks notifications as read, or all with `--all`. Returns false on failure: the hub may have been killed.
    pub(super) fn read(&self, which: &[&str]) -> Result<bool, Failure> {
        let mut command = self.ringer(["read"].iter().chain(which).copied())?;
        Ok(ProcessResult::of(&mut command, COMMAND_TIMEOUT)?.is_success())
    }

    /// Runs a command and parses its JSON output.
    pub(super) fn ask<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Option<Value>, Failure> {
        let path = self.environment.path("answer");
        let file = fs::File::create(&path).map_err(|error| environment::failed(&path, &error))?;
        // The output goes to a file, because a list may be long.
        let status = self.ringer_without_hub(arguments)?.stdout(file).status();
        status.map_err(|error| Failure::io("ringer", &error))?;
        Ok(serde_json::from_slice(&fs::read(&path).unwrap_or_default()).ok())
    }

    /// Returns how often the command ran for each id.
    pub(super) fn recorded(&self) -> HashMap<String, u64> {
        let mut times = HashMap::new();
        for line in fs::read_to_string(self.recorded_file()).unwrap_or_default().lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
        times
    }

    /// Returns true if the command ran for this id.
    pub(super) fn has_recorded(&self, id: &str) -> bool {
        self.recorded().contains_key(id)
    }

    /// Returns true if the desktop showed this text.
    pub(super) fn has_shown(&self, body: &str) -> bool {
        self.desktop.as_ref().is_some_and(|desktop| desktop.has_shown(body))
    }

    /// Returns all events of the desktop.
    pub(super) fn events(&self) -> Vec<Event> {
        self.desktop.as_ref().map(Desktop::events).unwrap_or_default()
    }

    /// Waits until the hub is idle. Returns false on a timeout.
    pub(super) fn wait_until_idle(&self) -> Result<bool, Failure> {
        let mut failed = None;
        let settled = until(COMMAND_TIMEOUT, || match self.ask(["hub", "status", "--json"]) {
            Ok(Some(status)) => hubs::is_idle(&status),
            Ok(None) => false,
            Err(failure) => {
                failed = Some(failure);
                true
            }
        });
        failed.map_or(Ok(settled), Err)
    }

    /// Returns the steps of the delivery trail of a message.
    pub(super) fn trail(&self, id: &str) -> Result<Vec<String>, Failure> {
        let answer = self.ask(["why", id, "--json"])?;
        let steps = answer.iter().filter_map(|answer| answer["trail"].as_array()).flatten();
        let line = |step: &Value| {
            let text = step["text"].as_str()?;
            Some(match step["cause"]["popup"].as_u64() {
                Some(number) => format!("{text} (popup {number})"),
                None => text.to_owned(),
            })
        };
        Ok(steps.filter_map(line).collect())
    }
}

impl Drop for HubEnvironment {
    fn drop(&mut self) {
        for pid in hubs::of(&self.home()) {
            // It may have ended already.
            let _ = hubs::kill(pid);
        }
        until(COMMAND_TIMEOUT, || hubs::of(&self.home()).is_empty());
    }
}
