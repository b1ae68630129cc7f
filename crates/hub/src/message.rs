//! What crosses threads: plain data, so that a test can make it and compare it.

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
use ringer_ipc::host::{AnswerOutcome, Asked};
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::delivery::setup::DeliverySetup;
use crate::delivery::terminals::Terminal;
use crate::delivery::titles::{TitleMarkChange, TitleOutcome};
use crate::hosts::protocol::{ConnectionId, HostOrder, SentOrder};
use crate::hosts::tmux::{TmuxPane, Unreachable};
use crate::journal_maintenance::{JournalTasks, JournalTasksDone};
use crate::repository_probe::{ProbeResult, ProbeTarget};
use crate::socket::requests::Request;
use crate::socket::subscriptions::{EventFilter, Subscription};
use crate::view::ListedNotification;

/// Something the loop handles, in the order in which it came.
#[derive(Debug)]
pub(crate) enum LoopEvent {
    /// A hook program answered.
    HookAnswered { ticket: Ticket, answer: HookAnswer },
    /// A delivery is over.
    Delivered { id: MessageId, channel: DeliveryChannel, report: DeliveryReport },
    /// A popup that was to be withdrawn is gone.
    PopupGone(MessageId),
    /// A change of a terminal's title was tried.
    TitleTried { surface: SurfaceId, outcome: TitleOutcome },
    /// It is time to try again to remove the mark from a title.
    RetryTitle(SurfaceId),
    /// What is known of the person's session on this machine; `None` if nothing is any more.
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
    /// tmux was asked to select the pane of a notification whose popup was clicked.
    FocusTried { id: MessageId, result: Result<(), Unreachable> },
    /// An answer that the person gave with a popup was given to the side that asked.
    AnswerTried { id: MessageId, answer: PopupAnswer, outcome: AnswerOutcome },
    /// The repositories of the pending batch were looked at, as far as they answered in time.
    Probed(Vec<(ProbeTarget, ProbeResult)>),
    /// What was due for the journal is done.
    JournalMaintained(JournalTasksDone),
    /// A client asks for something.
    Request { id: RequestId, request: Request },
    /// The connection of a host ended.
    HostGone(ConnectionId),
    /// The hub is to end.
    Stop,
}

/// Identifies a request until it is answered. The loop gives the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(pub(crate) u64);

/// What the hub does because of an event.
#[derive(Debug)]
pub(crate) enum Action {
    /// The executor carries this out.
    Execute(Job),
    /// A request is answered. `behind` is about how many of the messages that were in the journal before the request the
    /// answer does not take into account.
    Answer { id: RequestId, answer: Answer, behind: u64 },
    /// A host on the socket is told.
    Tell(SentOrder),
    /// Subscribers are told.
    Publish { unix_ms: i64, event: &'static str, data: Value },
    /// Repositories are looked at, off the loop. `LoopEvent::Probed` tells of them.
    Probe(Vec<ProbeTarget>),
    /// `LoopEvent::ProcessEnded` is to tell when this process ends. `started` is its start, in the kernel's clock ticks:
    /// numbers of processes are used again.
    WatchProcess { agent: Agent, pid: u32, started: u64 },
    /// The process of this agent need not be watched any more.
    UnwatchProcess(Agent),
    /// The end of this agent's process is told again in a second.
    RetryProcessEnd(Agent),
    /// These files are watched, and no others.
    SetWatches(Vec<Watch>),
    /// A line goes into the hub's log.
    Log(String),
}

/// What a request is answered with.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// A value, or why there is none.
    Value(Result<Value, ApiError>),
    /// Notifications. They are put into words off the loop: of a thousand, that takes longer than finding them.
    Notifications(Vec<ListedNotification>),
    /// The hub's status; the loop adds what it alone knows.
    Status(Value),
    /// tmux selects a pane; the answer says what came of it. `opening` has the notification that the client asked to open: it is
    /// in the answer, and read once the person is there.
    Focus { pane: TmuxPane, opening: Option<(MessageId, Value)> },
    /// What the hub has of its environment; the desktop is asked and added. `offered` is a session bus that the hub may use
    /// if its own does not work.
    Environment { environment: Value, offered: Option<String> },
    /// A subscription, which goes on until the connection ends.
    Subscribe(EventFilter),
    /// The connection is a host from now on, and is sent orders: these first.
    Attach { host: ConnectionId, orders: Vec<HostOrder> },
}

/// Something that can take time or hang, for the executor.
#[derive(Debug)]
pub(crate) enum Job {
    /// Run a hook. Without a program nothing runs, and the hook has failed.
    Hook { ticket: Ticket, program: Option<Arc<HookProgram>>, hook_input: Box<HookInput> },
    /// Deliver a notification; in the first of these terminals that is there, or on the desktop of these processes if the
    /// hub's own does not work. A popup can answer the prompt.
    Deliver {
        delivery: Box<Delivery>,
        terminals: Vec<Terminal>,
        callers: Vec<u32>,
        prompt: Option<Box<PromptContent>>,
    },
    /// Give the answer that the person gave with the popup of a notification.
    Answer { id: MessageId, asked: Asked, answer: PopupAnswer },
    /// Withdraw what was shown of a notification, and stop what is being delivered of it.
    Withdraw(MessageId),
    /// Use another setup of the delivery channels: the settings changed.
    UpdateSetup(Arc<DeliverySetup>),
    /// Set a mark in a terminal's title, or remove it.
    ChangeTitle(TitleMarkChange),
    /// Let tmux select a pane: one where a notification rang, or one around it, of which nothing is told.
    FocusPane { id: Option<MessageId>, pane: TmuxPane },
    /// Do what is due for the journal. `LoopEvent::JournalMaintained` tells what came of it.
    MaintainJournal { tasks: JournalTasks, ids: IdSource },
}

/// What a delivery did.
#[derive(Debug, PartialEq)]
pub(crate) struct DeliveryReport {
    /// In words.
    pub(crate) result: Result<String, String>,
    /// Where the desktop shows it.
    pub(crate) popup: Option<DisplayedPopup>,
    /// Terminals that turned out to be closed.
    pub(crate) closed: Vec<SurfaceId>,
}

impl DeliveryReport {
    pub(crate) fn of(result: Result<String, String>) -> Self {
        Self { result, popup: None, closed: Vec::new() }
    }
}

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
    /// Lets tmux select a pane, and says what came of it; see [`Answer::Focus`].
    Focus { pane: TmuxPane, opening: Option<(MessageId, Value)> },
    /// Asks the desktop; see [`Answer::Environment`].
    Environment { environment: Value, offered: Option<String> },
    /// Writes events until the connection ends.
    Subscribed(Subscription),
    /// Is a host from now on: writes these lines, also between answers. They end if it does not keep up.
    Attached(mpsc::Receiver<Vec<u8>>),
}

/// What came of a watch.
#[derive(Debug)]
pub(crate) struct WatchOutcome {
    /// Which file changed.
    pub(crate) path: PathBuf,
    /// The command, as the person wrote it.
    pub(crate) command: String,
    /// The agent that is to be told.
    pub(crate) agent: Option<String>,
    /// What it printed, or why it failed.
    pub(crate) result: Result<String, String>,
}

impl WatchOutcome {
    /// What the footer says of it.
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
