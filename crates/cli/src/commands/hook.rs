//! `ringer hook`.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;

use ringer_agents::client::{CODEX_NOTIFY, Client};
use ringer_agents::hook::{HookContext, HookOutcome, call};
use ringer_hub::{Log, monotonic};
use ringer_ipc::drop_box::DropBox;
use ringer_ipc::tell;
use ringer_journal::{Home, HubLock};
use ringer_platform::path_variable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::client_setup::client_paths;
use crate::failure::{Failure, Outcome};
use crate::output::stdout_is_closed;
use crate::{context, hub_client, origin};

/// Handle an agent's hook event (called by agents; reads JSON from standard input)
///
/// Always exits 0 so that it cannot break an agent. If the journal is busy, the
/// event is kept in a spool and stored later. Errors go to hooks.log in Ringer's
/// state directory.
///
/// Examples:
///   ringer hook claude Stop < input.json
///   ringer hook codex notify '{"type":"agent-turn-complete"}'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Agent client: claude, codex, gemini, opencode or copilot
    client: String,
    /// Event name, as the client calls it
    event: String,
    /// JSON input, for clients that pass it as an argument
    input: Option<String>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let by_hand = io::stdin().is_terminal() && arguments.input.is_none();
    match (arguments.client.parse::<Client>(), by_hand) {
        (Err(error), true) => Err(error.into()),
        (Ok(_), true) => Err(Failure::usage("no input: a hook reads JSON from standard input")
            .hint(format!("ringer hook {} {} < input.json", arguments.client, arguments.event))),
        (client, false) => {
            // Without a home there is no log to write the error to.
            let Ok(home) = context::home() else { return Ok(()) };
            let handled =
                client.map_err(|error| error.to_string()).and_then(|client| handle(client, arguments, &home));
            // Nothing is written to a home that another user owns, not even by root.
            if let Err(why) = handled
                && home.check_owner().is_ok()
            {
                // Only logged: a message or an exit code would disturb the agent.
                let log = Log::new(home.path().join("hooks.log"), false);
                log.line(format!("{} {}: {why}", arguments.client, arguments.event));
            }
            Ok(())
        }
    }
}

fn handle(client: Client, arguments: &Args, home: &Home) -> Result<(), String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let stdout = io::stdout();
    let context = HookContext {
        home: home.clone(),
        clock: &monotonic,
        origin: &origin::message_origin,
        // The client started a shell that has become this process, so the parent is the client.
        process: if client.calls_hooks_itself() { origin::parent() } else { None },
        manager: set("RINGER_MANAGER"),
        name: set("RINGER_AGENT"),
        variable: &set,
        paths: &|| client_paths(path_variable("HOME").unwrap_or_default(), None),
        stdout: Some(stdout.as_fd()),
        before_wait: &|outcome| send_to_hub(outcome, home),
    };
    let input: Box<dyn Read> = match &arguments.input {
        Some(input) if arguments.event == CODEX_NOTIFY => {
            Box::new(io::Cursor::new(input.clone().into_bytes()))
        }
        _ => Box::new(StdinWithTimeout::default()),
    };
    let mut out: Box<dyn Write> =
        if stdout_is_closed() { Box::new(ClosedStdout) } else { Box::new(io::stdout().lock()) };
    let outcome =
        call(client, &arguments.event, input, &mut out, &context).map_err(|error| error.to_string())?;
    out.flush().map_err(|error| error.to_string())?;
    send_to_hub(&outcome, home);
    Ok(())
}

/// Standard input that ends when nothing arrives for [`INPUT_TIMEOUT`]: a client that keeps the pipe open and writes
/// nothing must not leave a process behind for every event.
#[derive(Default)]
struct StdinWithTimeout {
    /// The timeout has passed; later reads return at once.
    timed_out: bool,
}

impl Read for StdinWithTimeout {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.timed_out {
            return Ok(0);
        }
        let stdin = io::stdin();
        let readable = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&INPUT_TIMEOUT));
        match readable {
            Ok(0) => {
                self.timed_out = true;
                Ok(0)
            }
            // Also when polling failed: the read then returns the error.
            _ => stdin.lock().read(buffer),
        }
    }
}

/// How long a client may pause within its input. Clients write it at once; five seconds cover a heavily loaded machine.
const INPUT_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Used when standard output is closed: writes fail, so that claimed messages are released.
struct ClosedStdout;

impl Write for ClosedStdout {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends the observations to the hub, and starts a hub if the hook could not wake one.
fn send_to_hub(outcome: &HookOutcome, home: &Home) {
    // A command in the agent's sandbox cannot start a hub; the hook that follows it can.
    let is_claim_waiting = || DropBox::of(home).waiting() > 0 && HubLock::owner(home).is_none();
    if outcome.hub_is_missing || is_claim_waiting() {
        hub_client::start_in_background();
    }
    if outcome.observations.is_empty() {
        return;
    }
    // Observations become toasts, which only a running hub shows. The agent does not wait for a hub that is stopped or
    // busy.
    let _ = tell(home, "observe", &json!({ "observations": outcome.observations }));
}
