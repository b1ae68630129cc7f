//! What other threads send to the loop, and how it answers.

use ringer_core::MessageId;
use ringer_ipc::ApiError;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::event_log::Subscription;
use crate::message::LoopEvent;
use crate::request::ConnectionId;
use crate::tmux::TmuxPane;
use crate::view::ListedNotification;

/// What other threads send to the loop.
#[derive(Debug)]
pub(crate) enum Input {
    /// Something happened.
    Event(LoopEvent),
    /// A client asks for something.
    Request {
        connection: ConnectionId,
        /// The process that connected, if it has a number here.
        peer: Option<u32>,
        method: String,
        params: Value,
        reply: oneshot::Sender<Answered>,
    },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    /// About how many of the messages that were in the journal before the request the answer does not take into account.
    pub(crate) behind: u64,
}

/// What a connection does about an answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Writes it.
    Result(Result<Value, ApiError>),
    /// Writes these, as they are shown on the socket.
    Notifications { rows: Vec<ListedNotification>, clock: Clock },
    /// Lets tmux select a pane, and says what came of it; see [`crate::message::Answer::Focus`].
    Focus { pane: TmuxPane, opening: Option<(MessageId, Value)> },
    /// Asks the desktop; see [`crate::message::Answer::Environment`].
    Environment { environment: Value, offered: Option<String> },
    /// Writes events until the connection ends.
    Subscribed(Subscription),
    /// Is a host from now on: writes these lines, also between answers. They end if it does not keep up.
    Attached(mpsc::Receiver<Vec<u8>>),
}
