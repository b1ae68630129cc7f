//! `ringer list --open`, also called `ringer questions`.

use std::collections::HashMap;

use ringer_core::agent::{PromptContent, question_with_options};
use ringer_core::attention::{NotificationStore, Record};
use ringer_core::message::{MessageId, QuestionId, ShownKind, SurfaceId};
use ringer_hub::Clock;
use ringer_journal::{Journal, Question};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::notifications;
use crate::output::{eprint_line, print_bytes, print_json};
use crate::table::{ANSWERED, Row, Style, format_rows};

/// List open questions, oldest first
///
/// Also those of agents on other machines, while they are open.
///
/// Examples:
///   ringer list --open
///   ringer list --open --here --json | jq -r '.[].question_id'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Include closed questions
    #[arg(long)]
    all: bool,
    /// Show only this repository
    #[arg(long)]
    here: bool,
    /// Show every repository; that is the default
    #[arg(long, hide = true, conflicts_with = "here")]
    everywhere: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn new(all: bool, here: bool, json: bool) -> Self {
        Self { all, here, everywhere: false, json }
    }
}

#[derive(Serialize)]
struct View<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    short_id: Option<&'a str>,
    question_id: &'a str,
    from: &'a str,
    /// The repository and branch where it was asked, if known.
    label: Option<&'a str>,
    asked: String,
    question: &'a str,
    options: &'a [String],
    scope: &'a str,
    answered: Option<String>,
    answered_by: Option<&'a str>,
    answer: Option<&'a str>,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let (questions, asked) = read(arguments.all, arguments.here)?;
    let clock = Clock::local();
    if arguments.json {
        let short_ids: Vec<Option<String>> =
            questions.iter().map(|question| asked.short_id(question)).collect();
        let shown = questions.iter().zip(&short_ids);
        let views: Vec<View<'_>> = shown
            .map(|(question, short_id)| view(question, short_id.as_deref(), asked.record(question), &clock))
            .collect();
        return print_json(&views);
    }
    if questions.is_empty() {
        eprint_line(none(arguments.all));
        return Ok(());
    }
    // The table consists of safe texts, and may have colours.
    print_bytes(table(&questions, &asked, Style::of_stdout()).as_bytes())
}

/// Returns the table of the questions, or a line that says there are none.
pub(crate) fn overview(all: bool, here: bool, style: Style) -> Result<String, Failure> {
    let (questions, asked) = read(all, here)?;
    if questions.is_empty() {
        return Ok(none(all).to_owned());
    }
    Ok(table(&questions, &asked, style))
}

fn none(all: bool) -> &'static str {
    if all { "No questions." } else { "No open questions." }
}

fn read(all: bool, here: bool) -> Result<(Vec<Question>, QuestionNotifications), Failure> {
    let scope = here.then(|| context::scope(context::repository().as_ref()));
    let Some(mut journal) = context::existing_journal()? else { return Ok(Default::default()) };
    let mut questions = journal.questions(scope.as_ref(), all)?;
    let mut asked = QuestionNotifications::read(&mut journal)?;
    let elsewhere = asked.elsewhere(&mut journal)?;
    questions.extend(
        elsewhere.into_iter().filter(|question| scope.as_ref().is_none_or(|scope| question.scope == *scope)),
    );
    questions.sort_by(|one, two| (one.asked_ms, one.id.as_str()).cmp(&(two.asked_ms, two.id.as_str())));
    context::warn_if_repaired(&journal);
    Ok((questions, asked))
}

fn table(questions: &[Question], asked: &QuestionNotifications, style: Style) -> String {
    let clock = Clock::local();
    let rows: Vec<Value> = questions.iter().map(|question| row(question, asked, &clock)).collect();
    format_rows(&Row::all(&rows), false, style)
}

/// The notifications of questions.
#[derive(Debug, Default)]
struct QuestionNotifications {
    notifications: NotificationStore,
    messages: HashMap<QuestionId, MessageId>,
}

impl QuestionNotifications {
    fn read(journal: &mut Journal) -> Result<Self, Failure> {
        let notifications = notifications::read()?;
        Ok(Self { notifications, messages: journal.question_messages(true)?.into_iter().collect() })
    }

    /// Returns the open questions of agents on other machines, which are not in this journal's tables.
    fn elsewhere(&mut self, journal: &mut Journal) -> Result<Vec<Question>, Failure> {
        let mut questions = Vec::new();
        for record in notifications::questions_elsewhere(&self.notifications) {
            let Some(message) = journal.message(record.id.as_str())? else { continue };
            let Some(id) = message.draft.question_id else { continue };
            let options = match journal.prompt_elsewhere(&record.id)? {
                Some(PromptContent::Questions(asked)) if asked.len() == 1 => {
                    asked.into_iter().flat_map(|question| question.options).collect()
                }
                _ => Vec::new(),
            };
            self.messages.insert(id.clone(), record.id.clone());
            questions.push(Question {
                id,
                scope: message.draft.scope,
                asker: message.draft.sender,
                asked_ms: record.unix_ms,
                question: message.draft.body,
                options,
                answered_ms: None,
                answerer: None,
                answer: None,
            });
        }
        Ok(questions)
    }

    fn record(&self, question: &Question) -> Option<&Record> {
        self.notifications.get(self.messages.get(&question.id)?)
    }

    fn short_id(&self, question: &Question) -> Option<String> {
        self.notifications.short_id(self.messages.get(&question.id)?)
    }
}

fn view<'a>(
    question: &'a Question,
    short_id: Option<&'a str>,
    record: Option<&'a Record>,
    clock: &Clock,
) -> View<'a> {
    View {
        short_id,
        question_id: question.id.as_str(),
        from: question.asker.as_str(),
        label: record.and_then(|record| record.label.as_deref()),
        asked: clock.stamp(question.asked_ms),
        question: &question.question,
        options: &question.options,
        scope: question.scope.as_str(),
        answered: question.answered_ms.map(|ms| clock.stamp(ms)),
        answered_by: question.answerer.as_ref().map(ringer_core::Sender::as_str),
        answer: question.answer.as_deref(),
    }
}

/// Builds a row of the table, in the form of a notification.
fn row(question: &Question, asked: &QuestionNotifications, clock: &Clock) -> Value {
    let (kind, answer) = match (question.answered_ms, &question.answer) {
        (None, _) => (ShownKind::Question.as_str(), String::new()),
        (Some(_), None) => ("closed", String::new()),
        (Some(_), Some(answer)) => (ANSWERED, format!(" → {answer}")),
    };
    let record = asked.record(question);
    json!({
        // A question without a notification appears under its own id.
        "short_id": asked.short_id(question).unwrap_or_else(|| question.id.to_string()),
        "label": record.and_then(|record| record.label.as_deref()),
        "from": question.asker.as_str(),
        "kind": kind,
        "body": question_with_options(&question.question, &question.options) + &answer,
        "ts": clock.stamp(question.asked_ms),
        "surface": record.and_then(|record| record.place.surface.as_ref()).map(SurfaceId::as_str),
    })
}
