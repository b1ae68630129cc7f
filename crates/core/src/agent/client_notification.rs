//! What a client's own notification says of its state.

use crate::agent::{AgentState, Authority, BlockedOn, Signal, SignalContent};

/// How the texts begin that say what a client waits for, from Claude Code 2.1.325 and Codex 0.166.0. Gemini CLI and opencode say
/// it with their titles.
const TEXTS: [(&str, SignalContent); 9] = [
    ("Claude needs your permission", asks(BlockedOn::Permission)),
    ("Claude Code needs your approval", asks(BlockedOn::Permission)),
    ("Claude needs your input", asks(BlockedOn::Question)),
    ("Claude Code needs your input", asks(BlockedOn::Question)),
    ("Claude is waiting for your input", SignalContent::Idle),
    ("Approval requested", asks(BlockedOn::Permission)),
    ("Codex wants to edit", asks(BlockedOn::Permission)),
    ("Plan mode prompt", asks(BlockedOn::Question)),
    ("Question requested", asks(BlockedOn::Question)),
];

const fn asks(on: BlockedOn) -> SignalContent {
    SignalContent::State(AgentState::Blocked(on))
}

/// The signal that a notification of an agent without hooks is. One that says nothing of its state may be about anything.
pub(crate) fn client_notification(title: Option<&str>, body: &str) -> Signal {
    let known = TEXTS.iter().find(|(text, _)| body.starts_with(text));
    let content = known.map_or(SignalContent::Notified, |(_, content)| content.clone());
    let text = title.map_or_else(|| body.to_owned(), |title| format!("{title}: {body}"));
    Signal::new(Authority::Notification, content).text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_that_says_what_the_client_waits_for_is_a_state() {
        for (body, expected) in [
            ("Claude needs your permission to use Bash", asks(BlockedOn::Permission)),
            ("Claude Code needs your input", asks(BlockedOn::Question)),
            ("Claude is waiting for your input", SignalContent::Idle),
            ("Approval requested: touch x", asks(BlockedOn::Permission)),
            ("All finished now", SignalContent::Notified),
        ] {
            let signal = client_notification(Some("Claude Code"), body);
            assert_eq!((signal.content, signal.authority), (expected, Authority::Notification), "{body}");
            assert_eq!(signal.text, Some(format!("Claude Code: {body}")));
        }
    }
}
