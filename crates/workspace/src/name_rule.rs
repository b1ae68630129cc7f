//! What a pane or a workspace may be called.

use ringer_term::sanitise_line;

/// A name has no more characters: borders and lists have no room for more.
pub(crate) const MAX_NAME: usize = 100;

/// Why something cannot be called so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has no character that can be seen.
    #[error("is empty")]
    Empty,
    /// It has more characters than a name may have.
    #[error("has {0} characters, and at most {MAX_NAME} are allowed")]
    TooLong(usize),
}

/// Whether a pane or a workspace may be called so.
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name.chars().count() {
        _ if sanitise_line(name).trim().is_empty() => Err(NameError::Empty),
        length if length > MAX_NAME => Err(NameError::TooLong(length)),
        _ => Ok(()),
    }
}

/// Cuts a name that has too many characters.
pub(crate) fn cut_name(name: &mut String, most: usize) {
    if let Some((at, _)) = name.char_indices().nth(most) {
        name.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_from_one_to_a_hundred_characters() {
        for blank in ["", " ", "\u{200b}\t", "\x1b"] {
            assert_eq!(check_name(blank), Err(NameError::Empty), "{blank:?}");
        }
        assert_eq!(check_name(&"ä".repeat(101)), Err(NameError::TooLong(101)));
        for name in ["a", &"漢".repeat(100)] {
            assert_eq!(check_name(name), Ok(()));
        }
        let mut long = "ä".repeat(101);
        cut_name(&mut long, MAX_NAME);
        assert_eq!(long, "ä".repeat(100));
    }
}
