//! `ringer ask`.

use std::time::{Duration, Instant};

use ringer_core::agent::question_with_options;
use ringer_core::message::{About, MAX_BODY, MessageOrigin, validate_text};
use ringer_core::{Draft, Kind, Sender};
use ringer_ipc::drop_box::{ClaimRequest, DropBox};
use ringer_journal::{IdSource, Journal, OnParentExit, PendingQuestion, Repository, SenderClaim};
use serde::Serialize;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line};
use crate::time_arguments::parse_duration;
use crate::{context, hub_client, origin, sandbox};

/// Ask you or the lead agent a question
///
/// Stores the question and sends a notification. Answer it with `ringer
/// answer ID ANSWER`. With --wait, the command prints the answer. Without
/// it, the question id is printed, and an agent that asked receives the answer
/// in its inbox.
///
/// Examples:
///   ringer ask "Should I refactor the auth module?"
///   answer=$(ringer ask --wait --option yes --option no "Deploy now?")
///   ringer ask --wait --timeout 600 "Which branch?" || echo "no answer"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Question text
    question: String,
    /// Wait for the answer and print it
    #[arg(long)]
    wait: bool,
    /// Stop waiting after this long (e.g. 30s, 5m); the question stays open
    #[arg(long, value_name = "SECONDS", requires = "wait", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Suggest an answer; repeat for more
    #[arg(long, value_name = "ANSWER")]
    option: Vec<String>,
    /// Sender; below an agent, the name of one of its workers [default: you, the agent, or `system`]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    question_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let deadline = arguments.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let wait = arguments.wait.then_some(OnParentExit::Stop);
    if let Some(drop_box) = sandbox::drop_box()?
        && let Some(outcome) = ask_from_sandbox(&drop_box, arguments, deadline)
    {
        return outcome;
    }
    let claim = context::claim(arguments.from.as_deref());
    let sent = send(&arguments.question, &arguments.option, &claim, wait);
    let SentQuestion { mut journal, mut asked, warning, .. } = sent.map_err(Failure::while_sending)?;
    if let Some(warning) = warning {
        eprint_line(&warning);
    }
    let id = asked.id.to_string();
    if !arguments.wait {
        return print_question(&id, arguments.json);
    }
    let answered = journal.wait_for_answer(&mut asked, deadline, None)?;
    let closed = answered.map(|question| ClosedQuestion { answer: question.answer });
    print_answer(&id, closed.as_ref(), arguments.json)?;
    // If this cannot be written, the agent receives the answer once more, in its turn.
    let _ = journal.mark_answer_read(&asked.id, IdSource::now().unix_ms);
    Ok(())
}

/// Asks through the drop box. Returns `None` if the sandbox forbids even that.
fn ask_from_sandbox(drop_box: &DropBox, arguments: &Args, deadline: Option<Instant>) -> Option<Outcome> {
    let request =
        ClaimRequest::Ask { question: arguments.question.clone(), options: arguments.option.clone() };
    let claim = match sandbox::leave(drop_box, request) {
        Ok(claim) => claim?,
        Err(failure) => return Some(Err(failure)),
    };
    if arguments.from.is_some() {
        eprint_line("warning: not used in a sandbox: --from");
    }
    eprint_line(sandbox::QUEUED);
    let id = claim.stamp.question_id();
    if !arguments.wait {
        return Some(print_question(id.as_str(), arguments.json));
    }
    let answered = sandbox::wait_for_answer(drop_box, &id, deadline);
    Some(answered.and_then(|state| {
        let closed = state.map(|state| ClosedQuestion { answer: sandbox::answer_of(state) });
        print_answer(id.as_str(), closed.as_ref(), arguments.json)
    }))
}

fn print_question(id: &str, json: bool) -> Outcome {
    let report = Report { question_id: id, answered: None, answer: None };
    if json { print_json(&report) } else { print_line(id) }
}

/// A question that can no longer be answered.
struct ClosedQuestion {
    /// `None` if it was closed without an answer.
    answer: Option<String>,
}

/// Prints the answer. `closed` is `None` if nobody answered in time.
fn print_answer(id: &str, closed: Option<&ClosedQuestion>, json: bool) -> Outcome {
    let answer = closed.and_then(|closed| closed.answer.as_deref());
    if json {
        print_json(&Report { question_id: id, answered: Some(closed.is_some()), answer })?;
    } else if closed.is_some() {
        print_line(answer.unwrap_or_default())?;
    }
    if closed.is_some() {
        return Ok(());
    }
    Err(Failure::new(Exit::TryAgain, format!("no answer to {id} in time; the question stays open"))
        .hint(format!("ringer answer {id} \"the answer\"")))
}

/// A question that is stored in the journal.
#[derive(Debug)]
pub(crate) struct SentQuestion {
    pub(crate) journal: Journal,
    pub(crate) asked: PendingQuestion,
    /// An agent asked, and receives the answer in its inbox.
    pub(crate) by_agent: bool,
    /// A warning for the sender.
    pub(crate) warning: Option<String>,
}

/// Stores a question from this process and wakes the hub, starting it if necessary.
pub(crate) fn send(
    question: &str,
    options: &[String],
    claim: &SenderClaim,
    wait: Option<OnParentExit>,
) -> Result<SentQuestion, Failure> {
    let repository = context::repository();
    let mut journal = context::journal()?;
    let sender = context::sender(claim, &mut journal)?;
    // A name that somebody chose is known to the person; an id is not.
    let is_named = claim.from.is_some() || claim.inherited.is_some();
    let name = sender.agent().filter(|_| is_named).map(|agent| agent.as_str().to_owned());
    let asker = Asker { sender, name, repository, origin: origin::message_origin(), category: None };
    store(journal, question, options, asker, wait)
}

/// The sender of a question, and where it runs.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) sender: Sender,
    /// The name by which the person knows the sender.
    pub(crate) name: Option<String>,
    pub(crate) repository: Option<Repository>,
    pub(crate) origin: MessageOrigin,
    pub(crate) category: Option<String>,
}

/// Stores a question and wakes the hub, starting it if necessary.
pub(crate) fn store(
    mut journal: Journal,
    question: &str,
    options: &[String],
    by: Asker,
    wait: Option<OnParentExit>,
) -> Result<SentQuestion, Failure> {
    let Asker { sender, name, repository, origin, category } = by;
    let scope = context::scope(repository.as_ref());
    let by_agent = sender.agent();
    let asks = match &by_agent {
        Some(agent) => format!("Agent {} asks: {question}", agent.as_str()),
        None => question.to_owned(),
    };
    // The question is validated alone, so that an empty one is not hidden by the words around it.
    validate_text("question", question, MAX_BODY)?;
    let mut draft = Draft::new(scope, sender, Kind::Question, &asks)?;
    (draft.origin, draft.category) = (origin, category);
    draft.about = Some(About {
        name,
        repository: repository.as_ref().and_then(Repository::name),
        branch: repository.as_ref().and_then(Repository::branch),
        detail: Some(question_with_options(question, options)),
        ..About::default()
    });
    let asked = journal.ask(&draft, question, options, &IdSource::now(), wait)?;
    let warning = hub_client::start_unless_woken(&journal);
    context::warn_if_repaired(&journal);
    Ok(SentQuestion { journal, asked, by_agent: by_agent.is_some(), warning })
}
