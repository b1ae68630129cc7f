//! `ringer answer`.

use ringer_core::message::{MessageId, Named, QuestionId};
use ringer_journal::{IdSource, Journal};
use ringer_term::sanitise_line;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::print_json;
use crate::{context, hub_client};

/// Answer a question, or close it without an answer
///
/// If `ringer ask --wait` is waiting, it prints the answer and exits. Otherwise
/// the agent that asked receives the answer in its inbox. A question in an agent
/// client's dialog stays open there: answer it in the dialog.
///
/// Examples:
///   ringer answer k3fx "yes, but keep the old API"
///   ringer answer q-1740000607-a1b2c3
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Question id, short id, or `last`; `ringer questions` lists them
    id: String,
    /// Answer text [default: close without an answer]
    answer: Option<String>,
    /// Sender [default: $RINGER_AGENT, the agent of this worktree, or `system`]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    question_id: &'a str,
    asked_by: &'a str,
    answer: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let repository = context::repository();
    let mut journal = context::journal()?;
    let id = named(&arguments.id, &mut journal)?;
    // An answer to the agent of this worktree is not from that agent.
    let question = journal.question(&id)?;
    let asker = question.and_then(|question| question.asker.agent());
    let sender =
        context::sender(arguments.from.as_deref(), asker.as_ref(), &mut journal, repository.as_ref())?;
    let question = journal.answer(&id, arguments.answer.as_deref(), &sender, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    context::warn_if_repaired(&journal);
    if arguments.json {
        print_json(&Report {
            question_id: question.id.as_str(),
            asked_by: question.asker.as_str(),
            answer: question.answer.as_deref(),
        })?;
    }
    Ok(())
}

/// The question of that id, or the open one that was asked by the message of that id.
fn named(text: &str, journal: &mut Journal) -> Result<QuestionId, Failure> {
    let id = QuestionId::parse(text)?;
    if journal.question(&id)?.is_some() {
        return Ok(id);
    }
    let open = journal.question_messages(false)?;
    let question_of =
        |message: &MessageId| open.iter().find(|(_, id)| id == message).map(|(question, _)| question);
    match Named::among(text, open.iter().rev().map(|(_, message)| message)) {
        Named::One(message) => Ok(question_of(&message).cloned().unwrap_or(id)),
        Named::Unknown => Ok(id),
        Named::Several(messages) => {
            let ids = messages.iter().take(10).filter_map(question_of);
            let ids: String = ids.map(|id| format!("\n  {id}")).collect();
            let what = format!("{} fits several open questions:{ids}", sanitise_line(text));
            Err(Failure::usage(what).hint("ringer questions"))
        }
    }
}
