//! The messages between threads: plain data, which tests can create and compare.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringer_config::Watch;
use ringer_core::MessageId;
use ringer_core::agent::{PopupAnswer, PromptContent};
use ringer_core::attention::DesktopSession;
use ringer_core::engine::{Delivery, Ticket};
use ringer_core::message::{Agent, SurfaceId};
use ringer_core::policy::{DeliveryChannel, HookAnswer, HookInput};
use ringer_deliver::{DesktopEvent, DisplayedPopup, HookProgram};
use ringer_ipc::ApiError;
use ringer_ipc::part::{AnswerOutcome, AnsweredQuestion, TitleOutcome, Unreachable};
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::delivery::setup::DeliverySetup;
use crate::delivery::terminals::Terminal;
use crate::delivery::titles::TitleMarkChange;
use crate::hosts::protocol::{ConnectionId, HostOrder, SentOrder};
use crate::journal_maintenance::{JournalTasks, JournalTasksDone};
use crate::repository_probe::{ProbeResult, ProbeTarget};
use crate::socket::subscriptions::{EventFilter, Subscription};
use crate::view::ListedNotification;

/// An event for the loop, which handles them in order.
#[derive(Debug)]
pub(crate) enum LoopEvent {
    /// A hook program answered.
    HookAnswered { ticket: Ticket, answer: HookAnswer },
    /// A delivery ended.
    Delivered { id: MessageId, channel: DeliveryChannel, report: DeliveryReport },
    /// A popup was withdrawn.
    PopupGone(MessageId),
    /// A change of a terminal's title was attempted.
    TitleTried { surface: SurfaceId, outcome: TitleOutcome },
    /// It is time to try again to remove the mark from a title.
    RetryTitle(SurfaceId),
    /// The state of the person's session on this machine. `None` if it is no longer known.
    #[cfg_attr(
        all(target_os = "macos", not(test)),
        expect(dead_code, reason = "there is no logind, and only the simulation has sessions")
    )]
    DesktopSession(Option<DesktopSession>),
    /// The person did something to a popup.
    Desktop(DesktopEvent),
    /// A watched file changed, and its command ran.
    WatchFinished(WatchOutcome),
    /// The person's settings may have changed.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells of changes"))]
    SettingsChanged,
    /// The process of an agent ended.
    ProcessEnded(Agent),
    /// The part that controls panes has focused one, for this waiter, or cannot. The result has the name of the multiplexer.
    PaneFocused { waiter: FocusWaiter, result: Result<String, Unreachable> },
    /// The person's answer in a popup was passed to the agent that asked.
    AnswerTried { id: MessageId, answer: PopupAnswer, outcome: AnswerOutcome },
    /// The repositories of the pending batch were probed, as far as they answered in time.
    Probed(Vec<(ProbeTarget, ProbeResult)>),
    /// Maintenance of the journal ended.
    JournalMaintained(JournalTasksDone),
    /// A request of a client.
    Request { id: RequestId, request: Request },
    /// A host's connection ended.
    HostGone(ConnectionId),
    /// The hub must end.
    Stop,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) connection: ConnectionId,
    /// The process that connected, if it has a PID in this namespace.
    pub(crate) peer: Option<u32>,
}

/// Identifies a request until it is answered. Assigned by the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(pub(crate) u64);

/// A request or click that waits for a surface to be focused.
#[derive(Debug, PartialEq)]
pub(crate) enum FocusWaiter {
    /// A request of a client. `opening` is the notification that the client asked to open.
    Request { id: RequestId, up_to: i64, opening: Option<(MessageId, Value)> },
    /// A click on the popup of a notification.
    Popup(MessageId),
}

/// An action that the state orders because of an event.
#[derive(Debug)]
pub(crate) enum Action {
    /// Run a job on the executor.
    Execute(Job),
    /// Answer a request. `behind` is the approximate number of messages that were in the journal before the request and that the
    /// answer does not take into account.
    Answer { id: RequestId, answer: Answer, behind: u64 },
    /// Send an order to an attached host.
    Tell(SentOrder),
    /// Send an event to the subscribers.
    Publish { unix_ms: i64, event: &'static str, data: Value },
    /// Probe repositories, off the loop. `LoopEvent::Probed` has the results.
    Probe(Vec<ProbeTarget>),
    /// Send `LoopEvent::ProcessEnded` when this process ends. `started` is its start in the kernel's clock ticks, because pids
    /// are reused.
    WatchProcess { agent: Agent, pid: u32, started: u64 },
    /// Stop watching the process of this agent.
    UnwatchProcess(Agent),
    /// Send `LoopEvent::ProcessEnded` for this agent again in a second.
    RetryProcessEnd(Agent),
    /// Watch exactly these files.
    SetWatches(Vec<Watch>),
    /// Write a line to the hub's log.
    Log(String),
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// A value or an error.
    Value(Result<Value, ApiError>),
    /// Notifications. They are formatted off the loop: for a thousand, that takes longer than to find them.
    Notifications(Vec<ListedNotification>),
    /// The hub's status, to which the loop adds its own part.
    Status(Value),
    /// The hub's environment, to which the state of the desktop is added. `offered` is a session bus that the hub may use if its
    /// own does not work.
    Environment { environment: Value, offered: Option<String> },
    /// A subscription, which lasts until the connection ends.
    Subscribe(EventFilter),
    /// The connection becomes a host and is sent orders, starting with these.
    Attach { host: ConnectionId, orders: Vec<HostOrder> },
}

/// A job for the executor, which may take time or hang.
#[derive(Debug)]
pub(crate) enum Job {
    /// Run a hook. Without a program the hook fails.
    Hook { ticket: Ticket, program: Option<Arc<HookProgram>>, hook_input: Box<HookInput> },
    /// Deliver a notification, in the first of these terminals that exists, or on the desktop of these processes if the hub's own
    /// session bus does not work. The popup can answer the prompt.
    Deliver {
        delivery: Box<Delivery>,
        terminals: Vec<Terminal>,
        senders: Vec<u32>,
        prompt: Option<Box<PromptContent>>,
    },
    /// Pass on the person's answer in a popup.
    Answer { id: MessageId, asked: AnsweredQuestion, answer: PopupAnswer },
    /// Withdraw a notification from where it is shown, and stop its deliveries.
    Withdraw(MessageId),
    /// Use another setup of the delivery channels, because the settings changed.
    UpdateSetup(Arc<DeliverySetup>),
    /// Set a mark in a terminal's title, or remove it.
    ChangeTitle(TitleMarkChange),
    /// Bring a pane to the front. If something waits for that, `LoopEvent::PaneFocused` has the result.
    FocusPane { surface: SurfaceId, waiter: Option<FocusWaiter> },
    /// Maintain the journal. `LoopEvent::JournalMaintained` has the result.
    MaintainJournal { tasks: JournalTasks, ids: IdSource },
}

/// The result of a delivery.
#[derive(Debug, PartialEq)]
pub(crate) struct DeliveryReport {
    pub(crate) result: Result<String, String>,
    /// The popup on the desktop.
    pub(crate) popup: Option<DisplayedPopup>,
    /// Terminals that turned out to be closed.
    pub(crate) closed: Vec<SurfaceId>,
}

impl DeliveryReport {
    pub(crate) fn of(result: Result<String, String>) -> Self {
        Self { result, popup: None, closed: Vec::new() }
    }
}

/// An input of the loop from other threads.
#[derive(Debug)]
pub(crate) enum Input {
    /// Something happened.
    Event(LoopEvent),
    /// A request of a client.
    Request { request: Request, reply: oneshot::Sender<Answered> },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    /// The approximate number of messages that were in the journal before the request and that the answer does not take into
    /// account.
    pub(crate) behind: u64,
}

/// What a connection does to answer its client.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Writes it.
    Result(Result<Value, ApiError>),
    /// Formats and writes these.
    Notifications { rows: Vec<ListedNotification>, clock: Clock },
    /// Adds the state of the desktop; see [`Answer::Environment`].
    Environment { environment: Value, offered: Option<String> },
    /// Writes events until the connection ends.
    Subscribed(Subscription),
    /// Becomes a host: writes these lines, also between answers. The channel closes if the host does not keep up.
    Attached(mpsc::Receiver<Vec<u8>>),
}

/// The result of a watch's command.
#[derive(Debug)]
pub(crate) struct WatchOutcome {
    /// The file that changed.
    pub(crate) path: PathBuf,
    /// The command, as the person wrote it.
    pub(crate) command: String,
    /// The agent that receives the result.
    pub(crate) agent: Option<String>,
    /// The output, or the reason of the failure.
    pub(crate) result: Result<String, String>,
}

impl WatchOutcome {
    /// The text for the footer.
    pub(crate) fn words(&self) -> String {
        let name = self.path.file_name().unwrap_or_else(|| Path::new("?").as_os_str()).to_string_lossy();
        let what = match &self.result {
            Ok(output) if output.is_empty() => format!("{} ran", self.command),
            Ok(output) => format!("{}: {}", self.command, output.lines().next().unwrap_or_default()),
            Err(why) => format!("{} failed: {why}", self.command),
        };
        sanitise_line(&format!("{name} changed; {what}"))
    }
}
