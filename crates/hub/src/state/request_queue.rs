//! The queue of requests, which are answered in order.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::attention::UndoKind;
use serde_json::Value;

use crate::hosts::tmux::TmuxPane;
use crate::message::RequestId;
use crate::socket::requests::Request;

/// How long a request waits for the messages that were in the journal before it. Clients give up after 5 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The next step of a request.
#[derive(Debug)]
pub(super) enum RequestStep {
    /// Handle the request.
    Handle(Request),
    /// Answer, once the request's messages have been read.
    Finish(Continuation),
}

/// How to answer a request once its messages have been read.
#[derive(Debug, PartialEq)]
pub(super) enum Continuation {
    /// A message was appended.
    Created { id: MessageId },
    /// A mark was appended. The counts are from before it.
    Marked { unread: usize, listed: usize },
    /// Read notifications were removed. The count is from before it.
    Dismissed { listed: usize },
    /// A notification was snoozed.
    Snoozed { id: MessageId },
    /// A mute was set or removed.
    Muted,
    /// A command of this kind was undone. The counts are from before it.
    Undone { kind: UndoKind, unread: usize, listed: usize },
    /// The settings were reloaded. The revision is from before it.
    Reloaded { revision: u64 },
    /// The answer is known already.
    Value(Value),
    /// tmux selects a pane, off the loop.
    Focus { pane: TmuxPane, opening: Option<(MessageId, Value)> },
}

/// A waiting request. Each connection has one at a time, so there are few.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) id: RequestId,
    pub(super) step: RequestStep,
    /// The last message that was in the journal when the request came, and that its answer takes into account.
    pub(super) up_to: i64,
    /// When to answer it, whatever has been read by then.
    pub(super) deadline: Duration,
}

/// The requests without an answer.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    queue: VecDeque<QueuedRequest>,
}

impl RequestQueue {
    /// Adds a request. It is answered once the journal is read up to `up_to`, so that its client sees its own messages.
    pub(super) fn add(&mut self, id: RequestId, request: Request, up_to: i64, now: Duration) {
        let (step, deadline) = (RequestStep::Handle(request), now + ANSWER_WITHIN);
        self.queue.push_back(QueuedRequest { id, step, up_to, deadline });
    }

    /// Puts a request with a second step back to the front.
    pub(super) fn put_back(&mut self, request: QueuedRequest) {
        self.queue.push_front(request);
    }

    pub(super) fn first(&self) -> Option<&QueuedRequest> {
        self.queue.front()
    }

    pub(super) fn take_first(&mut self) -> Option<QueuedRequest> {
        self.queue.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.queue.front().map(|request| request.deadline)
    }
}
