//! What goes into the engine and what comes out of it.

use serde::{Deserialize, Serialize};

use crate::address::Agent;
use crate::attention::Badge;
use crate::delivery::Way;
use crate::hooks::{Answer, HookIdentity};
use crate::id::{MessageId, QuestionId};
use crate::kind::Kind;
use crate::message::Message;
use crate::policy::Envelope;
use crate::record::Record;
use crate::resolve::Caller;
use crate::signal::Signal;
use crate::sources::Observation;
use crate::surface::{Place, SurfaceId, WorkspaceId};
use crate::toast::Toast;

/// Names one notification on its way through the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// A message from the journal, with what is known about where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The message.
    pub message: Message,
    /// Where its sender is.
    pub caller: Caller,
    /// Whether an agent's agent sent it.
    pub is_subagent: bool,
    /// Whether its agent still has work running.
    pub pending: bool,
}

/// Where the person is looking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looking {
    /// Whether they are in the application at all.
    pub app: bool,
    /// The workspace that is selected.
    pub workspace: Option<WorkspaceId>,
    /// The surface that has the keyboard.
    pub surface: Option<SurfaceId>,
}

/// What a terminal told of a surface. It is not in the journal, and perhaps never will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The bell.
    Bell,
    /// A notification that the program in it sent (OSC 9, 99, 777).
    Notified {
        /// A heading.
        title: Option<String>,
        /// The text.
        body: String,
    },
    /// A title or a program status, as a sign of what the agent in it does.
    Agent(Signal),
}

/// Something happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A message is in the journal.
    Message(Box<Incoming>),
    /// A hook answered, or failed.
    HooksAnswered {
        /// Which notification it was about.
        ticket: Ticket,
        /// What came of it.
        answer: Answer,
    },
    /// A surface is there, or has moved.
    Surface {
        /// Which.
        surface: SurfaceId,
        /// Where.
        workspace: WorkspaceId,
        /// Its terminal device.
        tty: Option<String>,
    },
    /// A surface has gone.
    SurfaceGone(SurfaceId),
    /// An agent is on a surface, or no longer.
    AgentOn {
        /// Where.
        surface: SurfaceId,
        /// Which agent, and whether it reports by hooks.
        agent: Option<(Agent, bool)>,
    },
    /// A terminal told something.
    Heard {
        /// Of this surface.
        surface: SurfaceId,
        /// What.
        sign: Sign,
    },
    /// The person looks somewhere else. Looking at a surface reads it.
    Looks(Looking),
    /// The person reads a place.
    Read(Place),
    /// The person reads everything.
    ReadAll,
    /// The person reads, or unreads, one notification.
    Mark {
        /// Which.
        id: MessageId,
        /// Whether it is read now.
        read: bool,
    },
    /// The person marks a place unread.
    MarkUnread(Place),
    /// A surface reports activity of its own.
    Activity(Place),
    /// The person takes one notification off the list.
    Remove(MessageId),
    /// The person takes everything that is read off the list.
    RemoveRead,
    /// A place is cleared.
    Clear(Place),
    /// Everything is cleared.
    ClearAll,
    /// A question was answered.
    Answered(QuestionId),
    /// A way out did its work, or could not.
    Delivered {
        /// Which notification.
        id: MessageId,
        /// Which way.
        way: Way,
        /// What it did, or why it could not, in words.
        result: Result<String, String>,
    },
    /// Something happened to a notification that is worth a step in its trail.
    Noted {
        /// Which one.
        id: MessageId,
        /// What happened.
        text: String,
    },
    /// A source saw something.
    Observed(Observation),
    /// Somebody wants a line in the footer.
    Toast(Toast),
    /// Takes one away.
    RemoveToast(String),
    /// A deadline has come.
    Tick,
}

/// Something has to be done.
#[derive(Debug, Clone)]
pub enum Order {
    /// Run a hook, and answer with [`Event::HooksAnswered`].
    RunHook {
        /// To answer with.
        ticket: Ticket,
        /// Which program. No other may run in its place.
        hook: HookIdentity,
        /// What it reads.
        envelope: Box<Envelope>,
    },
    /// Write a notification down.
    Remember {
        /// What is known of it now.
        record: Box<Record>,
        /// Whether it was not in the store before.
        is_new: bool,
    },
    /// It was taken off the list.
    Forget(MessageId),
    /// Add a step to the trail of a message that is not in the store.
    Trail {
        /// Which message.
        id: MessageId,
        /// The step.
        text: String,
    },
    /// Put a notification into the journal that a terminal told of.
    Append {
        /// On this surface.
        surface: SurfaceId,
        /// A heading.
        title: Option<String>,
        /// The text.
        body: String,
        /// In the words of clients: `bell`, or nothing.
        category: Option<&'static str>,
    },
    /// Let an agent's state machine hear a signal, and put what it has to tell into the journal.
    Apply {
        /// On this surface.
        surface: SurfaceId,
        /// The agent; `None` for one that nobody has heard of.
        agent: Option<Agent>,
        /// The signal.
        signal: Signal,
    },
    /// Tell the person, and answer with [`Event::Delivered`].
    Deliver(Box<Delivery>),
    /// Take back what was shown outside, and stop what is still on its way.
    Withdraw(MessageId),
    /// A surface's ring goes on or off.
    Ring {
        /// Where.
        place: Place,
        /// Whether it is lit.
        lit: bool,
    },
    /// A workspace's badge changes.
    Badge {
        /// Which workspace.
        workspace: WorkspaceId,
        /// The number.
        badge: Badge,
    },
    /// A pane flashes.
    Flash(Place),
    /// A workspace moves to the top.
    Reorder(WorkspaceId),
    /// Another toast is shown, or none.
    ShowToast(Option<Toast>),
    /// An indicator changes; an empty text takes it away.
    Indicator {
        /// What it is about.
        key: String,
        /// What it says.
        text: String,
    },
}

/// One way out for one notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The notification.
    pub id: MessageId,
    /// Where it rings.
    pub place: Place,
    /// The way.
    pub way: Way,
    /// A heading.
    pub title: String,
    /// A second heading.
    pub subtitle: String,
    /// The text.
    pub body: String,
    /// What it is about.
    pub kind: Kind,
    /// Who sent it.
    pub sender: String,
    /// A notification of the same event that is shown already: this one takes its place.
    pub replaces: Option<MessageId>,
}
