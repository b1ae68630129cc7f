//! The same client without Ringer: publishes into a stream, and pulls from it.

use std::collections::VecDeque;
use std::future::{IntoFuture, poll_fn};
use std::pin::Pin;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::{Context, Message, stream};
use futures_core::Stream;
use tokio::runtime::Runtime;

/// The same window as Ringer's.
const WINDOW: usize = 256;
const PAYLOAD: &str =
    "{\"type\":\"message\",\"message\":{\"body\":\"hello\",\"scope\":\"global\",\"sender\":\"system\"}}";

/// A publisher and a consumer, each with a connection.
pub(crate) struct Wire {
    runtime: Runtime,
    context: Context,
    messages: pull::Stream,
}

async fn next(messages: &mut pull::Stream) -> Message {
    let message = poll_fn(|context| Pin::new(&mut *messages).poll_next(context)).await;
    message.expect("a message").expect("a message")
}

impl Wire {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (context, messages) = runtime.block_on(async {
            let context = async_nats::jetstream::new(async_nats::connect(url).await.expect("a connection"));
            let other = async_nats::jetstream::new(async_nats::connect(url).await.expect("a connection"));
            let config = stream::Config {
                name: "raw".to_owned(),
                subjects: vec!["raw.>".to_owned()],
                ..stream::Config::default()
            };
            let stream = other.get_or_create_stream(config).await.expect("a stream");
            stream.purge().await.expect("an empty stream");
            let config = pull::Config { durable_name: Some("raw".to_owned()), ..pull::Config::default() };
            let consumer = stream.get_or_create_consumer("raw", config).await.expect("a consumer");
            (context, consumer.stream().messages().await.expect("messages"))
        });
        Self { runtime, context, messages }
    }

    /// Transfers one message, publication to receipt.
    pub(crate) fn round(&mut self) -> Duration {
        let Self { runtime, context, messages } = self;
        runtime.block_on(async {
            let begun = Instant::now();
            let ack = context.publish("raw.x", PAYLOAD.into()).await.expect("published");
            let message = next(messages).await;
            let took = begun.elapsed();
            message.ack().await.expect("acknowledged");
            ack.await.expect("an answer");
            took
        })
    }

    /// Transfers many messages.
    pub(crate) fn burst(&mut self, count: usize) -> Duration {
        let Self { runtime, context, messages } = self;
        runtime.block_on(async {
            let begun = Instant::now();
            let publish = async {
                let mut acks = VecDeque::new();
                for _ in 0..count {
                    if acks.len() == WINDOW {
                        let ack: async_nats::jetstream::context::PublishAckFuture =
                            acks.pop_front().expect("an answer");
                        ack.into_future().await.expect("an answer");
                    }
                    acks.push_back(context.publish("raw.x", PAYLOAD.into()).await.expect("published"));
                }
                for ack in acks {
                    ack.await.expect("an answer");
                }
            };
            let receive = async {
                for _ in 0..count {
                    next(messages).await.ack().await.expect("acknowledged");
                }
            };
            tokio::join!(publish, receive);
            begun.elapsed()
        })
    }
}
