//! Hostile text in every field of every command: nothing of it reaches standard output or standard error as it is, because
//! both may be a terminal. kitty 0.26 takes even the UTF-8 form of a C1 control for the start of a sequence.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::environment::HubEnvironment;
use crate::background::Background;
use crate::home::lines;
use crate::ringer::json;

/// Sets the clipboard (OSC 52) and the title (OSC 0) in the 7-bit and the 8-bit form, ends lines where only some readers
/// see an end, turns the reading direction, hides letters, and holds markup of tmux and of desktops.
const TEXT: &str = "x\u{9d}52;c;Z290Y2hh\u{9c}\u{1b}]52;c;Z290Y2hh\u{7}\u{1b}]0;owned\u{7}\u{9d}0;owned\u{9c}\u{9b}2J\u{85}\
                    \u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{7f}\u{e0041}\u{10eeee}\u{ffff}\r\
                    #[fg=red]#(true)#{pid}<b>&amp;";
/// The same without controls, which names refuse.
const NAME: &str =
    "n\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{e0041}\u{10eeee}\u{ffff}#[fg=red]<b>&amp;";

/// What must not be printed, whatever was sent. The joiner may stand inside an emoji, and no emoji is sent here.
fn is_forbidden(character: char) -> bool {
    (character.is_control() && !"\n\t".contains(character))
        || "\u{ad}\u{200b}\u{200d}\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}\u{ffff}\u{e0041}\u{10eeee}"
            .contains(character)
}

#[track_caller]
fn check_safe(what: &[&str], text: &str) {
    let found: Vec<char> = text.chars().filter(|character| is_forbidden(*character)).collect();
    assert!(found.is_empty(), "{what:?} prints {found:?}: {text:?}");
}

/// A environment whose repository, settings, agent and terminal have hostile names.
struct Hostile {
    environment: HubEnvironment,
}

impl Hostile {
    fn new() -> Self {
        // JSON escapes a text for TOML as well, but for DEL.
        let quoted = serde_json::to_string(&TEXT.replace('\u{7f}', "")).expect("a text");
        let environment = HubEnvironment::with_settings(&format!(
            "[notify]\nrate_limit = \"off\"\npopup = \"off\"\ncommand = [{quoted}]\n\
             [[notify.mute]]\nagent = {quoted}\n[[hook]]\nid = \"h\"\ncommand = [{quoted}]\n",
        ));
        let repository = environment.base.make_repository(NAME);
        fs::write(
            repository.join(".ringer.toml"),
            format!("[[hook]]\nid = {quoted}\ncommand = [{quoted}]\n"),
        )
        .expect("a file");
        Self { environment }
    }

    /// Runs a command, whatever comes of it, and checks what it printed.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("it runs");
        for bytes in [&output.stdout, &output.stderr] {
            check_safe(arguments, std::str::from_utf8(bytes).expect("UTF-8"));
        }
        output
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.environment.ringer(arguments);
        command
            .current_dir(self.environment.base.path().join(NAME))
            .env("TERM", TEXT)
            .env("TERM_PROGRAM", TEXT)
            .env("HOME", self.environment.base.path().join(TEXT.replace('/', "")));
        command
    }

    /// Runs a command that has to succeed. Gives what it printed.
    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Waits until a background command has ended. Gives what it printed.
    #[track_caller]
    fn end(background: Background) -> String {
        let (lines, _) = background.end();
        let text = lines.join("\n");
        check_safe(&["in the background"], &text);
        text
    }
}

#[test]
fn a_message_comes_out_as_it_was_and_never_raw() {
    let hostile = Hostile::new();
    let sent = hostile.succeeds(&[
        "notify",
        TEXT,
        "--title",
        TEXT,
        "--subtitle",
        TEXT,
        "--key",
        NAME,
        "--from",
        NAME,
        "--json",
    ]);
    let id = json(&sent)["id"].as_str().expect("an id").to_owned();
    let message = |line: &Value| {
        assert_eq!((&line["msg"], &line["title"], &line["from"]), (&TEXT.into(), &TEXT.into(), &NAME.into()));
        assert_eq!(line["key"], NAME);
    };
    let notification = |row: &Value| {
        assert_eq!((&row["body"], &row["title"], &row["from"]), (&TEXT.into(), &TEXT.into(), &NAME.into()));
        assert_eq!(row["subtitle"], TEXT);
    };
    message(&lines(&hostile.succeeds(&["log", "--json"]))[0]);
    notification(&json(&hostile.succeeds(&["list", "--json"]))[0]);
    notification(&json(&hostile.succeeds(&["list", "--all", "--json"]))[0]);
    let events =
        hostile.succeeds(&["watch", "--after", "0", "--event", "notification.created", "--max", "1"]);
    notification(&lines(&events)[0]["data"]);
    assert_eq!(json(&hostile.succeeds(&["why", &id, "--json"]))["from"], NAME);
    for arguments in
        [&["log"][..], &["list"], &["list", "--all"], &["why", &id], &["status"], &["status", "--json"]]
    {
        hostile.succeeds(arguments);
    }
    // One line each, also for readers that end a line at U+0085 or U+2028.
    assert_eq!(hostile.succeeds(&["list"]).lines().count(), 1);
    message(&lines(&hostile.succeeds(&["listen", "--timeout", "0"]))[0]);
    let jumped = hostile.run(&["jump", &id, "--json"]);
    notification(&json(&String::from_utf8_lossy(&jumped.stdout))["notification"]);
    hostile.run(&["jump", &id]);
}

#[test]
fn a_question_and_its_answer_come_out_as_they_were_and_never_raw() {
    let hostile = Hostile::new();
    let wait = |arguments: &[&str]| {
        let asking = Background::start(
            hostile.command(&[&["ask", "--wait", "--option", TEXT, "--from", NAME], arguments].concat()),
        );
        hostile.environment.base.wait_until("it asks", |status| status["open_questions"] == 1);
        let questions = json(&hostile.succeeds(&["questions", "--everywhere", "--json"]));
        assert_eq!((&questions[0]["question"], &questions[0]["options"][0]), (&TEXT.into(), &TEXT.into()));
        hostile.succeeds(&["questions", "--everywhere"]);
        let id = questions[0]["question_id"].as_str().expect("an id").to_owned();
        let answered = hostile.succeeds(&["acknowledge", &id, TEXT, "--from", NAME, "--json"]);
        assert_eq!(json(&answered)["answer"], TEXT);
        Hostile::end(asking)
    };
    assert_eq!(json(&wait(&[TEXT, "--json"]))["answer"], TEXT);
    let plain = wait(&[TEXT]);
    assert!(
        plain.starts_with("x52;c;") && plain.contains("#[fg=red]"),
        "only what is no text is left out: {plain:?}"
    );
    let all = json(&hostile.succeeds(&["questions", "--all", "--everywhere", "--json"]));
    assert_eq!((&all[0]["answer"], &all[0]["answered_by"]), (&TEXT.into(), &NAME.into()));
    hostile.succeeds(&["questions", "--all", "--everywhere"]);
    hostile.succeeds(&["log", "--everywhere"]);
    hostile.succeeds(&["log", "--everywhere", "--json"]);
}

#[test]
fn every_command_says_what_is_wrong_without_repeating_it_raw() {
    let hostile = Hostile::new();
    hostile.succeeds(&["hub", "start"]);
    let recording = hostile.environment.base.path().join("recording");
    fs::write(
        &recording,
        format!("\x1b]777;notify;{NAME};{NAME}\x07\x1b]2;{NAME}\x07\x1b]8;;{NAME}\x07\x1b]7;{NAME}\x07"),
    )
    .expect("a file");
    let recording = recording.to_str().expect("a path");
    let config = hostile.environment.base.path().join("config.toml");
    let config = config.to_str().expect("a path");
    let object = serde_json::json!({ "text": TEXT, "subject": TEXT, "error": true }).to_string();
    for arguments in [
        &["notify", TEXT, "--from", TEXT][..],
        &["notify", TEXT, "--to", TEXT],
        &["notify", TEXT, "--to", NAME],
        &["notify", TEXT, "--type", TEXT],
        &["notify", TEXT, "--question-id", TEXT],
        &["notify", TEXT, "--ttl", TEXT],
        &["notify", TEXT, "--key", TEXT],
        &["notify", TEXT, TEXT],
        &["ask", TEXT, "--from", TEXT],
        &["ask", TEXT, "--timeout", TEXT],
        &["acknowledge", TEXT, TEXT],
        &["acknowledge", "q-1740000607-a1b2c3", TEXT],
        &["listen", "--as", TEXT, "--timeout", "0"],
        &["listen", "--as", NAME, "--timeout", "0"],
        &["log", "--since", TEXT],
        &["log", "--from", TEXT, "--to", TEXT],
        &["log", "--type", TEXT],
        &["read", TEXT],
        &["read", "--workspace", TEXT, "--surface", TEXT],
        &["unread", TEXT],
        &["clear", TEXT],
        &["jump", TEXT],
        &["why", TEXT],
        &["why", "--agent", TEXT],
        &["watch", "--after", TEXT],
        &["toast", TEXT, "--key", TEXT],
        &["toast", TEXT, "--priority", TEXT],
        &["observe", TEXT, TEXT],
        &["observe", "mcp-connectivity", TEXT],
        &["observe", "mcp-connectivity", &object],
        &["watch", "--after", "0", "--event", "toast", "--max", "1"],
        &["hook", TEXT, TEXT, "{}"],
        &["hook", "claude", TEXT, TEXT],
        &["lead", TEXT],
        &["lead", "on"],
        &["lead", "--json"],
        &["statusline"],
        &["statusline", "--json"],
        &["statusline", TEXT],
        &["status", "--everywhere"],
        &["status", "--everywhere", "--json"],
        &["term", "detect"],
        &["term", "detect", "--json"],
        &["term", "notify", TEXT, "--title", TEXT, "--json"],
        &["term", "notify", TEXT, "--id", TEXT],
        &["term", "notify", TEXT, "--channel", TEXT],
        &["term", "scan", recording],
        &["term", "scan", recording, "--json"],
        &["term", "scan", TEXT],
        &["progress", TEXT],
        &["progress", "error", TEXT],
        &["progress", "42", "--json"],
        &["setup", TEXT, "--dry-run"],
        &["setup", "claude", "--dry-run"],
        &["setup", "claude", "--dry-run", "--json"],
        &["config", "check"],
        &["config", "check", "--json"],
        &["config", "check", TEXT],
        &["config", "check", config],
        &["config", "show"],
        &["config", "show", "--json"],
        &["trust"],
        &["trust", "--yes"],
        &["trust", "--list"],
        &["trust", "--list", "--json"],
        &["trust", TEXT],
        &["trust", "--remove", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["completions", TEXT],
        &["man", "/dev/null/\u{9d}"],
        &["hub", "status", "--json"],
        &["hub", TEXT],
        &[TEXT],
        &[],
        &["nuke"],
        &["nuke", "--yes", "--json"],
    ] {
        hostile.run(arguments);
    }
}
