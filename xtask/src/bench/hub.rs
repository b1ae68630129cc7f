use super::options::Options;
use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

/// Throughput, latency, memory and idle cost of a whole hub. It uses the hub's protocol, so it is a bench target of that
/// crate; the hub itself is the program as `cargo run --release` builds it.
pub(super) fn run(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Release, times)?;
    let bench = Step::cargo("hub", &["bench", "-p", "ringer-hub", "--bench", "hub"]);
    bench.env("RINGER", &ringer.to_string_lossy()).run(times)
}
