//! What a hook call reports about an agent, in a form that is the same for all clients.

use ringer_core::Kind;
use ringer_core::agent::{
    AgentState, Answer, Authority, BlockedOn, Prompt, Signal, SignalContent, ends_with_waiting_marker,
};
use ringer_core::toast::Observation;

use super::input::HookInput;
use super::request::{self, shorten};

/// The default marker: a word on the last line of a message that means the agent waits.
pub const WAITING: &str = "WAITING";

/// The point of a turn at which a hook is called. It decides what may be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookPoint {
    /// A session starts: instructions can be added.
    SessionStarts,
    /// A prompt was submitted, by the person or a program: context can be added.
    PromptSubmitted,
    /// A tool is about to run: nothing can be added.
    BeforeTool,
    /// A tool has succeeded or failed: context can be added to its result.
    AfterTool,
    /// The turn ends, and can be continued.
    Stopping {
        /// The turn was continued before. Doing it again may keep it going for ever.
        already_blocked: bool,
    },
    /// Nothing can be added.
    #[default]
    Other,
}

/// A tool call, by its id or by a key that distinguishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCall {
    /// The call is about to run.
    Begins {
        /// The id or key of the call.
        call: String,
        /// A line with the tool and its arguments.
        text: Option<String>,
    },
    /// The call has succeeded or failed.
    Ended(String),
}

/// Background tasks at the end of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BackgroundTasks {
    /// All of them.
    pub(super) running: usize,
    /// One of them wakes the agent when it ends. The others may never end.
    pub(super) pending: bool,
}

/// A hook call, in the form that is the same for all clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReport {
    /// The session. `None` if the call is not to be reported.
    pub session_id: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The signals about the agent's state. They apply to the session even if a subagent acted.
    pub signals: Vec<Signal>,
    /// A subagent (or another helper of the client) acted. Nothing enters its turns, and its end is not reported.
    pub subagent: bool,
    /// The tool call that the event is about.
    pub call_id: Option<String>,
    /// The tool call that starts or has ended, including a subagent's.
    pub tool_call: Option<ToolCall>,
    /// The ids of Ringer's messages in the prompt.
    pub confirmed_ids: Vec<String>,
    /// The point of the turn.
    pub hook_point: HookPoint,
    /// What the client reports about itself: limits, models.
    pub observations: Vec<Observation>,
    /// A line with the question, the request, the error or the prompt. The last message is kept whole.
    pub text: Option<String>,
    /// The last line of the agent's last message.
    pub last_line: Option<String>,
    /// The call whose dialog this hook waits for, if an earlier event reported the dialog.
    pub awaited_call: Option<String>,
    /// The hook waits for messages while the session is idle.
    pub waits_for_messages: bool,
    /// The dialog that the client shows.
    pub prompt: Option<Prompt>,
    /// The answer that the client took in a dialog, if it reports it.
    pub dialog_answer: Option<Answer>,
    /// What the report lacks and the session's log has.
    pub log_detail: Option<LogDetail>,
    /// The time of the call in milliseconds since 1970, by which its line is found in the session's log.
    pub called_ms: Option<i64>,
}

/// A detail that no hook has, only the session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogDetail {
    /// The last message of the turn.
    LastMessage,
    /// Why the turn failed.
    Error,
    /// What the agent asks the person.
    Question,
    /// No person attends, so the permission was refused without a dialog.
    Permission,
}

impl HookReport {
    /// Returns true if the event is about a dialog: the agent needs a person, or the hook waits for their answer.
    pub(crate) fn is_about_dialog(&self) -> bool {
        self.awaited_call.is_some() || self.signals.iter().any(Signal::is_blocked)
    }

    /// Applies a waiting marker, such as [`WAITING`]: a turn whose last line is the marker did not complete; the agent waits.
    pub fn apply_waiting_marker(&mut self, marker: &str) {
        if !self.last_line.as_deref().is_some_and(|line| ends_with_waiting_marker(line, marker)) {
            return;
        }
        let done = SignalContent::State(AgentState::Done);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == done) {
            signal.content = SignalContent::State(AgentState::Blocked(BlockedOn::Input));
            signal.pending = false;
            // The marker is for Ringer; it is not shown to the person.
            self.text =
                signal.text.take().and_then(|text| trimmed(text.strip_suffix(marker).unwrap_or(&text)));
            signal.text.clone_from(&self.text);
        }
    }

    pub(super) fn new(session_id: Option<&str>, cwd: Option<&str>) -> Self {
        Self { session_id: session_id.map(str::to_owned), cwd: cwd.map(str::to_owned), ..Self::default() }
    }

    /// A session starts. After a compaction the session continues where it was, in or out of a turn: `Ready` would end the turn.
    pub(super) fn session_starts(&mut self, input: &HookInput) {
        if input.text("source") == Some("compact") {
            self.alive();
        } else {
            self.state(AgentState::Ready);
        }
        self.hook_point = HookPoint::SessionStarts;
    }

    pub(super) fn prompt_submitted(&mut self, input: &HookInput) {
        let prompt = input.text("prompt").unwrap_or_default();
        self.prompted(request::is_from_person(prompt));
        self.text = input.text("prompt").and_then(shorten);
        self.hook_point = HookPoint::PromptSubmitted;
    }

    /// The agent works on a prompt.
    pub(super) fn prompted(&mut self, by_person: bool) {
        let signal = Signal::state(Authority::Hook, AgentState::Working);
        self.signals.push(Signal { by_person, ..signal });
    }

    /// The agent works on a call. Prompts about other calls stay open.
    fn works_with_call(&mut self, call: Option<String>) {
        let signal = Signal::state(Authority::Hook, AgentState::Working);
        self.signals.push(Signal { call, ..signal });
    }

    /// The person interrupted the agent.
    pub(super) fn interrupted(&mut self) {
        self.signals.push(Signal::new(Authority::Hook, SignalContent::Interrupted));
    }

    /// Replaces the signal that asks for a permission: the permission was granted or will not be given, so no person is asked.
    pub(crate) fn replace_permission_prompt(&mut self, content: &SignalContent) {
        let asks = SignalContent::State(AgentState::Blocked(BlockedOn::Permission));
        for signal in self.signals.iter_mut().filter(|signal| signal.content == asks) {
            signal.content = content.clone();
        }
    }

    /// Replaces the signal that the session ended: it ends later.
    pub(crate) fn session_goes_on(&mut self) {
        let ended = SignalContent::State(AgentState::Exited);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == ended) {
            signal.content = SignalContent::Alive;
        }
    }

    /// The client refuses the dialog by itself: no person is asked, and the agent works.
    pub(crate) fn dialog_is_refused(&mut self) {
        for signal in self.signals.iter_mut().filter(|signal| signal.is_blocked()) {
            signal.content = SignalContent::State(AgentState::Working);
            signal.text = None;
        }
        self.prompt = None;
        self.text = None;
    }

    /// Sets the call of the last signal.
    pub(super) fn set_call(&mut self, call: Option<String>) {
        if let Some(signal) = self.signals.last_mut() {
            signal.call = call;
        }
    }

    /// The agent is alive; nothing else is known.
    pub(super) fn alive(&mut self) {
        self.signals.push(Signal::new(Authority::Hook, SignalContent::Alive));
    }

    pub(super) fn state(&mut self, state: AgentState) {
        self.signals.push(Signal::state(Authority::Hook, state));
    }

    pub(super) fn state_with(&mut self, authority: Authority, state: AgentState, text: Option<String>) {
        self.add_signal(authority, SignalContent::State(state), text);
    }

    /// The client sent its own notification.
    pub(super) fn notified(&mut self, content: SignalContent, text: Option<String>) {
        self.add_signal(Authority::Notification, content, text);
    }

    /// The client sent its own notification, which is of this kind.
    pub(super) fn notified_of_kind(&mut self, kind: Kind, text: Option<String>) {
        self.text.clone_from(&text);
        let signal = Signal::new(Authority::Notification, SignalContent::Notified);
        self.signals.push(Signal { text, kind: Some(kind), ..signal });
    }

    fn add_signal(&mut self, authority: Authority, content: SignalContent, text: Option<String>) {
        self.text.clone_from(&text);
        self.signals.push(Signal { text, ..Signal::new(authority, content) });
    }

    /// The agent asks for permission to use the tool, or asks a question with it.
    pub(super) fn blocked_by_tool(&mut self, input: &HookInput) {
        let tool = input.text("tool_name").unwrap_or_default();
        if request::is_question(tool) {
            let text = input.get("tool_input").and_then(request::question);
            self.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Question), text);
        } else {
            let request = request::describe_tool(tool, input.get("tool_input"), self.cwd.as_deref());
            self.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Permission), request);
        }
        self.set_call(call_of(input));
    }

    /// A tool is about to run: the agent works, unless the tool is how the client asks the person.
    pub(super) fn before_tool(&mut self, input: &HookInput) {
        if input.text("tool_name").is_some_and(request::is_question) {
            self.blocked_by_tool(input);
            self.hook_point = HookPoint::BeforeTool;
        } else {
            let tool = input.text("tool_name").unwrap_or_default();
            let text = request::describe_tool(tool, input.get("tool_input"), self.cwd.as_deref());
            self.call_begins(call_of(input), text);
        }
    }

    /// A call is about to run; `text` describes it.
    pub(super) fn call_begins(&mut self, call: Option<String>, text: Option<String>) {
        let id = self.call_id.clone().or_else(|| call.clone());
        self.tool_call = id.map(|call| ToolCall::Begins { call, text });
        self.works_with_call(call);
        self.hook_point = HookPoint::BeforeTool;
    }

    /// A tool has run.
    pub(super) fn after_tool(&mut self, input: &HookInput) {
        self.call_ended(call_of(input));
    }

    /// A call has run.
    pub(super) fn call_ended(&mut self, call: Option<String>) {
        self.tool_call = self.call_id.clone().or_else(|| call.clone()).map(ToolCall::Ended);
        self.works_with_call(call);
        self.hook_point = HookPoint::AfterTool;
    }

    /// The turn ended with the message at this path.
    pub(super) fn done(&mut self, input: &HookInput, path: &str) {
        self.done_without_message(input);
        if let Some(message) = input.full_text(path) {
            self.set_last_message(&message, input.last_line(path));
        }
    }

    /// The turn ended. The input does not have the last message.
    pub(super) fn done_without_message(&mut self, input: &HookInput) {
        self.state(AgentState::Done);
        self.hook_point = HookPoint::Stopping { already_blocked: input.flag("stop_hook_active") };
    }

    /// Sets the message with which the turn ended.
    pub(super) fn set_last_message(&mut self, message: &str, last_line: Option<&str>) {
        self.last_line = last_line.map(str::to_owned);
        self.set_signal_text(AgentState::Done, trimmed(message));
        self.apply_waiting_marker(WAITING);
    }

    /// Sets the text of the signal with this state, as one line.
    pub(super) fn set_line(&mut self, state: AgentState, text: &str) {
        self.set_signal_text(state, shorten(text));
    }

    fn set_signal_text(&mut self, state: AgentState, text: Option<String>) {
        let state = SignalContent::State(state);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == state) {
            signal.text.clone_from(&text);
        }
        self.text = text;
    }

    /// The turn ended. The client does not say how.
    pub(super) fn turn_ended(&mut self) {
        self.signals.push(Signal::new(Authority::Hook, SignalContent::TurnEnded));
    }

    /// Returns true if the client reports that the turn ended, and not how.
    pub(crate) fn has_unexplained_end(&self) -> bool {
        self.signals.iter().any(|signal| signal.content == SignalContent::TurnEnded)
    }

    /// Replaces a signal that the turn ended by one that says how.
    pub(crate) fn replace_turn_end(&mut self, end: &Signal) {
        for signal in self.signals.iter_mut().filter(|signal| signal.content == SignalContent::TurnEnded) {
            *signal = end.clone();
        }
    }

    /// Adds background tasks to the end of a turn.
    pub(super) fn background_tasks(&mut self, tasks: BackgroundTasks) {
        let done = SignalContent::State(AgentState::Done);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == done) {
            (signal.running, signal.pending) = (tasks.running, tasks.pending);
        }
    }

    /// The session ended. Claude Code and Gemini give the reason.
    pub(super) fn session_ends(&mut self, input: &HookInput) {
        let by_person = matches!(input.text("reason"), Some("prompt_input_exit" | "clear" | "logout"));
        let signal = Signal::state(Authority::Hook, AgentState::Exited);
        self.signals.push(Signal { by_person, ..signal });
    }

    /// The client reported something about itself; `source` is a row of the core's catalogue.
    pub(super) fn observe(&mut self, source: &str, text: &str, error: bool) {
        if let Some(text) = shorten(text) {
            self.observations.push(Observation { error, ..Observation::new(source, text) });
        }
    }

    /// Marks the report as a subagent's: messages for the agent must not enter the subagent's turn.
    pub(super) fn into_subagent(mut self) -> Self {
        self.subagent = true;
        self.hook_point = HookPoint::Other;
        self
    }
}

/// Trims white space and control characters. `None` if nothing is left.
fn trimmed(message: &str) -> Option<String> {
    let message = message.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    (!message.is_empty()).then(|| message.to_owned())
}

/// A key that distinguishes the tool call of the input from others.
fn call_of(input: &HookInput) -> Option<String> {
    Some(request::call_key(input.text("tool_name")?, input.get("tool_input")))
}

#[cfg(test)]
impl HookReport {
    /// Asserts that this state is all that is reported.
    #[track_caller]
    pub(super) fn assert_only_signal(&self, state: AgentState, hook_point: HookPoint, text: Option<&str>) {
        assert_eq!(
            (&self.signals[0].content, self.hook_point, self.text.as_deref()),
            (&SignalContent::State(state), hook_point, text)
        );
        assert!(self.signals.len() == 1 && !self.subagent && self.observations.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(message: &str) -> HookReport {
        let message = serde_json::json!({ "last_assistant_message": message }).to_string();
        let mut report = HookReport::default();
        report.done(&HookInput::read(message.as_bytes()).unwrap(), "last_assistant_message");
        report
    }

    #[test]
    fn the_last_line_says_whether_it_waits() {
        use AgentState::{Blocked, Done};
        let check = |message: &str, state: AgentState, text: Option<&str>| {
            let report = stop(message);
            assert_eq!(
                (&report.signals[0].content, report.text.as_deref()),
                (&SignalContent::State(state), text),
                "{message:?}"
            );
            assert_eq!(report.signals[0].text, report.text);
        };
        check("All done.", Done, Some("All done."));
        check("Which port?\n\nWAITING\n", Blocked(BlockedOn::Input), Some("Which port?"));
        check("WAITING", Blocked(BlockedOn::Input), None);
        check("It is WAITING", Done, Some("It is WAITING"));
        check("WAITING\nfor nothing", Done, Some("WAITING\nfor nothing"));
        check("", Done, None);
    }

    #[test]
    fn the_last_message_is_kept_whole() {
        let message = format!("{}\n3 tests FAIL", "It went well.\n".repeat(1000));
        assert_eq!(stop(&message).signals[0].text.as_deref(), Some(message.as_str()));
    }

    #[test]
    fn another_marker_and_one_at_the_end_of_a_long_message() {
        let waits = SignalContent::State(AgentState::Blocked(BlockedOn::Input));
        assert_eq!(stop(&format!("{}\nWAITING", "x".repeat(100_000))).signals[0].content, waits);
        let mut report = stop("Which?\nYOUR TURN");
        assert_ne!(report.signals[0].content, waits);
        report.apply_waiting_marker("YOUR TURN");
        assert_eq!((&report.signals[0].content, report.text.as_deref()), (&waits, Some("Which?")));
    }
}
