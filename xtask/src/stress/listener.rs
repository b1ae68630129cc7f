use super::delivery_record::{Consumer, Listener};
use super::shared_state::{COMMAND_TIMEOUT, SharedState};
use super::writer::KillTimer;
use crate::failure::Failure;
use crate::process_result::ProcessResult;
use crate::random::Random;

const KILLED_ONE_IN: u64 = 3;

/// In seconds. Short, so that listeners notice the end of the run soon, and so that timeouts coincide with messages.
const TIMEOUT: &str = "0.5";

/// Runs listeners for one consumer in a loop until the writers are done.
pub(super) fn run(state: &SharedState<'_>, index: u32, consumer: Consumer) -> Result<(), Failure> {
    let mut random = Random::new(state.plan.common.seed, u64::from(index) | 1 << 62);
    let mut kill_timer = KillTimer::default();
    while !state.writing_has_ended() {
        let time = kill_timer.time_limit(state.plan.kill && random.one_in(KILLED_ONE_IN), &mut random);
        let ending = listen(state, consumer, TIMEOUT, time)?;
        if ending.is_success() && !ending.output.is_empty() {
            kill_timer.record_duration(ending.took);
        }
    }
    Ok(())
}

/// Reads the remaining messages when no other process is running.
pub(super) fn drain(state: &SharedState<'_>, consumer: Consumer) -> Result<(), Failure> {
    // Each call with output consumes at least one message.
    let most = u64::from(state.plan.writers) * u64::from(state.plan.messages) + 1;
    for _ in 0..=most {
        let ending = listen(state, consumer, "0", COMMAND_TIMEOUT)?;
        if !ending.is_success() {
            let status = ending.status();
            let complaints = state.environment.first_errors();
            return Err(Failure::complaints(format!("draining {}: {status}\n{complaints}", consumer.name())));
        }
        if ending.output.is_empty() {
            return Ok(());
        }
    }
    Err(Failure::complaints(format!("{} never runs dry: its cursor does not move", consumer.name())))
}

fn listen(
    state: &SharedState<'_>,
    consumer: Consumer,
    timeout: &str,
    time: std::time::Duration,
) -> Result<ProcessResult, Failure> {
    let mut command = state.environment.ringer(["listen", "--timeout", timeout, "--as", consumer.name()]);
    let ending = ProcessResult::of(command.stderr(state.environment.complaints()?), time)?;
    let listener = if ending.is_success() { Listener::Finished } else { Listener::Died };
    state.record().arrive(consumer, listener, &ending.output);
    if !ending.is_success() {
        state.count(&ending, time);
    }
    Ok(ending)
}
