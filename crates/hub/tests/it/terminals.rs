//! Notifications in terminals that are not ours.

use ringer_hub::ProbedTerminal;
use ringer_term::NotificationId;
use ringer_term::probe::Probe;

use serde_json::Value;
use test_support::until;

use crate::hub::TestHub;
use crate::terminal::Terminal;

#[test]
fn kitty_is_told_with_osc_99_and_told_again_when_it_is_read() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("May I?"));
    let told = terminal.wait_for("p=body");
    let told = &told[told.find("\x1b]99;").expect("an OSC 99")..];
    assert!(told.contains("May I?"), "{told:?}");
    assert!(told.ends_with("\x1b\\") || told.ends_with('\x07'), "{told:?}");
    let trail = hub.wait_for_step(&id, "terminal: ");
    let step = format!("terminal: kitty through {} in kitty (auto)", terminal.tty);
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
fn a_terminal_is_told_in_the_way_that_it_said_it_knows() {
    let hub = TestHub::start("");
    for (reply, expected) in [
        ("", "\x1b]777;notify;"),
        ("\x1bP>|kitty(0.26.5)\x1b\\\x1b[?62;c", "\x1b]777;notify;"),
        ("\x1bP>|kitty(0.48.2)\x1b\\\x1b]99;i=q:p=?;a=focus\x1b\\\x1b[?62;c", "\x1b]99;"),
    ] {
        // A kitty over SSH: nothing but its TERM gets there.
        let terminal = Terminal::with(&[("TERM", "xterm-kitty")]);
        let mut probe = Probe::new(NotificationId::new("q").expect("an id"));
        if probe.feed(reply.as_bytes()) {
            let known = ProbedTerminal::new(&terminal.surface, "xterm-kitty", &probe);
            known.keep(hub.home(), None).expect("it is kept");
        }
        let id = hub.append(&terminal.says("hello"));
        let trail = hub.wait_for_step(&id, "terminal");
        assert!(trail.iter().any(|step| step.starts_with("terminal: ")), "{trail:?}");
        terminal.wait_for(expected);
        terminal.wait_for("hello");
    }
}

#[test]
fn a_terminal_that_was_started_from_a_tmux_pane_is_not_that_pane() {
    let hub = TestHub::start("");
    let terminal = Terminal::with(&[("TERM", "xterm-kitty"), ("TMUX", "/nowhere,1,0"), ("TMUX_PANE", "%0")]);
    hub.append(&terminal.says("hello"));
    let told = terminal.wait_for("\x1b]777;notify;");
    assert!(!told.contains("\x1bPtmux;"), "{told:?}");
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
fn a_terminal_that_another_user_has_by_now_is_left_alone() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let mut message = terminal.says("hello");
    message.origin.surface = Some(format!("tty:{}@1", terminal.tty));
    let id = hub.append(&message);
    let trail = hub.wait_for_step(&id, "terminal failed: ");
    assert!(trail.iter().any(|step| step.contains("is now another terminal")), "{trail:?}");
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
    let trail = hub.wait_for_step(&id, "channels: ");
    assert!(trail.contains(&"no popup: disabled by your settings".to_owned()), "{trail:?}");
    assert!(terminal.told().is_empty());
}

/// How often a terminal was told something.
fn times(terminal: &Terminal, text: &str) -> usize {
    String::from_utf8_lossy(&terminal.told()).matches(text).count()
}

const ALWAYS: &str = "[notify]\ntitle_mark = \"always\"\n";
const PUSH: &str = "\x1b[22;2t";
const POP: &str = "\x1b[23;2t";

/// Waits until a terminal got one push and one pop, and checks that it got no more than that before the next thing.
fn check_once(hub: &TestHub, terminal: &Terminal) {
    terminal.wait_for(POP);
    let id = hub.append(&terminal.says("what comes later comes after it"));
    hub.wait_for_step(&id, "terminal: ");
    // The notification itself may come before the mark or after it.
    until("the next mark is set", || times(terminal, PUSH) == 2);
    assert_eq!((times(terminal, PUSH), times(terminal, POP)), (2, 1));
}

#[test]
fn a_title_that_cannot_be_read_is_left_alone() {
    let hub = TestHub::start("");
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("May I?"));
    hub.wait_for_step(&id, "terminal: ");
    hub.mark_read(&id);
    terminal.wait_for("p=close");
    assert_eq!((times(&terminal, PUSH), times(&terminal, POP), times(&terminal, "\x1b]2;")), (0, 0, 0));
}

#[test]
fn asked_for_a_title_has_a_mark_until_it_is_read_also_by_the_next_hub() {
    let mut hub = TestHub::start(ALWAYS);
    let terminal = Terminal::with(&[("TERM", "xterm-kitty"), ("LANG", "C.UTF-8")]);
    let id = hub.append(&terminal.says("May I #[fg=red]?"));
    terminal.wait_for("\x1b[22;2t\x1b]2;● unread notification\x1b\\");
    until("it is written down", || {
        hub.memory().flags().expect("flags").iter().any(|flag| flag.reason == "title")
    });
    hub.end();
    hub.begin();
    assert!(!hub.is_read(&id));
    hub.mark_read(&id);
    check_once(&hub, &terminal);
}

#[test]
fn a_terminal_that_would_not_give_its_title_back_has_no_mark() {
    let hub = TestHub::start(ALWAYS);
    let terminal = Terminal::with(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")]);
    let id = hub.append(&terminal.says("hello"));
    hub.wait_for_step(&id, "terminal: ");
    hub.mark_read(&id);
    let later = hub.append(&terminal.says("later"));
    hub.wait_for_step(&later, "terminal: ");
    assert_eq!((times(&terminal, PUSH), times(&terminal, POP)), (0, 0), "neither set nor taken away");
}

#[test]
fn where_nothing_is_to_be_shown_no_title_is_touched() {
    let disabled = ("preferred_channel = \"notifications_disabled\"\n", "channels: none");
    for (settings, step) in [disabled, ("[notify]\nring = false\n", "terminal")] {
        let hub = TestHub::start(&format!(
            "{settings}{}",
            if settings.starts_with('[') { "title_mark = \"always\"\n" } else { ALWAYS }
        ));
        let terminal = Terminal::kitty();
        let id = hub.append(&terminal.says("hello"));
        hub.wait_for_step(&id, step);
        hub.mark_read(&id);
        // Another terminal is asked after that, and its answer comes after that.
        let other = hub.append(&terminal.says("later"));
        hub.wait_for_step(&other, step);
        hub.mark_read(&other);
        assert_eq!((times(&terminal, PUSH), times(&terminal, POP)), (0, 0), "{settings}");
    }
}

#[test]
fn a_mark_in_a_stopped_terminal_is_taken_away_when_it_goes_on() {
    let hub = TestHub::start(ALWAYS);
    let terminal = Terminal::kitty();
    let id = hub.append(&terminal.says("May I?"));
    terminal.wait_for("unread notification");
    hub.wait_for_step(&id, "terminal: ");
    terminal.stop();
    hub.mark_read(&id);
    // The first try is over when the mark is written down again as being there.
    let marked = || hub.memory().flags().expect("flags").iter().any(|flag| flag.reason == "title");
    until("it is being taken away", || !marked());
    until("that did not work", marked);
    terminal.go_on();
    terminal.wait_for(POP);
    until("it is away", || !marked());
    assert_eq!((times(&terminal, PUSH), times(&terminal, POP)), (1, 1));
}

#[test]
fn stopped_terminals_hold_up_no_other() {
    let hub = TestHub::start(&format!("{ALWAYS}popup = \"off\"\n"));
    // One after the other they would take longer than a test waits: each is given up after two seconds.
    let stopped: Vec<Terminal> = (0..20).map(|_| Terminal::kitty()).collect();
    let free = Terminal::kitty();
    for terminal in &stopped {
        terminal.stop();
        hub.append(&terminal.says("hello"));
    }
    hub.append(&free.says("hello"));
    free.wait_for("unread notification");
    assert!(stopped.iter().all(|terminal| terminal.told().is_empty()));
}

/// The surfaces that the hub knows.
fn surfaces(hub: &TestHub) -> Vec<String> {
    let all = hub.call("surface.list", &Value::Null);
    let all = all.as_array().expect("a list").iter();
    all.map(|one| one["surface"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_message_from_no_terminal_goes_to_the_one_of_its_workspace_that_spoke_last() {
    let hub = TestHub::start("");
    let [one, two] = [Terminal::kitty(), Terminal::kitty()];
    for (speaks, other) in [(&one, &two), (&two, &one)] {
        let first = hub.append(&speaks.says("I am here"));
        hub.wait_for_step(&first, "terminal: ");
        let id = hub.send("from nowhere");
        let trail = hub.wait_for_step(&id, "terminal: ");
        let step = format!("terminal: kitty through {} in kitty (auto)", speaks.tty);
        assert!(trail.contains(&step), "not through {}: {trail:?}", other.tty);
    }
}

#[test]
fn a_terminal_that_was_closed_is_passed_over_and_forgotten() {
    let hub = TestHub::start("");
    let [one, two] = [Terminal::kitty(), Terminal::kitty()];
    // Whichever has the larger name goes.
    let (stays, goes) = if one.surface < two.surface { (one, two) } else { (two, one) };
    for terminal in [&stays, &goes] {
        let id = hub.append(&terminal.says("I am here"));
        hub.wait_for_step(&id, "terminal: ");
    }
    assert_eq!(surfaces(&hub), [goes.surface.clone(), stays.surface.clone()]);
    drop(goes);
    let id = hub.send("from nowhere");
    let trail = hub.wait_for_step(&id, "terminal");
    assert!(trail.contains(&format!("terminal: kitty through {} in kitty (auto)", stays.tty)), "{trail:?}");
    assert_eq!(surfaces(&hub), std::slice::from_ref(&stays.surface));
}
