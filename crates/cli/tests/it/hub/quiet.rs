//! `ringer snooze`, `mute` and `dnd`, with popups on a real notification server.

use serde_json::json;
use test_support::ServerCall;

use super::environment::{HubEnvironment, kill};
use super::looking::Desktop;
use crate::ringer::check;

#[test]
fn a_snoozed_notification_loses_its_popup_and_pops_up_again_later() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "the build is broken");
    let said = environment.run(&["snooze", "last", "1h"]);
    assert!(said.contains(" snoozed until ") && said.ends_with(": the build is broken\n"), "{said}");
    let ServerCall::Close(_) = desktop.server.next_call() else { panic!("its popup is withdrawn") };
    let row = desktop.row("the build is broken");
    assert_eq!((&row["is_read"], &row["is_open"]), (&json!(true), &json!(true)));
    assert!(row["snoozed_until"].is_string(), "{row}");
    assert!(environment.run(&["list"]).contains("snoozed until"), "the list says so");
    assert!(environment.run(&["status"]).starts_with("Nothing needs you."), "until then");
    // Sooner, now that all that has been seen.
    environment.run(&["snooze", "last", "1s"]);
    assert_eq!(desktop.popup(), "the build is broken");
    let row = desktop.row("the build is broken");
    assert_eq!((&row["is_read"], row.get("snoozed_until")), (&json!(false), None));
    let why = desktop.why(&row);
    assert!(why.contains("snoozed by you for 60m") && why.contains("came back"), "{why}");
}

#[test]
fn another_hub_brings_it_back_and_what_was_read_meanwhile_stays_read() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "one");
    desktop.check_pops_up("ws:b", "two");
    let ids = ["one", "two"].map(|body| desktop.row_id(body));
    for id in &ids {
        environment.run(&["snooze", id, "2s"]);
    }
    kill(environment.settled_hub());
    check(environment.ringer(&["read", &ids[1]]).env("RINGER_HUB", "off"), 0);
    desktop.start_hub();
    let popup = std::iter::repeat_with(|| desktop.server.next_call()).find_map(|call| match call {
        ServerCall::Notify(popup) => Some(popup.body),
        ServerCall::Close(_) => None,
    });
    assert_eq!(popup.as_deref(), Some("one"));
    assert_eq!(environment.bodies(&["--unread"]), ["one"]);
}

#[test]
fn what_is_over_cannot_be_snoozed_and_a_wrong_time_shows_examples() {
    let environment = HubEnvironment::new();
    let id = environment.notify(&["done"]);
    for wrong in
        [&["snooze"][..], &["snooze", "soon"], &["snooze", &id, "7x"], &["snooze", &id, "until", "25:00"]]
    {
        let complaint = environment.fails(wrong, 64);
        assert!(complaint.contains("18:00, until 6pm, tonight, tomorrow"), "{complaint}");
    }
    environment.fails(&["snooze", "bcdf", "20m"], 65);
    environment.run(&["read", &id]);
    let off = |arguments: &[&str], exit: i32| {
        let mut command = environment.ringer(arguments);
        check(command.env("RINGER_HUB", "off"), exit)
    };
    let complaint = environment.fails(&["snooze", &id, "until", "18:00"], 65);
    assert!(
        complaint.contains("is over") && complaint.contains("hint: ringer   # shows what needs you"),
        "{complaint}"
    );
    assert_eq!(environment.run(&["snooze", "20m"]), "No unread notifications.\n");
    environment.run(&["hub", "stop"]);
    assert!(off(&["snooze", &id, "20m"], 65).1.contains("is over"), "the same without a hub");
    off(&["notify", "later"], 0);
    assert!(off(&["snooze", "tomorrow"], 0).0.contains("09:00: later"), "the most urgent unread one");
    assert_eq!(environment.bodies(&["--unread"]), [] as [&str; 0], "the next hub does it");
    assert!(
        environment.list(&[])[0]["snoozed_until"].as_str().is_some_and(|until| until.contains("T09:00:00"))
    );
}

#[test]
fn a_muted_agent_is_listed_and_pops_up_nowhere_until_the_mute_is_taken_back() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "before");
    assert_eq!(environment.run(&["mute", "ci", "1h"]), "muted: ci (60m left)\n");
    assert_eq!(
        environment.run(&["mute", "--here"]),
        "muted: ci (60m left), this repository (until you end it)\n"
    );
    assert_eq!(environment.run(&["mute", "--off", "--here"]), "muted: ci (60m left)\n");
    kill(environment.settled_hub());
    desktop.start_hub();
    let quiet =
        |text: &str| check(&mut desktop.on("ws:b", &["notify", "--from", "ci", "--kind", "error", text]), 0);
    quiet("broken");
    desktop.check_pops_up("ws:c", "of another agent");
    let row = desktop.row("broken");
    assert_eq!(row["is_read"], false, "{row}");
    let why = desktop.why(&row);
    assert!(
        why.contains("you muted ci: no popup") && why.contains("channels: none (listed as unread)"),
        "{why}"
    );
    assert!(environment.run(&["status"]).contains("\nmuted: ci (60m left)\n"), "status says so");
    assert!(environment.run(&[] as &[&str]).contains("muted: ci"), "so does `ringer`");
    let mutes = environment.json(&["mute", "--list", "--json"]);
    assert_eq!(
        (&mutes[0]["agent"], &mutes[0]["all"], &mutes[1]),
        (&json!("ci"), &json!(false), &json!(null))
    );
    assert_eq!(environment.run(&["undo"]), "the last change of what is muted was taken back\n");
    assert!(environment.run(&["mute", "--list"]).contains("this repository"), "the mute that was ended");
    environment.run(&["undo"]);
    environment.run(&["undo"]);
    assert_eq!(environment.run(&["mute", "--list"]), "Nothing is muted.\n");
    quiet("broken again");
    assert_eq!(desktop.popup(), "broken again");
}

#[test]
fn do_not_disturb_lets_the_allowed_kinds_through_and_ends_by_itself() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "before");
    let said = environment.run(&["dnd", "until", "18:00", "--allow", "question,permission"]);
    assert!(said.starts_with("muted: everything except question, permission ("), "{said}");
    desktop.notify("ws:b", "an error");
    check(&mut desktop.on("ws:c", &["notify", "--kind", "question", "which?"]), 0);
    assert_eq!(desktop.popup(), "which?");
    assert_eq!(environment.run(&["dnd", "1h"]).matches("everything").count(), 1, "it replaces the other");
    environment.run(&["dnd", "1s"]);
    test_support::until("it has ended", || environment.run(&["mute", "--list"]) == "Nothing is muted.\n");
    desktop.check_pops_up("ws:b", "after");
    environment.run(&["dnd"]);
    assert_eq!(environment.run(&["dnd", "off"]), "Nothing is muted.\n");
}

#[test]
fn a_mute_without_a_hub_holds_when_the_next_one_starts_and_wrong_ones_are_refused() {
    let environment = HubEnvironment::new();
    let off = |arguments: &[&str]| check(environment.ringer(arguments).env("RINGER_HUB", "off"), 0).0;
    assert_eq!(off(&["mute", "ci", "2h"]), "muted: ci (2h left)\n");
    assert_eq!(off(&["mute", "--list"]), "muted: ci (2h left)\n");
    assert!(off(&["status"]).contains("muted: ci (2h left)\n"));
    let id = environment.notify(&["--from", "ci", "--kind", "error", "broken"]);
    test_support::until("it is decided", || environment.run(&["why", &id]).contains("you muted ci"));
    for wrong in
        [&["mute"][..], &["mute", "1h"], &["mute", "until", "18:00"], &["mute", "ci", "7x"], &["dnd", "soon"]]
    {
        let complaint = environment.fails(wrong, 64);
        assert!(complaint.contains("18:00, until 6pm, tonight, tomorrow"), "{wrong:?}: {complaint}");
    }
    environment.fails(&["mute", "--off", "ci", "1h"], 64);
    let complaint = environment.fails(&["dnd", "--allow", "shouting"], 64);
    assert!(complaint.contains("permission"), "the known kinds: {complaint}");
    environment.run(&["mute", "other", "2h"]);
    assert!(environment.run(&["unmute", "other"]).starts_with("muted: ci ("));
    assert_eq!(environment.run(&["mute", "--off"]), "Nothing is muted.\n");
}
