//! The link to the hub: asking it, and starting it when there is none.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ringer_hub::Clock;
use ringer_ipc::{Client, ClientError, StartError, StartFailure, start_and_wait, start_detached};
use ringer_journal::{Home, HubLock, Journal};
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::say;
use crate::place;

/// How long a hub may take to start.
const START_PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether it is there.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether a hub may be started: `RINGER_HUB=off` forbids it.
pub(crate) fn may_start() -> bool {
    std::env::var_os("RINGER_HUB").is_none_or(|value| value != "off")
}

/// Starts a hub if nobody heard of what was just appended. Does not wait for it, and no failure of it is ours: the
/// message is in the journal.
pub(crate) fn start_if_alone(journal: &Journal) {
    if !journal.hub_was_woken() {
        if may_start()
            && let Some(failure) = place::home().ok().and_then(|home| last_failure(&home))
        {
            let words = failure_words(&failure);
            say(&format!(
                "warning: stored, but not shown yet: {words}\n\
                 hint: ringer doctor   # the hub is being started again"
            ));
        }
        start_unwatched();
    }
}

/// Why the last hub could not start, if none has since.
pub(crate) fn last_failure(home: &Home) -> Option<StartFailure> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    StartFailure::read(home, runtime.as_deref().map(Path::new))
}

/// Starts a hub, if that is allowed, and looks no further.
pub(crate) fn start_unwatched() {
    if may_start()
        && let Ok(program) = std::env::current_exe()
    {
        let _ = start_detached(&program);
    }
}

/// Says when and why the hub could not start.
pub(crate) fn failure_words(failure: &StartFailure) -> String {
    format!("the hub could not start ({}): {}", Clock::local().short(failure.unix_ms), failure.why)
}

/// Connects to the hub, starting one if there is none and that is allowed. `None` if there is none: because that is not
/// allowed, or because it cannot start, which the person is told.
pub(crate) fn connect() -> Result<Option<Client>, Failure> {
    match find_or_start() {
        Ok(client) => Ok(Some(client)),
        Err(NoClient::Forbidden) => Ok(None),
        Err(NoClient::CannotStart(why)) => {
            say(&format!("warning: the hub cannot start, continuing without it: {why}"));
            Ok(None)
        }
        Err(NoClient::Failed(failure)) => Err(failure),
    }
}

/// The hub, or a failure that says how to get one.
pub(crate) fn hub() -> Result<Client, Failure> {
    find_or_start().map_err(|error| match error {
        NoClient::Forbidden => {
            Failure::new(Exit::Unavailable, "the hub is not running, and RINGER_HUB=off prevents starting it")
                .hint("RINGER_HUB= ringer hub start")
        }
        NoClient::CannotStart(why) => cannot_start(&why),
        NoClient::Failed(failure) => failure,
    })
}

/// Starts a hub and connects to it.
pub(crate) fn start_one(home: &Home) -> Result<Client, Failure> {
    start(home).map_err(|error| match error {
        NoClient::CannotStart(why) => cannot_start(&why),
        NoClient::Forbidden => cannot_start("RINGER_HUB=off prevents it"),
        NoClient::Failed(failure) => failure,
    })
}

/// Why there is no connection to a hub.
enum NoClient {
    /// None runs, and `RINGER_HUB=off` forbids to start one.
    Forbidden,
    /// It was started and said why it cannot run.
    CannotStart(String),
    /// Anything else.
    Failed(Failure),
}

fn cannot_start(why: &str) -> Failure {
    Failure::new(Exit::Unavailable, format!("the hub cannot start: {why}")).hint("ringer doctor")
}

fn find_or_start() -> Result<Client, NoClient> {
    let home = place::home().map_err(NoClient::Failed)?;
    match Client::connect(&home) {
        Err(ClientError::NoHub) if may_start() => start(&home),
        Err(ClientError::NoHub) => Err(NoClient::Forbidden),
        connected => connected.map_err(|error| NoClient::Failed(failure(error))),
    }
}

fn start(home: &Home) -> Result<Client, NoClient> {
    let program = std::env::current_exe().map_err(|error| {
        let failure =
            Failure::new(Exit::Unavailable, "cannot find the path of the ringer program").because(error);
        NoClient::Failed(failure)
    })?;
    start_and_wait(&program, START_PATIENCE).map_err(|error| match error {
        StartError::Failed(why) => NoClient::CannotStart(why),
        error => NoClient::Failed(
            Failure::new(Exit::Unavailable, "the hub did not start")
                .because(error)
                .hint("ringer hub start --foreground"),
        ),
    })?;
    // If another one was faster, ours has ended, and that one may not have written yet where it is.
    let end = Instant::now() + START_PATIENCE;
    loop {
        match Client::connect(home) {
            Err(ClientError::NoHub) if Instant::now() < end => thread::sleep(LOOK_EVERY),
            connected => return connected.map_err(|error| NoClient::Failed(failure(error))),
        }
    }
}

/// Asks the hub for something, starting one if there is none.
pub(crate) fn call(method: &str, params: &Value) -> Result<Value, Failure> {
    ask(&mut hub()?, method, params)
}

/// Asks this hub for something. If it still reads older messages, the person is told that the answer lacks them.
pub(crate) fn ask(hub: &mut Client, method: &str, params: &Value) -> Result<Value, Failure> {
    let answer = hub.call(method, params).map_err(failure)?;
    tell_behind(hub);
    Ok(answer)
}

/// Tells the person if the hub's last answer lacks messages that it has not read yet.
pub(crate) fn tell_behind(hub: &Client) {
    match hub.behind() {
        0 => {}
        1 => say("note: the hub is still processing 1 older message, which is missing here"),
        many => {
            say(&format!("note: the hub is still processing {many} older messages, which are missing here"));
        }
    }
}

/// What a failed request means for the person.
pub(crate) fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::Refused(refusal) => {
            let (exit, hint) = match refusal.code.as_str() {
                "not_found" => (Exit::Data, Some("ringer list --all")),
                "invalid_params" => (Exit::Usage, None),
                "busy" | "rate_limited" => (Exit::TryAgain, None),
                "unknown_method" => {
                    (Exit::Unavailable, Some("ringer hub stop   # another version is running"))
                }
                _ => (Exit::Unavailable, None),
            };
            let failure = Failure::new(exit, refusal.message);
            hint.into_iter().fold(failure, Failure::hint)
        }
        ClientError::NoHub => {
            Failure::new(Exit::Unavailable, "the hub is not running").hint("ringer hub start --foreground")
        }
        ClientError::Late { .. } => {
            let failure = Failure::new(Exit::TryAgain, error.to_string());
            match place::home().ok().and_then(|home| HubLock::owner(&home)) {
                Some(hub) => failure.hint(format!(
                    "run it again; if the hub never answers: kill -9 {}   # the next message starts a new one, nothing is lost",
                    hub.pid
                )),
                None => failure.hint("ringer hub status"),
            }
        }
        ClientError::Foreign { .. } | ClientError::UnsafePath(_) => {
            let failure = Failure::new(Exit::NoPermission, error.to_string());
            match place::home().ok().and_then(|home| HubLock::owner(&home)) {
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
