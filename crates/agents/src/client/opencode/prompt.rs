//! opencode's dialogs, as Ringer's plugin reports them, and the answers that the plugin passes on. Observed with 1.18.33: the
//! dialog stays open meanwhile, and the first reply counts.

use ringer_core::agent::{Answer, AnswerMethod, PromptContent};
use ringer_term::escape_json;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::prompt::{AnswerEvents, PromptHooks, permission_request, questions};

/// How long `always` lasts, according to the documentation.
const ALWAYS: &str = "for the rest of this opencode session";

pub(super) const PROMPTS: PromptHooks = PromptHooks {
    events: &["permission.asked", "question.asked"],
    method: AnswerMethod::WaitingHook,
    waiting_events: &["permission.waiting", "question.waiting"],
    read,
    output,
    results: None,
    answer_events: Some(AnswerEvents {
        events: &["permission.replied", "question.replied", "question.rejected"],
        read: read_answer_event,
    }),
    unattended: None,
};

fn read(event: &str, input: &Value) -> Option<PromptContent> {
    let asked = input.get("properties")?;
    if event == "question.asked" {
        return questions(asked, "multiple", |question| question.get("custom") != Some(&Value::Bool(false)));
    }
    let tool = asked.get("permission")?.as_str()?;
    let words = |key: &str| {
        let list = asked.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<String>>()
    };
    let always = words("always").iter().map(|pattern| format!("{tool}: {pattern}, {ALWAYS}")).collect();
    let metadata =
        asked.get("metadata").filter(|metadata| metadata.as_object().is_some_and(|all| !all.is_empty()));
    let patterns = json!({ "command": words("patterns").join("\n") });
    Some(PromptContent::Permission(permission_request(tool, metadata.unwrap_or(&patterns), always)))
}

/// The body of the reply, under the kind of the dialog.
fn output(event: &str, _input: &Value, answer: &Answer) -> Option<String> {
    let permission = |reply: &str| json!({ "permission": { "reply": reply } });
    let output = match (event, answer) {
        ("permission.waiting", Answer::Allow) => permission("once"),
        ("permission.waiting", Answer::AllowAlways) => permission("always"),
        ("permission.waiting", Answer::Deny { reason: None }) => permission("reject"),
        ("permission.waiting", Answer::Deny { reason: Some(reason) }) => {
            json!({ "permission": { "reply": "reject", "message": reason } })
        }
        ("question.waiting", Answer::Choices(choices)) => json!({ "question": { "answers": choices } }),
        _ => return None,
    };
    Some(escape_json(&output.to_string()).into_owned())
}

fn read_answer_event(event: &str, input: &Value) -> Option<Answer> {
    let replied = input.get("properties")?;
    match (event, replied.get("reply").and_then(Value::as_str)) {
        ("permission.replied", Some("once")) => Some(Answer::Allow),
        ("permission.replied", Some("always")) => Some(Answer::AllowAlways),
        ("permission.replied", Some("reject")) | ("question.rejected", _) => {
            Some(Answer::Deny { reason: None })
        }
        ("question.replied", _) => Some(Answer::Choices(Vec::deserialize(replied.get("answers")?).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_and_its_replies() {
        let input = json!({ "properties": { "id": "per_1", "permission": "bash", "patterns": ["touch a"],
            "metadata": { "command": "touch a" }, "always": ["touch *"] } });
        let Some(PromptContent::Permission(request)) = read("permission.asked", &input) else {
            panic!("one")
        };
        assert_eq!((request.tool.as_str(), request.request.as_str()), ("bash", "touch a"));
        assert_eq!(request.always, ["bash: touch *, for the rest of this opencode session"]);
        let reply = |answer: &Answer| -> Value {
            serde_json::from_str(&output("permission.waiting", &input, answer).unwrap()).unwrap()
        };
        assert_eq!(reply(&Answer::Allow), json!({"permission": {"reply": "once"}}));
        assert_eq!(reply(&Answer::AllowAlways), json!({"permission": {"reply": "always"}}));
        let deny = Answer::Deny { reason: Some("use mkdir".into()) };
        assert_eq!(reply(&deny), json!({"permission": {"reply": "reject", "message": "use mkdir"}}));
        assert_eq!(output("permission.waiting", &input, &Answer::Choices(Vec::new())), None);
    }

    #[test]
    fn the_answer_that_was_taken_is_told() {
        fn check(event: &str, properties: &Value, expect: Option<&Answer>) {
            assert_eq!(
                read_answer_event(event, &json!({ "properties": properties })).as_ref(),
                expect,
                "{event} {properties}"
            );
        }
        let refused = Answer::Deny { reason: None };
        check("permission.replied", &json!({ "requestID": "per_1", "reply": "once" }), Some(&Answer::Allow));
        check("permission.replied", &json!({ "reply": "always" }), Some(&Answer::AllowAlways));
        check("permission.replied", &json!({ "reply": "reject" }), Some(&refused));
        check("permission.replied", &json!({ "reply": "perhaps" }), None);
        check("permission.replied", &json!({}), None);
        let chosen = Answer::Choices(vec![vec!["Beta".to_owned()]]);
        check("question.replied", &json!({ "answers": [["Beta"]] }), Some(&chosen));
        check("question.replied", &json!({ "answers": "Beta" }), None);
        check("question.rejected", &json!({ "requestID": "que_1" }), Some(&refused));
    }

    #[test]
    fn without_metadata_the_patterns_are_what_is_asked_for() {
        let input = json!({ "properties": { "permission": "external_directory", "patterns": ["/a/*", "/b/*"], "metadata": {} } });
        let Some(PromptContent::Permission(request)) = read("permission.asked", &input) else {
            panic!("one")
        };
        assert_eq!((request.request.as_str(), request.whole), ("/a/*\n/b/*", true));
        assert!(request.always.is_empty());
    }

    #[test]
    fn a_question_and_its_reply() {
        let input = json!({ "properties": { "id": "que_1", "questions": [
            { "question": "Which one?", "options": [{ "label": "Alpha", "description": "a" }, { "label": "Beta" }] }] } });
        let prompt = read("question.asked", &input).unwrap();
        let answer = prompt.read_answer(&["2"]).unwrap();
        let output = output("question.waiting", &input, &answer).unwrap();
        assert_eq!(output, r#"{"question":{"answers":[["Beta"]]}}"#);
    }
}
