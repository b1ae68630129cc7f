//! The consumer of this machine: how far the server has delivered the stream to it.
//!
//! The journal is the record of how far the stream is stored. Messages that the server delivered into a lost connection are read
//! from the stream by number, before later ones: the consumer would redeliver them after those.

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

/// How long the server waits for an acknowledgement before it redelivers a message. A batch is stored well within it.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// The most messages in flight to this machine.
const MAX_ACK_PENDING: i64 = 2_048;
/// How long a pull request waits at the server, and the interval of its heartbeats. Two missed heartbeats end the connection:
/// this is the only way in which a machine at a leaf node notices that the node is cut off.
const PULL: (Duration, Duration) = (Duration::from_mins(2), Duration::from_secs(15));
/// The prefix of errors.
const FAILED: &str = "the consumer of this machine cannot be used";

/// The consumer of this machine.
pub(crate) struct OwnConsumer(Consumer<pull::Config>);

impl OwnConsumer {
    /// Returns the server's consumer for this machine, if there is one. A consumer of another machine is refused.
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

    /// Creates the consumer. It delivers messages after a number of the stream.
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

    /// Returns the number of the stream up to which this machine has acknowledged everything.
    pub(crate) fn acknowledged_to(&self) -> u64 {
        self.0.cached_info().ack_floor.stream_sequence
    }

    /// Returns the number of the stream up to which everything was delivered.
    pub(crate) fn delivered_to(&self) -> u64 {
        self.0.cached_info().delivered.stream_sequence
    }

    /// Returns a consumer for a machine that has stored the stream up to a number: this one, or a new one if too much would have
    /// to be read by number, or if the server lost the end of the stream. Creating a consumer is expensive in a cluster.
    pub(crate) async fn reuse_or_recreate(
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

    /// Returns the stream of deliveries.
    pub(crate) async fn messages(&self) -> Result<pull::Stream, Error> {
        let stream = self.0.stream().max_messages_per_batch(BATCH).expires(PULL.0).heartbeat(PULL.1);
        stream.messages().await.map_err(|error| failed("no messages can be asked for", &error))
    }
}

/// Acknowledges a stored batch.
pub(crate) async fn acknowledge(batch: &[Message]) -> Result<(), Error> {
    for message in batch {
        let acknowledged = message.ack().await;
        acknowledged.map_err(|error| Error::Team(words(&error.to_string())))?;
    }
    Ok(())
}
