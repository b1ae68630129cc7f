//! Claude Code's dialogs, as its `PermissionRequest` hook reports them, and the answers that it accepts from that hook. Observed
//! with 2.1.325: the dialog is open while the hook runs, and an answer closes it.

use ringer_core::agent::{Answer, AnswerMethod, PromptContent};
use ringer_term::escape_json;
use serde_json::{Value, json};

use crate::client::prompt::{PromptHooks, cut, permission_request, questions};

/// What the model reads if the person gave no reason.
pub(crate) const DENIED: &str = "The user does not want this.";

pub(super) const PROMPTS: PromptHooks = PromptHooks {
    // Questions are reported by `PreToolUse` first, so that the notification can offer the answers.
    events: &["PermissionRequest", "PreToolUse"],
    method: AnswerMethod::WaitingHook,
    waiting_events: &["PermissionRequest"],
    read,
    output,
    results: Some(results),
    // `claude -p`.
    answer_events: None,
    unattended: Some(("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")),
    refuses: None,
};

fn read(event: &str, input: &Value) -> Option<PromptContent> {
    let tool = input.get("tool_name")?.as_str()?;
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    match tool {
        _ if event == "PreToolUse" && tool != "AskUserQuestion" => None,
        "AskUserQuestion" => questions(arguments, "multiSelect", |_| true),
        "ExitPlanMode" => {
            let plan = arguments.get("plan").and_then(Value::as_str).unwrap_or_default();
            let (text, whole) = cut(plan.to_owned());
            Some(PromptContent::Plan { text, whole })
        }
        _ => {
            let suggestions = input.get("permission_suggestions").and_then(Value::as_array);
            let always = suggestions.into_iter().flatten().map(suggestion).collect();
            Some(PromptContent::Permission(permission_request(tool, arguments, always)))
        }
    }
}

/// The tool results in a line of the transcript.
fn results(line: &[u8]) -> Vec<String> {
    let line: Value = serde_json::from_slice(line).unwrap_or_default();
    let parts = line["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let results = parts.iter().filter(|part| part["type"] == "tool_result");
    let text = |part: &Value| match &part["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    results.map(text).collect()
}

/// Describes what a suggestion would allow. An unknown one is shown as it was sent.
fn suggestion(suggestion: &Value) -> String {
    let text = |key: &str| suggestion.get(key).and_then(Value::as_str);
    let list = |key: &str, word: &dyn Fn(&Value) -> Option<String>| {
        let items = suggestion.get(key)?.as_array()?.iter().map(word).collect::<Option<Vec<_>>>()?;
        Some(items.join(", "))
    };
    let how_long = match text("destination") {
        Some("session") => Some("in this session"),
        Some("localSettings") => Some("in this project, for you"),
        Some("projectSettings") => Some("in this project, for everyone"),
        Some("userSettings") => Some("in all your projects"),
        _ => None,
    };
    let what = match text("type") {
        Some("addRules") if text("behavior") == Some("allow") => {
            let rule = |rule: &Value| {
                let tool = rule.get("toolName")?.as_str()?;
                Some(match rule.get("ruleContent") {
                    Some(content) => format!("{tool}({})", content.as_str()?),
                    None => tool.to_owned(),
                })
            };
            list("rules", &rule)
        }
        Some("addDirectories") => {
            let directory = |directory: &Value| directory.as_str().map(str::to_owned);
            list("directories", &directory).map(|directories| format!("all access to {directories}"))
        }
        Some("setMode") => text("mode").map(|mode| format!("the mode {mode}")),
        _ => None,
    };
    match what.zip(how_long) {
        Some((what, how_long)) => format!("{what}, {how_long}"),
        None => suggestion.to_string(),
    }
}

fn output(_event: &str, input: &Value, answer: &Answer) -> Option<String> {
    let is_plan = input.get("tool_name").and_then(Value::as_str) == Some("ExitPlanMode");
    let decision = match answer {
        // Without an input the client does not treat a plan as approved.
        Answer::Allow if is_plan => json!({ "behavior": "allow", "updatedInput": {} }),
        Answer::Allow => json!({ "behavior": "allow" }),
        Answer::AllowAlways => {
            json!({ "behavior": "allow", "updatedPermissions": input.get("permission_suggestions")? })
        }
        Answer::Deny { reason } => {
            json!({ "behavior": "deny", "message": reason.as_deref().unwrap_or(DENIED) })
        }
        Answer::Choices(choices) => {
            let mut updated = input.get("tool_input")?.clone();
            let asked = updated.get("questions")?.as_array()?;
            let texts = asked.iter().map(|question| question.get("question")?.as_str().map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            let answers =
                texts?.into_iter().zip(choices).map(|(text, choice)| (text, choice.join(", ").into()));
            let answers: serde_json::Map<String, Value> = answers.collect();
            updated.as_object_mut()?.insert("answers".to_owned(), answers.into());
            json!({ "behavior": "allow", "updatedInput": updated })
        }
        _ => return None,
    };
    let output = json!({
        "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision }
    });
    Some(escape_json(&output.to_string()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash() -> Value {
        json!({
            "tool_name": "Bash",
            "tool_input": { "command": "touch a", "description": "make a file" },
            "permission_suggestions": [
                { "type": "addDirectories", "directories": ["/p"], "destination": "session" },
                { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
                { "type": "addRules", "behavior": "allow", "destination": "localSettings",
                  "rules": [{ "toolName": "Bash", "ruleContent": "touch:*" }, { "toolName": "WebFetch" }] },
                { "type": "addRules", "behavior": "deny", "destination": "session", "rules": [] },
            ],
        })
    }

    fn decision(input: &Value, answer: &Answer) -> Value {
        let output: Value =
            serde_json::from_str(&output("PermissionRequest", input, answer).unwrap()).unwrap();
        assert_eq!(output["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
        output["hookSpecificOutput"]["decision"].clone()
    }

    #[test]
    fn a_permission_and_what_always_would_allow() {
        let Some(PromptContent::Permission(request)) = read("PermissionRequest", &bash()) else {
            panic!("a permission")
        };
        assert_eq!((request.tool.as_str(), request.request.as_str()), ("Bash", "touch a\nWhy: make a file"));
        let expected = [
            "all access to /p, in this session",
            "the mode acceptEdits, in this session",
            "Bash(touch:*), WebFetch, in this project, for you",
        ];
        assert_eq!(request.always[..3], expected);
        assert!(request.always[3].contains("\"deny\""), "as it was sent: {}", request.always[3]);
    }

    #[test]
    fn decisions_as_the_client_takes_them() {
        let input = bash();
        assert_eq!(decision(&input, &Answer::Allow), json!({"behavior": "allow"}));
        assert_eq!(
            decision(&input, &Answer::AllowAlways),
            json!({"behavior": "allow", "updatedPermissions": input["permission_suggestions"]})
        );
        let deny = Answer::Deny { reason: Some("use \u{202e}make".into()) };
        assert_eq!(decision(&input, &deny), json!({"behavior": "deny", "message": "use \u{202e}make"}));
        let plan = json!({"tool_name": "ExitPlanMode", "tool_input": {"plan": "1. go"}});
        assert_eq!(read("", &plan), Some(PromptContent::Plan { text: "1. go".into(), whole: true }));
        assert_eq!(decision(&plan, &Answer::Allow), json!({"behavior": "allow", "updatedInput": {}}));
    }

    #[test]
    fn questions_and_their_answers() {
        let input = json!({"tool_name": "AskUserQuestion", "tool_input": {"questions": [
            {"question": "Which one?", "header": "Pick", "multiSelect": false,
             "options": [{"label": "Alpha", "description": "a"}, {"label": "Beta", "description": "b"}]},
            {"question": "What colours?", "multiSelect": true, "options": [{"label": "Red"}, {"label": "Blue"}]},
        ]}});
        let prompt = read("PermissionRequest", &input).unwrap();
        let answer = prompt.read_answer(&["2", "red,blue"]).unwrap();
        let updated = &decision(&input, &answer)["updatedInput"];
        assert_eq!(updated["answers"], json!({"Which one?": "Beta", "What colours?": "Red, Blue"}));
        assert_eq!(updated["questions"], input["tool_input"]["questions"]);
    }

    #[test]
    fn a_damaged_input_gives_no_answer() {
        let choices = Answer::Choices(vec![vec!["x".into()]]);
        for input in
            [json!({}), json!({"tool_name": "AskUserQuestion"}), json!({"tool_input": {"questions": [1]}})]
        {
            assert_eq!(output("PermissionRequest", &input, &choices), None, "{input}");
        }
        assert_eq!(
            read("PermissionRequest", &json!({"tool_name": "AskUserQuestion", "tool_input": {}})),
            None
        );
        assert_eq!(output("", &json!({"tool_name": "Bash"}), &Answer::AllowAlways), None);
    }
}
