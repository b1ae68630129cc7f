//! The answers that a popup offers. Except for a refusal, the popup must show the whole prompt.

use serde::{Deserialize, Serialize};

use crate::agent::{PromptContent, question_with_options};

/// The longest text, in characters, that can be read in full on a popup.
const MAX_CHARS: usize = 200;
/// The most lines. GNOME and Plasma show about this many before they cut the text.
const MAX_LINES: usize = 3;
/// The most options that are shown as buttons. GNOME shows three.
const MAX_OPTIONS: usize = 3;
/// The longest button label, in characters. Servers that put buttons side by side cut longer ones.
const MAX_LABEL: usize = 30;

/// An answer that a popup offers as a button. A popup never offers to allow something always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PopupAnswer {
    /// Yes, this once.
    Allow,
    /// No.
    Deny,
    /// One of the options of a question.
    Choose(String),
}

impl PopupAnswer {
    /// The label of the button.
    pub fn label(&self) -> &str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
            Self::Choose(option) => option,
        }
    }

    /// The answer as a word that [`PromptContent::read_answer`] accepts.
    pub fn words(&self) -> &str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Choose(option) => option,
        }
    }
}

impl PromptContent {
    /// The whole prompt, for a popup. `None` if it does not fit, if part of it is unknown, or if it has several questions.
    pub fn popup_text(&self) -> Option<String> {
        let text = match self {
            Self::Permission(request) if !request.whole => return None,
            Self::Plan { whole: false, .. } => return None,
            Self::Permission(_) | Self::Plan { .. } => self.full_text(),
            Self::Questions(questions) => match questions.as_slice() {
                [question] => question_with_options(&question.text, &question.options),
                _ => return None,
            },
        };
        let text = text.trim();
        let fits = text.chars().count() <= MAX_CHARS && text.split('\n').count() <= MAX_LINES;
        (fits && !text.is_empty() && !text.chars().any(is_right_to_left)).then(|| text.to_owned())
    }

    /// Returns the answers that a popup offers. `shown` is the text of the popup, if every character of it is visible to
    /// its reader.
    ///
    /// ```
    /// use ringer_core::agent::{PermissionRequest, PopupAnswer, PromptContent};
    ///
    /// let request = PermissionRequest { tool: "Bash".to_owned(), request: "make".to_owned(), whole: true, always: vec![] };
    /// let prompt = PromptContent::Permission(request);
    /// assert_eq!(prompt.popup_answers(Some("Bash: make")), [PopupAnswer::Allow, PopupAnswer::Deny]);
    /// assert_eq!(prompt.popup_answers(Some("Bash: ma…")), [PopupAnswer::Deny]);
    /// assert_eq!(prompt.popup_answers(None), [PopupAnswer::Deny]);
    /// ```
    pub fn popup_answers(&self, shown: Option<&str>) -> Vec<PopupAnswer> {
        let is_shown = self.popup_text().is_some_and(|text| shown == Some(text.as_str()));
        match self {
            Self::Permission(_) | Self::Plan { .. } if is_shown => {
                vec![PopupAnswer::Allow, PopupAnswer::Deny]
            }
            Self::Permission(_) | Self::Plan { .. } => vec![PopupAnswer::Deny],
            Self::Questions(questions) => match questions.as_slice() {
                [question] if is_shown && !question.multiple && fit_on_buttons(&question.options) => {
                    question.options.iter().cloned().map(PopupAnswer::Choose).collect()
                }
                _ => Vec::new(),
            },
        }
    }
}

/// Returns true if every option fits on a button and no two look the same.
fn fit_on_buttons(options: &[String]) -> bool {
    let fits = |label: &String| {
        !label.trim().is_empty() && !label.contains('\n') && label.chars().count() <= MAX_LABEL
    };
    let is_unique = |label: &String| {
        options.iter().filter(|other| other.trim().eq_ignore_ascii_case(label.trim())).count() == 1
    };
    options.len() <= MAX_OPTIONS && options.iter().all(|label| fits(label) && is_unique(label))
}

/// Returns true for a character of a right-to-left script. It reverses the order in which neighbouring characters are
/// drawn, so a command would not be read as it runs.
fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{8ff}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{feff}'
            | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{PermissionRequest, PromptQuestion};
    use proptest::prelude::*;

    fn permission(request: &str, whole: bool) -> PromptContent {
        let always = vec!["Bash(make:*)".to_owned()];
        PromptContent::Permission(PermissionRequest {
            tool: "Bash".into(),
            request: request.into(),
            whole,
            always,
        })
    }

    fn question(options: &[&str], multiple: bool) -> PromptContent {
        let options = options.iter().map(ToString::to_string).collect();
        PromptContent::Questions(vec![PromptQuestion {
            text: "Which?".into(),
            options,
            multiple,
            ..PromptQuestion::default()
        }])
    }

    /// The answers of a popup that shows the whole prompt.
    fn offered(prompt: &PromptContent) -> Vec<String> {
        let text = prompt.popup_text();
        prompt.popup_answers(text.as_deref()).iter().map(|answer| answer.label().to_owned()).collect()
    }

    #[test]
    fn what_is_too_long_for_a_popup_can_only_be_denied_there() {
        let check = |request: &str, expected: &[&str]| {
            assert_eq!(offered(&permission(request, true)), expected, "{request:?}");
        };
        check("make deploy", &["Allow", "Deny"]);
        check("a\nb\nc", &["Allow", "Deny"]);
        check("a\nb\nc\nd", &["Deny"]);
        check(&"x".repeat(MAX_CHARS - "Bash: ".len()), &["Allow", "Deny"]);
        check(&"x".repeat(MAX_CHARS - "Bash: ".len() + 1), &["Deny"]);
        check("rm \u{5d0}\u{5d1}", &["Deny"]);
        assert_eq!(offered(&permission("make", false)), ["Deny"], "the rest of it is not known");
        assert_eq!(offered(&PromptContent::Plan { text: "1. all".into(), whole: true }), ["Allow", "Deny"]);
        assert_eq!(
            offered(&PromptContent::Plan { text: " ".into(), whole: true }),
            ["Deny"],
            "nothing to read"
        );
    }

    #[test]
    fn a_question_has_a_button_for_each_option_or_none() {
        assert_eq!(offered(&question(&["Postgres", "SQLite"], false)), ["Postgres", "SQLite"]);
        assert_eq!(question(&["A", "B"], false).popup_text().as_deref(), Some("Which? (A / B)"));
        for options in
            [&["A", "B", "C", "D"][..], &["A", "a "], &["A", ""], &["A", "B\nC"], &["A", &"x".repeat(31)]]
        {
            assert!(offered(&question(options, false)).is_empty(), "{options:?}");
        }
        assert!(offered(&question(&["A", "B"], true)).is_empty(), "several may be chosen");
        assert!(offered(&PromptContent::Questions(vec![PromptQuestion::default(); 2])).is_empty());
        assert!(
            question(&["A"], false).popup_answers(Some("Which?")).is_empty(),
            "the options are not shown"
        );
    }

    proptest! {
        #[test]
        fn what_is_not_shown_in_full_is_not_allowed(
            request in "(?s).{0,260}", whole: bool, shown in prop::option::of("(?s).{0,260}"), exact: bool
        ) {
            let prompt = permission(&request, whole);
            let shown = if exact { Some(prompt.full_text().trim().to_owned()) } else { shown };
            let answers = prompt.popup_answers(shown.as_deref());
            prop_assert!(answers.contains(&PopupAnswer::Deny));
            if answers.contains(&PopupAnswer::Allow) {
                let shown = shown.unwrap_or_default();
                prop_assert!(whole && shown == prompt.full_text().trim());
                prop_assert!(shown.chars().count() <= 200 && shown.lines().count() <= 3);
            }
            // Each button's answer is one that `read_answer` accepts.
            for answer in &answers {
                prop_assert!(prompt.read_answer(&[answer.words()]).is_ok());
            }
        }

        #[test]
        fn an_option_on_a_button_is_that_answer(
            options in prop::collection::vec("[a-c0-3 ]{0,3}", 0..5), multiple: bool
        ) {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let prompt = question(&options, multiple);
            let answers = prompt.popup_answers(prompt.popup_text().as_deref());
            prop_assert!(answers.is_empty() || (!multiple && answers.len() == options.len()));
            for (answer, option) in answers.iter().zip(&options) {
                let read = prompt.read_answer(&[answer.words()]);
                prop_assert_eq!(read, Ok(crate::agent::Answer::Choices(vec![vec![(*option).to_owned()]])));
            }
        }
    }
}
