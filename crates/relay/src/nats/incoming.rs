//! Messages of the stream, delivered by the consumer or read by number, and stored in batches.

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::{HeaderMap, HeaderValue};

use crate::error::Error;

use super::connection::{failed, words};
use super::next::next_now;
use super::subject::all_of;

#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) subject: &'a str,
    pub(crate) payload: &'a [u8],
    /// Its number in the stream.
    pub(crate) number: u64,
    /// Its `Nats-Msg-Id`.
    pub(crate) id: Option<&'a str>,
    /// The time at which the server stored it, by the server's clock, in milliseconds since 1970.
    pub(crate) stored_ms: i64,
    /// The number of further messages that the server has for this machine.
    pub(crate) waiting: u64,
}

impl<'a> Incoming<'a> {
    /// Converts a message that the consumer delivered.
    pub(crate) fn delivered(message: &'a Message) -> Result<Self, Error> {
        let info = message.info().map_err(|error| Error::Team(words(&error.to_string())))?;
        Ok(Self {
            subject: message.subject.as_str(),
            payload: &message.payload,
            number: info.stream_sequence,
            id: message.headers.as_ref().and_then(id_in),
            stored_ms: milliseconds(info.published.unix_timestamp_nanos()),
            waiting: info.pending,
        })
    }

    /// Converts a message that was read from the stream. `before` is the number before which the stream is read.
    pub(crate) fn read(message: &'a StreamMessage, before: u64) -> Self {
        Self {
            subject: message.subject.as_str(),
            payload: &message.payload,
            number: message.sequence,
            id: id_in(&message.headers),
            stored_ms: milliseconds(message.time.unix_timestamp_nanos()),
            waiting: before.saturating_sub(message.sequence),
        }
    }
}

fn id_in(headers: &HeaderMap) -> Option<&str> {
    headers.get("Nats-Msg-Id").map(HeaderValue::as_str)
}

fn milliseconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds / 1_000_000).unwrap_or(0)
}

/// Reads messages of the stream between two numbers, exclusive; at most [`BATCH`].
pub(crate) async fn read_between(
    stream: &Stream,
    team: &str,
    after: u64,
    before: u64,
) -> Result<Vec<StreamMessage>, Error> {
    let (subjects, mut next) = (all_of(team), after.saturating_add(1));
    let mut found = Vec::new();
    while next < before && found.len() < BATCH {
        match stream.get_first_raw_message_by_subject(&subjects, next).await {
            Ok(message) if message.sequence < before => {
                next = message.sequence.saturating_add(1);
                found.push(message);
            }
            Ok(_) => break,
            Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => break,
            Err(error) => return Err(failed("the stream cannot be read", &error)),
        }
    }
    Ok(found)
}

/// Messages stored in one transaction, for which other writers wait some milliseconds.
pub(crate) const BATCH: usize = 256;

type Delivery = Result<Message, pull::MessagesError>;

/// Returns a message with those that are already available after it.
pub(crate) async fn batch(first: Option<Delivery>, stream: &mut pull::Stream) -> Result<Vec<Message>, Error> {
    let mut batch = Vec::new();
    let mut message = first;
    loop {
        match message {
            Some(Ok(message)) => batch.push(message),
            // Earlier messages are delivered again.
            Some(Err(error)) => return Err(Error::Team(words(&format!("no messages come: {error}")))),
            None => return Err(Error::Team("the server ended the delivery of messages".to_owned())),
        }
        if batch.len() == BATCH {
            return Ok(batch);
        }
        match next_now(stream).await {
            Some(more) => message = more,
            None => return Ok(batch),
        }
    }
}
