//! Windows of real terminals on a real display: what the person looks at there, and going there.

use std::os::unix::net::UnixListener;

use rustix::process::{Pid, Signal, kill_process};
use test_support::until;

use super::tmux::Tmux;
use super::tmux_client::{setup, tell_from};
use super::window_desk::WindowDesk;
use crate::ringer::check;

#[test]
fn what_comes_from_the_window_that_is_looked_at_makes_no_popup_and_going_to_a_window_reads_it() {
    let desk = WindowDesk::new();
    let [mut one, mut two] = desk.two_xterms();
    desk.look_at(&mut one);
    one.notify("seen");
    two.notify("elsewhere");
    assert_eq!(desk.popup(), "elsewhere", "what is looked at makes no popup");
    assert_eq!(desk.unread(), ["elsewhere"]);
    desk.activate(two.window);
    until("none is unread", || desk.unread().is_empty());
    two.notify("seen, too");
    one.notify("not seen");
    assert_eq!(desk.popup(), "not seen");
}

#[test]
fn jump_and_a_click_on_a_popup_bring_the_window_to_the_front() {
    let desk = WindowDesk::new();
    let [mut one, mut two] = desk.two_xterms();
    desk.look_at(&mut one);
    two.notify("come here");
    assert_eq!(desk.popup(), "come here");
    desk.jump();
    assert_eq!(desk.active(), Some(two.window));
    assert_eq!(desk.unread(), [""; 0]);
    one.notify("and back");
    assert_eq!(desk.popup(), "and back");
    // The server numbers its popups.
    desk.desktop.server.report_clicked(3, "default");
    until("it is in front", || desk.active() == Some(one.window));
    until("it is read", || desk.unread().is_empty());
}

#[test]
fn a_window_that_is_closed_is_forgotten_and_the_hub_outlives_the_display() {
    let mut desk = WindowDesk::new();
    let [mut one, mut two] = desk.two_xterms();
    let hub = desk.desktop.environment.hub();
    let left = two.tty();
    one.close();
    until("it is forgotten", || desk.known() == [left.clone()]);
    desk.screen.stop();
    until("all are forgotten", || desk.known().is_empty());
    assert_eq!(desk.desktop.environment.hub(), hub);
    let log = desk.desktop.environment.log();
    assert_eq!(log.lines().filter(|line| line.contains(" display :")).count(), 1, "{log}");
}

#[test]
fn going_to_a_pane_of_tmux_brings_its_window_to_the_front() {
    let desk = WindowDesk::new();
    let environment = &desk.desktop.environment;
    let tmux = Tmux::start(environment, "");
    setup(environment, &[]);
    let (mut around, mut other) = (desk.xterm("around", &[], &[]), desk.xterm("other", &[], &[]));
    let tty = around.tty();
    around.begin(&format!("tmux -S {} attach -t main <&2", tmux.socket()));
    until("its window is known", || desk.known().contains(&tty));
    desk.activate(around.window);
    desk.look_at(&mut other);
    tell_from(environment, &tmux, "%0", "come here");
    assert_eq!(desk.popup(), "come here");
    desk.jump();
    assert_eq!(desk.unread(), [""; 0]);
    until("it is in front", || desk.active() == Some(around.window));
}

#[test]
fn a_display_that_hangs_is_given_up() {
    let desk = WindowDesk::new();
    let (mut one, mut two) = (desk.xterm("one", &[], &[]), desk.xterm("two", &[], &[]));
    desk.begin_agent(&mut one);
    let server = Pid::from_raw(desk.screen.pid().cast_signed()).expect("a pid");
    kill_process(server, Signal::STOP).expect("it runs");
    two.notify("here");
    until("it is given up", || desk.desktop.environment.log().contains("it does not answer"));
    until("its windows are forgotten", || desk.known().is_empty());
    kill_process(server, Signal::CONT).expect("it runs");
}

#[test]
fn a_window_that_a_program_only_claims_is_not_used() {
    let desk = WindowDesk::new();
    let mut one = desk.xterm("one", &[], &[]);
    let mut liar = desk.xterm("liar", &[], &[&format!("WINDOWID={}", one.window)]);
    let mut stale = desk.xterm("stale", &[], &["WINDOWID=4242"]);
    desk.activate(one.window);
    liar.notify("lies");
    stale.notify("is old");
    // They are looked at in their order.
    desk.begin_agent(&mut one);
    assert_eq!(desk.known(), [one.tty()]);
    liar.notify("lies again");
    assert_eq!(desk.unread().len(), 2);
    let mut jump = desk.desktop.environment.ringer(&["jump", "--json"]);
    let why = check(&mut jump, 69).0;
    assert!(why.contains("does not know the window"), "{why}");
}

#[test]
fn a_terminal_that_may_have_tabs_is_gone_to_but_not_looked_at() {
    let desk = WindowDesk::new();
    let mut tabbed = desk.xterm("tabbed", &["-class", "Tabbed"], &[]);
    desk.begin_agent(&mut tabbed);
    desk.activate(tabbed.window);
    tabbed.notify("which tab");
    assert_eq!(desk.popup(), "which tab");
    assert_eq!(desk.unread(), ["which tab"]);
    desk.jump();
    assert_eq!(desk.unread(), [""; 0]);
}

#[test]
fn without_a_window_manager_it_is_said_why_a_window_stays_where_it_is() {
    let desk = WindowDesk::without_manager();
    let mut one = desk.xterm("one", &[], &[]);
    desk.begin_agent(&mut one);
    one.notify("here");
    until("it is unread", || desk.unread() == ["here"]);
    let why = check(&mut desk.desktop.environment.ringer(&["jump", "--json"]), 69).0;
    assert!(why.contains("no window manager runs"), "{why}");
    assert_eq!(desk.unread(), ["here"]);
}

#[test]
fn a_tab_of_kitty_is_looked_at_and_gone_to() {
    let desk = WindowDesk::new();
    let (listens, [mut one, mut two]) = desk.kitty_with_two_tabs(["first", "second"]);
    // As one that was started in a tab. It is heard of before kitty's own tabs are.
    let mut other = desk.xterm("other", &[], &[&format!("KITTY_LISTEN_ON={listens}")]);
    desk.begin_agent(&mut other);
    desk.begin_agent(&mut one);
    desk.begin_agent(&mut two);
    // The second tab is in front.
    desk.activate(other.window);
    desk.look_at(&mut two);
    two.notify("in the second tab");
    one.notify("in the first tab");
    assert_eq!(desk.popup(), "in the first tab");
    desk.jump();
    assert_eq!(desk.unread(), [""; 0], "the second tab was looked at, the first one was gone to");
    two.notify("now behind");
    assert_eq!(desk.popup(), "now behind");
    one.notify("in front");
    until("it is read", || desk.unread() == ["now behind"]);
    desk.look_at(&mut other);
    desk.jump();
    assert_eq!((desk.active(), desk.unread().len()), (Some(two.window), 0));
}

#[test]
fn the_title_of_a_tab_of_kitty_is_marked_while_something_there_is_unread() {
    let desk = WindowDesk::new();
    let (listens, [mut one, mut two]) = desk.kitty_with_two_tabs(["first", "second"]);
    desk.begin_agent(&mut one);
    desk.begin_agent(&mut two);
    let other = desk.xterm("other", &[], &[]);
    desk.activate(other.window);
    desk.look_at(&mut two);
    let until_titled = |titles: [&str; 2]| {
        until(&format!("the titles are {titles:?}"), || desk.titles(&listens) == titles);
    };
    until_titled(["first", "second"]);
    one.notify("in the first tab");
    until_titled(["● first", "second"]);
    // A title that its program sets meanwhile is marked when Ringer hears of a change.
    one.set_title("third");
    two.set_title("fourth");
    until_titled(["● third", "fourth"]);
    desk.jump();
    until_titled(["third", "fourth"]);
    two.notify("in the second tab");
    until_titled(["third", "● fourth"]);
    // The next hub takes away what the last one set.
    let ringer = |arguments: &[&str]| drop(check(&mut desk.desktop.environment.ringer(arguments), 0));
    ringer(&["hub", "stop"]);
    until_titled(["third", "● fourth"]);
    desk.start_hub();
    ringer(&["read", "--all"]);
    until_titled(["third", "fourth"]);
}

/// As under Wayland: only kitty itself says whether the person is there.
#[test]
fn a_kitty_of_which_no_display_tells_is_asked_when_something_is_heard() {
    let desk = WindowDesk::new();
    let listens = format!("unix:@ringer-test-{}", std::process::id());
    let options = ["-o", "allow_remote_control=socket-only", "--listen-on", &listens];
    let mut one = desk.kitty("one", &[&options[..], &["env", "-u", "DISPLAY"]].concat());
    one.set_title("first");
    let mut two = desk.kitty_tab(&one, &listens, "two");
    two.set_title("second");
    let other = desk.xterm("other", &[], &[]);
    desk.begin_agent(&mut one);
    desk.begin_agent(&mut two);
    desk.activate(one.window);
    one.notify("come here");
    assert_eq!(desk.popup(), "come here");
    desk.jump();
    assert_eq!(desk.unread(), [""; 0], "the window was in front, and now the tab is");
    desk.notify_where_they_are(&mut one, "here you are");
    desk.activate(other.window);
    until("kitty knows it", || !desk.has_focus(&listens));
    one.notify("gone");
    assert_eq!(desk.popup_after("here you are"), "gone");
    one.notify("gone for long");
    assert_eq!(desk.popup(), "gone for long");
    // evilwm brings no window to the front because its program wants it.
    let why = check(&mut desk.desktop.environment.ringer(&["jump", "--json"]), 69).0;
    assert!(why.contains("the desktop did not bring the window to the front"), "{why}");
    assert_eq!(desk.unread(), ["gone for long"]);
}

#[test]
fn tabs_with_the_same_title_are_asked_about_when_something_is_heard() {
    let desk = WindowDesk::new();
    let (_, [mut behind, mut seen]) = desk.kitty_with_two_tabs(["same", "same"]);
    desk.begin_agent(&mut behind);
    desk.begin_agent(&mut seen);
    desk.activate(seen.window);
    desk.notify_where_they_are(&mut seen, "in front");
    behind.notify("behind");
    assert_eq!(desk.popup_after("in front"), "behind");
    assert_eq!(desk.unread(), ["behind"]);
}

#[test]
fn sockets_of_kitty_that_hang_or_are_not_there_leave_the_window_to_the_display() {
    let desk = WindowDesk::new();
    let socket = desk.desktop.environment.base.path().join("hangs");
    let _hangs = UnixListener::bind(&socket).expect("a socket");
    let hangs = format!("KITTY_LISTEN_ON=unix:{}", socket.display());
    let mut one = desk.xterm("one", &[], &[&hangs]);
    let mut two = desk.xterm("two", &[], &["KITTY_LISTEN_ON=unix:/nowhere/kitty"]);
    desk.begin_agent(&mut two);
    desk.begin_agent(&mut one);
    let log = desk.desktop.environment.log();
    assert!(log.contains("takes no connection") && log.contains("does not answer"), "{log}");
}

#[test]
fn doctor_says_whether_the_window_is_seen() {
    let desk = WindowDesk::new();
    let mut xterm = desk.xterm("xterm", &[], &[]);
    let row = "\"$RINGER\" doctor | grep -A1 ' window '";
    let said = xterm.output(row);
    assert!(said.contains("XTerm window 0x"), "{said}");
    assert!(said.contains("Ringer sees when you look at it and can bring it to the front"), "{said}");
    let mut kitty = desk.kitty("kitty", &[]);
    let said = kitty.output(row);
    assert!(said.contains("can bring it to the front, but does not see when you look at it"), "{said}");
    assert!(said.contains("fix: in kitty.conf: allow_remote_control socket-only"), "{said}");
    desk.begin_agent(&mut kitty);
    desk.activate(xterm.window);
    kitty.notify("here");
    until("it is unread", || desk.unread() == ["here"]);
    desk.jump();
    assert_eq!(desk.active(), Some(kitty.window));
}
