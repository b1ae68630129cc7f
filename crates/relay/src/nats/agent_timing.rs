//! Decides when a machine publishes its agents to its team: pure rules.
//!
//! Every list goes to every machine, so the load on the server grows with the square of the team. The pauses grow with the team:
//! for 1,000 machines the server delivers 3,000 to 4,000 repeated lists a second, and at most 20,000 (1,000 × 1,000 in 50 s) if
//! the lists of all machines change all the time.

use std::time::{Duration, Instant};

/// Delay between a change and the next check of the agents: changes come in bursts.
const CHECK_DELAY: Duration = Duration::from_millis(200);
/// The interval at which an unchanged list is repeated. A list is valid for `VALIDITY_HALVES` halves of it.
const REPEAT: Pause = Pause { least: Duration::from_secs(20), per_machine: Duration::from_millis(300) };
const VALIDITY_HALVES: u32 = 5;
/// The minimum interval between two lists.
const GAP: Pause = Pause { least: Duration::from_secs(1), per_machine: Duration::from_millis(50) };
/// The period over which machines spread their replies to one that asks, and their first lists after connecting together.
const SPREAD: Pause = Pause { least: Duration::from_millis(50), per_machine: Duration::from_millis(20) };

/// Delay between a change and writing the lists to their file: changes come in bursts, and the file holds all of them.
const WRITE: Pause = Pause { least: Duration::from_millis(300), per_machine: Duration::from_millis(5) };
/// The maximum delay after a repeated list: the file records when each machine sent its last list, and a machine is listed for a
/// day after that.
const WRITE_REPEATED: Duration = Duration::from_mins(5);

/// A pause that grows with the team.
struct Pause {
    least: Duration,
    per_machine: Duration,
}

impl Pause {
    /// Returns the pause in a team of `machines` machines.
    fn of(&self, machines: usize) -> Duration {
        let machines = u32::try_from(machines).unwrap_or(u32::MAX).min(10_000);
        self.least.max(self.per_machine * machines)
    }
}

/// A random part of a pause, in 256ths, so that machines do not send at the same moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jitter(pub(crate) u8);

impl Jitter {
    fn of(self, pause: Duration) -> Duration {
        pause * u32::from(self.0) / 256
    }
}

/// The times of the next check of the agents, the next list, and the next write of the other machines' lists.
#[derive(Debug)]
pub(crate) struct AgentTiming {
    last_sent: Option<Instant>,
    send_at: Instant,
    check_at: Option<Instant>,
    write_at: Option<Instant>,
    /// The next list replies to machines that asked.
    is_replying: bool,
    /// The number of machines before this connection, and how long it is used.
    previous_machines: usize,
    previous_until: Instant,
}

impl AgentTiming {
    /// Begins a connection to a team of about `machines` machines.
    pub(crate) fn begin(now: Instant, machines: usize, jitter: Jitter) -> Self {
        Self {
            last_sent: None,
            send_at: now + jitter.of(SPREAD.of(machines)),
            check_at: None,
            write_at: None,
            is_replying: false,
            previous_machines: machines,
            previous_until: now + REPEAT.of(machines),
        }
    }

    /// Returns the number of machines in the team, of which `current` have sent a list. Until all had time to do so, the number
    /// before the connection is the minimum.
    pub(crate) fn machines(&self, now: Instant, current: usize) -> usize {
        if now < self.previous_until { current.max(self.previous_machines) } else { current }
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.check_at = self.check_at.or(Some(now + CHECK_DELAY));
    }

    /// Returns true if the agents must be checked now, and resets that timer.
    pub(crate) fn take_check(&mut self, now: Instant) -> bool {
        self.check_at.take_if(|at| *at <= now).is_some()
    }

    /// The agents of this machine differ from the last list.
    pub(crate) fn list_outdated(&mut self, now: Instant, machines: usize) {
        self.schedule_send(now, Duration::ZERO, machines);
    }

    /// Another machine asks for the list. One list answers all machines that are waiting for it.
    pub(crate) fn asked(&mut self, now: Instant, machines: usize, jitter: Jitter) {
        if self.last_sent.is_none() || self.is_replying {
            return;
        }
        self.is_replying = true;
        self.schedule_send(now, jitter.of(SPREAD.of(machines)), machines);
    }

    fn schedule_send(&mut self, now: Instant, after: Duration, machines: usize) {
        let allowed = self.last_sent.map_or(now, |last| last + GAP.of(machines));
        self.send_at = self.send_at.min((now + after).max(allowed));
    }

    /// Returns true if the list must be sent now, and schedules the next one.
    pub(crate) fn take_send(&mut self, now: Instant, machines: usize, jitter: Jitter) -> bool {
        let is_due = self.send_at <= now;
        if is_due {
            // Between four fifths of the pause and all of it.
            let pause = REPEAT.of(machines);
            (self.last_sent, self.send_at) = (Some(now), now + pause * 4 / 5 + jitter.of(pause / 5));
            self.is_replying = false;
        }
        is_due
    }

    /// Returns how long a list sent now is valid.
    pub(crate) fn validity(machines: usize) -> Duration {
        REPEAT.of(machines) * VALIDITY_HALVES / 2
    }

    /// The lists of other machines have changed.
    pub(crate) fn lists_changed(&mut self, now: Instant, machines: usize) {
        self.schedule_write(now + WRITE.of(machines));
    }

    /// Another machine repeated its list.
    pub(crate) fn list_repeated(&mut self, now: Instant) {
        self.schedule_write(now + WRITE_REPEATED);
    }

    fn schedule_write(&mut self, at: Instant) {
        self.write_at = Some(self.write_at.map_or(at, |planned| planned.min(at)));
    }

    /// Returns true if the lists of the other machines must be written now, and resets that timer.
    pub(crate) fn take_write(&mut self, now: Instant) -> bool {
        self.write_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Instant {
        [self.check_at, self.write_at].into_iter().flatten().fold(self.send_at, Instant::min)
    }
}

#[cfg(test)]
mod tests {
    use test_support::Random;

    use super::*;

    const NONE: Jitter = Jitter(0);
    const ALL: Jitter = Jitter(255);

    #[test]
    fn a_list_is_sent_at_once_and_repeated_before_it_expires() {
        let begin = Instant::now();
        let mut timing = AgentTiming::begin(begin, 1, ALL);
        assert!(timing.next() <= begin + SPREAD.least);
        let (mut now, mut sent) = (timing.next(), 0);
        while now < begin + Duration::from_secs(100) {
            let before = now;
            assert!(timing.take_send(now, 1, ALL));
            sent += 1;
            now = timing.next();
            assert!(now - before <= AgentTiming::validity(1) / 2, "one that is lost does no harm");
        }
        assert_eq!(sent, 6);
    }

    #[test]
    fn a_change_is_sent_soon_and_bursts_are_combined() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut timing = AgentTiming::begin(begin, 0, NONE);
        assert!(timing.take_send(begin, 3, NONE));
        timing.changed(at(5_000));
        timing.changed(at(5_100));
        assert_eq!((timing.next(), timing.take_check(at(5_199))), (at(5_200), false));
        assert!(timing.take_check(at(5_200)) && !timing.take_check(at(5_200)));
        timing.list_outdated(at(5_200), 3);
        assert!(timing.take_send(at(5_200), 3, NONE));
        timing.list_outdated(at(5_400), 3);
        assert_eq!(timing.next(), at(6_200), "not more than once a second");
        timing.list_outdated(at(5_400), 1_000);
        assert_eq!(timing.next(), at(6_200), "what is planned stays");
        assert!(timing.take_send(at(6_200), 1_000, NONE));
        timing.list_outdated(at(6_400), 1_000);
        assert_eq!(timing.next(), at(56_200), "in a large team less often");
    }

    #[test]
    fn repeated_lists_are_written_rarely() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut timing = AgentTiming::begin(begin, 0, NONE);
        assert!(!timing.take_write(at(1_000)));
        timing.list_repeated(begin);
        timing.list_repeated(at(20));
        assert!(!timing.take_write(at(299)) && timing.take_write(at(300)) && !timing.take_write(at(300)));
        timing.list_repeated(at(320));
        timing.lists_changed(at(330), 1);
        assert!(timing.take_write(at(331)), "a change is not held up");
        timing.lists_changed(at(340), 1_000);
        timing.list_repeated(at(340));
        assert!(!timing.take_write(at(344)) && timing.take_write(at(345)));
    }

    /// A thousand machines connect to a server in the same second. Each knows no other at first, and asks all of them.
    #[test]
    fn machines_that_connect_together_do_not_flood_the_server() {
        const MACHINES: usize = 1_000;
        let begin = Instant::now();
        let mut random = Random::new(1);
        let mut random_jitter = || Jitter(random.byte());
        let mut team: Vec<_> =
            (0..MACHINES).map(|_| AgentTiming::begin(begin, MACHINES - 1, random_jitter())).collect();
        let (mut current, mut sent, mut most) = (1, 0, 0);
        for ms in (0..60_000).step_by(50) {
            let now = begin + Duration::from_millis(ms);
            let mut asking = 0;
            let mut sent_now = 0;
            for timing in &mut team {
                let is_first = timing.last_sent.is_none();
                let machines = timing.machines(now, current);
                if timing.take_send(now, machines, random_jitter()) {
                    sent_now += 1;
                    asking += usize::from(is_first);
                }
            }
            for _ in 0..asking {
                current = (current + 1).min(MACHINES);
                for timing in &mut team {
                    let machines = timing.machines(now, current);
                    timing.asked(now, machines, random_jitter());
                }
            }
            (sent, most) = (sent + sent_now, most.max(sent_now));
        }
        assert_eq!(current, MACHINES, "each has sent its list");
        assert!(sent <= 2 * MACHINES, "{sent} lists in the first minute");
        assert!(most <= MACHINES / 50, "{most} lists in the same moment");
    }

    #[test]
    fn one_list_answers_all_requests() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut timing = AgentTiming::begin(begin, 500, ALL);
        timing.asked(begin, timing.machines(begin, 1), NONE);
        assert_eq!(timing.next(), begin + ALL.of(SPREAD.of(500)), "the first list is planned");
        assert!(timing.take_send(at(10), 500, ALL));
        timing.asked(at(100), 500, ALL);
        let answer = timing.next();
        assert_eq!(answer, at(100) + ALL.of(SPREAD.of(500)));
        timing.asked(at(101), 500, NONE);
        assert_eq!(timing.next(), answer);
        assert!(timing.take_send(answer, 500, ALL));
        timing.asked(at(140), 500, NONE);
        assert_eq!(timing.next(), at(140), "another one");
        assert_eq!(timing.machines(at(140), 3), 500);
        assert_eq!(timing.machines(at(150), 3), 3, "all that are there have sent their list");
    }
}
