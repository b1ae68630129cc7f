//! Arbitrary files of the spool: an event is read as it was written. Applied, it leaves only messages that can be sent, it
//! leaves the spool, and it keeps no later event of its agent from being applied.

use std::cell::RefCell;
use std::time::Duration;

use ringer_core::Draft;
use ringer_core::agent::{AgentState, Authority, Signal};
use ringer_core::message::{Agent, MAX_BODY};
use ringer_journal::{
    AgentEvent, Home, IdSource, Journal, LockTimeout, SpoolFile, SpoolLock, SpoolProgress, SpoolStatus,
    monotonic,
};
use serde_json::json;
use tempfile::TempDir;

use crate::input::home;

/// Files that one journal gets. What it keeps of them must not make it slow.
const FILES: u32 = 500;

thread_local! {
    static JOURNAL: RefCell<Option<Spooling>> = const { RefCell::new(None) };
}

struct Spooling {
    home: Home,
    journal: Journal,
    files: u32,
    _directory: TempDir,
}

pub fn run(data: &[u8]) {
    // The first bytes say when it happened.
    let Some((mono, bytes)) = data.split_first_chunk() else { return };
    let mono = Duration::from_nanos(u64::from_le_bytes(*mono));
    let file = SpoolFile::read(bytes);
    if let SpoolFile::Event(event) = &file {
        let written = json!({ "version": 1, "event": event }).to_string();
        assert_eq!(SpoolFile::read(written.as_bytes()), file, "{written}");
    }
    JOURNAL.with_borrow_mut(|journal| {
        // After a panic there is none, so that an input can be tried again.
        let mut spooling = journal.take().filter(|own| own.files < FILES).unwrap_or_else(Spooling::open);
        spooling.files += 1;
        match file {
            SpoolFile::Event(event) => spooling.apply(&event, mono, bytes),
            SpoolFile::Unreadable => spooling.set_aside(mono, bytes),
            // It would stay for that version, and be looked at each time.
            SpoolFile::Newer => {}
        }
        *journal = Some(spooling);
    });
}

impl Spooling {
    fn open() -> Self {
        let directory = home();
        let home = Home::new(directory.path().join("home"));
        let journal = Journal::open(&home).expect("a new home has room");
        Self { home, journal, files: 0, _directory: directory }
    }

    fn take_in(&mut self) -> SpoolProgress {
        let lock = SpoolLock::take(&self.home).expect("the home can be written").expect("no hub runs");
        let applied = self.journal.apply_spool(&lock, &monotonic, LockTimeout::COMMAND);
        applied.expect("the journal can be written")
    }

    fn set_aside(&mut self, mono: Duration, bytes: &[u8]) {
        let agent = Agent::new("claude-1").expect("a name");
        if SpoolFile::put(&self.home, &agent, mono, bytes).is_ok() {
            assert_eq!(self.take_in(), SpoolProgress { unreadable: 1, ..SpoolProgress::default() });
        }
    }

    fn apply(&mut self, event: &AgentEvent, mono: Duration, bytes: &[u8]) {
        let agent = &event.agent.id;
        if SpoolFile::put(&self.home, agent, mono, bytes).is_err() {
            return;
        }
        let last = self.journal.last_seq().expect("the journal can be read");
        let taken = self.take_in();
        assert_eq!((taken.events + taken.unreadable, taken.more), (1, false));
        assert_eq!(SpoolStatus::of(&self.home, 0).waiting, 0);
        for message in self.journal.messages_after(last, usize::MAX).expect("the journal can be read") {
            // Only we may name an episode.
            let draft = Draft { key: None, ..message.draft };
            assert_eq!(draft.check(), Ok(()), "{draft:?}");
            assert!(draft.body.len() <= MAX_BODY, "{} bytes", draft.body.len());
        }
        assert_eq!(self.take_in(), SpoolProgress::default());
        let later = AgentEvent {
            signals: vec![Signal::state(Authority::Hook, AgentState::Ready)],
            stamp: IdSource::now(),
            mono: monotonic(),
            ..event.clone()
        };
        let recorded = self.journal.record_event(&later, Default::default());
        let outcome = recorded.expect("the next event is recorded");
        assert!(!outcome.spooled);
        let state = self.journal.agent_state(agent).expect("the journal can be read");
        assert_eq!(state, Some(AgentState::Ready));
    }
}
