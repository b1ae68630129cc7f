use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use ringer_core::agent::{AgentState, Authority, BlockedOn, Signal};
use ringer_core::message::{Agent, Tag};
use ringer_core::{Message, Scope};

use super::apply::{SpoolProgress, SpoolStatus};
use super::event::{AgentEvent, Confirmation, EventOutcome, InboxRequest, SpooledEvent, VERSION, put};
use super::spool::Spool;
use crate::db::write_lock::LockTimeout;
use crate::events::spool::SpoolWriter;
use crate::home::Home;
use crate::ids::IdSource;
use crate::journal::agent::AgentInfo;
use crate::journal::hub_reader::{HubLock, SpoolLock};
use crate::journal::schema::Journal;
use crate::wake::doorbell;

const AGENT: &str = "claude-6be1e699";

struct SpoolFixture {
    directory: tempfile::TempDir,
    ticks: Cell<u64>,
    random: Cell<u8>,
}

impl SpoolFixture {
    fn new() -> Self {
        let directory =
            tempfile::tempdir_in(if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" });
        Self { directory: directory.unwrap(), ticks: Cell::new(1000), random: Cell::new(0) }
    }

    fn home(&self) -> Home {
        Home::new(self.directory.path().join("home"))
    }

    fn spool(&self) -> Spool {
        Spool::of(&self.home())
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.home()).unwrap()
    }

    /// A clock that advances at every call.
    fn now(&self) -> Duration {
        self.ticks.set(self.ticks.get() + 1);
        Duration::from_millis(self.ticks.get())
    }

    fn event(&self, state: AgentState) -> AgentEvent {
        let mono = self.now();
        self.random.set(self.random.get().wrapping_add(1));
        let mut random = [self.random.get(); 16];
        random[6..10].fill(0);
        AgentEvent {
            prompt: None,
            taken: None,
            agent: agent_info(AGENT),
            signals: vec![Signal::state(Authority::Hook, state).text("words")],
            notify: true,
            mono,
            stamp: IdSource { unix_ms: i64::try_from(mono.as_millis()).unwrap(), random },
            session_starts: false,
            turn_changes: false,
            nonce: None,
            confirms: Some(Confirmation::default()),
        }
    }

    fn record(&self, journal: &mut Journal, state: AgentState) -> EventOutcome {
        journal.record_event(&self.event(state), InboxRequest::default()).unwrap()
    }

    fn apply(&self, journal: &mut Journal) -> SpoolProgress {
        let lock = SpoolLock::take(&self.home()).unwrap().expect("no hub runs");
        journal.apply_spool(&lock, &|| self.now(), LockTimeout::COMMAND).unwrap()
    }

    fn messages(&self) -> Vec<Message> {
        self.journal().messages_after(0, usize::MAX).unwrap()
    }

    fn tags(&self) -> Vec<String> {
        self.messages().iter().map(|message| message.draft.tag.as_str().to_owned()).collect()
    }

    fn state(&self) -> Option<AgentState> {
        self.journal().agent_state(&Agent::new(AGENT).unwrap()).unwrap()
    }

    /// The spooled events.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.home().path().join("spool")).into_iter().flatten().flatten();
        let events = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "event"));
        events.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Takes the write lock, as another process would.
    fn hold_lock(&self) -> fs::File {
        let lock = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.home().path().join("write.lock"))
            .unwrap();
        lock.lock().unwrap();
        lock
    }
}

fn agent_info(id: &str) -> AgentInfo {
    AgentInfo { by_hooks: true, ..AgentInfo::new(Agent::new(id).unwrap(), "claude", "s", Scope::global()) }
}

#[test]
fn an_event_that_finds_the_lock_taken_is_spooled_and_applied_once() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.record(&mut journal, AgentState::Working);
    let held = fixture.hold_lock();
    assert!(fixture.record(&mut journal, AgentState::Done).spooled);
    assert_eq!((fixture.spool().count().0, fixture.tags().len()), (1, 0));
    let lock = SpoolLock::take(&fixture.home()).unwrap().unwrap();
    assert!(
        journal.apply_spool(&lock, &|| fixture.now(), LockTimeout::NONE).is_err(),
        "the lock is still held"
    );
    drop((held, lock));
    assert_eq!(fixture.apply(&mut journal).events, 1);
    assert_eq!(
        (fixture.state(), fixture.tags().as_slice()),
        (Some(AgentState::Done), &["complete".to_owned()][..])
    );
    assert_eq!((fixture.apply(&mut journal).events, fixture.spool().count()), (0, (0, 0)));
}

/// Most writers hold the lock for less than a millisecond.
#[test]
fn a_lock_that_comes_free_within_50_ms_keeps_an_event_out_of_the_spool() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.record(&mut journal, AgentState::Working);
    let held = fixture.hold_lock();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5)); // tidy: sleep is the thing under test
            drop(held);
        });
        fixture.record(&mut journal, AgentState::Done)
    });
    // On a busy machine the lock may be released too late.
    assert!(outcome.spooled || outcome.change.written);
    assert_eq!(usize::from(outcome.spooled), fixture.spool().count().0);
    fixture.apply(&mut journal);
    assert_eq!(fixture.tags(), ["complete"]);
}

#[test]
fn an_event_whose_session_has_a_spooled_one_is_spooled_behind_it() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.record(&mut journal, AgentState::Working);
    put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    // The state would not change, so without the check of the spool nothing would be written.
    assert!(fixture.record(&mut journal, AgentState::Working).spooled);
    assert_eq!((fixture.spool().count().0, fixture.tags().len()), (2, 0), "no hook applies it");
    assert_eq!(fixture.apply(&mut journal).events, 2);
    assert_eq!(
        (fixture.state(), fixture.tags().as_slice()),
        (Some(AgentState::Working), &["complete".to_owned()][..])
    );
    assert!(fixture.record(&mut journal, AgentState::Done).change.written, "the spool is empty again");
}

#[test]
fn a_file_that_was_not_removed_in_time_counts_once() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.record(&mut journal, AgentState::Working);
    let name = put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    let path = fixture.home().path().join("spool").join(name);
    let bytes = fs::read(&path).unwrap();
    assert_eq!(fixture.apply(&mut journal).events, 1);
    // Killed between the transaction and the removal.
    fs::write(&path, &bytes).unwrap();
    assert!(!journal.has_spooled_events().unwrap(), "no command waits for it");
    assert!(
        fixture.record(&mut journal, AgentState::Working).spooled,
        "a hook cannot know that it was applied"
    );
    assert_eq!((fixture.apply(&mut journal).events, path.exists()), (1, false));
    assert_eq!((fixture.tags().len(), fixture.state()), (1, Some(AgentState::Working)));
}

#[test]
fn an_event_that_was_overtaken_is_told_and_moves_nothing_back() {
    for (late, busy, unread) in [
        (AgentState::Done, true, false),
        (AgentState::Done, false, true),
        (AgentState::Blocked(BlockedOn::Permission), true, true),
    ] {
        let fixture = SpoolFixture::new();
        let mut journal = fixture.journal();
        fixture.record(&mut journal, AgentState::Ready);
        let event = fixture.event(late);
        let newer = if busy { AgentState::Working } else { AgentState::Exited };
        fixture.record(&mut journal, newer);
        // Like a hook whose file becomes visible only now.
        let writer = fixture.spool().begin(&event.agent.id, 1).unwrap();
        let bytes = serde_json::to_vec(&SpooledEvent { version: VERSION, event: event.clone() }).unwrap();
        writer.finish(event.mono, &bytes).unwrap();
        assert_eq!(fixture.apply(&mut journal).events, 1);
        assert_eq!(fixture.state(), Some(newer));
        let marks =
            fixture.messages().iter().filter(|message| matches!(message.draft.tag, Tag::Mark(_))).count();
        assert_eq!(
            (fixture.tags().len() - marks, marks == 0),
            (1, unread),
            "{late:?} before {newer:?}: {:?}",
            fixture.tags()
        );
    }
}

#[test]
fn files_that_make_no_sense_are_set_aside_and_the_person_is_told() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    let agent = Agent::new(AGENT).unwrap();
    for (number, bytes) in
        [&b"{\"version\":1}"[..], b"", b"{\"version\":1,\"event\":{}}", b"\xff\xff"].iter().enumerate()
    {
        let writer = fixture.spool().begin(&agent, u32::try_from(number).unwrap()).unwrap();
        writer.finish(fixture.now(), bytes).unwrap();
    }
    let newer = fixture
        .spool()
        .begin(&agent, 99)
        .unwrap()
        .finish(fixture.now(), b"{\"version\":2,\"event\":7}")
        .unwrap();
    put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    let taken = fixture.apply(&mut journal);
    assert_eq!((taken.events, taken.unreadable, fixture.spool().count()), (1, 4, (1, 4)));
    let newer = fixture.home().path().join("spool").join(newer);
    assert!(newer.exists(), "it is for a newer version");
    assert!(!journal.has_spooled_events().unwrap(), "and no command waits for it");
    assert_eq!(fixture.tags(), ["complete", "error"]);
    assert!(fixture.messages()[1].draft.body.starts_with("Ringer could not read 4 events"));
}

#[test]
fn many_events_are_applied_in_batches() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    for number in 0..300 {
        let mut event = fixture.event(AgentState::Done);
        event.agent = agent_info(&format!("claude-{number}"));
        event.stamp = IdSource::now();
        put(&fixture.spool(), &event).unwrap();
    }
    let first = fixture.apply(&mut journal);
    assert_eq!((first.events, first.more), (256, true));
    assert_eq!((fixture.apply(&mut journal).events, fixture.tags().len()), (44, 300));
}

#[test]
fn what_was_lost_is_told_once() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.spool().count_lost(5, "no space left");
    fixture.apply(&mut journal);
    fixture.apply(&mut journal);
    assert_eq!(fixture.tags(), ["error"]);
    assert!(fixture.messages()[0].draft.body.contains("lost 1 event of agents' hooks: no space left"));
    assert_eq!(SpoolStatus::of(&fixture.home(), 6).lost.unwrap().count, 1);
}

#[test]
fn an_event_that_cannot_be_applied_keeps_no_other_from_being_so() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    let mut nameless =
        serde_json::to_value(SpooledEvent { version: VERSION, event: fixture.event(AgentState::Done) })
            .unwrap();
    nameless["event"]["of"]["agent"] = "".into();
    let writer = fixture.spool().begin(&Agent::new(AGENT).unwrap(), 1).unwrap();
    writer.finish(fixture.now(), nameless.to_string().as_bytes()).unwrap();
    // An impossible time.
    let event = SpooledEvent { version: VERSION, event: fixture.event(AgentState::Done) };
    let writer = fixture.spool().begin(&Agent::new(AGENT).unwrap(), 2).unwrap();
    writer.finish(Duration::from_nanos(u64::MAX), &serde_json::to_vec(&event).unwrap()).unwrap();
    let taken = fixture.apply(&mut journal);
    assert_eq!((taken.events, taken.unreadable), (1, 1));
    assert_eq!(fixture.state(), Some(AgentState::Done));
    // The next event does not count as older.
    fixture.record(&mut journal, AgentState::Working);
    assert_eq!(fixture.state(), Some(AgentState::Working));
}

#[test]
fn what_cannot_be_removed_is_applied_once_and_keeps_no_process_busy() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    let newer = fixture.spool().begin(&Agent::new(AGENT).unwrap(), 99).unwrap();
    newer.finish(fixture.now(), b"{\"version\":2}").unwrap();
    assert_eq!(fixture.apply(&mut journal).events, 1);
    let before = journal.read(|connection| Ok(connection.total_changes())).unwrap();
    for _ in 0..3 {
        assert_eq!(fixture.apply(&mut journal), SpoolProgress::default());
    }
    assert_eq!(
        journal.read(|connection| Ok(connection.total_changes())).unwrap(),
        before,
        "nothing is written for what is left for a newer version"
    );
}

#[test]
fn an_event_from_before_the_machine_was_started_does_not_hold_the_session_back() {
    let fixture = SpoolFixture::new();
    let mut journal = fixture.journal();
    fixture.record(&mut journal, AgentState::Working);
    let name = put(&fixture.spool(), &fixture.event(AgentState::Done)).unwrap();
    let folder = fixture.home().path().join("spool");
    let earlier = format!("0badb007-{}", name.split_once('-').unwrap().1);
    fs::rename(folder.join(name), folder.join(earlier)).unwrap();
    // The session continues after the boot.
    assert!(fixture.record(&mut journal, AgentState::Working).spooled);
    assert_eq!(fixture.apply(&mut journal).events, 2);
    assert_eq!((fixture.state(), fixture.tags().len()), (Some(AgentState::Working), 1));
}

#[derive(Debug, Clone)]
enum Step {
    /// Recorded as a hook does: written, or spooled after earlier events.
    Recorded(AgentState),
    Spooled(AgentState),
    /// Started now, finished after this many more steps.
    Slow(AgentState, usize),
    Apply,
    /// The hub is killed after the transaction but before it removes the files.
    ApplyKilled,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let state = || {
        prop_oneof![
            Just(AgentState::Working),
            Just(AgentState::Done),
            Just(AgentState::Ready),
            Just(AgentState::Blocked(BlockedOn::Permission)),
            Just(AgentState::Blocked(BlockedOn::Question)),
        ]
    };
    let step = prop_oneof![
        3 => state().prop_map(Step::Recorded),
        2 => state().prop_map(Step::Spooled),
        2 => (state(), 1..6usize).prop_map(|(state, later)| Step::Slow(state, later)),
        1 => Just(Step::Apply),
        1 => Just(Step::ApplyKilled),
    ];
    proptest::collection::vec(step, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Events may be written at once, spooled, or spooled so slowly that they become visible late. The agent ends in the state
    /// of the last event, every event is applied once, and nothing is left.
    #[test]
    fn the_last_event_decides(steps in steps()) {
        let fixture = SpoolFixture::new();
        let mut journal = fixture.journal();
        let mut last = None;
        let mut slow: Vec<(usize, SpoolWriter, AgentEvent)> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Recorded(state) => {
                    fixture.record(&mut journal, *state);
                    last = Some(*state);
                }
                Step::Spooled(state) => {
                    put(&fixture.spool(), &fixture.event(*state)).unwrap();
                    last = Some(*state);
                }
                Step::Slow(state, later) => {
                    let writer = fixture.spool().begin(&Agent::new(AGENT).unwrap(), u32::try_from(number).unwrap()).unwrap();
                    slow.push((number + later, writer, fixture.event(*state)));
                    last = Some(*state);
                }
                Step::Apply => {
                    fixture.apply(&mut journal);
                }
                Step::ApplyKilled => {
                    let files = fixture.files();
                    fixture.apply(&mut journal);
                    for (path, bytes) in files {
                        fs::write(path, bytes).unwrap();
                    }
                }
            }
            for (_, writer, event) in slow.extract_if(.., |(due, ..)| *due <= number) {
                finish(writer, &event);
            }
        }
        for (_, writer, event) in slow {
            finish(writer, &event);
        }
        fixture.apply(&mut journal);
        prop_assert_eq!(fixture.apply(&mut journal), SpoolProgress::default());
        prop_assert_eq!(fixture.state(), last);
        prop_assert_eq!(fixture.spool().count(), (0, 0));
    }
}

fn finish(writer: SpoolWriter, event: &AgentEvent) {
    let bytes = serde_json::to_vec(&SpooledEvent { version: VERSION, event: event.clone() }).unwrap();
    writer.finish(event.mono, &bytes).unwrap();
}

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
