use std::time::{Duration, Instant};

use super::payload::Label;
use super::shared_state::{COMMAND_TIMEOUT, SharedState};
use crate::failure::Failure;
use crate::process_result::ProcessResult;
use crate::random::Random;

/// One process in this many is killed: often enough to hit every moment, and seldom enough that most messages are
/// acknowledged.
const KILLED_ONE_IN: u64 = 4;

/// Sends the writer's messages one after the other, each with its own process.
pub(super) fn run(state: &SharedState<'_>, writer: u32, over: Instant) -> Result<(), Failure> {
    let mut random = Random::new(state.plan.common.seed, u64::from(writer) | 1 << 63);
    let mut kill_timer = KillTimer::default();
    for number in 0..state.plan.messages {
        if Instant::now() >= over {
            break;
        }
        let label = Label { writer, number };
        state.record().send(label);
        let text = label.text(state.plan.common.seed);
        let time = kill_timer.time_limit(state.plan.kill && random.one_in(KILLED_ONE_IN), &mut random);
        let mut command = state.environment.ringer(["notify", "--json", "--from", &label.sender(), &text]);
        let ending = ProcessResult::of(command.stderr(state.environment.complaints()?), time)?;
        if ending.is_success() {
            state.record().acknowledge(label, &ending.output);
            kill_timer.record_duration(ending.took);
        } else {
            state.count(&ending, time);
        }
    }
    Ok(())
}

/// Chooses when a process is killed: at a random moment within the duration of the last one, which also fits a busy machine.
pub(super) struct KillTimer {
    usual: Duration,
}

impl Default for KillTimer {
    fn default() -> Self {
        Self { usual: Duration::from_millis(5) }
    }
}

impl KillTimer {
    pub(super) fn time_limit(&self, is_killed: bool, random: &mut Random) -> Duration {
        if !is_killed {
            return COMMAND_TIMEOUT;
        }
        let usual = u64::try_from(self.usual.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(random.below(usual.saturating_mul(5) / 4).max(1)).min(COMMAND_TIMEOUT / 2)
    }

    pub(super) fn record_duration(&mut self, took: Duration) {
        self.usual = took;
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMAND_TIMEOUT, KillTimer};
    use crate::random::Random;
    use std::time::Duration;

    #[test]
    fn the_doomed_die_at_any_moment_of_a_usual_life() {
        let mut random = Random::new(3, 0);
        let mut kill_timer = KillTimer::default();
        assert_eq!(kill_timer.time_limit(false, &mut random), COMMAND_TIMEOUT);
        kill_timer.record_duration(Duration::from_millis(100));
        let draws: Vec<u128> =
            (0..1000).map(|_| kill_timer.time_limit(true, &mut random).as_millis()).collect();
        assert!(draws.iter().all(|millis| *millis <= 125), "{draws:?}");
        assert!(
            draws.iter().any(|millis| *millis < 5) && draws.iter().any(|millis| *millis > 95),
            "{draws:?}"
        );
    }
}
