//! Shows several completed background commands as one line of a transcript.
//!
//! Only the display changes. The conversation that the model reads keeps every notification.

/// How the transcript is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TranscriptView {
    /// Show every notification (ctrl+O in Claude Code).
    pub verbose: bool,
    /// The transcript is redrawn as a whole. Lines that have scrolled by cannot be collapsed afterwards.
    pub fullscreen: bool,
}

/// A message of a conversation. Harnesses implement it for their own type.
pub trait ConversationMessage {
    /// Returns the text if the message has the role of the user, as notifications of tasks do.
    fn user_text(&self) -> Option<&str>;

    /// Returns the notification of a background task that the message is.
    fn task(&self) -> Option<TaskNotification<'_>> {
        self.user_text().and_then(read_task)
    }

    /// Creates a message of the user with this text, shown in place of several.
    fn replacement(text: String) -> Self;
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person, or the harness on their behalf.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A message with only a role and a text, for harnesses without a type of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub text: String,
}

impl PlainMessage {
    /// Creates a message.
    pub fn new(role: Role, text: &str) -> Self {
        Self { role, text: text.to_owned() }
    }
}

impl ConversationMessage for PlainMessage {
    fn user_text(&self) -> Option<&str> {
        (self.role == Role::User).then_some(self.text.as_str())
    }

    fn replacement(text: String) -> Self {
        Self { role: Role::User, text }
    }
}

/// How a background task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// `completed`.
    Completed,
    /// `failed`.
    Failed,
    /// `killed`.
    Killed,
    /// A status that this version does not know.
    Other,
}

/// The kind of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// A shell command.
    Command,
    /// A monitor. Its end means only that it stopped watching.
    Monitor,
    /// An agent, a collapsed run, or a kind that this version does not know.
    Other,
}

/// A notification of a background task, as clients put it into a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskNotification<'a> {
    /// How it ended.
    pub status: TaskStatus,
    /// The kind of task.
    pub kind: TaskKind,
    /// The client's summary.
    pub summary: &'a str,
}

/// The tag of current versions of Claude Code, and the tag of earlier ones.
const TAGS: [&str; 2] = ["task-notification", "task_notification"];

/// The prefixes of Claude Code's summaries.
const KINDS: [(&str, TaskKind); 2] =
    [("Background command", TaskKind::Command), ("Monitor", TaskKind::Monitor)];

/// Parses a message that is a notification of one background task. It may be followed by an instruction to the model (`Read
/// the output file …`). A message with text before the notification only quotes it, and is not parsed.
///
/// ```
/// use ringer_core::conversation::{read_task, TaskKind, TaskStatus};
///
/// let task = read_task(
///     "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n\
///      <summary>Background command \"cargo test\" completed (exit code 0)</summary>\n</task-notification>",
/// );
/// assert!(task.is_some_and(|task| (task.status, task.kind) == (TaskStatus::Completed, TaskKind::Command)));
/// ```
pub fn read_task(text: &str) -> Option<TaskNotification<'_>> {
    let inside = TAGS.iter().find_map(|tag| element(text.trim_start(), tag))?;
    // The summary quotes a command, which may contain tags. The status precedes it.
    let status = match inner(inside, "status")? {
        "completed" => TaskStatus::Completed,
        "failed" => TaskStatus::Failed,
        "killed" => TaskStatus::Killed,
        _ => TaskStatus::Other,
    };
    let summary = inner(inside, "summary")?;
    let kind = KINDS.iter().find(|(prefix, _)| summary.starts_with(prefix));
    Some(TaskNotification { status, kind: kind.map_or(TaskKind::Other, |(_, kind)| *kind), summary })
}

/// Reads a plain text that somebody sent as the notification of a background task: `make has ended: 0`. It counts as completed
/// unless it says that the task failed or was killed.
pub fn read_plain_task(text: &str) -> TaskNotification<'_> {
    let is_monitor = text.trim_start().starts_with("Monitor");
    let kind = if is_monitor { TaskKind::Monitor } else { TaskKind::Command };
    let text_lower = text.to_lowercase();
    let has_code = |before: &str| {
        let code = text_lower.split_once(before).map(|(_, rest)| rest.trim_start().trim_start_matches('-'));
        let digits = code.map(|code| code.bytes().take_while(u8::is_ascii_digit).collect::<Vec<u8>>());
        digits.is_some_and(|digits| digits.iter().any(|digit| *digit != b'0'))
    };
    let status = if text_lower.contains("killed") {
        TaskStatus::Killed
    } else if text_lower.contains("failed")
        || ["ended:", "exit code", "exit status"].into_iter().any(has_code)
    {
        TaskStatus::Failed
    } else {
        TaskStatus::Completed
    };
    TaskNotification { status, kind, summary: text }
}

/// The content of an element at the beginning of a text. `None` if the message has two of them.
fn element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (inside, after) = text.strip_prefix(&format!("<{tag}>"))?.split_once(&format!("</{tag}>"))?;
    (!TAGS.iter().any(|tag| after.contains(&format!("<{tag}>")))).then_some(inside)
}

fn inner<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{tag}>"))?;
    Some(after.split_once(&format!("</{tag}>"))?.0.trim())
}

/// Replaces every run of two or more completed background commands with one message. Everything else, such as failed and killed
/// commands and monitors, stays unchanged and breaks a run. The result of collapsing is not collapsed again.
///
/// ```
/// use ringer_core::conversation::{collapse, read_task, PlainMessage, Role, TranscriptView};
///
/// let done = "<task-notification><status>completed</status>\
///             <summary>Background command \"make\" completed</summary></task-notification>";
/// let messages = vec![PlainMessage::new(Role::User, done); 3];
/// let shown = collapse(messages, TranscriptView { verbose: false, fullscreen: true });
/// assert_eq!(shown.len(), 1);
/// assert_eq!(read_task(&shown[0].text).map(|task| task.summary), Some("3 background commands completed"));
/// ```
pub fn collapse<M: ConversationMessage>(messages: Vec<M>, view: TranscriptView) -> Vec<M> {
    if view.verbose || !view.fullscreen {
        return messages;
    }
    let (mut shown, mut run) = (Vec::with_capacity(messages.len()), Vec::new());
    for message in messages {
        if is_completed_command(&message) {
            run.push(message);
        } else {
            end_run(&mut run, &mut shown);
            shown.push(message);
        }
    }
    end_run(&mut run, &mut shown);
    shown
}

fn is_completed_command(message: &impl ConversationMessage) -> bool {
    message.task().is_some_and(|task| task.status == TaskStatus::Completed && task.kind == TaskKind::Command)
}

fn end_run<M: ConversationMessage>(run: &mut Vec<M>, shown: &mut Vec<M>) {
    if run.len() > 1 {
        let count = run.len();
        run.clear();
        // The summary begins with a number, so this message is not taken for a command.
        shown.push(M::replacement(format!(
            "<task-notification>\n<status>completed</status>\n\
             <summary>{count} background commands completed</summary>\n</task-notification>"
        )));
    }
    shown.append(run);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOWN: TranscriptView = TranscriptView { verbose: false, fullscreen: true };

    #[test]
    fn a_plain_text_completed_unless_it_says_otherwise() {
        for (text, status, kind) in [
            ("make has ended: 0", TaskStatus::Completed, TaskKind::Command),
            ("deployed", TaskStatus::Completed, TaskKind::Command),
            ("make has ended: 2", TaskStatus::Failed, TaskKind::Command),
            ("tests (exit code 101)", TaskStatus::Failed, TaskKind::Command),
            ("tests: exit status -9", TaskStatus::Failed, TaskKind::Command),
            ("The build FAILED", TaskStatus::Failed, TaskKind::Command),
            ("server was killed", TaskStatus::Killed, TaskKind::Command),
            ("Monitor \"logs\" ended", TaskStatus::Completed, TaskKind::Monitor),
        ] {
            let task = read_plain_task(text);
            assert_eq!((task.status, task.kind, task.summary), (status, kind, text));
        }
    }

    /// `c` a completed command, `o` one in the older form, `f` a failed and `k` a killed one, `m` a monitor, `g` an
    /// agent, `u` the person, `a` the model, `t` a tool that prints a notification.
    fn message(sign: char) -> PlainMessage {
        let task = |tag: &str, status: &str, summary: &str| {
            format!(
                "<{tag}>\n<task-id>b1</task-id>\n<output-file>/tmp/b1</output-file>\n<status>{status}</status>\n\
                 <summary>{summary}</summary>\n</{tag}>\nRead the output file to retrieve the result: /tmp/b1"
            )
        };
        let command = |word: &str| format!("Background command \"make\" {word}");
        let text = match sign {
            'c' | 't' => task(TAGS[0], "completed", &command("completed (exit code 0)")),
            'o' => task(TAGS[1], "completed", &command("completed")),
            'f' => task(TAGS[0], "failed", &command("failed with exit code 1")),
            'k' => task(TAGS[0], "killed", &command("was killed")),
            'm' => task(TAGS[0], "completed", "Monitor \"logs\" ended"),
            'g' => task(TAGS[0], "completed", "Agent \"review\" completed"),
            _ => "hello".to_owned(),
        };
        let role = match sign {
            'a' => Role::Assistant,
            't' => Role::Tool,
            _ => Role::User,
        };
        PlainMessage::new(role, &text)
    }

    fn messages(signs: &str) -> Vec<PlainMessage> {
        signs.chars().map(message).collect()
    }

    /// Runs are written as their count.
    fn signs(messages: &[PlainMessage]) -> String {
        messages
            .iter()
            .map(|shown| match read_task(&shown.text).map(|task| task.summary.split_once(" background")) {
                Some(Some((count, _))) => count.to_owned(),
                _ => "cofkmguat".chars().find(|sign| message(*sign) == *shown).unwrap().to_string(),
            })
            .collect()
    }

    fn check(input: &str, expected: &str) {
        assert_eq!(signs(&collapse(messages(input), SHOWN)), expected, "{input}");
    }

    #[test]
    fn a_run_of_two_or_more_completed_becomes_one() {
        check("cc", "2");
        check("uccca", "u3a");
        check("c", "c");
        check("cucac", "cucac");
        check("ccucc", "2u2");
        check("", "");
    }

    #[test]
    fn both_tag_forms_are_recognised() {
        check("oo", "2");
        check("coc", "3");
    }

    #[test]
    fn failed_and_killed_stay_and_break_a_run() {
        check("ccfcc", "2f2");
        check("cfc", "cfc");
        check("cckkcc", "2kk2");
        check("ff", "ff");
    }

    #[test]
    fn monitor_completions_are_excluded_and_break_a_run() {
        check("ccmcc", "2m2");
        check("mm", "mm");
        check("cmc", "cmc");
    }

    #[test]
    fn agents_are_no_commands() {
        check("ggcc", "gg2");
    }

    #[test]
    fn not_fullscreen_or_verbose_is_unchanged() {
        for view in [
            TranscriptView { verbose: true, fullscreen: true },
            TranscriptView { verbose: false, fullscreen: false },
            TranscriptView { verbose: true, fullscreen: false },
        ] {
            assert_eq!(collapse(messages("cccfcc"), view), messages("cccfcc"), "{view:?}");
        }
    }

    #[test]
    fn what_was_made_by_collapsing_is_not_collapsed_again() {
        let mut once = collapse(messages("ccc"), SHOWN);
        once.extend(messages("cc"));
        once.extend(collapse(messages("cc"), SHOWN));
        assert_eq!(signs(&collapse(once, SHOWN)), "322");
    }

    #[test]
    fn only_messages_of_the_user_count() {
        check("tt", "tt");
    }

    #[test]
    fn what_is_no_notification() {
        let check = |text: &str| assert_eq!(read_task(text), None, "{text}");
        check("hello");
        check(
            "why <task-notification><status>completed</status><summary>Background command</summary></task-notification>",
        );
        check("<task-notification><status>completed</status></task-notification>");
        check("<task-notification><summary>Background command</summary></task-notification>");
        check("<task-notification><status>completed</status><summary>Background command</summary>");
        check("<task-notification><status>completed</status><summary>x</summary></task_notification>");
        let one = message('c').text;
        check(&format!("{one}\n{one}"));
    }

    #[test]
    fn tags_in_the_quoted_command_and_space_around_change_nothing() {
        let text = "<task-notification><status> failed </status><summary>Background command \"echo \
                    <status>completed</status>\" failed</summary></task-notification>";
        assert_eq!(read_task(text).map(|task| task.status), Some(TaskStatus::Failed));
        let indented = format!("\n  {}", message('f').text);
        assert_eq!(read_task(&indented).map(|task| task.status), Some(TaskStatus::Failed));
        let newer = "<task-notification><status>paused</status><summary>Background command</summary></task-notification>";
        assert_eq!(read_task(newer).map(|task| task.status), Some(TaskStatus::Other));
    }

    proptest! {
        #[test]
        fn collapsing_is_idempotent_and_loses_no_command(input in "[cofkmguat]{0,40}") {
            let once = collapse(messages(&input), SHOWN);
            prop_assert_eq!(collapse(once.clone(), SHOWN), once.clone());
            let count: usize = signs(&once)
                .split(|sign: char| !sign.is_ascii_digit())
                .filter_map(|number| number.parse::<usize>().ok())
                .sum();
            let kept = once.iter().filter(|shown| is_completed_command(*shown)).count();
            prop_assert_eq!(count + kept, messages(&input).iter().filter(|one| is_completed_command(*one)).count());
        }
    }
}
