//! Shows a prompt before it is answered. Nothing is hidden: what a terminal would not show is escaped.

use std::fmt::Write;

use ringer_core::agent::{PermissionRequest, PromptContent, PromptQuestion};
use ringer_hub::Clock;
use ringer_term::{escape_hidden, sanitise_line};
use ringer_ui::age;
use serde_json::{Value, json};

use super::found::{Found, Target};
use crate::places::Places;

pub(super) fn text(found: &Found) -> String {
    let id = found.id();
    let mut text = heading(found);
    match &found.target {
        Target::Question(question) => push_question(&mut text, &question.as_prompt()),
        Target::Prompt(prompt) => match &prompt.prompt.content {
            PromptContent::Permission(request) => push_permission(&mut text, request),
            PromptContent::Questions(questions) => {
                for question in questions {
                    push_question(&mut text, question);
                }
            }
            PromptContent::Plan { text: plan, whole } => push_block(&mut text, plan, *whole),
            other => push_block(&mut text, &other.full_text(), true),
        },
        Target::Notification => {
            let body = found.record.as_ref().map(|record| record.body.to_string()).unwrap_or_default();
            push_block(&mut text, &body, true);
        }
    }
    text.push('\n');
    for (command, meaning) in commands(found) {
        let command = format!("ringer {command}").replace("ID", &id);
        let _ = writeln!(text, "  {command:<34}{meaning}");
    }
    text
}

/// `api/auth · needs permission · 2m · tmux main:3`
fn heading(found: &Found) -> String {
    let Some(record) = &found.record else { return String::new() };
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
fn commands(found: &Found) -> Vec<(&'static str, &'static str)> {
    let jump = ("jump ID", "go there");
    if !found.is_open() {
        return vec![("why ID", "what became of it")];
    }
    match &found.target {
        Target::Question(_) => {
            vec![("answer ID \"TEXT\"", "answer it"), ("answer ID --close", "no answer"), jump]
        }
        Target::Prompt(prompt) => match &prompt.prompt.content {
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
        Target::Notification => vec![jump],
    }
}

/// The question at the terminal, below the text.
pub(super) fn question_to_person(found: &Found) -> String {
    let words = match &found.target {
        Target::Prompt(prompt) => match &prompt.prompt.content {
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
pub(super) fn view(found: &Found) -> Value {
    let record = found.record.as_ref();
    let (kind, content) = match &found.target {
        Target::Question(question) => {
            ("question", json!({ "question": question.question, "options": question.options }))
        }
        Target::Prompt(prompt) => ("prompt", json!(prompt.prompt)),
        Target::Notification => ("notification", Value::Null),
    };
    json!({
        "id": record.map(|record| record.id.as_str()),
        "short_id": found.id(),
        "from": record.map(|record| &*record.sender),
        "title": record.and_then(|record| record.title.as_deref()),
        "open": found.is_open(),
        "kind": kind,
        "content": content,
    })
}
