//! Implements the tools of the MCP server with the same code as the commands.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ringer_core::message::ShownKind;
use ringer_journal::{IdSource, Journal, OnParentExit};
use ringer_mcp::{
    AnswerArguments, AskArguments, AskResult, Backend, ListArguments, NotifyArguments, QuestionsArguments,
    ToolText,
};
use ringer_term::{sanitise_line, sanitise_text};

use super::notify::{self, Notice};
use super::{answer, ask, list, questions, status};
use crate::context;
use crate::failure::{Exit, Failure};
use crate::table::Style;

/// The number of notifications that `list` shows by default.
const DEFAULT_LIMIT: u64 = 50;

/// Opens the journal and the hub for each call.
#[derive(Debug)]
pub(crate) struct McpBackend;

impl Backend for McpBackend {
    fn notify(&self, message: &NotifyArguments) -> ToolText {
        told(send(message).map_err(Failure::while_sending))
    }

    fn ask(
        &self,
        question: &AskArguments,
        within: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<AskResult, String> {
        wait_for_answer(question, within, stop).map_err(|failure| failure.to_string())
    }

    fn mark_answer_read(&self, question: &str) {
        // If this cannot be written, the agent receives the answer once more, in its turn.
        let _ = mark_answer_read(question);
    }

    fn questions(&self, arguments: &QuestionsArguments) -> ToolText {
        told(questions::overview(arguments.all, arguments.here, Style::for_programs()))
    }

    fn answer(&self, arguments: &AnswerArguments) -> ToolText {
        told(answer::answer_of_agent(&arguments.id, &arguments.answer).map_err(Failure::while_sending))
    }

    fn mark_seen(&self, ids: &[String]) -> ToolText {
        told(mark_seen(ids))
    }

    fn list(&self, arguments: &ListArguments) -> ToolText {
        let limit = usize::try_from(arguments.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        told(list::overview(arguments.unread, arguments.here, limit, Style::for_programs()))
    }

    fn status(&self) -> ToolText {
        told(status::whole(Style::for_programs()))
    }
}

fn told(done: Result<String, Failure>) -> ToolText {
    done.map_err(|failure| failure.to_string())
}

fn send(message: &NotifyArguments) -> Result<String, Failure> {
    let kind = message.kind.as_deref().map_or(Ok(ShownKind::Status), str::parse)?;
    let sent = notify::send(&Notice {
        body: &message.message,
        claim: &context::claim_of_program(None),
        kind,
        question_id: None,
        title: message.title.as_deref(),
        subtitle: None,
        to: message.to.as_deref(),
        source: message.source.as_deref(),
        key: message.key.as_deref(),
        ttl: None,
    })?;
    let warnings: String = sent.warnings.iter().map(|warning| format!("\n{warning}")).collect();
    Ok(format!("Sent as {}.{warnings}", sent.id))
}

fn wait_for_answer(
    question: &AskArguments,
    within: Duration,
    stop: BorrowedFd<'_>,
) -> Result<AskResult, Failure> {
    let deadline = Instant::now().checked_add(within);
    // When the client ends, it closes the server's input, which ends the wait.
    let wait = (!within.is_zero()).then_some(OnParentExit::Continue);
    let sent = ask::send(&question.question, &question.options, &context::claim_of_program(None), wait);
    let mut sent = sent.map_err(Failure::while_sending)?;
    let id = sent.asked.id.to_string();
    let answered = sent.journal.wait_for_answer(&mut sent.asked, deadline, Some(stop))?;
    Ok(match answered {
        Some(question) => AskResult::Answered { id, answer: question.answer.as_deref().map(sanitise_text) },
        None => AskResult::Open { id, is_sent_later: sent.by_agent },
    })
}

fn mark_answer_read(question: &str) -> Result<(), Failure> {
    let id = ringer_core::message::QuestionId::parse(question)?;
    Ok(context::journal()?.mark_answer_read(&id, IdSource::now().unix_ms)?)
}

fn mark_seen(ids: &[String]) -> Result<String, Failure> {
    let mut journal = context::journal()?;
    let Some(agent) = context::agent_of_client(&mut journal) else { return Err(unknown_agent(&mut journal)) };
    if ids.is_empty() {
        return Ok(String::new());
    }
    let known = journal.mark_seen(&agent, ids, IdSource::now().unix_ms)?;
    let unknown: Vec<String> =
        ids.iter().filter(|id| !known.contains(id)).map(|id| sanitise_line(id)).collect();
    Ok(match unknown.as_slice() {
        [] => String::new(),
        unknown => format!("Not in your inbox: {}.", unknown.join(", ")),
    })
}

fn unknown_agent(journal: &mut Journal) -> Failure {
    let several = journal.agent_summaries().is_ok_and(|agents| agents.len() > 1);
    let why = if several { ": several agents work here" } else { "" };
    Failure::new(Exit::Unavailable, format!("it is not known which agent you are, so nothing can wait for you{why}"))
        .hint("the person can run `ringer setup`, or set RINGER_AGENT to your name in the environment of this server")
}
