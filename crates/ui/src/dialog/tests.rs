use super::*;
use crossterm::event::KeyModifiers;
use ringer_core::agent::PermissionRequest;

fn press(dialog: &mut Dialog, keys: &str) -> Option<DialogEffect> {
    let mut effect = None;
    for char in keys.chars() {
        let code = match char {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            char => KeyCode::Char(char),
        };
        effect = dialog.handle(&KeyEvent::new(code, KeyModifiers::NONE), 5);
    }
    effect
}

fn dialog(content: PromptContent) -> Dialog {
    let title = "api/auth · needs permission".to_owned();
    Dialog::new(PromptDetails { id: "1".to_owned(), title, content, only_there: None })
}

fn permission(whole: bool, always: &[&str]) -> Dialog {
    dialog(PromptContent::Permission(PermissionRequest {
        tool: "Bash".to_owned(),
        request: (0..20).map(|line| format!("echo {line}\n")).collect(),
        whole,
        always: always.iter().map(ToString::to_string).collect(),
    }))
}

fn sent(words: &[&str]) -> DialogEffect {
    DialogEffect::Send(words.iter().map(ToString::to_string).collect())
}

#[test]
fn what_was_not_read_to_its_end_is_not_allowed() {
    let mut dialog = permission(true, &["Bash(echo:*)"]);
    let lines = dialog.lines(80).len();
    assert_eq!(lines, 22);
    dialog.shown(lines, 10);
    assert_eq!(press(&mut dialog, "1"), None);
    assert_eq!(press(&mut dialog, "2"), None);
    press(&mut dialog, "  ");
    dialog.shown(lines, 10);
    assert_eq!(dialog.scroll(), 10);
    assert_eq!(press(&mut dialog, "1"), None, "two lines are missing");
    press(&mut dialog, " ");
    dialog.shown(lines, 10);
    assert_eq!(press(&mut dialog, "2"), Some(sent(&["always"])));
    assert_eq!(press(&mut dialog, "1"), None, "an answer is on its way");
}

#[test]
fn a_refusal_may_have_a_reason() {
    let mut dialog = permission(false, &["x"]);
    let labels: Vec<String> = dialog.choices().into_iter().map(|choice| choice.label).collect();
    assert_eq!(labels, ["Deny", "Deny, say why…"], "what is not whole cannot be allowed");
    assert_eq!(press(&mut dialog, "2no"), None);
    assert_eq!(press(&mut dialog, "t on main\n"), Some(sent(&["deny", "not on main"])));
    let mut dialog = permission(true, &[]);
    assert_eq!(press(&mut dialog, "3x\x1b"), None, "back to the choices");
    assert_eq!(press(&mut dialog, "2"), Some(sent(&["deny"])));
}

#[test]
fn questions_are_pages_and_are_sent_together() {
    let question = |options: &[&str], multiple: bool, free_text: bool| PromptQuestion {
        text: "Which?".to_owned(),
        options: options.iter().map(ToString::to_string).collect(),
        multiple,
        free_text,
        ..PromptQuestion::default()
    };
    let questions = vec![
        question(&["Postgres", "SQLite"], false, true),
        question(&["a", "b", "c"], true, false),
        question(&[], false, true),
    ];
    let mut asked = dialog(PromptContent::Questions(questions.clone()));
    assert_eq!(press(&mut asked, "9"), None);
    assert_eq!(press(&mut asked, "2"), None);
    assert!(asked.title().ends_with("question 2 of 3"));
    assert_eq!(press(&mut asked, "\n"), None, "nothing is chosen yet");
    assert_eq!(press(&mut asked, "1231"), None);
    assert_eq!(press(&mut asked, "\n"), None);
    assert_eq!(press(&mut asked, "q1\n"), Some(sent(&["SQLite", "2,3", "q1"])));
    let mut asked = dialog(PromptContent::Questions(questions[..1].to_vec()));
    assert_eq!(press(&mut asked, "tMariaDB\n"), Some(sent(&["MariaDB"])));
    let mut asked = dialog(PromptContent::Questions(questions[2..].to_vec()));
    assert_eq!(press(&mut asked, "\x1b"), Some(DialogEffect::Close));
}

#[test]
fn what_can_only_be_answered_there_has_no_choices() {
    let content = PromptContent::Plan { text: "1. all".to_owned(), whole: true };
    let details = PromptDetails {
        id: "1".to_owned(),
        title: "proj".to_owned(),
        content,
        only_there: Some("the hook has ended".to_owned()),
    };
    let mut dialog = Dialog::new(details);
    dialog.shown(1, 10);
    assert!(dialog.choices().is_empty());
    assert_eq!(press(&mut dialog, "1"), None);
    assert_eq!(press(&mut dialog, "g"), Some(DialogEffect::GoThere));
}

#[test]
fn nothing_of_a_request_is_hidden() {
    let request = PermissionRequest {
        tool: "Bash".to_owned(),
        request: "echo a\x1b[8mb\u{202e}c\nrm -rf /".to_owned(),
        whole: true,
        always: vec!["x\ny".to_owned()],
    };
    let dialog = dialog(PromptContent::Permission(request));
    let lines = dialog.lines(80).join("|");
    assert!(!lines.contains('\x1b') && !lines.contains('\u{202e}'), "{lines}");
    assert!(lines.contains("rm -rf /") && lines.contains("202e"), "{lines}");
    assert_eq!(dialog.choices()[1].label, "Always allow x\\ny");
}
