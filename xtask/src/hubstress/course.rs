//! Kills, under load.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::hubs;
use super::plan::Plan;
use super::stage::Stage;
use super::verdict::Verdict;
use crate::chance::Chance;
use crate::failure::Failure;
use crate::json::Value;

/// A hub lives this long at most before it is killed: from before its first system call to well into its work.
const LONGEST_LIFE_MS: u64 = 80;

/// The ids that were acknowledged, each with whether its surface said more than that.
type Acknowledged = Mutex<HashMap<String, bool>>;

pub(super) fn run(plan: &Plan, ringer: &Path, verdict: &mut Verdict) -> Result<(), Failure> {
    let stage = Stage::new("hubstress", ringer)?;
    let acknowledged = Acknowledged::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (kills, unacknowledged) = thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.writers)
            .map(|writer| {
                let (stage, acknowledged, over) = (&stage, &acknowledged, &over);
                scope.spawn(move || write(writer, stage, acknowledged, over))
            })
            .collect();
        let kills = kill(plan, &stage, begun);
        over.store(true, Ordering::Relaxed);
        let mut missing = 0;
        for writer in writers {
            missing +=
                writer.join().unwrap_or_else(|_| Err(Failure::complaints("a writer panicked".into())))?;
        }
        kills.map(|kills| (kills, missing))
    })?;
    verdict.kills = kills;
    verdict.unacknowledged = unacknowledged;
    let acknowledged = acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdict.acknowledged = acknowledged.len() as u64;
    // The last hub may have been killed after the last message.
    stage.notify("the last one", "last")?;
    if !stage.settles()? {
        return Err(Failure::complaints(format!("the hub never settled\n{}", stage.complaints())));
    }
    stage.alone(["hub", "stop"])?.status().map_err(|error| Failure::io("ringer hub stop", &error))?;
    judge(&stage, &acknowledged, verdict)
}

/// Sends one message after the other until it is over. Gives how many were not acknowledged.
fn write(writer: u32, stage: &Stage, acknowledged: &Acknowledged, over: &AtomicBool) -> Result<u64, Failure> {
    // Half of them speak from one surface all the time: what is shown of those may be the latest only.
    let speaks_from_one = writer % 2 == 1;
    let mut missing = 0;
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let body = format!("{writer}-{number}");
        let surface = if speaks_from_one { format!("{writer}-all") } else { body.clone() };
        match stage.notify(&body, &surface)? {
            Some(id) => {
                acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(id, speaks_from_one);
            }
            None => missing += 1,
        }
    }
    Ok(missing)
}

/// Kills whoever is, or is about to be, the hub; again and again.
fn kill(plan: &Plan, stage: &Stage, begun: Instant) -> Result<u64, Failure> {
    let mut chance = Chance::new(plan.seed, 0);
    let mut kills = 0;
    let home = stage.home();
    while kills < u64::from(plan.kills) && begun.elapsed() < plan.limit {
        let mut found = Vec::new();
        hubs::until(plan.limit, || {
            found = hubs::of(&home);
            !found.is_empty() || begun.elapsed() >= plan.limit
        });
        thread::sleep(Duration::from_millis(chance.below(LONGEST_LIFE_MS)));
        for pid in found {
            kills += u64::from(hubs::kill(pid)?);
        }
    }
    Ok(kills)
}

fn judge(stage: &Stage, acknowledged: &HashMap<String, bool>, verdict: &mut Verdict) -> Result<(), Failure> {
    let ids = |answer: Option<Value>| -> Vec<String> {
        let Some(Value::List(rows)) = answer else { return Vec::new() };
        rows.iter().filter_map(|row| row.text("id")).map(str::to_owned).collect()
    };
    let kept: HashSet<String> =
        ids(stage.ask(["list", "--all", "--json", "--limit", "10000000"])?).into_iter().collect();
    let shown = ids(stage.ask(["list", "--json", "--limit", "10000000"])?);
    let distinct: HashSet<&String> = shown.iter().collect();
    verdict.doubled = (shown.len() - distinct.len()) as u64;
    let recorded = stage.recorded();
    verdict.ran_twice = recorded.values().filter(|times| **times > 1).count() as u64;
    verdict.strangers = recorded.keys().filter(|id| !kept.contains(*id)).count() as u64;
    for (id, may_be_superseded) in acknowledged {
        verdict.lost += u64::from(!kept.contains(id));
        verdict.recorded += u64::from(recorded.contains_key(id));
        if recorded.contains_key(id) {
            continue;
        }
        // A newer one of its surface may have taken its place; any other has to reach the command.
        if *may_be_superseded && stage.has_trail(id)? {
            verdict.superseded += 1;
        } else {
            verdict.undelivered += 1;
        }
    }
    Ok(())
}
