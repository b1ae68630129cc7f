//! Reads an agent's state from the window title. Clients set it in every terminal.

use std::time::Duration;

/// The state of an agent that its title shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TitleMeaning {
    /// Waiting for input.
    Idle,
    /// In a turn.
    Busy,
    /// Needs a person.
    Blocked,
}

/// A client's prefix for its titles. Prefixes are compared in the order of the table.
struct TitlePrefix {
    client: &'static str,
    prefix: &'static str,
    meaning: TitleMeaning,
}

const fn prefix(client: &'static str, prefix: &'static str, meaning: TitleMeaning) -> TitlePrefix {
    TitlePrefix { client, prefix, meaning }
}

/// Taken from recordings of the real clients. Any other braille pattern counts as a spinner too (Codex uses
/// ⠋ ⠙ ⠹ ⠸ ⠼ ⠴ ⠦ ⠧ ⠇ ⠏), and a title without a prefix is idle (Codex, opencode).
const TITLE_PREFIXES: [TitlePrefix; 10] = [
    prefix("claude", "✳", TitleMeaning::Idle),
    prefix("claude", "⠂", TitleMeaning::Busy),
    prefix("claude", "⠐", TitleMeaning::Busy),
    prefix("claude", "◐", TitleMeaning::Busy),
    prefix("claude", "◑", TitleMeaning::Busy),
    prefix("codex", "[ ! ] Action Required", TitleMeaning::Blocked),
    prefix("codex", "[ . ] Action Required", TitleMeaning::Blocked),
    prefix("gemini", "◇", TitleMeaning::Idle),
    prefix("gemini", "✦", TitleMeaning::Busy),
    prefix("gemini", "✋", TitleMeaning::Blocked),
];

/// The parts of a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedTitle<'a> {
    /// The meaning of the prefix; [`TitleMeaning::Idle`] without one.
    pub meaning: TitleMeaning,
    /// The client that uses the prefix, if only one does.
    pub client: Option<&'static str>,
    /// The text after the prefix: the task, or the client's name.
    pub task: &'a str,
}

/// Parses a title with the table of prefixes.
///
/// ```
/// use ringer_term::{parse_title, TitleMeaning};
///
/// let title = parse_title("◐ fix the tests");
/// assert_eq!((title.meaning, title.client, title.task), (TitleMeaning::Busy, Some("claude"), "fix the tests"));
/// ```
pub fn parse_title(title: &str) -> ParsedTitle<'_> {
    let title = title.trim();
    if let Some((found, rest)) =
        TITLE_PREFIXES.iter().find_map(|entry| Some((entry, title.strip_prefix(entry.prefix)?)))
    {
        let task = rest.trim_start_matches(['\u{fe0f}', ' ', '|']);
        return ParsedTitle { meaning: found.meaning, client: Some(found.client), task };
    }
    match title.strip_prefix(|first| matches!(first, '\u{2800}'..='\u{28ff}')) {
        Some(rest) => ParsedTitle { meaning: TitleMeaning::Busy, client: None, task: rest.trim_start() },
        None => ParsedTitle { meaning: TitleMeaning::Idle, client: None, task: title },
    }
}

/// A change of state that the titles show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TitleChange {
    /// The first title of any kind: the client has drawn itself and takes input.
    Ready,
    /// A turn started.
    Started {
        /// The task in the title.
        task: String,
    },
    /// The turn ended: complete, or blocked. Claude Code shows the same ✳ for both; a hook can tell which.
    Ended {
        /// The task in the title.
        task: String,
    },
    /// The agent needs a person, and its title shows it.
    Blocked {
        /// The task in the title.
        task: String,
    },
    /// The title was cleared: the client exited.
    Exited,
}

/// A busy period that begins and ends within this time after the first title is ignored, because clients show their spinner
/// while they start.
pub const TITLE_DEBOUNCE: Duration = Duration::from_secs(3);

/// Follows the titles of one terminal.
///
/// Time is an argument, from any clock that does not jump.
#[derive(Debug, Clone)]
pub struct TitleTracker {
    debounce: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    Seen {
        first: Duration,
        /// The last meaning that was not ignored.
        meaning: TitleMeaning,
        /// A spinner was seen that may still be part of the start.
        flicker: bool,
    },
}

impl Default for TitleTracker {
    fn default() -> Self {
        Self::new(TITLE_DEBOUNCE)
    }
}

impl TitleTracker {
    /// Creates a tracker that ignores flicker for this long after the first title.
    pub fn new(debounce: Duration) -> Self {
        Self { debounce, state: State::Unseen }
    }

    /// Handles the next title. Returns the change.
    ///
    /// Within the debounce time a spinner is not reported. If the title is idle again before the time is over, nothing is
    /// reported.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringer_term::{TitleTracker, TitleChange};
    ///
    /// let mut tracker = TitleTracker::default();
    /// let at = Duration::from_secs;
    /// assert_eq!(tracker.observe(at(0), "✳ Claude Code"), Some(TitleChange::Ready));
    /// assert_eq!(tracker.observe(at(9), "◐ fix it"), Some(TitleChange::Started { task: "fix it".into() }));
    /// assert_eq!(tracker.observe(at(10), "◑ fix it"), None);
    /// assert_eq!(tracker.observe(at(11), "✳ fix it"), Some(TitleChange::Ended { task: "fix it".into() }));
    /// ```
    pub fn observe(&mut self, now: Duration, title: &str) -> Option<TitleChange> {
        if title.trim().is_empty() {
            let seen = self.state != State::Unseen;
            self.state = State::Unseen;
            return seen.then_some(TitleChange::Exited);
        }
        let ParsedTitle { meaning, task, .. } = parse_title(title);
        let busy = meaning == TitleMeaning::Busy;
        let State::Seen { first, meaning: before, flicker } = self.state else {
            let meaning = if busy { TitleMeaning::Idle } else { meaning };
            self.state = State::Seen { first: now, meaning, flicker: busy };
            return Some(TitleChange::Ready);
        };
        let settled = now.saturating_sub(first) >= self.debounce;
        if busy && !settled && before != meaning {
            self.state = State::Seen { first, meaning: before, flicker: true };
            return None;
        }
        self.state = State::Seen { first, meaning, flicker: false };
        let task = task.to_owned();
        match meaning {
            _ if before != meaning => Some(match meaning {
                TitleMeaning::Idle => TitleChange::Ended { task },
                TitleMeaning::Busy => TitleChange::Started { task },
                TitleMeaning::Blocked => TitleChange::Blocked { task },
            }),
            // A spinner that lasted beyond the debounce time was a turn, even if no further frame of it arrived.
            TitleMeaning::Idle if flicker && settled => Some(TitleChange::Ended { task }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(titles: &[(u64, &str)]) -> Vec<(u64, String)> {
        let mut tracker = TitleTracker::default();
        titles
            .iter()
            .filter_map(|(ms, title)| {
                let turn = tracker.observe(Duration::from_millis(*ms), title)?;
                Some((*ms, format!("{turn:?}").split([' ', '{']).next().unwrap_or_default().to_owned()))
            })
            .collect()
    }

    fn check(titles: &[(u64, &str)], expected: &[(u64, &str)]) {
        let expected: Vec<(u64, String)> = expected.iter().map(|(ms, turn)| (*ms, (*turn).into())).collect();
        assert_eq!(turns(titles), expected, "{titles:?}");
    }

    #[test]
    fn every_sign_of_the_table() {
        for sign in &TITLE_PREFIXES {
            let title = format!("{} a task", sign.prefix);
            let read = parse_title(&title);
            assert_eq!((read.meaning, read.client, read.task), (sign.meaning, Some(sign.client), "a task"));
        }
        for spinner in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⣾".chars() {
            assert_eq!(parse_title(&format!("{spinner} x")).meaning, TitleMeaning::Busy);
        }
        assert_eq!(parse_title("[ ! ] Action Required | project").task, "project");
        assert_eq!(parse_title("◇  Ready (project)      ").task, "Ready (project)");
        assert_eq!(parse_title("vim notes.txt").meaning, TitleMeaning::Idle);
    }

    #[test]
    fn a_turn_from_start_to_end() {
        check(
            &[(0, "✳ Claude Code"), (5000, "⠂ x"), (6000, "⠐ x"), (7000, "✳ x"), (9000, "")],
            &[(0, "Ready"), (5000, "Started"), (7000, "Ended"), (9000, "Exited")],
        );
    }

    #[test]
    fn codex_has_no_idle_sign_and_reports_when_it_is_blocked() {
        check(
            &[
                (0, "project"),
                (5000, "⠋ project"),
                (6000, "[ ! ] Action Required | project"),
                (7000, "[ . ] Action Required | project"),
                (8000, "⠙ project"),
                (9000, "project"),
            ],
            &[(0, "Ready"), (5000, "Started"), (6000, "Blocked"), (8000, "Started"), (9000, "Ended")],
        );
    }

    #[test]
    fn gemini() {
        check(
            &[
                (0, "◇  Ready (p)"),
                (4000, "✦  Working… (p)"),
                (5000, "✋  Action Required (p)"),
                (6000, "◇  Ready (p)"),
            ],
            &[(0, "Ready"), (4000, "Started"), (5000, "Blocked"), (6000, "Ended")],
        );
    }

    #[test]
    fn flicker_at_startup_is_ignored() {
        check(&[(0, "✳ C"), (200, "⠂ C"), (400, "✳ C"), (500, "✳ C")], &[(0, "Ready")]);
        check(&[(0, "⠂ C"), (400, "✳ C")], &[(0, "Ready")]);
        // Work that continues is reported as soon as it cannot be flicker any more.
        check(
            &[(0, "✳ C"), (2000, "⠂ C"), (3100, "⠐ C"), (4000, "✳ C")],
            &[(0, "Ready"), (3100, "Started"), (4000, "Ended")],
        );
        check(&[(0, "✳ C"), (2000, "⠂ C"), (4000, "✳ C")], &[(0, "Ready"), (4000, "Ended")]);
    }

    #[test]
    fn settling_can_be_set() {
        let mut tracker = TitleTracker::new(Duration::ZERO);
        tracker.observe(Duration::ZERO, "✳ C");
        assert!(matches!(tracker.observe(Duration::ZERO, "⠂ C"), Some(TitleChange::Started { .. })));
    }

    proptest! {
        /// Between two starts there is an end, a block or an exit, and nothing ends twice.
        #[test]
        fn turns_alternate(titles in prop::collection::vec(prop::sample::select(vec!["✳ a", "⠂ a", "◐ b", "x", "✋ c", ""]), 0..60),
                           step in 0u64..2000) {
            let mut tracker = TitleTracker::default();
            let mut last: Option<TitleChange> = None;
            for (index, title) in (0u64..).zip(titles) {
                if let Some(turn) = tracker.observe(Duration::from_millis(index * step), title) {
                    match (&last, &turn) {
                        (None | Some(TitleChange::Exited), turn) => prop_assert_eq!(turn, &TitleChange::Ready),
                        (Some(TitleChange::Started { .. }), turn) => { let odd = matches!(turn, TitleChange::Started { .. } | TitleChange::Ready); prop_assert!(!odd) },
                        (Some(TitleChange::Blocked { .. }), turn) => { let odd = matches!(turn, TitleChange::Blocked { .. } | TitleChange::Ready); prop_assert!(!odd) },
                        (Some(_), turn) => prop_assert_ne!(turn, &TitleChange::Ready),
                    }
                    last = Some(turn);
                }
            }
        }
    }
}
