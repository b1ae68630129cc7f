//! Claude Code's session files, recorded from version 2.1.325.

use std::path::PathBuf;

use ringer_core::agent::BlockedOn;
use serde::Deserialize;
use serde_json::Value;

use crate::client::session_file::{
    SessionActivity, SessionFile, SessionFiles, SessionStatus, Transcripts, TurnEnd,
};

pub(super) const FILES: SessionFiles = SessionFiles::StatusFiles {
    directory: "sessions",
    read: read_session,
    transcripts: Transcripts { directory: "projects", read: read_turn_end },
};

/// The members of `sessions/PID.json` that are read.
#[derive(Debug, Deserialize)]
struct Session {
    #[serde(rename = "sessionId")]
    id: String,
    #[serde(rename = "messagingSocketPath")]
    socket: Option<PathBuf>,
    cwd: Option<String>,
    status: Option<String>,
    #[serde(rename = "waitingFor")]
    waiting_for: Option<String>,
    #[serde(rename = "statusUpdatedAt")]
    since_ms: Option<i64>,
}

fn read_session(bytes: &[u8]) -> Option<SessionFile> {
    let session: Session = serde_json::from_slice(bytes).ok()?;
    let activity = match session.status.as_deref() {
        Some("busy") => Some(SessionActivity::Busy),
        Some("waiting") => Some(SessionActivity::Waiting(match session.waiting_for.as_deref() {
            Some("permission prompt" | "sandbox request") => Some(BlockedOn::Permission),
            Some("input needed") => Some(BlockedOn::Question),
            // A dialog that the person opened, such as the list of models.
            _ => None,
        })),
        Some("idle") => Some(SessionActivity::Idle),
        _ => None,
    };
    let status =
        activity.zip(session.since_ms).map(|(activity, since_ms)| SessionStatus { activity, since_ms });
    Some(SessionFile { session_id: session.id, socket: session.socket, cwd: session.cwd, status })
}

/// The members of a line of `projects/DIRECTORY/SESSION.jsonl` that are read.
#[derive(Debug, Deserialize)]
struct TranscriptLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, rename = "isSidechain")]
    of_subagent: bool,
    #[serde(default, rename = "isApiErrorMessage")]
    is_error: bool,
    message: Option<TranscriptMessage>,
}

#[derive(Debug, Deserialize)]
struct TranscriptMessage {
    #[serde(default)]
    content: Value,
    stop_reason: Option<String>,
}

fn read_turn_end(line: &[u8]) -> Option<TurnEnd> {
    let line: TranscriptLine = serde_json::from_slice(line).ok()?;
    let message = line.message.filter(|_| !line.of_subagent)?;
    let parts = message.content.as_array().map_or(&[][..], Vec::as_slice);
    let text = || {
        let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        texts.join("\n")
    };
    match line.kind.as_str() {
        "assistant" if line.is_error => Some(TurnEnd::Failed(text())),
        "assistant" if message.stop_reason.as_deref() == Some("tool_use") => Some(TurnEnd::Interrupted),
        "assistant" => Some(TurnEnd::Complete(text())),
        "user" => Some(TurnEnd::Interrupted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_a_transcript_says_how_the_turn_ended() {
        let check = |line: &str, expected: Option<TurnEnd>| {
            assert_eq!(read_turn_end(line.as_bytes()), expected, "{line}");
        };
        let said = r#"{"type":"assistant","message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"all done"}]}}"#;
        check(said, Some(TurnEnd::Complete("all done".into())));
        let failed = r#"{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error: 529"}]}}"#;
        check(failed, Some(TurnEnd::Failed("API Error: 529".into())));
        let tool =
            r#"{"type":"assistant","message":{"stop_reason":"tool_use","content":[{"type":"tool_use"}]}}"#;
        check(tool, Some(TurnEnd::Interrupted));
        check(r#"{"type":"user","message":{"role":"user","content":"again"}}"#, Some(TurnEnd::Interrupted));
        check(r#"{"type":"user","isSidechain":true,"message":{"role":"user","content":"look"}}"#, None);
        check(r#"{"type":"system","subtype":"turn_duration"}"#, None);
        check("{", None);
    }

    #[test]
    fn a_dialog_that_the_person_opened_is_no_prompt() {
        let activity = |waits: &str| {
            let text = format!(
                r#"{{"sessionId":"a","status":"waiting","waitingFor":"{waits}","statusUpdatedAt":7}}"#
            );
            read_session(text.as_bytes()).unwrap().status.unwrap().activity
        };
        assert_eq!(activity("permission prompt"), SessionActivity::Waiting(Some(BlockedOn::Permission)));
        assert_eq!(activity("input needed"), SessionActivity::Waiting(Some(BlockedOn::Question)));
        assert_eq!(activity("dialog open"), SessionActivity::Waiting(None));
    }
}
