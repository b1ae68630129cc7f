//! `ringer hook`.

use std::io::{self, IsTerminal, Read, Write};

use ringer_agents::client::{CODEX_NOTIFY, Client};
use ringer_agents::hook::{HookContext, HookOutcome, call};
use ringer_hub::{Log, monotonic};
use ringer_ipc::tell;
use ringer_journal::Home;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output::leads_nowhere;
use crate::{caller, link, place};

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
    /// Agent client: claude, codex, gemini, opencode, cursor or copilot
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
            // No place to write to, not even why.
            let Ok(home) = place::home() else { return Ok(()) };
            let done =
                client.map_err(|error| error.to_string()).and_then(|client| take(client, arguments, &home));
            // What another user owns is not written to, also not by root.
            if let Err(why) = done
                && home.check_owner().is_ok()
            {
                // Nobody else is told: the agent must not stumble over us.
                let log = Log::open(home.path().join("hooks.log"), false);
                log.line(format!("{} {}: {why}", arguments.client, arguments.event));
            }
            Ok(())
        }
    }
}

fn take(client: Client, arguments: &Args, home: &Home) -> Result<(), String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let at = HookContext {
        home: home.clone(),
        clock: &monotonic,
        origin: &caller::origin,
        // The shell that the client started has become this process, so its parent is the client. Where that was never
        // seen, a process in between would end with the hook, and look like the end of the agent.
        process: if client.is_tested() { caller::parent() } else { None },
        manager: set("RINGER_MANAGER"),
        name: set("RINGER_AGENT"),
    };
    let input: Box<dyn Read> = match &arguments.input {
        Some(input) if arguments.event == CODEX_NOTIFY => {
            Box::new(io::Cursor::new(input.clone().into_bytes()))
        }
        _ => Box::new(PatientInput::default()),
    };
    let mut out: Box<dyn Write> =
        if leads_nowhere() { Box::new(Nobody) } else { Box::new(io::stdout().lock()) };
    let done = call(client, &arguments.event, input, &mut out, &at).map_err(|error| error.to_string())?;
    out.flush().map_err(|error| error.to_string())?;
    tell_hub(&done, home);
    Ok(())
}

/// Standard input, which counts as ended when nothing comes for a while: a client that keeps the pipe open and writes
/// nothing must not leave a process behind for every event.
#[derive(Default)]
struct PatientInput {
    /// It was silent for too long. It is not waited for again, also if it is asked for more.
    is_over: bool,
}

impl Read for PatientInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let stdin = io::stdin();
        let readable = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&SILENCE));
        match readable {
            Ok(0) => {
                self.is_over = true;
                Ok(0)
            }
            // Also when polling failed: reading says what is wrong.
            _ => stdin.lock().read(buffer),
        }
    }
}

/// How long a client may be silent in the middle of its input. Clients write it at once; a busy machine may take a while.
const SILENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// In place of a standard output that is not there: what nobody can read was not handed over.
struct Nobody;

impl Write for Nobody {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the hub has to know besides the journal.
fn tell_hub(done: &HookOutcome, home: &Home) {
    if done.hub_is_missing {
        link::start_unwatched();
    }
    if done.observations.is_empty() {
        return;
    }
    // Only toasts: without a hub nobody would see them. The agent does not wait for a hub that is stopped or busy.
    let _ = tell(home, "observe", &json!({ "observations": done.observations }));
}
