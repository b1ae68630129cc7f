//! Servers of tmux that end, begin, stand beside or inside each other; and what the doctor says of them.

use std::fs;

use serde_json::Value;
use test_support::until;

use super::environment::{HubEnvironment, runs};
use super::tmux::Tmux;
use super::tmux_client::{TmuxClient, setup, tell_from};
use crate::ringer::json;

/// Whether the hub is the host of a server.
fn has_host(environment: &HubEnvironment, tmux: &Tmux<'_>) -> bool {
    let server = tmux.tell(&["display-message", "-p", "#{socket_path}:#{pid}"]);
    let surfaces = environment.connect().call("surface.list", &Value::Null);
    let mut surfaces = surfaces["result"].as_array().expect("a list").iter();
    surfaces.any(|row| row["host"] == "tmux" && row["surface"].to_string().contains(&server))
}

fn ring(tmux: &Tmux<'_>, pane: &str) -> String {
    tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"])
}

/// What the doctor says of tmux, for a process in it: the verdict and the words of each row.
fn doctor(environment: &HubEnvironment, tmux: &Tmux<'_>) -> Vec<(String, String)> {
    let mut command = environment.ringer(&["doctor", "--json"]);
    command.env("TMUX_TMPDIR", environment.base.path()).env("HOME", environment.base.path());
    let output = command.env("TMUX", tmux.variable()).env("TMUX_PANE", "%0").output().expect("it runs");
    let report = json(&String::from_utf8_lossy(&output.stdout));
    let rows = report["rows"].as_array().expect("rows").iter().filter(|row| row["part"] == "tmux");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.map(|row| (text(&row["verdict"]), format!("{} {}", text(&row["what"]), text(&row["fix"])))).collect()
}

#[test]
fn the_doctor_says_what_is_missing_in_tmux_and_setup_mends_it() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let check = |verdict: &str, words: &[&str]| {
        let rows = doctor(&environment, &tmux);
        assert_eq!(rows.len(), words.len(), "{rows:?}");
        for ((found, text), word) in rows.iter().zip(words) {
            assert!(found == verdict && text.contains(word), "{rows:?}");
        }
    };
    check("ok", &["not set up in it"]);
    setup(&environment, &[]);
    until("a host", || has_host(&environment, &tmux));
    check("ok", &["Ringer is set up, focus-events on; the hub draws in it"]);

    tmux.tell(&["set-hook", "-g", "client-attached", "display-message mine"]);
    tmux.tell(&["set-option", "-g", "focus-events", "off"]);
    tmux.tell(&["set-option", "-g", "window-status-format", "#W"]);
    let missing = "hooks are missing: client-attached ringer setup tmux   # and give your own hook a place";
    check("warn", &[missing, "no badge in window-status-format ringer setup tmux", "focus-events is off"]);
    setup(&environment, &[]);
    check("ok", &["Ringer is set up"]);
    assert!(tmux.tell(&["show-hooks", "-g", "client-attached"]).contains("display-message mine"));

    // Without it, too, when a terminal is attached.
    tmux.tell(&["set-hook", "-g", "window-linked", "display-message mine"]);
    check("warn", &["hooks are missing: window-linked "]);
    let client = TmuxClient::attach(&tmux);
    let listed = || tmux.tell(&["show-hooks", "-g", "window-linked"]);
    until("both hooks", || listed().contains("mine") && listed().contains("ringer-look"));
    drop(client);

    fs::remove_file(environment.base.path().join(".tmux.conf")).expect("it is there");
    check("warn", &[".tmux.conf does not start Ringer in the next server ringer setup tmux"]);
    setup(&environment, &[]);
    environment.run(&["hub", "stop"]);
    check("ok", &["as soon as it runs"]);
    setup(&environment, &[]);
    until("a host", || has_host(&environment, &tmux));
    // Another home's hub takes it: this one's has nothing to say there.
    tmux.tell(&["set-option", "-g", "@ringer", "/another/home"]);
    check("warn", &["the line in tmux.conf has not set Ringer up in it ringer setup tmux"]);
    setup(&environment, &["--remove"]);
    check("ok", &["not set up in it"]);
}

#[test]
fn a_server_that_was_killed_and_started_again_rings_again() {
    let environment = HubEnvironment::new();
    let configuration = environment.base.path().join(".tmux.conf");
    // Its last line has no end, and neither has it after the removal.
    let own = "set -g status-left 'x'\nset -g @mine 1";
    fs::write(&configuration, own).expect("a file");
    let tmux = Tmux::named(&environment, "ringer", ".tmux.conf");
    setup(&environment, &[]);
    until("a host", || has_host(&environment, &tmux));
    for round in 0..3 {
        tell_from(&environment, &tmux, "%0", &format!("round {round}"));
        until("a ring", || ring(&tmux, "%0") == "1");
        let pid = tmux.tell(&["display-message", "-p", "#{pid}"]).parse().expect("a number");
        tmux.tell(&["kill-server"]);
        // One that does not answer any more may still be there, and would take the next session with it.
        until("it has ended", || !runs(pid));
        // The line in its file sets Ringer up.
        tmux.tell(&["new-session", "-d", "-s", "main", "sleep 1000"]);
        assert_eq!(ring(&tmux, "%0"), "", "it is another pane");
        until("a host", || has_host(&environment, &tmux));
    }
    assert_eq!(tmux.tell(&["show-options", "-gv", "@mine"]), "1");
    setup(&environment, &["--remove"]);
    assert_eq!(fs::read_to_string(&configuration).expect("it is there"), own);
}

#[test]
fn two_servers_ring_each_in_its_own_panes() {
    let environment = HubEnvironment::new();
    let (one, two) = (Tmux::start(&environment, ""), Tmux::named(&environment, "other", "tmux.conf"));
    setup(&environment, &[]);
    for tmux in [&one, &two] {
        until("a host", || has_host(&environment, tmux));
    }
    tell_from(&environment, &one, "%0", "in the first");
    until("a ring", || ring(&one, "%0") == "1");
    assert_eq!(ring(&two, "%0"), "", "it has the same number in another server");
    tell_from(&environment, &two, "%0", "in the second");
    until("a ring", || ring(&two, "%0") == "1");
    // One that ends takes nothing of the other.
    one.tell(&["kill-server"]);
    until("one host is gone", || {
        let surfaces = environment.connect().call("surface.list", &Value::Null);
        let surfaces = surfaces["result"].as_array().expect("a list").clone();
        surfaces.iter().filter(|row| row["host"] == "tmux").count() == 1
    });
    assert_eq!(ring(&two, "%0"), "1");
    environment.run(&["read", "--all"]);
    until("no ring", || ring(&two, "%0").is_empty());
}

#[test]
fn a_server_inside_a_pane_of_another_rings_through_both_and_is_read_through_both() {
    let environment = HubEnvironment::new();
    let outer = Tmux::start(&environment, "");
    let inner = Tmux::named(&environment, "inner", "tmux.conf");
    setup(&environment, &[]);
    for tmux in [&outer, &inner] {
        until("a host", || has_host(&environment, tmux));
    }
    let mut client = TmuxClient::attach(&outer);
    let attach = format!("TMUX= TERM=screen tmux -u -S {} attach -t main", inner.socket());
    outer.tell(&["split-window", "-t", "main:0", &attach]);
    until("a client", || !inner.tell(&["list-clients"]).is_empty());
    until("a client", || !outer.tell(&["list-clients"]).is_empty());
    client.set_focus(true);
    let unread = || environment.list(&["--unread"]).len();
    let focused = |tmux: &Tmux<'_>, expected: bool, name: &str| {
        let flags = || tmux.tell(&["list-clients", "-F", "#{client_flags}"]);
        until("the focus", || flags().split(',').any(|flag| flag == "focused") == expected);
        // The hub has looked since then: it tells of a title before it tells of the focus, so the second one is after both.
        for title in [format!("{name} 1"), format!("{name} 2")] {
            tmux.tell(&["select-pane", "-t", "%0", "-T", &title]);
            let surfaces = || environment.connect().call("surface.list", &Value::Null).to_string();
            until("a look", || surfaces().contains(&title));
        }
    };
    // The pane around it is not the active one: the terminal has the focus, the inner server has not.
    outer.tell(&["select-pane", "-t", "%0"]);
    focused(&inner, false, "elsewhere");
    tell_from(&environment, &inner, "%0", "inside");
    until("a ring", || ring(&inner, "%0") == "1");
    until("a ring around it", || ring(&outer, "%1") == "1");
    assert_eq!((ring(&outer, "%0"), unread()), (String::new(), 1));
    // Going to the pane around it is looking at the one in it.
    outer.tell(&["select-pane", "-t", "%1"]);
    focused(&inner, true, "here");
    until("no ring", || ring(&inner, "%0").is_empty() && ring(&outer, "%1").is_empty() && unread() == 0);
    // Jumping goes to both.
    outer.tell(&["select-pane", "-t", "%0"]);
    focused(&inner, false, "elsewhere again");
    tell_from(&environment, &inner, "%0", "come here");
    until("a ring around it", || ring(&outer, "%1") == "1");
    environment.run(&["jump"]);
    until("the pane around it", || {
        outer.tell(&["display-message", "-p", "-t", "main:0", "#{pane_id}"]) == "%1"
    });
    until("no ring", || ring(&outer, "%1").is_empty() && unread() == 0);
    focused(&inner, true, "jumped");
    // A server that is shown nowhere any more rings by itself alone.
    outer.tell(&["select-pane", "-t", "%0"]);
    focused(&inner, false, "elsewhere at last");
    tell_from(&environment, &inner, "%0", "still here");
    until("a ring around it", || ring(&outer, "%1") == "1");
    inner.tell(&["detach-client", "-s", "main"]);
    until("no ring around it", || ring(&outer, "%1").is_empty());
    assert_eq!((ring(&inner, "%0"), unread()), ("1".to_owned(), 1));
    outer.tell(&["split-window", "-t", "main:0", &attach]);
    until("it is read there", || unread() == 0);
    // Not when the terminal loses the focus.
    client.set_focus(false);
    focused(&inner, false, "away");
    tell_from(&environment, &inner, "%0", "again");
    until("a ring", || ring(&inner, "%0") == "1");
    client.set_focus(true);
    until("no ring", || ring(&inner, "%0").is_empty() && unread() == 0);
}
