//! The inbox on the screen, in a real tmux, with real hooks.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::json;
use test_support::until;

use super::environment::{HubEnvironment, kill, runs};
use super::person_text::hook;
use super::tmux::Tmux;
use crate::background::Background;

/// `ringer` in a window of its own.
pub(crate) struct Screen<'a> {
    tmux: &'a Tmux<'a>,
    pane: String,
}

impl<'a> Screen<'a> {
    pub(crate) fn open(tmux: &'a Tmux<'a>) -> Self {
        Self::open_with(tmux, "")
    }

    /// With these assignments of variables in its environment.
    fn open_with(tmux: &'a Tmux<'a>, variables: &str) -> Self {
        let program = format!("exec env {variables} {}", env!("CARGO_BIN_EXE_ringer"));
        let pane = tmux.tell(&["new-window", "-P", "-F", "#{pane_id}", &program]);
        Self { tmux, pane }
    }

    /// With an agent that works, as the first one that was ever seen.
    pub(super) fn with_working_agent(environment: &HubEnvironment, tmux: &'a Tmux<'a>) -> Self {
        let screen = Self::open(tmux);
        screen.until("Welcome to Ringer.");
        hook(environment, "SessionStart", &json!({}));
        hook(environment, "UserPromptSubmit", &json!({}));
        screen.until("1 working");
        screen
    }

    pub(super) fn text(&self) -> String {
        self.tmux.tell(&["capture-pane", "-p", "-t", &self.pane])
    }

    #[track_caller]
    pub(crate) fn until(&self, words: &str) {
        until(words, || self.text().contains(words));
    }

    #[track_caller]
    pub(crate) fn until_not(&self, words: &str) {
        until(words, || !self.text().contains(words));
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.tmux.tell(&["send-keys", "-t", &self.pane, key]);
        }
    }

    /// Leaves what is shown. With a key right behind it, Escape would be another key.
    #[track_caller]
    pub(crate) fn leave(&self, words: &str) {
        self.press(&["Escape"]);
        self.until_not(words);
    }

    /// Whether its program runs.
    fn is_open(&self) -> bool {
        let panes = self.tmux.tell(&["list-panes", "-a", "-F", "#{pane_id}"]);
        panes.lines().any(|pane| pane == self.pane)
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        if thread::panicking() && self.is_open() {
            println!("the screen:\n{}", self.text());
        }
    }
}

/// A hook that waits beside its dialog.
fn ask_for_permission(environment: &HubEnvironment, command: &str) -> Background {
    let input = json!({
        "hook_event_name": "PermissionRequest", "session_id": "0123456789",
        "cwd": environment.base.repository(), "tool_name": "Bash", "tool_input": { "command": command },
    });
    let path = environment.base.path().join("input.json");
    fs::write(&path, input.to_string()).expect("a file");
    let mut hook = environment.ringer(&["hook", "claude", "PermissionRequest"]);
    hook.stdin(File::open(path).expect("a file"));
    Background::start(hook)
}

#[test]
fn the_walk_of_a_morning() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let tmux = Tmux::start(&environment, "");
    let screen = Screen::with_working_agent(&environment, &tmux);
    let waits = ask_for_permission(&environment, "rm -rf build");
    screen.until("1 needs you");
    screen.until("Bash: rm -rf build");

    // Answered in place.
    screen.press(&["a"]);
    screen.until("[1] Allow once");
    screen.press(&["3"]);
    screen.until("enter send");
    screen.press(&["not", "Space", "today", "Enter"]);
    let (said, exit) = waits.end();
    assert_eq!(exit, Some(0));
    assert!(said.concat().contains("not today") && said.concat().contains("deny"), "{said:?}");
    let ended = json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf build" } });
    hook(&environment, "PostToolUse", &ended);
    // Where that took long, the dialog says that it was not confirmed.
    screen.leave("[3]");
    screen.until("nothing needs you");

    // A question of `ringer ask`, by its number.
    let ask = ["ask", "--wait", "--from", "db", "--option", "Postgres", "--option", "SQLite", "Which one?"];
    let asks = Background::start(environment.ringer(&ask));
    screen.until("Which one?");
    screen.press(&["g", "a"]);
    screen.until("[2] SQLite");
    screen.press(&["2"]);
    assert_eq!(asks.line().as_deref(), Some("SQLite"));
    // The hooks of this test made its process the agent, so `db` is one of its workers.
    screen.until("Answered. claude-01234567 reads it.");
    // This test has no terminal, and was told of as a script.
    environment.run(&["read", "--all"]);

    // Read, taken back, removed, taken back.
    hook(&environment, "Stop", &json!({ "last_assistant_message": "All 214 tests pass." }));
    screen.until("All 214 tests pass.");
    let unread = || environment.list(&["--unread"]).len();
    until("unread", || unread() == 1);
    screen.press(&["n", "r"]);
    until("it is read", || unread() == 0);
    screen.press(&["U"]);
    until("it is unread again", || unread() == 1);
    screen.until("1 unread again");
    screen.press(&["A"]);
    screen.until("Remove all notifications");
    screen.press(&["y"]);
    screen.until_not("RECENT");
    screen.press(&["U"]);
    screen.until("back on the list");
    // Notifications return one by one, and `n` goes to an unread one.
    screen.until("●");

    // Put off, and brought back; muted, and taken back.
    screen.press(&["n", "s"]);
    screen.until("[2] 20 minutes");
    screen.press(&["2"]);
    screen.until("back in 1");
    until("it is read", || unread() == 0);
    screen.press(&["u"]);
    until("it is back", || unread() == 1);
    screen.press(&["m"]);
    screen.until("[1] 1 hour");
    screen.press(&["1"]);
    screen.until("muted: claude-01234567 (");
    screen.press(&["U"]);
    screen.until_not("muted: ");

    // Filter, explanation, keys.
    screen.press(&["/", "214"]);
    screen.until_not("Which one?");
    screen.press(&["Escape"]);
    screen.until("Which one?");
    screen.press(&["n", "w"]);
    screen.until("sent ");
    screen.leave("sent ");
    screen.press(&["?"]);
    screen.until("answer in place");
    screen.leave("answer in place");

    // The page of the agent, while it works on.
    environment.notify(&["--from", "ci", "--to", "claude-01234567", "main is red"]);
    screen.press(&["n", "o"]);
    screen.until("Waits to enter its turn");
    let prompt = json!({ "prompt": "go on" });
    hook(&environment, "UserPromptSubmit", &prompt);
    screen.until("Entered its turns");
    screen.leave("Entered its turns");
    // What it said before is over since. There is room to say how.
    tmux.tell(&["resize-window", "-t", &screen.pane, "-x", "120", "-y", "30"]);
    for words in ["answered by prompt\n", "answered\n"] {
        screen.until(words);
    }
    screen.press(&["q"]);
    until("it has ended", || !screen.is_open());
}

#[test]
fn an_answer_is_written_in_the_editor() {
    let environment = HubEnvironment::new();
    let asks = Background::start(environment.ringer(&["ask", "--wait", "--from", "db", "Which one?"]));
    let editor = environment.base.path().join("my editor");
    let script = "#!/bin/sh\necho 'the editor has it' && read -r line\nprintf '%s the\\nother one\\n' \"$(cat \"$2\")\" > \"$2\"\n";
    fs::write(&editor, script).expect("a file");
    fs::set_permissions(&editor, Permissions::from_mode(0o700)).expect("its mode");
    let tmux = Tmux::start(&environment, "");
    let variables = format!("VISUAL=\"'{}' --wait\" EDITOR=false", editor.display());
    let screen = Screen::open_with(&tmux, &variables);
    screen.until("Which one?");
    screen.press(&["a"]);
    screen.until("enter send");
    screen.press(&["not", "C-g"]);
    screen.until("the editor has it");
    screen.press(&["Enter"]);
    screen.until("> not the other one");
    screen.press(&["Enter"]);
    assert_eq!(asks.line().as_deref(), Some("not the other one"));
    let left = fs::read_dir(environment.base.home()).expect("a home").flatten();
    let left: Vec<_> =
        left.filter(|file| file.file_name().to_string_lossy().starts_with("answer-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn it_goes_on_with_the_next_hub_and_fits_every_size() {
    let environment = HubEnvironment::new();
    environment.notify(&["--from", "ci", "before"]);
    let tmux = Tmux::start(&environment, "");
    let screen = Screen::open(&tmux);
    screen.until("before");
    kill(environment.hub());
    screen.press(&["j"]);
    environment.notify(&["--from", "ci", "after"]);
    screen.until("after");
    for (columns, lines) in [("40", "10"), ("20", "5"), ("200", "50"), ("80", "24")] {
        tmux.tell(&["resize-window", "-t", &screen.pane, "-x", columns, "-y", lines]);
        screen.until("ringer");
        if columns == "40" {
            // Where it is narrow, a row has two lines.
            screen.until("\n     after\n");
        }
    }
    screen.until("after");
    // The first key after that is not lost.
    screen.press(&["q"]);
    until("it has ended", || !screen.is_open());
}

#[test]
fn where_no_client_is_attached_it_says_how_to_go_there() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let format = "#{pid} #{socket_path} #{pane_id}";
    let place = tmux.tell(&["new-window", "-d", "-P", "-F", format, "sleep 1000"]);
    let place: Vec<&str> = place.split(' ').collect();
    let mut notify = environment.ringer(&["notify", "--kind", "waiting", "look here"]);
    notify.env("TMUX", format!("{},{},0", place[1], place[0])).env("TMUX_PANE", place[2]);
    crate::ringer::check(notify.env("TERM", "tmux-256color"), 0);
    let screen = Screen::open(&tmux);
    screen.until("look here");
    screen.press(&["Enter"]);
    screen.until("Cannot go there");
    screen.until("attach -t main");
    assert_eq!(environment.list(&["--unread"]).len(), 1, "it stays unread");
}

#[test]
fn it_ends_with_its_terminal() {
    let environment = HubEnvironment::new();
    environment.notify(&["--from", "ci", "before"]);
    for keys in [&[][..], &["a", "b", "c"]] {
        let tmux = Tmux::start(&environment, "");
        let screen = Screen::open(&tmux);
        screen.until("before");
        let pid = tmux.tell(&["display-message", "-p", "-t", &screen.pane, "#{pane_pid}"]);
        let pid: u32 = pid.parse().expect("a number");
        assert!(runs(pid));
        screen.press(keys);
        drop(screen);
        drop(tmux);
        until("it has ended", || !runs(pid));
    }
}
