//! The terminal of a window: one that takes nothing, one whose window is stopped, one that is no usual one.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_support::until;

use super::raw_client::{ANSWER, BYE, OUTPUT, REQUEST, RawClient, TERMINAL_BACK, WELCOME};
use super::session::{RINGER, Session};
use super::window::Window;
use crate::hub::tmux::Tmux;

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_the_other_windows() {
    let session = Session::new();
    let mut full = session.unread_terminal(&[RINGER, "attach"], 24, 80);
    until("it is attached", || session.surfaces().len() == 1);
    let mut window = session.attach();
    // What a program copies goes to both windows, and is more than the kernel holds for a terminal.
    window.command(
        "printf '\\033]52;c;%s\\007' $(head -c 150000 /dev/zero | base64 -w0); echo copied-$((40+2))",
    );
    window.until("copied-42");
    until("it came whole", || window.raw().contains("\x1b]52;c;AAAA"));
    for number in 0..20 {
        window.command(&format!("clear; echo key-$((1000+{number}))"));
        window.until(&format!("key-{}", 1000 + number));
    }
    full.begin_reading();
    full.until("key-1019");
    full.command("echo typed-$((40+3))");
    full.until("typed-43");
    window.until("typed-43");
}

/// A shell with job control, and in it a window with a pane that shows `inner-42`. Gives the process of the window, too.
fn in_shell(session: &Session) -> (Window, Pid) {
    let mut window = session.terminal(&["sh", "-i"], 24, 80);
    window.until("$ ");
    window.command("\"$RINGER\" attach");
    window.until("┌");
    window.command("echo inner-$((40+2))");
    window.until("inner-42");
    let client = session.with_words(&["attach"]);
    (window, Pid::from_raw(client[0].cast_signed()).expect("a process"))
}

fn check_is_back(window: &mut Window, number: u32) {
    window.command("fg");
    window.until("inner-42");
    window.until("┌");
    window.until_not("outer-");
    // Ctrl-C is for the program in the pane, and not for the window.
    window.keys("\x03");
    until("its shell waits again", || {
        let text = window.text();
        let is_new = text.matches("^C").count() == number as usize + 1;
        is_new && text.rfind("^C").is_some_and(|at| text[at..].contains("│$ "))
    });
    window.command(&format!("echo again-$((500+{number}))"));
    window.until(&format!("again-{}", 500 + number));
}

#[test]
fn a_window_that_is_told_to_stop_gives_its_terminal_back_until_it_goes_on() {
    let session = Session::new();
    let (mut window, client) = in_shell(&session);
    for number in 0..3 {
        kill_process(client, Signal::TSTP).expect("it runs");
        let stops = number as usize + 1;
        until("its shell knows", || window.text().matches("topped").count() == stops);
        // Echo, and no mouse: the terminal is as the shell had it.
        window.command(&format!("echo outer-$((300+{number}))"));
        window.until(&format!("outer-{}", 300 + number));
        assert!(!window.text().contains('┌'), "{}", window.text());
        check_is_back(&mut window, number);
    }
}

#[test]
fn a_window_that_is_stopped_without_a_word_shows_everything_when_it_goes_on() {
    let session = Session::new();
    let (mut window, client) = in_shell(&session);
    for number in 0..2 {
        kill_process(client, Signal::STOP).expect("it runs");
        until("its shell knows", || window.text().contains("topped"));
        // The shell finds the terminal as the window had it: Enter is no end of a line.
        window.keys(&format!("stty sane; clear; echo outer-$((300+{number}))\n"));
        window.until(&format!("outer-{}", 300 + number));
        check_is_back(&mut window, number);
    }
}

#[test]
fn the_terminal_of_a_window_that_is_killed_is_as_its_shell_had_it() {
    let session = Session::new();
    let (mut window, _) = in_shell(&session);
    for number in 0..3 {
        let client = session.with_words(&["attach"]);
        kill_process(Pid::from_raw(client[0].cast_signed()).expect("a process"), Signal::KILL)
            .expect("it runs");
        until("the picture has gone", || !window.text().contains('┌'));
        // Echo, and Enter is the end of a line: this shell leaves the settings of a terminal alone.
        window.command(&format!("echo outer-$((300+{number}))"));
        window.until(&format!("outer-{}", 300 + number));
        let written = window.raw();
        for (on, off) in [("\x1b[?1002h", "\x1b[?1002l"), ("\x1b[?1004h", "\x1b[?1004l")] {
            assert!(written.rfind(on) < written.rfind(off), "{off:?} is missing");
        }
        assert_eq!(keyboard_depths(&written).last(), Some(&0));
        window.command("clear; \"$RINGER\" attach");
        window.until("inner-42");
        window.until("┌");
    }
    // It leaves as usual, and gives the terminal back once.
    window.press("d");
    until("it has left", || session.with_words(&["attach"]).is_empty());
    window.command("echo left-$((40+2))");
    window.until("left-42");
    let depths = keyboard_depths(&window.raw());
    assert!(depths.iter().all(|depth| (0..=1).contains(depth)), "{depths:?}");
}

/// How deep the stack of the keyboard's flags is after each sequence that changes it.
fn keyboard_depths(written: &str) -> Vec<i32> {
    let (push, pop) = ("\x1b[>0u", "\x1b[<u");
    let changes = written.match_indices("\x1b[").filter_map(|(at, _)| {
        let rest = &written[at..];
        if rest.starts_with(push) { Some(1) } else { rest.starts_with(pop).then_some(-1) }
    });
    let depth = |depth: &mut i32, change: i32| {
        *depth += change;
        Some(*depth)
    };
    changes.scan(0, depth).collect()
}

#[test]
fn the_flags_of_the_keyboard_do_not_add_up_when_a_window_is_stopped() {
    let session = Session::new();
    let mut window = session.attach();
    let client = Pid::from_raw(window.pid().cast_signed()).expect("a process");
    for rounds in 1..4 {
        kill_process(client, Signal::STOP).expect("it runs");
        until("it is stopped", || is_stopped(client));
        kill_process(client, Signal::CONT).expect("it is stopped");
        until("it is shown again", || keyboard_depths(&window.raw()).len() == 1 + 2 * rounds);
    }
    window.press("d");
    let (written, status) = window.end();
    let depths = keyboard_depths(&written);
    assert!(status.success() && depths.iter().all(|depth| (0..=1).contains(depth)), "{depths:?}");
    assert_eq!(depths.last(), Some(&0), "{depths:?}");
}

fn is_stopped(process: Pid) -> bool {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn a_window_that_leaves_when_it_goes_on_does_not_take_its_terminal_again() {
    let session = Session::new();
    let window = session.attach();
    let client = Pid::from_raw(window.pid().cast_signed()).expect("a process");
    kill_process(client, Signal::STOP).expect("it runs");
    until("it is stopped", || is_stopped(client));
    session.run(&["detach"]);
    kill_process(client, Signal::CONT).expect("it is stopped");
    // Until the server has let go of the terminal, too.
    let (written, status) = window.end();
    assert!(status.success() && written.ends_with("\x1b[?1049l"), "{written:?}");
    assert_eq!(written.matches("\x1b[?1049h").count(), 1, "{written:?}");
}

#[test]
fn a_window_that_was_told_to_leave_is_not_drawn_in_again() {
    let session = Session::new();
    session.open("job", "read line");
    let facts = json!({
        "columns": 80, "lines": 24, "colours": 256, "is_ascii": false, "has_mouse": false, "surface": null,
    });
    let mut client = RawClient::connect(&session, 1, &facts);
    assert_eq!(client.next_kind(), WELCOME);
    session.run(&["detach"]);
    assert!(client.kinds_until(BYE).contains(&OUTPUT));
    // It was stopped, and goes on before it has read that it is to leave.
    client.send(TERMINAL_BACK, &Value::Null);
    client.send(REQUEST, &json!("list"));
    assert_eq!(client.next_kind(), ANSWER);
}

#[test]
fn a_window_that_is_stopped_often_takes_that_for_no_crash() {
    let session = Session::new();
    let (mut window, client) = in_shell(&session);
    let surface = session.surfaces()[0]["id"].as_str().expect("an id").to_owned();
    let has_window = || session.surfaces().iter().any(|surface| surface["focused"] == true);
    // A server that ends three times at once is started again; after the fourth time it is not.
    for number in 0..5 {
        until("it is shown", has_window);
        kill_process(client, Signal::STOP).expect("it runs");
        until("its shell knows", || window.text().contains("topped"));
        // The server draws, and notices that the terminal is with the shell.
        session.run(&["pane", "send", &surface, &format!("clear; echo drawn-$((600+{number}))")]);
        until("the server lets go of it", || !has_window());
        window.keys("stty sane; clear; fg\n");
        window.until(&format!("drawn-{}", 600 + number));
        window.until("┌");
    }
}

#[test]
fn a_window_in_a_session_without_a_terminal_works() {
    let session = Session::new();
    let mut window = session.terminal(&["setsid", "-w", RINGER, "attach"], 24, 80);
    window.until("$ ");
    window.command("echo shown-$((40+2))");
    window.until("shown-42");
    window.press("d");
    assert!(window.end().1.success());
}

#[test]
fn input_and_output_have_to_be_one_terminal() {
    let session = Session::new();
    let _other = session.terminal(&["sh", "-c", "tty > other; exec sleep 1000"], 24, 80);
    let other = session.line_of("other");
    let window = session.terminal(&["sh", "-c", &format!("exec \"$RINGER\" attach < {other}")], 24, 80);
    let (written, status) = window.end();
    assert!(!status.success() && written.contains("two different terminals"), "{written}");
    // The same one under its other name.
    let mut window = session.terminal(&["sh", "-c", "exec \"$RINGER\" attach < /dev/tty"], 24, 80);
    window.until("$ ");
    window.press("d");
    assert!(window.end().1.success());
}

#[test]
fn panes_are_resized_by_a_key_in_another_window() {
    let session = Session::new();
    let mut one = session.window(&["attach"], 30, 120);
    one.until("$ ");
    one.press("|");
    until("two panes", || one.text().matches('┌').count() == 2);
    let mut other = session.window(&["attach"], 30, 120);
    let border =
        |window: &Window| window.lines()[0].chars().collect::<Vec<_>>().iter().rposition(|c| *c == '┌');
    until("both show the same", || border(&one).is_some() && border(&one) == border(&other));
    let before = border(&one);
    one.command("stty size > before");
    let size = session.line_of("before");
    other.press("H");
    until("the border is elsewhere", || border(&one) != before);
    until("in both", || border(&one) == border(&other));
    one.command("stty size > after");
    assert_ne!(session.line_of("after"), size);
}

#[test]
fn an_emoji_of_several_characters_leaves_nothing_behind_in_tmux() {
    let session = Session::new();
    let tmux = Tmux::start(&session.hub, "");
    let program = format!("exec env LC_ALL=C.UTF-8 SHELL=/bin/sh PS1='$ ' {RINGER} attach");
    let pane = tmux.tell(&["new-window", "-P", "-F", "#{pane_id}", &program]);
    let lines = || -> Vec<String> {
        let text = tmux.tell(&["capture-pane", "-p", "-t", &pane]);
        text.lines().map(ToOwned::to_owned).collect()
    };
    // The first line of the pane, between its borders.
    let first =
        || lines().get(1).and_then(|line| Some(line.split_once("││")?.1.to_owned())).unwrap_or_default();
    let types = |line: &str| tmux.tell(&["send-keys", "-t", &pane, "-l", &format!("{line}\n")]);
    until("a shell waits", || first().starts_with("$ "));
    types("clear; printf '\\360\\237\\221\\251\\342\\200\\215\\360\\237\\221\\247 X\\n'");
    until("both are shown once", || first().starts_with("👩👧 X "));
    types("clear; echo next-$((40+2))");
    until("they have gone", || first().starts_with("next-42 "));
    assert!(!lines().concat().contains('👩'), "{}", lines().join("\n"));
}

#[test]
fn a_terminal_that_says_no_size_shows_panes() {
    let session = Session::new();
    let attach = format!("stty rows 0 cols 0; exec {RINGER} attach");
    let window = session.terminal(&["sh", "-c", &attach], 24, 80);
    window.until("$ ");
    window.until("^g ? keys");
}
