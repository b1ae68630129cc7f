//! `ringer listen`.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use ringer_core::Message;
use ringer_hub::Clock;
use ringer_ipc::drop_box::DropBox;
use ringer_journal::{Consumer, HubLock, IdSource, ListenOutcome, Listener, OnParentExit, Uptime};

use super::log::json_line;
use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::stdout_is_closed;
use crate::sandbox::SandboxListener;
use crate::time_arguments::parse_duration;

/// Wait for messages, print them as JSON lines and exit
///
/// For the lead agent: run it in the background, act on the output, run it
/// again. Messages sent in between are kept. Each message is printed once. If
/// printing fails or the listener is killed while printing, the message is
/// printed again with the same id. Listeners with the same name share the
/// messages; listeners with different names each receive all of them.
///
/// Examples:
///   ringer listen --timeout 300
///   ringer listen --follow --as dashboard | jq -r .msg
///   ringer listen --timeout 0             # print what is there, do not wait
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Stop waiting after this long (e.g. 30s, 5m) [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Listener name; each name has its own read position
    #[arg(long = "as", value_name = "NAME", default_value = Consumer::LEAD)]
    consumer: String,
    /// Keep printing new messages
    #[arg(long)]
    follow: bool,
    /// Skip messages sent before now
    #[arg(long)]
    from_now: bool,
    /// Maximum number of lines per call; the rest is kept for the next call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,
    /// Accepted for consistency; the output is always JSON
    #[arg(long)]
    json: bool,
}

/// Agents cut off long output and lose the rest, so a batch stays well below their limits.
const MAX_CHARS: usize = 30_000;

pub(crate) fn run(arguments: &Args) -> Outcome {
    if stdout_is_closed() {
        return Err(Failure::new(Exit::InputOutput, "standard output is closed: the messages stay unread")
            .hint("ringer listen > messages.jsonl"));
    }
    let deadline = arguments.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let repository = context::repository();
    let scope = context::scope(repository.as_ref());
    let consumer = Consumer::new(&arguments.consumer, scope)
        .map_err(|error| Failure::usage(error.to_string()).hint("ringer listen --as dashboard"))?;
    let home = context::home()?;
    if let Some(drop_box) = DropBox::if_sandboxed(&home)
        && let Some(listener) = SandboxListener::begin(drop_box, consumer.clone(), arguments.from_now)?
    {
        return listen_in_sandbox(listener, arguments, deadline);
    }
    let mut journal = context::journal()?;
    let own =
        context::sender(&context::claim(None), &mut journal)?.agent().map(|agent| agent.as_str().to_owned());
    // A running hub prunes without making anyone wait.
    if HubLock::owner(&home).is_none() {
        journal.prune_if_due(&Uptime::now(), &IdSource::now())?;
    }
    let parent = if arguments.follow { OnParentExit::Continue } else { OnParentExit::Stop };
    let mut listener = Listener::begin(&mut journal, consumer, own, arguments.from_now, parent)?;
    let clock = Clock::local();
    loop {
        let outcome =
            listener.next(deadline, arguments.max as usize, |messages| print_batch(messages, &clock));
        if let Some(repair) = listener.take_repair() {
            context::warn_of_repair(&repair);
        }
        let outcome = outcome?;
        if !(arguments.follow && matches!(outcome, ListenOutcome::Delivered(_))) {
            return Ok(());
        }
    }
}

fn listen_in_sandbox(mut listener: SandboxListener, arguments: &Args, deadline: Option<Instant>) -> Outcome {
    let clock = Clock::local();
    let most = arguments.max as usize;
    while listener.next(deadline, most, arguments.follow, |messages| print_batch(messages, &clock))?
        && arguments.follow
    {}
    Ok(())
}

/// Prints as many messages as fit, at least one, and flushes. Returns the number; the cursor moves behind these and no further.
fn print_batch(messages: &[Message], clock: &Clock) -> Result<usize, Failure> {
    let mut text = String::new();
    let mut taken = 0;
    for message in messages {
        let line = json_line(message, clock)?;
        if taken > 0 && text.chars().count() + line.chars().count() > MAX_CHARS {
            break;
        }
        text += &line;
        text.push('\n');
        taken += 1;
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        Failure::new(Exit::InputOutput, "cannot print: the messages stay unread and come again")
            .because(error)
    })?;
    Ok(taken)
}
