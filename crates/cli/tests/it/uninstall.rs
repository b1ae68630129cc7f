//! `ringer uninstall` leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json as value;
use test_support::until;

use crate::home::SCRIPTS;
use crate::pty::typed_in_terminal;
use crate::ringer::{beside, check, check_with_input, json};
use crate::setup::UserHome;

const CLIENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "copilot"];

/// Every file and directory below a directory, with its content.
fn tree(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path.clone());
            }
            let content = if path.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
            found.push((path, content));
        }
    }
    found.sort();
    found
}

/// A person's home in which all clients have settings, and hubs may run.
struct Machine {
    user: UserHome,
}

impl Machine {
    fn new() -> Self {
        let user = UserHome::with_clients(&CLIENTS);
        user.write(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
        user.write(".codex/config.toml", "model = \"x\"\n");
        user.write(".config/ringer/config.toml", "[notify]\npopup = \"off\"\n[answers]\nscripts = true\n");
        user.write(".local/state/other", "");
        fs::create_dir(user.environment.path().join("runtime")).expect("it is ours");
        Self { user }
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let runtime = self.user.environment.path().join("runtime").display().to_string();
        let own = self.user.variables().into_iter().filter(|(name, _)| *name != "RINGER_HUB");
        own.chain([("XDG_RUNTIME_DIR", runtime)]).collect()
    }

    fn ringer(&self, arguments: &[&str]) -> Command {
        // Its hooks register this test as an agent.
        let mut command = if arguments.first() == Some(&"uninstall") {
            beside(arguments)
        } else {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
            command.args(arguments);
            command
        };
        command.env_clear().envs(self.variables()).stdin(Stdio::null());
        command.current_dir(self.user.environment.repository());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        check(&mut self.ringer(arguments), 0).0
    }

    /// Does everything that leaves something behind.
    fn use_ringer(&self) {
        // Else each message may start one, and one that is late would begin after the end.
        self.run(&["hub", "start"]);
        self.run(&["setup", "--yes"]);
        self.run(&["setup", "claude", "--project", "--yes"]);
        let other = self.user.environment.path().join("other");
        self.run(&["notify", "one"]);
        check(self.ringer(&["notify", "two"]).current_dir(&other), 0);
        // The second one leaves a file about a tool that runs.
        for event in ["Stop", "PreToolUse"] {
            let input = value!({ "session_id": "0123456789", "cwd": other, "tool_name": "Bash", "tool_use_id": "t1" });
            check_with_input(&mut self.ringer(&["hook", "claude", event]), input.to_string().as_bytes());
        }
        until("the hub has read them", || {
            // A hub that is just starting may not answer.
            let listed = self.ringer(&["list"]).output().expect("it runs");
            String::from_utf8_lossy(&listed.stdout).contains("two")
        });
        // Edited since: its removal makes a backup.
        let edited = self.user.read(".claude/settings.json").replace("opus", "sonnet");
        self.user.write(".claude/settings.json", &edited);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A test that failed half-way has left its hub.
        let _ = self.ringer(&["hub", "stop"]).output();
    }
}

#[test]
fn nothing_is_left() {
    let machine = Machine::new();
    machine.user.environment.make_repository("other");
    let directory = machine.user.environment.path();
    let before = tree(directory);
    machine.use_ringer();
    let runtime = fs::read_dir(directory.join("runtime/ringer")).expect("a directory").flatten();
    let runtime: Vec<String> =
        runtime.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(runtime.iter().any(|name| name.starts_with("tools-")), "{runtime:?}");
    assert!(directory.join("other/.git/ringer/id").is_file());

    let shown = machine.run(&["uninstall", "--yes"]);
    for words in [
        "  hooks in  ~/.claude/settings.json\n            ~/.codex/hooks.json\n",
        "repository/.claude/settings.json\n",
        "  backups   ~/.claude/settings.json.ringer-backup-",
        "  running   the hub (pid ",
        "/home\n            ",
        "/other/.git/ringer\n",
        "Your settings stay: ~/.config/ringer/config.toml\n",
        "Done. To remove the program: rm ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("listener"), "the hub is not counted twice: {shown}");
    let mut expected = before;
    let settings = machine.user.file(".claude/settings.json");
    for (path, content) in &mut expected {
        if *path == settings {
            *content = b"{\n  \"model\": \"sonnet\"\n}\n".to_vec();
        }
    }
    let after = tree(directory);
    let names = |tree: &[(PathBuf, Vec<u8>)]| tree.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&after), names(&expected));
    assert_eq!(after, expected);
    assert_eq!(machine.run(&["uninstall", "--yes"]), "Nothing to remove.\n");
    assert_eq!(tree(directory), expected, "looking leaves nothing either");
}

#[test]
fn the_history_stays_on_request() {
    let machine = Machine::new();
    machine.user.environment.make_repository("other");
    machine.use_ringer();
    let id = machine.user.environment.path().join("other/.git/ringer/id");
    let scope = fs::read_to_string(&id).expect("an id");
    let removed = json(&machine.run(&["uninstall", "--keep-history", "--yes", "--json"]));
    assert!(removed["settings"].as_array().is_some_and(|files| files.len() >= 7), "{removed}");
    assert_eq!(removed["repositories"].as_array().map(Vec::len), Some(0));
    let mut left: Vec<String> = fs::read_dir(machine.user.environment.home())
        .expect("the home")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.retain(|name| !name.starts_with("ringer.db") && !name.starts_with("hub.db"));
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(fs::read_to_string(&id).expect("an id"), scope);
    assert!(!machine.user.read(".claude/settings.json").contains("ringer"));
    assert!(machine.run(&["log"]).contains("one"));
}

#[test]
fn the_person_is_asked_first_and_files_of_others_stay() {
    let user = UserHome::with_clients(&["claude"]);
    check(&mut user.setup(&["--yes"]), 0);
    let mut ringer = Command::new(env!("CARGO_BIN_EXE_ringer"));
    ringer.arg("uninstall").env_clear().envs(user.variables()).stdin(Stdio::null());
    let (_, err) = check(&mut ringer, 64);
    assert!(err.contains("ringer uninstall --yes"), "{err}");

    let home = user.environment.home();
    fs::write(home.join("mine.txt"), "").expect("a file");
    fs::create_dir_all(home.join("spool")).expect("a directory");
    fs::write(home.join("spool/mine"), "").expect("a file");
    let mut variables = user.variables();
    variables.push(("RINGER_CONFIG", user.environment.path().join("scripts.toml").display().to_string()));
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let typed = |typed| typed_in_terminal(&["uninstall"], &variables, user.environment.path(), typed);
    for no in ["\n", "n\n"] {
        let (shown, exit) = typed(no);
        assert!(exit == 0 && shown.contains("Nothing was removed."), "{shown}");
        assert!(user.read(".claude/settings.json").contains("ringer-hook"));
    }
    let (shown, exit) = typed("y\n");
    assert!(exit == 0 && shown.contains("Remove all of this? [y/N]") && shown.contains("Done."), "{shown}");
    assert!(shown.contains("stays, because it has files that Ringer did not create"), "{shown}");
    assert!(
        !user.file(".claude").exists() && home.join("spool/mine").exists() && home.join("mine.txt").exists()
    );
    assert_eq!(tree(&home).len(), 3, "{:?}", tree(&home));
}

#[test]
fn a_broken_file_stops_it_only_if_it_names_ringer() {
    let user = UserHome::with_clients(&["claude"]);
    check(&mut user.setup(&["--yes"]), 0);
    user.write(".gemini/settings.json", "{ broken");
    user.write(".config/ringer/config.toml", SCRIPTS);
    let run = |exit| {
        let mut ringer = Command::new(env!("CARGO_BIN_EXE_ringer"));
        ringer.args(["uninstall", "--yes"]).env_clear().envs(user.variables()).stdin(Stdio::null());
        check(ringer.current_dir(user.environment.path()), exit).1
    };
    let settings = user.read(".claude/settings.json");
    user.write(".claude/settings.json", &settings[..settings.len() / 2]);
    let err = run(78);
    assert!(err.contains(".claude/settings.json") && err.contains("then run: ringer uninstall"), "{err}");
    user.write(".claude/settings.json", &settings);
    run(0);
    assert!(!user.file(".claude").exists());
}
