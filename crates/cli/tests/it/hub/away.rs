//! `ringer digest`, what is held back while the person is away, and a sound for each kind.

use std::fs;

use serde_json::json;
use test_support::{ServerCall, make_program, until};

use super::environment::HubEnvironment;
use super::looking::{Desktop, attach, looks};
use crate::ringer::check;

#[test]
fn the_digest_is_one_popup_and_a_command() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "before");
    let mut host = attach(environment, &[]);
    looks(&mut host, &[], false);
    for (pane, kind, text) in
        [("ws:b", "complete", "built"), ("ws:c", "question", "which?"), ("ws:d", "status", "half")]
    {
        check(&mut desktop.on(pane, &["notify", "--kind", kind, text]), 0);
    }
    assert_eq!(desktop.popup(), "which?", "only what needs the person pops up");
    let row = desktop.row("built");
    assert_eq!(row["is_read"], false, "{row}");
    assert!(desktop.why(&row).contains("no popup or sound: you are away; it is in the digest"));
    looks(&mut host, &[], true);
    assert_eq!(desktop.popup(), "1 asks, 1 done, 1 status");
    let said = environment.run(&["digest"]);
    let (first, rows) = said.split_once('\n').expect("lines");
    assert!(first.starts_with("since ") && first.ends_with(": 1 asks, 1 done, 1 status"), "{said}");
    assert!(rows.contains("which?") && rows.contains("built") && !rows.contains("before"), "{said}");
    let all = environment.run(&["digest", "--since", "1h"]);
    assert!(all.contains(": 1 asks, 1 failed, 1 done, 1 status\n") && all.contains("before"), "{all}");
    let digest = environment.json(&["digest", "--json"]);
    assert_eq!(digest["counts"], json!({ "question": 1, "complete": 1, "status": 1 }), "{digest}");
    environment.run(&["hub", "stop"]);
    let without = check(environment.ringer(&["digest"]).env("RINGER_HUB", "off"), 0).0;
    assert!(without.starts_with(first) && without.lines().count() == 4, "the same without a hub: {without}");
}

#[test]
fn a_click_on_the_digest_goes_to_what_is_most_urgent() {
    let desktop = Desktop::new("");
    let environment = &desktop.environment;
    desktop.check_pops_up("ws:a", "before");
    let mut host = environment.connect();
    host.call("host.attach", &json!({ "name": "scripted", "can_focus": true }));
    host.call("surface.opened", &json!({ "surfaces": [{ "surface_id": "ws:b" }, { "surface_id": "ws:c" }] }));
    looks(&mut host, &[], false);
    for (pane, kind, text) in [("ws:b", "complete", "built"), ("ws:c", "complete", "tested")] {
        check(&mut desktop.on(pane, &["notify", "--kind", kind, text]), 0);
    }
    environment.run(&["read", &desktop.row_id("before")]);
    let ServerCall::Close(1) = desktop.server.next_call() else { panic!("its popup goes") };
    looks(&mut host, &[], true);
    assert_eq!(desktop.popup(), "2 done");
    // It is the second popup of this desktop.
    desktop.server.report_clicked(2, "default");
    let order = loop {
        let line = host.line().expect("an order");
        if line["event"] == "focus" {
            break line["data"]["surface_id"].clone();
        }
    };
    assert_eq!(order, "ws:b", "the older one of two that are as urgent");
    host.call("surface.focused", &json!({ "surface_id": "ws:b" }));
    until("it is read", || desktop.row("built")["is_read"] == true);
    assert_eq!(desktop.row("tested")["is_read"], false);
}

#[test]
fn a_digest_where_nothing_is_known_is_of_the_last_day() {
    let environment = HubEnvironment::new();
    let off = |arguments: &[&str]| check(environment.ringer(arguments).env("RINGER_HUB", "off"), 0).0;
    assert!(off(&["digest"]).starts_with("Nothing unread since "), "no journal yet");
    off(&["notify", "done"]);
    let said = off(&["digest"]);
    assert!(said.contains(": 1 status\n") && said.contains("  status  done  "), "{said}");
    off(&["read", "--all"]);
    assert!(off(&["digest"]).starts_with("Nothing unread since "), "it was read");
    let complaint = environment.fails(&["digest", "--since", "soon"], 64);
    assert!(
        complaint.contains("2026-02-17") && complaint.contains("hint: ringer digest --since 2h"),
        "{complaint}"
    );
}

#[test]
fn each_kind_has_its_own_sound_or_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    make_program(&at("pw-play"), r#"echo "$1" >> "$(dirname "$0")/heard""#);
    for name in ["ding.wav", "usual.wav"] {
        fs::write(at(name), "").expect("a file");
    }
    let settings = format!(
        "[notify]\npopup = \"off\"\nsound = {}\n[notify.sounds]\nquestion = {}\ncomplete = false\n",
        json!(at("usual.wav")),
        json!(at("ding.wav"))
    );
    let environment = HubEnvironment::with_settings(&settings);
    let path = std::env::var("PATH").expect("a search path");
    let search_path = format!("{}:{path}", directory.path().display());
    let send = |kind: &str, text: &str| {
        check(environment.ringer(&["notify", "--kind", kind, text]).env("PATH", &search_path), 0);
        let mut heard = String::new();
        until("it is decided", || {
            heard = environment.run(&["why"]);
            heard.contains(text) && heard.contains("channels: ")
        });
    };
    send("complete", "silent");
    assert!(environment.run(&["why"]).contains("channels: none"), "it has no sound");
    let heard = |count: usize| {
        let mut lines = Vec::new();
        until("it is heard", || {
            let text = fs::read_to_string(at("heard")).unwrap_or_default();
            lines = text.lines().map(str::to_owned).collect();
            lines.len() == count
        });
        lines
    };
    send("question", "which?");
    assert_eq!(heard(1), [at("ding.wav").display().to_string()]);
    send("error", "broken");
    assert_eq!(heard(2)[1], at("usual.wav").display().to_string());
}
