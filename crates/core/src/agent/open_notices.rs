//! The notices of an agent whose cause still holds, and what ends them.

use serde::{Deserialize, Serialize};

use super::notice::{AgentNotice, EndedEpisode, Episode};
use crate::agent::{AgentState, BlockedOn, Signal, SignalContent};
use crate::attention::ResolvedBy;
use crate::message::{IDLE_PROMPT, Kind};

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
