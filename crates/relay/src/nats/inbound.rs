//! Stores what the other machines of a team published.

use std::collections::BTreeMap;

use ringer_journal::{Import, ImportResult, Journal, NameSource, NamingResult, TeamNote};

use crate::error::Error;
use crate::import::ImportRules;
use crate::local_journal::{CheckedMessages, store};
use crate::machine::MachineName;
use crate::position::Position;
use crate::repositories::Repositories;
use crate::team_setup::{TeamProgress, TeamSetup};
use crate::wire_message::WireMessage;

use super::incoming::Incoming;
use super::reading::Reading;
use super::receiving::{BatchSorter, DeliveredMessage, ResendRequest, SortedBatch, advance_position};

/// The receiving side of a connection.
pub(crate) struct Inbound<'a> {
    setup: &'a TeamSetup,
    /// How far the stream was read.
    reading: Reading,
    /// True if this machine joined the team in this stream.
    is_first_stream: bool,
    repositories: Repositories,
    /// The machines that published something on this connection, and whether their names here could be set.
    named: BTreeMap<String, bool>,
}

impl<'a> Inbound<'a> {
    pub(crate) fn new(setup: &'a TeamSetup, is_first_stream: bool, reading: Reading) -> Self {
        let repositories = Repositories::new(setup.repository_names.clone());
        Self { setup, reading, is_first_stream, repositories, named: BTreeMap::new() }
    }

    /// Stores messages of the stream in one transaction.
    pub(crate) fn store(
        &mut self,
        journal: &mut Journal,
        batch: &[Incoming<'_>],
    ) -> Result<(TeamProgress, Vec<ResendRequest>), Error> {
        let waiting = batch.last().map_or(0, |last| last.waiting);
        let delivered: Vec<DeliveredMessage<'_>> = batch
            .iter()
            .map(|Incoming { subject, payload, number, stored_ms, .. }| DeliveredMessage {
                subject,
                payload,
                stored_ms: *stored_ms,
                is_repeat: self.reading.is_repeat(*number),
            })
            .collect();
        let TeamSetup { team, machine, share_marks, .. } = self.setup;
        let SortedBatch { runs, resend_requests, unreadable } =
            BatchSorter { team, machine, share_marks: *share_marks }.sort(&delivered);
        let mut refused = (unreadable > 0).then(|| (unreadable, "it is no message of Ringer".to_owned()));
        let mut places: BTreeMap<String, Position> = BTreeMap::new();
        let mut checked: Vec<(String, String, CheckedMessages, Position)> = Vec::new();
        for run in runs {
            let key = self.setup.import_key(&run.machine);
            let Some(name) = self.setup.name_of(&run.machine) else { continue };
            if !self.has_name(journal, &key, &name)? {
                let before = refused.map_or(0, |(count, _)| count);
                let why =
                    format!("another machine is called {name} here; ringer relay remove frees the name");
                refused = Some((before + run.messages.len(), why));
                continue;
            }
            let before = match places.get(&key) {
                Some(place) => Some(place.clone()),
                // A cursor without a generation only records that the machine is known.
                None => journal.import_position(&key)?.map(Position::from),
            };
            let before = before.filter(|place| !place.generation.is_empty());
            let place =
                advance_position(before, &run.places, self.is_first_stream, self.reading.removed_before());
            let place = place.unwrap_or_default();
            places.insert(key.clone(), place.clone());
            let may_answer = self.setup.may_answer;
            let rules = ImportRules {
                // Also applies if others may write to agents: every message of the same repository would reach the lead agent.
                may_reach_lead: self.setup.may_reach_lead,
                // The agent's machine decides, and publishes the prompt only if it accepts answers.
                may_be_answered: true,
                ..ImportRules::new(name.clone(), may_answer, run.clock_ahead_ms, 0)
            };
            let may_be_old = |wire: &WireMessage| run.repeats.contains(&wire.seq);
            let messages = store(journal, &mut self.repositories, &rules, run.messages, may_be_old)?;
            if let Some((count, why)) = &messages.refused {
                let before = refused.map_or(0, |(count, _)| count);
                refused = Some((before + count, why.clone()));
            }
            checked.push((key, name.to_string(), messages, place));
        }
        let ends: Vec<_> = checked.iter().map(|(.., place)| place.clone().into()).collect();
        let imports: Vec<Import<'_>> = checked
            .iter()
            .zip(&ends)
            .map(|((key, name, checked, _), end)| Import {
                machine_id: key,
                machine: name,
                messages: &checked.messages,
                end,
            })
            .collect();
        self.reading.stored(batch.iter().map(|message| (message.number, message.id)));
        let (note_key, note) = (self.setup.received_key(), self.reading.encode());
        let note = TeamNote { key: &note_key, note: &note };
        // Also runs without messages, because those of this machine itself were read, too, and may then be removed.
        let ImportResult { new, refused: own_ids } = journal.import_all(&imports, Some(note))?;
        if own_ids > 0 {
            let before = refused.map_or(0, |(count, _)| count);
            refused = Some((before + own_ids, "it has the id of a message of this machine".to_owned()));
        }
        Ok((TeamProgress::Stored { new, refused, waiting }, resend_requests))
    }

    pub(crate) fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    /// Returns true if a machine of the team has its name here. A name that belongs to a machine of another link is not used.
    fn has_name(&mut self, journal: &mut Journal, key: &str, name: &MachineName) -> Result<bool, Error> {
        if let Some(has) = self.named.get(key) {
            return Ok(*has);
        }
        let naming = journal.name_machine(key, name.as_str(), &NameSource::Machine)?;
        let has = naming == NamingResult::Named;
        self.named.insert(key.to_owned(), has);
        Ok(has)
    }
}
