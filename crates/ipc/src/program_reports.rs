//! Translates a program's terminal output into a host's reports to the hub.

use std::time::Duration;

use ringer_core::agent::{AgentState, Authority, BlockedOn, Signal, SignalContent};
use ringer_term::{
    BlockedKind, Occasion, ProgramStatus, StatusState, TerminalEventKind, TitleChange, TitleMeaning,
    TitleTracker, parse_title,
};
use serde_json::{Value, json};

/// Follows one program. Returns parameters of `surface.heard`, without the surface.
#[derive(Debug, Default)]
pub struct ProgramReports {
    titles: TitleTracker,
    /// True once a title or a status has identified an agent. The titles of other programs do not describe a state.
    is_agent: bool,
    /// The last status that the program reported about itself.
    status: Option<StatusState>,
}

impl ProgramReports {
    /// Returns what to report for an event. `now` is a monotonic time with any origin.
    pub fn report(&mut self, now: Duration, event: &TerminalEventKind) -> Option<Value> {
        match event {
            TerminalEventKind::Notification(notification) => {
                let title = (!notification.title.is_empty()).then_some(&notification.title);
                let mut report = json!({ "title": title, "body": notification.body });
                if let Some(icon) = notification.metadata.icons.first() {
                    report["icon"] = json!(icon);
                }
                if notification.metadata.occasion != Occasion::Always {
                    report["unless_seen"] = json!(true);
                }
                Some(report)
            }
            TerminalEventKind::Bell => Some(json!({ "bell": true })),
            TerminalEventKind::Title(title) => self.title(now, title),
            TerminalEventKind::Status(status) => {
                let before = self.status.replace(status.state);
                let mut signal = status_signal(status)?;
                self.is_agent = true;
                // Idle in the middle of a turn: a program reports a turn that completed or failed as such.
                let was_in_turn = matches!(before, Some(StatusState::Working | StatusState::Blocked));
                if was_in_turn && status.state == StatusState::Idle {
                    signal.content = SignalContent::Interrupted;
                }
                Some(json!({ "signal": signal }))
            }
            _ => None,
        }
    }

    fn title(&mut self, now: Duration, title: &str) -> Option<Value> {
        let parsed = parse_title(title);
        if !self.is_agent && (parsed.client.is_some() || parsed.meaning != TitleMeaning::Idle) {
            self.is_agent = true;
            // Earlier titles came from the shell or the terminal.
            self.titles = TitleTracker::default();
        }
        let change = self.titles.observe(now, title).filter(|_| self.is_agent)?;
        Some(json!({ "signal": title_signal(change) }))
    }

    /// Returns what to report when the program has exited.
    pub fn ended(&self) -> Option<Value> {
        let signal = Signal::state(Authority::Process, AgentState::Exited);
        self.is_agent.then(|| json!({ "signal": signal }))
    }
}

fn title_signal(change: TitleChange) -> Signal {
    let (content, task) = match change {
        TitleChange::Ready => (SignalContent::State(AgentState::Ready), None),
        TitleChange::Started { task } => (SignalContent::State(AgentState::Working), Some(task)),
        TitleChange::Ended { task } => (SignalContent::TurnEnded, Some(task)),
        TitleChange::Blocked { task } => {
            (SignalContent::State(AgentState::Blocked(BlockedOn::Permission)), Some(task))
        }
        TitleChange::Exited => (SignalContent::State(AgentState::Exited), None),
    };
    let signal = Signal::new(Authority::Title, content);
    match task.filter(|task| !task.is_empty()) {
        Some(task) => signal.text(task),
        None => signal,
    }
}

fn status_signal(status: &ProgramStatus) -> Option<Signal> {
    let state = match status.state {
        StatusState::Idle => AgentState::Ready,
        StatusState::Working => AgentState::Working,
        StatusState::Done => AgentState::Done,
        StatusState::Blocked => AgentState::Blocked(match status.kind {
            Some(BlockedKind::Permission) => BlockedOn::Permission,
            Some(BlockedKind::Question) => BlockedOn::Question,
            Some(BlockedKind::Auth) => BlockedOn::Auth,
            _ => BlockedOn::Input,
        }),
        StatusState::Error => AgentState::Error,
        _ => return None,
    };
    let signal = Signal::state(Authority::Status, state);
    Some(match status.message.as_ref().or(status.title.as_ref()) {
        Some(text) => signal.text(text),
        None => signal,
    })
}

#[cfg(test)]
mod tests {
    use ringer_term::Scanner;

    use super::*;

    /// Returns the reports for these pieces of output, one minute apart.
    fn reported(pieces: &[&str]) -> Vec<String> {
        let (mut scanner, mut reports) = (Scanner::new(), ProgramReports::default());
        let mut told = Vec::new();
        for (minute, piece) in (0..).zip(pieces) {
            scanner.feed(piece.as_bytes(), |event| {
                told.extend(reports.report(Duration::from_mins(minute), &event.kind));
            });
        }
        told.extend(reports.ended());
        let short = |value: &Value| match &value["signal"] {
            Value::Null => value.to_string(),
            signal => format!("{} {} {}", signal["authority"], signal["says"], signal["text"]),
        };
        told.iter().map(short).collect()
    }

    #[test]
    fn notifications_bells_and_an_agents_titles_are_reported() {
        let told = reported(&[
            "\x1b]777;notify;Claude Code;it is done\x07\x07",
            "\x1b]2;✳ Claude Code\x07",
            "\x1b]2;◐ fix it\x07\x1b]2;◑ fix it\x07",
            "\x1b]2;✳ fix it\x07",
        ]);
        assert_eq!(
            told,
            [
                r#"{"body":"it is done","title":"Claude Code"}"#,
                r#"{"bell":true}"#,
                r#""title" {"is":{"state":"ready"}} null"#,
                r#""title" {"is":{"state":"working"}} "fix it""#,
                r#""title" "turn_ended" "fix it""#,
                r#""process" {"is":{"state":"exited"}} null"#,
            ]
        );
    }

    #[test]
    fn an_icon_and_the_wish_to_be_shown_only_unseen_are_reported() {
        // "error" and "my-app" as base64.
        let told = reported(&[
            "\x1b]99;n=ZXJyb3I=:n=bXktYXBw;broken\x1b\\",
            "\x1b]99;o=unfocused;done\x1b\\",
            "\x1b]99;o=invisible;done\x1b\\",
            "\x1b]99;o=always;done\x1b\\",
        ]);
        assert_eq!(
            told,
            [
                r#"{"body":"","icon":"error","title":"broken"}"#,
                r#"{"body":"","title":"done","unless_seen":true}"#,
                r#"{"body":"","title":"done","unless_seen":true}"#,
                r#"{"body":"","title":"done"}"#,
            ]
        );
    }

    #[test]
    fn an_agent_is_ready_with_its_first_title_whatever_the_title_was_before() {
        assert_eq!(
            reported(&["\x1b]2;~/src\x07", "\x1b]2;✳ Claude Code\x07"]),
            [r#""title" {"is":{"state":"ready"}} null"#, r#""process" {"is":{"state":"exited"}} null"#]
        );
    }

    #[test]
    fn a_program_that_is_idle_without_being_done_was_interrupted() {
        let status = |state: &str| format!("\x1b]7501;state={state}:app=codex\x07");
        let told = reported(
            &["idle", "working", "idle", "working", "done", "idle"]
                .map(status)
                .each_ref()
                .map(String::as_str),
        );
        assert_eq!(
            told,
            [
                r#""status" {"is":{"state":"ready"}} null"#,
                r#""status" {"is":{"state":"working"}} null"#,
                r#""status" "interrupted" null"#,
                r#""status" {"is":{"state":"working"}} null"#,
                r#""status" {"is":{"state":"done"}} null"#,
                r#""status" {"is":{"state":"ready"}} null"#,
                r#""process" {"is":{"state":"exited"}} null"#,
            ]
        );
    }

    #[test]
    fn titles_of_other_programs_say_nothing_of_a_state() {
        assert_eq!(reported(&["\x1b]2;vim notes\x07", "\x1b]2;~/src\x07", "\x1b]2;\x07"]), [""; 0]);
    }
}
