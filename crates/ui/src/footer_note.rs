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
    /// The hint of the editor, since the line that is typed became too long. It ends with that.
    hint: Option<(FooterToast, i64)>,
}

impl FooterNote {
    pub(crate) fn say(&mut self, text: String, colour: Colour, now_ms: i64) {
        self.note = Some((FooterToast::new(text, colour), now_ms + NOTE_MS));
    }

    /// What is typed is longer than its line, or not any more.
    pub(crate) fn set_hint(&mut self, text: Option<&str>, now_ms: i64) {
        match (text, &self.hint) {
            (None, _) => self.hint = None,
            (Some(text), None) => self.hint = Some((FooterToast::new(text, Colour::Plain), now_ms + HINT_MS)),
            (Some(_), Some(_)) => {}
        }
    }

    /// What is to be shown at that time.
    pub(crate) fn at(&self, now_ms: i64) -> Option<&FooterToast> {
        self.lasting(now_ms).map(|(toast, _)| toast).next()
    }

    /// In how many milliseconds something of it ends.
    pub(crate) fn ends_in(&self, now_ms: i64) -> impl Iterator<Item = i64> {
        self.lasting(now_ms).map(move |(_, until)| until - now_ms)
    }

    fn lasting(&self, now_ms: i64) -> impl Iterator<Item = &(FooterToast, i64)> {
        self.hint.iter().chain(&self.note).filter(move |(_, until)| *until > now_ms)
    }
}
