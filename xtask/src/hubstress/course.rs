//! Kills, under load.

use std::collections::HashMap;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::desktop::{Deed, Event};
use super::hooks;
use super::plan::Plan;
use super::popups::{Message, Reading};
use super::stage::{PATIENCE, Server, Stage};
use super::verdict::Verdict;
use super::writer::{self, Acknowledged, Sent};
use crate::chance::Chance;
use crate::failure::Failure;
use crate::hubs;
use crate::json::Value;
use crate::service::until;

/// A hub lives this long at most before it is killed: from before its first system call to well into its work.
const LONGEST_LIFE_MS: u64 = 80;
/// One in so many lives so much longer: the young never get all the work done that is there.
const OLD_AGE: u64 = 8;

/// When its popup is there, everything that was asked of the desktop before has been done.
const THE_END: &str = "the end";

pub(super) fn run(plan: &Plan, ringer: &Path, server: &Path, verdict: &mut Verdict) -> Result<(), Failure> {
    let server = Server { program: server, by_tag: plan.by_tag };
    let stage = Stage::new("hubstress", ringer, Some(server))?;
    let acknowledged = Acknowledged::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (kills, unacknowledged, turns) = thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.writers)
            .map(|number| {
                let (stage, acknowledged, over) = (&stage, &acknowledged, &over);
                scope.spawn(move || writer::run(number, stage, acknowledged, over))
            })
            .collect();
        let agent = {
            let (stage, over) = (&stage, &over);
            scope.spawn(move || hooks::run(stage, over))
        };
        let kills = kill(plan, &stage, begun);
        over.store(true, Ordering::Relaxed);
        let mut missing = 0;
        for writer in writers {
            missing +=
                writer.join().unwrap_or_else(|_| Err(Failure::complaints("a writer panicked".into())))?;
        }
        let turns = agent.join().unwrap_or_else(|_| Err(Failure::complaints("an agent panicked".into())))?;
        kills.map(|kills| (kills, missing, turns))
    })?;
    verdict.kills = kills;
    verdict.unacknowledged = unacknowledged;
    verdict.turns = turns;
    let acknowledged = acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdict.acknowledged = acknowledged.len() as u64;
    let events = finish(&stage)?;
    judge(&stage, &acknowledged, &events, verdict)
}

/// Kills whoever is, or is about to be, the hub; again and again.
fn kill(plan: &Plan, stage: &Stage, begun: Instant) -> Result<u64, Failure> {
    let mut chance = Chance::new(plan.frame.seed, 0);
    let limit = plan.frame.limit;
    let mut kills = 0;
    let home = stage.home();
    while kills < u64::from(plan.kills) && begun.elapsed() < limit {
        let mut found = Vec::new();
        until(limit, || {
            found = hubs::of(&home);
            !found.is_empty() || begun.elapsed() >= limit
        });
        let longer = if chance.one_in(OLD_AGE) { OLD_AGE } else { 1 };
        thread::sleep(Duration::from_millis(chance.below(LONGEST_LIFE_MS * longer)));
        for pid in found {
            kills += u64::from(hubs::kill(pid)?);
        }
    }
    Ok(kills)
}

/// Lets the last hub finish, reads everything, and gives what happened on the desktop until all of that was done.
fn finish(stage: &Stage) -> Result<Vec<Event>, Failure> {
    let wrong = |what: &str| Failure::complaints(format!("{what}\n{}", stage.complaints()));
    // The last hub may have been killed after the last message.
    stage.notify("the last one", "last")?;
    if !stage.settles()? {
        return Err(wrong("the hub never settled"));
    }
    if !stage.read(&["--all"])? {
        return Err(wrong("ringer read --all failed"));
    }
    stage.notify(THE_END, "end")?;
    if !until(PATIENCE, || stage.has_shown(THE_END)) || !stage.settles()? {
        return Err(wrong("the hub never came to the end"));
    }
    stage.alone(["hub", "stop"])?.status().map_err(|error| Failure::io("ringer hub stop", &error))?;
    let is_end = |event: &Event| matches!(&event.deed, Deed::Shown { body, .. } if body == THE_END);
    Ok(stage.events().into_iter().take_while(|event| !is_end(event)).collect())
}

fn judge(
    stage: &Stage,
    acknowledged: &HashMap<String, Sent>,
    events: &[Event],
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let rows = |answer: Option<Value>| if let Some(Value::List(rows)) = answer { rows } else { Vec::new() };
    let kept = rows(stage.ask(["list", "--all", "--json", "--limit", "10000000"])?);
    let kept: HashMap<&str, &Value> = kept.iter().filter_map(|row| Some((row.text("id")?, row))).collect();
    (verdict.turns_lost, verdict.turns_doubled) = hooks::judge(verdict.turns, kept.values().copied());
    let listed = rows(stage.ask(["list", "--json", "--limit", "10000000"])?);
    let mut ids: Vec<&str> = listed.iter().filter_map(|row| row.text("id")).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    verdict.doubled = (all - ids.len()) as u64;
    let recorded = stage.recorded();
    verdict.ran_twice = recorded.values().filter(|times| **times > 1).count() as u64;
    verdict.strangers = recorded.keys().filter(|id| !kept.contains_key(id.as_str())).count() as u64;

    let mut asked: HashMap<String, Vec<String>> = HashMap::new();
    let mut trails = |id: &str| -> Result<Vec<String>, Failure> {
        if let Some(steps) = asked.get(id) {
            return Ok(steps.clone());
        }
        let steps = stage.trail(id)?;
        asked.insert(id.to_owned(), steps.clone());
        Ok(steps)
    };
    let message = |(id, row): (&&str, &&Value)| {
        let surface = row.text("surface").map(str::to_owned);
        Some((row.text("body")?.to_owned(), Message { id: (*id).to_owned(), surface }))
    };
    let messages: HashMap<String, Message> = kept.iter().filter_map(message).collect();
    verdict.popups = Reading::of(&messages, events, &mut trails)?;

    for (id, sent) in acknowledged {
        verdict.lost += u64::from(!kept.contains_key(id.as_str()));
        let (ran, shown) = (recorded.contains_key(id), stage.has_shown(&sent.body));
        verdict.recorded += u64::from(ran);
        verdict.shown += u64::from(shown);
        if ran && shown {
            continue;
        }
        let steps = trails(id)?;
        let why = Why::of(&steps, sent);
        if why != Why::Unneeded {
            verdict.details.push(format!("{}: {}", sent.body, steps.join("; ")));
        }
        if !ran {
            *(if why == Why::Unneeded { &mut verdict.superseded } else { &mut verdict.undelivered }) += 1;
        }
        if !shown {
            *(match why {
                Why::Unneeded => &mut verdict.unneeded,
                Why::Refused => &mut verdict.refused,
                Why::Unexplained => &mut verdict.unshown,
            }) += 1;
        }
    }
    Ok(())
}

/// Why a message was not shown, by its trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// A newer one of its surface took its place, or it was read.
    Unneeded,
    /// The desktop did not take it.
    Refused,
    /// Nobody knows.
    Unexplained,
}

impl Why {
    fn of(steps: &[String], sent: &Sent) -> Self {
        let has = |word: &str| steps.iter().any(|step| step.starts_with(word));
        let is_superseded = has("marked read: superseded by ") || has("a newer one of the same surface");
        // The patient read only what was shown.
        if is_superseded || !sent.is_patient && has("marked read: ") {
            Self::Unneeded
        } else if has("desktop failed: ") {
            Self::Refused
        } else {
            Self::Unexplained
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sent, Why};

    #[test]
    fn only_what_was_shown_may_be_read_by_the_patient() {
        fn check(is_patient: bool, step: &str, expect: Why) {
            let steps = ["effects: desktop".to_owned(), step.to_owned()];
            let sent = Sent { body: String::new(), is_patient };
            assert_eq!(Why::of(&steps, &sent), expect, "{step}");
        }
        check(true, "marked read: superseded by x", Why::Unneeded);
        check(false, "marked read: by hand", Why::Unneeded);
        check(true, "marked read: by hand", Why::Unexplained);
        check(true, "desktop failed: busy", Why::Refused);
        check(false, "command: ran", Why::Unexplained);
    }
}
