//! The environment of a test: a home, a repository, and what runs in them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;
use test_support::DEADLINE;

use crate::background::Background;
use crate::ringer::{check, json, ringer_of_person};

/// Lets commands without a terminal decide, unless an agent runs them.
pub(crate) const SCRIPTS: &str = "[answers]\nscripts = true\n";

/// A temporary home and a temporary repository; both go with it.
pub(crate) struct TestEnvironment {
    directory: TempDir,
    home: PathBuf,
}

impl TestEnvironment {
    /// The home is not made yet: the first command does that.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// In memory where the system has a place for that: for tests that write a great deal.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        Self::below(if memory.is_dir() { memory } else { Path::new("/tmp") })
    }

    fn below(parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory");
        let home = directory.path().join("home");
        let environment = Self { directory, home };
        environment.make_repository("repository");
        fs::write(environment.path().join("scripts.toml"), SCRIPTS).expect("a file");
        environment
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    /// Uses a home of another name from now on.
    pub(crate) fn move_home(&mut self, name: &OsStr) {
        self.home = self.path().join(name);
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("ringer.db")
    }

    /// The repository that commands run in.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repository")
    }

    /// Makes another repository, by hand: starting git costs more than everything else here.
    pub(crate) fn make_repository(&self, name: &str) -> PathBuf {
        let repository = self.path().join(name);
        fs::create_dir_all(repository.join(".git/objects")).expect("a directory");
        fs::create_dir_all(repository.join(".git/refs")).expect("a directory");
        fs::write(repository.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
        repository
    }

    /// The binary, in the repository, with this home and nothing else in its environment.
    pub(crate) fn ringer<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let words: Vec<&str> = arguments.iter().take(2).filter_map(|word| word.as_ref().to_str()).collect();
        let mut command = ringer_of_person(&words);
        self.settle(command.args(arguments.iter().skip(words.len())));
        command
    }

    /// Lets another program run in this world; it finds the binary as `$RINGER`.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        self.settle(command.env("RINGER", env!("CARGO_BIN_EXE_ringer")));
        command
    }

    /// A hook as a client runs it: below a process of the agent's own, which is not above the commands of the test.
    pub(crate) fn hook(&self, client: &str, event: &str) -> Command {
        let mut command = self.program("setsid");
        command.args(["--wait", "sh", "-c", "\"$RINGER\" hook \"$@\"; exit $?", "sh", client, event]);
        command
    }

    fn settle(&self, command: &mut Command) {
        command.env("RINGER_HOME", self.home()).env("RINGER_HUB", "off").current_dir(self.repository());
        // Tests have no terminal.
        command.env("RINGER_CONFIG", self.path().join("scripts.toml"));
    }

    /// Runs a command that has to succeed. Gives standard output.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        check(&mut self.ringer(arguments), 0).0
    }

    #[track_caller]
    pub(crate) fn notify(&self, message: &str) {
        self.run(&["notify", message]);
    }

    /// What is waiting for the lead, by one call.
    #[track_caller]
    pub(crate) fn drain(&self) -> Vec<Value> {
        lines(&self.run(&["listen", "--timeout", "0"]))
    }

    /// The texts that are waiting for the lead, by one call.
    #[track_caller]
    pub(crate) fn texts(&self) -> Vec<String> {
        texts(&self.drain())
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        json(&self.run(&["status", "--everywhere", "--json"]))
    }

    /// Asks for the status until it is as it should be. Each look is a process of its own, so this needs no pause.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let start = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return;
            }
            assert!(start.elapsed() < DEADLINE, "waited in vain until {what}: {status}");
        }
    }

    /// Starts a listener, and waits until it sleeps at its doorbell.
    #[track_caller]
    pub(crate) fn listen(&self, arguments: &[&str]) -> Background {
        let mut command = self.ringer(&["listen"]);
        command.args(arguments);
        self.start(command)
    }

    /// Starts a command that waits, and waits until it does.
    #[track_caller]
    pub(crate) fn start(&self, command: Command) -> Background {
        let background = Background::start(command);
        self.wait_until_asleep(background.pid());
        background
    }

    #[track_caller]
    pub(crate) fn wait_until_asleep(&self, pid: u32) {
        let asleep = format!("{pid} sleeps at its doorbell");
        self.wait_until(&asleep, |status| is_listening(status, pid) && sleeps_at_a_descriptor(pid));
    }

    #[track_caller]
    pub(crate) fn wait_until_gone(&self, pid: u32) {
        self.wait_until(&format!("{pid} listens no more"), |status| !is_listening(status, pid));
    }

    /// The names in the folder of the doorbells that end so.
    pub(crate) fn bells(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home().join("bells")).expect("a home that was used");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some_and(|own| own == ending)).collect()
    }
}

/// Whether a process is among the listeners of a status.
pub(crate) fn is_listening(status: &Value, pid: u32) -> bool {
    status["listeners"].as_array().expect("a list").iter().any(|listener| listener["pid"] == pid)
}

/// Whether the kernel says that a process waits in poll. Where it says nothing, the status has to do.
fn sleeps_at_a_descriptor(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/wchan")) {
        Ok(place) => place.contains("poll") || place == "0" && is_asleep(pid),
        Err(_) => true,
    }
}

fn is_asleep(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

/// Lines of JSON.
#[track_caller]
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(json).collect()
}

/// What messages say.
pub(crate) fn texts(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| message["msg"].as_str().expect("a text").to_owned()).collect()
}
