//! The engine's input and output: events and orders.

use serde::{Deserialize, Serialize};

use crate::agent::Signal;
use crate::attention::{AwayPeriod, Badge, Cause, DesktopSession, ReadReason, Record, Ring, UndoItem, View};
use crate::engine::Caller;
use crate::message::{Agent, Kind, Message, MessageId, Place, QuestionId, ShownKind, SurfaceId, WorkspaceId};
use crate::policy::{DeliveryChannel, HookAnswer, HookIdentity, HookInput, MuteTarget, RequestedMute};
use crate::toast::{Observation, SourceNotification, Toast};

/// Identifies one notification while its hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub(crate) u64);

/// A message from the journal, with what is known about where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingMessage {
    /// The message.
    pub message: Message,
    /// Where its sender is.
    pub caller: Caller,
    /// Whether an agent's agent sent it.
    pub is_subagent: bool,
    /// Whether its agent still has work running.
    pub pending: bool,
}

/// What a terminal reported about a surface. It is not in the journal yet; as a duplicate it never will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminalSignal {
    /// The bell.
    Bell,
    /// A notification that the program in it sent (OSC 9, 99, 777).
    Notified {
        /// A heading.
        title: Option<String>,
        /// The text.
        body: String,
        /// What it is about, if the host says that and not the program: its program ended with an error.
        #[serde(default)]
        kind: Option<Kind>,
        /// What the program calls it, if it may replace it or take it back.
        #[serde(default)]
        id: Option<String>,
        /// After how many milliseconds it is over.
        #[serde(default)]
        ttl_ms: Option<u64>,
    },
    /// The program takes back what it sent under this id.
    Withdrawn {
        /// What the program calls it.
        id: String,
    },
    /// A title or a program status, which says what the agent on the surface does.
    Agent(Signal),
}

/// An input of the engine. As all its parts, it can be saved and read back: a run can be recorded and played again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A message was read from the journal.
    Message(Box<IncomingMessage>),
    /// A hook answered, or failed.
    HookAnswered {
        /// Which notification it was about.
        ticket: Ticket,
        /// Its output, or why it failed.
        answer: HookAnswer,
    },
    /// A host registered a surface, or moved it.
    Surface {
        /// Which.
        surface: SurfaceId,
        /// Where.
        workspace: WorkspaceId,
        /// Its terminal device.
        tty: Option<String>,
        /// Whether its host reports when the person looks at it.
        #[serde(default)]
        reports_focus: bool,
    },
    /// A surface is not known any more: its host is gone, and may come back with it.
    SurfaceGone(SurfaceId),
    /// A host closed a surface.
    SurfaceClosed(SurfaceId),
    /// The agent on a surface changed.
    AgentOnSurface {
        /// Where.
        surface: SurfaceId,
        /// The agent, and whether it reports by hooks; `None` if there is none any more.
        agent: Option<(Agent, bool)>,
    },
    /// A terminal sent a signal.
    TerminalSignal {
        /// The surface it is about.
        surface: SurfaceId,
        /// The signal.
        signal: TerminalSignal,
        /// The id of the message that it becomes, if it becomes one: a host that says it again gives the same, and it is one message.
        #[serde(default)]
        report: Option<MessageId>,
    },
    /// A host reports everything that the person looks at in it. What they did not look at before becomes read.
    Looks {
        /// The host, by its number.
        host: u64,
        /// What its clients show. None when the host is gone.
        views: Vec<View>,
        /// Whether the person is there, as far as the host knows. If they are not, the views count for nothing.
        present: bool,
        /// Whether the person did something for it to change. Otherwise it says nothing of whether they are away.
        by_person: bool,
    },
    /// The person saw a surface at a moment. Whether they still look is not known: what happened there until then becomes read,
    /// and nothing that comes later.
    Glanced {
        /// Which.
        surface: SurfaceId,
        /// When, in milliseconds since 1970.
        at_ms: i64,
    },
    /// A host says whether the person is there, or does not know it any more.
    Presence {
        /// The host, by its number.
        host: u64,
        /// `None` if it does not know.
        present: Option<bool>,
    },
    /// The person typed in a host that reports this every time.
    Input {
        /// The host, by its number.
        host: u64,
    },
    /// A host is gone, and what it said with it.
    HostGone {
        /// The host, by its number.
        host: u64,
    },
    /// What is known of the person's session on the desktop; `None` if nothing is any more.
    Desktop(Option<DesktopSession>),
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
    /// A surface reports activity.
    Activity(Place),
    /// A place was unread in the session before, and its notifications were not kept.
    Restored(Place),
    /// The person takes one notification off the list.
    Remove(MessageId),
    /// The person takes everything that is read off the list.
    RemoveRead,
    /// A place is cleared.
    Clear(Place),
    /// Everything is cleared.
    ClearAll,
    /// A question was answered, or closed without an answer.
    QuestionClosed {
        /// Which question.
        question: QuestionId,
        /// Which of both.
        by: ReadReason,
    },
    /// A delivery succeeded or failed.
    Delivered {
        /// Which notification.
        id: MessageId,
        /// Through which channel.
        channel: DeliveryChannel,
        /// What was done, or why it failed, as text for the trail.
        result: Result<String, String>,
        /// The number of its popup, if it was shown as one on the desktop.
        #[serde(default)]
        popup: Option<u32>,
    },
    /// Adds a step to the trail of a notification.
    AddTrailStep {
        /// Which one.
        id: MessageId,
        /// What happened.
        cause: Cause,
    },
    /// A source reported a condition.
    Observed(Observation),
    /// Shows a toast.
    Toast(Toast),
    /// Removes the toast with this key.
    RemoveToast(String),
    /// The deadline of [`crate::Engine::next_deadline`] has passed.
    Tick,
}

/// What the caller of the engine has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Run a hook, and answer with [`Event::HookAnswered`].
    RunHook {
        /// To answer with.
        ticket: Ticket,
        /// Which program. The caller must not run another one in its place.
        hook: HookIdentity,
        /// What it reads.
        hook_input: Box<HookInput>,
    },
    /// Save a notification.
    SaveRecord {
        /// Its present state.
        record: Box<Record>,
        /// Whether it was not in the store before.
        is_new: bool,
    },
    /// Delete a saved notification: it was cleared.
    DeleteRecord(MessageId),
    /// Save what a command of the person changed, or that this has ended since.
    SaveUndo(Box<UndoItem>),
    /// Delete that, by its number.
    DeleteUndo(i64),
    /// Save a mute that the person asked for.
    SaveMute(Box<RequestedMute>),
    /// Delete it: it was ended, or has ended.
    DeleteMute(Box<MuteTarget>),
    /// Save since when the person is away, or that they came back.
    SaveAway(AwayPeriod),
    /// Add a step to the trail of a message that is not in the store.
    AddTrailStep {
        /// Which message.
        id: MessageId,
        /// The step.
        cause: Cause,
    },
    /// Append a notification to the journal that a terminal sent.
    AppendToJournal {
        /// On this surface.
        surface: SurfaceId,
        /// A heading.
        title: Option<String>,
        /// The text.
        body: String,
        /// What it is about.
        kind: Kind,
        /// `bell`, or nothing.
        category: Option<String>,
        /// Its id, if it has one already.
        #[serde(default)]
        report: Option<MessageId>,
        /// What its program calls it.
        #[serde(default)]
        id: Option<String>,
        /// After how many milliseconds it is over.
        #[serde(default)]
        ttl_ms: Option<u64>,
    },
    /// Append to the journal that a program takes back what it sent to its terminal.
    WithdrawFromTerminal {
        /// On this surface.
        surface: SurfaceId,
        /// What its program calls it.
        id: String,
        /// The id of the message, if it has one already.
        #[serde(default)]
        report: Option<MessageId>,
    },
    /// Append a notification to the journal about what a source reports.
    NotifyOfSource(SourceNotification),
    /// Apply a signal to an agent's state machine, and append its notices to the journal.
    ApplySignal {
        /// On this surface.
        surface: SurfaceId,
        /// The agent; `None` if the surface has no known agent.
        agent: Option<Agent>,
        /// The signal.
        signal: Signal,
    },
    /// Deliver a notification, and report with [`Event::Delivered`].
    Deliver(Box<Delivery>),
    /// Close the popups of a notification, and cancel its deliveries in flight.
    Withdraw(MessageId),
    /// A surface's ring goes on or off, or what it is lit for changes.
    Ring {
        /// Where.
        place: Place,
        /// The ring, if it is lit.
        ring: Option<Ring>,
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
    /// A hook ran, or failed.
    ReportHook {
        /// Its id.
        hook: String,
        /// Why it failed.
        failure: Option<String>,
    },
    /// An indicator changes; an empty text takes it away.
    Indicator {
        /// What it is about.
        key: String,
        /// What it says.
        text: String,
    },
}

/// One notification, to be delivered through one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The notification.
    pub id: MessageId,
    /// Where it rings.
    pub place: Place,
    /// The channel.
    #[serde(rename = "way")]
    pub channel: DeliveryChannel,
    /// A heading.
    pub title: String,
    /// A second heading.
    pub subtitle: String,
    /// The text.
    pub body: String,
    /// What it is about.
    pub kind: ShownKind,
    /// Who sent it.
    pub sender: String,
    /// A notification of the same event that is shown already and is replaced by this one.
    pub replaces: Option<MessageId>,
}

#[cfg(test)]
mod tests;
