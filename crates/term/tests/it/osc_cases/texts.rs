//! OSC 0 and 2 (titles), OSC 9 and 777 (notifications), OSC 7 (the working directory).

use ringer_term::{Protocol, TerminalEventKind};

use super::{check, check_silent, notification};

#[test]
fn a_title_is_unchanged() {
    for number in ["0", "2"] {
        for title in ["x", "make: all green", "a;b;;c", "— ‐ é 🔔", "  spaces  ", ""] {
            check(&format!("{number};{title}"), &[TerminalEventKind::Title(title.to_owned())]);
        }
    }
}

#[test]
fn an_icon_name_is_not_a_title() {
    check_silent(&["1;x", "1;"]);
}

/// An OSC has at most 8 KiB: no title that a person reads is longer.
#[test]
fn a_title_of_eight_kibibytes_is_the_longest() {
    const LONGEST: usize = 8 * 1024 - "0;".len();
    for length in [1_000, 2_047, 2_048, 2_050, LONGEST] {
        let title = "a".repeat(length);
        check(&format!("0;{title}"), &[TerminalEventKind::Title(title)]);
    }
    check_silent(&[&format!("0;{}", "a".repeat(LONGEST + 1)), &format!("2;{}", "é".repeat(LONGEST))]);
}

#[test]
fn osc9_is_a_text() {
    for text in ["the tests pass", "x", "a;b", ";", "15 files", "é 🔔", " "] {
        check(&format!("9;{text}"), &[notification(Protocol::Osc9, "", text)]);
    }
    check_silent(&["9", "9;"]);
}

/// Older clients put newlines in front of it.
#[test]
fn newlines_before_a_text_are_removed() {
    check("9;\n\ndone\n", &[notification(Protocol::Osc9, "", "done\n")]);
    check_silent(&["9;\n\n"]);
}

#[test]
fn osc777_has_a_title_and_a_body() {
    for (payload, title, body) in [
        ("777;notify;Build;all green", "Build", "all green"),
        ("777;notify;Build;a;b", "Build", "a;b"),
        ("777;notify;Build;", "Build", ""),
        ("777;notify;Build", "Build", ""),
        ("777;notify;;all green", "", "all green"),
    ] {
        check(payload, &[notification(Protocol::Osc777, title, body)]);
    }
    check_silent(&["777;notify;;", "777;notify;", "777;notify", "777;precmd;x;y", "777;Notify;x;y", "777;"]);
}

#[test]
fn the_working_directory_is_unchanged() {
    for place in ["file:///srv/code", "file://host/srv/a%20b", "kitty-shell-cwd://host/srv", "/srv/a;b", ""] {
        check(&format!("7;{place}"), &[TerminalEventKind::Cwd(place.to_owned())]);
    }
}

#[test]
fn other_numbers_have_no_event() {
    check_silent(&[
        "",
        ";",
        "x",
        "4;1;red",
        "10;?",
        "11;#000",
        "52;c;eA==",
        "1337;File=x",
        "00;x",
        "09;x",
        "099;;x",
    ]);
}
