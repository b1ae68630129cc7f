//! What the hub wrote down, when the journal forgets, is repaired, or loses a repository.

use std::fs;
use std::time::Duration;

use ringer_core::{Agent, MessageId, Recipient, Scope, Step};
use ringer_journal::{Consumer, Journal, Limits, Pruned, Settlement};

use super::{dead, outgoing, popup, record, settle};
use crate::agent::{Scene, sighting};
use crate::home::{TestHome, at, bodies, draft_in, scope};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn send(journal: &mut Journal, scope: &Scope, body: &str, unix_ms: i64) -> MessageId {
    journal.append(&draft_in(scope.clone(), body), &at(unix_ms)).expect("appended")
}

/// Forgets what is older than ten days.
fn prune(journal: &mut Journal, now_ms: i64) -> Pruned {
    let days = Duration::from_hours(10 * 24);
    let limits = Limits { age: days, messages: 100, idle_cursor: days };
    journal.prune(limits, &at(now_ms)).expect("pruned")
}

#[test]
fn what_the_hub_has_not_taken_stays_in_every_scope() {
    let test = TestHome::new();
    let mut journal = test.open();
    for (name, body) in [("aaaaaaaa", "one"), ("bbbbbbbb", "two"), ("aaaaaaaa", "three")] {
        send(&mut journal, &scope(name), body, 0);
    }
    for name in ["aaaaaaaa", "bbbbbbbb"] {
        journal.advance(&Consumer::new("lead", scope(name)).unwrap(), 3, 20 * DAY).unwrap();
    }
    let cursor = |seq| Settlement { cursor: Some(seq), ..Settlement::default() };
    journal.settle(&cursor(1), 20 * DAY).unwrap();
    assert_eq!(prune(&mut journal, 20 * DAY), Pruned { messages: 1, unread: 0 });
    assert_eq!(bodies(&journal), ["two", "three"]);
    assert_eq!(
        prune(&mut journal, 31 * DAY),
        Pruned { messages: 2, unread: 0 },
        "a hub that is no longer used"
    );
}

#[test]
fn what_is_read_goes_with_its_message_and_what_is_unread_stays() {
    let test = TestHome::new();
    let mut journal = test.open();
    let [read, unread, silent] =
        ["read", "unread", "silent"].map(|body| send(&mut journal, &Scope::global(), body, 0));
    let [kept, kept_silent] =
        ["kept", "kept, silent"].map(|body| send(&mut journal, &Scope::global(), body, 20 * DAY));
    let step = |id: &MessageId| (id.clone(), Step { unix_ms: 0, text: "a step".to_owned() });
    let settlement = Settlement {
        records: vec![record(&read, true, 0..2), record(&unread, false, 0..2), record(&kept, true, 0..2)],
        steps: vec![step(&silent), step(&kept_silent)],
        ..Settlement::default()
    };
    settle(&mut journal, &settlement);
    assert_eq!(prune(&mut journal, 20 * DAY).messages, 3);
    let check = |id: &MessageId, is_there: bool, steps: usize| {
        assert_eq!(journal.notification(id.as_str()).unwrap().is_some(), is_there);
        assert_eq!(journal.trail(id.as_str()).unwrap().steps().len(), steps);
    };
    check(&read, false, 0);
    check(&unread, true, 2);
    check(&silent, false, 0);
    check(&kept, true, 2);
    check(&kept_silent, false, 1);
}

/// Something in every table, of one scope. Gives the notification.
fn fill(test: &TestHome, scope: &Scope, agent: &str) -> MessageId {
    let mut journal = test.open();
    let id = send(&mut journal, scope, "a message", 0);
    let mut to_agent = draft_in(scope.clone(), "for an agent");
    to_agent.recipient = Recipient::Agent(Agent::new("worker").expect("a name"));
    journal.append(&to_agent, &at(0)).expect("appended");
    journal.ask(&draft_in(scope.clone(), "why?"), "why?", &[], &at(0), None).expect("asked");
    journal.advance(&Consumer::new("lead", scope.clone()).expect("a name"), 1, 0).expect("advanced");
    journal.want_lead(scope, true).expect("wanted");
    let mut of = sighting(agent);
    of.scope = scope.clone();
    Scene::at(&mut journal, 0).working(&of);
    let settlement = Settlement {
        undecided: vec![id.clone()],
        records: vec![record(&id, false, 0..2)],
        outgoing: vec![outgoing(&id, "desktop", "{}")],
        shown: vec![popup(scope.as_str(), &id, 1)],
        dead: vec![dead(&id, 1)],
        ..Settlement::default()
    };
    settle(&mut journal, &settlement);
    id
}

fn count(test: &TestHome, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {table}");
    test.connection().query_row(&query, [], |row| row.get(0)).expect("a table")
}

const TABLES: [&str; 12] = [
    "message",
    "receipt",
    "cursor",
    "question",
    "agent",
    "lead",
    "undecided",
    "notification",
    "trail",
    "outbox",
    "popup",
    "dead_letter",
];

#[test]
fn a_repair_carries_everything_over_that_the_hub_and_the_agents_remember() {
    let test = TestHome::new();
    fill(&test, &scope("aaaaaaaa"), "claude-1");
    test.flatten();
    let before = TABLES.map(|table| (table, count(&test, table)));
    assert!(before.iter().all(|(_, rows)| *rows > 0), "{before:?}");
    let root: u32 = test
        .connection()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'waiter'", [], |row| row.get(0))
        .unwrap();
    test.flatten();
    let root = usize::try_from(root).unwrap();
    // The table of those who wait is the one that is not carried over.
    let mut bytes = fs::read(test.home.database()).unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0xff);
    fs::write(test.home.database(), bytes).unwrap();
    let mut journal = test.open();
    send(&mut journal, &Scope::global(), "after", 1);
    assert!(journal.repair().is_some(), "it was noticed");
    let after = TABLES.map(|table| (table, count(&test, table) - i64::from(table == "message")));
    assert_eq!(after, before);
}

#[test]
fn a_scope_is_taken_out_with_everything_that_belongs_to_it_and_nothing_else() {
    let test = TestHome::new();
    fill(&test, &scope("bbbbbbbb"), "claude-2");
    let kept = TABLES.map(|table| (table, count(&test, table)));
    fill(&test, &scope("aaaaaaaa"), "claude-1");
    assert_eq!(test.open().remove_scope(&scope("aaaaaaaa")).unwrap(), 3);
    let left = TABLES.map(|table| (table, count(&test, table)));
    // Numbers are never given again, and dead letters name no scope: those two are left to time.
    let compared = |rows: [(&'static str, i64); 12]| {
        rows.into_iter()
            .filter(|(table, _)| !["undecided", "dead_letter"].contains(table))
            .collect::<Vec<_>>()
    };
    assert_eq!(compared(left), compared(kept));
    let journal = test.open();
    assert_eq!(journal.undecided().unwrap().len(), 1);
    assert!(
        journal.messages_after(0, 10).unwrap().iter().all(|message| message.draft.scope == scope("bbbbbbbb"))
    );
    assert_eq!(journal.live_agents().unwrap()[0].0.agent.as_str(), "claude-2");
    assert!(
        journal.lead(&scope("bbbbbbbb")).unwrap().wanted && !journal.lead(&scope("aaaaaaaa")).unwrap().wanted
    );
}
