//! An environment in which commands may start a hub. All its processes end with it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{DEADLINE, until};

use crate::background::Background;
use crate::home::{SCRIPTS, TestEnvironment};
use crate::pty::typed_in_terminal;
use crate::ringer::{check, json};

/// A home of its own, a runtime directory and settings.
pub(crate) struct HubEnvironment {
    pub(crate) base: TestEnvironment,
    runtime: TempDir,
}

impl HubEnvironment {
    /// With no limits and no ways out: what happens then is what the test does.
    pub(crate) fn new() -> Self {
        Self::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"off\"\n")
    }

    pub(crate) fn with_settings(settings: &str) -> Self {
        Self::of(TestEnvironment::new(), settings)
    }

    /// The same in memory, for tests that write a great deal.
    pub(crate) fn in_memory() -> Self {
        Self::of(TestEnvironment::in_memory(), "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n")
    }

    fn of(base: TestEnvironment, settings: &str) -> Self {
        let runtime = tempfile::tempdir().expect("a temporary directory");
        let environment = Self { base, runtime };
        environment.set(settings);
        environment
    }

    /// Changes the settings.
    pub(crate) fn set(&self, settings: &str) {
        let has_scripts = settings.contains("[answers]");
        self.set_exactly(&if has_scripts { settings.to_owned() } else { format!("{settings}\n{SCRIPTS}") });
    }

    /// The same without what lets the test decide, which has no terminal.
    pub(crate) fn set_exactly(&self, settings: &str) {
        fs::write(self.config(), settings).expect("a file");
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.base.path().join("config.toml")
    }

    /// `XDG_RUNTIME_DIR`.
    pub(crate) fn runtime_directory(&self) -> &Path {
        self.runtime.path()
    }

    /// The binary, which may start a hub.
    pub(crate) fn ringer<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        self.settled(self.base.ringer(arguments))
    }

    /// Another program, in whose environment a hub may be started; it finds the binary as `$RINGER`.
    pub(crate) fn program(&self, program: &str) -> Command {
        self.settled(self.base.program(program))
    }

    fn settled(&self, mut command: Command) -> Command {
        command
            .env_remove("RINGER_HUB")
            // A locked screen on this machine must not hold popups back.
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus")
            // The window in which the tests run is looked at now and then.
            .env("RINGER_WINDOWS", "off")
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("RINGER_CONFIG", self.config())
            .env("TZ", "UTC");
        command
    }

    /// What a program in a PTY needs to be in this environment.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let command = self.program("true");
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The person sends this to an agent, from a shell of their own.
    #[track_caller]
    pub(crate) fn type_message(&self, agent: &str, text: &str) {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (said, exit) =
            typed_in_terminal(&["notify", "--to", agent, text], &variables, &self.base.repository(), "");
        assert_eq!(exit, 0, "{said}");
    }

    /// Runs a command that has to succeed. Gives standard output.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        check(&mut self.ringer(arguments), 0).0
    }

    /// Runs a command that prints JSON.
    #[track_caller]
    pub(crate) fn json<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Value {
        json(&self.run(arguments))
    }

    /// Runs a command that has to fail with this code. Gives what it complained about.
    #[track_caller]
    pub(crate) fn fails<S: AsRef<OsStr>>(&self, arguments: &[S], exit: i32) -> String {
        check(&mut self.ringer(arguments), exit).1
    }

    /// Sends a message with these arguments. Gives its id.
    #[track_caller]
    pub(crate) fn notify(&self, arguments: &[&str]) -> String {
        let sent = self.json(&[&["notify", "--json"], arguments].concat());
        sent["id"].as_str().expect("an id").to_owned()
    }

    /// The list, newest first.
    #[track_caller]
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let rows = self.json(&[&["list", "--json"], arguments].concat());
        let rows = rows.as_array().expect("a list").iter();
        // What this test decides without a terminal is announced, which is no matter of most tests.
        let is_announcement =
            |row: &Value| row["body"].as_str().is_some_and(|body| body.starts_with("A script of yours"));
        rows.filter(|row| !is_announcement(row)).cloned().collect()
    }

    /// The bodies in the list, newest first.
    #[track_caller]
    pub(crate) fn bodies(&self, arguments: &[&str]) -> Vec<String> {
        self.list(arguments).iter().map(|row| row["body"].as_str().expect("a text").to_owned()).collect()
    }

    /// Follows events.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Background {
        Background::start(self.ringer(&[&["watch"], arguments].concat()))
    }

    /// The hub's process, according to itself.
    #[track_caller]
    pub(crate) fn hub(&self) -> u32 {
        let status = self.json(&["hub", "status", "--json"]);
        assert_eq!(status["running"], true, "{status}");
        u32::try_from(status["pid"].as_u64().expect("a number")).expect("a pid")
    }

    /// The hubs of this home, according to the kernel.
    pub(crate) fn hubs(&self) -> Vec<u32> {
        let home = format!("RINGER_HOME={}", self.base.home().display());
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let holds =
                |bytes: &[u8], word: &str| bytes.split(|byte| *byte == 0).any(|own| own == word.as_bytes());
            let arguments = read("cmdline");
            holds(&arguments, "hub")
                && (holds(&arguments, "run") || holds(&arguments, "--foreground"))
                && holds(&read("environ"), &home)
        })
        .collect()
    }

    /// Waits until exactly one hub runs and answers. Gives its process.
    #[track_caller]
    pub(crate) fn settled_hub(&self) -> u32 {
        until("one hub runs and answers", || {
            let status = self.json(&["hub", "status", "--json"]);
            status["running"] == true && self.hubs().len() == 1
        });
        self.hub()
    }

    /// What the hub says of itself in its home.
    pub(crate) fn presence(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.base.home().join("hub.json")).ok()?).ok()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.base.home().join("hub.log")).unwrap_or_default()
    }

    /// Connects to the socket by hand.
    #[track_caller]
    pub(crate) fn connect(&self) -> Socket {
        self.try_connect().expect("a hub that listens")
    }

    /// The same, if a hub is there.
    pub(crate) fn try_connect(&self) -> Option<Socket> {
        let presence = self.presence()?;
        let stream = UnixStream::connect(presence["socket"].as_str()?).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        Some(Socket(BufReader::new(stream)))
    }
}

impl Drop for HubEnvironment {
    fn drop(&mut self) {
        for pid in self.hubs() {
            kill(pid);
        }
    }
}

/// Kills a process that is not our child, and waits until it is gone.
pub(crate) fn kill(pid: u32) {
    let Some(process) = Pid::from_raw(pid.cast_signed()) else { return };
    // It may have ended by itself.
    let _ = kill_process(process, Signal::KILL);
    until("it is gone", || !runs(pid));
}

/// Whether a thread of a process runs: the others hold its files open when the first one is gone already. A zombie does not
/// run: in a container it may never be reaped.
pub(crate) fn runs(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// A connection to a hub, line by line.
pub(crate) struct Socket(BufReader<UnixStream>);

impl Socket {
    #[track_caller]
    pub(crate) fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    /// The next line. `None` at the end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line).expect("a line in time") {
            0 => None,
            _ => Some(json(&line)),
        }
    }

    /// Whether the hub answers. It may have ended.
    pub(crate) fn is_answered(&mut self) -> bool {
        let mut line = String::new();
        self.0.get_mut().write_all(b"{\"method\":\"ping\"}\n").is_ok()
            && self.0.read_line(&mut line).is_ok_and(|read| read > 0)
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.line().expect("an answer")
    }

    /// Asks for something with an id, and checks that the answer has it. A host gets orders in between.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "id": "x-7", "method": method, "params": params }).to_string());
        loop {
            let answer = self.line().expect("an answer");
            if answer.get("event").is_none() {
                assert_eq!(answer["id"], "x-7");
                return answer;
            }
        }
    }
}
