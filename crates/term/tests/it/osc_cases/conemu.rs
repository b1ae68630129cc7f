//! ConEmu's twelve commands, which share OSC 9 with iTerm2's notification.
//!
//! A number from 1 to 12 and a `;` is a ConEmu command, whatever follows: a popup that reads "4;5" helps nobody. A number
//! alone, or followed by anything else, is a text. Some terminals treat some of these cases differently.

use ringer_term::{Percent, Progress, Prompt, PromptMark, Protocol, TerminalEventKind};

use super::{check, check_silent, notification};

#[test]
fn a_number_without_a_semicolon_is_a_text() {
    for number in 1..=13 {
        for text in [format!("{number}"), format!("{number}a"), format!("{number} done")] {
            check(&format!("9;{text}"), &[notification(Protocol::Osc9, "", &text)]);
        }
    }
    for text in ["13;x", "0;x", "04;1;50", "99;x", "-1;x"] {
        check(&format!("9;{text}"), &[notification(Protocol::Osc9, "", text)]);
    }
}

#[test]
fn irrelevant_commands_have_no_event() {
    // Sleep, message box, tab title, wait for a key, macro, run, print a variable, emulation, comment.
    for number in [1, 2, 3, 5, 6, 7, 8, 10, 11] {
        for argument in ["", "   ", "0", "250", "99999", "some text", "a;b", "-", "é"] {
            check(&format!("9;{number};{argument}"), &[]);
        }
    }
}

#[test]
fn progress_with_its_value() {
    type State = fn(Option<Percent>) -> Progress;
    let states: [(u8, State); 3] = [(1, Progress::Set), (2, Progress::Error), (4, Progress::Paused)];
    for (number, state) in states {
        for (value, expect) in [
            (";0", Percent::new(0)),
            (";7", Percent::new(7)),
            (";070", Percent::new(70)),
            (";99", Percent::new(99)),
            (";100", Percent::new(100)),
            // Programs overshoot, and terminals show a full bar.
            (";101", Percent::new(100)),
            (";640", Percent::new(100)),
            (";99999999999999999999999", Percent::new(100)),
            (";50;", Percent::new(50)),
            (";50;more", Percent::new(50)),
            ("", None),
            (";", None),
            (";x", None),
            (";-5", None),
            (";5x", None),
        ] {
            check(&format!("9;4;{number}{value}"), &[TerminalEventKind::Progress(state(expect))]);
        }
    }
}

#[test]
fn progress_without_a_value() {
    for (number, progress) in [(0, Progress::Clear), (3, Progress::Indeterminate)] {
        for rest in ["", ";", ";;", ";50", ";50;", ";x"] {
            check(&format!("9;4;{number}{rest}"), &[TerminalEventKind::Progress(progress)]);
        }
    }
}

#[test]
fn progress_with_an_unknown_state_has_no_event() {
    check_silent(&[
        "9;4;",
        "9;4;5",
        "9;4;5;50",
        "9;4;9",
        "9;4;1x",
        "9;4;10;50",
        "9;4;x",
        "9;4;;",
        "9;4; 1;50",
    ]);
}

#[test]
fn the_working_directory() {
    for place in ["C:\\code", "/srv/code", "a;b", ""] {
        check(&format!("9;9;{place}"), &[TerminalEventKind::Cwd(place.to_owned())]);
    }
}

#[test]
fn the_begin_of_a_prompt() {
    let prompt = TerminalEventKind::Prompt(Prompt { mark: PromptMark::PromptStart, exit_code: None });
    for rest in ["", "x", "a;b"] {
        check(&format!("9;12;{rest}"), std::slice::from_ref(&prompt));
    }
}
