//! The connection to the hub: sends requests, and starts a hub if none runs.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringer_hub::{Clock, OfflineHub};
use ringer_ipc::discovery::{HubAddress, socket_path};
use ringer_ipc::{ApiError, HubClient, HubClientError, StartError, StartFailure, start_and_wait};
use ringer_journal::{Home, HubLock, Journal};
use ringer_platform::path_variable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Exit, Failure, PERSON_HINT};
use crate::hub_start::{self, start_with_command};
use crate::notifications::ambiguous;
use crate::output::eprint_line;
use crate::{context, guard};

pub(crate) use crate::hub_start::{may_start, start_by_another_process, start_in_background};

/// Time limit for a hub to start: about 30 ms on an idle machine, seconds on a loaded one or while it repairs a database.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between connection attempts. A hub takes about 30 ms to start, so 10 ms adds little to that.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Time limit for an answer that is not worth waiting for: ten times the usual time of a busy hub.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

/// Starts a hub if the last append woke none. Does not wait for it. A failure does not fail the command: the message is in the
/// journal.
pub(crate) fn start_if_not_woken(journal: &Journal) {
    if let Some(warning) = start_unless_woken(journal) {
        eprint_line(&warning);
    }
}

/// The same, but returns a warning if the last hub could not start.
pub(crate) fn start_unless_woken(journal: &Journal) -> Option<String> {
    if journal.hub_was_woken() {
        return None;
    }
    let failure = context::home().ok().filter(|_| may_start()).and_then(|home| last_failure(&home));
    start_in_background();
    failure.map(|failure| {
        let words = failure_text(&failure);
        format!(
            "warning: stored, but not shown yet: {words}\n\
             hint: ringer doctor   # the hub is being started again"
        )
    })
}

/// Returns the reason why the last hub could not start, if none has started since.
pub(crate) fn last_failure(home: &Home) -> Option<StartFailure> {
    StartFailure::read(home, path_variable("XDG_RUNTIME_DIR").as_deref())
}

/// Returns the problems that a running hub reports about Ringer itself. Returns none without a hub, or if it does not answer
/// at once: what needs the person is shown without waiting for it.
pub(crate) fn problems(home: &Home) -> Vec<Problem> {
    let status = call_running(home, "hub.status", &Value::Null);
    let problems = status.ok().and_then(|status| serde_json::from_value(status["problems"].clone()).ok());
    problems.unwrap_or_default()
}

/// A problem of Ringer itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Problem {
    /// Identifies the problem for programs.
    pub(crate) key: String,
    pub(crate) text: String,
    /// A command that shows more, or fixes it.
    pub(crate) hint: String,
}

/// Describes when and why the hub could not start.
pub(crate) fn failure_text(failure: &StartFailure) -> String {
    format!("the hub could not start ({}): {}", Clock::local().short(failure.unix_ms), failure.why)
}

/// Sends a request to a running hub.
pub(crate) fn call_running(home: &Home, method: &str, params: &Value) -> Result<Value, HubClientError> {
    HubClient::connect(home)?.answer_within(ANSWER_WITHIN)?.call(method, params)
}

/// Connects to the hub, starting one if necessary and allowed. Returns `None` if starting is not allowed, or if it fails; then
/// a warning is printed.
pub(crate) fn connect() -> Result<Option<HubClient>, Failure> {
    match find_or_start() {
        Ok(client) => Ok(Some(client)),
        Err(ConnectError::NotAllowed) => Ok(None),
        Err(ConnectError::CannotStart(why)) => {
            eprint_line(&format!("warning: the hub cannot start, continuing without it: {why}"));
            Ok(None)
        }
        Err(ConnectError::Failed(failure)) => Err(failure),
    }
}

/// Returns the socket of the hub, or the future one if no hub runs yet.
pub(crate) fn socket(home: &Home) -> Option<PathBuf> {
    let socket = HubAddress::read(home).map(|hub| hub.socket);
    socket.or_else(|| socket_path(home, home.runtime()).ok())
}

/// Connects to the hub without printing anything.
pub(crate) fn quietly(may_be_started: bool) -> Option<HubClient> {
    if may_be_started { find_or_start().ok() } else { HubClient::connect(&context::home().ok()?).ok() }
}

/// Connects to the hub, or returns a failure with a hint.
pub(crate) fn hub() -> Result<HubClient, Failure> {
    find_or_start().map_err(|error| match error {
        ConnectError::NotAllowed => {
            Failure::new(Exit::Unavailable, "the hub is not running, and RINGER_HUB=off prevents starting it")
                .hint("RINGER_HUB= ringer hub start")
        }
        ConnectError::CannotStart(why) => cannot_start(&why),
        ConnectError::Failed(failure) => failure,
    })
}

pub(crate) fn start_and_connect(home: &Home) -> Result<HubClient, Failure> {
    start(home).map_err(|error| match error {
        ConnectError::CannotStart(why) => cannot_start(&why),
        ConnectError::NotAllowed => cannot_start("RINGER_HUB=off prevents it"),
        ConnectError::Failed(failure) => failure,
    })
}

/// The reason for a missing connection to the hub.
enum ConnectError {
    /// None runs, and `RINGER_HUB=off` forbids starting one.
    NotAllowed,
    /// It was started and reported an error.
    CannotStart(String),
    Failed(Failure),
}

fn cannot_start(why: &str) -> Failure {
    Failure::new(Exit::Unavailable, format!("the hub cannot start: {why}")).hint("ringer doctor")
}

fn find_or_start() -> Result<HubClient, ConnectError> {
    let home = context::home().map_err(ConnectError::Failed)?;
    match HubClient::connect(&home) {
        Err(HubClientError::NoHub) if may_start() => start(&home),
        Err(HubClientError::NoHub) => Err(ConnectError::NotAllowed),
        connected => connected.map_err(|error| ConnectError::Failed(failure(error))),
    }
}

fn start(home: &Home) -> Result<HubClient, ConnectError> {
    let program = std::env::current_exe().map_err(|error| {
        let failure =
            Failure::new(Exit::Unavailable, "cannot find the path of the ringer program").because(error);
        ConnectError::Failed(failure)
    })?;
    let started = if hub_start::is_server() {
        start_with_command(&program)
    } else {
        start_and_wait(&program, START_TIMEOUT)
    };
    started.map_err(|error| match error {
        StartError::Failed(why) => ConnectError::CannotStart(why),
        error => ConnectError::Failed(
            Failure::new(Exit::Unavailable, "the hub did not start")
                .because(error)
                .hint("ringer hub start --foreground"),
        ),
    })?;
    // If another hub took the lock first, the new hub has exited, and the other may not have published its socket yet.
    let end = Instant::now() + START_TIMEOUT;
    loop {
        match HubClient::connect(home) {
            Err(HubClientError::NoHub) if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            connected => return connected.map_err(|error| ConnectError::Failed(failure(error))),
        }
    }
}

/// The hub of a command: the running one, or this process in its place, which reads what the last hub stored and appends the
/// person's marks for the next hub.
pub(crate) enum Hub {
    Running(HubClient),
    InProcess(Box<OfflineHub>),
}

impl Hub {
    /// Connects to the hub, starting one if necessary. If none may run or starts, this process takes its place.
    pub(crate) fn of_command() -> Result<Self, Failure> {
        connect()?.map_or_else(Self::offline, |client| Ok(Self::Running(client)))
    }

    /// Uses this process, also beside a running hub.
    pub(crate) fn offline() -> Result<Self, Failure> {
        let home = context::home()?;
        if let Some(hub) = OfflineHub::open(&home)? {
            return Ok(Self::InProcess(Box::new(hub)));
        }
        Journal::open(&home)?;
        let hub = OfflineHub::open(&home)?;
        hub.map(|hub| Self::InProcess(Box::new(hub)))
            .ok_or_else(|| Failure::new(Exit::Unavailable, "the journal was removed"))
    }

    /// Sends a request. If the hub ends or hangs, this process handles the request in its place. The hub may have done so
    /// already, so a request must be harmless if it is repeated.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let Self::Running(client) = self else { return self.call_once(method, params) };
        if READS.contains(&method) {
            return ask(client, method, params);
        }
        match client.call(method, params) {
            Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => {
                *self = Self::offline()?;
                self.call_once(method, params)
            }
            Err(error) => Err(failure(error)),
            Ok(answer) => {
                warn_if_behind(client);
                Ok(answer)
            }
        }
    }

    /// Sends a request that must not be repeated.
    pub(crate) fn call_once(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        match self {
            Self::InProcess(hub) => {
                guard::may_request(method, params)?;
                hub.call(method, params.clone()).map_err(refusal)
            }
            Self::Running(client) => match client.call(method, params) {
                Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => {
                    Err(Failure::new(Exit::TryAgain, "sent, but the hub has not confirmed it")
                        .hint("ringer list   # shows whether it was done"))
                }
                Err(error) => Err(failure(error)),
                Ok(answer) => {
                    warn_if_behind(client);
                    Ok(answer)
                }
            },
        }
    }
}

/// Sends the hub a request, starting a hub if there is none.
pub(crate) fn call(method: &str, params: &Value) -> Result<Value, Failure> {
    ask(&mut hub()?, method, params)
}

/// Sends a request to this hub. If the hub still reads older messages, prints a note that the answer lacks them.
pub(crate) fn ask(hub: &mut HubClient, method: &str, params: &Value) -> Result<Value, Failure> {
    let answer = match hub.call(method, params) {
        // The hub was killed, or exited because of damage, before it answered. A request that only reads can be repeated.
        Err(HubClientError::NoHub) if may_start() && READS.contains(&method) => {
            *hub = next_hub()?;
            hub.call(method, params)
        }
        answer => answer,
    };
    let answer = answer.map_err(failure)?;
    warn_if_behind(hub);
    Ok(answer)
}

/// Requests that change nothing.
const READS: [&str; 5] =
    ["notification.list", "notification.digest", "workspace.list", "surface.list", "agent.list"];

/// Connects to the hub that follows one that ended without answering. The old one may still hold its lock, or be starting the
/// next.
fn next_hub() -> Result<HubClient, Failure> {
    let end = Instant::now() + START_TIMEOUT;
    loop {
        let mut hub = hub()?;
        match hub.call("ping", &Value::Null) {
            Err(HubClientError::NoHub) if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            answer => return answer.map(|_| hub).map_err(failure),
        }
    }
}

/// Prints a note if the hub's last answer lacks messages that it has not read yet.
pub(crate) fn warn_if_behind(hub: &HubClient) {
    match hub.behind() {
        0 => {}
        1 => eprint_line("note: the hub is still processing 1 older message, which is missing here"),
        many => {
            eprint_line(&format!(
                "note: the hub is still processing {many} older messages, which are missing here"
            ));
        }
    }
}

/// Converts a refusal of the hub.
pub(crate) fn refusal(refusal: ApiError) -> Failure {
    if refusal.code == "ambiguous" {
        return ambiguous(&refusal.message, &refusal.data, &Clock::local());
    }
    let (exit, hint) = match refusal.code.as_str() {
        "not_found" => (Exit::Data, Some("ringer list")),
        "resolved" => (Exit::Data, Some("ringer   # shows what needs you")),
        "invalid_params" => (Exit::Usage, None),
        "no_permission" => (Exit::NoPermission, Some(PERSON_HINT)),
        "busy" | "rate_limited" => (Exit::TryAgain, None),
        "unknown_method" => (Exit::Unavailable, Some("ringer hub stop   # another version is running")),
        _ => (Exit::Unavailable, None),
    };
    let failure = Failure::new(exit, refusal.message);
    hint.into_iter().fold(failure, Failure::hint)
}

/// Converts the error of a failed request.
pub(crate) fn failure(error: HubClientError) -> Failure {
    match error {
        HubClientError::Refused(refused) => refusal(refused),
        HubClientError::NoHub => {
            Failure::new(Exit::Unavailable, "the hub is not running").hint("ringer hub start --foreground")
        }
        HubClientError::Late { .. } => {
            let failure = Failure::new(Exit::TryAgain, error.to_string());
            match context::home().ok().and_then(|home| HubLock::owner(&home)) {
                Some(hub) => failure.hint(format!(
                    "run it again; if the hub never answers: kill -9 {}   # the next message starts a new one, nothing is lost",
                    hub.pid
                )),
                None => failure.hint("ringer hub status"),
            }
        }
        HubClientError::UnsafePath(_) => {
            let failure = Failure::new(Exit::NoPermission, error.to_string());
            match context::home().ok().and_then(|home| HubLock::owner(&home)) {
                Some(hub) => failure.hint(format!(
                    "kill {}   # the next message starts a new hub in a safe directory, nothing is lost",
                    hub.pid
                )),
                None => failure.hint("ringer hub start"),
            }
        }
        error => Failure::new(Exit::TryAgain, error.to_string()).hint("ringer hub status"),
    }
}
