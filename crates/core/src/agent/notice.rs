//! Notices about an agent, and the end of their causes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentState, BlockedOn};
use crate::attention::ResolvedBy;
use crate::message::{IDLE_PROMPT, Kind, PERMISSION_PROMPT};

/// The longest part of an agent's last line that people are shown, in characters: what fits into a popup.
const MAX_DETAIL: usize = 240;

/// One period in a state that is reported. It makes one notice, however many signals report the state and however late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Episode(pub(super) u64);

impl Episode {
    /// The number, which is part of the key of the message.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A reported change of an agent's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNotice {
    /// The reported episode. A later notice of the same episode replaces the earlier one.
    pub episode: Episode,
    /// True if the notice adds to an earlier one of the same episode.
    pub upgrade: bool,
    /// The kind of notification.
    pub kind: Kind,
    /// The category, in the names that clients use.
    pub category: Option<&'static str>,
    /// The client's text.
    pub text: Option<String>,
    /// Background tasks that keep running.
    pub running: usize,
    /// At the end of a turn: how long the turn took, if its beginning was seen.
    pub turn: Option<Duration>,
}

impl AgentNotice {
    /// The background tasks that keep running after the turn, in words.
    pub fn running_words(&self) -> Option<String> {
        match self.running {
            0 => None,
            1 => Some("1 background task runs on".to_owned()),
            many => Some(format!("{many} background tasks run on")),
        }
    }

    /// The text for a person: the last line of the client's text, and the background tasks that keep running.
    pub fn detail(&self) -> Option<String> {
        match (self.text.as_deref().and_then(last_line), self.running_words()) {
            (Some(text), Some(running)) => Some(format!("{text} ({running})")),
            (text, running) => text.or(running),
        }
    }

    fn is_of_timeout(&self) -> bool {
        self.kind == Kind::Stuck || self.category == Some(IDLE_PROMPT)
    }
}

/// The last line with a letter or digit, in at most [`MAX_DETAIL`] characters. A longer one keeps its end: that is where an
/// agent says how it went.
fn last_line(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next()?;
    let line = lines.find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or(last);
    let excess = line.chars().count().saturating_sub(MAX_DETAIL);
    if excess == 0 {
        return Some(line.to_owned());
    }
    let end = line.char_indices().nth(excess + 1).map_or("", |(at, _)| &line[at..]);
    // Cut between words, unless the word is very long.
    let end = end.split_once(' ').map_or(end, |(_, rest)| rest);
    Some(format!("…{end}"))
}

/// The end of a notice's cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedEpisode {
    /// The episode that the notice reported.
    pub episode: Episode,
    /// What ended it.
    pub by: ResolvedBy,
}

/// The consequences of a signal or a timeout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChanges {
    /// The notices to send.
    pub notices: Vec<AgentNotice>,
    /// The notices whose cause has ended: earlier ones, or some of `notices`.
    pub ended: Vec<EndedEpisode>,
}

impl AgentChanges {
    /// Returns true if there are no consequences.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the consequences of the next signal.
    pub fn extend(&mut self, more: Self) {
        self.end(more.ended);
        self.notices.extend(more.notices);
    }

    /// Adds ends. If an agent works again before its idle or stuck notice was sent, that notice is dropped.
    pub(super) fn end(&mut self, ended: Vec<EndedEpisode>) {
        for end in ended {
            let before = self.notices.len();
            self.notices.retain(|notice| notice.episode != end.episode || !notice.is_of_timeout());
            if self.notices.len() == before {
                self.ended.push(end);
            }
        }
    }
}

/// The kind and category of the notice for entering a state.
pub(super) fn notice_for(before: AgentState, state: AgentState) -> Option<(Kind, Option<&'static str>)> {
    match state {
        AgentState::Done => Some((Kind::Complete, None)),
        AgentState::Blocked(BlockedOn::Permission) => Some((Kind::Waiting, Some(PERMISSION_PROMPT))),
        AgentState::Blocked(BlockedOn::Question) => Some((Kind::Question, None)),
        AgentState::Blocked(BlockedOn::Auth) => Some((Kind::Waiting, Some("auth_prompt"))),
        AgentState::Blocked(BlockedOn::Input) => Some((Kind::Waiting, None)),
        AgentState::Error => Some((Kind::Error, None)),
        AgentState::Stuck => Some((Kind::Stuck, None)),
        // An agent that exits or starts again in the middle of a turn has failed.
        AgentState::Exited | AgentState::Ready if before.is_busy() => {
            Some((Kind::Error, Some("abnormal_stop")))
        }
        AgentState::Exited
        | AgentState::Ready
        | AgentState::Starting
        | AgentState::Working
        | AgentState::RateLimited
        | AgentState::Compacting => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn detail(text: &str, running: usize) -> Option<String> {
        let (episode, kind) = (Episode::default(), Kind::Complete);
        let text = Some(text.to_owned());
        AgentNotice { episode, upgrade: false, kind, category: None, text, running, turn: None }.detail()
    }

    #[test]
    fn a_person_reads_the_last_line_that_says_something() {
        assert_eq!(detail("All good.\n\n3 tests FAIL\n", 0).as_deref(), Some("3 tests FAIL"));
        assert_eq!(
            detail("Ran it:\n```\nok 214\n```\n", 1).as_deref(),
            Some("ok 214 (1 background task runs on)")
        );
        assert_eq!(detail("***\n---\n", 0).as_deref(), Some("---"));
        assert_eq!(detail("", 2).as_deref(), Some("2 background tasks run on"));
        assert_eq!(detail(" \n ", 0), None);
    }

    #[test]
    fn a_long_line_keeps_its_end() {
        let line = format!("{}but 3 tests FAIL", "The work is done, ".repeat(50));
        let shown = detail(&line, 0).unwrap();
        assert!(shown.starts_with('…') && shown.ends_with("done, but 3 tests FAIL"), "{shown}");
    }

    proptest! {
        #[test]
        fn a_detail_is_one_short_line(text in "(?s).{0,600}") {
            if let Some(shown) = detail(&text, 0) {
                prop_assert!(!shown.is_empty() && shown.chars().count() <= MAX_DETAIL);
                prop_assert!(!shown.contains('\n'));
            }
        }
    }
}
