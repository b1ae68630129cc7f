//! Commands that wait until spooled events are applied, or apply them themselves.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::journal::hub_reader::HubLock;
use crate::wake::doorbell;

static STARTS: AtomicUsize = AtomicUsize::new(0);

/// A hub starter that starts nothing.
fn count_start(_: &Home) {
    STARTS.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_command_applies_what_is_spooled_only_where_no_hub_may_be_started() {
    let fixture = SpoolFixture::new();
    let spool_one = || put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    let limit = Duration::from_millis(10);
    // If a hub may be started, the command starts it and waits.
    let mut command = Journal::open(&fixture.home().with_hub_starter(Some(count_start))).unwrap();
    command.settle_spool().unwrap();
    assert_eq!(STARTS.load(Ordering::Relaxed), 0, "nothing waits");
    spool_one();
    command.settle_spool_within(limit).unwrap();
    command.apply_spool_without_hub().unwrap();
    assert_eq!((STARTS.load(Ordering::Relaxed), fixture.spool().count().0), (1, 1));
    // Otherwise it applies the events, but not while another process holds the hub's lock.
    let mut command = fixture.journal();
    let lock = SpoolLock::take(&fixture.home()).unwrap().unwrap();
    command.settle_spool_within(limit).unwrap();
    assert_eq!(fixture.spool().count().0, 1);
    drop(lock);
    command.settle_spool().unwrap();
    assert_eq!((fixture.spool().count().0, fixture.tags().len()), (0, 1));
    // No lock file is left behind.
    assert_eq!(fs::read_dir(fixture.home().path().join("bells")).unwrap().count(), 0);
}

#[test]
fn a_command_waits_until_a_hub_has_applied_everything() {
    let fixture = SpoolFixture::new();
    let (mut hub_journal, mut command) = (fixture.journal(), fixture.journal());
    for number in 0..300 {
        let mut event = fixture.event(AgentState::Done);
        event.agent = agent_info(&format!("claude-{number}"));
        event.stamp = IdSource::now();
        put(&fixture.spool(), &event).unwrap();
    }
    let home = fixture.home();
    let hub = HubLock::acquire(&home).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !hub.drain(&home).unwrap() {
                std::thread::yield_now();
            }
            let lock = hub.spool_lock();
            while hub_journal.apply_spool(&lock, &crate::ids::monotonic, LockTimeout::COMMAND).unwrap().more {
            }
        });
        command.settle_spool_within(Duration::from_mins(1)).unwrap();
        assert!(!command.has_spooled_events().unwrap());
    });
    assert_eq!(fixture.tags().len(), 300);
}

/// A command that holds the hub's lock must not keep a hub from starting.
#[test]
fn a_hub_starts_although_commands_apply_what_is_spooled() {
    let fixture = SpoolFixture::new();
    fixture.journal();
    let home = fixture.home();
    let lock = SpoolLock::take(&home).unwrap().unwrap();
    assert_eq!(HubLock::owner(&home), None, "it is no hub");
    assert!(!doorbell::wake_hub(&home), "and nothing wakes it");
    std::thread::scope(|scope| {
        let hub = scope.spawn(|| HubLock::acquire(&home).unwrap());
        // Longer than a hub waits for another hub.
        std::thread::sleep(Duration::from_millis(400)); // tidy: sleep is the thing under test
        assert!(!hub.is_finished());
        drop(lock);
        let hub = hub.join().unwrap().expect("it is the hub now");
        assert!(SpoolLock::take(&home).unwrap().is_none());
        let spool_lock = hub.spool_lock();
        drop(hub);
        assert!(SpoolLock::take(&home).unwrap().is_none(), "held until the last of both is dropped");
        drop(spool_lock);
        assert!(SpoolLock::take(&home).unwrap().is_some());
    });
}

#[test]
fn commands_that_settle_at_once_apply_each_event_once() {
    let fixture = SpoolFixture::new();
    fixture.journal();
    for round in 0..5 {
        for number in 0..40 {
            let mut event = fixture.event(AgentState::Done);
            event.agent = agent_info(&format!("claude-{round}-{number}"));
            event.stamp = IdSource::now();
            put(&fixture.spool(), &event).unwrap();
        }
        let home = fixture.home();
        std::thread::scope(|scope| {
            let settle = || {
                let mut journal = Journal::open(&home).unwrap();
                journal.settle_spool_within(Duration::from_mins(1)).unwrap();
                assert!(!journal.has_spooled_events().unwrap());
            };
            let _ = [scope.spawn(settle), scope.spawn(settle), scope.spawn(settle)];
        });
        assert_eq!(fixture.tags().len(), 40 * (round + 1));
    }
    assert_eq!((fixture.tags().len(), fixture.spool().count()), (200, (0, 0)));
}
