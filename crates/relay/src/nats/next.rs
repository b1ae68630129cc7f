//! Polling helpers for streams and futures.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

/// Waits for the next item.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// Returns the next item if it is ready.
pub(crate) async fn next_now<S: Stream + Unpin>(stream: &mut S) -> Option<Option<S::Item>> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *stream).poll_next(context) {
            Poll::Ready(item) => Some(item),
            Poll::Pending => None,
        })
    })
    .await
}

/// Returns the output of a future if it is ready.
pub(crate) fn ready_now<T>(future: Pin<&mut (dyn Future<Output = T> + Send)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
