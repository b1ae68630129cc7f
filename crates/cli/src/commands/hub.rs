//! `ringer hub`.

use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ringer_agents::account::account_of;
use ringer_agents::setup::{Client, Entries};
use ringer_hub::{HubError, HubOptions, Log};
use ringer_ipc::part::Part;
use ringer_ipc::{HubClient, HubClientError, detach};
use ringer_journal::{Home, HubLock};
use ringer_mcp::channels::{Channels, ChannelsSetup};
use ringer_platform::{path_variable, variable};
use ringer_relay::{RelaySetup, Relays};
use ringer_tmux::{Scanning, Servers, TmuxPanes};
use serde_json::{Value, json};

use super::relay::give_answer;
use crate::agent_threads::{start_push, start_sessions};
use crate::client_setup::{client_paths, own_path, user_plan};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line};
use crate::popup_answerer::{PopupAnswerer, answer_of_channel};
use crate::{context, guard, hub_client, tmux_setup};

/// Manage the background service
///
/// The hub starts on demand, so these commands are rarely needed.
///
/// Examples:
///   ringer hub status
///   ringer hub start --foreground   # watch its log
///   ringer hub stop
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Start the service
    Start {
        /// Run in the foreground and log to standard error
        #[arg(long)]
        foreground: bool,
    },
    /// Stop the service; the next message starts it again
    Stop,
    /// Show whether the service runs, and its queues
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run the service
    #[command(hide = true)]
    Run {
        /// Detach from the parent process
        #[arg(long)]
        detached: bool,
        /// End at once if there is no journal.
        #[arg(long)]
        if_used: bool,
    },
    /// Be the host of the tmux server around this process
    #[command(hide = true)]
    Tmux {
        /// The key after the prefix that opens the inbox
        #[arg(long)]
        key: Option<String>,
    },
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match &arguments.command {
        Command::Start { foreground: true } => serve(true),
        Command::Start { foreground: false } => start(),
        Command::Stop => stop(),
        Command::Status { json } => status(*json),
        Command::Tmux { key } => {
            let server = tmux_setup::server_around()
                .ok_or_else(|| Failure::usage("this is not a process of tmux").hint("ringer setup tmux"))?;
            tmux_setup::start_in(&server, key.as_deref(), &own_path()?)
        }
        Command::Run { detached, if_used } => {
            if *detached {
                detach().map_err(|error| Failure::new(Exit::Unavailable, "cannot detach").because(error))?;
            }
            let is_used = || context::home().is_ok_and(|home| home.database().exists());
            if *if_used && !is_used() { Ok(()) } else { serve(!*detached) }
        }
    }
}

fn serve(foreground: bool) -> Outcome {
    ringer_platform::share_one_heap();
    ringer_platform::raise_open_files();
    // Other processes that meet damage wait for a hub. This is the hub: it exits, and the next one repairs the file.
    let home = context::home()?.with_hub_starter(None);
    let guard = Arc::new(guard::HubGuard);
    let options = HubOptions { guard: Some(guard), ..HubOptions::of_process(home.clone(), foreground) };
    ringer_hub::run(&options, parts(&home, &options.log)).map_err(failure)
}

/// The parts of the hub. Nothing else names them.
fn parts(home: &Home, log: &Log) -> Vec<Box<dyn Part>> {
    let mut parts: Vec<Box<dyn Part>> = vec![
        Box::new(start_push(home.clone(), log.clone())),
        Box::new(start_sessions(home.clone(), log.clone())),
        Box::new(TmuxPanes),
        Box::new(tmux_servers(home, log.clone())),
        Box::new(mcp_channels(home, log.clone())),
        Box::new(relays(home, log.clone())),
        Box::new(PopupAnswerer::new(home.clone())),
    ];
    parts.extend(windows(home, log.clone()));
    parts
}

fn tmux_servers(home: &Home, log: Log) -> Servers {
    let scanning = Scanning {
        program: own_path().unwrap_or_else(|_| "ringer".into()),
        is_needed: Box::new(|client| !has_hooks(client)),
    };
    let directories = tmux_setup::socket_directories();
    Servers::start(home.clone(), directories, scanning, move |line| log.line(line))
}

fn mcp_channels(home: &Home, log: Log) -> Channels {
    let paths = client_paths(path_variable("HOME").unwrap_or_default(), None);
    let own_home = home.clone();
    Channels::start(ChannelsSetup {
        home: home.clone(),
        search_path: variable("PATH").unwrap_or_default(),
        find_account: Box::new(move |agent| {
            account_of(&agent.client, agent.process.map(|(pid, _)| pid), &paths)
        }),
        answer: Box::new(move |key, verdict, by| answer_of_channel(&own_home, key, verdict, by)),
        log: Box::new(move |line| log.line(line)),
    })
}

fn relays(home: &Home, log: Log) -> Relays {
    Relays::start(RelaySetup {
        home: home.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        give_answer: Some(give_answer),
        log: Box::new(move |line| log.line(line)),
    })
}

/// The host for terminal windows, unless it is turned off.
#[cfg(target_os = "linux")]
fn windows(home: &Home, log: Log) -> Option<Box<dyn Part>> {
    let is_off = variable("RINGER_WINDOWS").is_some_and(|value| value == "off");
    let start = || ringer_windows::Windows::start(home.clone(), move |line| log.line(line));
    (!is_off).then(|| Box::new(start()) as Box<dyn Part>)
}

#[cfg(not(target_os = "linux"))]
fn windows(_: &Home, _: Log) -> Option<Box<dyn Part>> {
    None
}

/// Returns true if the settings of a client contain Ringer's hooks.
fn has_hooks(client: &str) -> bool {
    Client::from_str(client)
        .is_ok_and(|client| matches!(user_plan(client, Entries::Hooks), Ok(Ok(plan)) if plan.is_empty()))
}

fn failure(error: HubError) -> Failure {
    match error {
        HubError::Journal(error) => error.into(),
        HubError::Running { .. } => Failure::new(Exit::TryAgain, error.to_string()).hint("ringer hub stop"),
        HubError::Panicked(_) => Failure::new(Exit::Software, error.to_string()).hint("ringer hub start"),
        error => Failure::new(Exit::CannotCreate, error.to_string()),
    }
}

fn start() -> Outcome {
    let home = context::home()?;
    // A connection to the socket proves nothing: a hub that was just killed may still have it open.
    match HubClient::connect(&home).and_then(|mut hub| hub.call("ping", &Value::Null)) {
        Ok(_) => print_line("the hub is already running"),
        Err(HubClientError::NoHub) => {
            hub_client::start_and_connect(&home)?;
            print_line("the hub is running")
        }
        Err(error) => Err(hub_client::failure(error)),
    }
}

/// Time limit for a hub to exit after its answer: it waits 1 s for hung threads and then writes its state.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

fn stop() -> Outcome {
    print_line(&end(&context::home()?)?)
}

/// Stops the hub of a home and waits for its exit. Returns the outcome in words.
pub(super) fn end(home: &Home) -> Result<String, Failure> {
    let mut client = match HubClient::connect(home) {
        Err(HubClientError::NoHub) => return Ok("the hub is not running".to_owned()),
        connected => connected.map_err(hub_client::failure)?,
    };
    let before = HubLock::owner(home).map(|hub| hub.pid);
    match client.call("hub.stop", &Value::Null) {
        // The hub ended between the two calls.
        Err(HubClientError::NoHub) => return Ok("the hub is not running".to_owned()),
        answer => drop(answer.map_err(hub_client::failure)?),
    }
    client.wait_for_ever().map_err(hub_client::failure)?;
    // The connection closes a moment before the hub exits; the lock is released with the process.
    while let Ok(Some(_)) = client.next_line() {}
    let deadline = Instant::now() + STOP_TIMEOUT;
    while let Some(hub) = HubLock::owner(home) {
        // Two messages may each have started a hub, and the second was waiting for this lock.
        if before.is_some_and(|before| before != hub.pid) {
            return Ok(format!("the hub has stopped, and another one has started (pid {})", hub.pid));
        }
        if Instant::now() >= deadline {
            let message = format!("the hub did not stop in time (pid {})", hub.pid);
            return Err(Failure::new(Exit::TryAgain, message)
                .hint(format!("kill -9 {}   # safe: messages are in the journal", hub.pid)));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok("the hub has stopped".to_owned())
}

fn status(as_json: bool) -> Outcome {
    let home = context::home()?;
    let found = match HubClient::connect(&home) {
        Ok(mut client) => match client.call("hub.status", &Value::Null) {
            Ok(status) => Some(status),
            // The hub ended between the two calls.
            Err(HubClientError::NoHub) => None,
            Err(error) => return Err(hub_client::failure(error)),
        },
        Err(HubClientError::NoHub) => None,
        Err(error) => return Err(hub_client::failure(error)),
    };
    let Some(status) = found else {
        let holder = HubLock::owner(&home).map(|holder| holder.pid);
        let failure = hub_client::last_failure(&home).filter(|_| holder.is_none());
        if as_json {
            let why = failure.map(|failure| failure.why);
            return print_json(&json!({ "running": false, "pid": holder, "could_not_start": why }));
        }
        return print_line(&match (holder, failure) {
            (Some(pid), _) => format!("the hub (pid {pid}) holds the lock but does not answer"),
            (None, Some(failure)) => {
                format!("the hub is not running: {}", hub_client::failure_text(&failure))
            }
            (None, None) => "the hub is not running; the next message starts it".to_owned(),
        });
    };
    if as_json {
        let mut report = status;
        report["running"] = json!(true);
        return print_json(&report);
    }
    let version = status["version"].as_str().unwrap_or_default();
    if version != env!("CARGO_PKG_VERSION") {
        eprint_line(&format!(
            "warning: the hub is version {version}, this is {}\nhint: ringer hub stop   # the next message starts the new version",
            env!("CARGO_PKG_VERSION")
        ));
    }
    let number = |name: &str| status[name].as_i64().unwrap_or(0);
    let behind = match number("behind") {
        0 => String::new(),
        many => format!(", {many} messages not processed yet"),
    };
    print_line(&format!(
        "the hub is running: pid {}, version {version}, {} unread, {} queued, {} being delivered{behind}",
        number("pid"),
        number("unread"),
        number("undecided"),
        number("under_way")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_ringer_has_its_exit_code() {
        let code = |error| failure(error).exit as i32;
        assert_eq!(code(HubError::Panicked("index out of bounds".to_owned())), 70);
        assert_eq!(code(HubError::Running { pid: None }), 75);
    }
}
