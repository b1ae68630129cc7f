//! Kills hubs under load.

use std::collections::HashMap;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::desktop::{Event, PopupChange};
use super::environment::{COMMAND_TIMEOUT, HubEnvironment, Server};
use super::hooks;
use super::plan::Plan;
use super::popups::{Message, PopupAnalysis};
use super::results::HubStressResults;
use super::writer::{self, Acknowledged, Sent};
use crate::background::until;
use crate::failure::Failure;
use crate::hubs;
use crate::random::Random;

/// The longest life of a hub before it is killed. The range covers everything from its first system call to normal work.
const LONGEST_LIFE_MS: u64 = 80;
/// One hub in this many may live this many times longer: hubs that are killed early never finish their backlog.
const LONG_LIFE_FACTOR: u64 = 8;

/// The last message. Once its popup is shown, the desktop has handled all earlier requests.
const THE_END: &str = "the end";

pub(super) fn run(
    plan: &Plan,
    ringer: &Path,
    server: &Path,
    results: &mut HubStressResults,
) -> Result<(), Failure> {
    let server = Server { program: server, by_tag: plan.by_tag };
    let environment = HubEnvironment::new("hubstress", ringer, Some(server))?;
    let acknowledged = Acknowledged::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (kills, unacknowledged, turns) = thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.writers)
            .map(|number| {
                let (environment, acknowledged, over) = (&environment, &acknowledged, &over);
                scope.spawn(move || writer::run(number, environment, acknowledged, over))
            })
            .collect();
        let agent = {
            let (environment, over) = (&environment, &over);
            scope.spawn(move || hooks::run(environment, over))
        };
        let kills = kill(plan, &environment, begun);
        over.store(true, Ordering::Relaxed);
        let mut missing = 0;
        for writer in writers {
            missing +=
                writer.join().unwrap_or_else(|_| Err(Failure::complaints("a writer panicked".into())))?;
        }
        let turns = agent.join().unwrap_or_else(|_| Err(Failure::complaints("an agent panicked".into())))?;
        kills.map(|kills| (kills, missing, turns))
    })?;
    results.kills = kills;
    results.unacknowledged = unacknowledged;
    results.turns = turns;
    let acknowledged = acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.acknowledged = acknowledged.len() as u64;
    let events = finish(&environment)?;
    check(&environment, &acknowledged, &events, results)
}

/// Repeatedly kills the hub and processes that are about to become the hub.
fn kill(plan: &Plan, environment: &HubEnvironment, begun: Instant) -> Result<u64, Failure> {
    let mut random = Random::new(plan.common.seed, 0);
    let limit = plan.common.limit;
    let mut kills = 0;
    let home = environment.home();
    while kills < u64::from(plan.kills) && begun.elapsed() < limit {
        let mut found = Vec::new();
        until(limit, || {
            found = hubs::of(&home);
            !found.is_empty() || begun.elapsed() >= limit
        });
        let longer = if random.one_in(LONG_LIFE_FACTOR) { LONG_LIFE_FACTOR } else { 1 };
        thread::sleep(Duration::from_millis(random.below(LONGEST_LIFE_MS * longer)));
        for pid in found {
            kills += u64::from(hubs::kill(pid)?);
        }
    }
    Ok(kills)
}

/// Lets the last hub finish, marks everything as read, and returns all events of the desktop.
fn finish(environment: &HubEnvironment) -> Result<Vec<Event>, Failure> {
    let wrong = |what: &str| Failure::complaints(format!("{what}\n{}", environment.complaints()));
    // The last hub may have been killed after the last message.
    environment.notify("the last one", "last")?;
    if !environment.wait_until_idle()? {
        return Err(wrong("the hub never settled"));
    }
    if !environment.read(&["--all"])? {
        return Err(wrong("ringer read --all failed"));
    }
    environment.notify(THE_END, "end")?;
    if !until(COMMAND_TIMEOUT, || environment.has_shown(THE_END)) || !environment.wait_until_idle()? {
        return Err(wrong("the hub never came to the end"));
    }
    environment
        .ringer_without_hub(["hub", "stop"])?
        .status()
        .map_err(|error| Failure::io("ringer hub stop", &error))?;
    let is_end = |event: &Event| matches!(&event.change, PopupChange::Shown { body, .. } if body == THE_END);
    Ok(environment.events().into_iter().take_while(|event| !is_end(event)).collect())
}

fn check(
    environment: &HubEnvironment,
    acknowledged: &HashMap<String, Sent>,
    events: &[Event],
    results: &mut HubStressResults,
) -> Result<(), Failure> {
    let rows = |answer: Option<Value>| if let Some(Value::Array(rows)) = answer { rows } else { Vec::new() };
    let kept = rows(environment.ask(["list", "--all", "--json", "--limit", "10000000"])?);
    let kept: HashMap<&str, &Value> =
        kept.iter().filter_map(|row| Some((row["id"].as_str()?, row))).collect();
    (results.turns_lost, results.turns_doubled) = hooks::check(results.turns, kept.values().copied());
    let listed = rows(environment.ask(["list", "--json", "--limit", "10000000"])?);
    let mut ids: Vec<&str> = listed.iter().filter_map(|row| row["id"].as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    results.doubled = (all - ids.len()) as u64;
    let recorded = environment.recorded();
    results.ran_twice = recorded.values().filter(|times| **times > 1).count() as u64;
    results.never_sent = recorded.keys().filter(|id| !kept.contains_key(id.as_str())).count() as u64;

    let mut asked: HashMap<String, Vec<String>> = HashMap::new();
    let mut trails = |id: &str| -> Result<Vec<String>, Failure> {
        if let Some(steps) = asked.get(id) {
            return Ok(steps.clone());
        }
        let steps = environment.trail(id)?;
        asked.insert(id.to_owned(), steps.clone());
        Ok(steps)
    };
    let message = |(id, row): (&&str, &&Value)| {
        let surface = row["surface"].as_str().map(str::to_owned);
        Some((row["body"].as_str()?.to_owned(), Message { id: (*id).to_owned(), surface }))
    };
    let messages: HashMap<String, Message> = kept.iter().filter_map(message).collect();
    results.popups = PopupAnalysis::of(&messages, events, &mut trails)?;

    for (id, sent) in acknowledged {
        results.lost += u64::from(!kept.contains_key(id.as_str()));
        let (ran, shown) = (recorded.contains_key(id), environment.has_shown(&sent.body));
        results.recorded += u64::from(ran);
        results.shown += u64::from(shown);
        if ran && shown {
            continue;
        }
        let steps = trails(id)?;
        let why = NotShownReason::of(&steps, sent);
        if why != NotShownReason::Unneeded {
            results.details.push(format!("{}: {}", sent.body, steps.join("; ")));
        }
        if !ran {
            *(if why == NotShownReason::Unneeded {
                &mut results.superseded
            } else {
                &mut results.undelivered
            }) += 1;
        }
        if !shown {
            *(match why {
                NotShownReason::Unneeded => &mut results.unneeded,
                NotShownReason::Refused => &mut results.refused,
                NotShownReason::Unexplained => &mut results.unshown,
            }) += 1;
        }
    }
    Ok(())
}

/// Why a message was not shown, according to its trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NotShownReason {
    /// A newer message of its surface replaced it, or it was read.
    Unneeded,
    /// The desktop rejected it.
    Refused,
    /// Its trail has no reason.
    Unexplained,
}

impl NotShownReason {
    fn of(steps: &[String], sent: &Sent) -> Self {
        let has = |word: &str| steps.iter().any(|step| step.starts_with(word));
        let is_superseded = has("marked read: superseded by ") || has("not shown: a newer one of its pane, ");
        // Writers that read only shown messages cannot have read it.
        if is_superseded || !sent.must_be_shown && has("marked read: ") {
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
    use super::{NotShownReason, Sent};

    #[test]
    fn only_what_was_shown_may_be_read_by_the_patient() {
        fn check(must_be_shown: bool, step: &str, expect: NotShownReason) {
            let steps = ["channels: desktop (listed as unread)".to_owned(), step.to_owned()];
            let sent = Sent { body: String::new(), must_be_shown };
            assert_eq!(NotShownReason::of(&steps, &sent), expect, "{step}");
        }
        check(true, "marked read: superseded by x", NotShownReason::Unneeded);
        check(false, "marked read: by you", NotShownReason::Unneeded);
        check(true, "marked read: by you", NotShownReason::Unexplained);
        check(true, "desktop failed: busy", NotShownReason::Refused);
        check(false, "command: ran", NotShownReason::Unexplained);
    }
}
