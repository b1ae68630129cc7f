//! The state of one agent, out of signals that come late, twice, or not at all.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::signal::{AgentState, Authority, BlockedOn, Says, Signal};

/// How long a more believable signal holds against a less believable one that contradicts it. After that the hooks have
/// stopped telling, and the next best counts: a person who presses Escape makes no hook run.
pub const HOLD: Duration = Duration::from_secs(5);
/// How long an agent may work without a sign of life.
pub const STUCK_AFTER: Duration = Duration::from_mins(10);
/// How long an agent may wait for its person before that is worth a notice.
pub const IDLE_AFTER: Duration = Duration::from_mins(1);

/// The times that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// See [`STUCK_AFTER`].
    pub stuck: Duration,
    /// See [`IDLE_AFTER`] (`idle_threshold_ms`).
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { stuck: STUCK_AFTER, idle: IDLE_AFTER }
    }
}

/// One stay in a state that is told. It makes one notice, however many signals announce it and however late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Episode(u64);

impl Episode {
    /// Its number, for the name of the message that tells of it.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What the rest of the world has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The episode it tells of. A later notice of the same episode takes the place of the earlier one.
    pub episode: Episode,
    /// Whether this one says more about an episode that was told already.
    pub upgrade: bool,
    /// What it is about.
    pub kind: Kind,
    /// In the words of clients.
    pub category: Option<&'static str>,
    /// In the client's words.
    pub text: Option<String>,
}

/// An agent.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{AgentMachine, AgentState, Authority, Kind, Patience, Signal};
///
/// let mut agent = AgentMachine::new(Duration::ZERO, Patience::default());
/// let at = Duration::from_secs;
/// agent.apply(at(1), &Signal::state(Authority::Hook, AgentState::Working));
/// let notice = agent.apply(at(9), &Signal::state(Authority::Hook, AgentState::Done).text("all tests pass"));
/// assert_eq!(notice[0].kind, Kind::Complete);
/// // The title says the same a moment later: the same episode, so nothing new.
/// assert_eq!(agent.apply(at(10), &Signal::state(Authority::Title, AgentState::Done)), []);
/// ```
///
/// It can be written down and read again by another process: whoever holds a signal applies it. Its times are of one
/// clock that never jumps and that all processes of a machine share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMachine {
    state: AgentState,
    since: Duration,
    decided_by: Authority,
    decided_at: Duration,
    last_alive: Duration,
    #[serde(skip)]
    patience: Patience,
    episode: Episode,
    /// What was told of the current episode, to know when something says more.
    told: Option<Told>,
    idle_told: bool,
    /// A less believable signal that contradicts; it counts when the more believable one no longer holds.
    doubted: Option<Signal>,
    /// The turn ended with work still running.
    pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    kind: Kind,
    /// Whether the kind was known, not guessed.
    certain: bool,
    has_text: bool,
}

impl Told {
    fn richness(self) -> (bool, bool) {
        (self.certain, self.has_text)
    }
}

impl AgentMachine {
    /// An agent that was just started.
    pub fn new(now: Duration, patience: Patience) -> Self {
        Self {
            state: AgentState::Starting,
            since: now,
            decided_by: Authority::Process,
            decided_at: now,
            last_alive: now,
            patience,
            episode: Episode::default(),
            told: None,
            idle_told: false,
            doubted: None,
            pending: false,
        }
    }

    /// The same, read again by somebody with that patience. Times from before the machine was started anew would lie in
    /// the future.
    pub fn resume(mut self, now: Duration, patience: Patience) -> Self {
        self.patience = patience;
        for time in [&mut self.since, &mut self.decided_at, &mut self.last_alive] {
            *time = now.min(*time);
        }
        self
    }

    /// Whether nothing about it is worth writing down again: a sign of life alone is, after this long.
    pub fn is_as_before(&self, before: &Self, alive_every: Duration) -> bool {
        let lately = self.last_alive.saturating_sub(before.last_alive) < alive_every;
        // A repeated signal renews its hold against less believable ones; in time, but not each time.
        let renewed = self.decided_at.saturating_sub(before.decided_at) < HOLD;
        let (decided_at, last_alive) = (before.decided_at, before.last_alive);
        lately && renewed && Self { decided_at, last_alive, ..self.clone() } == *before
    }

    /// What it is doing.
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

    /// Takes a signal. Gives what has to be told.
    pub fn apply(&mut self, now: Duration, signal: &Signal) -> Vec<Notice> {
        let mut notices = self.tick(now);
        self.last_alive = now;
        match signal.says {
            Says::Notified => notices.extend(self.notified(signal)),
            Says::Idle if self.is_waiting() && !self.idle_told => {
                notices.push(self.idle(signal.text.clone()));
            }
            _ => {}
        }
        let Some(state) = self.meaning(signal) else { return notices };
        if self.holds_against(now, signal, state) {
            self.doubted = Some(signal.clone());
            return notices;
        }
        self.doubted = None;
        notices.extend(self.enter(now, state, signal));
        notices
    }

    /// When time alone may change something.
    pub fn next_deadline(&self) -> Option<Duration> {
        let doubt = self.doubted.as_ref().map(|_| self.decided_at + HOLD);
        let stuck = (self.state == AgentState::Working).then(|| self.last_alive + self.patience.stuck);
        let idle = (self.is_waiting() && !self.idle_told).then(|| self.since + self.patience.idle);
        [doubt, stuck, idle].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) -> Vec<Notice> {
        let mut notices = Vec::new();
        if now >= self.decided_at + HOLD
            && let Some(signal) = self.doubted.take()
            && let Some(state) = self.meaning(&signal)
        {
            notices.extend(self.enter(now, state, &signal));
        }
        if self.state == AgentState::Working && now >= self.last_alive + self.patience.stuck {
            let signal = Signal::state(Authority::Process, AgentState::Stuck);
            notices.extend(self.enter(now, AgentState::Stuck, &signal));
        }
        if self.is_waiting() && !self.idle_told && now >= self.since + self.patience.idle {
            notices.push(self.idle(None));
        }
        notices
    }

    /// The person has not come back for a while: told once for each end of a turn.
    fn idle(&mut self, text: Option<String>) -> Notice {
        self.idle_told = true;
        self.episode.0 += 1;
        // It says all there is to say: nothing that comes later is richer.
        self.told = Some(Told { kind: Kind::Waiting, certain: true, has_text: true });
        Notice {
            episode: self.episode,
            upgrade: false,
            kind: Kind::Waiting,
            category: Some("idle_prompt"),
            text,
        }
    }

    /// A notification of its own. About an episode that was told it says at most more; a bell says nothing more.
    fn notified(&mut self, signal: &Signal) -> Option<Notice> {
        let text = signal.text.clone()?;
        let (upgrade, kind) = match &mut self.told {
            Some(told) if told.has_text => return None,
            Some(told) => {
                told.has_text = true;
                (true, told.kind)
            }
            None => {
                self.episode.0 += 1;
                (false, Kind::Status)
            }
        };
        Some(Notice { episode: self.episode, upgrade, kind, category: None, text: Some(text) })
    }

    /// Done, with nothing running: it is the person's turn.
    fn is_waiting(&self) -> bool {
        self.state == AgentState::Done && !self.pending
    }

    /// The state that a signal means, here and now. `None` where it means no change.
    fn meaning(&self, signal: &Signal) -> Option<AgentState> {
        match signal.says {
            Says::Alive if self.state == AgentState::Stuck => Some(AgentState::Working),
            Says::Alive | Says::Notified | Says::Idle => None,
            // Only a turn can end, and what is known better stays: a title shows the same for done and for blocked.
            Says::TurnEnded => self.state.is_busy().then_some(AgentState::Done),
            // A client's own notification is no sign that its turn ended: it may come a minute later.
            Says::Is(AgentState::Done) if signal.authority == Authority::Notification => None,
            // What failed is not done by coming to rest: opencode says that it is idle after every error.
            Says::Is(AgentState::Done) if self.state == AgentState::Error => None,
            Says::Is(state) => Some(state),
        }
    }

    fn holds_against(&self, now: Duration, signal: &Signal, state: AgentState) -> bool {
        let contradicts = state != self.state;
        contradicts
            && state != AgentState::Exited
            && signal.authority > self.decided_by
            && now < self.decided_at + HOLD
    }

    fn enter(&mut self, now: Duration, state: AgentState, signal: &Signal) -> Option<Notice> {
        let before = std::mem::replace(&mut self.state, state);
        if signal.authority <= self.decided_by || state != before {
            (self.decided_by, self.decided_at) = (signal.authority, now);
        }
        if state != before {
            self.since = now;
            // A blocked agent that a better signal calls blocked on something else is the same stay.
            if !matches!((before, state), (AgentState::Blocked(_), AgentState::Blocked(_))) {
                self.episode.0 += 1;
                self.told = None;
                self.idle_told = false;
            }
        }
        self.pending = state == AgentState::Done && signal.pending;
        let (kind, category) = self.notice_for(before, state)?;
        let certain = !matches!(signal.says, Says::TurnEnded);
        let telling = Told { kind, certain, has_text: signal.text.is_some() };
        let upgrade = self.told.is_some();
        if self.told.is_some_and(|told| telling.richness() <= told.richness()) {
            return None;
        }
        self.told = Some(telling);
        Some(Notice { episode: self.episode, upgrade, kind, category, text: signal.text.clone() })
    }

    /// What entering a state has to tell.
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
            // Whatever ended in the middle of a turn without saying so ended badly.
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
