//! Timeouts of agents, and which agents are live.

use super::{JournalAt, agent, agent_info, messages, row, version};
use crate::home::TestHome;

use std::time::Duration;

use ringer_core::agent::{AgentState, AgentTimeouts, Authority, Signal, SignalContent};
use ringer_journal::Journal;

fn deadline(journal: &mut Journal, now: u64) -> Option<u64> {
    let live = journal.live_agents(Duration::from_secs(now), AgentTimeouts::default());
    let deadline = live.map(|live| live.deadline);
    deadline.expect("readable").map(|deadline| deadline.as_secs())
}

fn bodies(journal: &mut Journal) -> Vec<String> {
    messages(journal).into_iter().map(|message| message.draft.body).collect()
}

#[test]
fn an_agent_that_works_without_a_sign_of_life_is_stuck() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    assert_eq!(deadline(&mut journal, 0), Some(600));
    assert_eq!(JournalAt::at(&mut journal, 599).tick(), 0);
    assert_eq!(row(&test, "a").0, "working");
    assert_eq!(JournalAt::at(&mut journal, 600).tick(), 1);
    assert_eq!(row(&test, "a"), ("stuck".to_owned(), 600_000, 0), "time that passed is no agent_info");
    assert_eq!(bodies(&mut journal), ["Agent a has shown no sign of life for a while"]);
    assert_eq!(deadline(&mut journal, 600), None);
    assert_eq!(JournalAt::at(&mut journal, 2000).tick(), 0, "once");
}

#[test]
fn an_agent_that_waits_for_its_person_is_told_of_once() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    JournalAt::at(&mut journal, 1).hook(&agent_info("a"), AgentState::Done);
    assert_eq!(deadline(&mut journal, 1), Some(61));
    assert_eq!((JournalAt::at(&mut journal, 60).tick(), JournalAt::at(&mut journal, 61).tick()), (0, 1));
    assert_eq!(messages(&mut journal)[1].draft.category.as_deref(), Some("idle_prompt"));
    assert_eq!(row(&test, "a").1, 1000, "it is in the same state");
    assert_eq!(JournalAt::at(&mut journal, 500).tick(), 0);
}

#[test]
fn each_agent_has_its_own_time_and_all_that_is_due_is_told() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (seconds, id) in [(0, "a"), (0, "b"), (0, "c"), (10, "late"), (0, "gone")] {
        JournalAt::at(&mut journal, seconds).working(&agent_info(id));
    }
    JournalAt::at(&mut journal, 0).hook(&agent_info("gone"), AgentState::Exited);
    let already = messages(&mut journal).len();
    assert_eq!(deadline(&mut journal, 10), Some(600), "the earliest");
    assert_eq!(JournalAt::at(&mut journal, 605).tick(), 3);
    assert_eq!(messages(&mut journal).len() - already, 3, "each under an id of its own");
    assert_eq!(
        ["a", "b", "c", "late", "gone"].map(|id| row(&test, id).0),
        ["stuck", "stuck", "stuck", "working", "exited"]
    );
    assert_eq!(deadline(&mut journal, 605), Some(610));
}

/// A subagent's own events send no messages. Timeouts of its agent do, even if its event triggers the check.
#[test]
fn a_subagent_that_is_heard_after_the_time_has_come_swallows_nothing() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).working(&of);
    JournalAt::at(&mut journal, 1).hook(&of, AgentState::Done);
    let alive = [Signal::new(Authority::Hook, SignalContent::Alive)];
    assert_eq!(JournalAt::at(&mut journal, 61).hear(&of, &alive, None, false).messages_sent, 1);
    assert_eq!(messages(&mut journal)[1].draft.category.as_deref(), Some("idle_prompt"));
}

/// More than a byte can number.
#[test]
fn many_agents_whose_time_comes_at_one_moment_are_all_told_of() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                INSERT INTO agent (id, client, session_id, scope, by_hooks, state, since, seen, machine, blocks)
                SELECT id || i, client, session_id, scope, by_hooks, state, since, seen, machine, blocks
                FROM agent, n";
    assert_eq!(test.connection().execute(many, []), Ok(600));
    assert_eq!(JournalAt::at(&mut journal, 600).tick(), 601);
    assert_eq!(messages(&mut journal).len(), 601);
}

#[test]
fn nothing_is_written_while_nobody_is_due() {
    let test = TestHome::new();
    let mut journal = test.open();
    let watcher = test.connection();
    assert_eq!(deadline(&mut journal, 0), None);
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    let before = version(&watcher);
    assert_eq!(JournalAt::at(&mut journal, 599).tick(), 0);
    assert_eq!(version(&watcher), before);
}

#[test]
fn whoever_looks_says_how_long_he_waits() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    let timeouts = AgentTimeouts { stuck: Duration::from_secs(5), ..AgentTimeouts::default() };
    let now = Duration::from_secs(5);
    assert_eq!(journal.live_agents(now, timeouts).unwrap().deadline, Some(now));
    assert_eq!(journal.tick_agents(now, timeouts, &crate::home::at(5000)).unwrap(), 1);
    assert_eq!(row(&test, "a").0, "stuck");
}

/// The monotonic clock restarts at boot.
#[test]
fn an_agent_from_before_the_machine_was_started_anew_is_waited_for_from_now_on() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 1_000_000).working(&agent_info("a"));
    assert_eq!(deadline(&mut journal, 3), Some(603));
    assert_eq!(JournalAt::at(&mut journal, 3).tick(), 0);
    assert!(JournalAt::at(&mut journal, 4).hook(&agent_info("a"), AgentState::Done).written);
    assert_eq!(deadline(&mut journal, 4), Some(64));
}

#[test]
fn a_contradiction_of_a_poorer_signal_counts_when_its_time_comes() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    let title = [Signal::state(Authority::Title, AgentState::Ready)];
    let change = JournalAt::at(&mut journal, 1).hear(&agent_info("a"), &title, None, true);
    assert!(change.written && change.messages_sent == 0, "it is remembered, and not believed yet");
    assert_eq!((row(&test, "a").0.as_str(), deadline(&mut journal, 1)), ("working", Some(5)));
    assert_eq!(JournalAt::at(&mut journal, 5).tick(), 1);
    assert_eq!(bodies(&mut journal), ["Agent a ended in the middle of a turn"]);
}

#[test]
fn those_who_have_gone_are_not_among_the_living() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (seconds, id) in [(3, "a"), (1, "c"), (2, "gone"), (2, "b")] {
        JournalAt::at(&mut journal, seconds).working(&agent_info(id));
    }
    JournalAt::at(&mut journal, 2).hook(&agent_info("gone"), AgentState::Exited);
    JournalAt::at(&mut journal, 4).hook(&agent_info("a"), AgentState::Done);
    let live = journal.live_agents(Duration::ZERO, AgentTimeouts::default()).unwrap().agents;
    let found: Vec<(&str, AgentState)> = live.iter().map(|(of, state)| (of.id.as_str(), *state)).collect();
    let expect = [("c", AgentState::Working), ("b", AgentState::Working), ("a", AgentState::Done)];
    assert_eq!(found, expect);
}

#[test]
fn on_a_surface_is_the_living_agent_that_was_seen_there_last() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (seconds, id, surface) in [(3, "new", "s"), (1, "old", "s"), (9, "elsewhere", "t"), (4, "gone", "s")]
    {
        let mut of = agent_info(id);
        of.surface = Some(surface.to_owned());
        JournalAt::at(&mut journal, seconds).working(&of);
        if id == "gone" {
            JournalAt::at(&mut journal, seconds).hook(&of, AgentState::Exited);
        }
    }
    let mut on = |surface| journal.agent_on(surface).unwrap().map(|of| of.id);
    assert_eq!((on("s"), on("t"), on("u")), (Some(agent("new")), Some(agent("elsewhere")), None));
}

#[test]
fn an_agent_that_was_known_by_its_terminal_is_known_to_report_by_hooks_from_then_on() {
    let test = TestHome::new();
    let mut journal = test.open();
    let title = [Signal::state(Authority::Title, AgentState::Working)];
    JournalAt::at(&mut journal, 0).hear(&agent_info("a"), &title, None, true);
    let by_hooks = |journal: &mut Journal| journal.agent_info(&agent("a")).unwrap().unwrap().by_hooks;
    assert!(!by_hooks(&mut journal));
    let mut of = agent_info("a");
    of.by_hooks = true;
    JournalAt::at(&mut journal, 1).working(&of);
    assert!(by_hooks(&mut journal));
    JournalAt::at(&mut journal, 2).hook(&agent_info("a"), AgentState::Done);
    assert!(by_hooks(&mut journal));
    let machine = journal.agent_machine(&agent("a")).unwrap().expect("it is known");
    assert_eq!((machine.state(), machine.decided_by()), (AgentState::Done, Authority::Hook));
    assert_eq!(journal.agent_state(&agent("a")).unwrap(), Some(AgentState::Done));
    assert_eq!(journal.agent_state(&agent("nobody")).unwrap(), None);
}

/// Otherwise a title could override a hook that reports the same state every second.
#[test]
fn a_repeated_signal_renews_its_hold_every_few_seconds() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).working(&of);
    let written: Vec<u64> =
        (1..=20).filter(|seconds| JournalAt::at(&mut journal, *seconds).working(&of).written).collect();
    assert_eq!(written, [5, 10, 15, 20]);
}

#[test]
fn a_sign_of_life_alone_is_written_once_a_minute() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).working(&of);
    let written: Vec<u64> =
        (1..=200).filter(|seconds| JournalAt::at(&mut journal, *seconds).alive(&of, None).written).collect();
    assert_eq!(written, [60, 120, 180]);
    assert_eq!(row(&test, "a").2, 180_000);
}

/// For example Claude Code's `AskUserQuestion`, which is answered in its terminal.
#[test]
fn a_question_in_the_agents_terminal_has_an_id_and_closes_when_it_goes_on() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    let asks = Signal::state(Authority::Hook, AgentState::Blocked(ringer_core::agent::BlockedOn::Question))
        .text("A or B?");
    JournalAt::at(&mut journal, 0).working(&of);
    JournalAt::at(&mut journal, 1).hear(&of, &[asks], None, true);
    let asked =
        messages(&mut journal).into_iter().find_map(|message| message.draft.question_id).expect("an id");
    let open = journal.questions(None, false).expect("readable");
    assert_eq!((open.len(), open[0].id.as_str()), (1, asked.as_str()));
    let by_hand = ringer_core::Draft::new(
        of.scope.clone(),
        ringer_core::Sender::new("a").unwrap(),
        ringer_core::Kind::Question,
        "and?",
    )
    .unwrap();
    journal.ask(&by_hand, "and?", &[], &ringer_journal::IdSource::now(), None).expect("asked");
    JournalAt::at(&mut journal, 2).working(&of);
    let open = journal.questions(None, false).expect("readable");
    assert_eq!(open.len(), 1, "what it asked with `ringer ask` stays open");
    assert_ne!(open[0].id.as_str(), asked.as_str());
    let mark = messages(&mut journal).into_iter().next_back().expect("a mark").draft;
    assert_eq!((mark.tag.as_str(), mark.question_id), ("mark-answer", Some(asked)));
}
