use super::course::{Course, PATIENCE};
use super::ledger::{Consumer, Listener};
use super::writer::Fate;
use crate::chance::Chance;
use crate::ending::Ending;
use crate::failure::Failure;

const DOOMED_ONE_IN: u64 = 3;

/// Seconds. Short, so that the end of the run is noticed soon, and so that time-outs happen beside messages.
const TIMEOUT: &str = "0.5";

/// Listens again and again under one name until the writers are done.
pub(super) fn run(course: &Course<'_>, place: u32, consumer: Consumer) -> Result<(), Failure> {
    let mut chance = Chance::new(course.plan.frame.seed, u64::from(place) | 1 << 62);
    let mut fate = Fate::default();
    while !course.is_over() {
        let time = fate.draw(course.plan.kill && chance.one_in(DOOMED_ONE_IN), &mut chance);
        let ending = listen(course, consumer, TIMEOUT, time)?;
        if ending.is_success() && !ending.output.is_empty() {
            fate.learn(ending.took);
        }
    }
    Ok(())
}

/// Reads what is left, with nobody else about.
pub(super) fn drain(course: &Course<'_>, consumer: Consumer) -> Result<(), Failure> {
    // Each call that prints anything moves on by at least one message.
    let most = u64::from(course.plan.writers) * u64::from(course.plan.messages) + 1;
    for _ in 0..=most {
        let ending = listen(course, consumer, "0", PATIENCE)?;
        if !ending.is_success() {
            let status = ending.status();
            let complaints = course.scene.first_complaints();
            return Err(Failure::complaints(format!("draining {}: {status}\n{complaints}", consumer.name())));
        }
        if ending.output.is_empty() {
            return Ok(());
        }
    }
    Err(Failure::complaints(format!("{} never runs dry: its cursor does not move", consumer.name())))
}

fn listen(
    course: &Course<'_>,
    consumer: Consumer,
    timeout: &str,
    time: std::time::Duration,
) -> Result<Ending, Failure> {
    let mut command = course.scene.ringer(["listen", "--timeout", timeout, "--as", consumer.name()]);
    let ending = Ending::of(command.stderr(course.scene.complaints()?), time)?;
    let listener = if ending.is_success() { Listener::Finished } else { Listener::Died };
    course.ledger().arrive(consumer, listener, &ending.output);
    if !ending.is_success() {
        course.count(&ending, time);
    }
    Ok(ending)
}
