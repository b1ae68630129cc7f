//! Determines the publications of a message and their subjects: the message itself, or a mark on each message that it covers.

use ringer_core::Message;
use ringer_core::message::{Mark, MarkReach, Recipient, Tag};
use ringer_journal::{Error, Journal};

use crate::import::for_popup;
use crate::local_journal::{BulkMark, answerable_prompt};
use crate::team_setup::TeamSetup;
use crate::wire_message::WireMessage;

use super::subject::{Audience, TeamSubject};

/// The most marks that one mark on everything expands to.
const MAX_BULK_MARKS: usize = 2_000;

/// A message to publish.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) subject: String,
    pub(crate) message: WireMessage,
}

/// Returns the publications of a message; none if it stays on this machine.
pub(crate) fn publications(
    setup: &TeamSetup,
    journal: &mut Journal,
    message: &Message,
) -> Result<Vec<Publication>, Error> {
    let marks = expand_bulk_mark(setup, journal, message)?;
    if !marks.is_empty() {
        return Ok(marks);
    }
    let Some((subject, mut wire)) = outgoing(setup, message) else { return Ok(Vec::new()) };
    if setup.may_answer {
        wire.prompt = answerable_prompt(journal, message)?.and_then(for_popup);
    }
    Ok(vec![Publication { subject, message: wire }])
}

/// Expands a mark on everything, if marks are shared: for each machine of the team, to its messages that had arrived.
fn expand_bulk_mark(
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
    marks.truncate(MAX_BULK_MARKS);
    Ok(marks)
}

/// Converts a message for publishing. Returns `None` if it does not concern the team: it came from another machine, its recipient
/// is an agent outside the team, or it is a mark that only this machine keeps.
fn outgoing(setup: &TeamSetup, message: &Message) -> Option<(String, WireMessage)> {
    let draft = &message.draft;
    let recipient = draft.recipient.to_string();
    let to = match (draft.tag, &draft.recipient) {
        (Tag::Notice(_), Recipient::Agent(agent)) => {
            Some(setup.machine_in(agent.as_str()).filter(|machine| *machine != setup.machine)?)
        }
        _ => None,
    };
    let audience = match (draft.tag, to) {
        (Tag::Mark(mark), _) if !is_shared(setup, mark) => return None,
        (Tag::Mark(_), _) => Audience::Mark,
        (Tag::Notice(_), Some(machine)) => Audience::Machine(machine),
        (Tag::Notice(_), None) => Audience::All(&recipient),
    };
    let wire = WireMessage::of(message, &setup.name_of(to.unwrap_or(&setup.machine))?)?;
    let subject = TeamSubject { machine: &setup.machine, scope: draft.scope.as_str(), audience };
    Some((subject.text(&setup.team), wire))
}

/// Returns true if a mark is published: marks of agents always, the person's only if they are shared.
fn is_shared(setup: &TeamSetup, mark: Mark) -> bool {
    setup.share_marks || mark.reach() != MarkReach::PersonsMachines
}

#[cfg(test)]
mod tests {
    use ringer_config::{RelayLink, TeamLink};
    use ringer_core::{Draft, Kind, MessageId, Scope, Sender};
    use ringer_journal::Home;

    use super::*;

    fn setup(share_marks: bool) -> TeamSetup {
        let team = TeamLink {
            urls: vec!["nats://localhost".to_owned()],
            domain: None,
            machine: Some("laptop".to_owned()),
            credentials: None,
            ca: None,
            share_marks,
        };
        let link = RelayLink {
            name: "t".to_owned(),
            command: Vec::new(),
            ssh: None,
            may_answer: false,
            may_reach_lead: false,
            team: Some(team),
        };
        TeamSetup::of(&Home::new("/home"), &link).unwrap()
    }

    fn message(recipient: &str) -> Message {
        let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "hello").unwrap();
        draft.recipient = Recipient::parse(recipient).unwrap();
        Message { seq: 3, id: MessageId::new(5, [1; 10]), unix_ms: 5, draft, machine: None }
    }

    fn subject(message: &Message) -> Option<String> {
        outgoing(&setup(false), message).map(|(subject, _)| subject)
    }

    #[test]
    fn only_local_messages_for_the_team_are_published() {
        assert_eq!(subject(&message("person")).as_deref(), Some("ringer.t.laptop.global.person"));
        assert_eq!(
            subject(&message("agent:worker-1@box.t")).as_deref(),
            Some("ringer.t.laptop.global.to-box")
        );
        let (_, wire) = outgoing(&setup(false), &message("agent:worker-1@box.t")).unwrap();
        assert_eq!(wire.recipient, "agent:worker-1");
        for other in
            ["agent:worker-1", "agent:worker-1@box", "agent:worker-1@box.u", "agent:worker-1@laptop.t"]
        {
            assert_eq!(subject(&message(other)), None, "{other}");
        }
        let imported = Message { machine: Some("box.t".to_owned()), ..message("person") };
        assert_eq!(subject(&imported), None, "no transit");
    }

    #[test]
    fn personal_marks_are_published_only_if_shared() {
        let mark = |mark: Mark, key: &str| {
            let mut message = message("person");
            message.draft.tag = Tag::Mark(mark);
            message.draft.key = Some(key.to_owned());
            message
        };
        let id = MessageId::new(5, [2; 10]);
        let read = mark(Mark::Read, id.as_str());
        assert!(outgoing(&setup(false), &read).is_none() && outgoing(&setup(true), &read).is_some());
        assert!(outgoing(&setup(true), &mark(Mark::Read, "all")).is_none());
        assert!(outgoing(&setup(true), &mark(Mark::Mute, "x")).is_none());
        let resolved = mark(Mark::Resolve, "episode:claude-1:2");
        assert_eq!(subject(&resolved).as_deref(), Some("ringer.t.laptop.global.mark"));
    }
}
