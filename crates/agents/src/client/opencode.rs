//! opencode: events as Ringer's plugin passes them on, and the output that the plugin accepts.
//!
//! The plugin passes the event as opencode sent it (`{"type", "properties"}`), or the input of a `tool.execute` hook. It adds
//! `cwd`, `parentID` for the session of a subagent, `last_assistant_message` if known, `ends_with_turn` if the process ends
//! with the turn, and `aborted` for what still follows after the person ended the turn. Written from the types of opencode 1.18, and run with 1.18.33.
//!
//! The plugin also reports dialogs and passes on the answers to them. A dialog stays open meanwhile, and the first reply counts.

use ringer_core::agent::{AgentState, Answer, AnswerMethod, Authority, BlockedOn, PromptContent};
use ringer_term::escape_json;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::adapter::{Adapter, PushMethod};
use super::input::HookInput;
use super::json::Value;
use super::reply::{HookReply, to_json};
use super::report::{HookPoint, HookReport};
use super::request;
use super::settings::{ClientSettings, Format, McpForm, SettingsFile};
use crate::client::prompt::{AnswerEvents, PromptHooks, permission_request, questions};

/// The members that may have the session's id.
const SESSION: [&str; 6] = [
    "session_id",
    "sessionID",
    "properties.sessionID",
    "properties.info.sessionID",
    "properties.info.id",
    "input.sessionID",
];

/// opencode.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "opencode",
    display_name: "opencode",
    programs: &["opencode"],
    context_limit: None,
    session_id_begins_randomly: false,
    leaves_sessions_silently: false,
    outlives_window: false,
    calls_hooks_itself: true,
    read,
    answer: |event, reply| to_json(&answer(event, reply)),
    sessions: None,
    prompts: Some(PROMPTS),
    push: PushMethod::WaitingHook,
    settings: ClientSettings {
        user_directory: |paths| paths.named_or_home(paths.config_home.as_ref(), ".config").join("opencode"),
        project_directory: ".opencode",
        files: &[
            SettingsFile::new("plugins/ringer.js", Format::OpencodePlugin),
            SettingsFile {
                other_name: Some("opencode.jsonc"),
                ..SettingsFile::with_mcp_servers("opencode.json", McpForm::CommandList { servers: "mcp" })
            },
        ],
        hooks: None,
        own_popups: None,
    },
};

fn read(event: &str, input: &HookInput) -> HookReport {
    // A subagent is a separate session. It works for its parent session, which is the one reported.
    let parent = input.first_text(&["parentID", "properties.info.parentID", "properties.parentID"]);
    let subagent = parent.is_some();
    let cwd = input.first_text(&["cwd", "directory", "properties.info.directory"]);
    let mut report = HookReport::new(parent.or_else(|| input.first_text(&SESSION)), cwd);
    let calls = ["call_id", "callID", "input.callID", "properties.callID", "properties.tool.callID"];
    report.call_id = input.first_text(&calls).map(str::to_owned);
    match event {
        "session.created" | "session.idle" | "session.error" | "session.deleted" if subagent => {
            report.alive();
        }
        "session.created" => {
            report.state(AgentState::Ready);
            report.hook_point = HookPoint::SessionStarts;
        }
        // The plugin asks for the text of the system prompt when it first sees a session, including a resumed one.
        "session.context" => {
            report.alive();
            report.hook_point = HookPoint::SessionStarts;
        }
        "chat.message" => {
            report.prompted(request::is_from_person(input.text("prompt").unwrap_or_default()));
            report.text = input.text("prompt").and_then(request::shorten);
            report.hook_point = HookPoint::PromptSubmitted;
        }
        "tool.execute.before" => {
            let tool = input.text("tool").unwrap_or_default();
            let text = request::describe_tool(tool, input.get("args"), report.cwd.as_deref());
            report.call_begins(report.call_id.clone(), text);
        }
        "tool.execute.after" => {
            report.call_ended(report.call_id.clone());
            if input.flag("aborted") {
                report.signals.clear();
                report.interrupted();
                report.hook_point = HookPoint::Other;
            }
        }
        "permission.asked" | "permission.updated" => {
            let request_line =
                permission(input.get("properties").unwrap_or(&Value::Null), report.cwd.as_deref());
            report.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Permission), request_line);
            report.set_call(input.text("properties.id").map(str::to_owned));
        }
        "question.asked" => {
            let text = input.get("properties").and_then(request::question);
            report.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Question), text);
            report.set_call(input.text("properties.id").map(str::to_owned));
        }
        // The plugin waits for messages of an idle session that it has reported.
        "session.waiting" => report.waits_for_messages = !subagent,
        // The plugin waits for the answer to a dialog that it has reported.
        "permission.waiting" | "question.waiting" => {
            report.awaited_call = input.text("properties.id").map(str::to_owned);
        }
        "permission.replied" | "question.replied" | "question.rejected" => {
            report.state(AgentState::Working);
            let asked = input.first_text(&["properties.requestID", "properties.permissionID"]);
            report.set_call(asked.map(str::to_owned));
        }
        "session.status" => status(input, &mut report),
        "session.idle" if input.flag("aborted") => report.interrupted(),
        "session.idle" => {
            report.done(input, "last_assistant_message");
            // `opencode run` exits after the turn: a new prompt would not be read.
            if input.flag("ends_with_turn") {
                report.hook_point = HookPoint::Other;
            }
        }
        "session.error" => failure(input, &mut report),
        "session.compacted" | "message.updated" | "message.part.updated" => report.alive(),
        "session.deleted" => report.state(AgentState::Exited),
        _ => {}
    }
    if subagent { report.into_subagent() } else { report }
}

/// `permission` and `patterns` since 1.1, `type`, `title` and `pattern` before.
fn permission(properties: &Value, cwd: Option<&str>) -> Option<String> {
    let what = properties.text("permission").or_else(|| properties.text("type")).unwrap_or_default();
    let metadata = properties
        .get("metadata")
        .filter(|metadata| request::describe_tool("", Some(metadata), None).is_some());
    if let Some(metadata) = metadata {
        return request::describe_tool(what, Some(metadata), cwd);
    }
    let pattern = properties
        .text("patterns.0")
        .or_else(|| properties.text("pattern"))
        .or_else(|| properties.text("title"));
    match pattern {
        Some(pattern) if !what.is_empty() => request::shorten(&format!("{what}: {pattern}")),
        Some(pattern) => request::shorten(pattern),
        None => request::shorten(what),
    }
}

fn status(input: &HookInput, report: &mut HookReport) {
    match input.text("properties.status.type") {
        Some("busy") => report.state(AgentState::Working),
        // opencode retries by itself: only the wait for its provider is reported.
        Some("retry") => {
            report.state(AgentState::RateLimited);
            if let Some(message) = input.text("properties.status.message") {
                report.observe("rate-limit-warning", message, false);
            }
        }
        // `session.idle` reports the same.
        _ => report.alive(),
    }
}

fn failure(input: &HookInput, report: &mut HookReport) {
    let name = input.first_text(&["properties.error.name", "error.name"]);
    // `session.idle` follows.
    if name == Some("MessageAbortedError") {
        return report.interrupted();
    }
    let message = input.first_text(&[
        "properties.error.data.message",
        "properties.error.message",
        "error.data.message",
        "error.message",
        "error",
    ]);
    let text = [name, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
    report.state_with(Authority::Hook, AgentState::Error, request::shorten(&text));
}

/// The output that the plugin accepts.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Output {
    /// Appended to the tool's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<String>,
    /// Submitted as the session's next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// Added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

fn answer(event: &str, reply: &HookReply) -> Output {
    // The plugin appends it without a separator.
    let context = reply.turn_context().filter(|_| event == "tool.execute.after");
    Output {
        append: context.map(|context| format!("\n\n{context}")),
        prompt: reply.reason().filter(|_| matches!(event, "session.idle" | "session.waiting")),
        system: reply.start_context().filter(|_| event == "session.context"),
    }
}

/// How long `always` lasts, according to the documentation.
const ALWAYS: &str = "for the rest of this opencode session";

pub(crate) const PROMPTS: PromptHooks = PromptHooks {
    events: &["permission.asked", "question.asked"],
    method: AnswerMethod::WaitingHook,
    waiting_events: &["permission.waiting", "question.waiting"],
    read: read_prompt,
    output: prompt_output,
    results: None,
    answer_events: Some(AnswerEvents {
        events: &["permission.replied", "question.replied", "question.rejected"],
        read: read_answer_event,
    }),
    unattended: None,
    refuses: None,
};

fn read_prompt(event: &str, input: &serde_json::Value) -> Option<PromptContent> {
    let asked = input.get("properties")?;
    if event == "question.asked" {
        return questions(asked, "multiple", |question| {
            question.get("custom") != Some(&serde_json::Value::Bool(false))
        });
    }
    let tool = asked.get("permission")?.as_str()?;
    let words = |key: &str| {
        let list = asked.get(key).and_then(serde_json::Value::as_array).into_iter().flatten();
        list.filter_map(serde_json::Value::as_str).map(str::to_owned).collect::<Vec<String>>()
    };
    let always = words("always").iter().map(|pattern| format!("{tool}: {pattern}, {ALWAYS}")).collect();
    let metadata =
        asked.get("metadata").filter(|metadata| metadata.as_object().is_some_and(|all| !all.is_empty()));
    let patterns = json!({ "command": words("patterns").join("\n") });
    Some(PromptContent::Permission(permission_request(tool, metadata.unwrap_or(&patterns), always)))
}

/// The body of the reply, under the kind of the dialog.
fn prompt_output(event: &str, _input: &serde_json::Value, answer: &Answer) -> Option<String> {
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

fn read_answer_event(event: &str, input: &serde_json::Value) -> Option<Answer> {
    let replied = input.get("properties")?;
    match (event, replied.get("reply").and_then(serde_json::Value::as_str)) {
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
    use ringer_core::agent::SignalContent;
    use serde_json::json;

    use super::*;

    fn report(event: &str, input: &serde_json::Value) -> HookReport {
        read(event, &HookInput::read(input.to_string().as_bytes()).unwrap())
    }

    #[track_caller]
    fn check(event: &str, properties: &serde_json::Value, content: &SignalContent, text: Option<&str>) {
        let found = report(event, &json!({"type": event, "properties": properties, "cwd": "/p"}));
        let expected = (Some("ses_1"), content, text, Some("/p"));
        let session = found.session_id.as_deref();
        assert_eq!(
            (session, &found.signals[0].content, found.text.as_deref(), found.cwd.as_deref()),
            expected
        );
    }

    #[test]
    fn its_events() {
        use AgentState::{Blocked, Error, Exited, RateLimited, Ready, Working};
        let on = |on| SignalContent::State(Blocked(on));
        check("session.created", &json!({"info": {"id": "ses_1"}}), &SignalContent::State(Ready), None);
        check("session.deleted", &json!({"info": {"id": "ses_1"}}), &SignalContent::State(Exited), None);
        check(
            "session.status",
            &json!({"sessionID": "ses_1", "status": {"type": "busy"}}),
            &SignalContent::State(Working),
            None,
        );
        let retry = json!({"sessionID": "ses_1", "status": {"type": "retry", "message": "429"}});
        check("session.status", &retry, &SignalContent::State(RateLimited), None);
        check(
            "permission.asked",
            &json!({"sessionID": "ses_1", "permission": "bash", "patterns": ["rm *"], "metadata": {}}),
            &on(BlockedOn::Permission),
            Some("bash: rm *"),
        );
        check(
            "permission.updated",
            &json!({"sessionID": "ses_1", "type": "edit", "title": "Edit", "metadata": {"filePath": "/p/a.rs"}}),
            &on(BlockedOn::Permission),
            Some("edit: a.rs"),
        );
        check(
            "question.asked",
            &json!({"sessionID": "ses_1", "questions": [{"question": "Which?", "options": [{"label": "A"}]}]}),
            &on(BlockedOn::Question),
            Some("Which? (A)"),
        );
        check(
            "session.error",
            &json!({"sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "400"}}}),
            &SignalContent::State(Error),
            Some("APIError: 400"),
        );
        let aborted = json!({"sessionID": "ses_1", "error": {"name": "MessageAbortedError"}});
        check("session.error", &aborted, &SignalContent::Interrupted, None);
    }

    #[test]
    fn a_reply_ends_the_dialog_that_it_names() {
        for (event, name) in [
            ("permission.replied", "requestID"),
            ("permission.replied", "permissionID"),
            ("question.rejected", "requestID"),
        ] {
            let found = report(event, &json!({"session_id": "s", "properties": { name: "per_1" }}));
            assert_eq!(found.signals[0].call.as_deref(), Some("per_1"), "{event} {name}");
        }
    }

    #[test]
    fn an_idle_session_waits_for_messages_and_tells_nothing() {
        let idle = report("session.waiting", &json!({"session_id": "s"}));
        assert!(idle.waits_for_messages && idle.signals.is_empty() && !idle.is_about_dialog(), "{idle:?}");
        let child = report("session.waiting", &json!({"session_id": "s", "parentID": "p"}));
        assert!(!child.waits_for_messages);
        let reply = HookReply { stop_reason: Some("look".to_owned()), ..HookReply::default() };
        assert_eq!(answer("session.waiting", &reply).prompt.as_deref(), Some("look"));
    }

    #[test]
    fn tools_and_the_end_of_a_turn() {
        let tool = report("tool.execute.after", &json!({"sessionID": "s", "callID": "c", "tool": "bash"}));
        assert_eq!((tool.hook_point, tool.call_id.as_deref()), (HookPoint::AfterTool, Some("c")));
        let output = answer("tool.execute.after", &HookReply::with_context("hello"));
        assert_eq!(output.append.as_deref(), Some("\n\nhello"));
        let idle = report("session.idle", &json!({"properties": {"sessionID": "s"}}));
        assert_eq!(idle.hook_point, HookPoint::Stopping { already_blocked: false });
        assert_eq!(idle.signals[0].content, SignalContent::State(AgentState::Done));
        let last = report("session.idle", &json!({"session_id": "s", "ends_with_turn": true}));
        assert_eq!((last.hook_point, &last.signals), (HookPoint::Other, &idle.signals));
        for (event, input) in [
            ("session.idle", json!({"session_id": "s", "aborted": true})),
            (
                "tool.execute.after",
                json!({"session_id": "s", "callID": "c", "tool": "bash", "aborted": true}),
            ),
        ] {
            let ended = report(event, &input);
            assert_eq!(ended.hook_point, HookPoint::Other, "no message enters it");
            assert!(
                matches!(&ended.signals[..], [one] if one.content == SignalContent::Interrupted),
                "{event}"
            );
        }
        let child = report("session.idle", &json!({"properties": {"sessionID": "s"}, "parentID": "p"}));
        assert_eq!((child.subagent, child.hook_point), (true, HookPoint::Other));
        assert_eq!(child.session_id.as_deref(), Some("p"));
        assert_eq!(child.signals[0].content, SignalContent::Alive);
    }

    #[test]
    fn a_permission_and_its_replies() {
        let input = json!({ "properties": { "id": "per_1", "permission": "bash", "patterns": ["touch a"],
            "metadata": { "command": "touch a" }, "always": ["touch *"] } });
        let Some(PromptContent::Permission(request)) = read_prompt("permission.asked", &input) else {
            panic!("one")
        };
        assert_eq!((request.tool.as_str(), request.request.as_str()), ("bash", "touch a"));
        assert_eq!(request.always, ["bash: touch *, for the rest of this opencode session"]);
        let reply = |answer: &Answer| -> serde_json::Value {
            serde_json::from_str(&prompt_output("permission.waiting", &input, answer).unwrap()).unwrap()
        };
        assert_eq!(reply(&Answer::Allow), json!({"permission": {"reply": "once"}}));
        assert_eq!(reply(&Answer::AllowAlways), json!({"permission": {"reply": "always"}}));
        let deny = Answer::Deny { reason: Some("use mkdir".into()) };
        assert_eq!(reply(&deny), json!({"permission": {"reply": "reject", "message": "use mkdir"}}));
        assert_eq!(prompt_output("permission.waiting", &input, &Answer::Choices(Vec::new())), None);
    }

    #[test]
    fn the_answer_that_was_taken_is_told() {
        fn check(event: &str, properties: &serde_json::Value, expect: Option<&Answer>) {
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
        let Some(PromptContent::Permission(request)) = read_prompt("permission.asked", &input) else {
            panic!("one")
        };
        assert_eq!((request.request.as_str(), request.whole), ("/a/*\n/b/*", true));
        assert!(request.always.is_empty());
    }

    #[test]
    fn a_question_and_its_reply() {
        let input = json!({ "properties": { "id": "que_1", "questions": [
            { "question": "Which one?", "options": [{ "label": "Alpha", "description": "a" }, { "label": "Beta" }] }] } });
        let prompt = read_prompt("question.asked", &input).unwrap();
        let answer = prompt.read_answer(&["2"]).unwrap();
        let output = prompt_output("question.waiting", &input, &answer).unwrap();
        assert_eq!(output, r#"{"question":{"answers":[["Beta"]]}}"#);
    }
}
