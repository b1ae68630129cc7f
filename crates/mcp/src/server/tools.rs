//! The tools: their names and parameters, validation of arguments, and the [`Backend`] that implements them.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How long `ask` waits by default. Many clients time out a call after 60 seconds.
pub(super) const DEFAULT_ASK_SECONDS: u64 = 50;

/// The parameters of `notify`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NotifyArguments {
    /// The text of the message, at most 64 KiB.
    pub message: String,
    /// What kind of news it is. `complete`: your task is done. `waiting`: you need something from the person before you can go on. `error`: it failed. `stuck`: you make no progress. `status` (the default): anything else. `permission`, `idle` and `question` are as the clients report them.
    #[schemars(extend("enum" = ["complete", "waiting", "permission", "idle", "question", "stuck", "error", "status"]))]
    pub kind: Option<String>,
    /// A short title, shown above the message.
    pub title: Option<String>,
    /// Who gets it: `person`, `lead` (the lead agent of this repository), `all`, or the id or name of an agent as `status` shows it. Without it: the person and the lead agent.
    pub to: Option<String>,
    /// A name for what this message is about. A later message with the same key replaces the earlier notification.
    pub key: Option<String>,
    /// What the message reports, if it does not come from you yourself: the end of a background task, diagnostics of an editor, or a changed file. Only for a message to an agent (`to`), which then reads it under that source.
    #[schemars(extend("enum" = ["background_task", "ide_diagnostics", "file_watcher"]))]
    pub source: Option<String>,
}

/// The parameters of `ask`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AskArguments {
    /// The question, with all that is needed to answer it.
    pub question: String,
    /// Answers to choose from. With them, the answer is one of them; without, it is any text.
    #[serde(default)]
    pub options: Vec<String>,
    /// How many seconds to wait for the answer, at most 3600; 0 asks and does not wait. Default: 50, because many clients end a tool call after 60.
    #[schemars(range(min = 0, max = 3600))]
    pub timeout_seconds: Option<u64>,
}

/// The parameters of `questions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuestionsArguments {
    /// Include questions that have their answer.
    pub all: bool,
    /// Only questions that were asked in this repository.
    pub here: bool,
}

/// The parameters of `answer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AnswerArguments {
    /// The id of the question, as `questions` shows it.
    pub id: String,
    /// The answer: one of the question's options or its number, or a text if it has none.
    pub answer: String,
}

/// The parameters of `inbox`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct InboxArguments {
    /// The `message_id` of each channel message that you have read, so that it does not come once more.
    pub(super) seen: Vec<String>,
}

/// The parameters of `list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListArguments {
    /// Only those that the person has not read.
    pub unread: bool,
    /// Only those of this repository.
    pub here: bool,
    /// At most this many, the newest first. Default: 50.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<u64>,
}

/// The parameters of `status`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) struct StatusArguments {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolName {
    Notify,
    Ask,
    Questions,
    Answer,
    Inbox,
    List,
    Status,
}

impl ToolName {
    pub(super) const ALL: [Self; 7] =
        [Self::Notify, Self::Ask, Self::Questions, Self::Answer, Self::Inbox, Self::List, Self::Status];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Ask => "ask",
            Self::Questions => "questions",
            Self::Answer => "answer",
            Self::Inbox => "inbox",
            Self::List => "list",
            Self::Status => "status",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    fn description(self) -> &'static str {
        match self {
            Self::Notify => {
                "Send a notification to the person you work for, or a message to another agent. Use it when your task is \
                 done, failed, or needs the person, who may be looking elsewhere. It is stored before the call returns, \
                 and an agent that is not running gets it later."
            }
            Self::Ask => {
                "Ask the person (or this repository's lead agent) a question and wait for the answer. Use it before a \
                 decision that is not yours to make. If nobody answers in time, the question stays open and its answer \
                 comes with a later tool result, so go on with other work."
            }
            Self::Questions => {
                "List the open questions that agents asked with `ask`, oldest first, with their ids."
            }
            Self::Answer => {
                "Answer a question that an agent asked with `ask`. It does not answer permission dialogs or other \
                 prompts of a client: only the person does that."
            }
            Self::Inbox => {
                "Read everything that waits for you: messages of the person and of other agents, and answers to your \
                 questions. Most of it comes by itself at the end of tool results; call this when you have nothing else \
                 to do, or to say which channel messages you have read."
            }
            Self::List => "List the person's notifications, newest first.",
            Self::Status => {
                "Show what needs the person, which agents run and what they do, and whether Ringer itself works. It \
                 shows the ids and names that `notify` takes in `to`."
            }
        }
    }

    /// Returns the JSON schema of the parameters.
    pub(super) fn schema(self) -> JsonObject {
        let schema = match self {
            Self::Notify => schema_for_input::<NotifyArguments>(),
            Self::Ask => schema_for_input::<AskArguments>(),
            Self::Questions => schema_for_input::<QuestionsArguments>(),
            Self::Answer => schema_for_input::<AnswerArguments>(),
            Self::Inbox => schema_for_input::<InboxArguments>(),
            Self::List => schema_for_input::<ListArguments>(),
            Self::Status => schema_for_input::<StatusArguments>(),
        };
        // `schema_for_input` fails only for a type that is not an object; all of these are.
        let mut schema = schema.map(|schema| JsonObject::clone(&schema)).unwrap_or_default();
        schema.remove("$schema");
        simplify(&mut schema);
        schema
    }

    /// Returns the entry for `tools/list`.
    pub(super) fn tool(self) -> Tool {
        let reads = matches!(self, Self::Questions | Self::List | Self::Status);
        let hints = ToolAnnotations::new().read_only(reads).destructive(false).open_world(false);
        Tool::new(self.as_str(), self.description(), std::sync::Arc::new(self.schema()))
            .with_annotations(hints)
    }
}

/// Reduces the list of types of an optional parameter to one type: some clients and models accept no list. `required` already
/// says which parameters are optional.
fn simplify(schema: &mut JsonObject) {
    let Some(Value::Object(parameters)) = schema.get_mut("properties") else {
        // Some clients expect it even when empty.
        schema.insert("properties".to_owned(), Value::Object(JsonObject::new()));
        return;
    };
    for parameter in parameters.values_mut().filter_map(Value::as_object_mut) {
        let kind = parameter.get("type").and_then(Value::as_array).and_then(|kinds| kinds.first()).cloned();
        if let Some(kind) = kind {
            parameter.insert("type".to_owned(), kind);
        }
        // `format` is the width of a Rust integer; `default` repeats the description.
        parameter.remove("format");
        parameter.remove("default");
    }
}

/// Parses the arguments of a call. The error text is for the model.
pub(super) fn read_arguments<T: DeserializeOwned>(
    tool: ToolName,
    arguments: Option<JsonObject>,
) -> Result<T, String> {
    let mut arguments = arguments.unwrap_or_default();
    // Models write null for parameters that they omit.
    arguments.retain(|_, value| !value.is_null());
    check_arguments(&tool.schema(), &arguments)?;
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("invalid arguments: {error}"))
}

fn check_arguments(schema: &JsonObject, arguments: &JsonObject) -> Result<(), String> {
    let no_parameters = JsonObject::new();
    let parameters = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_parameters);
    for (name, value) in arguments {
        let Some(parameter) = parameters.get(name) else {
            let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            return Err(format!("unknown parameter {name:?} (known: {known})"));
        };
        if !fits(parameter, value) {
            return Err(format!("the parameter `{name}` must be {}", words(parameter)));
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(format!("the parameter `{name}` is missing")))
}

fn fits(parameter: &Value, value: &Value) -> bool {
    let is_of_type = match parameter["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_u64().is_some_and(|number| is_in_range(parameter, number)),
        Some("array") => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        _ => true,
    };
    is_of_type && parameter["enum"].as_array().is_none_or(|known| known.contains(value))
}

fn is_in_range(parameter: &Value, number: u64) -> bool {
    parameter["minimum"].as_u64().is_none_or(|least| number >= least)
        && parameter["maximum"].as_u64().is_none_or(|most| number <= most)
}

fn words(parameter: &Value) -> String {
    if let Some(known) = parameter["enum"].as_array() {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", known.join(", "));
    }
    match (parameter["type"].as_str(), parameter["minimum"].as_u64(), parameter["maximum"].as_u64()) {
        (Some("integer"), least, Some(most)) => {
            format!("a whole number from {} to {most}", least.unwrap_or_default())
        }
        (Some("integer"), ..) => "a whole number, not negative".to_owned(),
        (Some("boolean"), ..) => "true or false".to_owned(),
        (Some("array"), ..) => "a list of texts".to_owned(),
        _ => "a text".to_owned(),
    }
}

/// The text of a tool result, or of an error with a hint what to do next.
pub type ToolText = Result<String, String>;

/// The outcome of `ask`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskResult {
    /// The question was answered, or closed without an answer.
    Answered {
        /// The id of the question.
        id: String,
        /// The answer; `None` if the question was closed without one.
        answer: Option<String>,
    },
    /// The question is still open.
    Open {
        /// The id of the question.
        id: String,
        /// True if the answer will be sent to the agent that asked. If the agent is unknown, the answer is only stored.
        is_sent_later: bool,
    },
}

/// Implements the tools with the journal and the hub. The methods may block; they are called on blocking threads.
pub trait Backend: Send + Sync + 'static {
    /// Sends a message.
    fn notify(&self, message: &NotifyArguments) -> ToolText;

    /// Asks a question and waits for the answer, until `within` has passed or `stop` hangs up.
    fn ask(
        &self,
        question: &AskArguments,
        within: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<AskResult, String>;

    /// Marks an answer as read, because a result with it is about to be written.
    fn mark_answer_read(&self, question: &str);

    /// Lists questions.
    fn questions(&self, arguments: &QuestionsArguments) -> ToolText;

    /// Answers a question that was asked with `ask`.
    fn answer(&self, arguments: &AnswerArguments) -> ToolText;

    /// Marks messages as read, because the agent has read them as channel messages. Returns a text about invalid ids, if any.
    fn mark_seen(&self, ids: &[String]) -> ToolText;

    /// Lists notifications.
    fn list(&self, arguments: &ListArguments) -> ToolText;

    /// Reports what needs the person, the agents, and the state of the hub.
    fn status(&self) -> ToolText;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_tool_and_parameter_is_described() {
        for name in ToolName::ALL {
            let tool = name.tool();
            assert!(tool.description.is_some_and(|text| text.len() > 30), "{name:?}");
            assert_eq!(ToolName::parse(name.as_str()), Some(name));
            assert_eq!(tool.input_schema["type"], "object", "{name:?}");
            for (parameter, schema) in tool.input_schema["properties"].as_object().unwrap() {
                assert!(schema["description"].as_str().is_some_and(|text| text.len() > 10), "{parameter}");
                assert!(schema["type"].is_string(), "{parameter}: {schema}");
            }
        }
        assert_eq!(ToolName::Notify.schema()["required"], serde_json::json!(["message"]));
        assert_eq!(ToolName::Ask.schema()["required"], serde_json::json!(["question"]));
    }

    fn wrong<T: DeserializeOwned + std::fmt::Debug>(tool: ToolName, arguments: &Value) -> String {
        read_arguments::<T>(tool, arguments.as_object().cloned()).unwrap_err()
    }

    #[test]
    fn errors_name_the_parameter() {
        let notify = |arguments: Value| wrong::<NotifyArguments>(ToolName::Notify, &arguments);
        assert_eq!(notify(json!({})), "the parameter `message` is missing");
        assert_eq!(notify(json!({ "message": null })), "the parameter `message` is missing");
        assert_eq!(notify(json!({ "message": 5 })), "the parameter `message` must be a text");
        assert_eq!(
            notify(json!({ "message": "x", "kind": "shout" })),
            "the parameter `kind` must be one of complete, waiting, permission, idle, question, stuck, error, status"
        );
        assert_eq!(
            notify(json!({ "message": "x", "body": "y" })),
            "unknown parameter \"body\" (known: key, kind, message, source, title, to)"
        );
        let ask = |arguments: Value| wrong::<AskArguments>(ToolName::Ask, &arguments);
        assert_eq!(
            ask(json!({ "question": "x", "options": "yes" })),
            "the parameter `options` must be a list of texts"
        );
        assert_eq!(
            ask(json!({ "question": "x", "timeout_seconds": 3601 })),
            "the parameter `timeout_seconds` must be a whole number from 0 to 3600"
        );
        assert_eq!(
            wrong::<StatusArguments>(ToolName::Status, &json!({ "x": 1 })),
            "unknown parameter \"x\" (known: it has none)"
        );
        assert!(wrong::<ListArguments>(ToolName::List, &json!({ "limit": -1 })).contains("`limit`"));
    }

    #[test]
    fn omitted_parameters_have_defaults() {
        let arguments = json!({ "message": "x", "title": null });
        let read: NotifyArguments = read_arguments(ToolName::Notify, arguments.as_object().cloned()).unwrap();
        assert_eq!(read, NotifyArguments { message: "x".to_owned(), ..NotifyArguments::default() });
        assert!(read_arguments::<StatusArguments>(ToolName::Status, None).is_ok());
    }
}
