//! tmux as a host: rings, badges, what the person looks at; and that all of it goes again.

use std::fs;

use serde_json::Value;
use test_support::until;

use super::environment::{HubEnvironment, kill};
use super::tmux::Tmux;
use super::tmux_client::{TmuxClient, setup, tell_from};

/// Everything that can be set in the server.
fn everything(tmux: &Tmux<'_>) -> Vec<String> {
    let commands: [&[&str]; 11] = [
        &["show-options", "-s"],
        &["show-options", "-g"],
        &["show-options", "-gw"],
        &["show-options", "-w", "-t", "main:0"],
        &["show-options", "-w", "-t", "main:1"],
        &["show-options", "-p", "-t", "%0"],
        &["show-options", "-p", "-t", "%1"],
        &["show-options", "-p", "-t", "%2"],
        &["show-hooks", "-g"],
        &["show-hooks", "-gw"],
        &["list-keys"],
    ];
    commands.iter().map(|command| tmux.tell(command)).collect()
}

/// Two windows, the first one with two panes. No settings but the person's own.
fn start(environment: &HubEnvironment) -> Tmux<'_> {
    let settings = "set -g window-status-format '#I;#W'\nset-hook -g client-attached 'display-message hello'\n\
                    set-hook -g pane-exited 'display-message \"#{hook_pane} ; gone\"'\nset -g pane-border-style fg=green\n\
                    set -g pane-border-format '#{pane_index} \"#{pane_title}\"'\nset-hook -ag alert-bell 'display-message b'\n\
                    bind-key r display-message mine\n";
    let tmux = Tmux::start(environment, settings);
    tmux.tell(&["split-window", "-t", "main:0", "sleep 1000"]);
    tmux.tell(&["new-window", "-d", "-t", "main", "sleep 1000"]);
    tmux.tell(&["select-pane", "-t", "%0"]);
    tmux.tell(&["set-option", "-w", "-t", "main:0", "pane-border-style", "fg=red"]);
    tmux
}

#[test]
fn a_pane_rings_until_the_person_goes_there_and_everything_is_as_before_after_removal() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    let before = everything(&tmux);
    setup(&environment, &[]);
    let configuration = environment.base.path().join(".tmux.conf");
    assert!(fs::read_to_string(&configuration).expect("a file").contains("hub tmux"));
    assert!(
        tmux.tell(&["list-keys", "-T", "prefix", "r"]).ends_with("display-message mine"),
        "it is the person's"
    );
    let mut client = TmuxClient::attach(&tmux);
    until("a client", || !tmux.tell(&["list-clients"]).is_empty());
    client.set_focus(false);
    let option = |target: &str, name: &str| tmux.tell(&["show-options", "-wqv", "-t", target, name]);
    let ring = |pane: &str| tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"]);
    let list = || environment.list(&["--unread"]).len();

    // The person is not there.
    let has_host = || environment.connect().call("surface.list", &Value::Null).to_string().contains("main:1");
    until("a host", has_host);
    tell_from(&environment, &tmux, "%1", "done here");
    until("a ring", || ring("%1") == "1");
    until("a badge", || {
        tmux.tell(&["display-message", "-p", "-t", "main:0", "#{T:window-status-format}"]).contains("+1")
    });
    assert_eq!(ring("%0"), "");
    let style = tmux.tell(&["display-message", "-p", "-t", "%1", "#{E:pane-border-style}"]);
    assert_eq!(style, "fg=blue,bold");
    assert_eq!(tmux.tell(&["display-message", "-p", "-t", "%0", "#{E:pane-border-style}"]), "fg=red");

    // They come back, to another pane; then they go there.
    client.set_focus(true);
    tmux.tell(&["wait-for", "-S", "ringer-look"]);
    assert_eq!(list(), 1);
    tmux.tell(&["select-pane", "-t", "%1"]);
    until("no ring", || ring("%1").is_empty() && list() == 0);
    until("their border", || option("main:0", "@ringer_border").is_empty());
    assert_eq!(tmux.tell(&["show-options", "-wv", "-t", "main:0", "pane-border-style"]), "fg=red");

    // What comes where they look is read; a window with one pane has a badge.
    tell_from(&environment, &tmux, "%1", "seen");
    tell_from(&environment, &tmux, "%2", "elsewhere");
    until("a ring and a badge", || ring("%2") == "1" && !option("main:1", "@ringer_badge").is_empty());
    assert_eq!(list(), 1);
    setup(&environment, &["--remove"]);
    drop(client);
    assert!(!configuration.exists());
    // A mark in a title is there without the setup, too, and goes when nothing is unread.
    environment.run(&["read", "--all"]);
    let marks = || ["%0", "%1", "%2"].map(|pane| tmux.tell(&["show-options", "-p", "-t", pane])).concat();
    until("no marks", || marks().is_empty());
    for (after, before) in everything(&tmux).iter().zip(&before) {
        assert_eq!(after, before);
    }
}

#[test]
fn a_new_hub_goes_on_where_the_last_one_was_killed() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    setup(&environment, &[]);
    tell_from(&environment, &tmux, "%1", "one");
    let ring = |pane: &str| tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"]);
    until("a ring", || ring("%1") == "1");
    kill(environment.hub());
    // Read while no hub runs; the next one takes the ring away.
    environment.run(&["read", "--all"]);
    environment.run(&["hub", "start"]);
    until("no ring", || ring("%1").is_empty());
    until("their border", || {
        tmux.tell(&["show-options", "-wv", "-t", "main:0", "pane-border-style"]) == "fg=red"
    });
    tell_from(&environment, &tmux, "%0", "two");
    until("a ring", || ring("%0") == "1");
}

#[test]
fn a_bell_and_a_title_of_a_pane_are_heard() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    setup(&environment, &[]);
    let surfaces = || environment.connect().call("surface.list", &Value::Null).to_string();
    until("a host", || surfaces().contains("main:1"));
    // In a window with two panes tmux does not say which one it was.
    tmux.tell(&["respawn-pane", "-k", "-t", "%1", "printf '\\a'; sleep 1000"]);
    tmux.tell(&["respawn-pane", "-k", "-t", "%2", "printf '\\033]2;a title\\007\\a'; sleep 1000"]);
    until("a title", || surfaces().contains("a title"));
    let ring = |pane: &str| tmux.tell(&["show-options", "-pqv", "-t", pane, "@ringer_ring"]);
    until("a ring", || ring("%2") == "1");
    assert_eq!(environment.bodies(&[]), ["the terminal bell rang"]);
    // What the hub does about it may ring the bell again. The title comes well after it.
    let again = "printf '\\a'; sleep 0.5; printf '\\033]2;more\\007'; sleep 1000";
    tmux.tell(&["respawn-pane", "-k", "-t", "%2", again]);
    until("a title", || surfaces().contains("more"));
    assert_eq!(environment.bodies(&[]).len(), 1);
}

#[test]
fn activity_that_tmux_monitors_counts_until_the_person_looks() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    setup(&environment, &[]);
    let surfaces = || environment.connect().call("surface.list", &Value::Null).to_string();
    until("a host", || surfaces().contains("main:1"));
    let mut client = TmuxClient::attach(&tmux);
    until("a client", || !tmux.tell(&["list-clients"]).is_empty());
    client.set_focus(true);
    let unread = || {
        let workspaces = environment.connect().call("workspace.list", &Value::Null);
        let rows = workspaces["result"].as_array().expect("rows").clone();
        rows.iter().filter_map(|row| row["unread"].as_u64()).sum::<u64>()
    };
    tmux.tell(&["set-option", "-g", "monitor-activity", "on"]);
    tmux.tell(&["respawn-pane", "-k", "-t", "%2", "echo output; sleep 1000"]);
    until("it counts", || unread() == 1);
    assert!(environment.bodies(&[]).is_empty(), "it is no notification");
    tmux.tell(&["select-window", "-t", "main:1"]);
    until("it was looked at", || unread() == 0);
}

#[test]
fn a_window_with_one_pane_shows_its_ring_as_the_person_chose_and_is_as_before_after_it() {
    let settings = |one_pane: &str| {
        format!("[notify]\nrate_limit = \"off\"\npopup = \"off\"\n[tmux]\none_pane = \"{one_pane}\"\n")
    };
    let environment = HubEnvironment::with_settings(&settings("tint"));
    let tmux = start(&environment);
    tmux.tell(&["set-option", "-w", "-t", "main:1", "window-style", "fg=white,bg=#101010"]);
    let before = everything(&tmux);
    setup(&environment, &[]);
    let option = |name: &str| tmux.tell(&["show-options", "-wqv", "-t", "main:1", name]);
    let height = || tmux.tell(&["display-message", "-p", "-t", "%2", "#{pane_height}"]);
    let full = height();

    tell_from(&environment, &tmux, "%2", "one");
    until("a tint", || option("window-style") == "fg=white,bg=#101010,bg=colour17");
    assert_eq!(option("window-active-style"), "default,bg=colour17");
    environment.run(&["read", "--all"]);
    until("their style", || option("window-style") == "fg=white,bg=#101010");
    until("no style", || option("window-active-style").is_empty());

    environment.set(&settings("border"));
    environment.run(&["hub", "stop"]);
    setup(&environment, &[]);
    tell_from(&environment, &tmux, "%2", "two");
    until("a line", || option("pane-border-status") == "top");
    assert_ne!(height(), full);
    let style = || tmux.tell(&["display-message", "-p", "-t", "%2", "#{E:pane-border-style}"]);
    until("a ring", || style() == "fg=blue,bold");
    // It becomes a window with a border.
    tmux.tell(&["split-window", "-d", "-t", "%2", "sleep 1000"]);
    until("no line", || option("pane-border-status").is_empty());
    until("a ring", || style() == "fg=blue,bold");
    tmux.tell(&["kill-pane", "-t", "%3"]);
    until("a line", || option("pane-border-status") == "top");

    setup(&environment, &["--remove"]);
    environment.run(&["read", "--all"]);
    until("no marks", || tmux.tell(&["show-options", "-p", "-t", "%2"]).is_empty());
    for (after, before) in everything(&tmux).iter().zip(&before) {
        assert_eq!(after, before);
    }
    assert_eq!(height(), full);
}

#[test]
fn what_hooks_note_while_no_hub_runs_has_a_bound() {
    let environment = HubEnvironment::new();
    let tmux = start(&environment);
    setup(&environment, &[]);
    environment.run(&["hub", "stop"]);
    let noted = || tmux.tell(&["show-options", "-gqv", "@ringer_bell"]).len();
    for _ in 0..600 {
        tmux.tell(&["set-hook", "-R", "-t", "main:1", "alert-bell"]);
        if noted() > 900 {
            break;
        }
    }
    for _ in 0..50 {
        tmux.tell(&["set-hook", "-R", "-t", "main:1", "alert-bell"]);
    }
    assert!((900..=1010).contains(&noted()), "{}", noted());
}
