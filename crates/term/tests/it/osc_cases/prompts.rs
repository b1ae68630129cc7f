//! OSC 133: the marks of a shell around its prompt. The exit code is the only option that is parsed.

use ringer_term::{Prompt, PromptMark, TerminalEventKind};

use super::{check, check_silent};

#[track_caller]
fn check_mark(payload: &str, mark: PromptMark, exit_code: Option<i32>) {
    check(payload, &[TerminalEventKind::Prompt(Prompt { mark, exit_code })]);
}

const MARKS: [(&str, PromptMark); 7] = [
    ("A", PromptMark::PromptStart),
    ("N", PromptMark::PromptStart),
    ("P", PromptMark::PromptStart),
    ("B", PromptMark::InputStart),
    ("I", PromptMark::InputStart),
    ("C", PromptMark::OutputStart),
    ("D", PromptMark::CommandEnd),
];

#[test]
fn every_mark_is_read_with_any_options() {
    for (letter, mark) in MARKS {
        check_mark(&format!("133;{letter}"), mark, None);
        for options in [
            "",
            ";",
            "bare",
            "aid=7",
            "aid=a=b",
            "aid=shell;cl=line",
            "cl=m",
            "cl=nonsense",
            "redraw=0",
            "redraw=maybe",
            "k=i",
            "k=s",
            "k=?",
            "err=x",
        ] {
            check_mark(&format!("133;{letter};{options}"), mark, None);
        }
    }
}

/// The command line is quoted in two ways, and often wrongly. It is not parsed.
#[test]
fn the_command_line_may_be_anything() {
    for line in [
        "cmdline=",
        "cmdline=cargo test",
        "cmdline=cargo\\ntest",
        "cmdline='cargo test'",
        "cmdline=$'cargo test'",
        "cmdline='cargo test",
        "cmdline=$'cargo test",
        "cmdline=$'",
        "cmdline_url=cargo%20test",
        "cmdline_url=cargo%3btest",
        "cmdline_url=cargo%3test",
        "cmdline_url=cargo test%2",
        "cmdline_url=cargo test%",
        "cmdline_url=%%%",
    ] {
        check_mark(&format!("133;C;{line}"), PromptMark::OutputStart, None);
    }
}

#[test]
fn the_exit_code_is_the_first_option_of_a_command_end() {
    for (options, code) in [
        ("0", Some(0)),
        ("1", Some(1)),
        ("130", Some(130)),
        ("-1", Some(-1)),
        ("12;aid=shell", Some(12)),
        ("0;err=x;aid=shell", Some(0)),
        ("aid=shell;12", None),
        ("x", None),
        ("1x", None),
        ("", None),
        ("99999999999", None),
    ] {
        check_mark(&format!("133;D;{options}"), PromptMark::CommandEnd, code);
    }
    check_mark("133;A;7", PromptMark::PromptStart, None);
}

#[test]
fn a_fresh_line_has_no_options() {
    check_mark("133;L", PromptMark::FreshLine, None);
    check_silent(&["133;L;", "133;L;aid=shell", "133;Line"]);
}

#[test]
fn other_letters_have_no_event() {
    for (letter, _) in MARKS {
        check(&format!("133;{letter}x"), &[]);
        check(&format!("133;{}", letter.to_lowercase()), &[]);
    }
    check_silent(&["133", "133;", "133;;A", "133; A", "133;Z", "133;É"]);
}
