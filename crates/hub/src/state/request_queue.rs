//! The queue of requests, which are answered in order.

use std::collections::VecDeque;
use std::time::Duration;

use crate::message::{Request, RequestId};

/// How long a request waits for the messages that were in the journal before it. Clients give up after 5 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The next step of a request.
pub(super) enum RequestStep<F> {
    /// Handle the request.
    Handle(Request),
    /// Answer, once the request's messages have been read.
    Finish(F),
}

/// A waiting request. Each connection has one at a time, so there are few.
pub(super) struct QueuedRequest<F> {
    pub(super) id: RequestId,
    pub(super) step: RequestStep<F>,
    /// The last message that was in the journal when the request came, and that its answer takes into account.
    pub(super) up_to: i64,
    /// When to answer it, whatever has been read by then.
    pub(super) deadline: Duration,
}

/// The requests without an answer. `F` makes the answer once the request's messages have been read.
pub(super) struct RequestQueue<F> {
    queue: VecDeque<QueuedRequest<F>>,
}

impl<F> RequestQueue<F> {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::new() }
    }

    /// Adds a request. It is answered once the journal is read up to `up_to`, so that its client sees its own messages.
    pub(super) fn add(&mut self, id: RequestId, request: Request, up_to: i64, now: Duration) {
        let (step, deadline) = (RequestStep::Handle(request), now + ANSWER_WITHIN);
        self.queue.push_back(QueuedRequest { id, step, up_to, deadline });
    }

    /// Puts a request with a second step back to the front.
    pub(super) fn put_back(&mut self, request: QueuedRequest<F>) {
        self.queue.push_front(request);
    }

    pub(super) fn first(&self) -> Option<&QueuedRequest<F>> {
        self.queue.front()
    }

    pub(super) fn take_first(&mut self) -> Option<QueuedRequest<F>> {
        self.queue.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.queue.front().map(|request| request.deadline)
    }
}
