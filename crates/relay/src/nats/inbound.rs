//! Stores what the other machines of a team published, and acknowledges it after that.

use std::collections::BTreeMap;

use async_nats::HeaderValue;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::stream::Stream;
use ringer_journal::{Import, Imported, Journal, MachineNaming, NameSource, TeamNote};

use crate::error::Error;
use crate::import::ImportRules;
use crate::local_journal::{Checked, store};
use crate::machine::MachineName;
use crate::position::Position;
use crate::repositories::Repositories;
use crate::team_setup::{TeamProgress, TeamSetup};
use crate::wire_message::WireMessage;

use super::connection::{first_number, words};
use super::reading::Reading;
use super::receiving::{Delivered, Received, Receiver, Want, further};

/// The way in.
pub(crate) struct Inbound<'a> {
    setup: &'a TeamSetup,
    /// Messages up to this number of the stream may have come before.
    repeats_until: u64,
    /// What was delivered up to this number of the stream is not stored yet, and is delivered again later than what follows.
    /// Until then no place moves: what is behind a place is what this machine would want if the stream were lost.
    late_until: Option<u64>,
    /// How far the stream was read.
    reading: Reading,
    /// The number of the next message that is delivered for the first time, if none was removed.
    next: u64,
    /// This machine joined the team in this stream.
    is_first_stream: bool,
    repositories: Repositories,
    /// The machines that published something in this connection, and whether they have their names here.
    named: BTreeMap<String, bool>,
}

impl<'a> Inbound<'a> {
    /// At the beginning of a connection.
    pub(crate) fn new(
        setup: &'a TeamSetup,
        consumer: &Consumer<pull::Config>,
        reads_again: bool,
        is_first_stream: bool,
        reading: Reading,
    ) -> Self {
        let info = consumer.cached_info();
        Self {
            setup,
            repeats_until: if reads_again { u64::MAX } else { 0 },
            reading,
            next: info.delivered.stream_sequence.saturating_add(1),
            is_first_stream,
            repositories: Repositories::new(setup.repository_names.clone()),
            named: BTreeMap::new(),
            late_until: (info.num_ack_pending > 0).then_some(info.delivered.stream_sequence),
        }
    }

    /// Stores a batch in one transaction.
    pub(crate) fn store(
        &mut self,
        journal: &mut Journal,
        batch: &[Message],
    ) -> Result<(TeamProgress, Vec<Want>), Error> {
        let mut waiting = 0;
        let mut delivered = Vec::new();
        for message in batch {
            let info = message.info().map_err(|error| Error::Team(words(&error.to_string())))?;
            waiting = info.pending;
            if self.repeats_until == u64::MAX {
                self.repeats_until = info.stream_sequence.saturating_add(info.pending);
            }
            let stored_ms = info.published.unix_timestamp_nanos() / 1_000_000;
            delivered.push(Delivered {
                subject: message.subject.as_str(),
                payload: &message.payload,
                stored_ms: i64::try_from(stored_ms).unwrap_or(0),
                is_repeat: info.delivered > 1 || info.stream_sequence <= self.repeats_until,
            });
        }
        let TeamSetup { team, machine, share_marks, .. } = self.setup;
        let Received { runs, wants, unreadable } =
            Receiver { team, machine, share_marks: *share_marks }.sort(&delivered);
        let mut refused = (unreadable > 0).then(|| (unreadable, "it is no message of Ringer".to_owned()));
        let mut places: BTreeMap<String, Position> = BTreeMap::new();
        let mut checked: Vec<(String, String, Checked, Position)> = Vec::new();
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
                // One without a journal says only that the machine is known.
                None => journal.import_position(&key)?.map(Position::from),
            };
            let before = before.filter(|place| !place.generation.is_empty());
            let place = match self.late_until {
                None => further(before, &run.places, self.is_first_stream, self.reading.removed_before()),
                Some(_) => before,
            };
            let place = place.unwrap_or_default();
            places.insert(key.clone(), place.clone());
            let may_answer = self.setup.may_answer;
            let rules = ImportRules {
                // Also where others may write to agents: every message of the same repository would reach the lead agent.
                may_reach_lead: self.setup.may_reach_lead,
                // The machine where an agent runs decides, and tells what is asked only if it takes answers.
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
        let numbers = batch.iter().map(|message| (number_of(message), id_of(message)));
        self.reading.stored(numbers, self.late_until.is_some());
        let (note_key, note) = (self.setup.received_key(), self.reading.encode());
        let note = TeamNote { key: &note_key, note: &note };
        // Also without messages: what is only of this machine was read, too, and may be removed then.
        let Imported { new, refused: own_ids } = journal.import_all(&imports, Some(note))?;
        if own_ids > 0 {
            let before = refused.map_or(0, |(count, _)| count);
            refused = Some((before + own_ids, "it has the id of a message of this machine".to_owned()));
        }
        Ok((TeamProgress::Stored { new, refused, waiting }, wants))
    }

    /// Whether the server passed over numbers before the messages of this batch.
    pub(crate) fn skips_numbers(&mut self, batch: &[Message]) -> bool {
        let mut skips = false;
        for info in batch.iter().filter_map(|message| message.info().ok()) {
            // What is delivered again has numbers from before.
            if info.delivered == 1 {
                skips |= info.stream_sequence > self.next;
                self.next = self.next.max(info.stream_sequence.saturating_add(1));
            }
        }
        skips
    }

    /// How far the stream was read.
    pub(crate) fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    /// Whether a machine of the team has its name here. Names of machines that are linked otherwise stay theirs.
    fn has_name(&mut self, journal: &mut Journal, key: &str, name: &MachineName) -> Result<bool, Error> {
        if let Some(has) = self.named.get(key) {
            return Ok(*has);
        }
        let naming = journal.name_machine(key, name.as_str(), &NameSource::Machine)?;
        let has = naming == MachineNaming::Named;
        self.named.insert(key.to_owned(), has);
        Ok(has)
    }

    /// Tells the server that a batch is stored.
    pub(crate) async fn acknowledge(
        &mut self,
        consumer: &Consumer<pull::Config>,
        stream: &Stream,
        batch: &[Message],
    ) -> Result<(), Error> {
        for message in batch {
            let acknowledged = message.ack().await;
            acknowledged.map_err(|error| Error::Team(words(&error.to_string())))?;
        }
        if let Some(late_until) = self.late_until {
            let info = consumer.get_info().await;
            let info = info.map_err(|error| Error::Team(words(&error.to_string())))?;
            if info.ack_floor.stream_sequence >= late_until {
                // Late messages that were removed do not come any more.
                self.reading.check_removed(first_number(stream).await?);
                self.late_until = None;
            }
        }
        Ok(())
    }
}

fn number_of(message: &Message) -> u64 {
    message.info().map_or(0, |info| info.stream_sequence)
}

fn id_of(message: &Message) -> Option<&str> {
    message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id")).map(HeaderValue::as_str)
}
