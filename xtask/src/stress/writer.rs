use std::time::{Duration, Instant};

use super::course::{Course, PATIENCE};
use super::payload::Label;
use crate::chance::Chance;
use crate::ending::Ending;
use crate::failure::Failure;

/// How many of them are killed: enough to hit every moment, few enough that most is acknowledged.
const DOOMED_ONE_IN: u64 = 4;

/// Sends its messages one after the other, each with a process of its own.
pub(super) fn run(course: &Course<'_>, writer: u32, over: Instant) -> Result<(), Failure> {
    let mut chance = Chance::new(course.plan.frame.seed, u64::from(writer) | 1 << 63);
    let mut fate = Fate::default();
    for number in 0..course.plan.messages {
        if Instant::now() >= over {
            break;
        }
        let label = Label { writer, number };
        course.ledger().send(label);
        let text = label.text(course.plan.frame.seed);
        let time = fate.draw(course.plan.kill && chance.one_in(DOOMED_ONE_IN), &mut chance);
        let mut command = course.scene.ringer(["notify", "--json", "--from", &label.sender(), &text]);
        let ending = Ending::of(command.stderr(course.scene.complaints()?), time)?;
        if ending.is_success() {
            course.ledger().acknowledge(label, &ending.output);
            fate.learn(ending.took);
        } else {
            course.count(&ending, time);
        }
    }
    Ok(())
}

/// When a process dies: at any moment of a life as long as the last one was, however busy the machine is.
pub(super) struct Fate {
    usual: Duration,
}

impl Default for Fate {
    fn default() -> Self {
        Self { usual: Duration::from_millis(5) }
    }
}

impl Fate {
    pub(super) fn draw(&self, doomed: bool, chance: &mut Chance) -> Duration {
        if !doomed {
            return PATIENCE;
        }
        let usual = u64::try_from(self.usual.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(chance.below(usual.saturating_mul(5) / 4).max(1)).min(PATIENCE / 2)
    }

    pub(super) fn learn(&mut self, took: Duration) {
        self.usual = took;
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, PATIENCE};
    use crate::chance::Chance;
    use std::time::Duration;

    #[test]
    fn the_doomed_die_at_any_moment_of_a_usual_life() {
        let mut chance = Chance::new(3, 0);
        let mut fate = Fate::default();
        assert_eq!(fate.draw(false, &mut chance), PATIENCE);
        fate.learn(Duration::from_millis(100));
        let draws: Vec<u128> = (0..1000).map(|_| fate.draw(true, &mut chance).as_millis()).collect();
        assert!(draws.iter().all(|millis| *millis <= 125), "{draws:?}");
        assert!(
            draws.iter().any(|millis| *millis < 5) && draws.iter().any(|millis| *millis > 95),
            "{draws:?}"
        );
    }
}
