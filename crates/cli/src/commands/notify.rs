//! `ringer notify`.

use std::io::Read;
use std::time::Duration;

use ringer_agents::client::Client;
use ringer_agents::push::has_no_window;
use ringer_core::agent::AgentState;
use ringer_core::conversation::InjectionSource;
use ringer_core::message::{Agent, MAX_BODY, MessageId, QuestionId, ShownKind};
use ringer_core::{Draft, Recipient, Scope, Sender};
use ringer_ipc::drop_box::{ClaimRequest, ClaimedNotice, DropBox};
use ringer_journal::{AppendRequest, IdSource, Journal, SenderClaim};
use ringer_platform::path_variable;
use ringer_term::sanitise_line;
use serde::Serialize;

use super::relay;
use crate::client_setup::client_paths;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json};
use crate::time_arguments::parse_duration;
use crate::{context, hub_client, origin, sandbox};

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
///   ringer notify --to worker-1 --source background_task "make has ended: 0"
///   git log -1 | ringer notify --title "just merged" -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Message text; `-` reads it from standard input
    message: String,
    /// Sender; below an agent, the name of one of its workers [default: you, the agent, or `system`]
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
    /// Recipient: lead, person, all, or an agent's id, session id or name [default: lead and person]
    #[arg(long, value_name = "WHO")]
    to: Option<String>,
    /// Source that the agent reads it under: background_task, ide_diagnostics or file_watcher; needs --to AGENT
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    queued: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let sent = send(&Notice {
        body: &body(&arguments.message)?,
        claim: &context::claim(arguments.from.as_deref()),
        kind: arguments.kind,
        question_id: arguments.question_id.as_deref(),
        title: arguments.title.as_deref(),
        subtitle: arguments.subtitle.as_deref(),
        to: arguments.to.as_deref(),
        source: arguments.source.as_deref(),
        key: arguments.key.as_deref(),
        ttl: arguments.ttl,
    })?;
    for warning in &sent.warnings {
        eprint_line(warning);
    }
    if arguments.json {
        print_json(&Report { id: sent.id.as_str(), scope: sent.scope.as_str(), queued: sent.queued })?;
    }
    Ok(())
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice<'a> {
    pub(crate) body: &'a str,
    pub(crate) claim: &'a SenderClaim,
    pub(crate) kind: ShownKind,
    pub(crate) question_id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) subtitle: Option<&'a str>,
    pub(crate) to: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) ttl: Option<Duration>,
}

/// A message that is stored in the journal or in the drop box.
#[derive(Debug)]
pub(crate) struct SentMessage {
    pub(crate) id: MessageId,
    pub(crate) scope: Scope,
    /// Warnings for the sender, one line each.
    pub(crate) warnings: Vec<String>,
    /// The message is in the drop box, and the hub will append it.
    pub(crate) queued: bool,
}

/// Stores a message and wakes its recipients, starting a hub if necessary.
pub(crate) fn send(notice: &Notice<'_>) -> Result<SentMessage, Failure> {
    if let Some(drop_box) = sandbox::drop_box()?
        && let Some(sent) = send_from_sandbox(&drop_box, notice)?
    {
        return Ok(sent);
    }
    let ResolvedRecipient { recipient, warning, journal } = recipient(notice.to)?;
    let request = request(notice, recipient)?;
    let mut warnings: Vec<String> = warning.into_iter().collect();
    let mut journal = journal.map_or_else(context::journal, Ok)?;
    journal.append_request(&request)?;
    warnings.extend(hub_client::start_unless_woken(&journal));
    Ok(SentMessage { id: request.id, scope: request.draft.scope, warnings, queued: false })
}

/// Leaves a message in the drop box. Returns `None` if the sandbox forbids even that.
fn send_from_sandbox(drop_box: &DropBox, notice: &Notice<'_>) -> Result<Option<SentMessage>, Failure> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let request = ClaimRequest::Notify(ClaimedNotice {
        body: notice.body.to_owned(),
        kind: notice.kind.as_str().to_owned(),
        to: notice.to.map_or(Ok(Recipient::Default), Recipient::parse)?,
        title: text(notice.title),
        subtitle: text(notice.subtitle),
        key: text(notice.key),
        ttl_ms: notice.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
    });
    let Some(claim) = sandbox::leave(drop_box, request)? else { return Ok(None) };
    let given = [
        ("--from", notice.claim.from.is_some()),
        ("--source", notice.source.is_some()),
        ("--question-id", notice.question_id.is_some()),
    ];
    let unused: Vec<&str> = given.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
    let warning =
        (!unused.is_empty()).then(|| format!("warning: not used in a sandbox: {}", unused.join(", ")));
    let warnings = warning.into_iter().chain([sandbox::QUEUED.to_owned()]).collect();
    Ok(Some(SentMessage { id: claim.id(), scope: claim.scope, warnings, queued: true }))
}

/// Builds the journal entry of a message.
fn request(notice: &Notice<'_>, recipient: Recipient) -> Result<AppendRequest, Failure> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let repository = context::repository();
    let (kind, category) = notice.kind.stored();
    let scope = context::scope(repository.as_ref());
    let mut draft = Draft::new(scope, Sender::system(), kind, notice.body)?;
    draft.category = match notice.source {
        Some(source) => Some(sent_source(source, notice.kind, &recipient)?),
        None => text(category),
    };
    draft.title = text(notice.title);
    draft.subtitle = text(notice.subtitle);
    draft.question_id = notice.question_id.map(QuestionId::parse).transpose()?;
    draft.key = text(notice.key);
    draft.ttl = notice.ttl;
    draft.recipient = recipient;
    draft.origin = origin::message_origin();
    draft.check()?;
    let ids = IdSource::now();
    Ok(AppendRequest { id: ids.message_id(), unix_ms: ids.unix_ms, draft, claim: notice.claim.clone() })
}

/// Returns the category for the source that a message is sent under. Other sources follow from the sender, and cannot be
/// chosen.
fn sent_source(source: &str, kind: ShownKind, recipient: &Recipient) -> Result<String, Failure> {
    let known = "background_task, ide_diagnostics, file_watcher";
    let example = "ringer notify --to worker-1 --source background_task \"make has ended: 0\"";
    let read: Result<InjectionSource, _> = source.parse();
    let Ok(InjectionSource::BackgroundTask | InjectionSource::IdeDiagnostics | InjectionSource::FileWatcher) =
        read
    else {
        let what = format!("unknown source {:?} (known: {known})", sanitise_line(source));
        return Err(Failure::usage(what).hint(example));
    };
    if recipient.agent().is_none() {
        return Err(Failure::usage("a source needs an agent as the recipient").hint(example));
    }
    if kind.stored().1.is_some() {
        let what = format!("a message with a source cannot be of the kind {}", kind.as_str());
        return Err(Failure::usage(what).hint(example));
    }
    Ok(source.to_owned())
}

struct ResolvedRecipient {
    recipient: Recipient,
    /// A warning about the recipient.
    warning: Option<String>,
    /// The journal, if it was opened to find the recipient.
    journal: Option<Journal>,
}

/// Resolves the recipient. An agent that the journal does not know may still start: its message waits, and there is a warning.
fn recipient(to: Option<&str>) -> Result<ResolvedRecipient, Failure> {
    let recipient = to.map_or(Ok(Recipient::Default), Recipient::parse)?;
    let Some(agent) = recipient.agent() else {
        return Ok(ResolvedRecipient { recipient, warning: None, journal: None });
    };
    let mut journal = context::journal()?;
    // A worker has no inbox of its own.
    let reader = Sender::new(agent.as_str())?.reply_to().unwrap_or_else(|| agent.clone());
    let known = match journal.agent_named(agent.as_str())? {
        None => journal.agent_named(reader.as_str())?,
        known => known,
    };
    let (recipient, warning) = match known {
        Some(id) => {
            let recipient = Recipient::parse(&format!("agent:{id}"))?;
            let note = recipient.agent().map(|agent| asleep_note(agent, &mut journal)).transpose()?;
            (recipient, note.flatten())
        }
        None if is_elsewhere(agent.as_str()) => (recipient, None),
        None => {
            let warning = unknown_agent(agent.as_str(), &mut journal)?;
            (recipient, Some(warning))
        }
    };
    Ok(ResolvedRecipient { recipient, warning, journal: Some(journal) })
}

/// Returns a note if an agent is idle and a message does not wake it: its client cannot be woken, or no window shows its session.
fn asleep_note(agent: &Agent, journal: &mut Journal) -> Result<Option<String>, Failure> {
    let (Some(state), Some(info)) = (journal.agent_state(agent)?, journal.agent_info(agent)?) else {
        return Ok(None);
    };
    let Ok(client) = info.client.parse::<Client>() else { return Ok(None) };
    let id = agent.as_str();
    if has_no_window(client, &client_paths(path_variable("HOME").unwrap_or_default(), None), &info, state) {
        return Ok(Some(format!("note: no window shows {id}: it reads this with its next prompt")));
    }
    let name = client.display_name();
    Ok(match state {
        AgentState::Exited => Some(format!("note: {id} has ended: it reads this if its session is resumed")),
        AgentState::Ready | AgentState::Done if !client.is_woken_by_messages() => Some(format!(
            "note: {id} is idle, and {name} cannot be woken: it reads this with its next prompt"
        )),
        _ => None,
    })
}

/// Returns true if a name belongs to an agent on another machine, `worker-1@box`. Only such a name makes reading the settings
/// worthwhile.
fn is_elsewhere(name: &str) -> bool {
    let Some((_, machine)) = name.rsplit_once('@') else { return false };
    relay::machines().iter().any(|relay| relay.reaches(machine))
}

/// The most agents that a warning names.
const MAX_NAMED: usize = 12;

/// Returns a warning about an unknown agent: it may be a typing error, or an agent that starts later.
fn unknown_agent(name: &str, journal: &mut Journal) -> Result<String, Failure> {
    let agents = journal.agent_summaries()?;
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
    Ok(format!("warning: {}", sanitise_line(&line)))
}

pub(super) fn body(message: &str) -> Result<String, Failure> {
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
