//! Many processes that start at the same moment, as when many agents end their turns together.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::measure::Samples;
use crate::failure::Failure;

/// A kind of process, and the command of each process by its number.
pub(super) struct Crowd<'a> {
    pub(super) name: &'static str,
    pub(super) command: Box<dyn Fn(u64) -> Command + 'a>,
}

/// Starts `many` processes of each kind at once, one kind after the other, for `rounds` rounds. Each process is timed from
/// the common start to its exit.
pub(super) fn run(crowds: &[Crowd<'_>], many: u64, rounds: u64) -> Result<Vec<Samples>, Failure> {
    let mut times = vec![Vec::new(); crowds.len()];
    for round in 0..rounds {
        for (crowd, times) in crowds.iter().zip(&mut times) {
            let commands = (round * many..(round + 1) * many).map(&crowd.command).collect();
            times.extend(start(commands, crowd.name)?);
        }
    }
    let named = crowds.iter().zip(times);
    Ok(named.map(|(crowd, times)| Samples::new(crowd.name.to_owned(), times)).collect())
}

/// Starts each process from its own thread: a single thread would start the last one after the first has exited.
fn start(commands: Vec<Command>, name: &str) -> Result<Vec<Duration>, Failure> {
    let barrier = Barrier::new(commands.len());
    thread::scope(|scope| {
        let threads: Vec<_> = commands
            .into_iter()
            .map(|mut command| {
                let barrier = &barrier;
                scope.spawn(move || {
                    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                    barrier.wait();
                    let begun = Instant::now();
                    let status = command.status();
                    (begun.elapsed(), status)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok((took, Ok(status))) if status.success() => Ok(took),
                Ok((_, Ok(status))) => Err(Failure::complaints(format!("{name} failed: {status}"))),
                Ok((_, Err(error))) => Err(Failure::io(name, &error)),
                Err(_) => Err(Failure::complaints(format!("the thread of {name} panicked"))),
            })
            .collect()
    })
}
