//! What the hub alone does with the journal: its doorbell, and its place in it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use ringer_core::Message;
use rusqlite::{Connection, OptionalExtension, params};

use crate::consumer::advance;
use crate::cursor::{Age, CatchUp, Cursor, POSITION, Taken};
use crate::doorbell::{self, Doorbell, Holder};
use crate::error::Error;
use crate::home::Home;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::process::started;
use crate::row::optional_text;
use crate::turn::Patience;

/// The name of the hub's cursor.
const CONSUMER: &str = "hub";
/// The scope of that cursor: all of them. No repository has this id.
const EVERYWHERE: &str = "*";

/// How long to try for the hub's lock: somebody may hold it for a moment, to see whether the hub is alive.
const ASIDE: Duration = Duration::from_millis(200);

/// The hub's doorbell. Whoever has it is the hub: there is one, and it dies with its process.
#[derive(Debug)]
pub struct HubBell(Doorbell);

impl HubBell {
    /// Hangs it. `None` if there is a hub already.
    pub fn hang(home: &Home) -> Result<Option<Self>, Error> {
        let pid = std::process::id();
        let holder = Holder {
            pid,
            started: started(pid),
            consumer: CONSUMER.to_owned(),
            scope: EVERYWHERE.to_owned(),
        };
        home.make_directories().map_err(|error| home.error("making the home", error))?;
        match Doorbell::hang(home, doorbell::HUB, &holder, Some(Instant::now() + ASIDE)) {
            Ok(bell) => Ok(Some(Self(bell))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(home.error("hanging the hub's doorbell", error)),
        }
    }

    /// Forgets the rings so far, and gives whether there were any. To be done before looking in the journal.
    pub fn empty(&self, home: &Home) -> Result<bool, Error> {
        self.0.empty().map_err(|error| home.error("emptying the hub's doorbell", error))
    }

    /// The hub that is alive, if one is.
    pub fn holder(home: &Home) -> Option<Holder> {
        let path = doorbell::named(home, doorbell::HUB);
        doorbell::is_alive(&path).then(|| doorbell::holder(&path)).flatten()
    }
}

impl AsFd for HubBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for HubBell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Journal {
    /// How far the hub has come in this journal. What counts is its memory. If that is lost, it reads the journal again: what
    /// it had taken when it last said so is not new, and what its memory still has it knows by the ids.
    pub fn taken_by_hub(&mut self, memory: Option<&mut Memory>) -> Result<Taken, Error> {
        if let Some(taken) = memory.map(Memory::taken).transpose()?.flatten() {
            return self.go_on(&taken);
        }
        let (newest, until) = (self.read(said_by_hub)?, self.highest()?);
        let beginning = Cursor { generation: Some(self.generation()?), seq: 0, id: None };
        Ok(Taken { cursor: beginning, catch_up: newest.map(|newest| CatchUp { newest, until }) })
    }

    /// The hub has come this far. Said now and then, so that nothing is forgotten that it has not taken.
    pub fn advance_hub(&mut self, cursor: &Cursor, unix_ms: i64) -> Result<(), Error> {
        self.within(Patience::LOOP, |journal| {
            journal.write(|transaction| {
                let place = "VALUES (?1, ?2, ?3, ?4, ?5, 0)";
                advance(transaction, place, params![CONSUMER, EVERYWHERE, cursor.seq, cursor.id, unix_ms])
            })
        })
    }

    /// The messages that no hub has taken, in order; of the last thousand.
    pub fn not_taken(&mut self, mut memory: Option<&mut Memory>) -> Result<Vec<Message>, Error> {
        let taken = self.taken_by_hub(memory.as_deref_mut())?;
        let from = taken.cursor.seq.max(self.last_seq()?.saturating_sub(1000));
        let mut messages = Vec::new();
        for message in self.messages_after(from, usize::MAX)? {
            let is_known = match (taken.age(&message), &mut memory) {
                (Age::New, _) | (Age::Perhaps, None) => false,
                (Age::Old, _) => true,
                (Age::Perhaps, Some(memory)) => memory.knows(&message.id)?,
            };
            if !is_known {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    /// Copies the log into the database as far as nobody reads it, so that the next writer begins it anew: it then writes
    /// where the file has room already, which is quicker than to make it longer. Nobody waits for this.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.read(|connection| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
    }
}

/// The message at which the hub was when it last said so in the journal.
fn said_by_hub(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let said = connection.query_row(
        &format!(
            "SELECT iif({POSITION} = seq, id, (SELECT id FROM message WHERE message.seq = {POSITION}))
             FROM cursor WHERE consumer = ?1 AND scope = ?2"
        ),
        [CONSUMER, EVERYWHERE],
        |row| optional_text(row, 0),
    );
    said.optional().map(Option::flatten)
}
