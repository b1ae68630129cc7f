//! Keys, pastes, clicks and focus reach the programs that want them, and what these copy reaches the terminal.

use std::fs::{self, File};

use test_support::until;

use super::session::Session;
use super::window::Window;
use crate::ringer::check;

/// A window whose shell shows the bytes it gets, after it has set these modes.
fn shows_bytes(session: &Session, modes: &str) -> Window {
    let mut window = session.attach();
    window.command(&format!("stty -icanon -echo; printf '{modes}ready-'; printf now; exec cat -v"));
    window.until("ready-now");
    window
}

#[test]
fn a_paste_is_whole_for_a_program_that_asks_and_typed_for_another() {
    let session = Session::new();
    let mut window = shows_bytes(&session, "\\033[?2004h");
    window.keys("\x1b[200~one \x1b[31mtwo\x1b[201~");
    window.until("^[[200~one [31mtwo^[[201~");
    session.open("other", "cat -v");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.keys("\x1b[200~two\nlines\x1b[201~");
    until("both lines", || window.text().matches("two").count() == 3);
    window.until("lines");
    assert!(!window.text().contains("^[[200~two"));
}

#[test]
fn a_text_is_typed_whole_or_not_at_all() {
    let session = Session::new();
    let reads = "until [ -e go ]; do sleep 0.1; done; head -c 6000000 | wc -c > got; read line";
    session.open("deaf", &format!("stty raw -echo; : > ready; {reads}"));
    until("it does not read", || session.file("ready").exists());
    let mut window = session.window(&["attach"], 30, 120);
    let send = |length: usize, exit: i32| {
        let text = session.file("text");
        fs::write(&text, vec![b'a'; length]).expect("a file");
        let mut command = session.hub.ringer(&["pane", "send", "--no-enter", "deaf", "-"]);
        command.envs(session.variables()).stdin(File::open(text).expect("a file"));
        check(&mut command, exit).1
    };
    let too_long = send(5_000_000, 65);
    assert!(too_long.contains("too long") && too_long.contains("hint: split"), "{too_long}");
    send(3_000_000, 0);
    send(3_000_000, 0);
    let refused = send(10, 75);
    assert!(refused.contains("has not read what was typed before; nothing was typed"), "{refused}");
    window.keys("x");
    window.until("the program does not read");
    fs::write(session.file("go"), "").expect("a file");
    assert_eq!(session.line_of("got"), "6000000");
}

#[test]
fn focus_is_told_to_programs_that_ask() {
    let session = Session::new();
    let mut window = shows_bytes(&session, "\\033[?1004h");
    window.set_focus(true);
    window.until("^[[I");
    window.press("|");
    window.until("^[[O");
    window.press("h");
    until("it has the focus again", || window.text().matches("^[[I").count() == 2);
    window.set_focus(false);
    until("it has lost it", || window.text().matches("^[[O").count() == 2);
}

#[test]
fn a_click_gives_a_pane_the_keys() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo left=$$");
    let left = window.number_after("left=");
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.keys("\x1b[<0;25;10M\x1b[<0;25;10m");
    window.command("echo clicked=$$");
    assert_eq!(window.number_after("clicked="), left);
}

#[test]
fn the_mouse_is_for_a_program_that_asks_with_places_of_its_own() {
    let session = Session::new();
    let mut window = shows_bytes(&session, "\\033[?1002h\\033[?1006h");
    // The sidebar has 16 columns, and the border one of each.
    window.keys("\x1b[<0;25;10M");
    window.until("^[[<0;8;9M");
    window.keys("\x1b[<32;26;11M\x1b[<0;26;11m\x1b[<64;26;11M");
    window.until("^[[<32;9;10M^[[<0;9;10m^[[<64;9;10M");
}

#[test]
fn keys_of_the_kitty_keyboard_pass_through() {
    let session = Session::new();
    let mut window = shows_bytes(&session, "\\033[>1u");
    until("the terminal is asked for them", || window.raw().contains("\x1b[=1;1u"));
    window.keys("\x1b[97;5u");
    window.until("^[[97;5u");
    // The prefix works in this form too.
    window.keys("\x1b[103;5u|");
    until("two panes", || window.text().matches('┌').count() == 2);
    until("they are for the other program", || window.raw().contains("\x1b[=0;1u"));
}

#[test]
fn what_a_program_copies_and_what_is_selected_is_in_the_clipboard() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("printf '\\033]52;c;aGVsbG8=\\007'");
    until("it is copied", || window.raw().contains("\x1b]52;c;aGVsbG8="));
    window.command("clear; echo wor''ld");
    window.until("world");
    let line = window.lines().iter().position(|line| line.contains("world")).expect("it is shown");
    let column = window.lines()[line].chars().position(|char| char == 'w').expect("it is shown");
    let at = |column: usize| format!("{};{}", column + 1, line + 1);
    window.keys(&format!("\x1b[<0;{}M\x1b[<32;{}M", at(column), at(column + 2)));
    window.keys(&format!("\x1b[<32;{0}M\x1b[<0;{0}m", at(column + 4)));
    until("it is copied", || window.raw().contains("\x1b]52;c;d29ybGQ="));
    window.until("copied");
    // It does not stay.
    window.until_not("copied");
}

#[test]
fn what_was_scrolled_away_is_found() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("seq 1000 1300; echo end-$((40+2))");
    window.until("end-42");
    assert!(!window.text().contains("1057"));
    window.press("/");
    window.until("search:");
    window.keys("1057\r");
    window.until("1057");
    window.until("lines back");
    window.keys("q");
    window.until("end-42");
    // The wheel.
    window.keys("\x1b[<64;30;10M");
    window.until("lines back");
    window.keys("echo typed");
    window.until_not("lines back");
}

#[test]
fn an_update_that_is_not_ended_is_shown_all_the_same() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("clear; printf '\\033[?2026hhel'; printf 'd back'; read line");
    window.until("held back");
}

#[test]
fn questions_of_programs_are_answered() {
    let session = Session::new();
    let mut window = shows_bytes(
        &session,
        "\\033]7501;?\\033\\\\\\\\\\033]99;i=q1:p=?;\\033\\\\\\\\\\033[c\\033[5n\\033[?u\\033[>q",
    );
    window.until("^[]7501;");
    window.until("^[]99;i=q1:p=?");
    window.until("^[[0n");
    window.until("^[[?0u");
    window.keys("x");
}

#[test]
fn the_prefix_twice_is_for_the_program() {
    let session = Session::new();
    let mut window = shows_bytes(&session, "");
    window.press("\x07");
    window.until("^G");
    // Keys that are split, and Escape alone.
    window.keys("\x1b");
    window.until("^[");
    window.keys("\x1bOA\x1b[1;5C");
    window.until("^[OA^[[1;5C");
}

#[test]
fn a_paste_without_an_end_makes_no_window_deaf() {
    let session = Session::new();
    let mut window = session.attach();
    window.keys("\x1b[200~half a paste");
    window.until("half a paste");
    // It goes on, and no key of panes is found in it.
    window.keys(" and\x07d the rest");
    window.until("the rest");
    window.keys("\x03");
    until("another prompt", || window.text().matches("$ ").count() == 2);
    window.press("d");
    assert!(window.end().1.success());
}
