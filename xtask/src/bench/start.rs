use std::process::Command;
use std::time::Duration;

use super::Options;
use super::baseline;
use super::measure::{Contender, Rounds, interleave, table};
use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::step_times::StepTimes;

const ROUNDS: Rounds = Rounds { warm_ups: 20, measured: 1000, pause: Duration::ZERO };

/// Process start-up: `ringer --version` as shipped, against a program that does nothing.
pub(crate) fn run(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Dist, times)?;
    let empty = baseline::build("empty", times)?;
    let mut version = Command::new(ringer);
    version.arg("--version");
    times.time("start", || {
        let contenders = vec![
            Contender::new("`ringer --version`", version),
            Contender::new("empty Rust program", Command::new(empty)),
        ];
        let samples = interleave(contenders, ROUNDS)?;
        println!("{}", table(&format!("start ({} runs each, interleaved)", ROUNDS.measured), &samples));
        Ok(())
    })
}
