//! The patch of a tool call, from the log of its session: the request for a change of files does not contain it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::sessions::tail_of;

/// How much of the end of a log is read, in bytes. The call that waits is among the last.
const MAX_END: u64 = 4 * 1024 * 1024;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

#[derive(Deserialize)]
struct Line {
    payload: LoggedItem,
}

#[derive(Deserialize)]
struct LoggedItem {
    #[serde(rename = "type")]
    kind: String,
    call_id: String,
    /// Of a tool that takes text.
    input: Option<String>,
    /// JSON, of a tool that takes arguments: Codex recognises a patch in a shell's command.
    arguments: Option<String>,
}

/// Finds the patch of a call in a log.
pub(super) fn find_patch(log: &Path, call_id: &str) -> Option<String> {
    let end = tail_of(log, MAX_END).ok()?;
    let mut lines = end.split(|byte| *byte == b'\n').rev();
    lines.find_map(|line| patch_in(line, call_id))
}

fn patch_in(line: &[u8], id: &str) -> Option<String> {
    let LoggedItem { kind, call_id, input, arguments } = serde_json::from_slice::<Line>(line).ok()?.payload;
    if call_id != id {
        return None;
    }
    let text = match kind.as_str() {
        "custom_tool_call" => input?,
        "function_call" => {
            let arguments: Value = serde_json::from_str(&arguments?).ok()?;
            let mut texts = arguments.as_object()?.values().filter_map(Value::as_str);
            texts.find(|text| text.contains(BEGIN))?.to_owned()
        }
        _ => return None,
    };
    let begin = text.find(BEGIN)?;
    let end = text.rfind(END)? + END.len();
    text.get(begin..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch";

    #[test]
    fn the_patch_of_the_call_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("rollout.jsonl");
        let line = |payload: Value| serde_json::json!({ "payload": payload }).to_string();
        let arguments =
            serde_json::json!({ "cmd": format!("apply_patch <<'EOF'\n{PATCH}\nEOF\n") }).to_string();
        let lines = [
            line(serde_json::json!({ "type": "function_call", "call_id": "c1", "arguments": arguments })),
            line(
                serde_json::json!({ "type": "custom_tool_call", "call_id": "c2", "input": format!("{PATCH}\n") }),
            ),
            line(serde_json::json!({ "type": "function_call_output", "call_id": "c2", "output": "x" })),
            line(
                serde_json::json!({ "type": "custom_tool_call", "call_id": "c3", "input": "*** End Patch" }),
            ),
            "{\"payload\": cut".to_owned(),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        assert_eq!(find_patch(&log, "c1").as_deref(), Some(PATCH));
        assert_eq!(find_patch(&log, "c2").as_deref(), Some(PATCH));
        assert_eq!(find_patch(&log, "c3"), None);
        assert_eq!(find_patch(&log, "c4"), None);
        assert_eq!(find_patch(&directory.path().join("none"), "c1"), None);
    }
}
