//! What agents ask, answered with the buttons of popups: from the hook that waits to the notification server and back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{BlockingNotificationServer, NotifyCall, ServerBehaviour, ServerCall, SessionBus, until};

use super::dialogs::{ask, decision, until_hooks_wait};
use super::environment::{HubEnvironment, kill};
use super::person_text::{hook, hook_on};
use crate::background::Background;
use crate::ringer::check;

const SHOW: [&str; 2] = ["default", "Show"];
const ALLOW_DENY_SHOW: [&str; 8] = ["default", "Show", "allow", "Allow", "deny", "Deny", "show", "Show"];
const DENY_SHOW: [&str; 6] = ["default", "Show", "deny", "Deny", "show", "Show"];

/// A hub with a notification server, and an agent in a turn.
struct Desk {
    environment: HubEnvironment,
    bus: SessionBus,
    server: BlockingNotificationServer,
}

impl Desk {
    fn new() -> Self {
        let bus = SessionBus::start();
        let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
        let environment =
            HubEnvironment::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"desktop\"\n");
        let desk = Self { environment, bus, server };
        desk.start_hub();
        hook(&desk.environment, "SessionStart", &json!({}));
        hook(&desk.environment, "UserPromptSubmit", &json!({}));
        desk
    }

    fn start_hub(&self) {
        let mut start = self.environment.ringer(&["hub", "start"]);
        check(start.env("DBUS_SESSION_BUS_ADDRESS", self.bus.address()), 0);
    }

    /// Asks for a permission. Gives the popup, too.
    #[track_caller]
    fn ask(&self, tool: &str, tool_input: &Value) -> (Background, NotifyCall) {
        (ask(&self.environment, tool, tool_input), self.server.next_popup())
    }

    fn ask_for(&self, command: &str) -> (Background, NotifyCall) {
        self.ask("Bash", &json!({ "command": command }))
    }

    #[track_caller]
    fn until_hooks_wait(&self, count: usize) {
        until_hooks_wait(&self.environment, count);
    }

    /// What the trail of the newest notification says, once it says this.
    #[track_caller]
    fn until_told(&self, words: &str) {
        until(words, || self.environment.run(&["why"]).contains(words));
    }

    /// Waits until the hub has written down that the newest notifications are on the screen.
    #[track_caller]
    fn until_all_are_written_down(&self, count: usize) {
        until("all are written down", || {
            let shown = |row: &Value| self.environment.run(&["why", row["id"].as_str().expect("an id")]);
            let rows = self.environment.list(&["--limit", &count.to_string()]);
            rows.len() == count && rows.iter().all(|row| shown(row).contains("desktop: shown"))
        });
    }

    #[track_caller]
    fn next_close(&self) -> u32 {
        match self.server.next_call() {
            ServerCall::Close(number) => number,
            ServerCall::Notify(popup) => panic!("{popup:?}"),
        }
    }
}

fn ran(command: &str) -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": command } })
}

#[test]
fn allow_on_a_popup_lets_the_waiting_hook_allow() {
    let desk = Desk::new();
    let (waiting, popup) = desk.ask_for("make a && \\\nmake b");
    assert_eq!(popup.actions, ALLOW_DENY_SHOW);
    assert!(popup.summary.ends_with(" · needs permission"), "{}", popup.summary);
    assert_eq!(popup.body, "Bash: make a &amp;&amp; \\\nmake b", "all of it");
    desk.until_hooks_wait(1);
    waiting.until_small();
    let clicked = Instant::now();
    desk.server.report_clicked(1, "allow");
    assert_eq!(decision(waiting)["behavior"], "allow");
    hook(&desk.environment, "PostToolUse", &ran("make a && \\\nmake b"));
    let is_in_time = clicked.elapsed() < Duration::from_millis(1500);
    assert_eq!(desk.next_close(), 1, "the agent went on");
    desk.until_told("answered by person with a button of its popup: allow");
    // On a busy machine the agent may go on later than the hub waits for.
    until("the hub says so", || {
        let log = desk.environment.log();
        log.contains("was answered with its popup") || (!is_in_time && log.contains("not confirmed"))
    });
}

#[test]
fn a_click_on_the_popup_itself_and_a_forged_one_allow_nothing() {
    let desk = Desk::new();
    let (waiting, _) = desk.ask_for("make");
    desk.until_hooks_wait(1);
    BlockingNotificationServer::forge_click(&desk.bus.address(), 1, "allow");
    desk.server.report_clicked(1, "default");
    assert_eq!(desk.next_close(), 1, "shown, so the popup is not needed any more");
    // The person goes on in the terminal: the hook has heard nothing, and says nothing.
    hook(&desk.environment, "UserPromptSubmit", &json!({ "prompt": "no, rather" }));
    assert_eq!(waiting.end().0, Vec::<String>::new());
}

#[test]
fn what_cannot_be_read_in_full_on_a_popup_can_only_be_denied_there() {
    let desk = Desk::new();
    let mut hooks = Vec::new();
    for command in [format!("echo {}", "x".repeat(200)), "a\nb\nc\nd".to_owned(), "ls \u{200b}x".to_owned()] {
        let (waiting, popup) = desk.ask_for(&command);
        assert_eq!(popup.actions, DENY_SHOW, "{command:?}");
        hooks.push(waiting);
    }
    desk.until_hooks_wait(hooks.len());
    // No button of this popup: not even a confused server can allow it.
    desk.server.report_clicked(3, "allow");
    desk.server.report_clicked(3, "deny");
    assert_eq!(decision(hooks.remove(2))["behavior"], "deny");
}

#[test]
fn a_plan_is_approved_with_its_popup_and_the_second_answer_learns_of_the_first() {
    let desk = Desk::new();
    let (waiting, popup) = desk.ask("ExitPlanMode", &json!({ "plan": "1. tidy up\n2. test" }));
    assert_eq!(
        (popup.actions, popup.body.as_str()),
        (ALLOW_DENY_SHOW.map(str::to_owned).to_vec(), "1. tidy up\n2. test")
    );
    desk.until_hooks_wait(1);
    desk.server.report_clicked(1, "allow");
    assert_eq!(decision(waiting), json!({ "behavior": "allow", "updatedInput": {} }));
    desk.server.report_clicked(1, "deny");
    desk.until_told("you pressed Deny on its popup: already answered by you: allow");
}

#[test]
fn what_was_decided_elsewhere_takes_its_popup_away_also_after_a_restart() {
    let desk = Desk::new();
    let environment = &desk.environment;
    let (waiting, _) = desk.ask_for("make a");
    desk.until_hooks_wait(1);
    hook(environment, "PostToolUse", &ran("make a"));
    assert_eq!(desk.next_close(), 1);
    assert_eq!(waiting.end().0, Vec::<String>::new(), "answered in the dialog");
    // Two prompts of one pane are two popups, and the next hub knows both.
    for command in ["make b", "make c"] {
        hook_on(environment, "tmux:s1", "PermissionRequest", &ran(command));
        desk.server.next_popup();
    }
    desk.until_all_are_written_down(2);
    kill(environment.settled_hub());
    desk.start_hub();
    for command in ["make b", "make c"] {
        hook_on(environment, "tmux:s1", "PostToolUse", &ran(command));
    }
    let mut closed = [desk.next_close(), desk.next_close()];
    closed.sort_unstable();
    assert_eq!(closed, [2, 3]);
}

#[test]
fn the_buttons_of_a_popup_answer_after_a_restart_of_the_hub() {
    let desk = Desk::new();
    let long = format!("echo {}", "x".repeat(200));
    let (allowed, _) = desk.ask_for("make a");
    let (denied, popup) = desk.ask_for(&long);
    assert_eq!(popup.actions, DENY_SHOW);
    let asks = ["ask", "--from", "painter", "--wait", "--option", "Red", "--option", "Blue", "Which?"];
    let asking = Background::start(desk.environment.ringer(&asks));
    desk.server.next_popup();
    desk.until_hooks_wait(2);
    desk.until_all_are_written_down(3);
    kill(desk.environment.settled_hub());
    desk.start_hub();
    // It answers when it has subscribed to what the notification server reports.
    desk.environment.connect().call("hub.environment", &json!({}));
    BlockingNotificationServer::forge_click(&desk.bus.address(), 1, "deny");
    desk.server.report_clicked(2, "allow");
    desk.server.report_clicked(1, "allow");
    assert_eq!(decision(allowed)["behavior"], "allow");
    hook(&desk.environment, "PostToolUse", &ran("make a"));
    assert_eq!(desk.next_close(), 1, "the agent went on");
    desk.server.report_clicked(2, "deny");
    assert_eq!(decision(denied)["behavior"], "deny", "there was no button to allow it");
    desk.server.report_clicked(3, "option-2");
    assert_eq!(asking.line().as_deref(), Some("Blue"));
    assert_eq!(desk.next_close(), 3);
}

#[test]
fn an_answer_that_is_not_taken_is_told() {
    let desk = Desk::new();
    // The client does not read what its hook prints, so the hook has ended.
    hook(&desk.environment, "PermissionRequest", &ran("make"));
    assert_eq!(desk.server.next_popup().actions, ALLOW_DENY_SHOW);
    desk.until_told("desktop: shown");
    desk.server.report_clicked(1, "allow");
    desk.until_told("you pressed Allow on its popup: it can only be answered in its own terminal: the hook");
    assert_eq!(desk.next_close(), 1, "as if it had been shown");
    let words = desk.environment.run::<&str>(&[]);
    assert!(words.starts_with("1 needs you\n"), "{words}");
}

#[test]
fn a_question_is_answered_with_the_button_of_an_option() {
    let desk = Desk::new();
    let asks = ["ask", "--from", "painter", "--wait", "--option", "Red", "--option", "Blue", "Which?"];
    let asking = Background::start(desk.environment.ringer(&asks));
    let popup = desk.server.next_popup();
    let buttons = ["option-1", "Red", "option-2", "Blue", "show", "Show"];
    assert_eq!(popup.actions, [&SHOW[..], &buttons].concat());
    assert_eq!(popup.body, "Which? (Red / Blue)");
    desk.server.report_clicked(1, "option-2");
    assert_eq!(asking.line().as_deref(), Some("Blue"));
    assert_eq!(desk.next_close(), 1);

    let question = |options: &[&str]| {
        let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
        json!({ "questions": [{ "question": "Which?", "header": "H", "options": options, "multiSelect": false }] })
    };
    let (waiting, popup) = desk.ask("AskUserQuestion", &question(&["A", "B", "C", "D"]));
    assert_eq!(popup.actions, SHOW, "more than fit");
    hook(&desk.environment, "UserPromptSubmit", &json!({ "prompt": "ask again" }));
    assert_eq!((desk.next_close(), waiting.end().1), (2, Some(0)));
    let (waiting, popup) = desk.ask("AskUserQuestion", &question(&["Red", "Blue"]));
    assert_eq!(popup.actions, [&SHOW[..], &buttons].concat());
    desk.until_hooks_wait(1);
    desk.server.report_clicked(3, "option-1");
    assert_eq!(decision(waiting)["updatedInput"]["answers"]["Which?"], "Red");
}
