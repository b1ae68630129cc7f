//! A request of Codex to its person: the prompt it stands for, and the replies to it.
//!
//! The request for a file change does not contain the patch, which is read from the session log.

use std::path::Path;

use ringer_core::agent::{Answer, AnswerMethod, PermissionRequest, Prompt, PromptContent, PromptQuestion};
use ringer_platform::shell_word;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::connection::CodexServerError;
use crate::client::BEFORE_REASON;
use crate::client::codex::{COMMAND_TOOL, PATCH_TOOL, permission_request, questions};
use crate::sessions::tail_of;

const COMMAND: &str = "item/commandExecution/requestApproval";
const FILE_CHANGE: &str = "item/fileChange/requestApproval";
const QUESTIONS: &str = "item/tool/requestUserInput";

/// The decision that allows commands permanently. Its value says which ones.
const ALWAYS: &str = "acceptWithExecpolicyAmendment";
/// The decision that allows changes of the same files until the session ends. Codex always offers it.
const ALWAYS_IN_SESSION: &str = "acceptForSession";

/// A request that waits for a reply.
#[derive(Debug)]
pub(super) struct PendingRequest {
    /// The id that the reply repeats. The server chooses it.
    pub(super) id: Value,
    pub(super) turn_id: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A command or a file change.
    Permission {
        tool: &'static str,
        command: String,
        reason: Option<String>,
        /// The decision that allows it permanently, and a description of what it allows.
        always: Option<(Value, String)>,
        /// It asks for more than the command, such as network access.
        asks_for_more: bool,
    },
    Questions {
        ids: Vec<String>,
        questions: Vec<PromptQuestion>,
        /// An answer is a secret, which must not be written to the journal.
        is_secret: bool,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    thread_id: String,
    turn_id: String,
    item_id: String,
    kind: Option<String>,
    command: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    network_approval_context: Value,
    #[serde(default)]
    additional_permissions: Value,
    #[serde(default)]
    grant_root: Value,
    #[serde(default)]
    available_decisions: Option<Vec<Value>>,
}

impl PendingRequest {
    /// Reads a message. `None` if it is not a request of this thread that Ringer can show. `find_patch` finds the patch of a tool
    /// call, which a request for a file change does not contain.
    pub(super) fn read(
        message: &Value,
        thread_id: &str,
        find_patch: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let id = message.get("id").filter(|id| id.is_string() || id.is_number())?.clone();
        let method = message.get("method")?.as_str()?;
        if ![COMMAND, FILE_CHANGE, QUESTIONS].contains(&method) {
            return None;
        }
        let raw = message.get("params")?;
        let params = Params::deserialize(raw).ok().filter(|params| params.thread_id == thread_id)?;
        let content = match method {
            COMMAND => read_command(&params)?,
            FILE_CHANGE => read_file_change(&params, find_patch(&params.item_id)?),
            _ => read_questions(raw)?,
        };
        Some(Self { id, turn_id: params.turn_id, content })
    }

    pub(super) fn prompt(&self) -> Prompt {
        let (content, is_answerable) = match &self.content {
            Content::Permission { tool, command, reason, always, asks_for_more } => {
                let always = always.iter().map(|(_, words)| words.clone()).collect();
                let request = permission_request(tool, command, reason.as_deref(), always);
                (PromptContent::Permission(request), !asks_for_more)
            }
            Content::Questions { questions, is_secret, .. } => {
                (PromptContent::Questions(questions.clone()), !is_secret)
            }
        };
        let method = if is_answerable { AnswerMethod::ClientServer } else { AnswerMethod::DialogOnly };
        Prompt { content, method, transcript: None }
    }

    /// Returns true if this is the request that the person was shown.
    pub(super) fn matches(&self, shown: &PromptContent) -> bool {
        match (&self.content, shown) {
            (Content::Permission { tool, command, .. }, PromptContent::Permission(shown)) => {
                shown.tool == *tool && is_shown(command, shown)
            }
            (Content::Questions { questions, .. }, PromptContent::Questions(shown)) => {
                let same = |(one, two): (&PromptQuestion, &PromptQuestion)| {
                    one.text == two.text && one.options == two.options
                };
                questions.len() == shown.len() && questions.iter().zip(shown).all(same)
            }
            _ => false,
        }
    }

    /// The reply for this answer to the prompt that the person was shown.
    pub(super) fn reply(&self, shown: &PromptContent, answer: &Answer) -> Result<Value, CodexServerError> {
        let decision = match (&self.content, answer) {
            (Content::Permission { .. }, Answer::Deny { .. }) => json!("decline"),
            (
                Content::Permission { asks_for_more: true, .. } | Content::Questions { is_secret: true, .. },
                _,
            ) => return Err(CodexServerError::DialogOnly),
            (Content::Permission { .. }, Answer::Allow) if is_whole(shown) => json!("accept"),
            (Content::Permission { always: Some((decision, words)), .. }, Answer::AllowAlways)
                if is_whole(shown) && offers(shown, words) =>
            {
                decision.clone()
            }
            (Content::Questions { ids, .. }, Answer::Choices(choices)) if ids.len() == choices.len() => {
                let answers = ids.iter().zip(choices);
                let answers: Map<String, Value> =
                    answers.map(|(id, choice)| (id.clone(), json!({ "answers": choice }))).collect();
                return Ok(json!({ "answers": answers }));
            }
            _ => return Err(CodexServerError::NotOffered),
        };
        Ok(json!({ "decision": decision }))
    }
}

fn read_command(params: &Params) -> Option<Content> {
    let decisions = params.available_decisions.as_deref().unwrap_or_default();
    let always = decisions.iter().find_map(|decision| {
        let words = decision.get(ALWAYS)?.get("execpolicy_amendment")?.as_array()?;
        let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(shell_word)).collect();
        let words = words.filter(|words| !words.is_empty())?.join(" ");
        Some((decision.clone(), format!("commands that start with: {words}")))
    });
    let can_be_accepted = params.available_decisions.is_none() || decisions.contains(&json!("accept"));
    let is_command = params.kind.as_deref().is_none_or(|kind| kind == "command");
    let asks_for_more =
        !params.network_approval_context.is_null() || !params.additional_permissions.is_null();
    Some(Content::Permission {
        tool: COMMAND_TOOL,
        command: without_shell(params.command.as_deref()?),
        reason: params.reason.clone(),
        always,
        asks_for_more: asks_for_more || !is_command || !can_be_accepted,
    })
}

fn read_file_change(params: &Params, patch: String) -> Content {
    let always = files_in(&patch).map(|files| {
        let files: Vec<String> = files.iter().map(|file| shell_word(file)).collect();
        let words = format!("changes of the same files, until this session ends: {}", files.join(" "));
        (json!(ALWAYS_IN_SESSION), words)
    });
    Content::Permission {
        tool: PATCH_TOOL,
        command: patch,
        reason: params.reason.clone(),
        always,
        asks_for_more: !params.grant_root.is_null(),
    }
}

/// Strips the shell that Codex runs a script with: its hooks report the bare script as the command.
fn without_shell(line: &str) -> String {
    let words = split_words(line).unwrap_or_default();
    match <[String; 3]>::try_from(words) {
        Ok([_, flag, script]) if flag == "-lc" || flag == "-c" => script,
        _ => line.to_owned(),
    }
}

fn read_questions(params: &Value) -> Option<Content> {
    let questions = questions(params)?;
    let raw = params.get("questions")?.as_array()?;
    let ids =
        raw.iter().map(|question| Some(question.get("id")?.as_str()?.to_owned())).collect::<Option<_>>()?;
    let is_secret = raw.iter().any(|question| question.get("isSecret") == Some(&Value::Bool(true)));
    Some(Content::Questions { ids, questions, is_secret })
}

/// Returns true if this command was shown. The reason comes from Codex and may change. Only the beginning of a long command was
/// shown.
fn is_shown(command: &str, shown: &PermissionRequest) -> bool {
    match shown.request.strip_prefix(command) {
        Some(rest) => rest.is_empty() || rest.starts_with(BEFORE_REASON),
        None => !shown.whole && command.starts_with(&shown.request),
    }
}

fn is_whole(shown: &PromptContent) -> bool {
    matches!(shown, PromptContent::Permission(request) if request.whole)
}

fn offers(shown: &PromptContent, always: &str) -> bool {
    matches!(shown, PromptContent::Permission(request) if request.always == [always])
}

/// Splits a shell command line that was built by quoting words. `None` if a quote is not closed.
fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        quoted => word.push(quoted),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                            '\n' => {}
                            other => word.extend(['\\', other]),
                        },
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

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
fn files_in(patch: &str) -> Option<Vec<String>> {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_as_codex_quotes_them() {
        let split = |line: &str| split_words(line).unwrap();
        assert_eq!(split("/bin/bash -lc 'touch zz-file'"), ["/bin/bash", "-lc", "touch zz-file"]);
        assert_eq!(split(r#"sh -c "touch x && echo 'a b'""#), ["sh", "-c", "touch x && echo 'a b'"]);
        assert_eq!(split(r#"a'b'"'c'"\ d '' "\$x\n""#), ["ab'c' d", "", r"$x\n"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn an_open_quote_is_no_line_of_words() {
        assert_eq!([split_words("a 'b"), split_words("\"b"), split_words("b\\")], [None, None, None]);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(words in prop::collection::vec("(?s).{0,12}", 0..5)) {
            let line = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split_words(&line), Some(words));
        }
    }

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
