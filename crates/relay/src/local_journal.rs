//! The journal side of a connection: reads and stores messages, expands marks on everything, and passes on answers of the person
//! at another machine.

use std::collections::BTreeSet;

use ringer_core::agent::{AnswerMethod, PromptContent};
use ringer_core::attention::MarkTarget;
use ringer_core::message::{Agent, MACHINE_PREFIX, Mark, MarkReach, Tag};
use ringer_core::{Draft, Kind, Message, MessageId, Recipient};
use ringer_journal::{Cursor, Error, IdSource, ImportedMessage, Journal, ReadPosition};

use crate::frame::AnswerOutput;
use crate::import::{ImportRefusal, ImportRules, for_popup, message_id};
use crate::link::{Input, ReadMessages};
use crate::machine::{MachineId, MachineName};
use crate::position::Position;
use crate::repositories::Repositories;
use crate::wire_message::WireMessage;

/// The most messages in one frame. They are stored in one transaction, for which other writers wait some milliseconds.
const MAX_MESSAGES: usize = 256;
/// A frame with this many messages is full: a mark on everything expands to up to 500.
const FULL_FRAME_MESSAGES: usize = 1024;
/// The most waiting messages that are counted, because they are counted for each frame of a backlog.
const MAX_COUNTED: i64 = 10_000;
/// A frame with this many bytes is full. The next message has at most 480 KiB, and a frame 1 MiB.
const FULL_FRAME_BYTES: usize = 256 * 1024;

/// Determines where sending begins: after the other machine's position. A machine without a position starts where it was first
/// registered. If the position does not match this journal, which was removed or replaced by an older copy, sending starts again
/// from an earlier position. It never starts before `send_after`.
pub(crate) fn locate(
    journal: &mut Journal,
    machine: &MachineId,
    send_after: i64,
    after: Option<Position>,
) -> Result<Input, Error> {
    let Some(after) = after else {
        let exported: Position = journal.export_position(machine.as_str(), IdSource::now().unix_ms)?.into();
        let first = Position { seq: send_after, id: None, ..exported.clone() };
        let at = if exported.seq < send_after { first } else { exported };
        return Ok(Input::Located { at, repeats_until: 0 });
    };
    let requested = ReadPosition { cursor: after.clone().into(), catch_up: None };
    let found = journal.resume_at(&requested)?;
    let at: Position = Cursor { generation: Some(journal.generation()?), ..found.cursor }.into();
    if at.seq < send_after {
        let at = Position { seq: send_after, id: None, ..at };
        return Ok(Input::Located { at, repeats_until: journal.highest()? });
    }
    if at.seq == after.seq && at.generation == after.generation {
        return Ok(Input::Located { at: after, repeats_until: 0 });
    }
    Ok(Input::Located { at, repeats_until: journal.highest()? })
}

/// Reads messages of this machine after a number that are for `machine`, for one frame.
pub(crate) fn read_own(
    journal: &mut Journal,
    repositories: &mut Repositories,
    machine: &MachineName,
    after: i64,
) -> Result<ReadMessages, Error> {
    let generation = journal.generation()?;
    let batch = journal.own_after(after, MAX_MESSAGES)?;
    let (examined_to, more) = (batch.looked_at, batch.more);
    let mut read = ReadMessages { messages: Vec::new(), end: None, examined_to, more, waiting: 0 };
    let (mut bytes, mut examined_to) = (0, after);
    for message in &batch.messages {
        if bytes >= FULL_FRAME_BYTES || read.messages.len() >= FULL_FRAME_MESSAGES {
            (read.examined_to, read.more) = (examined_to, true);
            break;
        }
        examined_to = message.seq;
        let mut wires = match BulkMark::of(message, machine) {
            Some(bulk) => bulk.on_each(journal, machine)?,
            None => WireMessage::of(message, machine).into_iter().collect(),
        };
        if let [wire] = wires.as_mut_slice() {
            wire.prompt = answerable_prompt(journal, message)?.and_then(for_popup);
        }
        if let Some(repository) = repository_of(repositories, message) {
            for wire in &mut wires {
                wire.set_repository(&repository);
            }
        }
        if wires.is_empty() {
            continue;
        }
        bytes += wires.iter().map(WireMessage::encoded_bytes).sum::<usize>();
        let (generation, id) = (generation.clone(), Some(message.id.to_string()));
        read.end = Some(Position { generation, seq: message.seq, id });
        read.messages.extend(wires);
    }
    if read.more {
        let waiting = journal.own_count_for(machine.as_str(), read.examined_to, MAX_COUNTED)?;
        read.waiting = u32::try_from(waiting).unwrap_or(0);
    }
    Ok(read)
}

#[derive(Debug, Default)]
pub(crate) struct CheckedMessages {
    pub(crate) messages: Vec<ImportedMessage>,
    /// The number of refused messages, with the reason for the last one.
    pub(crate) refused: Option<(usize, String)>,
}

/// Checks what another machine sent, in its order. With `may_be_old`, messages may have arrived before and been pruned since.
pub(crate) fn store(
    journal: &mut Journal,
    repositories: &mut Repositories,
    rules: &ImportRules,
    messages: Vec<WireMessage>,
    may_be_old: impl Fn(&WireMessage) -> bool,
) -> Result<CheckedMessages, Error> {
    let kept_from = if messages.iter().any(&may_be_old) { journal.kept_from()? } else { None };
    let earlier_keys = journal.earlier_keys(rules.machine.as_str())?;
    let mut checked = CheckedMessages::default();
    let mut batch_ids = BTreeSet::new();
    for wire in messages {
        let may_be_old = may_be_old(&wire);
        let repository = wire.repository.clone().filter(|_| rules.may_reach_lead);
        let imported = match rules.import(wire) {
            Ok(imported) => match check_mark(journal, rules, &batch_ids, &imported)? {
                MarkCheck::Allowed => imported,
                MarkCheck::TargetGone => continue,
                MarkCheck::NotAllowed => {
                    checked.refuse(&ImportRefusal::NotItsMark);
                    continue;
                }
            },
            Err(refusal) => {
                checked.refuse(&refusal);
                continue;
            }
        };
        // Old messages that were pruned here are not stored again.
        if may_be_old && kept_from.as_ref().is_some_and(|oldest| imported.id < *oldest) {
            continue;
        }
        let imported = rules.with_earlier_keys(imported, &earlier_keys);
        let mut imported = with_agent_id(journal, imported)?;
        if let Some(repository) = repository.filter(|_| is_for_lead(&imported.draft))
            && let Some(scope) = repositories.scope_of(journal, &repository)?
        {
            imported.draft.scope = scope;
        }
        batch_ids.insert(imported.id.clone());
        checked.messages.push(imported);
    }
    Ok(checked)
}

/// Returns the prompt of a message, if it can be answered from another machine.
pub(crate) fn answerable_prompt(
    journal: &mut Journal,
    message: &Message,
) -> Result<Option<PromptContent>, Error> {
    if !matches!(message.draft.tag, Tag::Notice(Kind::Waiting | Kind::Question)) {
        return Ok(None);
    }
    if let Some(stored) = journal.prompt_of_message(&message.id)? {
        let is_reachable = stored.prompt.method != AnswerMethod::DialogOnly;
        return Ok(is_reachable.then_some(stored.prompt.content));
    }
    // A question in a client's dialog that its hooks do not report cannot be answered here.
    let question = message.draft.question_id.as_ref().filter(|_| message.draft.key.is_none());
    let question = question.map(|id| journal.question(id)).transpose()?.flatten();
    Ok(question.map(|question| PromptContent::Questions(vec![question.as_prompt()])))
}

/// Returns the identity of a message's repository, if a lead agent reads the message.
pub(crate) fn repository_of(repositories: &mut Repositories, message: &Message) -> Option<String> {
    let directory = message.draft.origin.cwd.as_deref().filter(|_| is_for_lead(&message.draft));
    directory.and_then(|directory| repositories.identity(directory))
}

/// Returns true if the lead agent of a repository reads the message.
fn is_for_lead(draft: &Draft) -> bool {
    matches!(draft.tag, Tag::Notice(_)) && matches!(draft.recipient, Recipient::Default | Recipient::Lead)
}

/// Replaces the recipient by the id of an agent that is known here: the other machine may know only its name.
fn with_agent_id(journal: &mut Journal, mut imported: ImportedMessage) -> Result<ImportedMessage, Error> {
    if let Some(agent) = imported.draft.recipient.agent()
        && let Some(id) = journal.agent_named(agent.as_str())?
        && let Ok(agent) = Agent::new(&id)
    {
        imported.draft.recipient = Recipient::Agent(agent);
    }
    Ok(imported)
}

/// The result of [`check_mark`].
enum MarkCheck {
    /// The mark is allowed, or the message is not a mark.
    Allowed,
    /// The target is no longer here, or was never sent here.
    TargetGone,
    NotAllowed,
}

/// Checks whether the other machine may set a mark: on its own messages, and on messages of this machine, which the person read
/// there; not on those of a third machine. Its messages that arrived together with the mark (`batch_ids`) are not stored yet.
fn check_mark(
    journal: &mut Journal,
    rules: &ImportRules,
    batch_ids: &BTreeSet<MessageId>,
    imported: &ImportedMessage,
) -> Result<MarkCheck, Error> {
    if !matches!(imported.draft.tag, Tag::Mark(mark) if mark.reach() == MarkReach::PersonsMachines) {
        return Ok(MarkCheck::Allowed);
    }
    let Some(MarkTarget::Message(id)) = imported.draft.key.as_deref().and_then(MarkTarget::parse) else {
        return Ok(MarkCheck::NotAllowed);
    };
    Ok(match journal.machine_of(&id)? {
        None if batch_ids.contains(&id) => MarkCheck::Allowed,
        None => MarkCheck::TargetGone,
        Some(machine) if machine.as_ref().is_none_or(|name| name == rules.machine.as_str()) => {
            MarkCheck::Allowed
        }
        Some(_) => MarkCheck::NotAllowed,
    })
}

impl CheckedMessages {
    fn refuse(&mut self, why: &ImportRefusal) {
        self.refuse_more(1, why);
    }

    /// Records messages that were refused because they had the id of a message of this machine.
    pub(crate) fn refuse_own_ids(&mut self, count: usize) {
        if count > 0 {
            self.refuse_more(count, &ImportRefusal::OwnId);
        }
    }

    fn refuse_more(&mut self, more: usize, why: &ImportRefusal) {
        let count = self.refused.as_ref().map_or(0, |(count, _)| *count);
        self.refused = Some((count + more, why.to_string()));
    }
}

/// The most messages that a mark on everything expands to, newest first. Older ones have mostly been read before.
const MAX_TARGETS: usize = 500;
/// The characters of an id that encode its time; the others are random.
const ID_TIME_CHARS: usize = 18;

/// A mark on everything, or on all of a machine. The other machine may have newer messages that have not arrived here, so the
/// person has not seen them. Therefore the mark is expanded to one mark for each message that had arrived.
pub(crate) struct BulkMark<'a> {
    mark: &'a Message,
    /// Applies only to messages from this surface.
    surface: Option<String>,
}

impl<'a> BulkMark<'a> {
    /// Returns the mark if it also covers messages of that machine.
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

    /// Expands the mark to the messages of the machine that had arrived before it.
    pub(crate) fn on_each(
        &self,
        journal: &mut Journal,
        machine: &MachineName,
    ) -> Result<Vec<WireMessage>, Error> {
        let notices = journal.notices_of_machine(machine.as_str(), self.mark.seq, MAX_TARGETS)?;
        let is_covered =
            |message: &&Message| self.surface.is_none() || message.draft.origin.surface == self.surface;
        let marked = notices.iter().filter(is_covered).filter_map(|target| self.on(target, machine));
        Ok(marked.collect())
    }

    fn on(&self, target: &Message, machine: &MachineName) -> Option<WireMessage> {
        let mut mark = self.mark.clone();
        mark.draft.key = Some(target.id.to_string());
        let wire = WireMessage::of(&mark, machine)?;
        // The same mark on the same message always gets the same id, so that it is stored once however often it is sent.
        let time = self.mark.id.as_str().get(..ID_TIME_CHARS)?;
        let random = target.id.as_str().get(ID_TIME_CHARS..)?;
        Some(WireMessage { id: format!("{time}{random}"), ..wire })
    }
}

/// The most words in an answer: a prompt has a few questions.
const MAX_WORDS: usize = 64;
/// The exit code for a refused answer.
const NO_PERMISSION: u8 = 77;

/// An answer of the person at another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// The message that asks.
    pub message: MessageId,
    /// The words of the answer. Without words, the prompt is shown.
    pub words: Vec<String>,
    /// Shows the prompt as JSON.
    pub as_json: bool,
}

/// The function that executes an answer.
pub type AnswerHandler = fn(&AnswerRequest) -> AnswerOutput;

/// Executes an answer if it is allowed: agents of this machine may be answered, those of a third one not.
pub(crate) fn answer(
    give: Option<AnswerHandler>,
    journal: &mut Journal,
    message: &str,
    words: Vec<String>,
    as_json: bool,
) -> Result<AnswerOutput, Error> {
    let refused = |error: &str| AnswerOutput {
        exit: NO_PERMISSION,
        error: error.to_owned(),
        ..AnswerOutput::default()
    };
    let Some(give) = give else { return Ok(refused("that machine takes no answers over this link")) };
    let id = message_id(message).ok().filter(|_| words.len() <= MAX_WORDS);
    let Some(message) = id else { return Ok(refused("that is no answer")) };
    Ok(match journal.machine_of(&message)? {
        Some(Some(_)) => refused("the question is of another machine; answer it there"),
        _ => give(&AnswerRequest { message, words, as_json }),
    })
}
