//! Agent clients: how their hook input is read, and which output they accept.
//!
//! Everything here is pure: hook input in, [`HookReport`] out; [`HookReply`] in, the bytes for the hook's standard output out. No
//! file, clock or process is touched, and no input causes a panic.
//!
//! ```
//! use ringer_agents::client::{Client, HookPoint, HookReply, agent_id, answer, read_bytes};
//!
//! let client: Client = "claude".parse()?;
//! let input = br#"{"session_id": "6be1e699-d2b2", "tool_name": "Bash", "tool_response": "as long as you like"}"#;
//! let report = read_bytes(client, "PostToolUse", input)?;
//! assert_eq!(report.hook_point, HookPoint::AfterTool);
//! let agent = report.session_id.as_deref().and_then(|id| agent_id(client, id));
//! assert_eq!(agent.unwrap().as_str(), "claude-6be1e699");
//! assert!(answer(client, "PostToolUse", &HookReply::default()).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//!
//! An input has at most [`MAX_INPUT`] bytes and is read in small chunks; what is kept of it takes less than half a megabyte. A
//! text is kept up to [`MAX_KEPT`] bytes, a line for a person up to [`MAX_LINE`] characters.

mod adapter;
mod claude;
pub(crate) mod codex;
mod copilot;
mod gemini;
mod input;
mod json;
mod opencode;
mod prompt;
mod reply;
mod report;
mod request;
mod settings;
mod status_line;
mod text;

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use ringer_core::agent::{AnswerMethod, Prompt};
use ringer_core::message::{Agent, InvalidName};

use adapter::Adapter;
use prompt::TeeReader;

pub(crate) use adapter::{
    LogPlace, PushMethod, ReadSession, SessionActivity, SessionFile, SessionFiles, SessionStatus, TurnEnd,
};
pub(crate) use claude::DENIED;
pub use claude::{CONTEXT_LIMIT as CLAUDE_CONTEXT_LIMIT, FROM_RINGER, is_allowed_sequence};
pub use codex::NOTIFY as CODEX_NOTIFY;
pub use input::{HookInput, MAX_INPUT, MAX_KEPT};
pub use json::InputError;
pub(crate) use prompt::{BEFORE_REASON, PromptHooks, ReadResults};
pub use reply::HookReply;
pub use report::{HookPoint, HookReport, LogDetail, ToolCall, WAITING};
pub use request::MAX_LINE;
pub use settings::{ClientPaths, Format, McpForm};
pub(crate) use settings::{FilePlace, HookEntryForm, InstalledHooks, PopupSetting, SettingsFile};
pub use status_line::StatusLine;

/// How many characters of a session's id are in the agent's id.
const ID_LENGTH: usize = 8;

/// A coding agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
}

impl Client {
    /// Every client, in the order in which documents list them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Copilot];

    /// The name in commands and settings.
    pub fn as_str(self) -> &'static str {
        self.adapter().name
    }

    /// The name as its makers write it.
    pub fn display_name(self) -> &'static str {
        self.adapter().display_name
    }

    /// The names of its programs. Each is accepted as the name of the client.
    pub fn programs(self) -> &'static [&'static str] {
        self.adapter().programs
    }

    /// Returns true if a message reaches an idle session. Otherwise the session reads it with its next prompt.
    pub fn is_woken_by_messages(self) -> bool {
        !matches!(self.adapter().push, PushMethod::Refused(_))
    }

    /// Returns true if the parent process of a hook is the session's.
    pub fn calls_hooks_itself(self) -> bool {
        self.adapter().calls_hooks_itself
    }

    /// Returns true if its sessions go on when their windows close.
    pub fn runs_without_window(self) -> bool {
        self.adapter().outlives_window
    }

    /// Maximum characters of context per hook, if known.
    pub fn context_limit(self) -> Option<usize> {
        self.adapter().context_limit
    }

    pub(crate) fn adapter(self) -> &'static Adapter {
        match self {
            Self::Claude => &claude::ADAPTER,
            Self::Codex => &codex::ADAPTER,
            Self::Gemini => &gemini::ADAPTER,
            Self::Opencode => &opencode::ADAPTER,
            Self::Copilot => &copilot::ADAPTER,
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Client {
    type Err = InvalidName;

    fn from_str(word: &str) -> Result<Self, InvalidName> {
        Self::ALL
            .into_iter()
            .find(|client| client.as_str() == word || client.programs().contains(&word))
            .ok_or_else(|| InvalidName::Unknown {
                what: "agent",
                word: word.to_owned(),
                known: Self::ALL.map(Self::as_str).join(", "),
            })
    }
}

/// The id of the agent in a session: the client, and eight letters and digits of the session's id. `None` if the session's id has
/// none.
///
/// They come from the random end of the id; see `Adapter::session_id_begins_randomly`.
pub fn agent_id(client: Client, session_id: &str) -> Option<Agent> {
    let usable: Vec<char> = session_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_first = client.adapter().session_id_begins_randomly;
    let begin = if is_first { 0 } else { usable.len().saturating_sub(ID_LENGTH) };
    let short: String = usable[begin..].iter().take(ID_LENGTH).collect();
    if short.is_empty() {
        return None;
    }
    Agent::new(&format!("{client}-{short}")).ok()
}

/// Reads a hook's input. An unknown event gives an empty report.
pub fn read(client: Client, event: &str, input: &HookInput) -> HookReport {
    (client.adapter().read)(event, input)
}

/// The text for the hook's standard output; `None` if nothing is to be written.
///
/// ```
/// use ringer_agents::client::{Client, HookReply, answer};
///
/// assert_eq!(
///     answer(Client::Claude, "PostToolUse", &HookReply::with_context("hello")).as_deref(),
///     Some(r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"hello"}}"#)
/// );
/// assert_eq!(answer(Client::Claude, "SessionEnd", &HookReply::with_context("hello")), None);
/// ```
pub fn answer(client: Client, event: &str, reply: &HookReply) -> Option<String> {
    (client.adapter().answer)(event, reply)
}

/// Reads a hook's input from a stream.
pub fn read_from(client: Client, event: &str, source: impl Read) -> Result<HookReport, InputError> {
    HookInput::read(source).map(|input| read(client, event, &input))
}

/// Reads a hook's input from a stream, and the dialog that it reports. Also returns the raw input, which the answer to the dialog
/// needs, unless it is too long.
pub(crate) fn read_with_prompt(
    client: Client,
    event: &str,
    source: impl Read,
) -> Result<(HookReport, Option<serde_json::Value>), InputError> {
    let answer_reader = |hooks: &PromptHooks| {
        hooks.answer_events.as_ref().filter(|taken| taken.events.contains(&event)).map(|taken| taken.read)
    };
    let concerns_prompt = |hooks: &&PromptHooks| {
        hooks.events.contains(&event)
            || hooks.waiting_events.contains(&event)
            || answer_reader(hooks).is_some()
    };
    let hooks = client.adapter().prompts.as_ref().filter(concerns_prompt);
    let Some(hooks) = hooks else { return Ok((read_from(client, event, source)?, None)) };
    let mut source = TeeReader::new(source);
    let mut report = read_from(client, event, &mut source)?;
    if let Some(read_answer_event) = answer_reader(hooks) {
        report.dialog_answer = source.into_json().and_then(|input| read_answer_event(event, &input));
        return Ok((report, None));
    }
    // Most tool calls ask nothing and are not read a second time.
    if !report.is_about_dialog() {
        return Ok((report, None));
    }
    let input = source.into_json();
    let content = input.as_ref().and_then(|input| (hooks.read)(event, input));
    // A subagent's hook runs before the dialog opens.
    let method = if report.subagent { AnswerMethod::DialogOnly } else { hooks.method };
    let transcript = input.as_ref().filter(|_| hooks.results.is_some());
    let transcript = transcript.and_then(|input| input["transcript_path"].as_str()).map(str::to_owned);
    report.prompt = content.map(|content| Prompt { content, method, transcript });
    Ok((report, input))
}

/// Reads a hook's input from memory: the argument of Codex's `notify` program, a test, a fuzzer.
pub fn read_bytes(client: Client, event: &str, bytes: &[u8]) -> Result<HookReport, InputError> {
    read_from(client, event, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_both_ways() {
        for client in Client::ALL {
            assert_eq!(client.to_string().parse(), Ok(client));
        }
        assert_eq!(
            "emacs".parse::<Client>().unwrap_err().to_string(),
            "unknown agent \"emacs\" (known: claude, codex, gemini, opencode, copilot)"
        );
    }

    #[test]
    fn an_agent_is_named_after_its_session() {
        let check = |client, session: &str, expected: Option<&str>| {
            let id = agent_id(client, session);
            assert_eq!(id.as_ref().map(Agent::as_str), expected);
        };
        check(Client::Claude, "6be1e699-d2b2-442c-995b-a5ac36193cd6", Some("claude-6be1e699"));
        check(Client::Opencode, "ses_66b3c4d5", Some("opencode-66b3c4d5"));
        check(Client::Codex, "abc", Some("codex-abc"));
        check(Client::Gemini, "../../\n\u{e4}", None);
        check(Client::Gemini, "", None);
    }

    #[track_caller]
    fn check_answer(client: Client, event: &str, reply: &HookReply, expected: &str) {
        assert_eq!(answer(client, event, reply).unwrap_or_default(), expected);
    }

    #[test]
    fn a_reason_to_go_on() {
        let reply = HookReply::with_stop_reason("look");
        check_answer(Client::Claude, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
        check_answer(Client::Codex, "Stop", &reply, r#"{"decision":"block","reason":"look"}"#);
        check_answer(Client::Gemini, "AfterAgent", &reply, r#"{"decision":"deny","reason":"look"}"#);
        check_answer(Client::Opencode, "session.idle", &reply, r#"{"prompt":"look"}"#);
        check_answer(Client::Copilot, "agentStop", &reply, r#"{"decision":"block","reason":"look"}"#);
        // In Codex it would take the place of the tool's output.
        for client in Client::ALL {
            for event in
                ["PostToolUse", "AfterTool", "tool.execute.after", "postToolUse", "SubagentStop", "notify"]
            {
                check_answer(client, event, &reply, "");
            }
        }
    }

    #[test]
    fn a_session_begins_with_instructions_and_what_waits() {
        let reply = HookReply { session_context: Some("listen".into()), ..HookReply::with_context("hello") };
        let expected = |context: &str| {
            let start = r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":""#;
            format!("{start}{context}\"}}}}")
        };
        for client in [Client::Claude, Client::Codex, Client::Gemini] {
            check_answer(client, "SessionStart", &reply, &expected("listen\\n\\nhello"));
            check_answer(client, "SessionStart", &HookReply::with_context("hello"), &expected("hello"));
        }
        check_answer(Client::Opencode, "session.created", &reply, "");
        check_answer(Client::Opencode, "session.context", &reply, r#"{"system":"listen\n\nhello"}"#);
        check_answer(Client::Copilot, "sessionStart", &reply, r#"{"additionalContext":"listen\n\nhello"}"#);
    }

    #[test]
    fn a_terminal_sequence_goes_through_claude_code_only_and_only_a_harmless_one() {
        let reply =
            |sequence: &str| HookReply { terminal_sequence: Some(sequence.into()), ..HookReply::default() };
        let bell = reply("\x1b]9;done\x07");
        check_answer(Client::Claude, "Stop", &bell, "{\"terminalSequence\":\"\\u001b]9;done\\u0007\"}");
        check_answer(Client::Claude, "Stop", &reply("\x1b[2J"), "");
        for client in Client::ALL.into_iter().filter(|client| *client != Client::Claude) {
            for event in ["Stop", "stop", "agentStop"] {
                check_answer(client, event, &bell, "");
            }
        }
    }

    #[test]
    fn nothing_to_say_is_not_a_byte() {
        let blank = HookReply {
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
                check_answer(client, event, &HookReply::default(), "");
                check_answer(client, event, &blank, "");
            }
        }
    }
}
