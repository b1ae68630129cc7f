//! Requests in the order in which they are answered.

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

/// What is left to do for a request.
#[derive(Debug)]
pub(super) enum RequestStep {
    /// All of it.
    Handle(Request),
    /// The answer, once what the request wrote has been read.
    Finish(Continuation),
}

/// How a request is answered once what it wrote has been read.
#[derive(Debug, PartialEq)]
pub(super) enum Continuation {
    /// A message was appended.
    Created { id: MessageId },
    /// A mark was appended; these numbers were unread and listed before it.
    Marked { unread: usize, listed: usize },
    /// Read notifications were removed; this number was listed before.
    Dismissed { listed: usize },
    /// A notification was snoozed.
    Snoozed { id: MessageId },
    /// A mute was set or removed.
    Muted,
    /// A command of this kind was taken back; these numbers were unread and listed before.
    Undone { kind: UndoKind, unread: usize, listed: usize },
    /// The settings were read again; before, they had this revision.
    Reloaded { revision: u64 },
    /// The answer is known already.
    Value(Value),
    /// tmux selects a pane, off the loop.
    Focus { pane: TmuxPane, opening: Option<(MessageId, Value)> },
}

/// A request that waits. Each connection waits for one at a time, so there are few of them.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) id: RequestId,
    pub(super) step: RequestStep,
    /// The number of the last message that was in the journal when it came: its answer takes that one into account.
    pub(super) up_to: i64,
    /// When it is answered with what has been read by then.
    pub(super) deadline: Duration,
}

/// Requests that have not been answered yet.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    queue: VecDeque<QueuedRequest>,
}

impl RequestQueue {
    /// A request came. It is answered once the journal has been read up to there, so that its client sees what it wrote.
    pub(super) fn add(&mut self, id: RequestId, request: Request, up_to: i64, now: Duration) {
        let (step, deadline) = (RequestStep::Handle(request), now + ANSWER_WITHIN);
        self.queue.push_back(QueuedRequest { id, step, up_to, deadline });
    }

    /// Puts a request back in front: it has a second step.
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
