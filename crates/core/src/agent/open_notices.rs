//! The notices of an agent whose cause still holds, and what ends them.

use serde::{Deserialize, Serialize};

use super::notice::{AgentNotice, EndedEpisode, Episode};
use crate::agent::{AgentState, BlockedOn, Signal, SignalContent};
use crate::attention::ResolvedBy;
use crate::message::{IDLE_PROMPT, Kind};

/// How many are kept; the oldest is forgotten first, and then ends only by being read. An agent that completes turn after turn
/// without its person has so many.
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
    /// The agent needs this.
    Prompt(BlockedOn),
    Complete,
    Idle,
    Stuck,
    Error,
}

impl Reason {
    /// Why a notice is open that is sent in this state. `None` for one whose end the agent's state does not tell.
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

    /// Whether a signal that leaves the agent in this state ends it.
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
    /// Adds a notice that is sent. One that adds to an earlier notice of its episode is that one, and may know the reason
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

    /// What the newest open prompt needs.
    pub(super) fn blocked_on(&self) -> Option<BlockedOn> {
        self.notices.iter().rev().find_map(OpenNotice::prompt)
    }

    /// Whether a question is open.
    pub(super) fn has_question(&self) -> bool {
        self.notices.iter().any(|open| open.prompt() == Some(BlockedOn::Question))
    }

    /// The episode of the prompt about a call; of any prompt, if either does not name its call.
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

    /// The episode of the open prompt about a call.
    pub(super) fn prompt_about(&self, call: &str) -> Option<Episode> {
        let about = |open: &&OpenNotice| open.prompt().is_some() && open.call.as_deref() == Some(call);
        self.notices.iter().rev().find(about).map(|open| open.episode)
    }

    /// A tool call went on: the prompts about it, and those that do not name their call, have ended. The others stay open.
    pub(super) fn end_prompts_of(&mut self, call: &str) -> Vec<EndedEpisode> {
        self.take(ResolvedBy::WentOn, |open| {
            open.prompt().is_some() && open.call.as_deref().is_none_or(|own| own == call)
        })
    }

    /// Ends what a signal ends that leaves the agent in this state.
    pub(super) fn end_by(&mut self, state: AgentState, signal: &Signal) -> Vec<EndedEpisode> {
        let by = match state {
            _ if signal.content == SignalContent::Interrupted => ResolvedBy::Interrupted,
            AgentState::Exited => ResolvedBy::SessionEnded,
            _ if signal.by_person => ResolvedBy::Prompted,
            _ => ResolvedBy::WentOn,
        };
        self.take(by, |open| open.reason.ends(state, signal))
    }

    /// The turn that was reported as complete was interrupted.
    pub(super) fn end_guess(&mut self, episode: Episode) -> Vec<EndedEpisode> {
        self.take(ResolvedBy::Interrupted, |open| open.episode == episode)
    }

    fn take(&mut self, by: ResolvedBy, ends: impl Fn(&OpenNotice) -> bool) -> Vec<EndedEpisode> {
        self.notices
            .extract_if(.., |open| ends(open))
            .map(|open| EndedEpisode { episode: open.episode, by })
            .collect()
    }

    /// The episodes that are open.
    pub(super) fn episodes(&self) -> impl Iterator<Item = Episode> {
        self.notices.iter().map(|open| open.episode)
    }
}
