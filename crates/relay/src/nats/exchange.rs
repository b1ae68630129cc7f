//! One connection of this machine to its team: publishes this machine's messages, and stores those of the others.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use async_nats::Client;
use async_nats::jetstream::stream::Stream;
use ringer_journal::{IdSource, Journal, JournalWatch};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::Error;
use crate::exchange::ConnectionEnd;
use crate::position::{Position, first_position};
use crate::team_setup::{TeamProgress, TeamSetup};

use super::agent_service::AgentService;
use super::answers::AnswerService;
use super::connection::{Connection, failed, first_number, has, message_id_at};
use super::consumer::{OwnConsumer, acknowledge};
use super::inbound::Inbound;
use super::incoming::{Incoming, batch, read_between};
use super::next::next;
use super::outbound::Outbound;
use super::payload::{MAX_WANTED, TeamPayload};
use super::reading::Reading;
use super::receiving::ResendRequest;
use super::state::TeamState;
use super::stream_probe::{domains_of_streams, several_streams_error};

pub(crate) struct TeamExchange<'a> {
    setup: &'a TeamSetup,
    journal: Journal,
    watch: JournalWatch,
    connection: Connection,
    stream: Stream,
    outbound: Outbound<'a>,
    progress: &'a mut dyn FnMut(TeamProgress),
}

/// Connects, and runs until the connection is lost. If the future is dropped before, `connected` has the client.
pub(crate) async fn exchange(
    setup: &TeamSetup,
    connected: &OnceCell<Client>,
    progress: &mut dyn FnMut(TeamProgress),
) -> Result<ConnectionEnd, Error> {
    let (mut exchange, consumer, reading) = TeamExchange::begin(setup, progress).await?;
    // Each connection has its own cell, so it is set once.
    let _ = connected.set(exchange.connection.client.clone());
    exchange.run(consumer, reading).await
}

/// Joins a team: from here on no message of either side is left out. Returns the version of the server.
pub(crate) async fn join(setup: &TeamSetup) -> Result<String, Error> {
    let mut ignored = |_| {};
    let (mut exchange, ..) = TeamExchange::begin(setup, &mut ignored).await?;
    let sent_ms = IdSource::now().unix_ms;
    let TeamExchange { outbound, connection, .. } = &mut exchange;
    let hello = TeamPayload::Hello { sent_ms };
    outbound.publish_to_machines(connection, &hello, &sent_ms.to_string()).await?;
    let domains = domains_of_streams(&connection.client, setup).await;
    let domains = domains.map_err(|error| failed("a message cannot be published", &error))?;
    if let Some(why) = several_streams_error(setup, &domains) {
        return Err(Error::Team(why));
    }
    Ok(exchange.connection.version())
}

impl<'a> TeamExchange<'a> {
    async fn begin(
        setup: &'a TeamSetup,
        progress: &'a mut dyn FnMut(TeamProgress),
    ) -> Result<(Self, OwnConsumer, Reading), Error> {
        // Opening the journal creates the home.
        let mut journal = Journal::open(&setup.home)?;
        let own = setup.own_id()?;
        let watch = JournalWatch::register(&mut journal)?;
        journal.take_reopened();
        let mut connection = Connection::open(setup).await?;
        let stream = connection.stream(setup).await?;
        let created = stream.cached_info().created;
        let made_ms = i64::try_from(created.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
        let created = created.to_string();
        let (first, last) = ends_of(&stream);
        let key = setup.export_key();
        let began = first_position(&setup.home, &mut journal, &key)?;
        let published = journal.export_position(&key, IdSource::now().unix_ms)?.seq;
        let known = journal.team_note(&key)?.and_then(|note| TeamState::read(&note));
        let is_same_stream = known.as_ref().is_some_and(|known| known.stream == created);
        let known_reading = journal.team_note(&setup.received_key())?.and_then(|note| Reading::read(&note));
        let known_reading = known_reading.filter(|_| is_same_stream);
        let has_received = match known_reading.as_ref().and_then(Reading::furthest) {
            Some(furthest) => has(&stream, &furthest).await?,
            None => true,
        };
        let has_published =
            match known.as_ref().filter(|_| is_same_stream).and_then(|known| known.last.as_ref()) {
                Some(last) => has(&stream, last).await?,
                None => true,
            };
        let consumer = OwnConsumer::find(&mut connection, setup, &stream).await?;
        let mut reading = match known_reading.clone() {
            // The last published message is often further in the stream than the last received one.
            Some(reading) if has_received && has_published => reading,
            // The machine is joining, or its journal was removed.
            None if known.is_none() => {
                let after = consumer.as_ref().map_or(last, OwnConsumer::acknowledged_to);
                Reading::after(after, message_id_at(&stream, after).await?.as_deref())
            }
            reading => reading.unwrap_or_default().restarted(),
        };
        reading.connected(first, last);
        let consumer = match consumer {
            Some(consumer) => consumer,
            None => OwnConsumer::make(&mut connection, setup, &stream, reading.whole_to()).await?,
        };
        let now_ms = IdSource::now().unix_ms;
        let next = last.saturating_add(1);
        let mut state = known.clone().unwrap_or_else(|| TeamState::joined(&created, next, began, now_ms));
        state.connected(next);
        // The journal was removed: every message in the new one was written after this machine had joined.
        if known.is_none() && began < published {
            state.again(began);
        }
        let mut must_request = reading.must_request(first);
        if state.stream != created {
            state.switch_stream(&created, made_ms, next, published);
            must_request = true;
        } else if !has_published {
            state.stream_lost_end(journal.own_since(TeamState::lost_since(now_ms))?, now_ms);
            // The lost messages may include ones that this machine lacks.
            must_request = true;
        }
        state.set_stream_created(made_ms);
        let outbound = Outbound::new(setup, own, connection.context.clone(), state, published);
        let mut exchange = Self { setup, journal, watch, connection, stream, outbound, progress };
        if must_request {
            // The identity of the old stream is replaced only once the others know what is missing here.
            exchange.ask(&mut reading).await?;
        } else if known_reading.as_ref() != Some(&reading) {
            exchange.store_reading(&reading)?;
        }
        if known.as_ref() != Some(exchange.outbound.state()) {
            exchange.outbound.store_state(&mut exchange.journal)?;
        }
        Ok((exchange, consumer, reading))
    }

    async fn run(&mut self, consumer: OwnConsumer, reading: Reading) -> Result<ConnectionEnd, Error> {
        let stored_to = reading.whole_to();
        let consumer =
            consumer.reuse_or_recreate(stored_to, &mut self.connection, self.setup, &self.stream).await?;
        let (server, address) = (self.connection.version(), self.connection.address.clone());
        (self.progress)(TeamProgress::Connected { server, address });
        let mut inbound = Inbound::new(self.setup, self.outbound.state().is_first_stream(), reading);
        self.read_before(consumer.delivered_to().saturating_add(1), &mut inbound).await?;
        let mut stream = consumer.messages().await?;
        let bell =
            readable(self.watch.as_fd()).map_err(|source| io("cannot wait for the journal", source))?;
        // Each machine has a consumer.
        let machines = self.stream.cached_info().state.consumer_count;
        let mut agents = AgentService::begin(self.setup, &self.connection.client, machines).await?;
        let mut answers = AnswerService::begin(self.setup, &self.connection.client).await?;
        loop {
            self.outbound.publish_more(&mut self.journal).await?;
            tokio::select! {
                problem = self.connection.problems.recv() => {
                    return Err(Error::Team(problem.unwrap_or_else(|| "the connection ended".to_owned())));
                }
                ready = bell.readable() => {
                    ready.map_err(|source| io("cannot wait for the journal", source))?.clear_ready();
                    self.look()?;
                    agents.changed();
                }
                Some(why) = self.connection.refusals.recv() => {
                    agents.refused(&why);
                    (self.progress)(TeamProgress::AgentsRefused(why));
                }
                event = agents.next() => agents.handle(&mut self.journal, event).await?,
                answer = self.outbound.next_ack() => {
                    self.outbound.handle_ack(&mut self.journal, &mut self.connection, answer)?;
                }
                (request, give) = answers.next() => answers.give(&request, give),
                message = next(&mut stream) => {
                    let batch = batch(message, &mut stream).await?;
                    let messages: Vec<Incoming<'_>> =
                        batch.iter().map(Incoming::delivered).collect::<Result<_, _>>()?;
                    let mut messages = messages.as_slice();
                    while let Some(next) = messages.first() {
                        self.read_before(next.number, &mut inbound).await?;
                        let count = inbound.reading().follow(messages.iter().map(|message| message.number));
                        let (following, later) = messages.split_at(count);
                        self.store(following, &mut inbound).await?;
                        messages = later;
                    }
                    acknowledge(&batch).await?;
                }
            }
        }
    }

    /// Reads and stores messages of the stream before a number that are not stored: they were lost in transit, or are in flight
    /// to a previous connection. Skips messages that were removed from the stream.
    async fn read_before(&mut self, number: u64, inbound: &mut Inbound<'_>) -> Result<(), Error> {
        if number <= inbound.reading().whole_to().saturating_add(1) {
            return Ok(());
        }
        inbound.reading().check_removed(first_number(&self.stream).await?);
        loop {
            let after = inbound.reading().whole_to();
            let found = read_between(&self.stream, &self.setup.team, after, number).await?;
            if found.is_empty() {
                inbound.reading().skip_to(number);
                return Ok(());
            }
            let messages: Vec<Incoming<'_>> =
                found.iter().map(|message| Incoming::read(message, number)).collect();
            self.store(&messages, inbound).await?;
        }
    }

    /// Stores messages of the stream, and serves the requests in them.
    async fn store(&mut self, messages: &[Incoming<'_>], inbound: &mut Inbound<'_>) -> Result<(), Error> {
        self.setup.check_known(&mut self.journal)?;
        let (taken, requests) = inbound.store(&mut self.journal, messages)?;
        for want in &requests {
            self.outbound.serve(&mut self.journal, &self.stream, want).await?;
        }
        (self.progress)(taken);
        self.request_if_removed(inbound.reading(), &requests).await
    }

    /// The journal has changed.
    fn look(&mut self) -> Result<(), Error> {
        self.watch.prepare(&mut self.journal)?;
        if self.journal.take_reopened() {
            return Err(Error::Team("the journal was replaced; the connection begins anew".to_owned()));
        }
        self.outbound.changed();
        Ok(())
    }

    /// Asks the other machines for messages that were removed from the stream before they arrived here.
    async fn request_if_removed(
        &mut self,
        reading: &mut Reading,
        requests: &[ResendRequest],
    ) -> Result<(), Error> {
        let removed_before = requests.iter().map(|want| want.removed_before).max().unwrap_or_default();
        let first =
            if reading.request_was_removed(removed_before) { first_number(&self.stream).await? } else { 0 };
        if reading.must_request(first) { self.ask(reading).await } else { Ok(()) }
    }

    /// Publishes how far this machine has the others' messages: they republish what it lacks, if the stream does not have it.
    async fn ask(&mut self, reading: &mut Reading) -> Result<(), Error> {
        let stored = self.journal.team_positions(&self.setup.export_key())?;
        let stored = stored.into_iter().map(|(machine, cursor)| (machine, Position::from(cursor)));
        let stored = stored.filter(|(_, place)| !place.generation.is_empty()).take(MAX_WANTED);
        let want = TeamPayload::Want {
            stored: stored.collect(),
            joined_ms: self.outbound.state().joined_ms,
            removed_before: reading.removed_before(),
        };
        if reading.has_unrequested_removal() {
            (self.progress)(TeamProgress::Removed);
        }
        let id = IdSource::now().unix_ms.to_string();
        reading.asked(self.outbound.publish_to_machines(&mut self.connection, &want, &id).await?);
        self.store_reading(reading)?;
        self.outbound.store_state(&mut self.journal)
    }

    fn store_reading(&mut self, reading: &Reading) -> Result<(), Error> {
        Ok(self.journal.set_team_note(&self.setup.received_key(), &reading.encode())?)
    }
}

/// Returns the numbers of the first and the last message of a stream.
fn ends_of(stream: &Stream) -> (u64, u64) {
    let state = &stream.cached_info().state;
    (state.first_sequence, state.last_sequence)
}

fn io(what: &str, source: io::Error) -> Error {
    Error::Io { what: what.to_owned(), source }
}

/// Duplicates a descriptor and registers the copy with the runtime, for readability.
pub(crate) fn readable(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<OwnedFd>> {
    let copy = fd.try_clone_to_owned()?;
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
    )]
    AsyncFd::with_interest(copy, Interest::READABLE)
}
