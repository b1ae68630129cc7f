//! A laptop that is linked to a box: two homes, each with a hub of its own if it is asked for.

use std::fs;
use std::process::Stdio;

use serde_json::json;
use test_support::until;

use crate::background::Background;
use crate::hub::environment::{HubEnvironment, kill};

const SETTINGS: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";

/// An agent that begins to work and asks for a permission.
const AGENT: &str = r#"
    for event in SessionStart UserPromptSubmit; do "$RINGER" hook claude "$event" < "$INPUT" > /dev/null; done
    "$RINGER" hook claude PermissionRequest < "$INPUT"
    exit $?
"#;

pub(super) struct Laptop {
    pub(super) near: HubEnvironment,
    pub(super) far: HubEnvironment,
    command: Vec<String>,
}

/// Both machines, connected.
pub(super) fn linked() -> Laptop {
    let laptop = Laptop::with_arguments(&[]);
    laptop.near.run(&["hub", "start"]);
    laptop.until_connected();
    laptop
}

impl Laptop {
    pub(super) fn without_link() -> Self {
        Self { near: HubEnvironment::new(), far: HubEnvironment::new(), command: Vec::new() }
    }

    /// With these arguments for the far end.
    pub(super) fn with_arguments(arguments: &[&str]) -> Self {
        let mut laptop = Self::without_link();
        laptop.command = laptop.serve_command(arguments);
        laptop.near.set(&laptop.settings("may_answer = false"));
        laptop
    }

    /// With popups on the desktop, and what is allowed.
    pub(super) fn with_popups(allowed: &str) -> Self {
        let mut laptop = Self::without_link();
        laptop.command = laptop.serve_command(&[]);
        laptop.near.set(&laptop.settings(allowed).replace("popup = \"off\"", "popup = \"desktop\""));
        laptop
    }

    /// With another program for the link.
    pub(super) fn with_command(command: &[&str]) -> Self {
        let laptop = Self::without_link();
        laptop.set_command(command);
        laptop
    }

    pub(super) fn set_command(&self, command: &[&str]) {
        self.near.set(&format!("{SETTINGS}[[relay]]\nname = \"box\"\ncommand = {}\n", json!(command)));
    }

    /// The program of a link to the other home.
    pub(super) fn serve_command(&self, arguments: &[&str]) -> Vec<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.far.base.home();
        let words = ["env", "-i", &format!("PATH={path}"), "RINGER_HUB=off"].map(str::to_owned);
        let home = format!("RINGER_HOME={}", home.display());
        let config = format!("RINGER_CONFIG={}", self.far.config().display());
        let program = [env!("CARGO_BIN_EXE_ringer"), "relay", "serve", "--stdio"].map(str::to_owned);
        let arguments = arguments.iter().map(|word| (*word).to_owned());
        words.into_iter().chain([home, config]).chain(program).chain(arguments).collect()
    }

    fn settings(&self, allowed: &str) -> String {
        format!("{SETTINGS}[[relay]]\nname = \"box\"\ncommand = {}\n{allowed}\n", json!(self.command))
    }

    /// Allows answers, and waits until the link was made anew with that.
    pub(super) fn allow_answers(&self) {
        self.allow("may_answer = true");
    }

    /// The same for messages to lead agents.
    pub(super) fn allow_reaching_lead(&self) {
        self.allow("may_reach_lead = true");
    }

    fn allow(&self, allowed: &str) {
        let before = self.servers();
        self.near.set(&self.settings(allowed));
        self.until_connected_anew(&before);
    }

    /// Gives the repositories of both machines one name, which the other settings leave as they are.
    pub(super) fn name_repositories(&self, name: &str) {
        for machine in [&self.near, &self.far] {
            let before = fs::read_to_string(machine.config()).unwrap_or_default();
            let path = json!(machine.base.repository());
            machine.set(&format!("{before}[[repository]]\npath = {path}\nname = \"{name}\"\n"));
        }
    }

    /// Gives the link another name in the settings.
    pub(super) fn rename(&self, name: &str) {
        let settings = self.settings("may_answer = true");
        self.near.set(&settings.replace("name = \"box\"", &format!("name = \"{name}\"")));
    }

    /// Waits until another process serves the link.
    #[track_caller]
    pub(super) fn until_connected_anew(&self, before: &[u32]) {
        until("the link is made anew", || {
            let now = self.servers();
            !now.is_empty() && now != before
        });
        self.until_connected();
    }

    pub(super) fn status(&self) -> String {
        self.near.run(&["relay", "status"])
    }

    #[track_caller]
    pub(super) fn until_connected(&self) {
        until("the link is connected", || self.status().contains("box: connected since"));
    }

    #[track_caller]
    pub(super) fn until_listed(&self, body: &str) {
        until(&format!("{body:?} is listed here"), || {
            self.near.bodies(&["--limit", "1000"]).iter().any(|own| own == body)
        });
    }

    /// What this machine is called on the other one.
    pub(super) fn known_there(&self) -> String {
        let id = fs::read_to_string(self.near.base.home().join("machine-id")).expect("an id");
        let database = rusqlite::Connection::open(self.far.base.database()).expect("a database");
        let name = "SELECT substr(name, 12) FROM note WHERE name LIKE 'relay-name:%' AND value = ?1";
        database.query_row(name, [id.trim_end()], |row| row.get(0)).expect("a name")
    }

    /// The processes of the far end.
    pub(super) fn servers(&self) -> Vec<u32> {
        let home = format!("RINGER_HOME={}", self.far.base.home().display());
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let holds =
                |bytes: &[u8], word: &str| bytes.split(|byte| *byte == 0).any(|own| own == word.as_bytes());
            holds(&read("cmdline"), "serve") && holds(&read("environ"), &home)
        })
        .collect()
    }

    /// An agent on the box asks whether it may run a command. It is a process of its own, which is not above the commands of
    /// the person.
    pub(super) fn ask_permission(&self, command: &str) -> Background {
        let input = self.far.base.path().join("input.json");
        let content = json!({
            "session_id": "0123456789", "source": "startup", "cwd": self.far.base.repository(), "prompt": "go on",
            "tool_name": "Bash", "tool_input": { "command": command },
        });
        fs::write(&input, content.to_string()).expect("a file");
        let mut shell = self.far.program("sh");
        shell.args(["-c", AGENT]).env("INPUT", input).env("RINGER_HUB", "off").stdin(Stdio::null());
        Background::start(shell)
    }

    pub(super) fn kill_server(&self) {
        for pid in self.servers() {
            kill(pid);
        }
    }
}
