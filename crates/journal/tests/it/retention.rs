//! Retention: what is deleted and when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ringer_core::agent::{AgentState, AgentTimeouts};
use ringer_core::message::Agent;
use ringer_core::{Recipient, Scope, Sender};
use ringer_journal::{AgentInfo, Consumer, Journal, PruneResult, RetentionLimits, Uptime};

use crate::agent::{JournalAt, agent_info};
use crate::home::{TestHome, at, bodies, draft, draft_in, lead, read_to, scope};

const YEAR: i64 = 365 * 24 * 60 * 60 * 1000;

/// Limits of two prunings and this many messages.
fn limits(messages: u32) -> RetentionLimits {
    RetentionLimits { prunings: 2, messages, ..RetentionLimits::default() }
}

/// Sends numbered messages.
fn send(journal: &mut Journal, scope: &Scope, numbers: std::ops::Range<u32>) {
    for number in numbers {
        journal.append(&draft_in(scope.clone(), &number.to_string()), &at(0)).expect("appended");
    }
}

/// The reports to the person about deleted messages.
fn told(journal: &mut Journal) -> Vec<String> {
    let messages = journal.messages_after(0, usize::MAX).expect("readable");
    let for_person = messages.into_iter().filter(|message| message.draft.recipient == Recipient::Person);
    for_person.map(|message| message.draft.body).collect()
}

/// Prunes this many times.
fn prune(journal: &mut Journal, times: usize) -> Vec<usize> {
    (0..times).map(|_| journal.prune(limits(1000), &at(0)).expect("pruned").messages).collect()
}

#[test]
fn what_was_read_goes_after_so_many_prunings() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.append(&draft("old"), &at(0)).unwrap();
    read_to(&mut journal, &lead(), 1, 0);
    assert_eq!(prune(&mut journal, 1), [0]);
    journal.append(&draft("new"), &at(0)).unwrap();
    read_to(&mut journal, &lead(), 2, 0);
    assert_eq!(prune(&mut journal, 2), [0, 1]);
    assert_eq!(bodies(&mut journal), ["new"]);
    assert!(told(&mut journal).is_empty());
}

/// A clock that jumped forward used to delete unread messages, because their age was computed with it.
#[test]
fn a_clock_that_jumps_deletes_nothing() {
    for now in [10 * YEAR, -10 * YEAR, i64::MAX, i64::MIN] {
        let test = TestHome::new();
        let mut journal = test.open();
        send(&mut journal, &Scope::global(), 0..20);
        read_to(&mut journal, &lead(), 0, 0);
        let uptime = |hours| Uptime { boot: "a".into(), since_boot: Duration::from_hours(hours) };
        journal.prune_if_due(&uptime(1), &at(0)).unwrap();
        for hours in [2, 30, 60] {
            journal.prune_if_due(&uptime(hours), &at(now)).unwrap();
        }
        assert_eq!(bodies(&mut journal).len(), 20, "{now}");
    }
}

#[test]
fn there_is_one_pruning_in_twenty_hours_that_the_machine_runs() {
    let test = TestHome::new();
    let mut journal = test.open();
    let count = |journal: &mut Journal, boot: &str, hours: u64| {
        let uptime = Uptime { boot: boot.into(), since_boot: Duration::from_hours(hours) };
        journal.prune_if_due(&uptime, &at(0)).unwrap();
        let note: String = test
            .connection()
            .query_row("SELECT value FROM note WHERE name = 'prunings'", [], |row| row.get(0))
            .unwrap();
        serde_json::from_str::<serde_json::Value>(&note).unwrap()["count"].as_u64().unwrap()
    };
    // The first call prunes; then twenty hours of uptime have to pass, over any number of boots.
    let looks = [
        ("a", 1, 1),
        ("a", 20, 1),
        ("a", 21, 2),
        ("b", 5, 2),
        ("b", 12, 2),
        ("c", 7, 2),
        ("c", 8, 3),
        ("c", 8, 3),
    ];
    for (boot, hours, expected) in looks {
        assert_eq!(count(&mut journal, boot, hours), expected, "{hours} h of {boot}");
    }
}

#[test]
fn what_a_cursor_in_use_has_not_read_stays() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..4);
    let slow = Consumer::new("slow", Scope::global()).unwrap();
    for _ in 0..3 {
        read_to(&mut journal, &lead(), 4, 0);
        read_to(&mut journal, &slow, 2, 0);
        prune(&mut journal, 1);
    }
    assert_eq!(bodies(&mut journal), ["2", "3"]);
    // A cursor that is not used any more eventually keeps nothing.
    prune(&mut journal, 2);
    assert!(bodies(&mut journal).is_empty() && told(&mut journal).is_empty());
}

#[test]
fn what_a_live_agent_has_not_seen_stays_and_goes_with_the_agent() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("worker");
    JournalAt::at(&mut journal, 1).working(&of);
    let mut for_agent = draft("for the worker");
    for_agent.recipient = Recipient::Agent(Agent::new("worker").unwrap());
    journal.append(&for_agent, &at(0)).unwrap();
    send(&mut journal, &Scope::global(), 0..50);
    assert_eq!(prune(&mut journal, 4), [0, 0, 50, 0]);
    assert_eq!(bodies(&mut journal), ["for the worker"]);
    JournalAt::at(&mut journal, 2).hook(&of, AgentState::Exited);
    prune(&mut journal, 1);
    assert!(!bodies(&mut journal).contains(&"for the worker".to_owned()));
}

#[test]
fn an_agent_that_ended_is_forgotten_after_as_many_prunings() {
    let test = TestHome::new();
    let mut journal = test.open();
    JournalAt::at(&mut journal, 1).hook(&agent_info("worker"), AgentState::Exited);
    let is_known =
        |journal: &mut Journal| journal.agent_info(&Agent::new("worker").unwrap()).unwrap().is_some();
    prune(&mut journal, 2);
    assert!(is_known(&mut journal));
    prune(&mut journal, 1);
    assert!(!is_known(&mut journal));
}

/// An agent that is only known from its terminal never reports its end.
#[test]
fn an_agent_of_a_terminal_is_forgotten_when_it_was_not_seen_for_as_many_prunings() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of_terminal =
        |id: &str| AgentInfo { client: "terminal".to_owned(), by_hooks: false, ..agent_info(id) };
    let (quiet, seen) = (of_terminal("quiet"), of_terminal("seen"));
    for agent in [&quiet, &seen, &agent_info("by-hooks")] {
        JournalAt::at(&mut journal, 0).hook(agent, AgentState::Done);
    }
    prune(&mut journal, 2);
    JournalAt::at(&mut journal, 1000).hook(&seen, AgentState::Working);
    prune(&mut journal, 2);
    let live = journal.live_agents(Duration::ZERO, AgentTimeouts::default()).unwrap().agents;
    assert_eq!(live.iter().map(|(info, _)| info.id.as_str()).collect::<Vec<_>>(), ["by-hooks", "seen"]);
}

#[test]
fn over_the_limit_the_oldest_go_and_the_person_is_told() {
    let test = TestHome::new();
    let mut journal = test.open();
    read_to(&mut journal, &lead(), 0, 0);
    send(&mut journal, &Scope::global(), 0..7);
    assert_eq!(journal.forget_over_limit(limits(7), &at(1)).unwrap(), 0);
    assert_eq!(journal.prune(limits(4), &at(2)).unwrap(), PruneResult { messages: 3, over_limit: 3 });
    let first = told(&mut journal);
    assert!(first.len() == 1 && first[0].contains("3 oldest messages"), "{first:?}");
    send(&mut journal, &Scope::global(), 7..30);
    assert!(journal.forget_over_limit(limits(20), &at(3)).unwrap() > 0);
    assert!(told(&mut journal).len() <= 1, "not again on that day");
}

#[test]
fn too_many_bytes_are_too_much_as_well() {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..40 {
        journal.append(&draft(&format!("{number} {}", "x".repeat(60_000))), &at(0)).unwrap();
    }
    let limits = RetentionLimits { bytes: 1 << 20, ..RetentionLimits::default() };
    assert!(journal.forget_over_limit(limits, &at(0)).unwrap() > 0);
    assert_eq!(told(&mut journal).len(), 1);
    assert_eq!(journal.forget_over_limit(limits, &at(0)).unwrap(), 0, "what is left fits");
}

/// Another process writes continuously, as hooks do. Each piece is a separate transaction, so it can write while thousands of
/// messages are deleted.
#[test]
fn others_write_while_much_is_removed() {
    const OLD: i64 = 1_200;
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..1_250);
    for _ in 0..2 {
        assert_eq!(journal.prune(limits(10_000), &at(0)).unwrap().messages, 0);
    }
    read_to(&mut journal, &lead(), OLD, 0);
    let (begun, begins) = std::sync::mpsc::channel();
    let ended = AtomicBool::new(false);
    let between = thread::scope(|threads| {
        let writer = threads.spawn(|| {
            let (mut journal, connection) = (test.open(), test.connection());
            let old = || {
                let count = "SELECT count(*) FROM message WHERE seq <= ?1";
                connection.query_row(count, [OLD], |row| row.get::<_, i64>(0)).unwrap()
            };
            let mut between = 0;
            while !ended.load(Ordering::SeqCst) {
                let before = old();
                send(&mut journal, &scope("bbbbbbbb"), 0..1);
                between += usize::from(before < OLD && old() > 0);
                let _ = begun.send(());
            }
            between
        });
        begins.recv().unwrap();
        let pruned = journal.prune(limits(10_000), &at(0)).unwrap().messages;
        ended.store(true, Ordering::SeqCst);
        assert_eq!(i64::try_from(pruned).unwrap(), OLD);
        writer.join().unwrap()
    });
    assert!(between > 0, "the write lock was free between two pieces");
    let left = journal.messages_after(0, usize::MAX).unwrap();
    let left = left.iter().filter(|message| message.draft.scope == Scope::global());
    assert_eq!(left.map(|message| message.seq).collect::<Vec<_>>(), (1_201..=1_250).collect::<Vec<i64>>());
}

/// If a process is killed before it reports its deletions, the next one does.
#[test]
fn what_was_removed_and_not_told_of_is_told_of_later() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..30);
    assert_eq!(journal.forget_over_limit(limits(20), &at(YEAR)).unwrap(), 10);
    // On the same day nothing is reported.
    send(&mut journal, &Scope::global(), 30..35);
    let again = journal.forget_over_limit(limits(20), &at(YEAR + 1)).unwrap();
    assert_eq!((again, told(&mut journal).len()), (6, 1));
    drop(journal);
    let mut journal = test.open();
    assert_eq!(journal.forget_over_limit(limits(1_000), &at(2 * YEAR)).unwrap(), 0);
    let words = told(&mut journal);
    assert!(words.len() == 2 && words[1].contains("its 6 oldest messages"), "{words:?}");
    assert_eq!(journal.forget_over_limit(limits(1_000), &at(4 * YEAR)).unwrap(), 0);
    assert_eq!(told(&mut journal).len(), 2);
}

/// Far more messages than the limit: the oldest are deleted, including those for an agent.
#[test]
fn over_the_limit_by_many_pieces() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut for_agent = draft("for an agent");
    for_agent.recipient = Recipient::Agent(Agent::new("worker").unwrap());
    journal.append(&for_agent, &at(0)).unwrap();
    send(&mut journal, &Scope::global(), 0..1_000);
    assert_eq!(journal.forget_over_limit(limits(300), &at(1)).unwrap(), 701);
    let left = journal.messages_after(0, usize::MAX).unwrap();
    // And the report about them.
    assert_eq!(left.len(), 301);
    assert_eq!(left[0].draft.body, "700");
    let receipts = test.connection().query_row("SELECT count(*) FROM receipt", [], |row| row.get(0));
    assert_eq!(receipts, Ok(0));
    assert!(told(&mut journal)[0].contains("701 oldest messages"));
}

/// A cursor stays at the last message of its scope. Later messages of other repositories are not unread for it.
#[test]
fn a_quiet_repository_holds_nothing_of_another_back() {
    let test = TestHome::new();
    let mut journal = test.open();
    let (quiet, busy) = (scope("aaaaaaaa"), scope("bbbbbbbb"));
    send(&mut journal, &quiet, 0..1);
    read_to(&mut journal, &Consumer::new("lead", quiet).unwrap(), 1, 0);
    send(&mut journal, &busy, 1..11);
    read_to(&mut journal, &Consumer::new("lead", busy).unwrap(), 11, 0);
    assert_eq!(prune(&mut journal, 3), [0, 0, 11]);
    assert_eq!(told(&mut journal), Vec::<String>::new());
}

/// Sequence numbers have gaps after a repository was removed. The limit applies to the number of messages.
#[test]
fn few_messages_with_a_gap_are_not_too_many() {
    let test = TestHome::new();
    let mut journal = test.open();
    let (kept, removed) = (scope("aaaaaaaa"), scope("bbbbbbbb"));
    send(&mut journal, &kept, 0..1);
    send(&mut journal, &removed, 1..20);
    journal.remove_scope(&removed).unwrap();
    send(&mut journal, &kept, 20..21);
    assert_eq!(journal.forget_over_limit(limits(3), &at(1)).unwrap(), 0);
    assert_eq!(bodies(&mut journal), ["0", "20"]);
}

#[test]
fn numbers_are_never_given_twice() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..3);
    read_to(&mut journal, &lead(), 3, 0);
    assert_eq!(prune(&mut journal, 3), [0, 0, 3]);
    journal.append(&draft("after"), &at(0)).unwrap();
    let unread = journal.unread(&lead(), None, 0, 10).unwrap();
    assert_eq!(unread.iter().map(|message| message.seq).collect::<Vec<_>>(), [4]);
}

#[test]
fn what_belongs_to_a_forgotten_message_goes_with_it() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut for_agent = draft("for an agent");
    for_agent.recipient = Recipient::Agent(Agent::new("worker").unwrap());
    journal.append(&for_agent, &at(0)).unwrap();
    let open = journal.ask(&draft("open?"), "open?", &[], &at(0), None).unwrap().id;
    let closed = journal.ask(&draft("closed?"), "closed?", &[], &at(0), None).unwrap().id;
    journal.answer(&closed, Some("yes"), &Sender::system(), &at(0)).unwrap();
    prune(&mut journal, 3);
    let receipts = test.connection().query_row("SELECT count(*) FROM receipt", [], |row| row.get(0));
    assert_eq!(receipts, Ok(0));
    assert!(journal.question(&open).unwrap().is_some(), "an open question waits for ever");
    assert!(journal.question(&closed).unwrap().is_none());
    assert_eq!(bodies(&mut journal), ["open?"]);
}
