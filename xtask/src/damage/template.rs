use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::background::until;
use crate::binary;
use crate::codex::turn_ended;
use crate::environment::{SCRIPTS_DECIDE, TestEnvironment, copy_folder, failed};
use crate::failure::Failure;
use crate::hubs;
use crate::process_result::ProcessResult;

/// The timeout for every command. The longest wait is for the write lock, which gives up after five seconds.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Messages that a hub has shown, and messages that were sent after it ended.
const SHOWN: u32 = 40;
const UNSEEN: u32 = 20;
/// Turn ends in the spool.
const SPOOLED: u32 = 3;

const SETTINGS: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";

/// A home with data in every file, and a pristine copy from which each round starts.
pub(super) struct Template {
    environment: TestEnvironment,
}

/// The result of a command.
pub(super) struct Answer {
    pub(super) ending: ProcessResult,
    /// Its standard error.
    pub(super) words: String,
}

impl Answer {
    /// Parses the output as one JSON value.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.ending.output).ok()
    }

    /// Parses the output as one JSON value per line.
    pub(super) fn lines(&self) -> Vec<Value> {
        let lines = self.ending.output.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

/// Selects if a command may start a hub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hub {
    MayStart,
    Stays,
}

impl Template {
    pub(super) fn new(worker: u64, ringer: &Path) -> Result<Self, Failure> {
        let template = Self { environment: TestEnvironment::in_memory(&format!("damage-{worker}"), ringer)? };
        let (run, config) = (template.run(), template.environment.config());
        DirBuilder::new().mode(0o700).create(&run).map_err(|error| failed(&run, &error))?;
        fs::write(&config, format!("{SCRIPTS_DECIDE}{SETTINGS}")).map_err(|error| failed(&config, &error))?;
        template.fill()?;
        copy_folder(&template.environment.home(), &template.environment.path("pristine-home"))?;
        copy_folder(&run, &template.environment.path("pristine-run"))?;
        Ok(template)
    }

    fn fill(&self) -> Result<(), Failure> {
        for number in 0..SHOWN {
            self.must(Hub::MayStart, &["notify", "--from", "tester", &body(number)])?;
        }
        self.must(Hub::MayStart, &["hook", "codex", "notify", &turn(0)])?;
        self.must(Hub::MayStart, &["ask", "really?"])?;
        self.must(Hub::MayStart, &["listen", "--timeout", "0", "--max", "7"])?;
        self.must_become_idle()?;
        self.must(Hub::MayStart, &["read", "--all"])?;
        self.must(Hub::Stays, &["hub", "stop"])?;
        // Another hub may have waited to take over, and would live on in a home that every round removes.
        self.end_hubs();
        for number in SHOWN..SHOWN + UNSEEN {
            self.must(Hub::Stays, &["notify", "--from", "tester", &body(number)])?;
        }
        let lock = self.environment.hold_write_lock()?;
        for number in 1..=SPOOLED {
            self.must(Hub::Stays, &["hook", "codex", "notify", &turn(number)])?;
        }
        drop(lock);
        Ok(())
    }

    /// Returns the texts of all messages.
    pub(super) fn bodies() -> Vec<String> {
        (0..SHOWN + UNSEEN).map(body).collect()
    }

    /// Returns the texts of the messages that a hub had listed before the files were copied.
    pub(super) fn listed() -> Vec<String> {
        (0..SHOWN).map(body).collect()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.environment.home()
    }

    /// The runtime directory.
    pub(super) fn run(&self) -> PathBuf {
        self.environment.path("run")
    }

    /// Restores the home. No hub may be running.
    pub(super) fn restore(&self) -> Result<(), Failure> {
        for (copy, place) in [("pristine-home", self.home()), ("pristine-run", self.run())] {
            fs::remove_dir_all(&place).map_err(|error| failed(&place, &error))?;
            copy_folder(&self.environment.path(copy), &place)?;
        }
        Ok(())
    }

    /// Copies the home to a permanent folder for a later analysis. Returns the folder.
    pub(super) fn keep(&self, round: u64) -> Result<PathBuf, Failure> {
        let folder = binary::artifacts()?.join("damage");
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let place = folder.join(format!("round-{round}"));
        // A copy of an earlier run may be there.
        let _ = fs::remove_dir_all(&place);
        copy_folder(&self.home(), &place)?;
        Ok(place)
    }

    pub(super) fn ask(&self, hub: Hub, arguments: &[&str]) -> Result<Answer, Failure> {
        let words = self.environment.path("words");
        let file = File::create(&words).map_err(|error| failed(&words, &error))?;
        let ending =
            ProcessResult::of(self.command(hub, arguments).stderr(Stdio::from(file)), COMMAND_TIMEOUT)?;
        let words = String::from_utf8_lossy(&fs::read(&words).unwrap_or_default()).into_owned();
        Ok(Answer { ending, words })
    }

    fn command(&self, hub: Hub, arguments: &[&str]) -> Command {
        let mut command = match arguments {
            ["hook", arguments @ ..] => self.environment.hook(arguments.iter().copied()),
            arguments => self.environment.ringer(arguments.iter().copied()),
        };
        command
            .env("XDG_RUNTIME_DIR", self.run())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
            .env_remove("TMUX");
        if hub == Hub::MayStart {
            command.env_remove("RINGER_HUB");
        }
        command
    }

    fn must(&self, hub: Hub, arguments: &[&str]) -> Result<(), Failure> {
        let Answer { ending, words } = self.ask(hub, arguments)?;
        if ending.is_success() {
            return Ok(());
        }
        Err(Failure::complaints(format!("ringer {}: {}: {words}", arguments.join(" "), ending.status())))
    }

    /// Waits until the hub is idle. Returns false on a timeout.
    pub(super) fn wait_until_idle(&self) -> bool {
        until(COMMAND_TIMEOUT, || {
            let status = self.ask(Hub::Stays, &["hub", "status", "--json"]).ok();
            status.and_then(|answer| answer.json()).is_some_and(|status| hubs::is_idle(&status))
        })
    }

    fn must_become_idle(&self) -> Result<(), Failure> {
        if self.wait_until_idle() {
            Ok(())
        } else {
            Err(Failure::complaints("the hub did not come to rest".into()))
        }
    }

    /// Kills all hubs of the home.
    pub(super) fn end_hubs(&self) {
        for pid in hubs::of(&self.home()) {
            // It may be gone already.
            let _ = hubs::kill(pid);
        }
        until(COMMAND_TIMEOUT, || hubs::of(&self.home()).is_empty());
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        self.end_hubs();
    }
}

fn body(number: u32) -> String {
    format!("message number {number}")
}

/// Returns the event of the end of a session's first turn.
fn turn(session: u32) -> String {
    turn_ended(session.into(), 1, &format!("done {session}"))
}
