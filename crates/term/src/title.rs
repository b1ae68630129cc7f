//! The window title tells what an agent is doing, whatever terminal it believes itself in.

use std::time::Duration;

/// What a title says about the agent behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleMeaning {
    /// Waiting for input.
    Idle,
    /// In a turn.
    Busy,
    /// Needs somebody.
    Blocked,
}

/// How one client marks its titles. Signs are matched at the start, in the order of the table.
struct Sign {
    client: &'static str,
    prefix: &'static str,
    meaning: TitleMeaning,
}

const fn sign(client: &'static str, prefix: &'static str, meaning: TitleMeaning) -> Sign {
    Sign { client, prefix, meaning }
}

/// Seen in recordings of the real clients. Any other braille pattern is some client's spinner too (Codex turns
/// through ⠋ ⠙ ⠹ ⠸ ⠼ ⠴ ⠦ ⠧ ⠇ ⠏), and a title without a sign is idle (Codex, opencode).
const SIGNS: [Sign; 10] = [
    sign("claude", "✳", TitleMeaning::Idle),
    sign("claude", "⠂", TitleMeaning::Busy),
    sign("claude", "⠐", TitleMeaning::Busy),
    sign("claude", "◐", TitleMeaning::Busy),
    sign("claude", "◑", TitleMeaning::Busy),
    sign("codex", "[ ! ] Action Required", TitleMeaning::Blocked),
    sign("codex", "[ . ] Action Required", TitleMeaning::Blocked),
    sign("gemini", "◇", TitleMeaning::Idle),
    sign("gemini", "✦", TitleMeaning::Busy),
    sign("gemini", "✋", TitleMeaning::Blocked),
];

/// A title taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTitle<'a> {
    /// What the sign says; [`TitleMeaning::Idle`] without one.
    pub meaning: TitleMeaning,
    /// The client whose sign it is, where only one has it.
    pub client: Option<&'static str>,
    /// The text after the sign: the task, or the client's name.
    pub task: &'a str,
}

/// Reads a title with the table of signs.
///
/// ```
/// use ringer_term::{read_title, TitleMeaning};
///
/// let title = read_title("◐ fix the tests");
/// assert_eq!((title.meaning, title.client, title.task), (TitleMeaning::Busy, Some("claude"), "fix the tests"));
/// ```
pub fn read_title(title: &str) -> ReadTitle<'_> {
    let title = title.trim();
    if let Some((sign, rest)) = SIGNS.iter().find_map(|sign| Some((sign, title.strip_prefix(sign.prefix)?))) {
        let task = rest.trim_start_matches(['\u{fe0f}', ' ', '|']);
        return ReadTitle { meaning: sign.meaning, client: Some(sign.client), task };
    }
    match title.strip_prefix(|first| matches!(first, '\u{2800}'..='\u{28ff}')) {
        Some(rest) => ReadTitle { meaning: TitleMeaning::Busy, client: None, task: rest.trim_start() },
        None => ReadTitle { meaning: TitleMeaning::Idle, client: None, task: title },
    }
}

/// A change that the titles tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The first title of any kind: the client has drawn itself and takes input.
    Ready,
    /// A turn started.
    Started {
        /// What the title says the agent works on.
        task: String,
    },
    /// The turn ended: complete, or blocked. Claude Code shows the same ✳ for both, so a better signal may say more.
    Ended {
        /// What the agent worked on.
        task: String,
    },
    /// The agent needs somebody, and its title says so.
    Blocked {
        /// What the agent works on.
        task: String,
    },
    /// The title was taken back: the client exited.
    Exited,
}

/// How long after the first title a short spell of work is taken for the client starting up.
pub const SETTLE: Duration = Duration::from_secs(3);

/// Follows the titles of one terminal.
///
/// Time is an argument: any clock that does not jump.
#[derive(Debug, Clone)]
pub struct TitleTracker {
    settle: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    Seen {
        first: Duration,
        /// The last meaning that counted.
        meaning: TitleMeaning,
        /// A spinner was seen since that could still be the flicker of a start-up.
        flicker: bool,
    },
}

impl Default for TitleTracker {
    fn default() -> Self {
        Self::new(SETTLE)
    }
}

impl TitleTracker {
    /// A tracker that ignores flicker for this long after the first title.
    pub fn new(settle: Duration) -> Self {
        Self { settle, state: State::Unseen }
    }

    /// Takes the next title. Gives what changed.
    ///
    /// Within the settling time a spinner is not reported before it outlasts that time, and if the title goes back
    /// before, nothing happened.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ringer_term::{TitleTracker, Turn};
    ///
    /// let mut tracker = TitleTracker::default();
    /// let at = Duration::from_secs;
    /// assert_eq!(tracker.observe(at(0), "✳ Claude Code"), Some(Turn::Ready));
    /// assert_eq!(tracker.observe(at(9), "◐ fix it"), Some(Turn::Started { task: "fix it".into() }));
    /// assert_eq!(tracker.observe(at(10), "◑ fix it"), None);
    /// assert_eq!(tracker.observe(at(11), "✳ fix it"), Some(Turn::Ended { task: "fix it".into() }));
    /// ```
    pub fn observe(&mut self, now: Duration, title: &str) -> Option<Turn> {
        if title.trim().is_empty() {
            let seen = self.state != State::Unseen;
            self.state = State::Unseen;
            return seen.then_some(Turn::Exited);
        }
        let ReadTitle { meaning, task, .. } = read_title(title);
        let busy = meaning == TitleMeaning::Busy;
        let State::Seen { first, meaning: before, flicker } = self.state else {
            let meaning = if busy { TitleMeaning::Idle } else { meaning };
            self.state = State::Seen { first: now, meaning, flicker: busy };
            return Some(Turn::Ready);
        };
        let settled = now.saturating_sub(first) >= self.settle;
        if busy && !settled && before != meaning {
            self.state = State::Seen { first, meaning: before, flicker: true };
            return None;
        }
        self.state = State::Seen { first, meaning, flicker: false };
        let task = task.to_owned();
        match meaning {
            _ if before != meaning => Some(match meaning {
                TitleMeaning::Idle => Turn::Ended { task },
                TitleMeaning::Busy => Turn::Started { task },
                TitleMeaning::Blocked => Turn::Blocked { task },
            }),
            // A spinner that outlasted the settling time was a turn, even if no further frame of it came.
            TitleMeaning::Idle if flicker && settled => Some(Turn::Ended { task }),
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
        for sign in &SIGNS {
            let title = format!("{} a task", sign.prefix);
            let read = read_title(&title);
            assert_eq!((read.meaning, read.client, read.task), (sign.meaning, Some(sign.client), "a task"));
        }
        for spinner in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⣾".chars() {
            assert_eq!(read_title(&format!("{spinner} x")).meaning, TitleMeaning::Busy);
        }
        assert_eq!(read_title("[ ! ] Action Required | project").task, "project");
        assert_eq!(read_title("◇  Ready (project)      ").task, "Ready (project)");
        assert_eq!(read_title("vim notes.txt").meaning, TitleMeaning::Idle);
    }

    #[test]
    fn a_turn_from_start_to_end() {
        check(
            &[(0, "✳ Claude Code"), (5000, "⠂ x"), (6000, "⠐ x"), (7000, "✳ x"), (9000, "")],
            &[(0, "Ready"), (5000, "Started"), (7000, "Ended"), (9000, "Exited")],
        );
    }

    #[test]
    fn codex_has_no_idle_sign_and_says_when_it_is_blocked() {
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
    fn the_flicker_of_a_start_up_is_ignored() {
        check(&[(0, "✳ C"), (200, "⠂ C"), (400, "✳ C"), (500, "✳ C")], &[(0, "Ready")]);
        check(&[(0, "⠂ C"), (400, "✳ C")], &[(0, "Ready")]);
        // Work that goes on is reported as soon as it cannot be flicker any more.
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
        assert!(matches!(tracker.observe(Duration::ZERO, "⠂ C"), Some(Turn::Started { .. })));
    }

    proptest! {
        /// Between two starts there is an end, a block or an exit, and nothing ends twice.
        #[test]
        fn turns_alternate(titles in prop::collection::vec(prop::sample::select(vec!["✳ a", "⠂ a", "◐ b", "x", "✋ c", ""]), 0..60),
                           step in 0u64..2000) {
            let mut tracker = TitleTracker::default();
            let mut last: Option<Turn> = None;
            for (index, title) in (0u64..).zip(titles) {
                if let Some(turn) = tracker.observe(Duration::from_millis(index * step), title) {
                    match (&last, &turn) {
                        (None | Some(Turn::Exited), turn) => prop_assert_eq!(turn, &Turn::Ready),
                        (Some(Turn::Started { .. }), turn) => { let odd = matches!(turn, Turn::Started { .. } | Turn::Ready); prop_assert!(!odd) },
                        (Some(Turn::Blocked { .. }), turn) => { let odd = matches!(turn, Turn::Blocked { .. } | Turn::Ready); prop_assert!(!odd) },
                        (Some(_), turn) => prop_assert_ne!(turn, &Turn::Ready),
                    }
                    last = Some(turn);
                }
            }
        }
    }
}
