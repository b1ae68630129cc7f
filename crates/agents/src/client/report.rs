//! What a hook call reports about an agent.

use ringer_core::agent::{
    AgentState, Answer, Authority, BlockedOn, Prompt, Signal, SignalContent, ends_with_waiting_marker,
};
use ringer_core::toast::Observation;

use super::input::HookInput;
use super::request::{self, shorten};

/// The word on the last line of a message that says that the agent waits, unless the person set another.
pub const WAITING: &str = "WAITING";

/// At which point of a turn a hook is called, which decides what may be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookPoint {
    /// A session begins: instructions can go in.
    SessionStarts,
    /// A prompt was sent, by the person or a program: context can go in with it.
    PromptSubmitted,
    /// A tool is about to run. Nothing goes in.
    BeforeTool,
    /// A tool ran, well or badly: context can go in with its result.
    AfterTool,
    /// The turn ends, and can be made to go on.
    Stopping {
        /// Whether it was made to go on before. Doing it again may keep it going for ever.
        already_blocked: bool,
    },
    /// Nothing can be answered.
    #[default]
    Other,
}

/// A call of a tool, by its id, or else by what tells it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCall {
    /// It is about to run.
    Begins {
        /// Which one.
        call: String,
        /// The tool, and what it is to do, in a line.
        text: Option<String>,
    },
    /// It ran, well or badly.
    Ended(String),
}

/// What runs on after a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BackgroundTasks {
    /// How many tasks run that may never end.
    pub(super) running: usize,
    /// Whether one runs that wakes the agent when it ends.
    pub(super) pending: bool,
}

/// What a hook call reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReport {
    /// The session. `None` if the call is about none that is to be reported.
    pub session_id: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// What it says of the agent's state. They hold for the session also when a subagent was the one who acted.
    pub signals: Vec<Signal>,
    /// Whether a subagent (or another helper of the client) acted. Nothing goes into its turns, and its
    /// end is not reported.
    pub subagent: bool,
    /// The client's id of the turn, where it has one.
    pub turn_key: Option<String>,
    /// The tool call it is about.
    pub call_id: Option<String>,
    /// Which tool begins to run or has ended, also a subagent's.
    pub tool_call: Option<ToolCall>,
    /// The ids of Ringer's messages that it carries.
    pub confirmed_ids: Vec<String>,
    /// What may be answered.
    pub hook_point: HookPoint,
    /// What the client said about itself: limits, models.
    pub observations: Vec<Observation>,
    /// The question, what it wants to do, the error, the prompt: in a line. The last message: whole.
    pub text: Option<String>,
    /// The last line of the agent's last message.
    pub last_line: Option<String>,
    /// The prompt, by its call, whose answer the hook waits for, where an earlier event has told of it.
    pub waits_at: Option<String>,
    /// The hook waits for messages while the session is idle.
    pub waits_for_messages: bool,
    /// What the client asks in a dialog, whole.
    pub prompt: Option<Prompt>,
    /// The answer that the client took in a dialog, where it says so.
    pub taken: Option<Answer>,
}

impl HookReport {
    /// Whether it is about a dialog: the agent needs a person, or waits for their answer.
    pub(crate) fn asks(&self) -> bool {
        self.waits_at.is_some() || self.signals.iter().any(Signal::is_blocked)
    }

    /// Applies another marker than [`WAITING`]: a turn whose last line is the marker did not complete, the agent waits.
    pub fn apply_waiting_marker(&mut self, marker: &str) {
        if !self.last_line.as_deref().is_some_and(|line| ends_with_waiting_marker(line, marker)) {
            return;
        }
        let done = SignalContent::State(AgentState::Done);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == done) {
            signal.content = SignalContent::State(AgentState::Blocked(BlockedOn::Input));
            signal.pending = false;
            // The marker is for Ringer, and the person need not read it.
            self.text = signal.text.take().and_then(|text| said(text.strip_suffix(marker).unwrap_or(&text)));
            signal.text.clone_from(&self.text);
        }
    }

    pub(super) fn new(session_id: Option<&str>, cwd: Option<&str>) -> Self {
        Self { session_id: session_id.map(str::to_owned), cwd: cwd.map(str::to_owned), ..Self::default() }
    }

    /// A session begins. After a compaction it goes on where it was, in or out of a turn: `ready` would end the turn.
    pub(super) fn session_starts(&mut self, input: &HookInput) {
        if input.text("source") == Some("compact") {
            self.alive();
        } else {
            self.state(AgentState::Ready);
        }
        self.hook_point = HookPoint::SessionStarts;
    }

    /// A prompt was submitted, by the person or by a program.
    pub(super) fn prompt_submitted(&mut self, input: &HookInput) {
        let prompt = input.text("prompt").unwrap_or_default();
        self.prompted(request::is_of_person(prompt));
        self.text = input.text("prompt").and_then(shorten);
        self.hook_point = HookPoint::PromptSubmitted;
    }

    /// It works on a prompt.
    pub(super) fn prompted(&mut self, by_person: bool) {
        let signal = Signal::state(Authority::Hook, AgentState::Working);
        self.signals.push(Signal { by_person, ..signal });
    }

    /// It works with a tool. Prompts about other calls stay open.
    fn works_with_call(&mut self, call: Option<String>) {
        let signal = Signal::state(Authority::Hook, AgentState::Working);
        self.signals.push(Signal { call, ..signal });
    }

    /// The person interrupted it.
    pub(super) fn interrupted(&mut self) {
        self.signals.push(Signal::new(Authority::Hook, SignalContent::Interrupted));
    }

    /// It only wants a permission in these signals, which it has or will not get: no person is asked.
    pub(crate) fn replace_permission_prompt(&mut self, content: &SignalContent) {
        let asks = SignalContent::State(AgentState::Blocked(BlockedOn::Permission));
        for signal in self.signals.iter_mut().filter(|signal| signal.content == asks) {
            signal.content = content.clone();
        }
    }

    /// The last signal is about this call.
    pub(super) fn about_call(&mut self, call: Option<String>) {
        if let Some(signal) = self.signals.last_mut() {
            signal.call = call;
        }
    }

    /// It is alive, and nothing else is known.
    pub(super) fn alive(&mut self) {
        self.signals.push(Signal::new(Authority::Hook, SignalContent::Alive));
    }

    /// The agent is in this state.
    pub(super) fn state(&mut self, state: AgentState) {
        self.signals.push(Signal::state(Authority::Hook, state));
    }

    /// It is in this state, with words.
    pub(super) fn state_with(&mut self, authority: Authority, state: AgentState, text: Option<String>) {
        self.add_signal(authority, SignalContent::State(state), text);
    }

    /// It sent a notification of its own.
    pub(super) fn notified(&mut self, content: SignalContent, text: Option<String>) {
        self.add_signal(Authority::Notification, content, text);
    }

    fn add_signal(&mut self, authority: Authority, content: SignalContent, text: Option<String>) {
        self.text.clone_from(&text);
        self.signals.push(Signal { text, ..Signal::new(authority, content) });
    }

    /// It wants leave to use the tool of the input, or asks something with it.
    pub(super) fn blocked_by_tool(&mut self, input: &HookInput) {
        let tool = input.text("tool_name").unwrap_or_default();
        if request::is_question(tool) {
            let text = input.get("tool_input").and_then(request::question);
            self.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Question), text);
        } else {
            let wish = request::wish(tool, input.get("tool_input"), self.cwd.as_deref());
            self.state_with(Authority::Hook, AgentState::Blocked(BlockedOn::Permission), wish);
        }
        self.about_call(call_of(input));
    }

    /// A tool of the input is about to run: work, unless the tool is how the client asks the person.
    pub(super) fn before_tool(&mut self, input: &HookInput) {
        if input.text("tool_name").is_some_and(request::is_question) {
            self.blocked_by_tool(input);
            self.hook_point = HookPoint::BeforeTool;
        } else {
            let tool = input.text("tool_name").unwrap_or_default();
            let text = request::wish(tool, input.get("tool_input"), self.cwd.as_deref());
            self.call_begins(call_of(input), text);
        }
    }

    /// A call is about to run, which does what the text says.
    pub(super) fn call_begins(&mut self, call: Option<String>, text: Option<String>) {
        let id = self.call_id.clone().or_else(|| call.clone());
        self.tool_call = id.map(|call| ToolCall::Begins { call, text });
        self.works_with_call(call);
        self.hook_point = HookPoint::BeforeTool;
    }

    /// A tool of the input ran.
    pub(super) fn after_tool(&mut self, input: &HookInput) {
        self.call_ended(call_of(input));
    }

    /// A call ran.
    pub(super) fn call_ended(&mut self, call: Option<String>) {
        self.tool_call = self.call_id.clone().or_else(|| call.clone()).map(ToolCall::Ended);
        self.works_with_call(call);
        self.hook_point = HookPoint::AfterTool;
    }

    /// Its turn ended, with the message at that path.
    pub(super) fn done(&mut self, input: &HookInput, path: &str) {
        let message = input.full_text(path).and_then(|message| said(&message));
        let mut signal = Signal::state(Authority::Hook, AgentState::Done);
        signal.text.clone_from(&message);
        self.signals.push(signal);
        self.text = message;
        self.last_line = input.last_line(path).map(str::to_owned);
        self.hook_point = HookPoint::Stopping { already_blocked: input.flag("stop_hook_active") };
        self.apply_waiting_marker(WAITING);
    }

    /// What runs on after the turn that ended.
    pub(super) fn background_tasks(&mut self, tasks: BackgroundTasks) {
        let done = SignalContent::State(AgentState::Done);
        for signal in self.signals.iter_mut().filter(|signal| signal.content == done) {
            (signal.running, signal.pending) = (tasks.running, tasks.pending);
        }
    }

    /// The session ended, with the reason that Claude Code and Gemini give.
    pub(super) fn session_ends(&mut self, input: &HookInput) {
        let by_person = matches!(input.text("reason"), Some("prompt_input_exit" | "clear" | "logout"));
        let signal = Signal::state(Authority::Hook, AgentState::Exited);
        self.signals.push(Signal { by_person, ..signal });
    }

    /// The client said something about itself; `source` is a row of the core's catalogue.
    pub(super) fn observe(&mut self, source: &str, text: &str, error: bool) {
        if let Some(text) = shorten(text) {
            self.observations.push(Observation { error, ..Observation::new(source, text) });
        }
    }

    /// A subagent acted: messages for the agent must not go into the subagent's turn.
    pub(super) fn of_subagent(mut self) -> Self {
        self.subagent = true;
        self.hook_point = HookPoint::Other;
        self
    }
}

/// A message without the space around it. `None` if it says nothing.
fn said(message: &str) -> Option<String> {
    let message = message.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    (!message.is_empty()).then(|| message.to_owned())
}

/// What tells the tool call of the input from others.
fn call_of(input: &HookInput) -> Option<String> {
    Some(request::call_key(input.text("tool_name")?, input.get("tool_input")))
}

#[cfg(test)]
impl HookReport {
    /// It says that the agent is in this state, and nothing else.
    #[track_caller]
    pub(super) fn assert_only_signal(&self, state: AgentState, moment: HookPoint, text: Option<&str>) {
        assert_eq!(
            (&self.signals[0].content, self.hook_point, self.text.as_deref()),
            (&SignalContent::State(state), moment, text)
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
