//! A plain NATS client that bypasses Ringer.

use std::pin::Pin;

use async_nats::jetstream::consumer::{Info, pull};
use async_nats::jetstream::stream::Config;
use futures_core::Stream;

/// Runs a future to completion.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// Returns a message as a machine publishes it, with an id derived from its number.
pub(crate) fn message(seq: i64, recipient: &str, body: &str) -> String {
    let id = format!("01890000-0000-7000-8000-{:012x}", seq & 0xffff_ffff);
    format!(
        r#"{{"type":"message","generation":"g","sent_ms":0,"message":{{"seq":{seq},"id":"{id}","unix_ms":0,"tag":"status","scope":"global","sender":"eve","recipient":"{recipient}","body":"{body}"}}}}"#
    )
}

/// Publishes payloads, and waits until the stream has them.
pub(crate) async fn publish(
    url: &str,
    seed: Option<&str>,
    subject: &str,
    payloads: &[String],
) -> Result<(), String> {
    let mut options = async_nats::ConnectOptions::new().custom_inbox_prefix("_INBOX.eve");
    if let Some(seed) = seed {
        options = options.nkey(seed.to_owned());
    }
    let client = options.connect(url).await.map_err(|error| error.to_string())?;
    let mut context = async_nats::jetstream::new(client);
    context.set_timeout(std::time::Duration::from_secs(2));
    for payload in payloads {
        let sent = context.publish(subject.to_owned(), payload.clone().into()).await;
        sent.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Publishes payloads outside the stream, which are not acknowledged, and waits until the server has read them.
pub(crate) async fn publish_core(url: &str, seed: Option<&str>, subject: &str, payloads: &[String]) {
    let mut options = async_nats::ConnectOptions::new();
    if let Some(seed) = seed {
        options = options.nkey(seed.to_owned());
    }
    let client = options.connect(url).await.expect("a connection");
    for payload in payloads {
        client.publish(subject.to_owned(), payload.clone().into()).await.expect("it is sent");
    }
    client.flush().await.expect("it is sent");
}

/// Fetches up to `count` messages of a consumer without acknowledging them. Returns their number.
pub(crate) async fn take(url: &str, consumer: &str, count: usize) -> usize {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    let consumer = stream.get_consumer::<pull::Config>(consumer).await.expect("a consumer");
    let batch = consumer.batch().max_messages(count).expires(std::time::Duration::from_secs(20));
    let mut batch = batch.messages().await.expect("messages");
    let mut taken = 0;
    while taken < count {
        let next = std::future::poll_fn(|context| Pin::new(&mut batch).poll_next(context)).await;
        next.expect("a message").expect("a message");
        taken += 1;
    }
    taken
}

/// A pull request whose messages are never read, as on a half-open connection.
pub(crate) struct OpenRequest {
    _runtime: tokio::runtime::Runtime,
    _batch: pull::Batch,
}

impl OpenRequest {
    pub(crate) fn of(url: &str, consumer: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let batch = runtime.block_on(async {
            let client = async_nats::connect(url).await.expect("a connection");
            let context = async_nats::jetstream::new(client.clone());
            let stream = context.get_stream("ringer-t").await.expect("a stream");
            let consumer = stream.get_consumer::<pull::Config>(consumer).await.expect("a consumer");
            let batch = consumer.batch().max_messages(5).expires(std::time::Duration::from_mins(2));
            let batch = batch.messages().await.expect("messages");
            client.flush().await.expect("the server has it");
            batch
        });
        Self { _runtime: runtime, _batch: batch }
    }
}

/// Creates the stream of the team with that many replicas.
pub(crate) async fn make_stream(url: &str, replicas: usize) -> Result<(), String> {
    make_stream_with(url, Config { num_replicas: replicas, ..Config::default() }).await
}

/// The same with other settings.
pub(crate) async fn make_stream_with(url: &str, settings: Config) -> Result<(), String> {
    let client = async_nats::connect(url).await.map_err(|error| error.to_string())?;
    let config = Config { name: "ringer-t".to_owned(), subjects: vec!["ringer.t.>".to_owned()], ..settings };
    let made = async_nats::jetstream::new(client).create_stream(config).await;
    made.map(drop).map_err(|error| error.to_string())
}

/// Removes all messages of the stream of the team, as `nats stream purge` does.
pub(crate) async fn purge(url: &str) {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    stream.purge().await.expect("an empty stream");
}

/// Removes the messages of one machine, as `nats stream purge --subject` does.
pub(crate) async fn purge_machine(url: &str, machine: &str) {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    stream.purge().filter(format!("ringer.t.{machine}.>")).await.expect("they are removed");
}

/// Removes the last message, as `nats stream rmm` does.
pub(crate) async fn remove_last(url: &str) {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    let last = stream.cached_info().state.last_sequence;
    assert!(stream.delete_message(last).await.expect("an answer"), "it is removed");
}

/// Returns the number of messages in the team's stream.
pub(crate) async fn count(url: &str) -> u64 {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    stream.cached_info().state.messages
}

/// Returns the server's information about a consumer.
pub(crate) async fn consumer_info(url: &str, consumer: &str) -> Info {
    let client = async_nats::connect(url).await.expect("a connection");
    let stream = async_nats::jetstream::new(client).get_stream("ringer-t").await.expect("a stream");
    stream.consumer_info(consumer).await.expect("a consumer")
}

/// Returns the number of messages that a consumer has not acknowledged.
pub(crate) async fn unread(url: &str, consumer: &str) -> u64 {
    let info = consumer_info(url, consumer).await;
    info.num_pending + info.num_ack_pending as u64
}
