//! The state of one agent, derived from signals that may be late, repeated or missing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentState, Authority, BlockedOn, Signal, SignalContent};
use crate::message::Kind;

/// How long a signal overrides a contradicting one of a less reliable source. After that the hooks are taken to be silent
/// and the other signal counts: Escape, for example, ends a turn without any hook. A choice, not a measurement.
pub const AUTHORITY_HOLD: Duration = Duration::from_secs(5);
/// The default of [`AgentTimeouts::stuck`].
const STUCK_AFTER: Duration = Duration::from_mins(10);
/// The default of [`AgentTimeouts::idle`].
const IDLE_AFTER: Duration = Duration::from_mins(1);

/// The timeouts that settings can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// How long an agent may work without any signal before it counts as stuck.
    pub stuck: Duration,
    /// How long an agent may wait for its user before that makes a notice (`idle_threshold_ms`).
    pub idle: Duration,
}

impl Default for AgentTimeouts {
    fn default() -> Self {
        Self { stuck: STUCK_AFTER, idle: IDLE_AFTER }
    }
}

/// One period in a state that is reported. It makes one notice, however many signals report it and however late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Episode(u64);

impl Episode {
    /// Its number, which is part of the key of its message.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A change of an agent's state that is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNotice {
    /// The episode it reports. A later notice of the same episode replaces the earlier one.
    pub episode: Episode,
    /// Whether it adds to an earlier notice of the same episode.
    pub upgrade: bool,
    /// What it is about.
    pub kind: Kind,
    /// The category, by the names that clients use.
    pub category: Option<&'static str>,
    /// The client's text.
    pub text: Option<String>,
}

/// The state machine of one agent.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::Kind;
/// use ringer_core::agent::{AgentMachine, AgentState, Authority, AgentTimeouts, Signal};
///
/// let mut agent = AgentMachine::new(Duration::ZERO, AgentTimeouts::default());
/// let at = Duration::from_secs;
/// agent.apply(at(1), &Signal::state(Authority::Hook, AgentState::Working));
/// let notice = agent.apply(at(9), &Signal::state(Authority::Hook, AgentState::Done).text("all tests pass"));
/// assert_eq!(notice[0].kind, Kind::Complete);
/// // The title says the same a moment later: the same episode, so nothing new.
/// assert_eq!(agent.apply(at(10), &Signal::state(Authority::Title, AgentState::Done)), []);
/// ```
///
/// It is saved and loaded by each process that has a signal to apply. Its times are those of the system's monotonic clock,
/// which all processes of a machine share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMachine {
    state: AgentState,
    since: Duration,
    decided_by: Authority,
    decided_at: Duration,
    last_alive: Duration,
    #[serde(skip)]
    timeouts: AgentTimeouts,
    episode: Episode,
    /// What was reported of the current episode, to know when a signal says more.
    #[serde(rename = "told")]
    reported: Option<Reported>,
    #[serde(rename = "idle_told")]
    idle_reported: bool,
    /// A contradicting signal of a less reliable source; it counts after [`AUTHORITY_HOLD`].
    #[serde(rename = "doubted")]
    contradicting: Option<Signal>,
    /// The turn ended with background work still running.
    pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Reported {
    kind: Kind,
    /// Whether the kind was known, not guessed.
    certain: bool,
    has_text: bool,
}

impl Reported {
    fn detail(self) -> (bool, bool) {
        (self.certain, self.has_text)
    }
}

impl AgentMachine {
    /// An agent that was just started.
    pub fn new(now: Duration, timeouts: AgentTimeouts) -> Self {
        Self {
            state: AgentState::Starting,
            since: now,
            decided_by: Authority::Process,
            decided_at: now,
            last_alive: now,
            timeouts,
            episode: Episode::default(),
            reported: None,
            idle_reported: false,
            contradicting: None,
            pending: false,
        }
    }

    /// Continues a saved machine with these timeouts. After a reboot the saved times would lie in the future, so they are
    /// limited to `now`.
    pub fn resume(mut self, now: Duration, timeouts: AgentTimeouts) -> Self {
        self.timeouts = timeouts;
        for time in [&mut self.since, &mut self.decided_at, &mut self.last_alive] {
            *time = now.min(*time);
        }
        self
    }

    /// Whether it need not be saved again. A change of only the time of the last signal is saved every `alive_every`.
    pub fn is_unchanged(&self, before: &Self, alive_every: Duration) -> bool {
        let lately = self.last_alive.saturating_sub(before.last_alive) < alive_every;
        // A repeated signal extends its hold; it is saved once per hold, not each time.
        let renewed = self.decided_at.saturating_sub(before.decided_at) < AUTHORITY_HOLD;
        let (decided_at, last_alive) = (before.decided_at, before.last_alive);
        lately && renewed && Self { decided_at, last_alive, ..self.clone() } == *before
    }

    /// Its state.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// Since when.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// Which signal decided that, for `ringer why`.
    pub fn decided_by(&self) -> Authority {
        self.decided_by
    }

    /// Applies a signal. Returns the notices to send.
    pub fn apply(&mut self, now: Duration, signal: &Signal) -> Vec<AgentNotice> {
        let mut notices = self.tick(now);
        self.last_alive = now;
        match signal.content {
            SignalContent::Notified => notices.extend(self.client_notification(signal)),
            SignalContent::Idle if self.is_waiting() && !self.idle_reported => {
                notices.push(self.idle(signal.text.clone()));
            }
            _ => {}
        }
        let Some(state) = self.implied_state(signal) else { return notices };
        if self.overrides(now, signal, state) {
            self.contradicting = Some(signal.clone());
            return notices;
        }
        self.contradicting = None;
        notices.extend(self.enter(now, state, signal));
        notices
    }

    /// When to call [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Duration> {
        let hold = self.contradicting.as_ref().map(|_| self.decided_at + AUTHORITY_HOLD);
        let stuck = (self.state == AgentState::Working).then(|| self.last_alive + self.timeouts.stuck);
        let idle = (self.is_waiting() && !self.idle_reported).then(|| self.since + self.timeouts.idle);
        [hold, stuck, idle].into_iter().flatten().min()
    }

    /// Applies timeouts. Returns the notices to send.
    pub fn tick(&mut self, now: Duration) -> Vec<AgentNotice> {
        let mut notices = Vec::new();
        if now >= self.decided_at + AUTHORITY_HOLD
            && let Some(signal) = self.contradicting.take()
            && let Some(state) = self.implied_state(&signal)
        {
            notices.extend(self.enter(now, state, &signal));
        }
        if self.state == AgentState::Working && now >= self.last_alive + self.timeouts.stuck {
            let signal = Signal::state(Authority::Process, AgentState::Stuck);
            notices.extend(self.enter(now, AgentState::Stuck, &signal));
        }
        if self.is_waiting() && !self.idle_reported && now >= self.since + self.timeouts.idle {
            notices.push(self.idle(None));
        }
        notices
    }

    /// The agent has been waiting for its user: one notice for each end of a turn.
    fn idle(&mut self, text: Option<String>) -> AgentNotice {
        self.idle_reported = true;
        self.episode.0 += 1;
        // No later signal of this episode says more than this notice.
        self.reported = Some(Reported { kind: Kind::Waiting, certain: true, has_text: true });
        AgentNotice {
            episode: self.episode,
            upgrade: false,
            kind: Kind::Waiting,
            category: Some("idle_prompt"),
            text,
        }
    }

    /// The client sent a notification. It can only add its text to the notice of the current episode; a bell has none.
    fn client_notification(&mut self, signal: &Signal) -> Option<AgentNotice> {
        let text = signal.text.clone()?;
        let (upgrade, kind) = match &mut self.reported {
            Some(reported) if reported.has_text => return None,
            Some(reported) => {
                reported.has_text = true;
                (true, reported.kind)
            }
            None => {
                self.episode.0 += 1;
                (false, Kind::Status)
            }
        };
        Some(AgentNotice { episode: self.episode, upgrade, kind, category: None, text: Some(text) })
    }

    /// Done, with nothing running: the agent waits for its user.
    fn is_waiting(&self) -> bool {
        self.state == AgentState::Done && !self.pending
    }

    /// The state that a signal implies, given the present one. `None` for no change.
    fn implied_state(&self, signal: &Signal) -> Option<AgentState> {
        match signal.content {
            SignalContent::Alive if self.state == AgentState::Stuck => Some(AgentState::Working),
            SignalContent::Alive | SignalContent::Notified | SignalContent::Idle => None,
            // Only a turn can end. A blocked agent stays blocked: the title is the same for done and for blocked.
            SignalContent::TurnEnded => self.state.is_busy().then_some(AgentState::Done),
            // A client's notification does not mean that its turn ended: it may come a minute later.
            SignalContent::State(AgentState::Done) if signal.authority == Authority::Notification => None,
            // An agent that failed is not done when it becomes idle: opencode reports idle after every error.
            SignalContent::State(AgentState::Done) if self.state == AgentState::Error => None,
            SignalContent::State(state) => Some(state),
        }
    }

    fn overrides(&self, now: Duration, signal: &Signal, state: AgentState) -> bool {
        let contradicts = state != self.state;
        contradicts
            && state != AgentState::Exited
            && signal.authority > self.decided_by
            && now < self.decided_at + AUTHORITY_HOLD
    }

    fn enter(&mut self, now: Duration, state: AgentState, signal: &Signal) -> Option<AgentNotice> {
        let before = std::mem::replace(&mut self.state, state);
        if signal.authority <= self.decided_by || state != before {
            (self.decided_by, self.decided_at) = (signal.authority, now);
        }
        if state != before {
            self.since = now;
            // A blocked agent that a better signal reports as blocked on something else is in the same episode.
            if !matches!((before, state), (AgentState::Blocked(_), AgentState::Blocked(_))) {
                self.episode.0 += 1;
                self.reported = None;
                self.idle_reported = false;
            }
        }
        self.pending = state == AgentState::Done && signal.pending;
        let (kind, category) = self.notice_for(before, state)?;
        let certain = !matches!(signal.content, SignalContent::TurnEnded);
        let reported = Reported { kind, certain, has_text: signal.text.is_some() };
        let upgrade = self.reported.is_some();
        if self.reported.is_some_and(|earlier| reported.detail() <= earlier.detail()) {
            return None;
        }
        self.reported = Some(reported);
        Some(AgentNotice { episode: self.episode, upgrade, kind, category, text: signal.text.clone() })
    }

    /// The kind and category of the notice for entering a state.
    fn notice_for(&self, before: AgentState, state: AgentState) -> Option<(Kind, Option<&'static str>)> {
        match state {
            AgentState::Done if self.pending => None,
            AgentState::Done => Some((Kind::Complete, None)),
            AgentState::Blocked(BlockedOn::Permission) => Some((Kind::Waiting, Some("permission_prompt"))),
            AgentState::Blocked(BlockedOn::Question) => Some((Kind::Question, None)),
            AgentState::Blocked(BlockedOn::Auth) => Some((Kind::Waiting, Some("auth_prompt"))),
            AgentState::Blocked(BlockedOn::Input) => Some((Kind::Waiting, None)),
            AgentState::Error => Some((Kind::Error, None)),
            AgentState::Stuck => Some((Kind::Stuck, None)),
            // An agent that exits or starts again in the middle of a turn has failed.
            AgentState::Exited | AgentState::Ready if before.is_busy() => {
                Some((Kind::Error, Some("abnormal_stop")))
            }
            AgentState::Exited | AgentState::Ready => None,
            AgentState::Starting | AgentState::Working | AgentState::RateLimited | AgentState::Compacting => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
