//! `ringer questions`.

use std::collections::HashMap;

use ringer_core::message::QuestionId;
use ringer_hub::Clock;
use ringer_journal::{Journal, Question};
use ringer_term::sanitise_line;
use serde::Serialize;

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::notifications::Notifications;
use crate::output::{eprint_line, print_json, print_text};

/// List open questions
///
/// Examples:
///   ringer questions
///   ringer questions --everywhere --json | jq -r '.[].question_id'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Include closed questions
    #[arg(long)]
    all: bool,
    /// Include every repository
    #[arg(long)]
    everywhere: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct View<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    short_id: Option<&'a str>,
    question_id: &'a str,
    from: &'a str,
    asked: String,
    question: &'a str,
    options: &'a [String],
    scope: &'a str,
    answered: Option<String>,
    answered_by: Option<&'a str>,
    answer: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let scope = context::scope(context::repository().as_ref());
    let scope = (!arguments.everywhere).then_some(&scope);
    let (questions, short_ids) = match context::existing_journal()? {
        Some(mut journal) => {
            let questions = journal.questions(scope, arguments.all)?;
            let short_ids = if questions.is_empty() { HashMap::new() } else { short_ids(&mut journal)? };
            context::warn_if_repaired(&journal);
            (questions, short_ids)
        }
        None => Default::default(),
    };
    let short_id = |question: &Question| short_ids.get(&question.id).map(String::as_str);
    let clock = Clock::local();
    if arguments.json {
        let views: Vec<View<'_>> =
            questions.iter().map(|question| view(question, short_id(question), &clock)).collect();
        return print_json(&views);
    }
    if questions.is_empty() {
        eprint_line(if arguments.all { "No questions." } else { "No open questions." });
        return Ok(());
    }
    let lines = questions.iter().map(|question| format_text(question, short_id(question), &clock));
    print_text(&lines.collect::<String>())
}

/// What is shown of the ids of the messages that asked.
fn short_ids(journal: &mut Journal) -> Result<HashMap<QuestionId, String>, Failure> {
    let notifications = Notifications::read(journal)?;
    let messages = journal.question_messages(true)?;
    let known =
        messages.into_iter().filter_map(|(question, id)| Some((question, notifications.short_id(&id)?)));
    Ok(known.collect())
}

fn view<'a>(question: &'a Question, short_id: Option<&'a str>, clock: &Clock) -> View<'a> {
    View {
        short_id,
        question_id: question.id.as_str(),
        from: question.asker.as_str(),
        asked: clock.stamp(question.asked_ms),
        question: &question.question,
        options: &question.options,
        scope: question.scope.as_str(),
        answered: question.answered_ms.map(|ms| clock.stamp(ms)),
        answered_by: question.answerer.as_ref().map(ringer_core::Sender::as_str),
        answer: question.answer.as_deref(),
    }
}

fn format_text(question: &Question, short_id: Option<&str>, clock: &Clock) -> String {
    let options = if question.options.is_empty() {
        String::new()
    } else {
        format!(" ({})", question.options.join(" / "))
    };
    let answer = match (&question.answered_ms, &question.answer) {
        (None, _) => String::new(),
        (Some(_), None) => "  → closed".to_owned(),
        (Some(_), Some(answer)) => format!("  → {answer}"),
    };
    let line = format!(
        "{:<4}  {}  {}  {}: {}{options}{answer}",
        short_id.unwrap_or_default(),
        question.id,
        clock.short(question.asked_ms),
        question.asker,
        question.question
    );
    sanitise_line(&line) + "\n"
}
