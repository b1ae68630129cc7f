//! `ringer setup`: what it shows, asks and writes, and how it is taken back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use test_support::make_program;

use crate::home::TestEnvironment;
use crate::pty::typed_in_terminal;
use crate::ringer::{check, json};

/// Settings with the marks of a person's hand, and a hook that is not Ringer's.
const SETTINGS: &str = r#"{
    // my own
    "model":   "opus",
    "hooks": {
        "Stop": [ { "hooks": [ {"type": "command", "command": "say done"} ] } ],
    },
}
"#;

/// A person's home, in which some clients are installed.
pub(crate) struct UserHome {
    pub(crate) environment: TestEnvironment,
}

impl UserHome {
    pub(crate) fn with_clients(clients: &[&str]) -> Self {
        let user = Self { environment: TestEnvironment::new() };
        for folder in ["user", "bin"] {
            fs::create_dir(user.environment.path().join(folder)).expect("it is ours");
        }
        for client in clients {
            let program = user.environment.path().join("bin").join(client);
            make_program(&program, "");
        }
        user
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.environment.path().join("user").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.file(name).parent().expect("a folder")).expect("it is ours");
        fs::write(self.file(name), text).expect("it is ours");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.environment.path().join(name).display().to_string();
        let home = self.environment.home().display().to_string();
        vec![
            ("HOME", path("user")),
            ("PATH", path("bin")),
            ("RINGER_HOME", home),
            ("RINGER_HUB", "off".into()),
        ]
    }

    pub(crate) fn setup(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
        command.arg("setup").args(arguments).env_clear().envs(self.variables()).stdin(Stdio::null());
        command.current_dir(self.environment.repository());
        command
    }

    /// Sets up in a terminal in which this is typed.
    fn typed(&self, typed: &str) -> (String, u32) {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        typed_in_terminal(&["setup"], &variables, &self.environment.repository(), typed)
    }

    /// The names in the folder of Claude Code.
    fn claude_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file(".claude")).into_iter().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_dry_run_shows_the_change_and_changes_nothing() {
    let user = UserHome::with_clients(&["claude"]);
    user.write(".claude/settings.json", SETTINGS);
    let (out, _) = check(&mut user.setup(&["--dry-run"]), 0);
    assert!(out.contains("@@") && out.contains("hook claude PostToolUse"), "{out}");
    assert_eq!(user.read(".claude/settings.json"), SETTINGS);
    assert_eq!(user.claude_files(), ["settings.json"]);
    assert!(!user.environment.home().exists());
    check(&mut user.setup(&["--dry-run", "--yes"]), 64);
}

#[test]
fn it_writes_backs_up_tells_and_takes_everything_back() {
    let user = UserHome::with_clients(&["claude"]);
    user.write(".claude/settings.json", SETTINGS);
    let (out, err) = check(&mut user.setup(&["--yes"]), 0);
    assert!(out.starts_with("Found Claude Code; ") && !out.contains("@@"), "{out}");
    assert!(out.contains("\n  claude  12 hooks in ~/.claude/settings.json\n"), "{out}");
    assert!(out.contains("\nDone. Backups: ~/.claude/settings.json.ringer-backup-"), "{out}");
    assert!(out.contains(". Undo: ringer setup --remove\nA test notification was sent. "), "{out}");
    assert!(err.contains("is in a build directory"), "{err}");
    let written = user.read(".claude/settings.json");
    assert!(written.contains("// my own") && written.contains("say done"), "{written}");
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"] {
        assert_eq!(written.matches(&format!("hook claude {event} ")).count(), 1, "{event}: {written}");
    }
    let backup = user.claude_files().into_iter().find(|name| name != "settings.json").expect("a backup");
    assert_eq!(user.read(&format!(".claude/{backup}")), SETTINGS);
    let id = out.rsplit(' ').next().expect("an id").trim();
    let again = check(&mut user.setup(&[]), 0).0;
    assert!(again.contains("Already set up"), "100 runs are one: {again}");
    assert_eq!(user.read(".claude/settings.json"), written);
    assert!(user.environment.run(&["why", id]).contains(" by system to you\n"));

    let (out, _) = check(&mut user.setup(&["--remove", "--yes"]), 0);
    assert_eq!(out, "  claude  ~/.claude/settings.json\nDone.\n");
    assert_eq!(user.read(".claude/settings.json"), SETTINGS, "to the byte");
    assert_eq!(user.claude_files(), ["settings.json"], "a copy of what is there again is no use");
    assert!(check(&mut user.setup(&["--remove", "--yes"]), 0).0.contains("nothing to remove"));
}

#[test]
fn a_file_that_was_not_there_goes_again() {
    let user = UserHome::with_clients(&["claude", "codex", "gemini", "opencode"]);
    check(&mut user.setup(&["--yes"]), 0);
    let files = [".claude/settings.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json"];
    for name in files.iter().chain(&[".config/opencode/plugins/ringer.js"]) {
        assert!(user.read(name).contains("ringer"), "{name}");
    }
    check(&mut user.setup(&["--remove", "--yes"]), 0);
    for name in files.iter().chain(&[".config/opencode/plugins/ringer.js"]) {
        assert!(!user.file(name).exists(), "{name}");
    }
}

#[test]
fn the_person_is_asked_and_the_answer_counts() {
    let user = UserHome::with_clients(&["claude"]);
    for no in ["n\n", "maybe\n", "d\nn\n", "\u{4}"] {
        let (shown, exit) = user.typed(no);
        assert!(
            shown.contains("Connect it? [Y/n/d = show the changes]")
                && shown.contains("Nothing was changed."),
            "{shown}"
        );
        assert_eq!((exit, shown.contains("hook claude Stop")), (0, no.starts_with('d')), "{shown}");
        assert_eq!(user.claude_files(), Vec::<String>::new());
    }
    // Enter three times: connect, one popup, it was seen.
    let (shown, exit) = user.typed("\n\n\n");
    assert!(exit == 0 && shown.contains("Did you see it? [Y/n]") && !shown.contains("reason"), "{shown}");
    assert_eq!(user.claude_files(), ["settings.json"]);
    let settings = user.read(".claude/settings.json");
    assert!(settings.contains("\"preferredNotifChannel\": \"notifications_disabled\""), "{settings}");
    let (shown, _) = user.typed("");
    assert!(shown.contains("Already set up") && !shown.contains('?'), "{shown}");

    check(&mut user.setup(&["--remove", "--yes"]), 0);
    assert_eq!(user.claude_files(), Vec::<String>::new(), "with the setting of the popups");
}

#[test]
fn popups_of_the_client_stay_if_the_person_wants_them() {
    let user = UserHome::with_clients(&["claude", "gemini"]);
    user.write(".claude/settings.json", SETTINGS);
    let (shown, _) = user.typed("y\nn\ny\n");
    assert!(shown.contains("Connect both?"), "{shown}");
    assert!(shown.contains("Claude Code shows popups of its own in kitty, Ghostty and iTerm2"), "{shown}");
    assert!(!user.read(".claude/settings.json").contains("preferredNotifChannel"));
    assert_eq!(user.claude_files().len(), 2, "one backup: {:?}", user.claude_files());
}

#[test]
fn a_test_that_was_not_seen_is_explained() {
    let user = UserHome::with_clients(&["codex"]);
    let (shown, exit) = user.typed("\nn\n");
    assert_eq!(exit, 0);
    for words in [
        "Found Codex; no desktop notifications; ",
        "What became of it:\r\nRinger: Ringer is connected to codex\r\n",
        "not processed by the hub yet",
        "The reason may be:\r\n",
        "! desktop       no session bus",
        "! hub           not running, and RINGER_HUB=off prevents starting it\r\n                  fix: unset RINGER_HUB",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn without_a_terminal_to_ask_on_nothing_is_written() {
    let user = UserHome::with_clients(&["claude"]);
    for arguments in [&[][..], &["--json"]] {
        let (_, err) = check(&mut user.setup(arguments), 64);
        assert!(
            err.contains("standard input is not a terminal") && err.contains("ringer setup --yes"),
            "{err}"
        );
    }
    assert_eq!(user.claude_files(), Vec::<String>::new());
}

#[test]
fn as_json() {
    let user = UserHome::with_clients(&["claude"]);
    let report = |arguments: &[&str]| json(&check(&mut user.setup(arguments), 0).0);
    let file = |report: &Value| {
        let file = &report["files"][0];
        (file["changes"].as_bool().unwrap(), file["written"].as_bool().unwrap(), file["diff"] != "")
    };
    let dry = report(&["--dry-run", "--json"]);
    assert_eq!(dry["clients"], serde_json::json!(["claude"]));
    assert_eq!(dry["files"][0]["path"], user.file(".claude/settings.json").display().to_string());
    assert_eq!(file(&dry), (true, false, true));
    assert_eq!(file(&report(&["--yes", "--json"])), (true, true, true));
    assert_eq!(file(&report(&["--yes", "--json"])), (false, false, false));
    assert_eq!(file(&report(&["--remove", "--yes", "--json"])), (true, true, true));
}

#[test]
fn in_a_repository() {
    let user = UserHome::with_clients(&["claude"]);
    check(&mut user.setup(&["--project", "--yes"]), 0);
    let settings = user.environment.repository().join(".claude/settings.json");
    let written = fs::read_to_string(&settings).unwrap();
    assert!(written.contains("ringer hook claude Stop"), "{written}");
    assert!(
        !written.contains(env!("CARGO_BIN_EXE_ringer")),
        "the path to it differs between people: {written}"
    );
    assert_eq!(user.claude_files(), Vec::<String>::new());
    check(&mut user.setup(&["--project", "--remove", "--yes"]), 0);
    assert!(!settings.exists());
    let mut outside = user.setup(&["--project", "--yes"]);
    let (_, err) = check(outside.current_dir(user.environment.path()), 64);
    assert!(err.contains("not a git repository"), "{err}");
}

#[test]
fn a_broken_file_is_refused_and_left_alone() {
    for (client, name, text) in [
        ("claude", ".claude/settings.json", "{ \"hooks\": "),
        ("claude", ".claude/settings.json", "\u{1b}[2J{"),
        ("gemini", ".gemini/settings.json", "[1, 2"),
        ("codex", ".codex/config.toml", "notify = [\n= 3"),
    ] {
        let user = UserHome::with_clients(&[]);
        user.write(name, text);
        for arguments in [&[client, "--yes"][..], &[client, "--dry-run"], &[client, "--yes", "--json"]] {
            let (out, err) = check(&mut user.setup(arguments), 78);
            assert!(err.contains(name) && err.contains("was not changed"), "{client}: {err}");
            assert!(!err.contains('\u{1b}') && !out.contains('\u{1b}'), "{err:?}");
        }
        assert_eq!(user.read(name), text);
    }
}

#[test]
fn names_that_are_wrong_and_machines_without_agents() {
    let user = UserHome::with_clients(&[]);
    let (_, err) = check(&mut user.setup(&["emacs", "--yes"]), 64);
    assert!(err.contains("known: claude, codex, gemini, opencode, copilot"), "{err}");
    let (_, err) = check(&mut user.setup(&["--yes"]), 69);
    assert!(err.contains("ringer setup claude"), "{err}");
    check(&mut user.setup(&["claude", "--yes"]), 0);
    assert_eq!(user.claude_files(), ["settings.json"]);
    let (_, err) = check(user.setup(&["claude"]).env_remove("HOME"), 73);
    assert!(err.contains("HOME is not set"), "{err}");
}

#[test]
fn a_reader_who_leaves_early_breaks_nothing() {
    let user = UserHome::with_clients(&["claude", "codex", "gemini"]);
    let mut child = user.setup(&["--yes"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(check(&mut user.setup(&[]), 0).0.contains("Already set up"));
    // Nor one who is not there at all, on either stream.
    let user = UserHome::with_clients(&["claude"]);
    let mut child = user.setup(&["--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(user.claude_files(), ["settings.json"]);
}
