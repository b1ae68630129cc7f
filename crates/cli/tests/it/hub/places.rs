//! Where a notification happened, as the tables say it: with a real tmux.

use std::time::{Duration, Instant};

use test_support::until;

use super::environment::HubEnvironment;
use super::tmux::Tmux;
use crate::ringer::check;

/// A pane, and a notification out of it that needs the person.
struct Pane<'a> {
    environment: &'a HubEnvironment,
    id: String,
}

impl<'a> Pane<'a> {
    /// In a new window with this number.
    fn open(environment: &'a HubEnvironment, tmux: &Tmux<'_>, window: &str) -> Self {
        let format = "#{pane_id} #{pid} #{socket_path}";
        let opened = tmux.tell(&["new-window", "-d", "-t", window, "-P", "-F", format, "sleep 1000"]);
        let fields: Vec<&str> = opened.splitn(3, ' ').collect();
        notify_from(environment, &format!("{},{},0", fields[2], fields[1]), fields[0]);
        Self { environment, id: fields[0].to_owned() }
    }

    /// Every table has this place, at last: tmux may be late, and then it is the number.
    #[track_caller]
    fn is_shown_as(&self, place: &str) {
        for command in TABLES {
            until(&format!("{command:?} shows {place}"), || {
                row(self.environment, command).ends_with(&format!("  {place}"))
            });
        }
    }
}

/// The hub has taken it when this is over: before, no table knows its place.
fn notify_from(environment: &HubEnvironment, tmux: &str, pane: &str) {
    let mut notify = environment.ringer(&["notify", "--kind", "waiting", "look here"]);
    check(notify.env("TMUX", tmux).env("TMUX_PANE", pane).env("TERM", "tmux-256color"), 0);
    assert_eq!(environment.bodies(&[]), ["look here"]);
}

const TABLES: [&[&str]; 3] = [&[], &["status"], &["list"]];

/// The only row of a table.
#[track_caller]
fn row(environment: &HubEnvironment, command: &[&str]) -> String {
    let table = environment.run(command);
    table.lines().find(|line| line.contains("look here")).expect("a row").to_owned()
}

/// Every table has this number of a pane at the end of its only row, also where tmux is late.
#[track_caller]
fn tables_show_number(environment: &HubEnvironment, number: &str) {
    for command in TABLES {
        let row = row(environment, command);
        assert!(row.ends_with(&format!("  tmux {number}")), "{command:?}: {row:?}");
    }
}

#[test]
fn in_tmux_it_is_the_session_and_the_window_where_the_pane_is_now() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let pane = Pane::open(&environment, &tmux, "main:3");
    pane.is_shown_as("tmux main:3");
    tmux.tell(&["move-window", "-s", "main:3", "-t", "main:7"]);
    pane.is_shown_as("tmux main:7");
    // A name comes from outside: a character that turns the reading direction is no text.
    tmux.tell(&["rename-session", "-t", "main", "a\u{202e} b"]);
    pane.is_shown_as("tmux a b:7");
    tmux.tell(&["rename-session", "-t", "a\u{202e} b", "a-name-longer-than-its-column"]);
    pane.is_shown_as("tmux a-nam…-column:7");
    tmux.tell(&["kill-pane", "-t", &pane.id]);
    tables_show_number(&environment, &pane.id);
}

#[test]
fn a_question_has_its_place_too() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let opened = tmux.tell(&["display-message", "-p", "#{socket_path},#{pid},0 #{pane_id}"]);
    let (server, pane) = opened.rsplit_once(' ').expect("a pane");
    let mut ask = environment.ringer(&["ask", "Which way?"]);
    check(ask.env("TMUX", server).env("TMUX_PANE", pane).env("TERM", "tmux-256color"), 0);
    assert_eq!(environment.list(&[]).len(), 1);
    until("its place", || environment.run(&["questions"]).ends_with("  tmux main:0\n"));
}

#[test]
fn a_tmux_that_hangs_holds_no_table_up() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let pane = Pane::open(&environment, &tmux, "main:3");
    pane.is_shown_as("tmux main:3");
    let stopped = tmux.stop();
    for command in ["list", "status"] {
        let begin = Instant::now();
        let table = environment.run(&[command]);
        // It waits for 0.3 s; without that limit it would wait for ever.
        assert!(begin.elapsed() < Duration::from_secs(20), "{command}: {:?}", begin.elapsed());
        assert!(table.contains(&format!("  tmux {}\n", pane.id)), "{table}");
    }
    drop(stopped);
    pane.is_shown_as("tmux main:3");
}

#[test]
fn a_tmux_that_has_ended_is_not_started() {
    let environment = HubEnvironment::new();
    let socket = environment.base.path().join("ended");
    notify_from(&environment, &format!("{},4242,0", socket.display()), "%3");
    tables_show_number(&environment, "%3");
    assert!(!socket.exists());
}

#[test]
fn a_pane_of_another_server_on_the_same_socket_is_not_meant() {
    let environment = HubEnvironment::new();
    let tmux = Tmux::start(&environment, "");
    let opened = tmux.tell(&["display-message", "-p", "#{socket_path} #{pane_id}"]);
    let (socket, pane) = opened.rsplit_once(' ').expect("a pane");
    notify_from(&environment, &format!("{socket},1,0"), pane);
    tables_show_number(&environment, pane);
}
