//! Notices about an agent: which causes still hold, what ends them, and the permissions that were refused in a run that no person
//! attends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentState, BlockedOn, Signal, SignalContent};
use crate::attention::ResolvedBy;
use crate::message::{IDLE_PROMPT, Kind, PERMISSION_PROMPT, PERMISSION_REFUSED};

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

/// Describes the background tasks that run on after a turn.
pub fn running_tasks_text(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 background task runs on".to_owned()),
        many => Some(format!("{many} background tasks run on")),
    }
}

impl AgentNotice {
    /// The text for a person: the last line of the client's text, and the background tasks that keep running.
    pub fn detail(&self) -> Option<String> {
        match (self.text.as_deref().and_then(last_line), running_tasks_text(self.running)) {
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

/// The most notices that are kept. The oldest is forgotten first, and then ends only by being read. An agent that completes
/// turn after turn without its person reaches this limit.
const MAX_OPEN: usize = 32;

/// The open notices of one agent, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct OpenNotices {
    notices: Vec<OpenNotice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenNotice {
    episode: Episode,
    reason: Reason,
    /// The tool call that a prompt is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
}

impl OpenNotice {
    fn prompt(&self) -> Option<BlockedOn> {
        match self.reason {
            Reason::Prompt(on) => Some(on),
            _ => None,
        }
    }
}

/// Why a notice is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    /// The agent is blocked.
    Prompt(BlockedOn),
    Complete,
    Idle,
    Stuck,
    Error,
}

impl Reason {
    /// The reason for a notice that is sent in this state. `None` if the agent's state does not tell when the notice ends.
    fn of(notice: &AgentNotice, state: AgentState) -> Option<Self> {
        match notice.kind {
            Kind::Waiting if notice.category == Some(IDLE_PROMPT) => Some(Self::Idle),
            Kind::Waiting | Kind::Question => match state {
                AgentState::Blocked(on) => Some(Self::Prompt(on)),
                _ => None,
            },
            Kind::Complete => Some(Self::Complete),
            Kind::Stuck => Some(Self::Stuck),
            Kind::Error => Some(Self::Error),
            Kind::Status => None,
        }
    }

    /// Returns true if a signal that leaves the agent in this state ends the notice.
    fn ends(self, state: AgentState, signal: &Signal) -> bool {
        let works = state.is_busy() && state != AgentState::Stuck;
        match self {
            Self::Prompt(_) => !matches!(state, AgentState::Blocked(_)),
            Self::Complete => signal.by_person && (works || state == AgentState::Exited),
            Self::Idle => state != AgentState::Done,
            Self::Stuck => state != AgentState::Stuck,
            Self::Error => works,
        }
    }
}

impl OpenNotices {
    /// Adds a notice that is sent. An upgrade updates the reason of the open notice of its episode, because it may know it
    /// better.
    pub(super) fn add(&mut self, notice: &AgentNotice, state: AgentState, call: Option<&str>) {
        let Some(reason) = Reason::of(notice, state) else { return };
        if let Some(open) = self.notices.iter_mut().find(|open| open.episode == notice.episode) {
            open.reason = reason;
            return;
        }
        if self.notices.len() == MAX_OPEN {
            self.notices.remove(0);
        }
        let call = call.map(str::to_owned);
        self.notices.push(OpenNotice { episode: notice.episode, reason, call });
    }

    /// What the newest open prompt asks for.
    pub(super) fn blocked_on(&self) -> Option<BlockedOn> {
        self.notices.iter().rev().find_map(OpenNotice::prompt)
    }

    /// Returns true if a question is open.
    pub(super) fn has_question(&self) -> bool {
        self.notices.iter().any(|open| open.prompt() == Some(BlockedOn::Question))
    }

    /// Returns the episode of the prompt about a call; of any prompt, if the signal or the prompt names no call.
    pub(super) fn prompt_of(&mut self, call: Option<&str>) -> Option<Episode> {
        let same = |open: &&mut OpenNotice| {
            open.prompt().is_some() && (call.is_none() || open.call.is_none() || open.call.as_deref() == call)
        };
        let open = self.notices.iter_mut().rev().find(same)?;
        if open.call.is_none() {
            open.call = call.map(str::to_owned);
        }
        Some(open.episode)
    }

    /// Returns the episode of the open prompt about exactly this call.
    pub(super) fn prompt_about(&self, call: &str) -> Option<Episode> {
        let about = |open: &&OpenNotice| open.prompt().is_some() && open.call.as_deref() == Some(call);
        self.notices.iter().rev().find(about).map(|open| open.episode)
    }

    /// Ends the prompts about a tool call that went on, and the prompts that name no call. The others stay open.
    pub(super) fn end_prompts_of(&mut self, call: &str) -> Vec<EndedEpisode> {
        self.take(ResolvedBy::WentOn, |open| {
            open.prompt().is_some() && open.call.as_deref().is_none_or(|own| own == call)
        })
    }

    /// Ends the notices that are over after a signal that left the agent in this state.
    pub(super) fn end_by(&mut self, state: AgentState, signal: &Signal) -> Vec<EndedEpisode> {
        let by = match state {
            _ if signal.content == SignalContent::Interrupted => ResolvedBy::Interrupted,
            AgentState::Exited => ResolvedBy::SessionEnded,
            _ if signal.by_person => ResolvedBy::Prompted,
            _ => ResolvedBy::WentOn,
        };
        self.take(by, |open| open.reason.ends(state, signal))
    }

    /// Ends the notice of a turn that was reported as complete and turned out to be interrupted.
    pub(super) fn end_guess(&mut self, episode: Episode) -> Vec<EndedEpisode> {
        self.take(ResolvedBy::Interrupted, |open| open.episode == episode)
    }

    fn take(&mut self, by: ResolvedBy, ends: impl Fn(&OpenNotice) -> bool) -> Vec<EndedEpisode> {
        self.notices
            .extract_if(.., |open| ends(open))
            .map(|open| EndedEpisode { episode: open.episode, by })
            .collect()
    }

    /// The episodes of the open notices.
    pub(super) fn episodes(&self) -> impl Iterator<Item = Episode> {
        self.notices.iter().map(|open| open.episode)
    }
}

/// The most requests that are kept. Further ones are dropped, so the notice lists only a part of the refusals.
const MAX_KEPT: usize = 16;

/// Requests that are not known to have been allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UnattendedRequests {
    requests: Vec<UnattendedRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UnattendedRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl UnattendedRequests {
    /// Processes a signal. Returns the notice of the refused requests once the agent goes on without them. The caller sets
    /// its episode.
    pub(super) fn refused_by(&mut self, signal: &Signal) -> Option<AgentNotice> {
        match (&signal.content, &signal.call) {
            (SignalContent::UnattendedPermission, call) => {
                if self.requests.len() < MAX_KEPT {
                    let (call, text) = (call.clone(), signal.text.clone());
                    self.requests.push(UnattendedRequest { call, text });
                }
                None
            }
            // The call ran, so a program allowed it.
            (SignalContent::State(_), Some(call)) => {
                self.requests.retain(|request| request.call.as_ref() != Some(call));
                None
            }
            (SignalContent::State(_), None) => self.take_refused(),
            _ => None,
        }
    }

    fn take_refused(&mut self) -> Option<AgentNotice> {
        let requests = std::mem::take(&mut self.requests);
        let unnamed = || "something that it did not name".to_owned();
        let texts: Vec<String> =
            requests.into_iter().map(|request| request.text.unwrap_or_else(unnamed)).collect();
        (!texts.is_empty()).then(|| AgentNotice {
            episode: Episode::default(),
            upgrade: false,
            kind: Kind::Status,
            category: Some(PERMISSION_REFUSED),
            text: Some(texts.join("; ")),
            running: 0,
            turn: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
