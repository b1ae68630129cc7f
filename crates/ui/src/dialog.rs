//! Answering in place: the dialog shows a prompt in full, and the possible answers. Also lays both out on the screen.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ringer_core::agent::{PromptContent, PromptQuestion};
use ringer_term::{escape_hidden, sanitise_line};

use crate::backend::PromptDetails;
use crate::columns::wrap;
use crate::text_input::TextInput;

/// Minimum size of the screen, in columns and lines. On a smaller screen nothing is drawn.
pub(crate) const MIN_SIZE: (u16, u16) = (20, 5);
/// The number of lines for the frame of a dialog, its blank lines, and the footer.
const FRAME: usize = 5;
/// Maximum width of the text.
const MAX_COLUMNS: usize = 106;

/// An action of the person that the dialog leaves to the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialogEffect {
    Send(Vec<String>),
    GoThere,
    Close,
}

/// The state of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for a choice.
    Choosing,
    /// Waits for a text: the reason for a denial, or an answer in words.
    Typing(TextInput),
    /// Waits until the agent accepts the answer.
    Sending,
    /// Waits for a key that closes the dialog. If a text was being typed, letters do not close it.
    Over { text: String, is_good: bool, was_typing: bool },
}

/// An answer that can be chosen with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) key: char,
    pub(crate) label: String,
    /// The description of an option; may be empty.
    pub(crate) description: String,
    /// `Some(true)` if the option is marked; `None` unless several can be chosen.
    pub(crate) is_marked: Option<bool>,
    /// False for an approval until the end of the text was visible: nothing is approved unread.
    pub(crate) is_ready: bool,
    action: ChoiceAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ChoiceAction {
    Send(&'static str),
    Option(usize),
    Type,
}

/// The keys of options: digits, and the letters without another meaning in a dialog.
const OPTION_KEYS: &str = "123456789abcdefhilmnoprsuvwxyz";

/// The dialog of one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialog {
    details: PromptDetails,
    /// True if everything but ASCII is escaped.
    ascii: bool,
    phase: Phase,
    /// The answers to the questions before the current one.
    answers: Vec<String>,
    /// The marked options, if several can be chosen.
    marked: BTreeSet<usize>,
    scroll: usize,
    /// True once the dialog was drawn with all its choices. Keys pressed before that were meant for something else.
    is_drawn: bool,
    /// True once the end of the text was visible.
    was_read_to_end: bool,
}

impl Dialog {
    /// Creates a dialog. `ascii` is true for a terminal that can show only ASCII.
    pub(crate) fn new(details: PromptDetails, ascii: bool) -> Self {
        let mut dialog = Self {
            details,
            ascii,
            phase: Phase::Choosing,
            answers: Vec::new(),
            marked: BTreeSet::new(),
            scroll: 0,
            is_drawn: false,
            was_read_to_end: false,
        };
        dialog.begin_question();
        dialog
    }

    pub(crate) fn id(&self) -> &str {
        &self.details.id
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(crate) fn scroll(&self) -> usize {
        self.scroll
    }

    /// Returns the title, with the number of the question if there are several.
    pub(crate) fn title(&self) -> String {
        let title = sanitise_line(&self.details.title);
        match &self.details.content {
            PromptContent::Questions(questions) if questions.len() > 1 => {
                format!("{title} · question {} of {}", self.answers.len() + 1, questions.len())
            }
            _ => title,
        }
    }

    pub(crate) fn unanswerable_here(&self) -> Option<String> {
        self.details.unanswerable_here.as_deref().map(sanitise_line)
    }

    fn question(&self) -> Option<&PromptQuestion> {
        match &self.details.content {
            PromptContent::Questions(questions) => questions.get(self.answers.len()),
            _ => None,
        }
    }

    /// Resets the state for the next question. A question without options is answered in words.
    fn begin_question(&mut self) {
        self.marked.clear();
        self.scroll = 0;
        self.is_drawn = false;
        self.was_read_to_end = false;
        let has_options = self.question().is_none_or(|question| !question.options.is_empty());
        let can_answer = self.details.unanswerable_here.is_none();
        self.phase =
            if has_options || !can_answer { Phase::Choosing } else { Phase::Typing(TextInput::default()) };
    }

    /// Escapes everything that the terminal would not show.
    fn escaped(&self, text: &str) -> String {
        let text = escape_hidden(text);
        if !self.ascii {
            return text.into_owned();
        }
        let escaped =
            |char: char| if char.is_ascii() { char.to_string() } else { char.escape_unicode().to_string() };
        text.chars().map(escaped).collect()
    }

    /// Returns the prompt in lines of at most `width` columns, with nothing hidden.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut push = |text: &str, indent: &str| {
            for line in text.trim_end().split('\n') {
                let wrapped = wrap(&self.escaped(line), width.saturating_sub(indent.len()));
                lines.extend(wrapped.into_iter().map(|line| format!("{indent}{line}")));
            }
        };
        match (&self.details.content, self.question()) {
            (PromptContent::Permission(request), _) => {
                if !request.tool.is_empty() {
                    push(&request.tool, "");
                    push("", "");
                }
                push(&request.request, "  ");
                if !request.whole {
                    push("… (too long to be shown in full here)", "  ");
                }
                if request.whole && !request.always.is_empty() {
                    push("\nAlways would allow:", "");
                    for allowed in &request.always {
                        push(&allowed.replace('\n', "\\n"), "  ");
                    }
                }
            }
            (PromptContent::Plan { text, whole }, _) => {
                push(text, "");
                if !whole {
                    push("… (too long to be shown in full here)", "");
                }
            }
            (_, Some(question)) => push(&question.text, ""),
            (content, None) => push(&content.full_text(), ""),
        }
        lines
    }

    /// Limits scrolling to the end of the text.
    pub(crate) fn limit_scroll(&mut self, lines: usize, height: usize) {
        self.scroll = self.scroll.min(lines.saturating_sub(height));
    }

    /// Records that the dialog is on the screen, with `height` of the `lines` of its text.
    pub(crate) fn mark_drawn(&mut self, lines: usize, height: usize, has_all_choices: bool) {
        self.is_drawn = has_all_choices;
        self.was_read_to_end |= has_all_choices && self.scroll + height >= lines;
    }

    /// Returns the possible answers.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        if self.details.unanswerable_here.is_some() {
            return Vec::new();
        }
        let choice = |key: char, label: String, is_ready: bool, action: ChoiceAction| Choice {
            key,
            label,
            description: String::new(),
            is_marked: None,
            is_ready,
            action,
        };
        let seen = self.was_read_to_end;
        let deny = |choices: &mut Vec<Choice>, words: &str| {
            let key =
                |choices: &[Choice]| char::from_digit(u32::try_from(choices.len()).unwrap_or(8) + 1, 10);
            choices.push(choice(
                key(choices).unwrap_or('9'),
                "Deny".to_owned(),
                true,
                ChoiceAction::Send("deny"),
            ));
            choices.push(choice(key(choices).unwrap_or('9'), words.to_owned(), true, ChoiceAction::Type));
        };
        let mut choices = Vec::new();
        match (&self.details.content, self.question()) {
            (PromptContent::Permission(request), _) => {
                if request.whole {
                    choices.push(choice('1', "Allow once".to_owned(), seen, ChoiceAction::Send("allow")));
                    if !request.always.is_empty() {
                        let label = "Always allow what is listed above".to_owned();
                        choices.push(choice('2', label, seen, ChoiceAction::Send("always")));
                    }
                }
                deny(&mut choices, "Deny, say why…");
            }
            (PromptContent::Plan { whole, .. }, _) => {
                if *whole {
                    choices.push(choice('1', "Approve".to_owned(), seen, ChoiceAction::Send("allow")));
                }
                deny(&mut choices, "No, say what to change…");
            }
            (_, Some(question)) => {
                for ((index, option), key) in question.options.iter().enumerate().zip(OPTION_KEYS.chars()) {
                    let description = question.descriptions.get(index).map(|text| sanitise_line(text));
                    choices.push(Choice {
                        description: description.unwrap_or_default(),
                        is_marked: question.multiple.then(|| self.marked.contains(&index)),
                        ..choice(
                            key,
                            self.escaped(&option.replace('\n', " ")),
                            true,
                            ChoiceAction::Option(index),
                        )
                    });
                }
                if question.free_text || question.options.len() > OPTION_KEYS.len() {
                    choices.push(choice('t', "Type an answer…".to_owned(), true, ChoiceAction::Type));
                }
            }
            _ => {}
        }
        choices
    }

    /// Returns true if several options can be chosen.
    pub(crate) fn is_multiple_choice(&self) -> bool {
        self.question().is_some_and(|question| question.multiple)
    }

    /// Shows the outcome, and waits for a key that closes the dialog.
    pub(crate) fn end(&mut self, text: String, is_good: bool) {
        let was_typing = matches!(self.phase, Phase::Typing(_));
        self.phase = Phase::Over { text, is_good, was_typing };
    }

    /// Returns true if an answer was sent and the agent has not accepted it yet.
    pub(crate) fn is_sending(&self) -> bool {
        self.phase == Phase::Sending
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over { .. })
    }

    /// Returns the text field, if a text is being typed.
    pub(crate) fn input(&self) -> Option<&TextInput> {
        if let Phase::Typing(input) = &self.phase { Some(input) } else { None }
    }

    /// Replaces the typed text.
    pub(crate) fn replace_input(&mut self, text: &str) {
        if let Phase::Typing(input) = &mut self.phase {
            *input = TextInput::default();
            input.paste(text);
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Phase::Typing(input) = &mut self.phase {
            input.paste(text);
        }
    }

    pub(crate) fn handle(&mut self, key: &KeyEvent, page: usize) -> Option<DialogEffect> {
        match &mut self.phase {
            Phase::Over { was_typing, .. } => {
                let closes = !*was_typing || matches!(key.code, KeyCode::Enter | KeyCode::Esc);
                closes.then_some(DialogEffect::Close)
            }
            // Closing does not cancel the answer; its outcome is known within two seconds.
            Phase::Sending => (key.code == KeyCode::Esc).then_some(DialogEffect::Close),
            Phase::Typing(input) => match key.code {
                KeyCode::Esc => {
                    let has_choices = self.question().is_none_or(|question| !question.options.is_empty());
                    if has_choices {
                        self.phase = Phase::Choosing;
                        None
                    } else {
                        Some(DialogEffect::Close)
                    }
                }
                KeyCode::Enter => {
                    let text = input.text().trim().to_owned();
                    if text.is_empty() { None } else { self.submit_text(text) }
                }
                _ => {
                    input.handle(key);
                    None
                }
            },
            Phase::Choosing => self.choose(key, page),
        }
    }

    fn submit_text(&mut self, text: String) -> Option<DialogEffect> {
        if self.question().is_some() {
            return self.submit_answer(text);
        }
        self.phase = Phase::Sending;
        Some(DialogEffect::Send(vec!["deny".to_owned(), text]))
    }

    fn choose(&mut self, key: &KeyEvent, page: usize) -> Option<DialogEffect> {
        // A key right after Escape arrives as a key with Alt.
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Some(DialogEffect::Close),
            KeyCode::Char('g') => return Some(DialogEffect::GoThere),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll = self.scroll.saturating_add(page),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(page),
            // The actions below need a dialog that the person can see.
            _ if !self.is_drawn => {}
            KeyCode::Enter if self.is_multiple_choice() && !self.marked.is_empty() => {
                let answer = self.marked_options();
                return self.submit_answer(answer);
            }
            KeyCode::Char(pressed) => {
                let choice = self.choices().into_iter().find(|choice| choice.key == pressed)?;
                if choice.is_ready {
                    return self.apply_choice(&choice);
                }
            }
            _ => {}
        }
        None
    }

    /// Joins the texts of the marked options, because a text may look like the number of another option. Uses their numbers if a
    /// text contains a comma, which separates answers.
    fn marked_options(&self) -> String {
        let options = self.question().map_or(&[][..], |question| &question.options);
        let words: Vec<&String> = self.marked.iter().filter_map(|index| options.get(*index)).collect();
        if words.iter().any(|word| word.contains(',')) {
            let numbers: Vec<String> = self.marked.iter().map(|index| (index + 1).to_string()).collect();
            return numbers.join(",");
        }
        words.into_iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    fn apply_choice(&mut self, choice: &Choice) -> Option<DialogEffect> {
        match choice.action {
            ChoiceAction::Send(word) => {
                self.phase = Phase::Sending;
                Some(DialogEffect::Send(vec![word.to_owned()]))
            }
            ChoiceAction::Type => {
                self.phase = Phase::Typing(TextInput::default());
                None
            }
            ChoiceAction::Option(index) if self.is_multiple_choice() => {
                if !self.marked.remove(&index) {
                    self.marked.insert(index);
                }
                None
            }
            ChoiceAction::Option(index) => {
                // The text, not the number: an option may look like the number of another one.
                let option = self.question()?.options.get(index)?.clone();
                self.submit_answer(option)
            }
        }
    }

    /// Records the answer to the current question, and sends all answers after the last one.
    fn submit_answer(&mut self, answer: String) -> Option<DialogEffect> {
        let PromptContent::Questions(questions) = &self.details.content else { return None };
        let count = questions.len();
        self.answers.push(answer);
        if self.answers.len() < count {
            self.begin_question();
            return None;
        }
        // The last question stays on the screen while the answers are being sent.
        let answers = self.answers.clone();
        self.answers.pop();
        self.phase = Phase::Sending;
        Some(DialogEffect::Send(answers))
    }
}

/// A line below the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceLine {
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Choice,
    NotReady,
    Description,
    Hint,
    Good,
    Bad,
    Input,
}

/// Returns the lines below the text: the possible answers, a text field, or the outcome.
pub(crate) fn choice_lines(dialog: &Dialog, columns: usize) -> Vec<ChoiceLine> {
    let mut lines = Vec::new();
    let mut push = |text: &str, kind: LineKind| {
        let wrapped = wrap(text, columns);
        lines.extend(wrapped.into_iter().map(|text| ChoiceLine { text, kind }));
    };
    match dialog.phase() {
        Phase::Over { text, is_good, was_typing } => {
            push(&sanitise_line(text), if *is_good { LineKind::Good } else { LineKind::Bad });
            push(if *was_typing { "enter closes this" } else { "any key closes this" }, LineKind::Hint);
        }
        Phase::Sending => push("sent; waiting until the agent has taken it…", LineKind::Hint),
        Phase::Typing(_) => {
            push("> ", LineKind::Input);
            push("enter send   esc back", LineKind::Hint);
        }
        Phase::Choosing => {
            if let Some(why) = dialog.unanswerable_here() {
                push(&format!("It cannot be answered here: {why}"), LineKind::Bad);
            }
            let choices = dialog.choices();
            let waits = choices.iter().any(|choice| !choice.is_ready);
            for choice in choices {
                let mark = match choice.is_marked {
                    Some(true) => "[x] ",
                    Some(false) => "[ ] ",
                    None => "",
                };
                let kind = if choice.is_ready { LineKind::Choice } else { LineKind::NotReady };
                push(&format!("[{}] {mark}{}", choice.key, choice.label), kind);
                if !choice.description.is_empty() {
                    push(&format!("    {}", choice.description), LineKind::Description);
                }
            }
            let first = if waits {
                "space read on to allow   "
            } else if dialog.is_multiple_choice() {
                "enter send   "
            } else {
                ""
            };
            push("", LineKind::Hint);
            push(&format!("{first}g go there   esc later"), LineKind::Hint);
        }
    }
    lines
}

/// The room for a dialog on a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DialogRoom {
    size: (u16, u16),
}

impl DialogRoom {
    pub(crate) fn on(size: (u16, u16)) -> Self {
        Self { size }
    }

    /// Returns the columns for the text.
    pub(crate) fn columns(self) -> usize {
        usize::from(self.size.0).saturating_sub(4).clamp(4, MAX_COLUMNS)
    }

    /// Returns the columns for typed text, without the prompt mark and the cursor.
    pub(crate) fn input_columns(self) -> usize {
        self.columns().saturating_sub(6)
    }

    /// Returns the lines for the text, with the choices below it.
    pub(crate) fn lines(self, dialog: &Dialog) -> usize {
        let choices = choice_lines(dialog, self.columns()).len();
        usize::from(self.size.1).saturating_sub(choices + FRAME).max(1)
    }

    /// Returns true if there is no room for all choices.
    pub(crate) fn is_too_low(self, dialog: &Dialog) -> bool {
        choice_lines(dialog, self.columns()).len() + FRAME >= usize::from(self.size.1)
    }

    /// Limits scrolling to the end of the text.
    pub(crate) fn limit_scroll(self, dialog: &mut Dialog) {
        let lines = dialog.lines(self.columns()).len();
        dialog.limit_scroll(lines, self.lines(dialog));
    }

    /// Records that the dialog is on the screen.
    pub(crate) fn mark_drawn(self, dialog: &mut Dialog) {
        let is_readable = self.size.0 >= MIN_SIZE.0 && self.size.1 >= MIN_SIZE.1 && !self.is_too_low(dialog);
        let lines = dialog.lines(self.columns()).len();
        dialog.mark_drawn(lines, self.lines(dialog), is_readable);
    }
}
