//! Whether our events say the same as an expectation, field by field.

use ringer_term::{
    EventKind, Keys, Notification, NotificationId, Occasion, Percent, Progress, Prompt, PromptMark, Protocol,
    Query, Urgency,
};
use serde_json::{Value, json};

use super::differences::NOT_REPORTED;

/// In what way the events do not say what was expected; `None` where they do.
pub(super) fn disagreement(expect: &Value, events: &[EventKind]) -> Option<String> {
    let command = expect["command"].as_str().unwrap_or_default();
    let kind = match (command, events) {
        // Nothing, or something that is between the program and the emulator.
        ("" | "change_window_icon", []) => return None,
        (conemu, []) if conemu.starts_with("conemu_") && conemu != "conemu_progress_report" => return None,
        // A part that nobody knows: the cases only say so.
        (_, []) if expect["p"] == "unknown" => return None,
        (_, [kind]) => kind,
        (_, events) => return Some(format!("{} events for {command:?}", events.len())),
    };
    let Some(ours) = said(command, kind, expect) else { return Some(format!("not a {command:?}")) };
    let fields = expect.as_object().unwrap().iter();
    fields
        .filter(|(field, _)| *field != "command" && !is_not_reported(command, field))
        .find(|(field, _)| ours.get(*field) != Some(&meant(expect, field)))
        .map(|(field, value)| format!("{field} should be {value}"))
}

/// Command and field of everything in an expectation that is not compared.
pub(super) fn fields_not_reported(expect: &Value) -> Vec<(String, String)> {
    let command = expect["command"].as_str().unwrap_or_default();
    let fields = expect.as_object().unwrap().keys().filter(|field| is_not_reported(command, field));
    fields.map(|field| (command.to_owned(), field.clone())).collect()
}

fn is_not_reported(command: &str, field: &str) -> bool {
    NOT_REPORTED.iter().any(|(own, name, _)| *own == command && *name == field)
}

/// What one event says, in the words of the cases; `None` where it is of another kind. Everything is taken apart
/// without `..`, so that a new field of ours has to be compared too.
fn said(command: &str, kind: &EventKind, expect: &Value) -> Option<Value> {
    Some(match (command, kind) {
        ("show_desktop_notification", EventKind::Notification(notification)) => {
            let Notification { protocol, id, title, body, keys } = notification;
            assert!(*protocol != Protocol::Osc99 && id.is_none() && *keys == Keys::default());
            json!({ "title": title, "body": body })
        }
        ("kitty_desktop_notification", EventKind::Notification(notification)) => osc99(notification),
        // The payload of a query is never reflected, so no event has it.
        ("kitty_desktop_notification", EventKind::Query(Query::Osc99 { id })) => {
            json!({ "p": "query", "i": name(id.as_ref()), "payload": expect["payload"] })
        }
        ("kitty_desktop_notification", EventKind::Query(Query::Alive { id })) => {
            json!({ "p": "alive", "i": name(id.as_ref()), "payload": expect["payload"] })
        }
        ("conemu_progress_report", EventKind::Progress(progress)) => {
            let state = match progress {
                Progress::Set(_) => "set",
                Progress::Error(_) => "error",
                Progress::Indeterminate => "indeterminate",
                Progress::Paused(_) => "pause",
                Progress::Clear => "remove",
            };
            json!({ "state": state, "progress": progress.value().map(Percent::get) })
        }
        ("change_window_title", EventKind::Title(value)) | ("report_pwd", EventKind::Cwd(value)) => {
            json!({ "value": value })
        }
        ("hyperlink_start", EventKind::Hyperlink { id, uri }) => json!({ "id": id, "uri": uri }),
        ("hyperlink_end", EventKind::Hyperlink { id: None, uri }) if uri.is_empty() => json!({}),
        ("semantic_prompt", EventKind::Prompt(Prompt { mark, exit_code })) => {
            json!({ "action": format!("{mark:?}"), "exit_code": exit_code })
        }
        _ => return None,
    })
}

fn osc99(notification: &Notification) -> Value {
    let Notification { protocol, id, title, body, keys } = notification;
    let Keys {
        urgency,
        occasion,
        actions,
        buttons,
        report_close,
        application,
        icons,
        icon_key,
        sound,
        types,
        expires_ms,
    } = keys;
    assert_eq!((*protocol, buttons.len()), (Protocol::Osc99, 0));
    let payload = format!("{title}{body}");
    let values = [icons.as_slice(), types].concat();
    json!({
        "p": if body.is_empty() { "title" } else { "body" },
        "payload": payload,
        "i": name(id.as_ref()),
        // It was reported, so it is complete.
        "d": true,
        "a": { "focus": actions.focus, "report": actions.report },
        "c": report_close,
        "f": application,
        "g": name(icon_key.as_ref()),
        "o": match occasion {
            Occasion::Always => "always",
            Occasion::Unfocused => "unfocused",
            Occasion::Invisible => "invisible",
        },
        "s": sound.as_deref().unwrap_or("system"),
        "u": match urgency {
            Urgency::Low => "low",
            Urgency::Normal => "normal",
            Urgency::Critical => "high",
        },
        "w": expires_ms.map_or(-1, i64::from),
        "values": values,
    })
}

fn name(id: Option<&NotificationId>) -> Option<&str> {
    id.map(NotificationId::as_str)
}

/// An expected value as we would say it: the cases leave base64 as it came, know more prompt marks than we do, and tell
/// an empty id from none.
fn meant(expect: &Value, field: &str) -> Value {
    let value = &expect[field];
    match field {
        "payload" if expect["e"] == true => json!(decoded(value.as_str().unwrap())),
        "f" | "s" if value.is_string() => json!(decoded(value.as_str().unwrap())),
        "values" => value.as_array().unwrap().iter().map(|name| decoded(name.as_str().unwrap())).collect(),
        "i" if *value == "" => Value::Null,
        "action" => json!(format!("{:?}", mark(value.as_str().unwrap()))),
        _ => value.clone(),
    }
}

/// Decoded by hand, with `base64 -d`. Plain words were sent where base64 belongs, and stay as they are.
fn decoded(text: &str) -> String {
    match text {
        "R2hvc3R0eQ==" => "Ghostty".to_owned(),
        "foobar" => String::from_utf8_lossy(b"\x7e\x8a\x1b\x6a").into_owned(),
        "system" | "mail" | "chat" | "alert" => text.to_owned(),
        _ => panic!("decode this by hand first: {text}"),
    }
}

fn mark(action: &str) -> PromptMark {
    match action {
        "fresh_line_new_prompt" | "new_command" | "prompt_start" => PromptMark::PromptStart,
        "end_prompt_start_input" | "end_prompt_start_input_terminate_eol" => PromptMark::InputStart,
        "end_input_start_output" => PromptMark::OutputStart,
        "end_command" => PromptMark::CommandEnd,
        "fresh_line" => PromptMark::FreshLine,
        _ => panic!("an action that we do not know: {action}"),
    }
}
