//! Outputs that several clients share.

use ringer_term::escape_json;
use serde::Serialize;

/// The bytes of an output; `None` for one without content, so that the hook writes nothing.
pub(super) fn to_json<T: Serialize + Default + PartialEq>(output: &T) -> Option<String> {
    if *output == T::default() {
        return None;
    }
    // Structs of texts cannot fail to be written; should they ever, silence is right.
    serde_json::to_string(output).ok().map(|json| escape_json(&json).into_owned())
}

/// What Claude Code, Codex and Gemini CLI take back. Codex rejects the whole output if it has an unknown field, so what is
/// not set is not written.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<EventOutput>,
    /// Only Claude Code writes it to the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terminal_sequence: Option<String>,
}

impl DecisionOutput {
    /// Context for an event, and a reason to keep working with the word that the client has for that.
    pub(super) fn new(
        event: &str,
        context: Option<String>,
        word: &'static str,
        reason: Option<String>,
    ) -> Self {
        Self {
            decision: reason.is_some().then_some(word),
            reason,
            hook_specific_output: EventOutput::new(event, context),
            terminal_sequence: None,
        }
    }
}

/// `hookSpecificOutput`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventOutput {
    hook_event_name: String,
    additional_context: String,
}

impl EventOutput {
    fn new(event: &str, context: Option<String>) -> Option<Self> {
        context.map(|additional_context| Self { hook_event_name: event.to_owned(), additional_context })
    }
}
