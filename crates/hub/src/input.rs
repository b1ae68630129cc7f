//! What the loop hears of.

use ringer_core::{Agent, DeliveryChannel, HookAnswer, MessageId, SurfaceId, Ticket};
use ringer_deliver::DesktopEvent;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::events::Subscription;
use crate::perform::Report;
use crate::title_writer::TitleOutcome;
use crate::tmux::{TmuxPane, Unreachable};
use crate::writes::Finish;
use ringer_ipc::ApiError;

/// Inputs that may wait for the loop. Whoever brings another waits with it; the doorbell is rung only once.
pub(crate) const MAX_INPUTS: usize = 1024;

/// Something the loop has to deal with, in the order in which it came.
pub(crate) enum Input {
    /// A hook answered.
    Answered { ticket: Ticket, answer: HookAnswer },
    /// A delivery is over.
    Delivered { id: MessageId, way: DeliveryChannel, report: Report },
    /// A popup is gone that was to be withdrawn.
    Withdrawn(MessageId),
    /// A change of a terminal's title has been tried.
    TitleTried { surface: SurfaceId, outcome: TitleOutcome },
    /// It is time to try again to take the mark of a title away.
    RetryTitle(SurfaceId),
    /// The person did something to a popup.
    Desktop(DesktopEvent),
    /// A file that is watched changed, and its command ran.
    Watched(crate::watch::Outcome),
    /// The process of an agent ended.
    ProcessEnded(Agent),
    /// What came of going to where a popup's notification rang.
    Shown { id: MessageId, went: Result<(), Unreachable> },
    /// Somebody asks for something.
    Request { method: String, params: Value, reply: oneshot::Sender<Answered> },
    /// It is time to end.
    Stop,
}

/// An answer, and how many of the messages that were in the journal before the request it does not take into account.
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    pub(crate) behind: u64,
}

/// What a request is answered with.
pub(crate) enum Reply {
    /// A value, or why not.
    Result(Result<Value, ApiError>),
    /// A value, once tmux has brought the person to a pane.
    Leads {
        /// The pane.
        pane: TmuxPane,
        /// The notification that is read when they are there.
        opens: Option<MessageId>,
        /// Makes the answer of what came of it.
        answer: Finish,
    },
    /// What the hub sees around it; the desktop is asked and added.
    Environment {
        /// The rest of it.
        environment: Value,
        /// A session bus that the hub may use if its own does not work.
        offered: Option<String>,
    },
    /// A subscription, which goes on until the connection ends.
    Subscribed(Subscription),
}
