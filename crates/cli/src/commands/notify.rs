//! `ringer notify`.

use std::io::Read;
use std::time::Duration;

use ringer_core::message::{MAX_BODY, QuestionId, ShownKind};
use ringer_core::{Draft, Recipient};
use ringer_journal::{IdSource, Journal};
use ringer_term::sanitise_line;
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, print_json};
use crate::time_arguments::parse_duration;
use crate::{context, hub_client, origin};

/// Send a notification
///
/// Sends it to you and to this repository's lead agent, or to the recipient
/// given with --to. The message is on disk when the command returns, and
/// running listeners have been woken. An agent that is not running receives it
/// later.
///
/// Examples:
///   ringer notify "the build is green"
///   ringer notify --kind complete --from worker-1 "Agent worker-1 completed its goal"
///   ringer notify --to worker-1 "the schema changed, pull first"
///   git log -1 | ringer notify --title "just merged" -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Message text; `-` reads it from standard input
    message: String,
    /// Sender [default: $RINGER_AGENT, the agent of this worktree, or `system`]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Kind: complete, waiting, permission, idle, question, stuck, error or status
    #[arg(long, alias = "type", value_name = "KIND", default_value = "status")]
    kind: ShownKind,
    /// Id of the question that this message is about
    #[arg(long, value_name = "ID")]
    question_id: Option<String>,
    /// Title
    #[arg(long)]
    title: Option<String>,
    /// Subtitle
    #[arg(long)]
    subtitle: Option<String>,
    /// Recipient: lead, person, all, or an agent's id or session id [default: lead and person]
    #[arg(long, value_name = "WHO")]
    to: Option<String>,
    /// Replace the previous notification with the same key
    #[arg(long)]
    key: Option<String>,
    /// Do not show it if it cannot be delivered within this time (30s, 10m, 2h)
    #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// Print one JSON object with the id
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    id: &'a str,
    scope: &'a str,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let body = body(&arguments.message)?;
    let repository = context::repository();
    let scope = context::scope(repository.as_ref());
    let mut journal = context::journal()?;
    let recipient = recipient(arguments.to.as_deref(), &mut journal)?;
    let sender =
        context::sender(arguments.from.as_deref(), recipient.agent(), &mut journal, repository.as_ref())?;
    let (kind, category) = arguments.kind.stored();
    let mut draft = Draft::new(scope, sender, kind, &body)?;
    draft.category = category.map(str::to_owned);
    draft.title.clone_from(&arguments.title);
    draft.subtitle.clone_from(&arguments.subtitle);
    draft.question_id = arguments.question_id.as_deref().map(QuestionId::parse).transpose()?;
    draft.key.clone_from(&arguments.key);
    draft.ttl = arguments.ttl;
    draft.recipient = recipient;
    draft.origin = origin::message_origin();
    draft.check()?;
    let id = journal.append(&draft, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    context::warn_if_repaired(&journal);
    if arguments.json {
        print_json(&Report { id: id.as_str(), scope: draft.scope.as_str() })?;
    }
    Ok(())
}

/// Whom it is for. An agent that the journal does not know may still come: its message waits.
fn recipient(to: Option<&str>, journal: &mut Journal) -> Result<Recipient, Failure> {
    let Some(to) = to else { return Ok(Recipient::Default) };
    let recipient = Recipient::parse(to)?;
    let named = recipient.agent().map(|agent| journal.agent_named(agent.as_str()));
    match (named.transpose()?.flatten(), recipient.agent()) {
        (Some(id), _) => Ok(Recipient::parse(&format!("agent:{id}"))?),
        (None, Some(agent)) => {
            warn_of_unknown(agent.as_str(), journal)?;
            Ok(recipient)
        }
        (None, None) => Ok(recipient),
    }
}

/// Agents that a warning names.
const MAX_NAMED: usize = 12;

/// Warns that no agent of that name is known: it may be a typing error, or an agent that starts later.
fn warn_of_unknown(name: &str, journal: &mut Journal) -> Result<(), Failure> {
    let agents = journal.known_agents()?;
    let alive = agents.iter().filter(|agent| agent.state.as_deref() != Some("exited"));
    let mut names: Vec<&str> = alive.map(|agent| agent.name.as_deref().unwrap_or(&agent.id)).collect();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let known = match (names.is_empty(), more) {
        (true, _) => "none is running".to_owned(),
        (false, 0) => format!("known: {}", names.join(", ")),
        (false, more) => format!("known: {} and {more} more", names.join(", ")),
    };
    let line = format!("no agent named {name:?} is known yet ({known}); the message waits for it");
    eprint_line(&format!("warning: {}", sanitise_line(&line)));
    Ok(())
}

fn body(message: &str) -> Result<String, Failure> {
    if message != "-" {
        return Ok(message.to_owned());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BODY as u64 + 2)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(Exit::NoInput, "cannot read standard input").because(error))?;
    // The final newline of a program's output is not part of the message.
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.len() > MAX_BODY {
        return Err(Failure::new(Exit::Data, format!("the message is longer than {MAX_BODY} bytes"))
            .hint("write it to a file and send the path: ringer notify \"see FILE\""));
    }
    String::from_utf8(bytes).map_err(|error| {
        Failure::new(Exit::Data, "the message is not UTF-8")
            .because(error)
            .hint("iconv -t UTF-8 … | ringer notify -")
    })
}
