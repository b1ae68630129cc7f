//! The consumer of this machine: how far the server has delivered the stream to it.
//!
//! The journal is the record of how far the stream is stored. What the server delivered into a connection that was lost is read
//! from the stream by its number, before what follows: the consumer would deliver it again behind that.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, FromConsumer, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::Stream;

use crate::error::Error;
use crate::team_setup::TeamSetup;

use super::connection::{Connection, failed, words};
use super::incoming::BATCH;
use super::subject::{all_of, consumer_name, machine_mark, stream_name};

/// How long the server waits for an acknowledgement before it delivers a message again. A batch is stored well within it.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// Messages on their way to this machine.
const MAX_ACK_PENDING: i64 = 2_048;
/// How long a request for messages waits at the server, and how often that says that it is there meanwhile.
/// Two times that are missed end the connection: only so a machine at a leaf node learns that this is cut off.
const PULL: (Duration, Duration) = (Duration::from_mins(2), Duration::from_secs(15));
/// How errors of requests begin.
const FAILED: &str = "the consumer of this machine cannot be used";

/// The consumer of this machine.
pub(crate) struct OwnConsumer(Consumer<pull::Config>);

impl OwnConsumer {
    /// The one that the server has, if it has one. One of another machine is refused.
    pub(crate) async fn find(
        connection: &mut Connection,
        setup: &TeamSetup,
        stream: &Stream,
    ) -> Result<Option<Self>, Error> {
        let name = consumer_name(&setup.machine);
        let info = match stream.consumer_info(&name).await {
            Ok(info) => info,
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(connection.refused(FAILED, &error.to_string())),
        };
        if info.config.description.as_deref() != Some(machine_mark(&setup.own_id()?).as_str()) {
            return Err(Error::Team(format!(
                "another machine is called {machine} in this team; choose another name, or if that machine is \
                 gone: nats consumer rm {stream} {name}",
                machine = setup.machine,
                stream = stream_name(&setup.team),
            )));
        }
        let config = pull::Config::try_from_consumer_config(info.config.clone());
        let config = config.map_err(|error| failed(FAILED, &error))?;
        Ok(Some(Self(Consumer::new(config, info, connection.context.clone()))))
    }

    /// Makes it. It delivers what is behind a number of the stream.
    pub(crate) async fn make(
        connection: &mut Connection,
        setup: &TeamSetup,
        stream: &Stream,
        after: u64,
    ) -> Result<Self, Error> {
        let name = consumer_name(&setup.machine);
        let config = pull::Config {
            durable_name: Some(name.clone()),
            name: Some(name),
            description: Some(machine_mark(&setup.own_id()?)),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: after.saturating_add(1) },
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: MAX_ACK_PENDING,
            filter_subject: all_of(&setup.team),
            ..pull::Config::default()
        };
        let made = stream.create_consumer(config).await;
        Ok(Self(made.map_err(|error| connection.refused(FAILED, &error.to_string()))?))
    }

    /// Up to which number of the stream this machine has acknowledged everything.
    pub(crate) fn acknowledged_to(&self) -> u64 {
        self.0.cached_info().ack_floor.stream_sequence
    }

    /// Up to which number of the stream it has delivered everything.
    pub(crate) fn delivered_to(&self) -> u64 {
        self.0.cached_info().delivered.stream_sequence
    }

    /// A consumer for a machine that has stored the stream up to a number: this one, or one that takes its place if too much would
    /// have to be read without it, or if the server lost the end of the stream. To make one is expensive in a cluster.
    pub(crate) async fn for_machine_at(
        self,
        stored_to: u64,
        connection: &mut Connection,
        setup: &TeamSetup,
        stream: &Stream,
    ) -> Result<Self, Error> {
        let delivered_to = self.delivered_to();
        let is_in_stream = delivered_to <= stream.cached_info().state.last_sequence;
        if is_in_stream && delivered_to.saturating_sub(stored_to) <= MAX_ACK_PENDING.unsigned_abs() {
            return Ok(self);
        }
        let removed = stream.delete_consumer(&self.0.cached_info().name).await;
        removed.map_err(|error| connection.refused(FAILED, &error.to_string()))?;
        Self::make(connection, setup, stream, stored_to).await
    }

    /// What it delivers.
    pub(crate) async fn messages(&self) -> Result<pull::Stream, Error> {
        let stream = self.0.stream().max_messages_per_batch(BATCH).expires(PULL.0).heartbeat(PULL.1);
        stream.messages().await.map_err(|error| failed("no messages can be asked for", &error))
    }
}

/// Tells the server that a batch is stored.
pub(crate) async fn acknowledge(batch: &[Message]) -> Result<(), Error> {
    for message in batch {
        let acknowledged = message.ack().await;
        acknowledged.map_err(|error| Error::Team(words(&error.to_string())))?;
    }
    Ok(())
}
