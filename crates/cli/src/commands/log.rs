//! `ringer log`, and the line of a message, which `ringer listen` prints, too.

use std::io::{self, Write};

use ringer_core::message::{MessageOrigin, QuestionId, ShownKind};
use ringer_core::{Message, Recipient};
use ringer_hub::Clock;
use ringer_journal::{Filter, IdSource, Journal, JournalFollower, OnParentExit};
use ringer_term::sanitise_line_before;
use serde::Serialize;

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::output::{check_write, json};
use crate::time_arguments::parse_since;

/// Print this repository's message history
///
/// Read-only: does not mark anything as read.
///
/// Examples:
///   ringer log --since 2h
///   ringer log --follow --kind question --everywhere
///   ringer log --from worker-1 --json | jq -r .msg
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Keep printing new messages
    #[arg(long, short)]
    follow: bool,
    /// Show only messages since then: 10m, 2h, 2d, 2026-02-17, 2026-02-17T14:30:05-0600
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Show only messages from this sender
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Show only this kind: complete, waiting, permission, idle, question, stuck, error or status;
    /// permission and idle are waiting, too
    #[arg(long, alias = "type", value_name = "KIND")]
    kind: Option<ShownKind>,
    /// Show only messages to lead, person, all, or an agent
    #[arg(long, value_name = "WHO")]
    to: Option<String>,
    /// Include every repository
    #[arg(long)]
    everywhere: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Messages read at once; the journal may be long.
const PAGE: usize = 500;

pub(crate) fn run(arguments: &Args) -> Outcome {
    let now = IdSource::now().unix_ms;
    let since = arguments.since.as_deref().map(|since| parse_since(since, now)).transpose();
    let scope = context::scope(context::repository().as_ref());
    let stored = arguments.kind.map(ShownKind::stored);
    let filter = Filter {
        scope: (!arguments.everywhere).then_some(scope),
        sender: arguments.from.clone(),
        kind: stored.map(|(kind, _)| kind),
        category: stored.and_then(|(_, category)| category),
        recipient: arguments.to.as_deref().map(Recipient::parse).transpose()?.map(|to| to.to_string()),
        since_ms: since
            .map_err(|error| Failure::usage(format!("--since: {error}")).hint("ringer log --since 2h"))?,
    };
    let clock = Clock::local();
    let mut journal = if arguments.follow {
        context::journal()?
    } else {
        match context::existing_journal()? {
            Some(journal) => journal,
            None => return Ok(()),
        }
    };
    let printed = print_all(&mut journal, &filter, arguments.json, &clock)?;
    context::warn_if_repaired(&journal);
    let PrintResult::Complete(last) = printed else { return Ok(()) };
    if !arguments.follow {
        return Ok(());
    }
    let mut watch = JournalFollower::begin(&mut journal, last.as_deref(), OnParentExit::Continue)?;
    loop {
        let messages = watch.next(&filter, None, PAGE)?;
        if messages.is_empty() || !print_page(&messages, arguments.json, &clock)? {
            return Ok(());
        }
    }
}

enum PrintResult {
    /// Everything was printed; with the last message, if there was one.
    Complete(Option<Box<Message>>),
    /// The reader of standard output has gone.
    ReaderGone,
}

fn print_all(
    journal: &mut Journal,
    filter: &Filter,
    json: bool,
    clock: &Clock,
) -> Result<PrintResult, Failure> {
    let mut last: Option<Message> = None;
    loop {
        let seq = last.as_ref().map_or(0, |last| last.seq);
        let mut messages = journal.matching_after(filter, seq, PAGE)?;
        if messages.is_empty() {
            return Ok(PrintResult::Complete(last.map(Box::new)));
        }
        if !print_page(&messages, json, clock)? {
            return Ok(PrintResult::ReaderGone);
        }
        last = messages.pop();
    }
}

/// Returns `false` if the reader of standard output has gone.
fn print_page(messages: &[Message], json: bool, clock: &Clock) -> Result<bool, Failure> {
    let mut text = String::new();
    for message in messages {
        text += &if json { json_line(message, clock)? } else { text_line(message, clock) };
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let gone = matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
    check_write(written)?;
    Ok(!gone)
}

/// The line that `listen` and `log` print. Agents are taught the first five fields; the order is part of the interface.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    from: &'a str,
    r#type: &'static str,
    msg: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<&'a QuestionId>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtitle: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    scope: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a MessageOrigin>,
}

/// Formats a message as one line of JSON, without the newline.
pub(crate) fn json_line(message: &Message, clock: &Clock) -> Result<String, Failure> {
    let draft = &message.draft;
    json(&Line {
        ts: clock.stamp(message.unix_ms),
        from: draft.sender.as_str(),
        r#type: draft.tag.as_str(),
        msg: &draft.body,
        question_id: draft.question_id.as_ref(),
        id: message.id.as_str(),
        to: (draft.recipient != Recipient::Default).then(|| draft.recipient.to_string()),
        title: draft.title.as_deref(),
        subtitle: draft.subtitle.as_deref(),
        category: draft.category.as_deref(),
        key: draft.key.as_deref(),
        scope: draft.scope.as_str(),
        origin: Some(&draft.origin).filter(|origin| **origin != MessageOrigin::default()),
    })
}

/// Formats a message as one line for a person, safe to print.
pub(crate) fn text_line(message: &Message, clock: &Clock) -> String {
    let draft = &message.draft;
    let title = draft.title.as_ref().map(|title| format!("{title}: ")).unwrap_or_default();
    let question = draft.question_id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
    let line = format!(
        "{}  {:<8}  {}  {title}{}",
        clock.short(message.unix_ms),
        draft.tag.as_str(),
        draft.sender,
        draft.body
    );
    // `ringer answer` takes the id, so a long text is cut before it.
    sanitise_line_before(&line, &question)
}
