//! Decides when a machine publishes its agents to its team: pure rules.
//!
//! Every list goes to every machine, so the load on the server grows with the square of the team. The pauses grow with the team:
//! for 1,000 machines the server delivers 3,000 to 4,000 repeated lists a second, and at most 20,000 (1,000 × 1,000 in 50 s) if
//! the lists of all machines change all the time.

use std::time::{Duration, Instant};

/// Delay between a change and the next check of the agents: changes come in bursts.
const LOOK_AFTER: Duration = Duration::from_millis(200);
/// The interval at which an unchanged list is repeated. A list is valid for `HOLDS_HALVES` halves of it.
const REPEAT: Pause = Pause { least: Duration::from_secs(20), of_each: Duration::from_millis(300) };
const HOLDS_HALVES: u32 = 5;
/// The minimum interval between two lists.
const GAP: Pause = Pause { least: Duration::from_secs(1), of_each: Duration::from_millis(50) };
/// The period over which machines spread their replies to one that asks, and their first lists after connecting together.
const SPREAD: Pause = Pause { least: Duration::from_millis(50), of_each: Duration::from_millis(20) };

/// Delay between a change and writing the lists to their file: changes come in bursts, and the file holds all of them.
const WRITE: Pause = Pause { least: Duration::from_millis(300), of_each: Duration::from_millis(5) };
/// The maximum delay after a repeated list: the file records when each machine sent its last list, and a machine is listed for a
/// day after that.
const WRITE_REPEATED: Duration = Duration::from_mins(5);

/// A pause that grows with the team.
struct Pause {
    least: Duration,
    of_each: Duration,
}

impl Pause {
    /// Returns the pause in a team of `machines` machines.
    fn of(&self, machines: usize) -> Duration {
        let machines = u32::try_from(machines).unwrap_or(u32::MAX).min(10_000);
        self.least.max(self.of_each * machines)
    }
}

/// A random part of a pause, in 256ths, so that machines do not send at the same moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share(pub(crate) u8);

impl Share {
    fn of(self, pause: Duration) -> Duration {
        pause * u32::from(self.0) / 256
    }
}

/// The times of the next check of the agents, the next list, and the next write of the other machines' lists.
#[derive(Debug)]
pub(crate) struct AgentTiming {
    last_told: Option<Instant>,
    tell_at: Instant,
    look_at: Option<Instant>,
    write_at: Option<Instant>,
    /// The next list replies to machines that asked.
    is_answering: bool,
    /// The number of machines before this connection, and how long it is used.
    had: usize,
    had_until: Instant,
}

impl AgentTiming {
    /// Begins a connection to a team of about `machines` machines.
    pub(crate) fn begin(now: Instant, machines: usize, share: Share) -> Self {
        Self {
            last_told: None,
            tell_at: now + share.of(SPREAD.of(machines)),
            look_at: None,
            write_at: None,
            is_answering: false,
            had: machines,
            had_until: now + REPEAT.of(machines),
        }
    }

    /// Returns the number of machines in the team, of which `current` have sent a list. Until all had time to do so, the number
    /// before the connection is the minimum.
    pub(crate) fn machines(&self, now: Instant, current: usize) -> usize {
        if now < self.had_until { current.max(self.had) } else { current }
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.look_at = self.look_at.or(Some(now + LOOK_AFTER));
    }

    /// Returns true if the agents must be checked now, and resets that timer.
    pub(crate) fn looks(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }

    /// The agents of this machine differ from the last list.
    pub(crate) fn differ(&mut self, now: Instant, machines: usize) {
        self.tell_before(now, Duration::ZERO, machines);
    }

    /// Another machine asks for the list. One list answers all machines that are waiting for it.
    pub(crate) fn asked(&mut self, now: Instant, machines: usize, share: Share) {
        if self.last_told.is_none() || self.is_answering {
            return;
        }
        self.is_answering = true;
        self.tell_before(now, share.of(SPREAD.of(machines)), machines);
    }

    fn tell_before(&mut self, now: Instant, after: Duration, machines: usize) {
        let allowed = self.last_told.map_or(now, |last| last + GAP.of(machines));
        self.tell_at = self.tell_at.min((now + after).max(allowed));
    }

    /// Returns true if the list must be sent now, and schedules the next one.
    pub(crate) fn tells(&mut self, now: Instant, machines: usize, share: Share) -> bool {
        let is_due = self.tell_at <= now;
        if is_due {
            // Between four fifths of the pause and all of it.
            let pause = REPEAT.of(machines);
            (self.last_told, self.tell_at) = (Some(now), now + pause * 4 / 5 + share.of(pause / 5));
            self.is_answering = false;
        }
        is_due
    }

    /// Returns how long a list sent now is valid.
    pub(crate) fn holds(machines: usize) -> Duration {
        REPEAT.of(machines) * HOLDS_HALVES / 2
    }

    /// The lists of other machines have changed.
    pub(crate) fn lists_changed(&mut self, now: Instant, machines: usize) {
        self.write_before(now + WRITE.of(machines));
    }

    /// Another machine repeated its list.
    pub(crate) fn list_repeated(&mut self, now: Instant) {
        self.write_before(now + WRITE_REPEATED);
    }

    fn write_before(&mut self, at: Instant) {
        self.write_at = Some(self.write_at.map_or(at, |planned| planned.min(at)));
    }

    /// Returns true if the lists of the other machines must be written now, and resets that timer.
    pub(crate) fn writes(&mut self, now: Instant) -> bool {
        self.write_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Instant {
        [self.look_at, self.write_at].into_iter().flatten().fold(self.tell_at, Instant::min)
    }
}

#[cfg(test)]
mod tests {
    use test_support::Random;

    use super::*;

    const NONE: Share = Share(0);
    const ALL: Share = Share(255);

    #[test]
    fn a_list_is_told_at_once_and_again_before_it_no_longer_holds() {
        let begin = Instant::now();
        let mut timing = AgentTiming::begin(begin, 1, ALL);
        assert!(timing.next() <= begin + SPREAD.least);
        let (mut now, mut told) = (timing.next(), 0);
        while now < begin + Duration::from_secs(100) {
            let before = now;
            assert!(timing.tells(now, 1, ALL));
            told += 1;
            now = timing.next();
            assert!(now - before <= AgentTiming::holds(1) / 2, "one that is lost does no harm");
        }
        assert_eq!(told, 6);
    }

    #[test]
    fn a_change_is_told_soon_and_many_are_told_together() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut timing = AgentTiming::begin(begin, 0, NONE);
        assert!(timing.tells(begin, 3, NONE));
        timing.changed(at(5_000));
        timing.changed(at(5_100));
        assert_eq!((timing.next(), timing.looks(at(5_199))), (at(5_200), false));
        assert!(timing.looks(at(5_200)) && !timing.looks(at(5_200)));
        timing.differ(at(5_200), 3);
        assert!(timing.tells(at(5_200), 3, NONE));
        timing.differ(at(5_400), 3);
        assert_eq!(timing.next(), at(6_200), "not more than once a second");
        timing.differ(at(5_400), 1_000);
        assert_eq!(timing.next(), at(6_200), "what is planned stays");
        assert!(timing.tells(at(6_200), 1_000, NONE));
        timing.differ(at(6_400), 1_000);
        assert_eq!(timing.next(), at(56_200), "in a large team less often");
    }

    #[test]
    fn lists_that_only_repeat_are_written_now_and_then() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut timing = AgentTiming::begin(begin, 0, NONE);
        assert!(!timing.writes(at(1_000)));
        timing.list_repeated(begin);
        timing.list_repeated(at(20));
        assert!(!timing.writes(at(299)) && timing.writes(at(300)) && !timing.writes(at(300)));
        timing.list_repeated(at(320));
        timing.lists_changed(at(330), 1);
        assert!(timing.writes(at(331)), "a change is not held up");
        timing.lists_changed(at(340), 1_000);
        timing.list_repeated(at(340));
        assert!(!timing.writes(at(344)) && timing.writes(at(345)));
    }

    /// A thousand machines connect to a server in the same second. Each knows no other at first, and asks all of them.
    #[test]
    fn machines_that_connect_together_do_not_ask_for_a_storm() {
        const MACHINES: usize = 1_000;
        let begin = Instant::now();
        let mut random = Random::new(1);
        let mut share = || Share(random.byte());
        let mut team: Vec<_> =
            (0..MACHINES).map(|_| AgentTiming::begin(begin, MACHINES - 1, share())).collect();
        let (mut current, mut told, mut most) = (1, 0, 0);
        for ms in (0..60_000).step_by(50) {
            let now = begin + Duration::from_millis(ms);
            let mut asking = 0;
            let mut told_now = 0;
            for timing in &mut team {
                let is_first = timing.last_told.is_none();
                let machines = timing.machines(now, current);
                if timing.tells(now, machines, share()) {
                    told_now += 1;
                    asking += usize::from(is_first);
                }
            }
            for _ in 0..asking {
                current = (current + 1).min(MACHINES);
                for timing in &mut team {
                    let machines = timing.machines(now, current);
                    timing.asked(now, machines, share());
                }
            }
            (told, most) = (told + told_now, most.max(told_now));
        }
        assert_eq!(current, MACHINES, "each has told its list");
        assert!(told <= 2 * MACHINES, "{told} lists in the first minute");
        assert!(most <= MACHINES / 50, "{most} lists in the same moment");
    }

    #[test]
    fn a_machine_that_asks_is_answered_once() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut timing = AgentTiming::begin(begin, 500, ALL);
        timing.asked(begin, timing.machines(begin, 1), NONE);
        assert_eq!(timing.next(), begin + ALL.of(SPREAD.of(500)), "the first list is planned");
        assert!(timing.tells(at(10), 500, ALL));
        timing.asked(at(100), 500, ALL);
        let answer = timing.next();
        assert_eq!(answer, at(100) + ALL.of(SPREAD.of(500)));
        timing.asked(at(101), 500, NONE);
        assert_eq!(timing.next(), answer);
        assert!(timing.tells(answer, 500, ALL));
        timing.asked(at(140), 500, NONE);
        assert_eq!(timing.next(), at(140), "another one");
        assert_eq!(timing.machines(at(140), 3), 500);
        assert_eq!(timing.machines(at(150), 3), 3, "all that are there have told their list");
    }
}
