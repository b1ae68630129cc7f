//! The rules of an agent's state, one by one.

use super::*;
use AgentState::{Blocked, Compacting, Done, Error, Exited, RateLimited, Ready, Starting, Stuck, Working};
use proptest::prelude::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hook(state: AgentState) -> Signal {
    Signal::state(Authority::Hook, state)
}

fn title(content: SignalContent) -> Signal {
    Signal::new(Authority::Title, content)
}

/// Applies signals. Returns the kinds of the notices, with `+` before an upgrade, and the final state.
fn play(signals: &[(u64, Signal)]) -> (Vec<String>, AgentState) {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    let mut told = Vec::new();
    for (seconds, signal) in signals {
        for notice in agent.apply(at(*seconds), signal).notices {
            told.push(format!("{}{}", if notice.upgrade { "+" } else { "" }, notice.kind));
        }
    }
    (told, agent.state())
}

#[track_caller]
fn check(signals: &[(u64, Signal)], told: &[&str], state: AgentState) {
    let (found, end) = play(signals);
    assert_eq!((found.iter().map(String::as_str).collect::<Vec<_>>(), end), (told.to_vec(), state));
}

#[test]
fn a_turn_makes_one_complete() {
    check(&[(1, hook(Ready)), (2, hook(Working)), (9, hook(Done))], &["complete"], Done);
}

#[test]
fn a_turn_that_failed_is_not_done_by_coming_to_rest() {
    check(&[(1, hook(Working)), (2, hook(Error)), (3, hook(Done))], &["error"], Error);
    check(&[(1, hook(Error)), (2, hook(Working)), (3, hook(Done))], &["error", "complete"], Done);
}

fn prompt(turn: &str) -> Signal {
    hook(Working).by_person().turn(turn)
}

#[test]
fn a_queued_prompt_may_start_a_turn_whose_end_is_reported_too() {
    let queued = [(1, prompt("a")), (3, prompt("a")), (7, hook(Done).turn("a").text("one"))];
    check(&queued, &["complete"], Working);
    let both = [&queued[..], &[(12, hook(Done).turn("b").text("two"))]].concat();
    check(&both, &["complete", "complete"], Done);
    // A third prompt that is typed in the second turn.
    let third = [&queued[..], &[(8, hook(Working).turn("b")), (9, prompt("b")), (12, hook(Done).turn("b"))]];
    check(&third.concat(), &["complete", "complete"], Working);
}

#[test]
fn a_queued_prompt_that_was_added_to_the_turn_starts_no_other() {
    let queued = [(1, prompt("a")), (3, prompt("a")), (7, hook(Done).turn("a").text("both"))];
    let interrupted = Signal::new(Authority::Hook, SignalContent::Interrupted);
    let idle = Signal::new(Authority::Notification, SignalContent::Idle);
    for rest in [interrupted, idle, title(SignalContent::TurnEnded)] {
        let signals = [&queued[..], &[(9, rest), (20, Signal::new(Authority::Title, SignalContent::Alive))]];
        check(&signals.concat(), &["complete"], Done);
    }
}

#[test]
fn the_end_of_a_turn_that_nobody_saw_begin_is_an_end() {
    let signals = [(1, prompt("a")), (7, hook(Done).turn("a")), (12, hook(Done).turn("b").text("two"))];
    check(&signals, &["complete", "complete"], Done);
    let again =
        [(1, prompt("a")), (7, hook(Done).turn("a").text("one")), (8, hook(Done).turn("a").text("one"))];
    check(&again, &["complete"], Done);
}

#[test]
fn transient_states_make_no_notice() {
    let signals = [(1, hook(Working)), (2, hook(RateLimited)), (3, hook(Compacting)), (4, hook(Working))];
    check(&signals, &[], Working);
}

#[test]
fn each_blocked_kind_says_what_it_needs() {
    check(
        &[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Permission)))],
        &["waiting"],
        Blocked(BlockedOn::Permission),
    );
    check(
        &[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Question)))],
        &["question"],
        Blocked(BlockedOn::Question),
    );
    check(&[(1, hook(Working)), (2, hook(Blocked(BlockedOn::Auth)))], &["waiting"], Blocked(BlockedOn::Auth));
    check(&[(1, hook(Working)), (2, hook(Error))], &["error"], Error);
}

#[test]
fn one_episode_makes_one_notice_however_late_the_other_signals_are() {
    let late = Signal::state(Authority::Notification, Blocked(BlockedOn::Permission));
    let signals = [
        (1, hook(Working)),
        (2, hook(Blocked(BlockedOn::Permission)).text("touch x")),
        (2, title(SignalContent::TurnEnded)),
        (8, late),
    ];
    check(&signals, &["waiting"], Blocked(BlockedOn::Permission));
}

#[test]
fn a_signal_with_more_detail_upgrades_the_notice() {
    let signals = [
        (1, title(SignalContent::State(Working))),
        (20, title(SignalContent::TurnEnded)),
        (21, hook(Done).text("all green")),
    ];
    check(&signals, &["complete", "+complete"], Done);
    // Claude Code shows the same title for done and for blocked.
    let blocked = hook(Blocked(BlockedOn::Permission)).text("rm");
    let signals =
        [(1, title(SignalContent::State(Working))), (20, title(SignalContent::TurnEnded)), (21, blocked)];
    check(&signals, &["complete", "+waiting"], Blocked(BlockedOn::Permission));
}

#[test]
fn what_a_title_left_open_is_told_again_as_what_it_was() {
    let ended = [title(SignalContent::State(Working)), title(SignalContent::TurnEnded)];
    let asks = Signal::state(Authority::Notification, Blocked(BlockedOn::Permission));
    assert_eq!(
        life(&[&ended[..], std::slice::from_ref(&asks), &ended[..]].concat()),
        ["+1 complete", "+1 waiting", "-1 went_on", "+3 complete"]
    );
    let interrupted = Signal::new(Authority::Status, SignalContent::Interrupted);
    assert_eq!(life(&[&ended[..], &[interrupted]].concat()), ["+1 complete", "-1 interrupted"]);
    // A title overrides a notification for a while, unless it left open what happened.
    let [works, ended] = ended;
    let blocked = Blocked(BlockedOn::Permission);
    check(&[(1, works), (20, ended), (21, asks)], &["complete", "+waiting"], blocked);
}

#[test]
fn a_less_reliable_signal_counts_after_the_hold() {
    check(&[(1, hook(Working)), (2, title(SignalContent::TurnEnded))], &[], Working);
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(1), &hook(Working));
    agent.apply(at(2), &title(SignalContent::TurnEnded));
    assert_eq!(agent.next_deadline(), Some(at(6)));
    assert_eq!(agent.tick(at(6)).notices[0].kind, Kind::Complete, "the person pressed Escape: no hook came");
    // A hook in the meantime makes the doubt pointless.
    let signals =
        [(1, hook(Working)), (2, title(SignalContent::TurnEnded)), (3, hook(Working)), (30, hook(Working))];
    check(&signals, &[], Working);
}

#[test]
fn when_hooks_stop_the_next_source_counts() {
    check(&[(1, hook(Working)), (60, title(SignalContent::TurnEnded))], &["complete"], Done);
}

#[test]
fn a_notification_of_the_client_never_ends_a_turn() {
    let notification = Signal::state(Authority::Notification, Done);
    check(&[(1, hook(Working)), (60, notification)], &[], Working);
}

#[test]
fn an_exit_in_the_middle_of_a_turn_is_always_reported() {
    let exit = Signal::state(Authority::Process, Exited);
    check(&[(1, hook(Working)), (2, exit.clone())], &["error"], Exited);
    check(&[(1, hook(Working)), (2, hook(Done)), (3, exit.clone())], &["complete"], Exited);
    check(&[(1, hook(Compacting)), (2, exit)], &["error"], Exited);
}

#[test]
fn ten_minutes_without_a_signal_is_stuck_and_a_signal_ends_it() {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(0), &hook(Working));
    agent.apply(at(300), &title(SignalContent::Alive));
    assert_eq!(agent.next_deadline(), Some(at(900)));
    assert_eq!(agent.tick(at(899)).notices, []);
    assert_eq!(agent.tick(at(900)).notices[0].kind, Kind::Stuck);
    assert_eq!(agent.state(), Stuck);
    assert_eq!(agent.apply(at(901), &title(SignalContent::Alive)).notices, []);
    assert_eq!(agent.state(), Working);
}

#[test]
fn a_minute_after_the_turn_one_idle_notice_and_a_new_turn_cancels_it() {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(0), &hook(Working));
    agent.apply(at(10), &hook(Done));
    assert_eq!(agent.next_deadline(), Some(at(70)));
    let idle = agent.tick(at(70)).notices;
    assert_eq!((idle[0].kind, idle[0].category), (Kind::Waiting, Some("idle_prompt")));
    assert_eq!((agent.tick(at(500)).notices, agent.next_deadline()), (vec![], None));
    agent.apply(at(600), &hook(Working));
    agent.apply(at(610), &hook(Done));
    agent.apply(at(650), &hook(Working));
    assert_eq!(agent.tick(at(680)).notices, []);
}

#[test]
fn a_stop_with_work_still_running_is_not_complete() {
    let pending = Signal { pending: true, ..hook(Done) };
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(0), &hook(Working));
    assert_eq!(agent.apply(at(1), &pending).notices, []);
    assert_eq!(agent.tick(at(100)).notices, [], "nor is the person waited for");
    agent.apply(at(101), &hook(Working));
    assert_eq!(agent.apply(at(102), &hook(Done)).notices[0].kind, Kind::Complete);
}

#[test]
fn a_server_that_runs_on_does_not_hide_that_the_turn_ended() {
    let stop = Signal { running: 1, ..hook(Done) };
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(0), &hook(Working));
    let notices = agent.apply(at(1), &stop).notices;
    assert_eq!((notices[0].kind, notices[0].running), (Kind::Complete, 1));
    assert_eq!(agent.tick(at(100)).notices[0].category, Some(IDLE_PROMPT));
}

/// Applies signals ten seconds apart. Returns the notices (`+5 waiting`) and the ends (`-5 went_on`), by episode.
fn life(signals: &[Signal]) -> Vec<String> {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(0), &hook(Working));
    let first = agent.episode.number();
    let mut life = Vec::new();
    for (number, signal) in (1..).zip(signals) {
        let AgentChanges { notices, ended } = agent.apply(at(10 * number), signal);
        let episode = |episode: Episode| episode.number() - first;
        life.extend(ended.iter().map(|end| format!("-{} {}", episode(end.episode), end.by.as_str())));
        life.extend(notices.iter().map(|notice| format!("+{} {}", episode(notice.episode), notice.kind)));
    }
    life
}

fn asks(call: &str) -> Signal {
    hook(Blocked(BlockedOn::Permission)).text(call).call(call)
}

#[test]
fn a_permission_ends_when_its_tool_goes_on() {
    assert_eq!(life(&[asks("a"), hook(Working).call("a")]), ["+1 waiting", "-1 went_on"]);
    assert_eq!(life(&[asks("a"), hook(Working)]), ["+1 waiting", "-1 went_on"]);
    assert_eq!(life(&[asks("a"), hook(Done)]), ["+1 waiting", "-1 went_on", "+2 complete"]);
    assert_eq!(life(&[asks("a"), hook(Working).by_person()]), ["+1 waiting", "-1 prompted"]);
    assert_eq!(life(&[asks("a"), hook(Exited)]), ["+1 waiting", "-1 session_ended"]);
}

#[test]
fn two_prompts_at_once_are_two_and_each_ends_by_itself() {
    let signals = [asks("a"), asks("b"), asks("a"), hook(Working).call("c"), hook(Working).call("b")];
    assert_eq!(life(&signals), ["+1 waiting", "+2 waiting", "-2 went_on"]);
    let (_, state) = play(&signals.map(|signal| (1, signal)));
    assert_eq!(state, Blocked(BlockedOn::Permission), "the first one is open");
    let question = hook(Blocked(BlockedOn::Question)).call("q");
    let (_, state) = play(&[asks("a"), question, hook(Working).call("q")].map(|signal| (1, signal)));
    assert_eq!(state, Blocked(BlockedOn::Permission));
}

#[test]
fn a_client_that_tells_of_its_prompt_again_tells_of_no_new_one() {
    let again = Signal::state(Authority::Notification, Blocked(BlockedOn::Permission)).text("needs you");
    assert_eq!(life(&[asks("a"), again.clone(), hook(Working).call("a")]), ["+1 waiting", "-1 went_on"]);
    // The notification came first and names no tool call.
    let unsaid = Signal::state(Authority::Notification, Blocked(BlockedOn::Permission));
    let signals = [unsaid, asks("a"), asks("b"), hook(Working).call("a")];
    assert_eq!(life(&signals), ["+1 waiting", "+1 waiting", "+2 waiting", "-1 went_on"]);
}

#[test]
fn an_interrupted_agent_waits_for_its_person_and_nothing_is_told() {
    let interrupted = Signal::new(Authority::Hook, SignalContent::Interrupted);
    assert_eq!(life(&[asks("a"), interrupted.clone()]), ["+1 waiting", "-1 interrupted"]);
    check(&[(1, hook(Working)), (2, interrupted.clone())], &[], Ready);
    check(&[(1, asks("a")), (2, interrupted.clone())], &["waiting"], Ready);
    check(&[(1, hook(Working)), (2, hook(Done)), (3, interrupted)], &["complete"], Done);
}

#[test]
fn a_completion_ends_with_the_persons_next_prompt_only() {
    let done = [hook(Done), hook(Working), hook(Done)];
    assert_eq!(life(&done), ["+1 complete", "+3 complete"], "something else woke it");
    assert_eq!(life(&[hook(Done), hook(Working).by_person()]), ["+1 complete", "-1 prompted"]);
    assert_eq!(life(&[hook(Done), hook(Exited)]), ["+1 complete"], "a run without a person at it");
    assert_eq!(life(&[hook(Done), hook(Exited).by_person()]), ["+1 complete", "-1 session_ended"]);
}

#[test]
fn trouble_ends_with_work() {
    assert_eq!(life(&[hook(Error), hook(Done), hook(Working)]), ["+1 error", "-1 went_on"]);
    let alive = Signal::new(Authority::Hook, SignalContent::Alive);
    assert_eq!(life(&[hook(Stuck), alive]), ["+1 stuck", "-1 went_on"]);
    let idle = Signal::new(Authority::Hook, SignalContent::Idle);
    assert_eq!(life(&[hook(Done), idle, hook(Working)]), ["+1 complete", "+2 waiting", "-2 went_on"]);
}

#[test]
fn an_agent_that_comes_to_rest_after_an_interruption_is_not_done() {
    let interrupted = Signal::new(Authority::Hook, SignalContent::Interrupted);
    check(&[(1, hook(Working)), (2, interrupted.clone()), (3, hook(Done))], &[], Ready);
    let signals = [(1, hook(Working)), (2, interrupted.clone()), (3, hook(Working)), (4, hook(Done))];
    check(&signals, &["complete"], Done);
    // The report of an interruption was wrong.
    check(&[(1, hook(Working)), (2, interrupted), (4, hook(Done))], &["complete"], Done);
}

fn notified(text: &str) -> Signal {
    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
    Signal { text, ..Signal::new(Authority::Notification, SignalContent::Notified) }
}

#[test]
fn a_notification_of_the_client_only_adds_text_to_a_notice() {
    let told = hook(Done).text("all green");
    check(&[(1, hook(Working)), (9, told), (15, notified("Claude is done"))], &["complete"], Done);
    check(
        &[(1, hook(Working)), (9, hook(Done)), (15, notified("all green"))],
        &["complete", "+complete"],
        Done,
    );
    check(&[(1, hook(Working)), (9, hook(Done)), (15, notified(""))], &["complete"], Done);
}

#[test]
fn a_notification_in_the_middle_of_a_turn_is_one_of_its_own() {
    check(&[(1, hook(Working)), (2, notified("half way")), (3, notified(""))], &["status"], Working);
}

#[test]
fn the_client_says_that_it_waits_and_that_is_the_idle_notice() {
    let idle = Signal::new(Authority::Hook, SignalContent::Idle);
    let signals = [(1, hook(Working)), (2, idle.clone()), (9, hook(Done)), (40, idle.clone()), (90, idle)];
    check(&signals, &["complete", "waiting"], Done);
}

#[test]
fn a_last_message_that_says_it_waits_is_a_waiting_notice() {
    let waits = hook(Blocked(BlockedOn::Input)).text("which branch?");
    check(&[(1, hook(Working)), (2, waits)], &["waiting"], Blocked(BlockedOn::Input));
}

#[test]
fn another_process_continues_the_saved_machine() {
    let mut agent = AgentMachine::new(at(1000), AgentTimeouts::default());
    agent.apply(at(1000), &hook(Working));
    let written = serde_json::to_string(&agent).unwrap();
    let read: AgentMachine = serde_json::from_str(&written).unwrap();
    assert_eq!(read, agent);
    // After a reboot the monotonic clock starts at zero, and nothing waits for the old time to be reached.
    let mut read = read.resume(at(3), AgentTimeouts { stuck: at(5), ..AgentTimeouts::default() });
    assert_eq!(read.next_deadline(), Some(at(8)));
    assert_eq!(read.tick(at(8)).notices[0].kind, Kind::Stuck);
}

proptest! {
    /// For any signals: a turn that ends makes a notice; an episode makes one notice and then only upgrades.
    #[test]
    fn every_turn_end_is_reported_and_no_episode_twice(
        signals in prop::collection::vec((0u64..40, 0usize..5, 0usize..14), 0..60)
    ) {
        let authorities =
            [Authority::Hook, Authority::Status, Authority::Title, Authority::Notification, Authority::Process];
        let states = [Starting, Ready, Working, Done, Error, Exited, RateLimited, Compacting,
            Blocked(BlockedOn::Permission), Blocked(BlockedOn::Question)];
        let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
        let (mut now, mut seen) = (0, std::collections::HashSet::new());
        for (step, authority, what) in signals {
            now += step;
            let content = match what {
                10 => SignalContent::TurnEnded,
                11 => SignalContent::Alive,
                12 => SignalContent::Notified,
                13 => SignalContent::Idle,
                state => SignalContent::State(states[state]),
            };
            let signal = Signal { text: (step % 2 == 0).then(|| "x".into()), ..Signal::new(authorities[authority], content) };
            // Time first, then the signal: each may end a turn.
            let mut told = Vec::new();
            for with_signal in [false, true] {
                let before = agent.state();
                let notices = if with_signal { agent.apply(at(now), &signal).notices } else { agent.tick(at(now)).notices };
                let after = agent.state();
                let left = before.is_busy() && !after.is_busy() && after != Starting;
                prop_assert!(!left || !notices.is_empty(), "{:?} to {:?} untold", before, after);
                told.extend(notices);
            }
            for notice in told {
                let again = !seen.insert(notice.episode);
                prop_assert_eq!(again, notice.upgrade);
            }
            prop_assert!(agent.next_deadline().is_none_or(|deadline| deadline > at(now)));
        }
    }
}

/// Older versions saved these names, and other processes of the same machine may be older.
#[test]
fn the_saved_field_names_stay_the_same() {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    agent.apply(at(1), &hook(Working));
    agent.apply(at(2), &title(SignalContent::State(Done)));
    let saved = serde_json::to_value(&agent).unwrap();
    let names: Vec<&str> = saved.as_object().unwrap().keys().map(String::as_str).collect();
    for name in ["told", "idle_told", "doubted", "episode", "decided_by", "last_alive", "pending"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    assert_eq!(saved["doubted"]["says"], serde_json::json!({"is": {"state": "done"}}));
}

#[test]
fn the_end_of_a_turn_says_how_long_the_turn_took() {
    let turn = |signals: &[(u64, Signal)]| {
        let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
        let applied = signals.iter().map(|(seconds, signal)| agent.apply(at(*seconds), signal));
        let changes = applied.last().unwrap();
        changes.notices.last().and_then(|notice| notice.turn).map(|turn| turn.as_secs())
    };
    let (working, done) = (hook(Working), hook(Done));
    let blocked = hook(Blocked(BlockedOn::Permission));
    let pending = Signal { pending: true, ..done.clone() };
    assert_eq!(turn(&[(5, working.clone()), (12, done.clone())]), Some(7));
    assert_eq!(
        turn(&[(5, working.clone()), (6, blocked.clone()), (8, working.clone()), (12, done.clone())]),
        Some(7),
        "a prompt in between is part of it"
    );
    assert_eq!(
        turn(&[(5, working.clone()), (6, pending), (50, working.clone()), (52, done.clone())]),
        Some(47),
        "background work goes on with it"
    );
    assert_eq!(
        turn(&[(5, working.clone()), (90, working.clone().by_person()), (92, done.clone())]),
        Some(2),
        "the person has just given a prompt"
    );
    assert_eq!(
        turn(&[(5, working.clone()), (6, done.clone()), (90, working.clone()), (93, done.clone())]),
        Some(3)
    );
    assert_eq!(turn(&[(5, done.clone())]), None, "its beginning was not seen");
    assert_eq!(turn(&[(5, working), (6, blocked)]), None, "it has not ended");
}

#[test]
fn without_a_reminder_an_agent_that_waits_makes_no_notice() {
    let mut agent = AgentMachine::new(at(0), AgentTimeouts { idle: None, ..AgentTimeouts::default() });
    agent.apply(at(1), &hook(Working));
    agent.apply(at(2), &hook(Done));
    assert_eq!(agent.next_deadline(), None);
    assert!(agent.tick(Duration::from_hours(5)).is_empty());
}

#[test]
fn a_permission_that_is_refused_because_no_person_attends_is_told_once_it_is_known() {
    let wants = |call: &str| {
        Signal::new(Authority::Hook, SignalContent::UnattendedPermission)
            .call(call)
            .text(format!("run {call}"))
    };
    let mut agent = AgentMachine::new(at(0), AgentTimeouts::default());
    let mut texts = |seconds, signal: &Signal| -> Vec<String> {
        let notices = agent.apply(at(seconds), signal).notices;
        assert!(notices.iter().all(|notice| notice.kind == Kind::Status || notice.kind == Kind::Complete));
        notices.into_iter().filter_map(|notice| notice.text).collect()
    };
    texts(1, &hook(Working).call("a"));
    assert_eq!(texts(2, &wants("a")), [""; 0]);
    assert_eq!(texts(2, &wants("b")), [""; 0]);
    assert_eq!(texts(3, &wants("c")), [""; 0]);
    assert_eq!(texts(4, &hook(Working).call("b")), [""; 0], "a program allowed this one");
    assert_eq!(texts(5, &hook(Working)), ["run a; run c"]);
    assert_eq!(texts(6, &hook(Working)), [""; 0]);
    texts(7, &wants("d"));
    assert_eq!(texts(8, &hook(Done).text("done")), ["run d", "done"]);
}
