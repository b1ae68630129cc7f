//! What the inbox itself says in its footer.

use ringer_core::toast::Colour;

use crate::data::FooterToast;

/// How long a sentence about the last action stays.
const NOTE_MS: i64 = 8000;
/// How long the hint of the editor stays.
const HINT_MS: i64 = 5000;

/// The sentence about the last action, and the hint of the editor before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FooterNote {
    note: Option<(FooterToast, i64)>,
    hint: Hint,
}

/// That there is an editor, while the line that is typed is too long.
#[derive(Debug, Clone, Default, PartialEq)]
enum Hint {
    #[default]
    None,
    Shown(FooterToast, i64),
    /// It was shown for long enough; the line is still too long.
    Over,
}

impl FooterNote {
    pub(crate) fn say(&mut self, text: String, colour: Colour, now_ms: i64) {
        self.note = Some((FooterToast::new(text, colour), now_ms + NOTE_MS));
    }

    /// What is typed is longer than its line, or not any more.
    pub(crate) fn set_hint(&mut self, text: Option<String>, now_ms: i64) {
        match (text, &self.hint) {
            (None, _) => self.hint = Hint::None,
            (Some(text), Hint::None) => {
                self.hint = Hint::Shown(FooterToast::new(text, Colour::Plain), now_ms + HINT_MS);
            }
            (Some(_), _) => {}
        }
    }

    /// The time has gone on.
    pub(crate) fn tick(&mut self, now_ms: i64) {
        self.note.take_if(|(_, until)| *until <= now_ms);
        if matches!(self.hint, Hint::Shown(_, until) if until <= now_ms) {
            self.hint = Hint::Over;
        }
    }

    /// What is to be shown.
    pub(crate) fn current(&self) -> Option<&FooterToast> {
        match &self.hint {
            Hint::Shown(hint, _) => Some(hint),
            Hint::None | Hint::Over => self.note.as_ref().map(|(note, _)| note),
        }
    }

    /// In how many milliseconds something of it ends.
    pub(crate) fn ends_in(&self, now_ms: i64) -> impl Iterator<Item = i64> {
        let hint = if let Hint::Shown(_, until) = &self.hint { Some(*until) } else { None };
        let note = self.note.as_ref().map(|(_, until)| *until);
        note.into_iter().chain(hint).map(move |until| until - now_ms)
    }
}
