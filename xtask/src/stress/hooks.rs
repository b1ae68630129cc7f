//! Many agents whose turns end at the same moment: each calls a hook, and every hook that was not killed has to be heard,
//! once, whether the journal could be written just then or not.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::course::PATIENCE;
use super::plan::Plan;
use super::writer::Fate;
use crate::chance::Chance;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::json;
use crate::scene::{Scene, failed};

/// In one round of so many another writer holds the lock all the while, as a stopped process does.
const LOCK_HELD_ONE_IN: u32 = 4;
/// One hook in so many is killed with `--kill`.
const KILLED_ONE_IN: u64 = 4;

pub(super) fn run(plan: &Plan, ringer: &Path) -> Result<Figures, Failure> {
    let scene = Scene::new("stress-hooks", ringer)?;
    let runtime = scene.path("run");
    DirBuilder::new().mode(0o700).create(&runtime).map_err(|error| failed(&runtime, &error))?;
    let mut figures = Figures::default();
    // The journal is there before the first round: only the very first agent of a person finds none.
    must(&scene, &["notify", "hello"])?;
    let mut acknowledged = Vec::new();
    for round in 0..plan.rounds {
        let held = round % LOCK_HELD_ONE_IN == LOCK_HELD_ONE_IN - 1;
        let lock = held.then(|| scene.hold_write_lock()).transpose()?;
        let sessions: Vec<u32> = (0..plan.hooks).map(|number| round * plan.hooks + number).collect();
        let endings = at_once(&sessions, |session| {
            let mut chance = Chance::new(plan.frame.seed, u64::from(session));
            let time = Fate::default().draw(plan.kill && chance.one_in(KILLED_ONE_IN), &mut chance);
            Ending::of(hook(&scene, session).env("XDG_RUNTIME_DIR", &runtime), time)
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
        let idle = at_once(&sessions, |_| Ending::of(&mut scene.ringer(["--version"]), PATIENCE))?;
        figures.baseline.extend(idle.iter().map(|ending| ending.took));
    }
    let heard = heard(&scene, &runtime)?;
    figures.acknowledged = acknowledged.len();
    figures.lost = acknowledged.iter().filter(|session| !heard.contains_key(*session)).count();
    figures.doubled = heard.values().filter(|times| **times > 1).count();
    Ok(figures)
}

/// The end of a turn of a session, as Codex reports it: the event is an argument.
fn hook(scene: &Scene, session: u32) -> std::process::Command {
    let event = format!(
        r#"{{"type":"agent-turn-complete","thread-id":"00000000-0000-7000-8000-0000{session:08x}","turn-id":"1","input-messages":["go"],"last-assistant-message":"done {session}"}}"#
    );
    scene.ringer(["hook", "codex", "notify", &event])
}

/// Runs one process for each, all at the same moment.
fn at_once(
    sessions: &[u32],
    run: impl Fn(u32) -> Result<Ending, Failure> + Sync,
) -> Result<Vec<Ending>, Failure> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = sessions.iter().map(|session| scope.spawn(move || run(*session))).collect();
        let panicked = |_| Err(Failure::complaints("a thread of the stress run panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}

/// How often the end of each session's turn is in the journal, once everything that was spooled is in it.
fn heard(scene: &Scene, runtime: &Path) -> Result<HashMap<u32, u32>, Failure> {
    let path = scene.path("log");
    let file = File::create(&path).map_err(|error| failed(&path, &error))?;
    let status = scene
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
        let session = json::parse(line)
            .and_then(|line| line.text("msg")?.rsplit_once(": done ").map(|(_, number)| number.to_owned()));
        if let Some(session) = session.and_then(|number| number.parse().ok()) {
            *heard.entry(session).or_default() += 1;
        }
    }
    Ok(heard)
}

fn must(scene: &Scene, arguments: &[&str]) -> Result<(), Failure> {
    let ending = Ending::of(&mut scene.ringer(arguments.iter().copied()), PATIENCE)?;
    if ending.is_success() { Ok(()) } else { Err(Failure::complaints("ringer failed".into())) }
}

/// What came of it.
#[derive(Default)]
pub(super) struct Figures {
    acknowledged: usize,
    kills: usize,
    failed: usize,
    lost: usize,
    doubled: usize,
    took: Vec<Duration>,
    /// As many processes that start and do nothing.
    baseline: Vec<Duration>,
}

impl Figures {
    pub(super) fn judge(&self) -> Result<(), Failure> {
        let Self { lost, doubled, failed, .. } = self;
        if lost + doubled + failed == 0 {
            return Ok(());
        }
        Err(Failure::complaints(format!("hooks: {lost} lost, {doubled} heard twice, {failed} failed")))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |times: &[Duration], percent: usize| {
            let mut times = times.to_vec();
            times.sort();
            let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
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
