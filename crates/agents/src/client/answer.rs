//! What may be said back to a client.

use ringer_term::escape_json;
use serde::Serialize;

use super::{Client, claude, codex, copilot, cursor, gemini, opencode};

/// What Ringer wants to say back. Each client is told what it can take of it; the rest is left out, never refused, so
/// nothing that does not fit may be counted as delivered: ask [`HookReport::hook_point`](super::HookReport::hook_point) first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// What enters the turn, with a prompt or a tool's result. It is not cut: blocks must not lose their ends, and
    /// who chose them knows [`Client::context_limit`].
    pub context: Option<String>,
    /// The reason to keep working instead of stopping.
    pub stop_reason: Option<String>,
    /// What to show on the terminal. See [`is_allowed_sequence`](super::is_allowed_sequence).
    pub terminal_sequence: Option<String>,
    /// Instructions for a session that begins.
    pub session_context: Option<String>,
}

impl Reply {
    /// Nothing but context.
    pub fn with_context(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..Self::default() }
    }

    /// Nothing but a reason to go on.
    pub fn with_stop_reason(reason: impl Into<String>) -> Self {
        Self { stop_reason: Some(reason.into()), ..Self::default() }
    }

    /// The context of a prompt or a tool's result.
    pub(super) fn turn_context(&self) -> Option<String> {
        said(self.context.as_deref()).map(str::to_owned)
    }

    /// The context of a session that begins: the instructions, then what waits.
    pub(super) fn start_context(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.session_context, &self.context]
            .into_iter()
            .filter_map(|part| said(part.as_deref()))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The reason to go on. Codex refuses an empty one.
    pub(super) fn reason(&self) -> Option<String> {
        said(self.stop_reason.as_deref()).map(str::to_owned)
    }
}

fn said(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// The bytes for the hook's standard output; `None` for not a single one.
///
/// ```
/// use ringer_agents::client::{Client, Reply, answer};
///
/// assert_eq!(
///     answer(Client::Claude, "PostToolUse", &Reply::with_context("hello")).as_deref(),
///     Some(r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"hello"}}"#)
/// );
/// assert_eq!(answer(Client::Claude, "SessionEnd", &Reply::with_context("hello")), None);
/// ```
pub fn answer(client: Client, event: &str, reply: &Reply) -> Option<String> {
    match client {
        Client::Claude => written(&claude::answer(event, reply)),
        Client::Codex => written(&codex::answer(event, reply)),
        Client::Gemini => written(&gemini::answer(event, reply)),
        Client::Opencode => written(&opencode::answer(event, reply)),
        Client::Cursor => written(&cursor::answer(event, reply)),
        Client::Copilot => written(&copilot::answer(event, reply)),
        Client::Aider => None,
    }
}

fn written<T: Serialize + Default + PartialEq>(output: &T) -> Option<String> {
    if *output == T::default() {
        return None;
    }
    // Structs of texts cannot fail to be written; should they ever, silence is right.
    serde_json::to_string(output).ok().map(|json| escape_json(&json).into_owned())
}

/// `hookSpecificOutput`, which three clients share.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventOutput {
    hook_event_name: String,
    additional_context: String,
}

impl EventOutput {
    pub(super) fn new(event: &str, context: Option<String>) -> Option<Self> {
        context.map(|additional_context| Self { hook_event_name: event.to_owned(), additional_context })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(client: Client, event: &str, reply: &Reply, expected: &str) {
        assert_eq!(answer(client, event, reply).unwrap_or_default(), expected);
    }

    #[test]
    fn a_reason_to_go_on() {
        let reply = Reply::with_stop_reason("look");
        check(Client::Claude, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
        check(Client::Codex, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
        check(Client::Gemini, "AfterAgent", &reply, r#"{"decision":"deny","reason":"look"}"#);
        check(Client::Opencode, "session.idle", &reply, r#"{"prompt":"look"}"#);
        check(Client::Cursor, "stop", &reply, r#"{"followup_message":"look"}"#);
        check(Client::Copilot, "agentStop", &reply, r#"{"decision":"block","reason":"look"}"#);
        // In Codex it would take the place of the tool's output.
        for client in Client::ALL {
            for event in
                ["PostToolUse", "AfterTool", "tool.execute.after", "postToolUse", "SubagentStop", "notify"]
            {
                check(client, event, &reply, "");
            }
        }
    }

    #[test]
    fn a_session_begins_with_instructions_and_what_waits() {
        let reply = Reply { session_context: Some("listen".into()), ..Reply::with_context("hello") };
        let expected = |context: &str| {
            let start = r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":""#;
            format!("{start}{context}\"}}}}")
        };
        for client in [Client::Claude, Client::Codex, Client::Gemini] {
            check(client, "SessionStart", &reply, &expected("listen\\n\\nhello"));
            check(client, "SessionStart", &Reply::with_context("hello"), &expected("hello"));
        }
        check(Client::Opencode, "session.created", &reply, "");
        check(Client::Cursor, "sessionStart", &reply, r#"{"additional_context":"listen\n\nhello"}"#);
        check(Client::Copilot, "sessionStart", &reply, r#"{"additionalContext":"listen\n\nhello"}"#);
    }

    #[test]
    fn a_terminal_sequence_goes_through_claude_code_only_and_only_a_harmless_one() {
        let reply = |sequence: &str| Reply { terminal_sequence: Some(sequence.into()), ..Reply::default() };
        let bell = reply("\x1b]9;done\x07");
        check(Client::Claude, "Stop", &bell, "{\"terminalSequence\":\"\\u001b]9;done\\u0007\"}");
        check(Client::Claude, "Stop", &reply("\x1b[2J"), "");
        for client in Client::ALL.into_iter().filter(|client| *client != Client::Claude) {
            for event in ["Stop", "stop", "agentStop"] {
                check(client, event, &bell, "");
            }
        }
    }

    #[test]
    fn nothing_to_say_is_not_a_byte() {
        let blank = Reply {
            context: Some(" \n".into()),
            stop_reason: Some(String::new()),
            terminal_sequence: Some(String::new()),
            session_context: Some(String::new()),
        };
        for client in Client::ALL {
            for event in [
                "Stop",
                "PostToolUse",
                "SessionStart",
                "AfterAgent",
                "session.idle",
                "stop",
                "agentStop",
                "",
                "x",
            ] {
                check(client, event, &Reply::default(), "");
                check(client, event, &blank, "");
            }
        }
    }
}
