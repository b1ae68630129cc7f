//! One connection of this machine to its team: what is written here is published, what others published is stored.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::time::Duration;

use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::Stream;
use ringer_core::Message;
use ringer_journal::{IdSource, Journal, JournalWatch, ReadPosition};

use crate::error::Error;
use crate::exchange::Ended;
use crate::first_position::first_position;
use crate::machine::MachineId;
use crate::position::Position;
use crate::team_setup::{TeamProgress, TeamSetup};

use super::answers::AnswerService;
use super::batch::{BATCH, batch};
use super::connection::{Connection, OwnConsumer, first_number, has, info_of, words};
use super::coverage::coverage;
use super::inbound::Inbound;
use super::message_id::nats_message_id;
use super::next::{next, ready_now};
use super::payload::{MAX_WANTED, TeamPayload};
use super::publications::{Publication, publications};
use super::publishing::{Publishing, WINDOW};
use super::readable::readable;
use super::reading::Reading;
use super::receiving::Want;
use super::state::{LastPublished, TeamState};
use super::subject::{Audience, TeamSubject, stream_name};

/// What a server that lost its last moments is given again: what was written since then. NATS syncs every two minutes unless
/// its operator sets something else.
const LOST_AT_MOST: Duration = Duration::from_hours(1);
/// How far clocks may differ, for what a machine wants that has nothing of this one.
const CLOCKS_DIFFER: Duration = Duration::from_hours(24);
/// How long a request for messages waits at the server, and how often that says that it is there meanwhile.
/// Two times that are missed end the connection: only so a machine at a leaf node learns that this is cut off.
const PULL: (Duration, Duration) = (Duration::from_mins(2), Duration::from_secs(15));

/// The server's answer to one message.
struct PendingAck {
    ticket: u64,
    message_id: String,
    answer: Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>,
}

/// Messages that are read, and not given to the server yet.
#[derive(Default)]
struct Unsent {
    /// The generation of the journal.
    generation: String,
    /// Each with its ticket.
    messages: VecDeque<(u64, Message)>,
    /// The publications of the message before these, each with the ticket of that.
    parts: VecDeque<(u64, Publication)>,
}

/// A connection.
pub(crate) struct TeamExchange<'a> {
    setup: &'a TeamSetup,
    own: MachineId,
    journal: Journal,
    watch: JournalWatch,
    connection: Connection,
    stream: Stream,
    state: TeamState,
    /// The stream took everything of this machine up to this number.
    published: i64,
    publishing: Publishing,
    /// The run of `publishing`: later ones have higher numbers.
    run: i64,
    unsent: Unsent,
    acks: VecDeque<PendingAck>,
    progress: &'a mut dyn FnMut(TeamProgress),
}

/// Connects, and goes on until the connection is lost.
pub(crate) async fn exchange(
    setup: &TeamSetup,
    progress: &mut dyn FnMut(TeamProgress),
) -> Result<Ended, Error> {
    let (mut exchange, own_consumer, reading) = TeamExchange::begin(setup, progress).await?;
    exchange.run(own_consumer, reading).await
}

/// Joins a team: from here on nothing is left out that is written here or there. Gives the version of the server.
pub(crate) async fn join(setup: &TeamSetup) -> Result<String, Error> {
    let mut ignored = |_| {};
    let (mut exchange, ..) = TeamExchange::begin(setup, &mut ignored).await?;
    let sent_ms = IdSource::now().unix_ms;
    exchange.publish_to_machines(&TeamPayload::Hello { sent_ms }, &sent_ms.to_string()).await?;
    Ok(exchange.connection.version())
}

impl<'a> TeamExchange<'a> {
    async fn begin(
        setup: &'a TeamSetup,
        progress: &'a mut dyn FnMut(TeamProgress),
    ) -> Result<(Self, OwnConsumer, Reading), Error> {
        // The home is made with the journal.
        let mut journal = Journal::open(&setup.home)?;
        let own = setup.own_id()?;
        let watch = JournalWatch::register(&mut journal)?;
        journal.take_reopened();
        let mut connection = Connection::open(setup).await?;
        let stream = connection.stream(setup).await?;
        let created = stream.cached_info().created.to_string();
        let (first, last) = ends_of(&stream);
        let key = setup.export_key();
        let began = first_position(&setup.home, &mut journal, &key)?;
        let published = journal.export_position(&key, IdSource::now().unix_ms)?.seq;
        let known = journal.team_note(&key)?.and_then(|note| TeamState::read(&note));
        let is_same_stream = known.as_ref().is_some_and(|known| known.stream == created);
        let known_reading = journal.team_note(&setup.received_key())?.and_then(|note| Reading::read(&note));
        let has_received = match known_reading.as_ref().filter(|_| is_same_stream).and_then(Reading::furthest)
        {
            Some(furthest) => has(&stream, &furthest).await?,
            None => true,
        };
        let consumer = connection.consumer(setup, &stream, known.is_some(), has_received).await?;
        let mut reading = match known_reading.clone().filter(|_| is_same_stream) {
            Some(reading) => reading,
            None if known.is_some() && !is_same_stream => Reading::default(),
            None => Reading::from_number(consumer.consumer.cached_info().delivered.stream_sequence),
        };
        if !has_received {
            reading.begins_anew();
        }
        reading.connected(first, last);
        let now_ms = IdSource::now().unix_ms;
        let next = last.saturating_add(1);
        let mut state = known.clone().unwrap_or_else(|| TeamState::joined(&created, next, began, now_ms));
        state.connected(next);
        // The journal was removed: everything in the new one was written after this machine had joined.
        if known.is_none() && began < published {
            state.again(began);
        }
        let mut must_ask = reading.must_ask(first);
        if state.stream != created {
            state.made_anew(&created, next, published);
            must_ask = true;
        } else if let Some(last) = &state.last
            && !has(&stream, last).await?
        {
            let since_ms = now_ms.saturating_sub(milliseconds(LOST_AT_MOST));
            state.end_was_lost(journal.own_since(since_ms)?, since_ms);
            // It may have been what this machine wants.
            must_ask = true;
        }
        let mut exchange = Self {
            publishing: Publishing::after(state.begin(published)),
            run: now_ms,
            setup,
            own,
            journal,
            watch,
            connection,
            stream,
            state,
            published,
            unsent: Unsent::default(),
            acks: VecDeque::new(),
            progress,
        };
        if must_ask {
            // What the stream was is forgotten only once the others know what is lacking here.
            exchange.ask(&mut reading).await?;
        } else if known_reading.as_ref() != Some(&reading) {
            exchange.store_reading(&reading)?;
        }
        if known.as_ref() != Some(&exchange.state) {
            exchange.store_state()?;
        }
        let (server, address) = (exchange.connection.version(), exchange.connection.address.clone());
        (exchange.progress)(TeamProgress::Connected { server, address });
        Ok((exchange, consumer, reading))
    }

    async fn run(&mut self, own_consumer: OwnConsumer, reading: Reading) -> Result<Ended, Error> {
        let OwnConsumer { consumer, reads_again } = own_consumer;
        let is_first = self.state.is_first_stream();
        let mut inbound = Inbound::new(self.setup, &consumer, reads_again, is_first, reading);
        let stream = consumer.stream().max_messages_per_batch(BATCH).expires(PULL.0).heartbeat(PULL.1);
        let mut stream =
            stream.messages().await.map_err(|error| failed("no messages can be asked for", &error))?;
        let bell =
            readable(self.watch.as_fd()).map_err(|source| io("cannot wait for the journal", source))?;
        let mut answers = AnswerService::begin(self.setup, &self.connection.client).await?;
        loop {
            self.publish_more().await?;
            tokio::select! {
                problem = self.connection.problems.recv() => {
                    return Err(Error::Team(problem.unwrap_or_else(|| "the connection ended".to_owned())));
                }
                ready = bell.readable() => {
                    ready.map_err(|source| io("cannot wait for the journal", source))?.clear_ready();
                    self.look()?;
                }
                answer = next_answer(&mut self.acks) => self.answered(answer)?,
                (request, give) = answers.next() => answers.give(&request, give),
                message = next(&mut stream) => {
                    let batch = batch(message, &mut stream).await?;
                    self.check_known()?;
                    if inbound.skips_numbers(&batch) {
                        inbound.reading().check_removed(first_number(&self.stream).await?);
                    }
                    let (taken, wants) = inbound.store(&mut self.journal, &batch)?;
                    for want in &wants {
                        self.serve(want).await?;
                    }
                    inbound.acknowledge(&consumer, &self.stream, &batch).await?;
                    (self.progress)(taken);
                    self.ask_if_removed(inbound.reading(), &wants).await?;
                }
            }
        }
    }

    /// Something was written here.
    fn look(&mut self) -> Result<(), Error> {
        self.watch.prepare(&mut self.journal)?;
        if self.journal.take_reopened() {
            return Err(Error::Team("the journal was replaced; the connection begins anew".to_owned()));
        }
        self.publishing.changed();
        Ok(())
    }

    /// Publishes what there is and has room. One message may become thousands of publications, and the answers to them are
    /// waited for where everything else is, too.
    async fn publish_more(&mut self) -> Result<(), Error> {
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
                let answer = self.publish(subject, &message_id, &payload).await?;
                self.acks.push_back(PendingAck { ticket, message_id, answer });
            } else if let Some((ticket, message)) = self.unsent.messages.pop_front() {
                let parts = publications(self.setup, &mut self.journal, &message)?;
                self.publishing.becomes(ticket, parts.len());
                self.unsent.parts = parts.into_iter().map(|part| (ticket, part)).collect();
            } else {
                self.note_arrived()?;
                let Some((after, most)) = self.publishing.wanted() else { break };
                let batch = self.journal.own_after(after, most)?;
                self.publishing.read_up_to(batch.looked_at, batch.more);
                let generation = self.journal.generation()?;
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
    ) -> Result<Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>, Error> {
        let message = PublishMessage::build()
            .payload(payload.encode().into())
            .message_id(message_id)
            .expected_stream(stream_name(&self.setup.team));
        let sent = self.connection.context.send_publish(subject, message).await;
        sent.map(IntoFuture::into_future).map_err(|error| failed("a message cannot be published", &error))
    }

    /// The server answered the oldest message that it had not answered; perhaps others, too.
    fn answered(&mut self, mut answer: Result<PublishAck, PublishError>) -> Result<(), Error> {
        loop {
            let Some(pending) = self.acks.pop_front() else { break };
            let ack = answer
                .map_err(|error| self.connection.refused("a message was not taken", &error.to_string()))?;
            self.publishing.confirmed(pending.ticket);
            self.state.took(LastPublished { sequence: ack.sequence, message_id: pending.message_id });
            match self.acks.front_mut().and_then(|next| ready_now(next.answer.as_mut())) {
                Some(next) => answer = next,
                None => break,
            }
        }
        self.note_arrived()
    }

    /// Stores how far the stream has everything.
    fn note_arrived(&mut self) -> Result<(), Error> {
        let end = self.publishing.arrived();
        let is_further = end.as_ref().is_some_and(|end| end.seq > self.published);
        let is_complete = match &end {
            Some(end) => end.seq >= self.published,
            None => self.state.again_from.is_some() && self.publishing.is_done(),
        };
        if is_complete {
            self.state.is_complete(IdSource::now().unix_ms);
        }
        if is_complete || end.is_some() {
            self.check_known()?;
            // Before the place: a place whose message is not known to the next connection could be lost unnoticed.
            self.store_state()?;
        }
        if let Some(end) = end.filter(|_| is_further) {
            self.published = end.seq;
            let key = self.setup.export_key();
            self.journal.advance_export(&key, &end.into(), IdSource::now().unix_ms)?;
        }
        Ok(())
    }

    /// Ends a connection to a team that was removed here: nothing of it is stored again.
    fn check_known(&mut self) -> Result<(), Error> {
        let is_known = self.journal.team_note(&self.setup.export_key())?.is_some();
        is_known.then_some(()).ok_or_else(|| Error::Removed { name: self.setup.team.clone() })
    }

    fn store_state(&mut self) -> Result<(), Error> {
        Ok(self.journal.set_team_note(&self.setup.export_key(), &self.state.encode())?)
    }

    /// Publishes again what another machine lacks, if the stream does not have it.
    async fn serve(&mut self, want: &Want) -> Result<(), Error> {
        let is_changed = want.removed_before > self.state.covered_at() && self.check_coverage().await?;
        let after = match &want.after {
            Some(after) => {
                let asked = ReadPosition { cursor: after.clone().into(), catch_up: None };
                self.journal.resume_at(&asked)?.cursor.seq
            }
            None => self.journal.own_since(want.joined_ms.saturating_sub(milliseconds(CLOCKS_DIFFER)))?,
        };
        let is_wanted = self.state.wanted(after);
        if is_changed || is_wanted {
            self.store_state()?;
        }
        if is_wanted || (is_changed && self.state.again_from.is_some()) {
            // What is on its way is published again with the rest.
            self.acks.clear();
            self.unsent = Unsent::default();
            self.run = IdSource::now().unix_ms.max(self.run.saturating_add(1));
            self.publishing = Publishing::after(self.state.begin(self.published));
        }
        Ok(())
    }

    /// Another machine says that messages were removed from the stream. Finds out what it has of this one's, if that is true, and
    /// gives whether it is.
    async fn check_coverage(&mut self) -> Result<bool, Error> {
        let info = info_of(&self.stream).await?;
        if info.state.first_sequence <= self.state.covered_at() {
            return Ok(false);
        }
        let published = self.publishing.published_up_to();
        let found = coverage(self.setup, &mut self.journal, &self.stream, &info, published).await?;
        self.state.removed(found.from, found.at);
        Ok(true)
    }

    /// Asks the other machines for what was removed from the stream before it came here.
    async fn ask_if_removed(&mut self, reading: &mut Reading, wants: &[Want]) -> Result<(), Error> {
        let removed_before = wants.iter().map(|want| want.removed_before).max().unwrap_or_default();
        let first =
            if reading.may_have_to_ask(removed_before) { first_number(&self.stream).await? } else { 0 };
        if reading.must_ask(first) { self.ask(reading).await } else { Ok(()) }
    }

    /// Tells the other machines what this one has of theirs: they publish again what it lacks, if the stream does not have it.
    async fn ask(&mut self, reading: &mut Reading) -> Result<(), Error> {
        let stored = self.journal.team_positions(&self.setup.export_key())?;
        let stored = stored.into_iter().map(|(machine, cursor)| (machine, Position::from(cursor)));
        let stored = stored.filter(|(_, place)| !place.generation.is_empty()).take(MAX_WANTED);
        let want = TeamPayload::Want {
            stored: stored.collect(),
            joined_ms: self.state.joined_ms,
            removed_before: reading.removed_before(),
        };
        if reading.lacks_removed() {
            (self.progress)(TeamProgress::Removed);
        }
        let id = IdSource::now().unix_ms.to_string();
        reading.asked(self.publish_to_machines(&want, &id).await?);
        self.store_reading(reading)?;
        self.store_state()
    }

    fn store_reading(&mut self, reading: &Reading) -> Result<(), Error> {
        Ok(self.journal.set_team_note(&self.setup.received_key(), &reading.encode())?)
    }

    /// Tells the other machines something that is no message of the journal, and waits until the stream has it. Gives its number
    /// there.
    async fn publish_to_machines(&mut self, payload: &TeamPayload, id: &str) -> Result<u64, Error> {
        let subject = TeamSubject { machine: &self.setup.machine, scope: "link", audience: Audience::Want };
        let id = nats_message_id(&self.own, self.run, id);
        let answer = self.publish(subject.text(&self.setup.team), &id, payload).await?.await;
        let ack =
            answer.map_err(|error| self.connection.refused("a message was not taken", &error.to_string()))?;
        // If the server loses it, this machine says it again.
        self.state.took(LastPublished { sequence: ack.sequence, message_id: id });
        Ok(ack.sequence)
    }
}

/// The numbers of the first and the last message of a stream.
fn ends_of(stream: &Stream) -> (u64, u64) {
    let state = &stream.cached_info().state;
    (state.first_sequence, state.last_sequence)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn io(what: &str, source: std::io::Error) -> Error {
    Error::Io { what: what.to_owned(), source }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Team(words(&format!("{what}: {error}")))
}

/// The answer to the oldest message that has none.
async fn next_answer(acks: &mut VecDeque<PendingAck>) -> Result<PublishAck, PublishError> {
    match acks.front_mut() {
        Some(first) => first.answer.as_mut().await,
        None => pending().await,
    }
}
