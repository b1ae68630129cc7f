//! Publishes this machine's messages, and republishes those that others lack.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::Stream;
use ringer_core::Message;
use ringer_journal::{IdSource, Journal, ReadPosition};

use crate::error::Error;
use crate::local_journal::repository_of;
use crate::machine::MachineId;
use crate::position::Position;
use crate::repositories::Repositories;
use crate::team_setup::TeamSetup;

use super::connection::{Connection, failed, stream_info};
use super::coverage::coverage;
use super::next::ready_now;
use super::payload::TeamPayload;
use super::publications::{Publication, publications};
use super::publishing::{Publishing, WINDOW};
use super::receiving::ResendRequest;
use super::state::{LastPublished, TeamState};
use super::subject::{Audience, TeamSubject, nats_message_id, stream_name};

/// The tolerated clock difference when a machine that has no message of this one asks: a day, in milliseconds.
const CLOCKS_DIFFER_MS: i64 = 24 * 3_600_000;

/// The server's reply to a publication.
type AckFuture = Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>;

/// The pending acknowledgement of one message.
struct PendingAck {
    ticket: u64,
    message_id: String,
    ack: AckFuture,
}

/// Messages that were read but not yet published.
#[derive(Default)]
struct Unsent {
    /// The generation of the journal.
    generation: String,
    /// Each message with its ticket.
    messages: VecDeque<(u64, Message)>,
    /// The remaining publications of the previous message, each with that message's ticket.
    parts: VecDeque<(u64, Publication)>,
}

/// The sending side of a connection.
pub(crate) struct Outbound<'a> {
    setup: &'a TeamSetup,
    own: MachineId,
    context: Context,
    state: TeamState,
    /// The stream has everything of this machine up to this number.
    published: i64,
    publishing: Publishing,
    /// The run of `publishing`: later runs have higher numbers.
    run: i64,
    unsent: Unsent,
    acks: VecDeque<PendingAck>,
    repositories: Repositories,
}

impl<'a> Outbound<'a> {
    pub(crate) fn new(
        setup: &'a TeamSetup,
        own: MachineId,
        context: Context,
        state: TeamState,
        published: i64,
    ) -> Self {
        Self {
            publishing: Publishing::after(state.begin(published)),
            run: IdSource::now().unix_ms,
            setup,
            own,
            context,
            state,
            published,
            unsent: Unsent::default(),
            acks: VecDeque::new(),
            repositories: Repositories::new(setup.repository_names.clone()),
        }
    }

    /// Returns the state of the stream.
    pub(crate) fn state(&self) -> &TeamState {
        &self.state
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self) {
        self.publishing.changed();
    }

    /// Publishes as much as there is room for. One message may expand to thousands of publications, so the acknowledgements are
    /// awaited in the main loop.
    pub(crate) async fn publish_more(&mut self, journal: &mut Journal) -> Result<(), Error> {
        while self.acks.len() < WINDOW {
            if let Some((ticket, Publication { subject, message })) = self.unsent.parts.pop_front() {
                let message_id = nats_message_id(&self.own, self.run, &message.id);
                let payload = TeamPayload::Message {
                    generation: self.unsent.generation.clone(),
                    sent_ms: IdSource::now().unix_ms,
                    covered_from: self.state.covers(),
                    covered_at: self.state.covered_at(),
                    again: message.seq <= self.published,
                    message: Box::new(message),
                };
                let ack = self.publish(subject, &message_id, &payload).await?;
                self.acks.push_back(PendingAck { ticket, message_id, ack });
            } else if let Some((ticket, message)) = self.unsent.messages.pop_front() {
                let mut parts = publications(self.setup, journal, &message)?;
                if !parts.is_empty()
                    && let Some(repository) = repository_of(&mut self.repositories, &message)
                {
                    for Publication { message, .. } in &mut parts {
                        message.set_repository(&repository);
                    }
                }
                self.publishing.set_publications(ticket, parts.len());
                self.unsent.parts = parts.into_iter().map(|part| (ticket, part)).collect();
            } else {
                self.store_progress(journal)?;
                let Some((after, most)) = self.publishing.wanted() else { break };
                let batch = journal.own_after(after, most)?;
                self.publishing.read_up_to(batch.looked_at, batch.more);
                let generation = journal.generation()?;
                for message in batch.messages {
                    let (generation, id) = (generation.clone(), Some(message.id.to_string()));
                    let ticket = self.publishing.read(Position { generation, seq: message.seq, id });
                    self.unsent.messages.push_back((ticket, message));
                }
                self.unsent.generation = generation;
            }
        }
        Ok(())
    }

    async fn publish(
        &self,
        subject: String,
        message_id: &str,
        payload: &TeamPayload,
    ) -> Result<AckFuture, Error> {
        let message = PublishMessage::build()
            .payload(payload.encode().into())
            .message_id(message_id)
            .expected_stream(stream_name(&self.setup.team));
        let sent = self.context.send_publish(subject, message).await;
        sent.map(IntoFuture::into_future).map_err(|error| failed("a message cannot be published", &error))
    }

    /// Waits for the acknowledgement of the oldest pending message.
    pub(crate) async fn next_ack(&mut self) -> Result<PublishAck, PublishError> {
        match self.acks.front_mut() {
            Some(first) => first.ack.as_mut().await,
            None => pending().await,
        }
    }

    /// Handles the acknowledgement of the oldest pending message, and of others that are ready.
    pub(crate) fn handle_ack(
        &mut self,
        journal: &mut Journal,
        connection: &mut Connection,
        mut result: Result<PublishAck, PublishError>,
    ) -> Result<(), Error> {
        loop {
            let Some(pending) = self.acks.pop_front() else { break };
            let ack =
                result.map_err(|error| connection.refused("a message was not taken", &error.to_string()))?;
            self.publishing.confirmed(pending.ticket);
            self.state.acknowledged(LastPublished { sequence: ack.sequence, message_id: pending.message_id });
            match self.acks.front_mut().and_then(|next| ready_now(next.ack.as_mut())) {
                Some(next) => result = next,
                None => break,
            }
        }
        self.store_progress(journal)
    }

    /// Stores how far the stream has everything.
    fn store_progress(&mut self, journal: &mut Journal) -> Result<(), Error> {
        let end = self.publishing.arrived();
        let is_further = end.as_ref().is_some_and(|end| end.seq > self.published);
        let is_complete = match &end {
            Some(end) => end.seq >= self.published,
            None => self.state.again_from.is_some() && self.publishing.is_done(),
        };
        if is_complete {
            self.state.republished(IdSource::now().unix_ms);
        }
        if is_further {
            self.state.arrived(self.published, IdSource::now().unix_ms);
        }
        if is_complete || end.is_some() {
            self.setup.check_known(journal)?;
            // The state is stored before the position: if the next connection did not know the message at that position, its loss
            // would go unnoticed.
            self.store_state(journal)?;
        }
        if let Some(end) = end.filter(|_| is_further) {
            self.published = end.seq;
            let key = self.setup.export_key();
            journal.advance_export(&key, &end.into(), IdSource::now().unix_ms)?;
        }
        Ok(())
    }

    pub(crate) fn store_state(&self, journal: &mut Journal) -> Result<(), Error> {
        Ok(journal.set_team_note(&self.setup.export_key(), &self.state.encode())?)
    }

    /// Republishes what another machine lacks, if the stream does not have it.
    pub(crate) async fn serve(
        &mut self,
        journal: &mut Journal,
        stream: &Stream,
        want: &ResendRequest,
    ) -> Result<(), Error> {
        let is_changed =
            want.removed_before > self.state.covered_at() && self.check_coverage(journal, stream).await?;
        let after = match &want.after {
            Some(after) => {
                let asked = ReadPosition { cursor: after.clone().into(), catch_up: None };
                journal.resume_at(&asked)?.cursor.seq
            }
            None => journal.own_since(want.joined_ms.saturating_sub(CLOCKS_DIFFER_MS))?,
        };
        let is_wanted = self.state.wanted(after);
        if is_changed || is_wanted {
            self.store_state(journal)?;
        }
        if is_wanted || (is_changed && self.state.again_from.is_some()) {
            // Publications in flight are repeated with the rest.
            self.acks.clear();
            self.unsent = Unsent::default();
            self.run = IdSource::now().unix_ms.max(self.run.saturating_add(1));
            self.publishing = Publishing::after(self.state.begin(self.published));
        }
        Ok(())
    }

    /// Checks another machine's report that messages were removed from the stream, and updates the coverage. Returns true if the
    /// report is correct.
    async fn check_coverage(&mut self, journal: &mut Journal, stream: &Stream) -> Result<bool, Error> {
        let info = stream_info(stream).await?;
        if info.state.first_sequence <= self.state.covered_at() {
            return Ok(false);
        }
        let published = self.publishing.published_up_to();
        let found = coverage(self.setup, journal, stream, &info, published).await?;
        self.state.removed(found.from, found.at);
        Ok(true)
    }

    /// Publishes something that is not a message of the journal, and waits until the stream has it. Returns its number there.
    pub(crate) async fn publish_to_machines(
        &mut self,
        connection: &mut Connection,
        payload: &TeamPayload,
        id: &str,
    ) -> Result<u64, Error> {
        let subject = TeamSubject { machine: &self.setup.machine, scope: "link", audience: Audience::Want };
        let id = nats_message_id(&self.own, self.run, id);
        let ack = self.publish(subject.text(&self.setup.team), &id, payload).await?.await;
        let ack = ack.map_err(|error| connection.refused("a message was not taken", &error.to_string()))?;
        // If the server loses the message, this machine repeats it.
        self.state.acknowledged(LastPublished { sequence: ack.sequence, message_id: id });
        Ok(ack.sequence)
    }
}
