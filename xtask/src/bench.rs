//! Benchmarks. They compare two programs in one run and print the ratio: on a noisy machine only the ratio is reliable, so
//! no benchmark fails because of a time.

mod at_once;
mod audience;
mod baseline;
mod desktop;
mod hook;
mod hub;
mod idle;
mod mcp;
mod measure;
mod notify;
mod options;
mod quiet_hub;
mod redis;
mod relay;
mod shell;
mod start;
mod store;
mod wake;

use options::Options;

use crate::binary::{self, Profile};
use crate::clients;
use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

struct Bench {
    name: &'static str,
    run: fn(&Options, &mut StepTimes) -> Result<(), Failure>,
}

/// How many dialogs are answered in each way. One takes a few seconds.
const ANSWERS: &str = "30";

const BENCHES: &[Bench] = &[
    Bench { name: "scanner", run: scanner },
    Bench { name: "start", run: start::run },
    Bench { name: "notify", run: notify::run },
    Bench { name: "hook", run: hook::run },
    Bench { name: "mcp", run: mcp::run },
    Bench { name: "hub", run: hub::run },
    Bench { name: "store", run: store::run },
    Bench { name: "relay", run: relay::run },
    Bench { name: "nats", run: nats },
    Bench { name: "ui", run: |options, times| in_terminal("ui", options, times) },
    Bench { name: "run", run: |options, times| in_terminal("run", options, times) },
    Bench { name: "panes", run: |options, times| in_terminal("panes", options, times) },
    Bench { name: "answer", run: answer },
    Bench { name: "turn", run: turn },
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (options, names) = Options::parse(arguments)?;
    let chosen = choose(&names)?;
    StepTimes::around(|times| chosen.iter().try_for_each(|bench| (bench.run)(&options, times)))
}

/// Returns the named benchmarks, or all if none is named. A wrong name fails before anything runs.
fn choose(names: &[String]) -> Result<Vec<&'static Bench>, Failure> {
    if names.is_empty() {
        return Ok(BENCHES.iter().collect());
    }
    let find = |name: &String| {
        BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| {
            let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
            Failure::usage(format!("no benchmark `{name}`; there are: {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// Runs in one process, so it is an ordinary bench target that prints its own ratios.
fn scanner(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    Step::cargo("scanner", &["bench", "-p", "ringer-term", "--bench", "scanner"]).run(times)
}

/// A team on one server. Its machines are simulated in one process.
fn nats(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    Step::cargo("nats", &["bench", "-p", "ringer-relay", "--features", "nats", "--bench", "nats"]).run(times)
}

/// `ringer` in a real terminal, as `cargo run --release` builds it.
fn in_terminal(name: &'static str, options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Release, times)?;
    let bench = Step::cargo(name, &["bench", "-p", "ringer", "--bench", name]);
    let [idle, soak] = [options.idle, options.soak].map(|time| time.as_secs().to_string());
    let bench = bench.env("RINGER", &ringer.to_string_lossy());
    bench.env("RINGER_BENCH_IDLE", &idle).env("RINGER_BENCH_SOAK", &soak).run(times)
}

/// The time from an answer to the tool, and the cost of the hook that waits for the answer.
fn answer(options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let idle = options.idle.as_secs().to_string();
    let settings = [("RINGER_ROUNDS", ANSWERS), ("RINGER_BENCH_IDLE", &idle)];
    clients::bench("answer", "from_the_answer_to_the_tool", options.missing, &settings, times)
}

/// What the hooks add to a turn.
fn turn(options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let settings = [("RINGER_ROUNDS", "5"), ("RINGER_TOOLS", "20"), ("RINGER_THINKING_MS", "1000")];
    clients::bench("turn", "a_turn_of_tools_with_and_without_hooks", options.missing, &settings, times)
}

#[cfg(test)]
mod tests {
    use super::{BENCHES, choose};

    #[test]
    fn benchmarks_are_chosen_by_name() {
        fn check(names: &[&str], expect: Option<&[&str]>) {
            let owned: Vec<String> = names.iter().map(ToString::to_string).collect();
            let chosen =
                choose(&owned).ok().map(|chosen| chosen.iter().map(|bench| bench.name).collect::<Vec<_>>());
            assert_eq!(chosen.as_deref(), expect, "{names:?}");
        }
        let all: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        check(&[], Some(&all));
        check(&["start"], Some(&["start"]));
        check(&["start", "scanner"], Some(&["start", "scanner"]));
        check(&["start", "scaner"], None);
    }
}
