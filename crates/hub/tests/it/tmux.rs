//! Panes of a real tmux.

use std::path::PathBuf;
use std::process::Command;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use ringer_core::Draft;
use ringer_core::message::MessageOrigin;
use serde_json::json;
use test_support::{BlockingNotificationServer, ServerBehaviour, SessionBus, until};

use crate::hub::{TestHub, draft};

/// A tmux server with an attached client. Both end with the test.
struct Tmux {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    client: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

impl Tmux {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("tmux");
        let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
        let mut command = CommandBuilder::new("tmux");
        command.args(["-f", "/dev/null", "-S"]);
        command.arg(&socket);
        command.args(["new-session", "-s", "one", "sleep 1000"]);
        command.env("TERM", "xterm-256color");
        command.env_remove("TMUX");
        let client = pty.slave.spawn_command(command).expect("tmux: `cargo xtask test` installs it");
        let tmux = Self { _directory: directory, socket, client, _master: pty.master };
        until("a client is attached", || !tmux.tell(&["list-clients"]).is_empty());
        tmux
    }

    /// Tells it something. Gives what it says.
    fn tell(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-u", "-S"]).arg(&self.socket).args(arguments).output().expect("tmux");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// What its client looks at: session and pane.
    fn looked_at(&self) -> String {
        self.tell(&["list-clients", "-F", "#{client_session} #{pane_id}"])
    }

    fn says(&self, pane: &str, server: &str) -> Draft {
        let surface = format!("tmux:{}:{server}:{pane}", self.socket.display());
        let origin =
            MessageOrigin { surface: Some(surface), pane: Some(pane.to_owned()), ..MessageOrigin::default() };
        Draft { origin, ..draft("look here") }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tell(&["kill-server"]);
        // It ends with its server.
        let _ = self.client.wait();
    }
}

#[test]
fn going_to_a_pane_selects_its_session_its_window_and_itself() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let here = tmux.looked_at();
    tmux.tell(&["new-session", "-d", "-s", "two", "sleep 1000"]);
    tmux.tell(&["new-window", "-d", "-t", "two", "sleep 1000"]);
    let pane = tmux.tell(&["split-window", "-d", "-t", "two:1", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    assert_ne!(tmux.looked_at(), format!("two {pane}"));
    let id = hub.append(&tmux.says(&pane, &server));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"], json!({ "focused": true, "host": "tmux" }));
    assert_eq!(tmux.looked_at(), format!("two {pane}"));
    assert!(hub.is_read(&id));
    tmux.tell(&["switch-client", "-t", "one"]);
    let surface = format!("tmux:{}:{server}:{pane}", tmux.socket.display());
    let went = hub.call("surface.focus", &json!({ "surface_id": surface }));
    assert_eq!((went, tmux.looked_at()), (json!({ "focused": true, "host": "tmux" }), format!("two {pane}")));
    // Another server may have that socket now, and its panes the same numbers.
    let first = here.split(' ').next_back().expect("a pane");
    let id = hub.append(&tmux.says(first, "1"));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"]["why"], "its tmux server (pid 1) has ended");
    assert_eq!(tmux.looked_at(), format!("two {pane}"), "it was left alone");
    // A pane that was closed.
    let id = hub.append(&tmux.says("%99", &server));
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"]["why"], "its tmux pane %99 is closed");
    assert!(!hub.is_read(&id), "it was not brought to the front");
}

#[test]
fn what_an_earlier_hub_heard_of_is_found_again() {
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let pane = tmux.tell(&["new-window", "-d", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    let id = hub.append(&tmux.says(&pane, &server));
    hub.wait_for_step(&id, "channels: ");
    hub.end();
    hub.begin();
    assert_ne!(tmux.looked_at(), format!("one {pane}"));
    let opened = hub.call("notification.jump_to_unread", &json!({}));
    assert_eq!((&opened["notification"]["id"], &opened["focus"]["focused"]), (&json!(id), &json!(true)));
    assert_eq!(tmux.looked_at(), format!("one {pane}"));
    assert!(hub.is_read(&id));
}

/// The mark in the title of a pane is taken away by a hub that has not heard from the pane.
#[test]
fn a_mark_of_an_earlier_hub_goes_when_it_is_read() {
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let pane = tmux.tell(&["new-window", "-d", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    let title = || tmux.tell(&["display-message", "-p", "-t", &pane, "#{pane_title}"]);
    let before = title();
    let id = hub.append(&tmux.says(&pane, &server));
    until("the title has a mark", || title() == format!("● {before}"));
    hub.end();
    hub.begin();
    hub.mark_read(&id);
    until("the title is as before", || title() == before);
}

#[test]
fn a_click_on_a_popup_of_an_earlier_hub_goes_there() {
    let bus = SessionBus::start();
    let desktop = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let mut hub = TestHub::with_bus("", Some(bus.address()));
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let pane = tmux.tell(&["new-window", "-d", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    let id = hub.append(&tmux.says(&pane, &server));
    desktop.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    hub.end();
    hub.begin();
    until("it is there and read", || {
        // Whether the hub listens to the bus by now shows only in what it does.
        desktop.report_clicked(1, "default");
        tmux.looked_at() == format!("one {pane}") && hub.is_read(&id)
    });
}

#[test]
fn where_no_client_is_attached_it_stays_unread_and_says_what_to_type() {
    let bus = SessionBus::start();
    let desktop = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let hub = TestHub::with_bus("", Some(bus.address()));
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    tmux.tell(&["new-session", "-d", "-s", "the other", "sleep 1000"]);
    let pane = tmux.tell(&["new-window", "-d", "-t", "the other", "-P", "-F", "#{pane_id}", "sleep 1000"]);
    let id = hub.append(&tmux.says(&pane, &server));
    desktop.next_popup();
    hub.wait_for_step(&id, "desktop: ");
    tmux.tell(&["detach-client", "-s", "one"]);
    until("no client is attached", || tmux.tell(&["list-clients"]).is_empty());
    let opened = hub.call("notification.open", &json!({ "id": id }));
    assert_eq!(opened["focus"]["why"], "no terminal shows tmux session the other");
    let hint = format!("tmux -S {} attach -t 'the other'", tmux.socket.display());
    assert_eq!(opened["focus"]["hint"], hint);
    assert!(!hub.is_read(&id));
    // A client that attaches finds it in front.
    assert_eq!(tmux.tell(&["display-message", "-p", "-t", "the other", "#{pane_id}"]), pane);

    // The same with a click; that the server closes the popup then does not make it read.
    desktop.report_clicked(1, "default");
    desktop.report_closed(1, 2);
    let trail = hub.wait_for_step(&id, "cannot jump to its pane: ");
    assert!(trail.iter().any(|step| step.ends_with(&hint)), "{trail:?}");
    let toast = hub.call("hub.status", &json!({}))["toast"].clone();
    assert!(
        toast.as_str().is_some_and(|toast| toast.starts_with("cannot show it: no terminal shows")),
        "{toast}"
    );
    // What the server says comes in order: when this one is dismissed, the other has been.
    let other = hub.append(&draft("another"));
    desktop.next_popup();
    hub.wait_for_step(&other, "desktop: ");
    desktop.report_closed(2, 2);
    until("the other one is read", || hub.is_read(&other));
    assert!(!hub.is_read(&id), "it was not brought to the front");
}

impl Tmux {
    fn title(&self, pane: &str) -> String {
        self.tell(&["display-message", "-p", "-t", pane, "#{pane_title}"])
    }

    /// A pane whose program sets this title, and another one when it is told to.
    fn pane(&self, title: &str) -> String {
        let script = format!(
            "printf '\\033]2;{title}\\033\\\\'; read next; printf '\\033]2;%s\\033\\\\' \"$next\"; sleep 1000"
        );
        let pane = self.tell(&["new-window", "-d", "-P", "-F", "#{pane_id}", "sh", "-c", &script]);
        until("it has its title", || self.title(&pane) == title);
        pane
    }
}

#[test]
fn a_pane_has_a_mark_in_front_of_its_title_until_it_is_read() {
    let mut hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    tmux.tell(&["set-option", "-g", "monitor-activity", "on"]);
    // tmux would expand it, were it given to it as text.
    let title = "busy #[fg=red] #{pid} a,b }";
    let pane = tmux.pane(title);
    let flags = || tmux.tell(&["display-message", "-p", "-t", &pane, "#{window_activity_flag}"]);
    tmux.tell(&["select-window", "-t", &pane, ";", "last-window"]);
    let before = flags();
    let id = hub.append(&tmux.says(&pane, &server));
    until("there is a mark", || tmux.title(&pane) == format!("● {title}"));
    // One mark, however much comes.
    hub.append(&tmux.says(&pane, &server));
    hub.end();
    hub.begin();
    assert_eq!(tmux.title(&pane), format!("● {title}"));
    assert_eq!(flags(), before, "a mark is no activity of the program's");
    hub.call("notification.mark_read", &json!({ "all": true }));
    until("it is as it was", || tmux.title(&pane) == title);
    let options = || tmux.tell(&["show-options", "-p", "-t", &pane]);
    until("nothing is left of it", || options().is_empty());
    assert!(hub.is_read(&id));
}

#[test]
fn a_title_that_the_program_sets_meanwhile_stays() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let pane = tmux.pane("busy");
    let id = hub.append(&tmux.says(&pane, &server));
    until("there is a mark", || tmux.title(&pane) == "● busy");
    tmux.tell(&["send-keys", "-t", &pane, "waits", "Enter"]);
    until("the program has set another", || tmux.title(&pane) == "waits");
    hub.mark_read(&id);
    until("nothing is left of the mark", || tmux.tell(&["show-options", "-p", "-t", &pane]).is_empty());
    assert_eq!(tmux.title(&pane), "waits", "the title does not lie");
}

#[test]
fn a_pane_of_another_server_with_the_same_number_is_left_alone() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let [stranger, own] = [tmux.pane("theirs"), tmux.pane("ours")];
    hub.append(&tmux.says(&stranger, "1"));
    hub.append(&tmux.says(&own, &server));
    until("there is a mark", || tmux.title(&own) == "● ours");
    assert_eq!(tmux.title(&stranger), "theirs");
}

#[test]
fn switched_off_no_pane_has_a_mark() {
    let hub = TestHub::start("[notify]\npopup = \"off\"\ntitle_mark = \"off\"\n");
    let tmux = Tmux::start();
    let server = tmux.tell(&["display-message", "-p", "#{pid}"]);
    let pane = tmux.pane("busy");
    let following = hub.follow("ring");
    hub.append(&tmux.says(&pane, &server));
    following.next("a ring", |ring| ring["lit"] == true);
    hub.set("[notify]\npopup = \"off\"\n");
    hub.call("hub.reload", &json!(null));
    let other = tmux.pane("another");
    hub.append(&tmux.says(&other, &server));
    until("another has a mark", || tmux.title(&other) == "● another");
    assert_eq!(tmux.title(&pane), "busy");
}
