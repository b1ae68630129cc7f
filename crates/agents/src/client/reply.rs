//! Ringer's answer to a hook, and the output format that several clients share.

use ringer_term::escape_json;
use serde::Serialize;

/// Ringer's answer to a hook. Each client gets the parts that it accepts; the rest is silently left out and must not be counted
/// as delivered: check [`HookReport::hook_point`](super::HookReport::hook_point) first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// Text that enters the turn with a prompt or a tool's result. It is not truncated, because blocks must keep their ends; the
    /// caller respects [`Client::context_limit`](super::Client::context_limit).
    pub context: Option<String>,
    /// The reason to keep working instead of stopping.
    pub stop_reason: Option<String>,
    /// Escape sequences for the terminal; see [`is_allowed_sequence`](super::is_allowed_sequence).
    pub terminal_sequence: Option<String>,
    /// Instructions for the start of a session.
    pub session_context: Option<String>,
}

impl HookReply {
    /// A reply with context only.
    pub fn with_context(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..Self::default() }
    }

    /// A reply with a stop reason only.
    pub fn with_stop_reason(reason: impl Into<String>) -> Self {
        Self { stop_reason: Some(reason.into()), ..Self::default() }
    }

    /// The context for a prompt or a tool's result.
    pub(super) fn turn_context(&self) -> Option<String> {
        non_empty(self.context.as_deref()).map(str::to_owned)
    }

    /// The context for the start of a session: the instructions, then the pending messages.
    pub(super) fn start_context(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.session_context, &self.context]
            .into_iter()
            .filter_map(|part| non_empty(part.as_deref()))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The reason to continue. Codex rejects an empty one.
    pub(super) fn reason(&self) -> Option<String> {
        non_empty(self.stop_reason.as_deref()).map(str::to_owned)
    }
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// The JSON of an output; `None` for an empty one, so that the hook writes nothing.
pub(super) fn to_json<T: Serialize + Default + PartialEq>(output: &T) -> Option<String> {
    if *output == T::default() {
        return None;
    }
    // Serialising structs of texts cannot fail. If it ever does, write nothing.
    serde_json::to_string(output).ok().map(|json| escape_json(&json).into_owned())
}

/// The output that Claude Code, Codex and Gemini CLI accept. Codex rejects an output with an unknown field, so unset fields are
/// left out.
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
    /// Context for an event, and a reason to continue. `word` is the client's name for the decision to block.
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
