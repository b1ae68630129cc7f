//! Patches of Codex: the patch of a tool call, read from the session log, and the files that a patch changes.
//!
//! The request for a file change does not contain the patch.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::sessions::tail_of;

/// Bytes read from the end of a log. The pending call is among the last lines.
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
    /// Input of a tool that takes text.
    input: Option<String>,
    /// Input of a tool that takes arguments, as JSON. Codex recognises a patch in a shell command.
    arguments: Option<String>,
}

/// Finds the patch of a tool call in a session log.
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

const FILE_MARKERS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
const OTHER_MARKERS: [&str; 3] = ["*** Begin Patch", "*** End Patch", "*** End of File"];

/// The files that a patch names, each once. `None` if a line may mean more to Codex than it does here, so that the list may be
/// incomplete.
pub(super) fn files_in(patch: &str) -> Option<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let marker = FILE_MARKERS.iter().find_map(|marker| line.trim_start().strip_prefix(marker));
        match marker {
            // Whether Codex reads an indented line as a marker or as content depends on its place.
            Some(_) if line.starts_with(char::is_whitespace) => return None,
            Some(name) if name.trim().is_empty() => return None,
            Some(name) => {
                let name = name.trim().to_owned();
                if !files.contains(&name) {
                    files.push(name);
                }
            }
            None if line.starts_with("***") && !OTHER_MARKERS.contains(&line.trim_end()) => return None,
            None => {}
        }
    }
    (!files.is_empty()).then_some(files)
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

    #[test]
    fn every_file_that_a_patch_names_is_found_or_none() {
        fn check(lines: &[&str], expect: Option<&[&str]>) {
            let patch = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
            let expect = expect.map(|files| files.iter().map(ToString::to_string).collect());
            assert_eq!(files_in(&patch), expect, "{patch}");
        }
        check(&["*** Add File: new.txt", "+hello"], Some(&["new.txt"]));
        check(
            &[
                "*** Update File: a b.rs ",
                "*** Move to: c.rs",
                "@@",
                "-x",
                "+y",
                "*** End of File",
                "*** Delete File: d",
            ],
            Some(&["a b.rs", "c.rs", "d"]),
        );
        check(
            &["*** Update File: a", "@@", "+*** Add File: b", "*** Update File: a", "@@", " x"],
            Some(&["a"]),
        );
        check(&["*** Add File: a", "+x", "  *** Add File: b", "+y"], None);
        check(&["*** Environment ID: other", "*** Add File: a", "+x"], None);
        check(&["*** Add File:  ", "+x"], None);
        check(&["+x"], None);
    }
}
