//! What an agent asks for, in one line for a person.

use ringer_core::agent::question_with_options;
use ringer_core::hash::fnv1a_64;

use super::json::Value;

/// Maximum characters of a line. A notification shows this many.
pub const MAX_LINE: usize = 240;

/// The tools that ask the person: Claude Code, Codex, Gemini, opencode.
const QUESTION_TOOLS: [&str; 4] = ["AskUserQuestion", "request_user_input", "ask_user", "question"];

/// The members of a tool's input that describe it, the most telling first.
const SUBJECTS: [&str; 9] =
    ["command", "file_path", "filePath", "notebook_path", "path", "url", "query", "pattern", "description"];

/// The tool with which Claude Code shows its plan and asks to begin.
const PLAN_TOOL: &str = "ExitPlanMode";

/// Returns true for the tools that ask the person.
pub(super) fn is_question(tool: &str) -> bool {
    QUESTION_TOOLS.contains(&tool)
}

/// Shortens a text to one line of at most [`MAX_LINE`] characters. `None` if nothing is left.
pub(super) fn shorten(text: &str) -> Option<String> {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word.chars().count();
        if length > MAX_LINE {
            // The ellipsis replaces the last character.
            let end = line.char_indices().nth(MAX_LINE - 1).map_or(line.len(), |(at, _)| at);
            line.truncate(end);
            line.truncate(line.trim_end().len());
            line.push('…');
            break;
        }
    }
    (!line.is_empty()).then_some(line)
}

/// Describes a tool call: the tool, its subject, and the reason if there is one.
pub(super) fn describe_tool(tool: &str, input: Option<&Value>, cwd: Option<&str>) -> Option<String> {
    let input = input.unwrap_or(&Value::Null);
    if tool == PLAN_TOOL {
        return shorten(&format!("Plan: {}", input.text("plan").unwrap_or("(empty)")));
    }
    let Some((name, subject)) = SUBJECTS.iter().find_map(|name| Some((*name, input.text(name)?))) else {
        return shorten(tool);
    };
    let subject = cwd.map_or(subject, |cwd| relative_to(cwd, subject));
    let why = input.text("description").filter(|_| name != "description");
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let tool = if tool.is_empty() { String::new() } else { format!("{tool}: ") };
    shorten(&format!("{tool}{subject}{why}"))
}

/// Identifies a tool call where a client gives no id: a permission request has none, the other events of the call have one. Two
/// identical calls at once share a key.
pub(super) fn call_key(tool: &str, input: Option<&Value>) -> String {
    let subject = input.and_then(|input| SUBJECTS.iter().find_map(|name| input.text(name)));
    let bytes = tool.bytes().chain([0]).chain(subject.unwrap_or_default().bytes());
    format!("{:016x}", fnv1a_64(bytes))
}

/// Identifies a tool call by its command or file.
pub(super) fn text_key(text: &str) -> String {
    format!("{:016x}", fnv1a_64(text.bytes()))
}

/// The beginnings of prompts that no person typed: messages from Ringer and other sessions, and the end of a background task.
const PROGRAM_PROMPTS: [&str; 5] = [
    "<notification source=",
    "<cross-session-message",
    "<task-notification",
    "<task_notification",
    "<system_notification>",
];

/// Returns true if a person typed this prompt.
pub(super) fn is_from_person(prompt: &str) -> bool {
    let prompt = prompt.trim_start();
    !PROGRAM_PROMPTS.iter().any(|begin| prompt.starts_with(begin))
}

/// Makes a path relative to a directory above it.
fn relative_to<'a>(folder: &str, path: &'a str) -> &'a str {
    let rest = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// The questions with their options: `Which? (A / B)`.
pub(super) fn question(input: &Value) -> Option<String> {
    let questions = input.get("questions").map(Value::items).unwrap_or_default();
    let lines: Vec<String> = match questions {
        [] => one_question(input).into_iter().collect(),
        questions => questions.iter().filter_map(one_question).collect(),
    };
    shorten(&lines.join("; "))
}

fn one_question(question: &Value) -> Option<String> {
    let words = question.text("question").or_else(|| question.text("message"))?;
    let options = question.get("options").map(Value::items).unwrap_or_default();
    let labels: Vec<&str> = options
        .iter()
        .filter_map(|option| match option {
            Value::Text(text) => Some(text.head.as_str()),
            option => option.text("label"),
        })
        .collect();
    Some(question_with_options(words, &labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::input::HookInput;
    use proptest::prelude::*;

    fn input(value: &serde_json::Value) -> HookInput {
        HookInput::read(serde_json::json!({ "tool_input": value }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_a_tool_is_to_do() {
        let check = |tool: &str, value: serde_json::Value, expected: &str| {
            let input = input(&value);
            assert_eq!(describe_tool(tool, input.get("tool_input"), Some("/p")).as_deref(), Some(expected));
        };
        check("Bash", serde_json::json!({"command": "rm -r x"}), "Bash: rm -r x");
        check("Bash", serde_json::json!({"command": "a\nb", "description": "why"}), "Bash: a b (why)");
        check("Write", serde_json::json!({"file_path": "/p/src/a.rs", "content": "x"}), "Write: src/a.rs");
        check("Write", serde_json::json!({"file_path": "/pp/a.rs"}), "Write: /pp/a.rs");
        check("WebFetch", serde_json::json!({"url": "https://x"}), "WebFetch: https://x");
        check("Agent", serde_json::json!({"description": "sub job", "prompt": "long"}), "Agent: sub job");
        check("ExitPlanMode", serde_json::json!({"plan": "1. tidy\n2. test"}), "Plan: 1. tidy 2. test");
        check("ExitPlanMode", serde_json::json!({}), "Plan: (empty)");
        check("mcp__x__y", serde_json::json!({}), "mcp__x__y");
        check("", serde_json::json!({"command": "ls"}), "ls");
    }

    #[test]
    fn a_call_is_known_again_without_an_id() {
        let key = |tool: &str, value: serde_json::Value| call_key(tool, input(&value).get("tool_input"));
        let asked = key("Bash", serde_json::json!({"command": "touch a", "description": "May I?"}));
        assert_eq!(asked, key("Bash", serde_json::json!({"command": "touch a"})));
        assert_ne!(asked, key("Bash", serde_json::json!({"command": "touch b"})));
        assert_ne!(asked, key("Shell", serde_json::json!({"command": "touch a"})));
        assert_eq!(key("Ask", serde_json::json!({"questions": [1]})), key("Ask", serde_json::json!({})));
    }

    #[test]
    fn what_programs_send_is_no_prompt_of_the_person() {
        assert!(
            is_from_person("fix the tests") && is_from_person("what is <notification source=\"x\"> for?")
        );
        assert!(!is_from_person("<notification source=\"agent:w\">\ndone\n</notification>"));
        assert!(!is_from_person("\n<task-notification>\n<status>completed</status>"));
        assert!(!is_from_person("<cross-session-message from=\"ringer\">"));
        assert!(!is_from_person("<system_notification>\nShell command \"x\" has completed."));
    }

    #[test]
    fn what_is_asked_and_what_can_be_answered() {
        let check = |value: serde_json::Value, expected: Option<&str>| {
            assert_eq!(input(&value).get("tool_input").and_then(question).as_deref(), expected);
        };
        check(serde_json::json!({"question": "Which port?"}), Some("Which port?"));
        check(serde_json::json!({"question": "Which?", "options": ["a", "b"]}), Some("Which? (a / b)"));
        check(
            serde_json::json!({"questions": [
                {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}, {"question": "When?"}]}),
            Some("Which? (A / B); When?"),
        );
        check(serde_json::json!({"questions": []}), None);
        check(serde_json::json!({}), None);
    }

    #[test]
    fn a_long_text_is_cut() {
        let line = shorten(&"word ".repeat(1000)).unwrap();
        assert!(line.ends_with("word…") || line.ends_with('…'));
        assert!(line.chars().count() <= MAX_LINE);
        assert_eq!(shorten(" \n\t\u{7} "), None);
        assert_eq!(shorten("a\u{1b}[31m\n b").as_deref(), Some("a [31m b"));
    }

    proptest! {
        #[test]
        fn a_line_is_a_line(text in "(?s).{0,400}") {
            if let Some(line) = shorten(&text) {
                prop_assert!(!line.is_empty() && line.chars().count() <= MAX_LINE);
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
