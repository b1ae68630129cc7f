//! The state of one agent, derived from signals that may be late, repeated or missing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::notice::{AgentChanges, AgentNotice, Episode, OpenNotices, UnattendedRequests, notice_for};
use crate::agent::{AgentState, Authority, BlockedOn, Signal, SignalContent};
use crate::message::{IDLE_PROMPT, Kind};

/// How long a signal overrides a contradicting one from a less reliable source. After that the hooks are assumed to be
/// silent and the other signal counts: Escape, for example, ends a turn without any hook. A choice, not a measurement.
pub const AUTHORITY_HOLD: Duration = Duration::from_secs(5);
/// How long after an interruption an idle report is attributed to the interruption.
const AFTER_INTERRUPTION: Duration = Duration::from_secs(2);
/// Late notices are numbered from here. An agent has far fewer regular episodes.
const FIRST_LATE_EPISODE: u64 = 1 << 32;

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
/// let changes = agent.apply(at(9), &Signal::state(Authority::Hook, AgentState::Done).text("all tests pass"));
/// assert_eq!(changes.notices[0].kind, Kind::Complete);
/// // The title says the same a moment later: the same episode, so nothing new.
/// assert!(agent.apply(at(10), &Signal::state(Authority::Title, AgentState::Done)).is_empty());
/// // The person's next prompt ends it.
/// let prompt = Signal::state(Authority::Hook, AgentState::Working).by_person();
/// assert_eq!(agent.apply(at(11), &prompt).ended[0].episode, changes.notices[0].episode);
/// ```
///
/// Each process that has a signal to apply loads the machine and saves it again. Its times are readings of the system's
/// monotonic clock, which all processes of a machine share.
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
    /// What was reported about the current episode. Only a signal that adds to this is reported.
    #[serde(rename = "told")]
    reported: Option<EpisodeReport>,
    #[serde(rename = "idle_told")]
    idle_reported: bool,
    /// A contradicting signal from a less reliable source; it counts after [`AUTHORITY_HOLD`].
    #[serde(rename = "doubted")]
    contradicting: Option<Signal>,
    /// The turn ended with background work still running that will wake the agent.
    pending: bool,
    /// Background tasks that keep running after the turn.
    #[serde(default)]
    running: usize,
    /// The notices whose cause still holds.
    #[serde(default)]
    open: OpenNotices,
    /// Number of notices sent for events that arrived after newer ones.
    #[serde(default)]
    late: u64,
    /// The person interrupted the agent, and it has not worked since.
    #[serde(default)]
    interrupted: bool,
    /// Permissions requested in a run that no person attends.
    #[serde(default)]
    unattended: UnattendedRequests,
    /// The client's id of the current turn, or of the last one if none is going on.
    #[serde(default)]
    turn: Option<String>,
    #[serde(default)]
    queued_prompt: QueuedPrompt,
    /// When the current turn began, or the last one if none is going on.
    #[serde(default)]
    turn_began: Option<Duration>,
}

impl AgentMachine {
    /// Creates the machine of an agent that was just started.
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
            running: 0,
            open: OpenNotices::default(),
            late: 0,
            interrupted: false,
            unattended: UnattendedRequests::default(),
            turn: None,
            queued_prompt: QueuedPrompt::None,
            turn_began: None,
        }
    }

    /// Continues a saved machine with these timeouts. After a reboot the saved times would lie in the future, so they are
    /// limited to `now`.
    pub fn resume(mut self, now: Duration, timeouts: AgentTimeouts) -> Self {
        self.timeouts = timeouts;
        for time in [&mut self.since, &mut self.decided_at, &mut self.last_alive] {
            *time = now.min(*time);
        }
        self.turn_began = self.turn_began.map(|began| now.min(began));
        self
    }

    /// Returns true if the machine need not be saved again. If only the time of the last signal has changed, it is saved
    /// once per `alive_every`.
    pub fn is_unchanged(&self, before: &Self, alive_every: Duration) -> bool {
        let lately = self.last_alive.saturating_sub(before.last_alive) < alive_every;
        // A repeated signal extends its hold. That is saved once per hold, not each time.
        let renewed = self.decided_at.saturating_sub(before.decided_at) < AUTHORITY_HOLD;
        let (decided_at, last_alive) = (before.decided_at, before.last_alive);
        lately && renewed && Self { decided_at, last_alive, ..self.clone() } == *before
    }

    /// The current state.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// When the current state began.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// The source of the signal that decided the current state, for `ringer why`.
    pub fn decided_by(&self) -> Authority {
        self.decided_by
    }

    /// Returns an episode for a late notice. Late notices are numbered separately because the number of the current episode
    /// is in use.
    pub fn next_late_episode(&mut self) -> Episode {
        self.late += 1;
        Episode(FIRST_LATE_EPISODE + self.late)
    }

    /// Returns true if the agent waits for the answer to a question.
    pub fn asks(&self) -> bool {
        self.state == AgentState::Blocked(BlockedOn::Question) || self.open.has_question()
    }

    /// Adds a notice for an event that happened before newer ones. The newer ones keep deciding the state; `state` is the
    /// state at the time of the event. Returns the episode if its cause can still hold.
    pub fn add_late(
        &mut self,
        notice: &AgentNotice,
        state: AgentState,
        call: Option<&str>,
    ) -> Option<Episode> {
        let is_over = match state {
            AgentState::Blocked(_) => !self.state.is_busy() && !matches!(self.state, AgentState::Blocked(_)),
            _ => self.state.is_busy(),
        };
        if is_over {
            return None;
        }
        let episode = self.next_late_episode();
        self.open.add(&AgentNotice { episode, ..notice.clone() }, state, call);
        Some(episode)
    }

    /// Returns the episode of the open prompt about a tool call.
    pub fn prompt_about(&self, call: &str) -> Option<Episode> {
        self.open.prompt_about(call)
    }

    /// The episodes that were reported and are still open.
    pub fn open_episodes(&self) -> impl Iterator<Item = Episode> {
        self.open.episodes()
    }

    /// Applies a signal.
    pub fn apply(&mut self, now: Duration, signal: &Signal) -> AgentChanges {
        let mut changes = self.tick(now);
        self.last_alive = now;
        if let Some(refused) = self.unattended.refused_by(signal) {
            let episode = self.next_late_episode();
            changes.notices.push(AgentNotice { episode, ..refused });
        }
        match signal.content {
            SignalContent::Notified => changes.notices.extend(self.client_notification(signal)),
            SignalContent::Idle if self.is_waiting() && !self.idle_reported => {
                changes.notices.push(self.idle(signal.text.clone()));
            }
            _ => {}
        }
        if signal.content == SignalContent::State(AgentState::Working)
            && let Some(call) = &signal.call
        {
            changes.end(self.open.end_prompts_of(call));
            // Tools run in parallel: while another tool's prompt is open, the agent is blocked.
            if let Some(on) = self.open.blocked_on() {
                self.state = AgentState::Blocked(on);
                return changes;
            }
        }
        let Some(state) = self.implied_state(now, signal) else { return changes };
        if self.overrides(now, signal, state) {
            self.contradicting = Some(signal.clone());
            return changes;
        }
        self.contradicting = None;
        let began = self.note_turn(state, signal);
        let works = Signal::state(signal.authority, AgentState::Working);
        if began {
            changes.extend(self.enter(now, AgentState::Working, &works));
        }
        changes.extend(self.enter(now, state, signal));
        if state == AgentState::Done && self.queued_prompt == QueuedPrompt::Waits {
            changes.extend(self.enter(now, AgentState::Working, &works));
            self.queued_prompt = QueuedPrompt::MayHaveBegunTurn;
        }
        changes
    }

    /// Returns true if a queued prompt may have begun the turn that goes on.
    fn may_be_in_turn(&self) -> bool {
        self.queued_prompt == QueuedPrompt::MayHaveBegunTurn
    }

    fn is_of_next_turn(&self, signal: &Signal) -> bool {
        signal.turn.is_some() && self.turn.is_some() && signal.turn != self.turn
    }

    /// Records the turn of a signal, and whether a prompt is queued. Returns true if the signal ends a turn whose beginning
    /// was not reported: no hook of Claude Code reports that a queued prompt starts a turn.
    fn note_turn(&mut self, state: AgentState, signal: &Signal) -> bool {
        let Some(turn) = &signal.turn else { return false };
        let is_same = self.turn.as_ref() == Some(turn);
        let in_turn = self.state.is_busy() || matches!(self.state, AgentState::Blocked(_));
        if state == AgentState::Working && signal.by_person {
            let is_queued = in_turn && (is_same || self.may_be_in_turn());
            self.queued_prompt = if is_queued { QueuedPrompt::Waits } else { QueuedPrompt::None };
        }
        let is_next = self.is_of_next_turn(signal);
        self.turn = Some(turn.clone());
        is_next && state == AgentState::Done && matches!(self.state, AgentState::Done | AgentState::Error)
    }

    /// When to call [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Duration> {
        let hold = self.contradicting.as_ref().map(|_| self.decided_at + AUTHORITY_HOLD);
        let stuck = (self.state == AgentState::Working).then(|| self.last_alive + self.timeouts.stuck);
        let idle = self.timeouts.idle.filter(|_| self.is_waiting() && !self.idle_reported);
        let idle = idle.map(|idle| self.since + idle);
        [hold, stuck, idle].into_iter().flatten().min()
    }

    /// Returns true if the agent works and has been silent for the stuck timeout.
    pub fn is_silent(&self, now: Duration) -> bool {
        self.state == AgentState::Working && now >= self.last_alive + self.timeouts.stuck
    }

    /// Records that a tool is running. No other sign of life is expected meanwhile.
    pub fn tool_runs(&mut self, now: Duration) {
        self.last_alive = now;
    }

    /// Applies timeouts.
    pub fn tick(&mut self, now: Duration) -> AgentChanges {
        let mut changes = AgentChanges::default();
        if now >= self.decided_at + AUTHORITY_HOLD
            && let Some(signal) = self.contradicting.take()
            && let Some(state) = self.implied_state(now, &signal)
        {
            changes.extend(self.enter(now, state, &signal));
        }
        if self.is_silent(now) {
            let signal = Signal::state(Authority::Process, AgentState::Stuck);
            changes.extend(self.enter(now, AgentState::Stuck, &signal));
        }
        let is_idle = |idle: Duration| now >= self.since + idle;
        if self.is_waiting() && !self.idle_reported && self.timeouts.idle.is_some_and(is_idle) {
            changes.notices.push(self.idle(None));
        }
        changes
    }

    /// Builds the notice that the agent has been waiting for its user. There is one for each end of a turn.
    fn idle(&mut self, text: Option<String>) -> AgentNotice {
        self.idle_reported = true;
        self.episode.0 += 1;
        // No later signal of this episode adds to this notice.
        self.reported = Some(EpisodeReport { kind: Kind::Waiting, certain: true, has_text: true });
        let notice = AgentNotice {
            episode: self.episode,
            upgrade: false,
            kind: Kind::Waiting,
            category: Some(IDLE_PROMPT),
            text,
            running: self.running,
            turn: None,
        };
        self.open.add(&notice, self.state, None);
        notice
    }

    /// Handles a notification of the client. It adds its text to the notice of the current episode, or starts an episode if
    /// there is none. A bell has no text and is ignored.
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
                (false, signal.kind.unwrap_or_default())
            }
        };
        Some(AgentNotice {
            episode: self.episode,
            upgrade,
            kind,
            category: None,
            text: Some(text),
            running: 0,
            turn: self.ended_turn(),
        })
    }

    /// Duration of the turn that has ended.
    fn ended_turn(&self) -> Option<Duration> {
        let began = self.turn_began.filter(|_| self.state == AgentState::Done)?;
        Some(self.since.saturating_sub(began))
    }

    /// Returns true if a signal of work begins a turn: the person gave a prompt, or no turn was going on. Background work
    /// that wakes the agent continues the turn that waited for it.
    fn begins_turn(&self, before: AgentState, signal: &Signal) -> bool {
        let in_turn = before.is_busy()
            || matches!(before, AgentState::Blocked(_))
            || (before == AgentState::Done && self.pending);
        self.state.is_busy() && (signal.by_person || !in_turn)
    }

    /// Returns true if the agent counts as done only because its turn ended. That may have been a prompt or an
    /// interruption.
    fn is_guess(&self) -> bool {
        self.state == AgentState::Done && self.reported.is_some_and(|reported| !reported.certain)
    }

    /// Done, with nothing running: the agent waits for its user.
    fn is_waiting(&self) -> bool {
        self.state == AgentState::Done && !self.pending
    }

    /// The state that a signal implies, given the current one. `None` for no change.
    fn implied_state(&self, now: Duration, signal: &Signal) -> Option<AgentState> {
        match signal.content {
            SignalContent::Alive if self.state == AgentState::Stuck => Some(AgentState::Working),
            SignalContent::Idle if self.may_be_in_turn() => Some(AgentState::Done),
            SignalContent::Alive
            | SignalContent::Notified
            | SignalContent::Idle
            | SignalContent::UnattendedPermission => None,
            SignalContent::Interrupted => {
                let in_turn = self.state.is_busy() || matches!(self.state, AgentState::Blocked(_));
                (in_turn || self.is_guess()).then_some(AgentState::Ready)
            }
            // Only a turn can end. A blocked agent stays blocked: the title is the same for done and for blocked.
            SignalContent::TurnEnded => self.state.is_busy().then_some(AgentState::Done),
            // A client's notification does not mean that the turn ended: it may come a minute later.
            SignalContent::State(AgentState::Done) if signal.authority == Authority::Notification => None,
            // An agent that failed is not done when it becomes idle: opencode reports idle after every error.
            SignalContent::State(AgentState::Done)
                if self.state == AgentState::Error && !self.is_of_next_turn(signal) =>
            {
                None
            }
            // Nor is an agent that was interrupted: it reports idle after that, too.
            SignalContent::State(AgentState::Done)
                if self.interrupted && now < self.decided_at + AFTER_INTERRUPTION =>
            {
                None
            }
            SignalContent::State(state) => Some(state),
        }
    }

    fn overrides(&self, now: Duration, signal: &Signal, state: AgentState) -> bool {
        // Signals of a terminal arrive in order; reports of hooks take another path and may overtake them.
        let is_in_order = signal.is_blocked() && self.decided_by != Authority::Hook;
        let contradicts = state != self.state && !is_in_order;
        contradicts
            && state != AgentState::Exited
            && signal.authority > self.decided_by
            && now < self.decided_at + AUTHORITY_HOLD
    }

    fn enter(&mut self, now: Duration, state: AgentState, signal: &Signal) -> AgentChanges {
        let is_at_rest = state == AgentState::Done || signal.content == SignalContent::Interrupted;
        if self.may_be_in_turn() && is_at_rest && signal.turn.is_none() {
            self.no_turn_followed(now, signal);
            return AgentChanges::default();
        }
        let mut ended = self.open.end_by(state, signal);
        if self.is_guess() && signal.content == SignalContent::Interrupted {
            ended.extend(self.open.end_guess(self.episode));
        }
        AgentChanges { notices: self.change_state(now, state, signal).into_iter().collect(), ended }
    }

    /// The queued prompt was part of the turn that has ended, whose end was reported.
    fn no_turn_followed(&mut self, now: Duration, signal: &Signal) {
        self.queued_prompt = QueuedPrompt::None;
        self.state = AgentState::Done;
        self.since = now;
        (self.decided_by, self.decided_at) = (signal.authority, now);
        self.reported = Some(EpisodeReport { kind: Kind::Complete, certain: true, has_text: true });
    }

    fn change_state(&mut self, now: Duration, state: AgentState, signal: &Signal) -> Option<AgentNotice> {
        let before = std::mem::replace(&mut self.state, state);
        if self.may_be_in_turn() {
            self.queued_prompt = QueuedPrompt::None;
        }
        if signal.authority <= self.decided_by || state != before {
            (self.decided_by, self.decided_at) = (signal.authority, now);
        }
        if state != before {
            self.since = now;
        }
        if self.begins_turn(before, signal) {
            self.turn_began = Some(now);
        }
        let both_blocked = matches!((before, state), (AgentState::Blocked(_), AgentState::Blocked(_)));
        let is_new = if both_blocked && self.open.blocked_on().is_some() {
            // Either another signal for an open prompt, or one more prompt.
            let call = signal.call.as_deref().filter(|_| signal.authority == Authority::Hook);
            match self.open.prompt_of(call) {
                Some(episode) if episode != self.episode => return None,
                known => known.is_none(),
            }
        } else {
            let explains = before == AgentState::Done
                && signal.is_blocked()
                && self.reported.is_some_and(|reported| !reported.certain);
            state != before && !both_blocked && !explains
        };
        if is_new {
            self.episode.0 += 1;
            self.reported = None;
            self.idle_reported = false;
        }
        self.pending = state == AgentState::Done && signal.pending;
        self.running = if state == AgentState::Done { signal.running } else { 0 };
        self.interrupted = signal.content == SignalContent::Interrupted;
        if self.interrupted || self.pending {
            return None;
        }
        let (kind, category) = notice_for(before, state)?;
        let certain = !matches!(signal.content, SignalContent::TurnEnded);
        // A title names the task, and says nothing about how it ended.
        let has_text = signal.text.is_some() && signal.authority != Authority::Title;
        let reported = EpisodeReport { kind, certain, has_text };
        let earlier = self.reported.replace(reported.with(self.reported));
        let upgrade = earlier.is_some();
        if earlier.is_some_and(|earlier| !reported.adds_to(earlier)) {
            return None;
        }
        let (episode, text, running) = (self.episode, signal.text.clone(), self.running);
        let turn = self.ended_turn();
        let notice = AgentNotice { episode, upgrade, kind, category, text, running, turn };
        self.open.add(&notice, state, signal.call.as_deref());
        Some(notice)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EpisodeReport {
    pub(super) kind: Kind,
    /// The kind was reported, not guessed.
    pub(super) certain: bool,
    pub(super) has_text: bool,
}

impl EpisodeReport {
    /// Returns true if this adds to what was reported earlier for the same episode.
    pub(super) fn adds_to(self, earlier: Self) -> bool {
        let is_surer = self.certain && !earlier.certain;
        self.has_text && (is_surer || !earlier.has_text) || is_surer && self.kind != earlier.kind
    }

    /// Combines two reports of the same episode.
    pub(super) fn with(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let kind = if self.adds_to(earlier) { self.kind } else { earlier.kind };
        let (certain, has_text) = (self.certain || earlier.certain, self.has_text || earlier.has_text);
        Self { kind, certain, has_text }
    }
}

/// A prompt that the person gave in the middle of a turn. The client adds it to the turn, or begins the next turn with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QueuedPrompt {
    #[default]
    None,
    Waits,
    /// The turn has ended, and the agent counts as working. The client's next signal tells whether it does.
    MayHaveBegunTurn,
}

/// The default of [`AgentTimeouts::stuck`].
const STUCK_AFTER: Duration = Duration::from_mins(10);
/// The default of [`AgentTimeouts::idle`].
const IDLE_AFTER: Duration = Duration::from_mins(1);

/// The timeouts that settings can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentTimeouts {
    /// How long an agent may work without any signal before it counts as stuck.
    pub stuck: Duration,
    /// How long an agent may wait for its user before a notice is sent (`notify.idle_reminder`); `None` for no notice.
    pub idle: Option<Duration>,
}

impl Default for AgentTimeouts {
    fn default() -> Self {
        Self { stuck: STUCK_AFTER, idle: Some(IDLE_AFTER) }
    }
}

#[cfg(test)]
mod tests;
