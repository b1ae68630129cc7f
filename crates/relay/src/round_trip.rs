//! Whether messages go through a link: one is sent, and waited for until the other machine has confirmed it.

use std::thread;
use std::time::{Duration, Instant};

use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, Scope, Sender};
use ringer_journal::{Home, IdSource, Journal};

use crate::error::Error;

/// How often it is looked whether the message was confirmed.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Sends a message to the machine of that name through the link that the hub keeps connected. Gives how long it took until the
/// machine had stored it and this one knew. It is a mark on a message that does not exist, so it changes nothing there.
pub fn round_trip(home: &Home, name: &str, within: Duration) -> Result<Duration, Error> {
    let mut journal = Journal::open(home)?;
    let Some(machine) = journal.machine_id_of(name)? else {
        return Err(Error::Program(format!("{name} was never connected")));
    };
    let target = MarkTarget::Message(IdSource::now().message_id());
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
    draft.key = Some(target.to_string());
    let begun = Instant::now();
    let id = journal.append(&draft, &IdSource::now())?;
    let seq = journal.message(id.as_str())?.map_or(0, |message| message.seq);
    while journal.export_position(&machine, IdSource::now().unix_ms)?.seq < seq {
        if begun.elapsed() >= within {
            return Err(Error::Silent(within.as_secs()));
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(begun.elapsed())
}
