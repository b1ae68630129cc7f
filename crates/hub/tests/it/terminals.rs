//! Notifications in terminals that are not ours.

use crate::hub::{TestHub, until};
use crate::terminal::Terminal;

#[test]
fn kitty_is_told_with_osc_99_and_told_again_when_it_is_read() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("May I?"));
    let told = terminal.wait_for("May I?");
    assert!(told.starts_with("\x1b]99;") && told.contains("p=body"), "{told:?}");
    assert!(told.ends_with("\x1b\\") || told.ends_with('\x07'), "{told:?}");
    let trail = hub.wait_for_step(&id, "terminal: ");
    let step = format!("terminal: kitty through {}", terminal.tty);
    assert!(trail.contains(&step), "{trail:?}");
    hub.mark_read(&id);
    let told = terminal.wait_for("p=close");
    let name = told.split("i=").nth(1).and_then(|rest| rest.split([':', ';']).next()).expect("an id");
    let digits: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    assert_eq!(name, digits, "the message's own, so that nothing is shown twice");
}

#[test]
fn each_terminal_is_told_in_its_own_way() {
    let hub = TestHub::start("");
    for (variables, expected) in [
        (&[("TERM_PROGRAM", "ghostty"), ("TERM", "xterm-ghostty")][..], "\x1b]777;notify;"),
        (&[("TERM_PROGRAM", "iTerm.app"), ("TERM", "xterm-256color")], "\x1b]9;"),
    ] {
        let terminal = Terminal::with(variables);
        hub.append(&terminal.says("hello"));
        terminal.wait_for(expected);
        terminal.wait_for("hello");
    }
}

#[test]
fn what_is_said_cannot_get_out_of_its_sequence() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("a\x1b\\\x1b]0;owned\x07\u{9c}b"));
    hub.wait_for_step(&id, "terminal: ");
    let told = terminal.wait_for("\x1b\\");
    assert!(!told.contains("\x1b]0;") && !told.contains('\x07') && !told.contains('\u{9c}'), "{told:?}");
}

#[test]
fn a_terminal_that_is_somebody_elses_by_now_is_left_alone() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let mut message = terminal.says("hello");
    message.origin.surface = Some(format!("tty:{}@1", terminal.tty));
    let id = hub.append(&message);
    let trail = hub.wait_for_step(&id, "terminal failed: ");
    assert!(trail.iter().any(|step| step.contains("somebody else's by now")), "{trail:?}");
    assert!(terminal.told().is_empty());
}

#[test]
fn a_terminal_that_has_gone_is_a_failure_and_nothing_else() {
    let hub = TestHub::start("");
    let message = {
        let terminal = Terminal::kitty();
        let message = terminal.says("hello");
        drop(terminal);
        message
    };
    let id = hub.append(&message);
    hub.wait_for_step(&id, "terminal failed: ");
    until("it is on the list", || !hub.is_read(&id));
}

#[test]
fn switched_off_no_terminal_is_told() {
    let hub = TestHub::start("preferred_channel = \"notifications_disabled\"\n");
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("hello"));
    hub.wait_for_step(&id, "terminal failed: ");
    assert!(terminal.told().is_empty());
}
