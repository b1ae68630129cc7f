//! A text field of one line.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of the line, in bytes.
const MAX_BYTES: usize = 4096;

/// A line, split at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextInput {
    before: String,
    after: String,
}

impl TextInput {
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    pub(crate) fn before_cursor(&self) -> &str {
        &self.before
    }

    pub(crate) fn after_cursor(&self) -> &str {
        &self.after
    }

    /// Inserts pasted text as one line: any whitespace becomes one space, and control characters are dropped.
    pub(crate) fn paste(&mut self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for char in line.chars().filter(|char| !char.is_control()) {
            self.insert(char);
        }
    }

    fn insert(&mut self, char: char) {
        if self.before.len() + self.after.len() + char.len_utf8() <= MAX_BYTES {
            self.before.push(char);
        }
    }

    /// Applies a key. Returns true if it is an editing key.
    pub(crate) fn handle(&mut self, key: &KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if ctrl => self.before.clear(),
            KeyCode::Char('k') if ctrl => self.after.clear(),
            KeyCode::Char('w') if ctrl => {
                let kept = self.before.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.before.truncate(kept);
            }
            KeyCode::Char('a') if ctrl => self.move_all(true),
            KeyCode::Char('e') if ctrl => self.move_all(false),
            KeyCode::Home => self.move_all(true),
            KeyCode::End => self.move_all(false),
            KeyCode::Left => {
                if let Some(last) = last_grapheme(&mut self.before) {
                    self.after.insert_str(0, &last);
                }
            }
            KeyCode::Right => {
                if let Some(first) = first_grapheme(&mut self.after) {
                    self.before.push_str(&first);
                }
            }
            KeyCode::Backspace => drop(last_grapheme(&mut self.before)),
            KeyCode::Delete => drop(first_grapheme(&mut self.after)),
            KeyCode::Char(char) if !ctrl && !key.modifiers.contains(KeyModifiers::ALT) => self.insert(char),
            _ => return false,
        }
        true
    }

    fn move_all(&mut self, to_start: bool) {
        let text = self.text();
        (self.before, self.after) = if to_start { (String::new(), text) } else { (text, String::new()) };
    }
}

fn last_grapheme(text: &mut String) -> Option<String> {
    let at = text.grapheme_indices(true).next_back()?.0;
    Some(text.split_off(at))
}

fn first_grapheme(text: &mut String) -> Option<String> {
    let length = text.graphemes(true).next()?.len();
    Some(text.drain(..length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut TextInput, code: KeyCode, modifiers: KeyModifiers) {
        assert!(input.handle(&KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn a_line_is_edited_by_graphemes() {
        let mut input = TextInput::default();
        input.paste("not \n on 👩‍👩‍👧 main\x1b");
        assert_eq!(input.text(), "not on 👩‍👩‍👧 main");
        for _ in 0..5 {
            press(&mut input, KeyCode::Left, KeyModifiers::NONE);
        }
        press(&mut input, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(input.text(), "not on  main");
        press(&mut input, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!((input.before_cursor(), input.after_cursor()), ("not ", " main"));
        press(&mut input, KeyCode::End, KeyModifiers::NONE);
        press(&mut input, KeyCode::Char('!'), KeyModifiers::NONE);
        assert_eq!(input.text(), "not  main!");
        press(&mut input, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "");
        assert!(!input.handle(&KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    }
}
