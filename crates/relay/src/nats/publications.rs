//! What is published for a message of this machine: itself, or a mark on each message that it marks.

use ringer_core::Message;
use ringer_core::message::{Mark, Tag};
use ringer_journal::{Error, Journal};

use crate::bulk_mark::BulkMark;
use crate::import::for_popup;
use crate::local_journal::asked;
use crate::team_setup::TeamSetup;
use crate::wire_message::WireMessage;

use super::outgoing::outgoing;
use super::subject::{Audience, TeamSubject};

/// The most marks that one mark on everything becomes.
const MOST_MARKS: usize = 2_000;

/// A message as it is published.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) subject: String,
    pub(crate) message: WireMessage,
}

/// What is published for a message; nothing if it stays here.
pub(crate) fn publications(
    setup: &TeamSetup,
    journal: &mut Journal,
    message: &Message,
) -> Result<Vec<Publication>, Error> {
    let marks = marks_on_each(setup, journal, message)?;
    if !marks.is_empty() {
        return Ok(marks);
    }
    let Some((subject, mut wire)) = outgoing(setup, message) else { return Ok(Vec::new()) };
    if setup.may_answer {
        wire.prompt = asked(journal, message)?.and_then(for_popup);
    }
    Ok(vec![Publication { subject, message: wire }])
}

/// A mark on everything, where marks are shared: for each machine of the team, on what had come from it.
fn marks_on_each(
    setup: &TeamSetup,
    journal: &mut Journal,
    message: &Message,
) -> Result<Vec<Publication>, Error> {
    let mut marks = Vec::new();
    if !setup.share_marks || !matches!(message.draft.tag, Tag::Mark(Mark::Read | Mark::Clear)) {
        return Ok(marks);
    }
    for (machine, _) in journal.team_positions(&setup.export_key())? {
        let Some(name) = setup.name_of(&machine) else { continue };
        let Some(bulk) = BulkMark::of(message, &name) else { continue };
        let audience = Audience::Machine(&machine);
        let subject = TeamSubject { machine: &setup.machine, scope: message.draft.scope.as_str(), audience };
        let subject = subject.text(&setup.team);
        let on_each = bulk.on_each(journal, &name)?;
        marks.extend(on_each.into_iter().map(|message| Publication { subject: subject.clone(), message }));
    }
    marks.truncate(MOST_MARKS);
    Ok(marks)
}
