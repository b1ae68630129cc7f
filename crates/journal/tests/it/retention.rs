//! What is kept, and for how long.

use std::time::Duration;

use ringer_core::{Agent, Recipient, Scope, Sender};
use ringer_journal::{Consumer, Journal, Limits, Pruned};

use crate::home::{TestHome, at, bodies, draft, draft_in, lead, read_to, scope};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Ten days; so many messages.
fn limits(messages: u32) -> Limits {
    let days = Duration::from_hours(10 * 24);
    Limits { age: days, messages, idle_cursor: days }
}

/// Sends texts that are numbers.
fn send(journal: &mut Journal, scope: &Scope, numbers: std::ops::Range<u32>, unix_ms: i64) {
    for number in numbers {
        journal.append(&draft_in(scope.clone(), &number.to_string()), &at(unix_ms)).expect("appended");
    }
}

/// What the person was told about forgotten messages.
fn told(journal: &Journal) -> Vec<String> {
    let messages = journal.messages_after(0, usize::MAX).expect("readable");
    let for_person = messages.into_iter().filter(|message| message.draft.recipient == Recipient::Person);
    for_person.map(|message| message.draft.body).collect()
}

#[test]
fn old_messages_that_everybody_has_read_go() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.append(&draft("old"), &at(0)).unwrap();
    journal.append(&draft("new"), &at(20 * DAY)).unwrap();
    read_to(&mut journal, &lead(), 2, 20 * DAY);
    let pruned = journal.prune(limits(100), &at(20 * DAY)).unwrap();
    assert_eq!(pruned, Pruned { messages: 1, unread: 0 });
    assert_eq!(bodies(&journal), ["new"]);
    assert!(told(&journal).is_empty());
}

#[test]
fn what_a_cursor_in_use_has_not_read_stays() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..4, 0);
    read_to(&mut journal, &lead(), 4, 20 * DAY);
    let slow = Consumer::new("slow", Scope::global()).unwrap();
    read_to(&mut journal, &slow, 2, 20 * DAY);
    assert_eq!(journal.prune(limits(2), &at(20 * DAY)).unwrap(), Pruned { messages: 2, unread: 0 });
    assert_eq!(bodies(&journal), ["2", "3"]);
}

#[test]
fn a_cursor_that_nobody_uses_holds_nothing_back() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..4, 0);
    read_to(&mut journal, &lead(), 4, 20 * DAY);
    read_to(&mut journal, &Consumer::new("gone", Scope::global()).unwrap(), 1, 5 * DAY);
    assert_eq!(journal.prune(limits(100), &at(20 * DAY)).unwrap(), Pruned { messages: 4, unread: 0 });
    assert!(told(&journal).is_empty());
}

#[test]
fn more_than_the_limit_goes_once_it_was_read() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..5, 0);
    read_to(&mut journal, &lead(), 5, 0);
    assert_eq!(journal.prune(limits(3), &at(1)).unwrap(), Pruned { messages: 2, unread: 0 });
    assert_eq!(bodies(&journal), ["2", "3", "4"]);
}

#[test]
fn at_twice_the_limit_unread_ones_go_and_the_person_is_told_once() {
    let test = TestHome::new();
    let mut journal = test.open();
    read_to(&mut journal, &lead(), 0, 0);
    send(&mut journal, &Scope::global(), 0..4, 0);
    assert_eq!(journal.prune(limits(2), &at(1)).unwrap(), Pruned::default(), "twice as many may wait");
    send(&mut journal, &Scope::global(), 4..7, 0);
    assert_eq!(journal.prune(limits(2), &at(2)).unwrap(), Pruned { messages: 3, unread: 3 });
    let first = told(&journal);
    assert!(first.len() == 1 && first[0].contains("3 messages that nobody had read"), "{first:?}");
    send(&mut journal, &Scope::global(), 7..30, 0);
    assert!(journal.prune(limits(20), &at(3)).unwrap().unread == 0);
    assert!(journal.prune(limits(2), &at(4)).unwrap().unread > 0);
    assert!(told(&journal).len() <= 1, "not again");
}

/// Its cursor stands at its own last message. What other repositories sent since is not unread for it.
#[test]
fn a_quiet_repository_holds_nothing_of_another_back() {
    let test = TestHome::new();
    let mut journal = test.open();
    let (quiet, busy) = (scope("aaaaaaaa"), scope("bbbbbbbb"));
    send(&mut journal, &quiet, 0..1, 0);
    read_to(&mut journal, &Consumer::new("lead", quiet).unwrap(), 1, 0);
    send(&mut journal, &busy, 1..11, 0);
    read_to(&mut journal, &Consumer::new("lead", busy).unwrap(), 11, 0);
    let pruned = journal.prune(limits(2), &at(1)).unwrap();
    assert_eq!(told(&journal), Vec::<String>::new(), "everybody had read everything");
    assert_eq!(pruned, Pruned { messages: 9, unread: 0 });
}

/// Numbers have gaps where a repository was taken out; what counts is how many messages there are.
#[test]
fn few_messages_with_a_gap_are_not_too_many() {
    let test = TestHome::new();
    let mut journal = test.open();
    let (kept, removed) = (scope("aaaaaaaa"), scope("bbbbbbbb"));
    read_to(&mut journal, &Consumer::new("lead", kept.clone()).unwrap(), 0, 0);
    send(&mut journal, &kept, 0..1, 0);
    send(&mut journal, &removed, 1..20, 0);
    journal.remove_scope(&removed).unwrap();
    send(&mut journal, &kept, 20..21, 0);
    assert_eq!(journal.prune(limits(3), &at(1)).unwrap(), Pruned::default());
    assert_eq!(bodies(&journal), ["0", "20"]);
}

#[test]
fn numbers_are_never_given_twice() {
    let test = TestHome::new();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), 0..3, 0);
    read_to(&mut journal, &lead(), 3, 20 * DAY);
    journal.prune(limits(100), &at(20 * DAY)).unwrap();
    assert!(bodies(&journal).is_empty());
    journal.append(&draft("after"), &at(20 * DAY)).unwrap();
    let unread = journal.unread(&lead(), None, 20 * DAY, 10).unwrap();
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
    journal.prune(limits(100), &at(20 * DAY)).unwrap();
    let receipts = test.connection().query_row("SELECT count(*) FROM receipt", [], |row| row.get(0));
    assert_eq!(receipts, Ok(0));
    assert!(journal.question(&open).unwrap().is_some(), "an open question waits for ever");
    assert!(journal.question(&closed).unwrap().is_none());
}
