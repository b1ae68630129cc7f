//! A mark on everything, or on all of a machine. The other machine may have newer messages that did not come here yet, which
//! the person did not see: so it gets a mark on each message that had come.

use ringer_core::Message;
use ringer_core::attention::MarkTarget;
use ringer_core::message::{MACHINE_PREFIX, Mark, Tag};
use ringer_journal::{Error, Journal};

use crate::machine::MachineName;
use crate::wire_message::WireMessage;

/// The newest messages of a machine that such a mark is sent for. Older ones have mostly been read before.
const MOST: usize = 500;
/// The characters of an id that say when it was made; the others are random.
const TIME_OF_ID: usize = 18;

/// Such a mark, for one machine.
pub(crate) struct BulkMark<'a> {
    mark: &'a Message,
    /// Only what came from this surface.
    surface: Option<String>,
}

impl<'a> BulkMark<'a> {
    /// The mark, if a message is one that is also about messages of that machine.
    pub(crate) fn of(message: &'a Message, machine: &MachineName) -> Option<Self> {
        let (Tag::Mark(Mark::Read | Mark::Clear), None) = (message.draft.tag, &message.machine) else {
            return None;
        };
        let surface = match MarkTarget::parse(message.draft.key.as_deref()?)? {
            MarkTarget::All => None,
            MarkTarget::Place(place) => {
                let own = place.workspace.as_str().strip_prefix(MACHINE_PREFIX);
                own.filter(|own| *own == machine.as_str())?;
                place.surface.map(|surface| surface.as_str().to_owned())
            }
            MarkTarget::Message(_) | MarkTarget::AllRead | MarkTarget::Key(_) => return None,
        };
        Some(Self { mark: message, surface })
    }

    /// A mark on each message of the machine that had come before it.
    pub(crate) fn on_each(
        &self,
        journal: &mut Journal,
        machine: &MachineName,
    ) -> Result<Vec<WireMessage>, Error> {
        let came = journal.notices_of_machine(machine.as_str(), self.mark.seq, MOST)?;
        let is_meant =
            |message: &&Message| self.surface.is_none() || message.draft.origin.surface == self.surface;
        let marked = came.iter().filter(is_meant).filter_map(|target| self.on(target, machine));
        Ok(marked.collect())
    }

    fn on(&self, target: &Message, machine: &MachineName) -> Option<WireMessage> {
        let mut mark = self.mark.clone();
        mark.draft.key = Some(target.id.to_string());
        let wire = WireMessage::of(&mark, machine)?;
        // The same mark on the same message has the same id, so that it is stored once however often it is sent.
        let time = self.mark.id.as_str().get(..TIME_OF_ID)?;
        let random = target.id.as_str().get(TIME_OF_ID..)?;
        Some(WireMessage { id: format!("{time}{random}"), ..wire })
    }
}
