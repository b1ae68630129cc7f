//! Messages that the server delivers, taken together as they came.

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;

use crate::error::Error;

use super::connection::words;
use super::next::next_now;

/// Messages that are stored in one transaction, for which other writers wait some milliseconds.
pub(crate) const BATCH: usize = 256;

type Incoming = Result<Message, pull::MessagesError>;

/// A message, and those that came with it.
pub(crate) async fn batch(first: Option<Incoming>, stream: &mut pull::Stream) -> Result<Vec<Message>, Error> {
    let mut batch = Vec::new();
    let mut message = first;
    loop {
        match message {
            Some(Ok(message)) => batch.push(message),
            // What came before is delivered again.
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
