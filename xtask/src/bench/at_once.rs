//! Many processes that start at the same moment, as when many agents end their turns together.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::measure::Samples;
use crate::failure::Failure;

/// A kind of process, and how the one of a number is started.
pub(super) struct Crowd<'a> {
    pub(super) name: &'static str,
    pub(super) command: Box<dyn Fn(u64) -> Command + 'a>,
}

/// Starts this many of each kind at once, kind after kind, so often. Each process is timed from the common start to its end.
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

/// From one thread for each: a single one would start the last when the first has ended.
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
