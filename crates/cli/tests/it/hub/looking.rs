//! What the person looks at, as a host on the socket tells it, and what then pops up on a real notification server.

use std::cell::Cell;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use ringer_journal::IdSource;
use serde_json::{Value, json};
use test_support::{BlockingNotificationServer, ServerBehaviour, ServerCall, SessionBus, until};

use super::environment::{HubEnvironment, Socket, kill};
use super::person_text::hook_on;
use crate::ringer::{check, json as read_json};

/// A hub whose popups go to a server that records them.
pub(super) struct Desktop {
    pub(super) environment: HubEnvironment,
    pub(super) server: BlockingNotificationServer,
    bus: SessionBus,
    /// Whether the popup of an announcement was shown, which closes when a newer one takes its place.
    is_announced: Cell<bool>,
}

impl Desktop {
    pub(super) fn new(settings: &str) -> Self {
        let bus = SessionBus::start();
        let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
        let environment =
            HubEnvironment::with_settings(&format!("[notify]\nrate_limit = \"off\"\n{settings}"));
        Self { environment, server, bus, is_announced: Cell::default() }
    }

    /// A program whose hub shows popups on this desktop.
    #[cfg(target_os = "linux")]
    pub(super) fn program(&self, program: &str) -> Command {
        let mut command = self.environment.program(program);
        command.env("DBUS_SESSION_BUS_ADDRESS", self.bus.address());
        command
    }

    /// A command in a pane.
    pub(super) fn on(&self, pane: &str, arguments: &[&str]) -> Command {
        let mut command = self.environment.ringer(arguments);
        command.env("RINGER_SURFACE", pane).env("DBUS_SESSION_BUS_ADDRESS", self.bus.address());
        command
    }

    #[track_caller]
    pub(super) fn notify(&self, pane: &str, text: &str) -> String {
        let sent = check(&mut self.on(pane, &["notify", "--kind", "error", "--json", text]), 0).0;
        read_json(&sent)["id"].as_str().expect("an id").to_owned()
    }

    /// The text of the next popup.
    #[track_caller]
    pub(super) fn popup(&self) -> String {
        loop {
            match self.server.next_call() {
                // What this test mutes without a terminal is announced.
                ServerCall::Notify(popup) if popup.body.starts_with("A script of yours") => {
                    self.is_announced.set(true);
                }
                ServerCall::Notify(popup) => return popup.body,
                ServerCall::Close(_) if self.is_announced.get() => {}
                ServerCall::Close(number) => panic!("popup {number} was closed"),
            }
        }
    }

    /// The next popup is that of this message in this pane, so those before it made none.
    #[track_caller]
    pub(super) fn check_pops_up(&self, pane: &str, text: &str) {
        self.notify(pane, text);
        assert_eq!(self.popup(), text);
    }

    pub(super) fn row(&self, body: &str) -> Value {
        let rows = self.environment.list(&[]);
        rows.into_iter().find(|row| row["body"] == body).expect("it is listed")
    }

    pub(super) fn row_id(&self, body: &str) -> String {
        self.row(body)["id"].as_str().expect("an id").to_owned()
    }

    /// A hub that shows popups on this desktop.
    #[track_caller]
    pub(super) fn start_hub(&self) {
        check(&mut self.on("ws:a", &["hub", "start"]), 0);
    }

    /// The notification of this kind, once it is listed.
    #[track_caller]
    fn of_kind(&self, kind: &str) -> Value {
        let mut found = None;
        until("it is listed", || {
            found = self.environment.list(&[]).into_iter().find(|row| row["kind"] == kind);
            found.is_some()
        });
        found.expect("it is listed")
    }

    #[track_caller]
    pub(super) fn why(&self, row: &Value) -> String {
        self.environment.run(&["why", row["id"].as_str().expect("an id")])
    }
}

#[track_caller]
fn tell(host: &mut Socket, method: &str, params: &Value) {
    let answer = host.call(method, params);
    assert_eq!(answer["ok"], true, "{method}: {answer}");
}

/// A host with these panes.
#[track_caller]
pub(super) fn attach(environment: &HubEnvironment, panes: &[&str]) -> Socket {
    let mut host = environment.connect();
    tell(&mut host, "host.attach", &json!({ "name": "scripted" }));
    for pane in panes {
        tell(&mut host, "surface.opened", &json!({ "surface_id": pane, "workspace_id": "w" }));
    }
    host
}

#[track_caller]
pub(super) fn looks(host: &mut Socket, panes: &[&str], present: bool) {
    let view = |pane: &&str| json!({ "client": format!("client on {pane}"), "surface_id": pane });
    let views: Vec<Value> = panes.iter().map(view).collect();
    tell(host, "surface.views", &json!({ "views": views, "present": present }));
}

#[test]
fn nothing_pops_up_where_the_person_looks_until_they_look_away_or_the_host_is_gone() {
    let desktop = Desktop::new("");
    desktop.check_pops_up("ws:a", "popup 1");
    let environment = &desktop.environment;
    let mut host = attach(environment, &["ws:a", "ws:b", "ws:c"]);
    looks(&mut host, &["ws:a", "ws:b"], true);
    let ServerCall::Close(_) = desktop.server.next_call() else { panic!("looking takes the popup away") };
    assert_eq!(desktop.row("popup 1")["is_read"], true);
    for pane in ["ws:a", "ws:b"] {
        desktop.notify(pane, &format!("seen in {pane}"));
    }
    desktop.check_pops_up("ws:c", "popup 2");
    for body in ["seen in ws:a", "seen in ws:b"] {
        let row = desktop.row(body);
        assert_eq!((&row["is_read"], &row["workspace"]), (&json!(true), &json!("w")), "{row}");
        let why = desktop.why(&row);
        assert!(why.contains("you are looking at it") && why.contains("channels: none"), "{why}");
    }
    // The person goes, and the host says so.
    looks(&mut host, &["ws:a"], false);
    desktop.check_pops_up("ws:a", "popup 3");
    looks(&mut host, &["ws:a"], true);
    let ServerCall::Close(_) = desktop.server.next_call() else { panic!("they are back and see it") };
    desktop.notify("ws:a", "seen again");
    assert_eq!(desktop.row("seen again")["is_read"], true, "before the host is gone");
    drop(host);
    until("the host is gone", || {
        let surfaces = environment.connect().call("surface.list", &json!({}))["result"].clone();
        surfaces.as_array().is_some_and(Vec::is_empty)
    });
    desktop.check_pops_up("ws:a", "popup 4");
}

#[test]
fn a_program_chooses_its_icon_and_may_ask_to_be_shown_only_unseen() {
    let desktop = Desktop::new("");
    check(&mut desktop.on("ws:a", &["hub", "start"]), 0);
    let mut host = attach(&desktop.environment, &["ws:a", "ws:b"]);
    looks(&mut host, &["ws:a"], true);
    let heard = |surface: &str, body: &str| json!({ "surface_id": surface, "body": body, "unless_seen": true, "icon": "warning" });
    tell(&mut host, "surface.heard", &heard("ws:a", "seen"));
    tell(&mut host, "surface.heard", &heard("ws:b", "not seen"));
    let popup = loop {
        if let ServerCall::Notify(popup) = desktop.server.next_call() {
            break popup;
        }
    };
    assert_eq!((popup.body.as_str(), popup.icon.as_str()), ("not seen", "dialog-warning"));
    assert_eq!(desktop.environment.bodies(&["--all"]), ["not seen"]);
}

#[test]
fn a_host_says_what_is_unread_without_a_notification() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut host = attach(&environment, &["ws:a", "ws:b"]);
    let badge = || {
        let rows = environment.connect().call("workspace.list", &json!({}))["result"].clone();
        let rows = rows.as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["id"] == "w").map_or(json!(0), |row| row["unread"].clone())
    };
    tell(&mut host, "surface.unread", &json!({ "surface_id": "ws:a" }));
    tell(&mut host, "surface.unread", &json!({ "surface_id": "ws:a" }));
    assert_eq!(badge(), 1);
    tell(&mut host, "surface.unread", &json!({ "surface_id": "ws:b", "restored": true }));
    assert_eq!(badge(), 2);
    let refused = host.call("surface.unread", &json!({ "surface_id": "ws:of another" }));
    assert_eq!(refused["error"]["code"], "invalid_params");
    // It lasts, also until the next hub.
    drop(host);
    environment.run(&["hub", "stop"]);
    environment.run(&["hub", "start"]);
    assert_eq!(badge(), 2);
    let mut host = attach(&environment, &["ws:a", "ws:b"]);
    looks(&mut host, &["ws:a"], true);
    assert_eq!(badge(), 1, "the person has seen what happened there");
    tell(&mut host, "surface.unread", &json!({ "surface_id": "ws:a" }));
    assert_eq!(badge(), 1, "they look at it");
    looks(&mut host, &["ws:b"], true);
    assert_eq!(badge(), 0);
}

#[test]
fn a_question_stays_open_when_its_pane_is_looked_at() {
    let desktop = Desktop::new("");
    check(&mut desktop.on("ws:a", &["ask", "Which database?"]), 0);
    assert!(desktop.popup().contains("Which database?"));
    let environment = &desktop.environment;
    let mut host = attach(environment, &["ws:a"]);
    looks(&mut host, &["ws:a"], true);
    let ServerCall::Close(_) = desktop.server.next_call() else { panic!("looking takes the popup away") };
    check(&mut desktop.on("ws:a", &["ask", "Which port?"]), 0);
    let words = environment.run::<&str>(&[]);
    assert!(words.starts_with("2 need you\n"), "{words}");
    let rows = environment.list(&[]);
    assert!(rows.iter().all(|row| row["is_read"] == true && row["is_open"] == true), "{rows:?}");
}

#[test]
fn the_reminder_tells_what_the_end_of_a_short_turn_did_not() {
    let desktop = Desktop::new("idle_reminder = \"300ms\"\n");
    desktop.check_pops_up("ws:x", "popup 5");
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        hook_on(&desktop.environment, "ws:a", name, &json!({ "last_assistant_message": "It compiles." }));
    }
    let popup = desktop.server.next_popup();
    assert!(popup.summary.ends_with("still waiting for you"), "{popup:?}");
    let done = desktop.of_kind("complete");
    assert_eq!(done["is_read"], false, "{done}");
    let why = desktop.why(&done);
    assert!(
        why.contains("no popup or sound: the turn took ") && why.contains("notify.min_turn = \"10s\""),
        "{why}"
    );
}

#[test]
fn a_turn_whose_end_popped_up_has_no_reminder() {
    let desktop = Desktop::new("idle_reminder = \"300ms\"\n");
    desktop.check_pops_up("ws:x", "popup 6");
    // The host says that the person looks elsewhere, so that the length of the turn does not matter.
    let mut host = attach(&desktop.environment, &["ws:a", "ws:b"]);
    looks(&mut host, &["ws:b"], true);
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        hook_on(&desktop.environment, "ws:a", name, &json!({ "last_assistant_message": "It compiles." }));
    }
    let popup = desktop.server.next_popup();
    assert!(popup.summary.ends_with(" · done"), "{popup:?}");
    let idle = desktop.of_kind("idle");
    desktop.check_pops_up("ws:x", "popup 7");
    let why = desktop.why(&idle);
    assert!(why.contains("no popup or sound: the end of that turn had a popup"), "{why}");
}

#[test]
fn what_the_person_saw_for_a_moment_is_read_and_what_comes_later_pops_up() {
    let desktop = Desktop::new("");
    desktop.check_pops_up("ws:a", "popup 1");
    let mut host = attach(&desktop.environment, &["ws:a"]);
    let mut glanced = |at_ms: u64| {
        tell(&mut host, "surface.glanced", &json!({ "surface_id": "ws:a", "at_ms": at_ms }));
    };
    glanced(0);
    assert_eq!(desktop.row("popup 1")["is_read"], false, "it came later");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    glanced(u64::try_from(now.as_millis()).expect("a time"));
    let ServerCall::Close(_) = desktop.server.next_call() else { panic!("they saw it") };
    assert_eq!(desktop.row("popup 1")["is_read"], true);
    desktop.check_pops_up("ws:a", "popup 2");
    assert_eq!(desktop.row("popup 2")["is_read"], false, "they may have gone since");
}

#[test]
fn a_host_that_draws_no_rings_shows_none_while_another_one_does() {
    let desktop = Desktop::new("");
    desktop.start_hub();
    let open = |name: &str, draws_rings: bool| {
        let mut host = desktop.environment.connect();
        tell(&mut host, "host.attach", &json!({ "name": name, "draws_rings": draws_rings }));
        host.send(&json!({ "method": "surface.opened", "params": { "surface_id": "ws:a" } }).to_string());
        host
    };
    let is_lit = |host: &mut Socket| loop {
        let line = host.line().expect("a ring");
        if line["event"] == "ring" {
            return line["data"]["lit"].as_bool().expect("it says it");
        }
    };
    let mut window = open("window", false);
    assert!(!is_lit(&mut window));
    desktop.check_pops_up("ws:a", "rings");
    assert!(is_lit(&mut window));
    let mut inside = open("inside", true);
    assert!(is_lit(&mut inside) && !is_lit(&mut window));
    drop(inside);
    assert!(is_lit(&mut window), "it is alone again");
}

#[test]
fn only_a_host_says_what_the_person_looks_at() {
    let environment = HubEnvironment::new();
    environment.notify(&["hello"]);
    environment.settled_hub();
    let mut client = environment.connect();
    let refused = client.call("surface.views", &json!({ "views": [] }));
    assert_eq!(refused["error"]["code"], "invalid_request", "{refused}");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|text| text.contains("host.attach")),
        "{refused}"
    );
}

#[test]
fn what_a_host_said_before_its_end_is_heard() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut host = attach(&environment, &["ws:a"]);
    let heard = |number: usize| {
        let params = json!({ "surface_id": "ws:a", "body": format!("word {number}") });
        json!({ "id": number, "method": "surface.heard", "params": params }).to_string()
    };
    // It reads no answer.
    host.send(&(0..20).map(heard).collect::<Vec<String>>().join("\n"));
    drop(host);
    until("all are listed", || environment.bodies(&["--all", "--limit", "100"]).len() == 20);
}

/// The server of panes may be killed before it hears that the hub has heard it.
#[test]
fn what_a_host_says_again_is_heard_once_and_belongs_where_it_was() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let said = |body: &str, report: &str| json!({ "surface_id": "pane:a", "body": body, "report": report });
    for words in [["one", "two"], ["one, said again", "three"]] {
        let mut host = environment.connect();
        tell(&mut host, "host.attach", &json!({ "name": "panes" }));
        tell(&mut host, "surface.opened", &json!({ "surface_id": "pane:a", "workspace_id": "panes:1" }));
        tell(&mut host, "surface.heard", &said(words[0], "first"));
        tell(&mut host, "surface.heard", &said(words[1], words[1]));
    }
    until("all are listed", || environment.bodies(&["--all"]) == ["three", "two", "one"]);
    for row in environment.list(&["--all"]) {
        assert_eq!(row["workspace"], "panes:1", "{row}");
    }
}

/// The server of panes and the hub may be killed together: the message has the id of the report.
#[test]
fn what_a_host_says_again_to_the_next_hub_is_one_message() {
    let environment = HubEnvironment::new();
    let report = IdSource::now().message_id();
    for (round, words) in ["said", "said again"].iter().enumerate() {
        environment.run(&["hub", "start"]);
        let mut host = environment.connect();
        tell(&mut host, "host.attach", &json!({ "name": "panes" }));
        tell(&mut host, "surface.opened", &json!({ "surface_id": "pane:a", "workspace_id": "panes:1" }));
        let said = json!({ "surface_id": "pane:a", "body": words, "report": report.as_str() });
        tell(&mut host, "surface.heard", &said);
        let other = json!({ "surface_id": "pane:a", "body": format!("other {round}") });
        tell(&mut host, "surface.heard", &other);
        until("both are listed", || environment.bodies(&["--all"]).len() == 2 + round);
        kill(environment.hub());
    }
    environment.run(&["hub", "start"]);
    assert_eq!(environment.bodies(&["--all"]), ["other 1", "other 0", "said"]);
}

/// A bell has no heading of its own, and is in the pane of which it is told.
#[test]
fn the_popup_of_a_bell_says_in_which_pane_it_was() {
    let desktop = Desktop::new("");
    desktop.start_hub();
    let mut host = desktop.environment.connect();
    tell(&mut host, "host.attach", &json!({ "name": "panes" }));
    let pane = json!({ "surface_id": "pane:a", "workspace_id": "panes:1", "place": "api · tests" });
    tell(&mut host, "surface.opened", &pane);
    tell(&mut host, "surface.heard", &json!({ "surface_id": "pane:a", "bell": true }));
    let popup = desktop.server.next_popup();
    assert_eq!((popup.summary.as_str(), popup.body.as_str()), ("api · tests", "the terminal bell rang"));
    let ended = json!({ "surface_id": "pane:a", "title": "tests", "body": "exit status 1", "kind": "error" });
    tell(&mut host, "surface.heard", &ended);
    assert_eq!(desktop.server.next_popup().summary, "tests");
    assert_eq!(desktop.row("exit status 1")["kind"], "error");
    let unknown = json!({ "surface_id": "pane:a", "body": "x", "kind": "surprise" });
    assert_eq!(host.call("surface.heard", &unknown)["error"]["code"], "invalid_params");
}
