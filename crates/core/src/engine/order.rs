//! The engine's input and output: events, orders, and the values that features save between hubs.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::Signal;
use crate::attention::{Badge, Cause, DesktopSession, ReadReason, Record, Ring, View};
use crate::engine::Caller;
use crate::message::{Agent, Kind, Message, MessageId, Place, QuestionId, ShownKind, SurfaceId, WorkspaceId};
use crate::policy::{DeliveryChannel, HookAnswer, HookIdentity, HookInput};
use crate::toast::{Observation, SourceNotification, Toast};

/// Identifies one notification while its hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub(crate) u64);

/// A message from the journal, with what is known about its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingMessage {
    /// The message.
    pub message: Message,
    /// The location of its sender.
    pub caller: Caller,
    /// True if a subagent sent it.
    pub is_subagent: bool,
    /// True if its agent still has work running.
    pub pending: bool,
}

/// A notification that a program sent to its terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalNotification {
    /// A heading.
    #[serde(default)]
    pub title: Option<String>,
    /// The text.
    pub body: String,
    /// The kind, if it comes from the host and not the program: the program ended with an error.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// The program's id for it, with which the program can replace or withdraw it.
    #[serde(default)]
    pub id: Option<String>,
    /// The time to live, in milliseconds.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// The name of its icon.
    #[serde(default)]
    pub icon: Option<String>,
}

/// A terminal's report about a surface. It is not in the journal yet; a duplicate never will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminalSignal {
    /// The bell.
    Bell,
    /// A notification that the program in it sent (OSC 9, 99, 777).
    Notified(TerminalNotification),
    /// The program withdraws the notification with this id.
    Withdrawn {
        /// The program's id for it.
        id: String,
    },
    /// A title or a program status, which tells the state of the agent on the surface.
    Agent(Signal),
}

/// An input of the engine. All events can be serialized, so that a run can be recorded and replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A message was read from the journal.
    Message(Box<IncomingMessage>),
    /// A hook answered, or failed.
    HookAnswered {
        /// The ticket of the order.
        ticket: Ticket,
        /// Its output, or why it failed.
        answer: HookAnswer,
    },
    /// A host registered a surface, or moved it.
    Surface {
        /// The surface.
        surface: SurfaceId,
        /// The workspace.
        workspace: WorkspaceId,
        /// Its terminal device.
        tty: Option<String>,
        /// True if the host reports when the person looks at the surface.
        #[serde(default)]
        reports_focus: bool,
    },
    /// A surface is not known any more: its host has gone, and may come back with it.
    SurfaceGone(SurfaceId),
    /// A host closed a surface.
    SurfaceClosed(SurfaceId),
    /// The agent on a surface changed.
    AgentOnSurface {
        /// The surface.
        surface: SurfaceId,
        /// The agent, and true if it reports by hooks; `None` if there is no agent any more.
        agent: Option<(Agent, bool)>,
    },
    /// A terminal sent a signal.
    TerminalSignal {
        /// The surface.
        surface: SurfaceId,
        /// The signal.
        signal: TerminalSignal,
        /// The id of the message that the signal may become. A host that repeats the signal repeats the id, so it stays one
        /// message.
        #[serde(default)]
        report: Option<MessageId>,
    },
    /// A host reports everything that the person looks at in it. Surfaces that they did not look at before become read.
    Looks {
        /// The host, by its number.
        host: u64,
        /// The surfaces that its clients show. Empty if the host has gone.
        views: Vec<View>,
        /// True if the person is present, as far as the host knows. If not, the views are ignored.
        present: bool,
        /// True if an action of the person caused the change. Only then is it evidence that they are present.
        by_person: bool,
    },
    /// The person saw a surface at one moment. It is unknown whether they still look: notifications until then become read,
    /// later ones do not.
    Glanced {
        /// The surface.
        surface: SurfaceId,
        /// The moment, in milliseconds since 1970.
        at_ms: i64,
    },
    /// A host reports whether the person is present, or no longer knows.
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
    /// A host has gone, and its reports are void.
    HostGone {
        /// The host, by its number.
        host: u64,
    },
    /// The state of the person's desktop session; `None` if it is not known any more.
    Desktop(Option<DesktopSession>),
    /// The person reads a place.
    Read(Place),
    /// The person reads everything.
    ReadAll,
    /// The person marks one notification read or unread.
    Mark {
        /// The notification.
        id: MessageId,
        /// True if it is read now.
        read: bool,
    },
    /// The person marks a place unread.
    MarkUnread(Place),
    /// A surface reports activity.
    Activity(Place),
    /// A place was unread in the previous session, and its notifications were not saved.
    Restored(Place),
    /// The person takes one notification off the list.
    Remove(MessageId),
    /// The person takes everything that is read and resolved off the list.
    RemoveRead,
    /// A place is cleared.
    Clear(Place),
    /// Everything is cleared.
    ClearAll,
    /// A question was answered, or closed without an answer.
    QuestionClosed {
        /// The question.
        question: QuestionId,
        /// How it was closed.
        by: ReadReason,
    },
    /// A delivery succeeded or failed.
    Delivered {
        /// The notification.
        id: MessageId,
        /// The channel.
        channel: DeliveryChannel,
        /// What the channel did, or why it failed, as text for the trail.
        result: Result<String, String>,
        /// The number of the desktop popup, if there is one.
        #[serde(default)]
        popup: Option<u32>,
    },
    /// Adds a step to the trail of a notification.
    AddTrailStep {
        /// The notification.
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
    /// The deadline from [`crate::Engine::next_deadline`] has passed.
    Tick,
}

/// An output of the engine, which the caller must execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Run a hook, and answer with [`Event::HookAnswered`].
    RunHook {
        /// The ticket for the answer.
        ticket: Ticket,
        /// The program. The caller must not run another one in its place.
        hook: HookIdentity,
        /// The hook's standard input.
        hook_input: Box<HookInput>,
    },
    /// Save a notification.
    SaveRecord {
        /// The current state.
        record: Box<Record>,
        /// True if it was not in the store before.
        is_new: bool,
    },
    /// Delete a saved notification: it was cleared.
    DeleteRecord(MessageId),
    /// Save or remove a value of a feature.
    SaveState(Box<SavedState>),
    /// Add a step to the trail of a message that is not in the store.
    AddTrailStep {
        /// The message.
        id: MessageId,
        /// The step.
        cause: Cause,
    },
    /// Append a terminal's notification to the journal.
    AppendToJournal {
        /// The surface.
        surface: SurfaceId,
        /// The notification.
        notification: TerminalNotification,
        /// `bell`, or `None`.
        category: Option<String>,
        /// The message id, if there is one already.
        #[serde(default)]
        report: Option<MessageId>,
    },
    /// Append to the journal that a program withdraws what it sent to its terminal.
    WithdrawFromTerminal {
        /// The surface.
        surface: SurfaceId,
        /// The program's id for it.
        id: String,
        /// The message id, if there is one already.
        #[serde(default)]
        report: Option<MessageId>,
    },
    /// Append a notification about a source's condition to the journal.
    NotifyOfSource(SourceNotification),
    /// Apply a signal to an agent's state machine, and append its notices to the journal.
    ApplySignal {
        /// The surface.
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
    /// A surface's ring is switched on or off, or its count or kind changes.
    Ring {
        /// The place.
        place: Place,
        /// The ring, if it is lit.
        ring: Option<Ring>,
    },
    /// A workspace's badge changes.
    Badge {
        /// The workspace.
        workspace: WorkspaceId,
        /// The number.
        badge: Badge,
    },
    /// A pane flashes.
    Flash(Place),
    /// A workspace moves to the top.
    Reorder(WorkspaceId),
    /// Show another toast, or none.
    ShowToast(Option<Toast>),
    /// A hook ran, or failed.
    ReportHook {
        /// Its id.
        hook: String,
        /// Why it failed.
        failure: Option<String>,
    },
    /// An indicator changes; an empty text removes it.
    Indicator {
        /// The key, which identifies the indicator.
        key: String,
        /// The text.
        text: String,
    },
}

/// One notification, to be delivered through one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The notification.
    pub id: MessageId,
    /// The place that rings.
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
    /// The kind.
    pub kind: ShownKind,
    /// The sender.
    pub sender: String,
    /// A shown notification of the same event, which this one replaces.
    pub replaces: Option<MessageId>,
    /// The name of the icon that the sender chose.
    #[serde(default)]
    pub icon: Option<String>,
}

/// A value that a feature keeps between hubs. The store knows nothing about it.
pub trait FeatureValue: Serialize + DeserializeOwned {
    /// The name of the feature.
    const FEATURE: &'static str;

    /// The key, unique within the feature. Values are restored in the order of their keys.
    fn key(&self) -> String;

    /// The notification that the value is about. The value is removed together with its message.
    fn about(&self) -> Option<MessageId> {
        None
    }

    /// The saved form.
    fn saved(&self) -> SavedState {
        SavedState {
            feature: Self::FEATURE.into(),
            key: self.key(),
            about: self.about(),
            // Serialising plain data cannot fail.
            value: Some(serde_json::to_string(self).unwrap_or_default()),
        }
    }
}

/// The saved form of a value, or its removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The name of the feature.
    pub feature: Cow<'static, str>,
    /// The key, unique within the feature.
    pub key: String,
    /// The notification that the value is about.
    #[serde(default)]
    pub about: Option<MessageId>,
    /// The value as JSON; `None` removes it.
    pub value: Option<String>,
}

impl SavedState {
    /// Removes the value with this key.
    pub fn removal<T: FeatureValue>(key: String) -> Self {
        Self { feature: T::FEATURE.into(), key, about: None, value: None }
    }

    /// Returns true if it is a value of this type, or its removal.
    pub fn is<T: FeatureValue>(&self) -> bool {
        self.feature == T::FEATURE
    }

    /// Parses the value. `None` if it is of another type, was removed or is damaged.
    pub fn read<T: FeatureValue>(&self) -> Option<T> {
        let value = self.value.as_deref().filter(|_| self.is::<T>())?;
        serde_json::from_str(value).ok()
    }
}

#[cfg(test)]
mod tests;
