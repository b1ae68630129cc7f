//! The ring of a plain terminal: a mark in front of the title that the program set last.

use ringer_term::{Terminator, window_title};

/// What the title begins with.
const SIGN: &str = "●";

/// The title, and whether a mark is in front of it.
#[derive(Debug, Default)]
pub(crate) struct TitleRing {
    title: Option<String>,
    is_lit: bool,
    is_marked: bool,
}

impl TitleRing {
    /// The program set a title, which went to the terminal.
    pub(crate) fn set_title(&mut self, title: &str) {
        self.title = Some(title.to_owned());
        self.is_marked = false;
    }

    pub(crate) fn ring(&mut self, is_lit: bool) {
        self.is_lit = is_lit;
    }

    /// What has to be written to the terminal now. A title that no program has set is left alone.
    pub(crate) fn change(&mut self) -> Option<String> {
        if self.is_lit == self.is_marked {
            return None;
        }
        let title = self.title.as_deref()?;
        self.is_marked = self.is_lit;
        let text = if self.is_lit { format!("{SIGN} {title}") } else { title.to_owned() };
        Some(window_title(&text, Terminator::Bel))
    }
}

#[cfg(test)]
mod tests {
    use super::TitleRing;

    #[test]
    fn a_mark_is_in_front_of_the_last_title_as_long_as_it_rings() {
        let mut ring = TitleRing::default();
        ring.ring(true);
        assert_eq!(ring.change(), None, "there is no title to bring back");
        ring.set_title("✳ fix it");
        assert_eq!(ring.change().unwrap(), "\x1b]2;● ✳ fix it\x07");
        assert_eq!(ring.change(), None);
        ring.set_title("✳ test it");
        assert_eq!(ring.change().unwrap(), "\x1b]2;● ✳ test it\x07");
        ring.ring(false);
        assert_eq!(ring.change().unwrap(), "\x1b]2;✳ test it\x07");
        ring.set_title("other");
        assert_eq!(ring.change(), None);
    }
}
