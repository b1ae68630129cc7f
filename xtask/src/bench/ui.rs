use super::options::Options;
use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

/// The inbox in a real terminal, with the program as `cargo run --release` builds it.
pub(super) fn run(options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Release, times)?;
    let bench = Step::cargo("ui", &["bench", "-p", "ringer", "--bench", "ui"]);
    let idle = options.idle.as_secs().to_string();
    bench.env("RINGER", &ringer.to_string_lossy()).env("RINGER_BENCH_IDLE", &idle).run(times)
}
