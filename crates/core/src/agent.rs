//! The state of one agent, out of signals that come late, twice, or not at all.

use std::time::Duration;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Episode(u64);

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
#[derive(Debug, Clone)]
pub struct AgentMachine {
    state: AgentState,
    since: Duration,
    decided_by: Authority,
    decided_at: Duration,
    last_alive: Duration,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    /// Whether the kind was known, not guessed.
    certain: bool,
    has_text: bool,
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
            self.idle_told = true;
            self.episode.0 += 1;
            notices.push(Notice {
                episode: self.episode,
                upgrade: false,
                kind: Kind::Waiting,
                category: Some("idle_prompt"),
                text: None,
            });
        }
        notices
    }

    /// Done, with nothing running: it is the person's turn.
    fn is_waiting(&self) -> bool {
        self.state == AgentState::Done && !self.pending
    }

    /// The state that a signal means, here and now. `None` where it means no change.
    fn meaning(&self, signal: &Signal) -> Option<AgentState> {
        match signal.says {
            Says::Alive if self.state == AgentState::Stuck => Some(AgentState::Working),
            Says::Alive => None,
            // Only a turn can end, and what is known better stays: a title shows the same for done and for blocked.
            Says::TurnEnded => self.state.is_busy().then_some(AgentState::Done),
            // A client's own notification is no sign that its turn ended: it may come a minute later.
            Says::Is(AgentState::Done) if signal.authority == Authority::Notification => None,
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
        let telling = Told { certain, has_text: signal.text.is_some() };
        let upgrade = self.told.is_some();
        if self.told.is_some_and(|told| telling <= told) {
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
mod tests {
    use super::*;
    use AgentState::{
        Blocked, Compacting, Done, Error, Exited, RateLimited, Ready, Starting, Stuck, Working,
    };
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn hook(state: AgentState) -> Signal {
        Signal::state(Authority::Hook, state)
    }

    fn title(says: Says) -> Signal {
        Signal { authority: Authority::Title, says, text: None, pending: false }
    }

    /// Plays signals. Gives the kinds told, with `+` before an upgrade, and the state at the end.
    fn play(signals: &[(u64, Signal)]) -> (Vec<String>, AgentState) {
        let mut agent = AgentMachine::new(at(0), Patience::default());
        let mut told = Vec::new();
        for (seconds, signal) in signals {
            for notice in agent.apply(at(*seconds), signal) {
                told.push(format!("{}{}", if notice.upgrade { "+" } else { "" }, notice.kind));
            }
        }
        (told, agent.state())
    }

    #[track_caller]
    fn check(signals: &[(u64, Signal)], told: &[&str], state: AgentState) {
        let (found, end) = play(signals);
        assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), end), (told.to_vec(), state));
    }

    #[test]
    fn a_turn_makes_one_complete() {
        check(&[(1, hook(Ready)), (2, hook(Working)), (9, hook(Done))], &["complete"], Done);
    }

    #[test]
    fn transient_states_are_never_told() {
        let signals = [(1, hook(Working)), (2, hook(RateLimited)), (3, hook(Compacting)), (4, hook(Working))];
        check(&signals, &[], Working);
    }

    #[test]
    fn each_blocked_kind_tells_what_it_needs() {
        check(
            &[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Permission)))],
            &["waiting"],
            Blocked(BlockedOn::Permission),
        );
        check(
            &[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Question)))],
            &["question"],
            Blocked(BlockedOn::Question),
        );
        check(
            &[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Auth)))],
            &["waiting"],
            Blocked(BlockedOn::Auth),
        );
        check(&[(1, hook(Working)), (2, hook(Error))], &["error"], Error);
    }

    #[test]
    fn one_episode_makes_one_notice_however_late_the_other_signals_are() {
        let late = Signal::state(Authority::Notification, Blocked(BlockedOn::Permission));
        let signals = [
            (1, hook(Working)),
            (2, hook(Blocked(BlockedOn::Permission)).text("touch x")),
            (2, title(Says::TurnEnded)),
            (8, late),
        ];
        check(&signals, &["waiting"], Blocked(BlockedOn::Permission));
    }

    #[test]
    fn a_richer_signal_upgrades_in_place() {
        let signals =
            [(1, title(Says::Is(Working))), (20, title(Says::TurnEnded)), (21, hook(Done).text("all green"))];
        check(&signals, &["complete", "+complete"], Done);
        // Claude Code shows the same title for done and for blocked.
        let blocked = hook(Blocked(BlockedOn::Permission)).text("rm");
        let signals = [(1, title(Says::Is(Working))), (20, title(Says::TurnEnded)), (21, blocked)];
        check(&signals, &["complete", "waiting"], Blocked(BlockedOn::Permission));
    }

    #[test]
    fn a_less_believable_signal_waits_until_the_better_one_no_longer_holds() {
        check(&[(1, hook(Working)), (2, title(Says::TurnEnded))], &[], Working);
        let mut agent = AgentMachine::new(at(0), Patience::default());
        agent.apply(at(1), &hook(Working));
        agent.apply(at(2), &title(Says::TurnEnded));
        assert_eq!(agent.next_deadline(), Some(at(6)));
        assert_eq!(agent.tick(at(6))[0].kind, Kind::Complete, "the person pressed Escape: no hook came");
        // A hook in the meantime makes the doubt pointless.
        let signals =
            [(1, hook(Working)), (2, title(Says::TurnEnded)), (3, hook(Working)), (30, hook(Working))];
        check(&signals, &[], Working);
    }

    #[test]
    fn when_hooks_stop_arriving_the_next_one_takes_over() {
        check(&[(1, hook(Working)), (60, title(Says::TurnEnded))], &["complete"], Done);
    }

    #[test]
    fn a_notification_of_the_client_never_ends_a_turn() {
        let notification = Signal::state(Authority::Notification, Done);
        check(&[(1, hook(Working)), (60, notification)], &[], Working);
    }

    #[test]
    fn an_end_in_the_middle_of_a_turn_is_always_told() {
        let exit = Signal::state(Authority::Process, Exited);
        check(&[(1, hook(Working)), (2, exit.clone())], &["error"], Exited);
        check(&[(1, hook(Working)), (2, hook(Done)), (3, exit.clone())], &["complete"], Exited);
        check(&[(1, hook(Compacting)), (2, exit)], &["error"], Exited);
    }

    #[test]
    fn ten_minutes_without_a_sign_of_life_is_stuck_and_a_sign_ends_it() {
        let mut agent = AgentMachine::new(at(0), Patience::default());
        agent.apply(at(0), &hook(Working));
        agent.apply(at(300), &title(Says::Alive));
        assert_eq!(agent.next_deadline(), Some(at(900)));
        assert_eq!(agent.tick(at(899)), []);
        assert_eq!(agent.tick(at(900))[0].kind, Kind::Stuck);
        assert_eq!(agent.state(), Stuck);
        assert_eq!(agent.apply(at(901), &title(Says::Alive)), []);
        assert_eq!(agent.state(), Working);
    }

    #[test]
    fn a_minute_after_the_turn_one_idle_notice_and_a_new_turn_cancels_it() {
        let mut agent = AgentMachine::new(at(0), Patience::default());
        agent.apply(at(0), &hook(Working));
        agent.apply(at(10), &hook(Done));
        assert_eq!(agent.next_deadline(), Some(at(70)));
        let idle = agent.tick(at(70));
        assert_eq!((idle[0].kind, idle[0].category), (Kind::Waiting, Some("idle_prompt")));
        assert_eq!((agent.tick(at(500)), agent.next_deadline()), (vec![], None));
        agent.apply(at(600), &hook(Working));
        agent.apply(at(610), &hook(Done));
        agent.apply(at(650), &hook(Working));
        assert_eq!(agent.tick(at(680)), []);
    }

    #[test]
    fn a_stop_with_work_still_running_is_not_complete() {
        let pending = Signal { pending: true, ..hook(Done) };
        let mut agent = AgentMachine::new(at(0), Patience::default());
        agent.apply(at(0), &hook(Working));
        assert_eq!(agent.apply(at(1), &pending), []);
        assert_eq!(agent.tick(at(100)), [], "nor is the person waited for");
        agent.apply(at(101), &hook(Working));
        assert_eq!(agent.apply(at(102), &hook(Done))[0].kind, Kind::Complete);
    }

    proptest! {
        /// Whatever comes: a turn that is left is told, an episode is told once and then only upgraded.
        #[test]
        fn no_turn_ends_untold_and_no_episode_is_told_twice(
            signals in prop::collection::vec((0u64..40, 0usize..5, 0usize..12), 0..60)
        ) {
            let authorities =
                [Authority::Hook, Authority::Status, Authority::Title, Authority::Notification, Authority::Process];
            let states = [Starting, Ready, Working, Done, Error, Exited, RateLimited, Compacting,
                Blocked(BlockedOn::Permission), Blocked(BlockedOn::Question)];
            let mut agent = AgentMachine::new(at(0), Patience::default());
            let (mut now, mut seen) = (0, std::collections::HashSet::new());
            for (step, authority, what) in signals {
                now += step;
                let says = match what {
                    10 => Says::TurnEnded,
                    11 => Says::Alive,
                    state => Says::Is(states[state]),
                };
                let signal = Signal { authority: authorities[authority], says, text: None, pending: false };
                // Time first, then the signal: each may end a turn.
                let mut told = Vec::new();
                for with_signal in [false, true] {
                    let before = agent.state();
                    let notices = if with_signal { agent.apply(at(now), &signal) } else { agent.tick(at(now)) };
                    let after = agent.state();
                    let left = before.is_busy() && !after.is_busy() && after != Starting;
                    prop_assert!(!left || !notices.is_empty(), "{:?} to {:?} untold", before, after);
                    told.extend(notices);
                }
                for notice in told {
                    let again = !seen.insert(notice.episode);
                    prop_assert_eq!(again, notice.upgrade);
                }
                prop_assert!(agent.next_deadline().is_none_or(|deadline| deadline > at(now)));
            }
        }
    }
}
