//! The order of hooks, and which of them run when the settings change in between.

use super::*;
use crate::policy::HookPatch;

fn patched(ticket: Ticket) -> Event {
    Event::HookAnswered { ticket, answer: HookAnswer::Patched(HookPatch::default()) }
}

/// The hook `format` in a worktree's file, with some content.
fn format_of(worktree: &str, content: &str, revision: u64, trusted: bool) -> Hook {
    let digest = format!("format {content} {worktree}");
    Hook {
        identity: HookIdentity { id: "format".to_owned(), digest, revision },
        config_path: Some(worktree.to_owned()),
        on_failure: OnFailure::Suppress,
        trusted,
        scope: Some(Scope::global().to_string()),
    }
}

/// Settings with the person's own `slow`, a worktree's hook, and the person's own `last`.
fn settings(revision: u64, theirs: Option<Hook>, trusted: &[&str]) -> Preferences {
    let own = preferences(revision, &["slow", "last"]);
    let [slow, last] = own.hooks.as_ref() else { panic!("there are two") };
    let read = theirs.iter().filter_map(|hook| hook.config_path.clone());
    Preferences {
        read_files: read.collect(),
        hooks: [Some(slow.clone()), theirs, Some(last.clone())].into_iter().flatten().collect(),
        trusted_hooks: trusted.iter().map(|digest| (*digest).to_owned()).collect(),
        ..own
    }
}

fn ordered(orders: &[Order]) -> Vec<HookIdentity> {
    let hooks = orders.iter().filter_map(|order| match order {
        Order::RunHook { hook, .. } => Some(hook.clone()),
        _ => None,
    });
    hooks.collect()
}

/// Plays one chain, with a change of the settings after a given number of answers. Returns what was ordered
/// after the change, and the trail.
fn play(before: &Preferences, point: usize, after: &Preferences) -> (Vec<String>, Vec<String>) {
    let mut engine = Engine::new(before.clone());
    let mut orders = engine.handle(at(0), message(1, "a", "hello"));
    let mut since = Vec::new();
    for answered in 0.. {
        if answered == point {
            engine.set_preferences(after.clone());
        }
        let Some(ticket) = tickets(&orders).first().copied() else { break };
        orders = engine.handle(at(1), patched(ticket));
        if answered >= point {
            since.extend(
                ordered(&orders).into_iter().map(|hook| format!("{} r{}", hook.digest, hook.revision)),
            );
        }
    }
    let record = engine.attention().store().get(&id(1)).expect("it is kept");
    (since, record.trail.steps().map(|step| step.cause.to_string()).collect())
}

#[test]
fn the_same_position_and_id_in_other_settings_is_another_hook() {
    let trusted = ["format good /one"];
    let before = settings(1, Some(format_of("/one", "good", 1, true)), &trusted);
    let after = settings(2, Some(format_of("/two", "bad", 2, false)), &trusted);
    let (ran, trail) = play(&before, 0, &after);
    assert_eq!(ran, ["format good /one r1", "digest of last r1"]);
    assert!(!trail.iter().any(|step| step.contains("not trusted")), "{trail:?}");
}

#[test]
fn settings_may_change_at_every_point_of_a_chain() {
    let good = || Some(format_of("/one", "good", 1, true));
    let before = settings(1, good(), &["format good /one"]);
    let check = |what: &str, after: &Preferences, may_run: &[&str], why: Option<&str>| {
        let chain = ["digest of slow", "format good /one", "digest of last"];
        for point in 0..chain.len() {
            let (ran, trail) = play(&before, point, after);
            let left = chain[point + 1..].iter().filter(|digest| may_run.contains(digest));
            let left: Vec<String> = left.map(|digest| format!("{digest} r1")).collect();
            assert_eq!(ran, left, "{what} after {point} answers");
            let refused = why.filter(|_| point == 0);
            assert!(refused.is_none_or(|why| trail.iter().any(|step| step == why)), "{what}: {trail:?}");
        }
    };
    let (both, theirs) = (["format good /one", "digest of last"], "format good /one");
    let changed = |content: &str, trusted: bool| Some(format_of("/one", content, 2, trusted));
    check("nothing but the revision", &settings(2, changed("good", true), &[theirs]), &both, None);
    check("another worktree", &settings(2, Some(format_of("/two", "bad", 2, false)), &[theirs]), &both, None);
    check("its file was not read", &settings(2, None, &[theirs]), &both, None);
    let withdrawn = "hook format did not run: it is no longer trusted";
    check("trust withdrawn", &settings(2, changed("good", false), &[]), &both[1..], Some(withdrawn));
    let elsewhere = settings(2, Some(format_of("/two", "good", 2, true)), &["format good /two"]);
    check("trust withdrawn, and another worktree", &elsewhere, &both[1..], Some(withdrawn));
    let other = "hook format did not run: /one no longer names it";
    check("its file changed", &settings(2, changed("bad", false), &[theirs]), &both[1..], Some(other));
    let both_trusted = settings(2, changed("new", true), &[theirs, "format new /one"]);
    check("to something else that is trusted", &both_trusted, &both[1..], Some(other));
    let own = "hook last did not run: its file no longer names it";
    let removed = Preferences { trusted_hooks: before.trusted_hooks.clone(), ..preferences(2, &["slow"]) };
    check("the person's own was removed", &removed, &both[..1], Some(own));
}

#[test]
fn a_queued_notification_keeps_the_hooks_of_its_arrival() {
    let mut engine = engine(&["slow"]);
    let first = tickets(&engine.handle(at(0), message(1, "a", "one")))[0];
    assert!(tickets(&engine.handle(at(600), message(2, "a", "two"))).is_empty());
    engine.set_preferences(preferences(2, &["other", "slow"]));
    assert_eq!(engine.hook_revisions(), HashSet::from([1, 2]));
    let orders = engine.handle(at(700), patched(first));
    assert_eq!(words(&orders).last().map(String::as_str), Some("hook slow of 1"));
    // Without hooks in the new settings, the second still waits for the first.
    engine.set_preferences(Preferences::default());
    assert!(tickets(&engine.handle(at(1300), message(3, "a", "three"))).is_empty());
    let orders = engine.handle(at(1400), patched(tickets(&orders)[0]));
    assert!(ordered(&orders).is_empty() && engine.undecided() == 0, "{orders:?}");
    assert!(engine.hook_revisions().is_empty());
}

#[test]
fn hooks_are_asked_in_order_within_a_surface_and_at_once_across() {
    let mut engine = engine(&["triage"]);
    let first = tickets(&engine.handle(at(0), message(1, "a", "one")))[0];
    assert_eq!(
        tickets(&engine.handle(at(1), message(2, "b", "two"))).len(),
        1,
        "another surface does not wait"
    );
    assert!(tickets(&engine.handle(at(600), message(3, "a", "three"))).is_empty(), "the same one does");
    let orders = engine.handle(
        at(700),
        Event::HookAnswered { ticket: first, answer: HookAnswer::Patched(HookPatch::default()) },
    );
    assert_eq!(tickets(&orders).len(), 1, "and is asked when its turn comes");
    assert!(engine.attention().store().get(&id(1)).is_some());
}

#[test]
fn at_most_64_notifications_have_hooks_running() {
    let mut engine = engine(&["slow"]);
    let mut asked = 0;
    for number in 0..90 {
        let surface = format!("s{number}");
        let event = Event::Surface {
            surface: SurfaceId::new(&surface),
            workspace: WorkspaceId::new("w"),
            tty: None,
            reports_focus: false,
        };
        engine.handle(at(0), event);
        asked += tickets(&engine.handle(at(0), message(number, &surface, "x"))).len();
    }
    assert_eq!((asked, engine.undecided()), (MAX_HOOK_CHAINS, 90));
}

#[test]
fn a_failing_hook_is_reported_once_in_five_minutes() {
    let mut engine = engine(&["bad"]);
    let mut fail = |ms, number| {
        let ticket = tickets(&engine.handle(at(ms), message(number, "a", &number.to_string())))[0];
        let answer = HookAnswer::Failed("exit code 1".into());
        engine.handle(at(ms), Event::HookAnswered { ticket, answer });
        let told = engine.toasts.waiting().chain(engine.toast()).any(|toast| toast.key == "hook-failed-bad");
        engine.handle(at(ms), Event::RemoveToast("hook-failed-bad".into()));
        told
    };
    assert!(fail(0, 1) && !fail(1000, 2) && fail(400_000, 3));
}

#[test]
fn clearing_everything_also_fences_notifications_with_running_hooks() {
    let mut engine = engine(&["slow"]);
    let orders = engine.handle(at(0), message(1, "a", "needs you"));
    engine.handle(at(1), Event::ClearAll);
    let answer = HookAnswer::Patched(HookPatch::default());
    let ticket = tickets(&orders)[0];
    engine.handle(at(2), Event::HookAnswered { ticket, answer });
    assert!(engine.attention.store().is_empty());
}

#[test]
fn a_late_answer_for_a_cleared_place_is_dropped() {
    let mut engine = engine(&["slow"]);
    let ticket = tickets(&engine.handle(at(0), message(1, "a", "needs you")))[0];
    let cleared = engine.handle(at(1), Event::Clear(place("a")));
    assert!(cleared.iter().any(|order| matches!(order, Order::AddTrailStep { cause: Cause::Cleared, .. })));
    assert_eq!(engine.undecided(), 0, "so a hub that ends before the hook answers does not ask it again");
    let orders =
        engine.handle(at(20_000), Event::HookAnswered { ticket, answer: HookAnswer::Failed("late".into()) });
    assert!(orders.is_empty() && engine.attention().store().is_empty());
}

#[test]
fn what_waits_behind_a_chain_in_which_no_hook_may_run_is_due_at_once() {
    let mut untrusted = preferences(1, &["one"]);
    untrusted.hooks = untrusted.hooks.iter().cloned().map(|hook| Hook { trusted: false, ..hook }).collect();
    let mut engine = engine(&["one"]);
    let first = tickets(&engine.handle(at(0), message(1, "a", "one")));
    engine.set_preferences(untrusted);
    // Both wait for the first one. No other message of their surface displaces this kind.
    for number in [2, 3] {
        let mut question = incoming(number, "a", &format!("question {number}"));
        question.message.draft.tag = Tag::Notice(Kind::Question);
        engine.handle(at(1), Event::Message(Box::new(question)));
    }
    engine.handle(at(2), Event::HookAnswered { ticket: first[0], answer: HookAnswer::Failed("x".into()) });
    for _ in 0..2 {
        if engine.next_deadline(at(3)) == Some(at(3).mono) {
            engine.handle(at(3), Event::Tick);
        }
    }
    assert_eq!(engine.undecided(), 0);
}
