//! Buttons of the notifications of programs: the person is asked, and the program hears which one was pressed.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::{BlockingNotificationServer, ServerBehaviour, SessionBus, until};

use super::session::Session;
use super::window::Window;
use crate::hub::environment::{HubEnvironment, kill};
use crate::ringer::{check, json};

/// A corner of the border of a pane that rings.
const RINGS: char = '┏';
/// What a program is told when its notification is closed.
const CLOSED: &str = "^[]99;i=n1:p=close;^[\\";

/// What a shell prints to notify with two buttons, and to hear what becomes of it.
fn notifies(body: &str) -> String {
    let parts = [
        "i=n1:d=0:a=report:c=1;Build",
        &format!("i=n1:d=0:p=body;{body}"),
        "i=n1:p=buttons;Again\\342\\200\\250Leave it",
    ];
    format!("printf '{}'", parts.map(|part| format!("\\033]99;{part}\\033\\\\")).concat())
}

/// A window with a shell that has the keys, beside a program that asks, and then does something.
fn asks_beside(session: &Session, then: &str) -> Window {
    let mut window = session.window(&["attach"], 30, 160);
    window.until("$ ");
    window.set_focus(true);
    let asks = notifies("it failed");
    session.open("asks", &format!("stty raw -echo; until [ -e go ]; do sleep 0.02; done; {asks}; {then}"));
    window.press("o");
    until("the hub knows both", || session.surfaces().iter().all(|surface| surface["tty"].is_string()));
    fs::write(session.file("go"), "").expect("a file");
    until("it is asked", || questions(session).len() == 1);
    window
}

fn questions(session: &Session) -> Vec<Value> {
    json(&session.run(&["questions", "--all", "--json"])).as_array().expect("a list").clone()
}

/// Waits until the only question is closed without an answer.
#[track_caller]
fn until_closed(session: &Session) {
    until("it is closed", || open_count(session) == 0);
    assert_eq!(questions(session)[0]["answer"], Value::Null);
}

fn open_count(session: &Session) -> usize {
    json(&session.run(&["questions", "--json"])).as_array().expect("a list").len()
}

#[test]
fn the_program_hears_which_button_was_pressed() {
    let session = Session::new();
    let mut window = asks_beside(&session, "cat -v");
    until("it rings", || window.text().contains(RINGS));
    let question = &questions(&session)[0];
    assert_eq!(question["question"], "Build: it failed");
    assert_eq!(question["options"], serde_json::json!(["Again", "Leave it"]));
    assert_eq!(session.hub.bodies(&["--unread"]), ["Build: it failed (Again / Leave it)"]);
    assert!(!window.text().contains("i=n1"), "{}", window.text());
    session.run(&["answer", question["question_id"].as_str().expect("an id"), "leave it"]);
    window.until(&format!("^[]99;i=n1;2^[\\{CLOSED}"));
    until("it does not ring", || !window.text().contains(RINGS));
    // It asks nothing any more, and hears nothing more.
    window.press("o");
    window.command("");
    window.until("^M");
    assert_eq!(window.text().matches("i=n1").count(), 2, "{}", window.text());
}

#[test]
fn a_popup_has_the_buttons_of_the_program() {
    let bus = SessionBus::start();
    let desktop = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let session = Session { hub: HubEnvironment::with_settings("[notify]\npopup = \"desktop\"\n") };
    check(session.hub.ringer(&["hub", "start"]).env("DBUS_SESSION_BUS_ADDRESS", bus.address()), 0);
    let window = asks_beside(&session, "cat -v");
    let popup = desktop.next_popup();
    assert_eq!(popup.body, "Build: it failed (Again / Leave it)");
    let buttons = ["default", "Show", "option-1", "Again", "option-2", "Leave it", "show", "Show"];
    assert_eq!(popup.actions, buttons);
    desktop.report_clicked(1, "option-2");
    window.until(&format!("^[]99;i=n1;2^[\\{CLOSED}"));
}

#[test]
fn a_question_is_closed_when_the_person_looks_at_its_pane() {
    let session = Session::new();
    let mut window = asks_beside(&session, "cat -v");
    until("it rings", || window.text().contains(RINGS));
    window.press("n");
    until_closed(&session);
    window.until(CLOSED);
    assert_eq!(window.text().matches("i=n1").count(), 1, "{}", window.text());
}

#[test]
fn a_question_is_closed_when_its_program_takes_it_back_replaces_it_or_ends() {
    let close = "printf '\\033]99;i=n1:p=close;\\033\\\\'; cat -v";
    let replace = "printf '\\033]99;i=n1;Build is fine\\033\\\\'; cat -v";
    for then in [close, replace, "exit 3", "exit 0"] {
        let session = Session::new();
        let _window = asks_beside(&session, &format!("until [ -e on ]; do sleep 0.02; done; {then}"));
        assert_eq!(open_count(&session), 1);
        fs::write(session.file("on"), "").expect("a file");
        until_closed(&session);
    }
}

#[test]
fn another_question_under_the_same_id_is_answered_instead() {
    let session = Session::new();
    let again = notifies("it failed again");
    let window = asks_beside(&session, &format!("until [ -e on ]; do sleep 0.02; done; {again}; cat -v"));
    until("it rings", || window.text().contains(RINGS));
    fs::write(session.file("on"), "").expect("a file");
    until("another one is open", || questions(&session).len() == 2 && open_count(&session) == 1);
    let open = questions(&session).into_iter().find(|question| question["answered"].is_null());
    let id = open.expect("an open one")["question_id"].as_str().expect("an id").to_owned();
    session.run(&["answer", &id, "Again"]);
    window.until(&format!("^[]99;i=n1;1^[\\{CLOSED}"));
    assert_eq!(session.hub.bodies(&["--unread"]), [""; 0]);
}

#[test]
fn a_question_is_closed_when_the_server_ends() {
    let session = Session::new();
    let _window = asks_beside(&session, "cat -v");
    let server = Pid::from_raw(session.server().cast_signed()).expect("a process");
    kill_process(server, Signal::TERM).expect("it runs");
    until_closed(&session);
}

/// It cannot close anything, so the next one does. What `ringer ask` has asked stays open.
#[test]
fn a_question_of_a_server_that_is_killed_is_closed_by_the_next_one() {
    let session = Session::new();
    let _window = asks_beside(&session, "cat -v");
    session.run(&["ask", "Deploy now?"]);
    let before = session.server();
    kill(before);
    until("another server", || {
        session.with_words(&["pane-server", "serve"]).iter().any(|pid| *pid != before)
    });
    until("one is open", || open_count(&session) == 1);
    let closed: Vec<Value> =
        questions(&session).into_iter().filter(|own| !own["answered"].is_null()).collect();
    assert_eq!((&closed[0]["question"], &closed[0]["answer"]), (&"Build: it failed".into(), &Value::Null));
}

#[test]
fn more_than_are_asked_at_once_are_notifications_without_buttons() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 30, 160);
    window.until("$ ");
    window.set_focus(true);
    let one = "printf \"\\033]99;i=n$n:d=0:a=report:p=body;number $n\\033\\\\\\\\\\033]99;i=n$n:p=buttons;Yes\\033\\\\\\\\\"";
    let all = format!("n=0; while [ $n -lt 40 ]; do n=$((n+1)); {one}; done");
    session.open("asks", &format!("until [ -e go ]; do sleep 0.02; done; {all}; cat"));
    window.press("o");
    until("the hub knows both", || session.surfaces().iter().all(|surface| surface["tty"].is_string()));
    fs::write(session.file("go"), "").expect("a file");
    until("all are stored", || session.run(&["log", "--everywhere", "--json"]).lines().count() == 40);
    assert_eq!(open_count(&session), 16);
    until("it rings for them", || {
        let unread = session.hub.list(&["--unread", "--limit", "100"]);
        unread.iter().filter(|row| row["kind"] == "question").count() == 16 && window.text().contains(RINGS)
    });
    window.press("n");
    until("all are closed", || open_count(&session) == 0);
}
