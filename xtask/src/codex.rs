//! Hook events of Codex, which takes them as an argument of its `notify` program.

use serde_json::json;

/// Returns the event of a turn that ended with this message.
pub(crate) fn turn_ended(session: u64, turn: u64, message: &str) -> String {
    json!({
        "type": "agent-turn-complete",
        "thread-id": format!("00000000-0000-7000-8000-0000{session:08x}"),
        "turn-id": turn.to_string(),
        "input-messages": ["go"],
        "last-assistant-message": message,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::turn_ended;

    #[test]
    fn each_session_has_its_own_id() {
        let event = turn_ended(0x0bad_cafe, 2, "done \"7\"");
        let event: serde_json::Value = serde_json::from_str(&event).expect("it is JSON");
        assert_eq!(event["thread-id"], "00000000-0000-7000-8000-00000badcafe");
        assert_eq!(
            (&event["turn-id"], &event["last-assistant-message"]),
            (&"2".into(), &"done \"7\"".into())
        );
    }
}
