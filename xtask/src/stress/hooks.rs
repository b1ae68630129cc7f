//! Many agents whose turns end at the same moment. Each runs a hook, and the event of every hook that was not killed must be
//! in the journal exactly once, even if the journal was locked at that moment.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::plan::Plan;
use super::shared_state::COMMAND_TIMEOUT;
use super::writer::KillTimer;
use crate::codex::turn_ended;
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;
use crate::process_result::ProcessResult;
use crate::random::Random;

/// In one round of this many, another writer holds the lock throughout, like a stopped process.
const LOCK_HELD_ONE_IN: u32 = 4;
/// With `--kill`, one hook in this many is killed.
const KILLED_ONE_IN: u64 = 4;

pub(super) fn run(plan: &Plan, ringer: &Path) -> Result<HookResults, Failure> {
    let environment = TestEnvironment::new("stress-hooks", ringer)?;
    let runtime = environment.path("run");
    DirBuilder::new().mode(0o700).create(&runtime).map_err(|error| failed(&runtime, &error))?;
    let mut figures = HookResults::default();
    // The journal exists before the first round, because only a person's very first agent finds none.
    must(&environment, &["notify", "hello"])?;
    let mut acknowledged = Vec::new();
    for round in 0..plan.rounds {
        let held = round % LOCK_HELD_ONE_IN == LOCK_HELD_ONE_IN - 1;
        let lock = held.then(|| environment.hold_write_lock()).transpose()?;
        let sessions: Vec<u32> = (0..plan.hooks).map(|number| round * plan.hooks + number).collect();
        let endings = run_at_once(&sessions, |session| {
            let mut random = Random::new(plan.common.seed, u64::from(session));
            let time =
                KillTimer::default().time_limit(plan.kill && random.one_in(KILLED_ONE_IN), &mut random);
            ProcessResult::of(hook(&environment, session).env("XDG_RUNTIME_DIR", &runtime), time)
        })?;
        drop(lock);
        for (session, ending) in sessions.iter().zip(&endings) {
            if ending.is_success() {
                acknowledged.push(*session);
                figures.took.push(ending.took);
            } else if ending.is_kill() && plan.kill {
                figures.kills += 1;
            } else {
                figures.failed += 1;
            }
        }
        let idle = run_at_once(&sessions, |_| {
            ProcessResult::of(&mut environment.ringer(["--version"]), COMMAND_TIMEOUT)
        })?;
        figures.baseline.extend(idle.iter().map(|ending| ending.took));
    }
    let completed = completed_turns(&environment, &runtime)?;
    figures.acknowledged = acknowledged.len();
    figures.lost = acknowledged.iter().filter(|session| !completed.contains_key(*session)).count();
    figures.doubled = completed.values().filter(|times| **times > 1).count();
    Ok(figures)
}

/// Returns the hook command with which Codex reports the end of a turn. The event is an argument.
fn hook(environment: &TestEnvironment, session: u32) -> std::process::Command {
    let event = turn_ended(session.into(), 1, &format!("done {session}"));
    environment.ringer(["hook", "codex", "notify", &event])
}

/// Runs one process for each session, all at the same moment.
fn run_at_once(
    sessions: &[u32],
    run: impl Fn(u32) -> Result<ProcessResult, Failure> + Sync,
) -> Result<Vec<ProcessResult>, Failure> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = sessions.iter().map(|session| scope.spawn(move || run(*session))).collect();
        let panicked = |_| Err(Failure::complaints("a thread of the stress run panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}

/// Applies all spooled events, and returns how often the turn end of each session is in the journal.
fn completed_turns(environment: &TestEnvironment, runtime: &Path) -> Result<HashMap<u32, u32>, Failure> {
    let path = environment.path("log");
    let file = File::create(&path).map_err(|error| failed(&path, &error))?;
    let status = environment
        .ringer(["log", "--everywhere", "--json"])
        .env("XDG_RUNTIME_DIR", runtime)
        .stdout(Stdio::from(file))
        .status()
        .map_err(|error| Failure::io("ringer log", &error))?;
    if !status.success() {
        return Err(Failure::complaints(format!("ringer log: {status}")));
    }
    let mut heard = HashMap::new();
    for line in fs::read_to_string(&path).unwrap_or_default().lines() {
        let message = serde_json::from_str::<Value>(line).ok();
        let number =
            message.as_ref().and_then(|message| Some(message["msg"].as_str()?.rsplit_once(": done ")?.1));
        if let Some(session) = number.and_then(|number| number.parse().ok()) {
            *heard.entry(session).or_default() += 1;
        }
    }
    Ok(heard)
}

fn must(environment: &TestEnvironment, arguments: &[&str]) -> Result<(), Failure> {
    let ending = ProcessResult::of(&mut environment.ringer(arguments.iter().copied()), COMMAND_TIMEOUT)?;
    if ending.is_success() { Ok(()) } else { Err(Failure::complaints("ringer failed".into())) }
}

/// The results of all rounds.
#[derive(Default)]
pub(super) struct HookResults {
    acknowledged: usize,
    kills: usize,
    failed: usize,
    lost: usize,
    doubled: usize,
    took: Vec<Duration>,
    /// The times of the same number of processes that do nothing.
    baseline: Vec<Duration>,
}

impl HookResults {
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Self { lost, doubled, failed, .. } = self;
        if lost + doubled + failed == 0 {
            return Ok(());
        }
        Err(Failure::complaints(format!("hooks: {lost} lost, {doubled} heard twice, {failed} failed")))
    }
}

impl fmt::Display for HookResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |times: &[Duration], percent: usize| {
            let mut times = times.to_vec();
            times.sort();
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(index).copied().unwrap_or_default().as_secs_f64() * 1000.0
        };
        let Self { acknowledged, kills, failed, lost, doubled, took, baseline } = self;
        writeln!(
            f,
            "| hooks that ended well | killed | failed | lost | heard twice |\n|---:|---:|---:|---:|---:|"
        )?;
        writeln!(f, "| {acknowledged} | {kills} | {failed} | {lost} | {doubled} |")?;
        write!(
            f,
            "all at once: hook p50 {:.0} ms, p99 {:.0} ms; `ringer --version` p50 {:.0} ms, p99 {:.0} ms",
            at(took, 50),
            at(took, 99),
            at(baseline, 50),
            at(baseline, 99)
        )
    }
}
