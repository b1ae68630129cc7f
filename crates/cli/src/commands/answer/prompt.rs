//! The question or dialog that a person wants to answer: finds it, and shows it.
//!
//! Nothing is hidden: what a terminal would not show is escaped.

use std::fmt::Write;

use ringer_config::nearest;
use ringer_core::agent::{PermissionRequest, PromptContent, PromptQuestion};
use ringer_core::attention::{NotificationStore, Record};
use ringer_core::message::{IdMatch, MessageId, QuestionId};
use ringer_hub::Clock;
use ringer_journal::{Journal, Question, StoredPrompt};
use ringer_term::{escape_hidden, sanitise_line};
use ringer_ui::age;
use serde_json::{Value, json};

use crate::confirm::can_ask;
use crate::failure::{Exit, Failure};
use crate::notifications;
use crate::places::Places;

#[derive(Debug)]
pub(super) enum PromptKind {
    /// A question of `ringer ask`.
    Question(Question),
    /// A dialog of the agent's client.
    Dialog(StoredPrompt),
    /// A notification without a known question or dialog.
    Notification,
}

/// The target, with its notification.
#[derive(Debug)]
pub(super) struct NamedPrompt {
    pub(super) kind: PromptKind,
    pub(super) record: Option<Record>,
    short_id: Option<String>,
}

impl NamedPrompt {
    /// Finds the target that the first word names, and returns it with the answer. Without a name it is the only open one, which
    /// an answer that is one of its options names, too.
    pub(super) fn of_words<'a, 'b>(
        words: &'a [&'b str],
        journal: &mut Journal,
    ) -> Result<(Self, &'a [&'b str]), Failure> {
        let Some((first, rest)) = words.split_first().filter(|(first, _)| !is_answer_word(first)) else {
            return Ok((Self::read(None, journal)?, words));
        };
        let list = notifications::read()?;
        let only = match &notifications::open_prompts(&list, journal)?[..] {
            [only] => Some(Self::of_message(only, &list, journal)?),
            _ => None,
        };
        let answer = words.join(" ");
        let is_option = |own: &String| own.trim().eq_ignore_ascii_case(&answer);
        match (only, Self::read(Some(first), journal)) {
            (Some(only), _) if only.options().iter().any(is_option) => Ok((only, words)),
            (Some(only), Err(failure))
                if failure.exit == Exit::Data && only.nearest_option(&answer).is_some() =>
            {
                Ok((only, words))
            }
            (_, named) => Ok((named?, rest)),
        }
    }

    /// The options of its only question.
    fn options(&self) -> &[String] {
        match &self.kind {
            PromptKind::Question(question) => &question.options,
            PromptKind::Dialog(prompt) => match &prompt.prompt.content {
                PromptContent::Questions(questions) if questions.len() == 1 => &questions[0].options,
                _ => &[],
            },
            PromptKind::Notification => &[],
        }
    }

    /// Returns the option that was probably meant by an answer that is none.
    pub(super) fn nearest_option(&self, answer: &str) -> Option<&str> {
        let options: Vec<&str> = self.options().iter().map(|option| option.trim()).collect();
        let is_number = answer.parse::<u64>().is_ok();
        if is_number || options.iter().any(|option| option.eq_ignore_ascii_case(answer)) {
            return None;
        }
        nearest(answer, &options)
    }

    /// Returns who asked, as lists show it.
    pub(super) fn who(&self) -> String {
        let record = self.record.as_ref();
        let shown = record.map(|record| record.label.as_deref().unwrap_or(&record.sender));
        let asker = || match &self.kind {
            PromptKind::Question(question) => question.asker.as_str(),
            PromptKind::Dialog(prompt) => prompt.agent.as_str(),
            PromptKind::Notification => "it",
        };
        sanitise_line(shown.unwrap_or_else(asker))
    }

    /// Finds the target that `text` names, or the only open one if there is no text.
    pub(super) fn read(text: Option<&str>, journal: &mut Journal) -> Result<Self, Failure> {
        if let Some(text) = text
            && let Ok(id) = QuestionId::parse(text)
            && let Some(question) = journal.question(&id)?
        {
            return Self::of_question(question, journal);
        }
        let list = notifications::read()?;
        let open = notifications::open_prompts(&list, journal)?;
        let message = match text {
            None => only_one(&open, &list)?,
            Some("last") => open.last().cloned().ok_or_else(nothing_open)?,
            Some(text) => find(text, &open, &list)?,
        };
        Self::of_message(&message, &list, journal)
    }

    fn of_message(
        message: &MessageId,
        list: &NotificationStore,
        journal: &mut Journal,
    ) -> Result<Self, Failure> {
        let record = list.get(message).cloned();
        let kind = match journal.prompt_of_message(message)? {
            Some(prompt) => PromptKind::Dialog(prompt),
            None => match question_behind(message, journal)? {
                Some(question) if !is_in_dialog(record.as_ref()) => PromptKind::Question(question),
                _ => PromptKind::Notification,
            },
        };
        let short_id = list.short_id(message);
        if matches!(kind, PromptKind::Notification) && !record.as_ref().is_some_and(Record::needs_person) {
            let what = format!("{} asks nothing", short_id.as_deref().unwrap_or(message.as_str()));
            return Err(Failure::new(Exit::Data, what).hint("ringer"));
        }
        Ok(Self { kind, record, short_id })
    }

    fn of_question(question: Question, journal: &mut Journal) -> Result<Self, Failure> {
        let messages = journal.question_messages(true)?;
        let message = messages.into_iter().find(|(id, _)| *id == question.id).map(|(_, message)| message);
        let list = notifications::read()?;
        let record = message.as_ref().and_then(|message| list.get(message)).cloned();
        let short_id = message.as_ref().and_then(|message| list.short_id(message));
        let kind = match journal.prompt_of_question(&question.id)? {
            Some(prompt) => PromptKind::Dialog(prompt),
            None if is_in_dialog(record.as_ref()) => PromptKind::Notification,
            None => PromptKind::Question(question),
        };
        Ok(Self { kind, record, short_id })
    }

    /// Returns the id of the target for a command line.
    pub(super) fn id(&self) -> String {
        let own = || match &self.kind {
            PromptKind::Question(question) => question.id.to_string(),
            _ => "last".to_owned(),
        };
        self.short_id.clone().unwrap_or_else(own)
    }

    /// Returns true if it can still be answered.
    pub(super) fn is_open(&self) -> bool {
        match &self.kind {
            PromptKind::Question(question) => question.answered_ms.is_none(),
            PromptKind::Dialog(prompt) => prompt.ended_ms.is_none() && prompt.decision.is_none(),
            PromptKind::Notification => false,
        }
    }
}

/// Returns true if a notification belongs to a dialog of a client, and to no question of `ringer ask`.
fn is_in_dialog(record: Option<&Record>) -> bool {
    record.is_some_and(Record::is_of_session)
}

fn question_behind(message: &MessageId, journal: &mut Journal) -> Result<Option<Question>, Failure> {
    let all = journal.question_messages(true)?;
    let id = all.into_iter().find(|(_, id)| id == message).map(|(question, _)| question);
    Ok(id.map(|id| journal.question(&id)).transpose()?.flatten())
}

/// The failure of a script that only shows what is asked.
pub(super) fn no_answer(id: &str) -> Failure {
    Failure::usage("no answer given").hint(format!("ringer answer {id} ANSWER"))
}

fn nothing_open() -> Failure {
    Failure::new(Exit::Data, "nothing waits for an answer").hint("ringer")
}

fn only_one(open: &[MessageId], list: &NotificationStore) -> Result<MessageId, Failure> {
    match open {
        [] => Err(nothing_open()),
        [message] => Ok(message.clone()),
        several => Err(ambiguous("several things wait for an answer", several, list)),
    }
}

/// The error for a name that nothing has.
fn unknown(text: &str, list: &NotificationStore) -> Failure {
    let open = list.needs_person().map(|record| record.label.as_deref().unwrap_or(&record.sender));
    let names: Vec<&str> = open.collect();
    let nearest = nearest(text, &names).map(|name| format!("did you mean {}? ", sanitise_line(name)));
    let what = format!("nothing is called {}", sanitise_line(text));
    Failure::new(Exit::Data, what)
        .hint(format!("{}ringer list shows names and ids", nearest.unwrap_or_default()))
}

/// Returns true for words that are an answer and never a name.
fn is_answer_word(word: &str) -> bool {
    matches!(word, "allow" | "deny" | "always") || word.parse::<u64>().is_ok()
}

/// Finds what a person named among the open notifications, else among all. The beginning of a name counts only in a terminal,
/// where the person sees what was understood.
fn find(text: &str, open: &[MessageId], list: &NotificationStore) -> Result<MessageId, Failure> {
    // Questions of other machines are not in this journal's tables.
    if let Some(record) = QuestionId::parse(text).ok().and_then(|id| list.asking(&id)) {
        return Ok(record.id.clone());
    }
    let is_open = |record: &&Record| open.contains(&record.id);
    let by_name =
        || IdMatch::of(list.with_name(text).filter(is_open).map(|record| record.id.clone()).collect());
    let by_beginning = || {
        let found = list.with_name_beginning(text).filter(|_| can_ask()).filter(is_open);
        IdMatch::of(found.map(|record| record.id.clone()).collect())
    };
    match IdMatch::among(text, open.iter().rev()).or(by_name).or(by_beginning) {
        IdMatch::One(message) => Ok(message),
        IdMatch::Several(several) => {
            let what = format!("{} fits several open ones", sanitise_line(text));
            Err(ambiguous(&what, &several, list))
        }
        IdMatch::Unknown if text.starts_with("q-") => {
            Err(ringer_journal::Error::NoQuestion(sanitise_line(text)).into())
        }
        IdMatch::Unknown => {
            notifications::named(list, text, &Clock::local())?.ok_or_else(|| unknown(text, list))
        }
    }
}

fn ambiguous(what: &str, messages: &[MessageId], list: &NotificationStore) -> Failure {
    let line = |message: &MessageId| {
        let record = list.get(message);
        let said = record.map(|record| sanitise_line(&record.body)).unwrap_or_default();
        let said: String = said.chars().take(60).collect();
        format!("\n  {}  {said}", list.short_id(message).unwrap_or_else(|| message.to_string()))
    };
    let lines: String = messages.iter().take(10).map(line).collect();
    let first = messages.first().and_then(|message| list.short_id(message)).unwrap_or_default();
    Failure::usage(format!("{what}:{lines}")).hint(format!("name one of them, as in: ringer answer {first}"))
}

pub(super) fn prompt_text(named: &NamedPrompt) -> String {
    let id = named.id();
    let mut text = heading(named);
    match &named.kind {
        PromptKind::Question(question) => push_question(&mut text, &question.as_prompt()),
        PromptKind::Dialog(prompt) => match &prompt.prompt.content {
            PromptContent::Permission(request) => push_permission(&mut text, request),
            PromptContent::Questions(questions) => {
                for question in questions {
                    push_question(&mut text, question);
                }
            }
            PromptContent::Plan { text: plan, whole } => push_block(&mut text, plan, *whole),
            other => push_block(&mut text, &other.full_text(), true),
        },
        PromptKind::Notification => {
            let body = named.record.as_ref().map(|record| record.body.to_string()).unwrap_or_default();
            push_block(&mut text, &body, true);
        }
    }
    text.push('\n');
    for (command, meaning) in commands(named) {
        let command = format!("ringer {command}").replace("ID", &id);
        let _ = writeln!(text, "  {command:<34}{meaning}");
    }
    text
}

/// `api/auth · needs permission · 2m · tmux main:3`
fn heading(named: &NamedPrompt) -> String {
    let Some(record) = &named.record else { return String::new() };
    let now = Clock::local().now().wall_ms;
    let surface = record.place.surface.as_ref();
    let place = surface.map(|surface| {
        let row = json!({ "surface": surface.as_str() });
        Places::of([&row].into_iter()).name(surface.as_str())
    });
    let title = record.title.as_deref().map(sanitise_line).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| sanitise_line(&record.sender));
    let mut words = vec![title, age(now - record.unix_ms)];
    words.extend(place);
    format!("{}\n\n", words.join(" · "))
}

fn push_permission(text: &mut String, request: &PermissionRequest) {
    if !request.tool.is_empty() {
        let _ = writeln!(text, "{}", escape_hidden(&request.tool));
    }
    push_block(text, &request.request, request.whole);
    if !request.always.is_empty() {
        text.push_str("\n`always` would allow:\n");
        for allowed in &request.always {
            let _ = writeln!(text, "  {}", escape_hidden(&allowed.replace('\n', "\\n")));
        }
    }
}

fn push_question(text: &mut String, question: &PromptQuestion) {
    push_block(text, &question.text, true);
    for (index, option) in question.options.iter().enumerate() {
        let _ = write!(text, "    {}  {}", index + 1, escape_hidden(&option.replace('\n', " ")));
        match question.descriptions.get(index).map(String::as_str) {
            None | Some("") => text.push('\n'),
            Some(description) => {
                let _ = writeln!(text, "  ({})", escape_hidden(&description.replace('\n', " ")));
            }
        }
    }
    if question.multiple {
        text.push_str("    several: 1,2\n");
    }
}

fn push_block(text: &mut String, block: &str, whole: bool) {
    for line in block.trim_end().split('\n') {
        let _ = writeln!(text, "  {}", escape_hidden(line));
    }
    if !whole {
        text.push_str("  … (too long to be shown in full here)\n");
    }
}

/// The commands that apply to it, with their effects.
fn commands(named: &NamedPrompt) -> Vec<(&'static str, &'static str)> {
    let jump = ("jump ID", "go there");
    if !named.is_open() {
        return vec![("why ID", "what became of it")];
    }
    match &named.kind {
        PromptKind::Question(_) => {
            vec![("answer ID \"TEXT\"", "answer it"), ("answer ID --close", "no answer"), jump]
        }
        PromptKind::Dialog(prompt) => match &prompt.prompt.content {
            PromptContent::Permission(request) => {
                let mut commands = vec![("answer ID allow", "this once")];
                if !request.always.is_empty() {
                    commands.push(("answer ID always", "and what is shown above"));
                }
                commands.extend([("answer ID deny \"REASON\"", "the agent reads why"), jump]);
                commands
            }
            PromptContent::Plan { .. } => {
                vec![
                    ("answer ID allow", "approve the plan"),
                    ("answer ID deny \"REASON\"", "what to change"),
                    jump,
                ]
            }
            PromptContent::Questions(questions) if questions.len() > 1 => {
                vec![("answer ID \"ONE\" \"TWO\"", "one answer for each question"), jump]
            }
            _ => vec![("answer ID \"TEXT\"", "or the number of an option"), jump],
        },
        PromptKind::Notification => vec![jump],
    }
}

/// The question at the terminal, below the text.
pub(super) fn question_to_person(named: &NamedPrompt) -> String {
    let words = match &named.kind {
        PromptKind::Dialog(prompt) => match &prompt.prompt.content {
            PromptContent::Permission(request) if request.always.is_empty() => "allow, deny [REASON]",
            PromptContent::Permission(_) => "allow, always, deny [REASON]",
            PromptContent::Plan { .. } => "allow, deny [WHAT TO CHANGE]",
            PromptContent::Questions(questions) if questions.len() > 1 => "answers, with ; between them",
            _ => "answer",
        },
        _ => "answer",
    };
    format!("{words} (Enter: leave it open): ")
}

/// Returns the whole prompt as JSON.
pub(super) fn prompt_json(named: &NamedPrompt) -> Value {
    let record = named.record.as_ref();
    let (kind, content) = match &named.kind {
        PromptKind::Question(question) => {
            ("question", json!({ "question": question.question, "options": question.options }))
        }
        PromptKind::Dialog(prompt) => ("prompt", json!(prompt.prompt)),
        PromptKind::Notification => ("notification", Value::Null),
    };
    json!({
        "id": record.map(|record| record.id.as_str()),
        "short_id": named.id(),
        "from": record.map(|record| &*record.sender),
        "title": record.and_then(|record| record.title.as_deref()),
        "open": named.is_open(),
        "kind": kind,
        "content": content,
    })
}
