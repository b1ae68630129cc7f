//! The next item of a stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;

/// Waits for it.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// The same, if it is there: `None` if it is not.
pub(crate) async fn next_now<S: Stream + Unpin>(stream: &mut S) -> Option<Option<S::Item>> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *stream).poll_next(context) {
            Poll::Ready(item) => Some(item),
            Poll::Pending => None,
        })
    })
    .await
}
