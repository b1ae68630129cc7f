//! The turns that the titles of each recording show, taken from its manifest.
//!
//! A spinner within three seconds of the first title may be the flicker of a start-up, so the first turn of a client
//! with an immediate task starts with the first frame after that time.

use std::time::Duration;

use ringer_term::{Scanner, TerminalEventKind, TitleChange, TitleTracker};

use super::recording::recordings;

/// Observes the titles at the times of the reads that completed them.
fn turns(name: &str) -> Vec<(Duration, TitleChange)> {
    let recording = recordings().into_iter().find(|recording| recording.name == name).unwrap();
    let (mut scanner, mut tracker, mut turns) = (Scanner::new(), TitleTracker::default(), Vec::new());
    for read in &recording.reads {
        scanner.feed(recording.read(read), |event| {
            if let TerminalEventKind::Title(title) = event.kind {
                turns.extend(tracker.observe(read.at, &title).map(|turn| (read.at, turn)));
            }
        });
    }
    turns
}

fn check(name: &str, expected: &[(f64, TitleChange)]) {
    let expected: Vec<(Duration, TitleChange)> =
        expected.iter().map(|(at, turn)| (Duration::from_secs_f64(*at), turn.clone())).collect();
    assert_eq!(turns(name), expected, "{name}");
}

fn started(task: &str) -> TitleChange {
    TitleChange::Started { task: task.to_owned() }
}

fn ended(task: &str) -> TitleChange {
    TitleChange::Ended { task: task.to_owned() }
}

fn blocked(task: &str) -> TitleChange {
    TitleChange::Blocked { task: task.to_owned() }
}

/// One turn up to the permission prompt, where the title is that of an idle client, and one after it.
fn check_claude(name: &str, task: &str, at: [f64; 6]) {
    check(
        name,
        &[
            (at[0], TitleChange::Ready),
            (at[1], started(task)),
            (at[2], ended(task)),
            (at[3], started(task)),
            (at[4], ended(task)),
            (at[5], TitleChange::Exited),
        ],
    );
}

#[test]
fn claude_code_works_asks_and_works_again() {
    let task = "Claude Code";
    check_claude("claude_kitty", task, [0.6635, 4.3686, 8.4711, 17.6126, 19.948, 22.7389]);
    check_claude("claude_kitty_idle5s", task, [2.7381, 6.4259, 13.076, 22.3213, 24.8066, 36.598]);
    check_claude("claude_ghostty", task, [2.4421, 5.7501, 10.1341, 19.3033, 21.5147, 24.3186]);
    check_claude("claude_iterm2", task, [1.1104, 4.4246, 9.1114, 18.1519, 20.4015, 23.1812]);
}

#[test]
fn older_claude_code_names_its_task_and_spins_in_braille() {
    check_claude("claude_kitty_v197", "mock title", [2.6, 5.608, 10.3078, 19.4549, 21.6577, 24.3715]);
}

#[test]
fn claude_code_that_reports_its_status_by_osc7501_keeps_its_title() {
    check("claude_osc7501_kinds", &[(0.52, TitleChange::Ready), (13.968, TitleChange::Exited)]);
    check("claude_tmux_kitty_forced", &[(3.3388, TitleChange::Ready), (26.9887, TitleChange::Exited)]);
}

#[test]
fn codex_reports_in_its_title_that_it_is_blocked() {
    for (name, task, at) in [
        ("codex_kitty", "codex_tui_kitty", [0.7545, 3.7664, 5.3283, 7.431, 9.5345, 11.7105]),
        ("codex_xterm", "codex_tui_xterm", [0.8622, 3.8635, 5.3145, 7.4603, 9.6882, 12.0265]),
    ] {
        check(
            name,
            &[
                (at[0], TitleChange::Ready),
                (at[1], started(task)),
                (at[2], blocked(task)),
                (at[3], started(task)),
                (at[4], ended(task)),
                (at[5], TitleChange::Exited),
            ],
        );
    }
}

#[test]
fn gemini_pads_its_titles_and_names_the_state_in_them() {
    check(
        "gemini_kitty",
        &[
            (3.6283, TitleChange::Ready),
            (6.9453, started("Working… (gemini_kitty)")),
            (9.2314, blocked("Action Required (gemini_kitty)")),
            (11.4236, started("Working… (gemini_kitty)")),
            (13.5261, ended("Ready (gemini_kitty)")),
            (17.4407, TitleChange::Exited),
        ],
    );
}
