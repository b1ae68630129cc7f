use super::*;
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
    let mut dialog =
        Dialog::new(PromptDetails { id: "1".to_owned(), title, content, unanswerable_here: None }, false);
    dialog.mark_drawn(100, 1, true);
    dialog
}

/// Draws the dialog once, so that its keys count.
fn draw(dialog: &mut Dialog) {
    dialog.mark_drawn(1, 10, true);
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
fn a_request_must_be_read_to_its_end_before_it_is_allowed() {
    let mut dialog = permission(true, &["Bash(echo:*)"]);
    let lines = dialog.lines(80).len();
    assert_eq!(lines, 25);
    dialog.limit_scroll(lines, 10);
    dialog.mark_drawn(lines, 10, true);
    assert_eq!(press(&mut dialog, "1"), None);
    assert_eq!(press(&mut dialog, "2"), None);
    press(&mut dialog, "  ");
    dialog.limit_scroll(lines, 10);
    dialog.mark_drawn(lines, 10, true);
    assert_eq!(dialog.scroll(), 10);
    assert_eq!(press(&mut dialog, "1"), None, "five lines are missing");
    press(&mut dialog, " ");
    dialog.limit_scroll(lines, 10);
    dialog.mark_drawn(lines, 10, true);
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
    let mut questions_dialog = dialog(PromptContent::Questions(questions.clone()));
    assert_eq!(press(&mut questions_dialog, "9"), None);
    assert_eq!(press(&mut questions_dialog, "2"), None);
    assert!(questions_dialog.title().ends_with("question 2 of 3"));
    assert_eq!(press(&mut questions_dialog, "1\n"), None, "not drawn yet");
    draw(&mut questions_dialog);
    assert_eq!(press(&mut questions_dialog, "\n"), None, "no option is marked");
    assert_eq!(press(&mut questions_dialog, "1231"), None);
    assert_eq!(press(&mut questions_dialog, "\n"), None);
    assert_eq!(press(&mut questions_dialog, "q1\n"), Some(sent(&["SQLite", "b,c", "q1"])));
    let mut questions_dialog = dialog(PromptContent::Questions(questions[..1].to_vec()));
    assert_eq!(press(&mut questions_dialog, "tMariaDB\n"), Some(sent(&["MariaDB"])));
    let mut questions_dialog = dialog(PromptContent::Questions(questions[2..].to_vec()));
    assert_eq!(press(&mut questions_dialog, "\x1b"), Some(DialogEffect::Close));
}

#[test]
fn a_prompt_that_cannot_be_answered_here_has_no_choices() {
    let content = PromptContent::Plan { text: "1. all".to_owned(), whole: true };
    let details = PromptDetails {
        id: "1".to_owned(),
        title: "proj".to_owned(),
        content,
        unanswerable_here: Some("the hook has ended".to_owned()),
    };
    let mut dialog = Dialog::new(details, false);
    dialog.mark_drawn(1, 10, true);
    assert!(dialog.choices().is_empty());
    assert_eq!(press(&mut dialog, "1"), None);
    assert_eq!(press(&mut dialog, "g"), Some(DialogEffect::GoThere));
}

#[test]
fn a_request_is_shown_in_full() {
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
    let details = dialog.details.clone();
    let ascii = Dialog::new(details, true).lines(80).concat();
    assert!(ascii.is_ascii() && ascii.contains("rm -rf /"), "{ascii}");
    assert!(lines.contains("Always would allow:|  x\\ny"), "{lines}");
}

#[test]
fn keys_are_ignored_until_the_dialog_is_drawn() {
    let mut dialog = permission(true, &[]);
    dialog.mark_drawn(3, 10, false);
    assert_eq!(press(&mut dialog, "12"), None, "some choices are not on the screen");
    dialog.mark_drawn(3, 10, true);
    let alt = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT);
    assert_eq!(dialog.handle(&alt, 5), None, "Escape and a key behind it");
    assert_eq!(press(&mut dialog, "1"), Some(sent(&["allow"])));
}

#[test]
fn letters_do_not_close_a_dialog_that_ends_while_they_are_typed() {
    let mut dialog = permission(true, &[]);
    assert_eq!(press(&mut dialog, "3no"), None);
    dialog.end("It is over.".to_owned(), true);
    assert_eq!(press(&mut dialog, "t today"), None);
    assert_eq!(press(&mut dialog, "\n"), Some(DialogEffect::Close));
}

#[test]
fn options_that_look_like_numbers_are_sent_as_text() {
    let question = PromptQuestion {
        text: "Which?".to_owned(),
        options: vec!["2".to_owned(), "1".to_owned()],
        multiple: true,
        ..PromptQuestion::default()
    };
    let mut questions_dialog = dialog(PromptContent::Questions(vec![question]));
    assert_eq!(press(&mut questions_dialog, "1\n"), Some(sent(&["2"])));
}

#[test]
fn the_tenth_option_has_a_key() {
    let question = |count: usize| {
        dialog(PromptContent::Questions(vec![PromptQuestion {
            text: "Which one?".to_owned(),
            options: (1..=count).map(|number| format!("option {number}")).collect(),
            descriptions: Vec::new(),
            multiple: false,
            free_text: false,
        }]))
    };
    assert_eq!(press(&mut question(12), "9"), Some(sent(&["option 9"])));
    assert_eq!(press(&mut question(12), "a"), Some(sent(&["option 10"])));
    assert_eq!(press(&mut question(12), "c"), Some(sent(&["option 12"])));
    assert_eq!(press(&mut question(12), "d"), None);
    assert_eq!(press(&mut question(30), "z"), Some(sent(&["option 30"])));
    let many = question(31);
    let keys: Vec<char> = many.choices().iter().map(|choice| choice.key).collect();
    assert_eq!(keys.len(), 31);
    assert_eq!(keys.last(), Some(&'t'), "the others can be typed");
    assert!(!keys.iter().any(|key| "gjkq".contains(*key)), "{keys:?}");
}
