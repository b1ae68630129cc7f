//! Short texts that name something: senders, agents, keys. They stand in columns, file names and lines of output.

/// The longest name, in bytes.
pub const MAX_WORD: usize = 256;

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWord {
    /// Nothing is there.
    #[error("the {what} is empty")]
    Empty {
        /// Which text.
        what: &'static str,
    },
    /// Too much is there.
    #[error("the {what} has {length} bytes, and {most} is the most")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// It has a character that cannot be kept.
    #[error("the {what} has a {character:?} in it")]
    Character {
        /// Which text.
        what: &'static str,
        /// The character.
        character: char,
    },
    /// It is none of the words that are known.
    #[error("there is no {what} {word:?}; there are {known}")]
    Unknown {
        /// Which text.
        what: &'static str,
        /// What was given.
        word: String,
        /// What there is.
        known: String,
    },
}

/// Checks a name: something in it, not too long, no control characters.
pub fn check_word(what: &'static str, text: &str) -> Result<(), InvalidWord> {
    check_text(what, text, MAX_WORD)?;
    match text.chars().find(|c| c.is_control()) {
        Some(character) => Err(InvalidWord::Character { what, character }),
        None => Ok(()),
    }
}

/// Checks a text of any content but NUL, which neither a C string nor an argument can hold.
pub fn check_text(what: &'static str, text: &str, most: usize) -> Result<(), InvalidWord> {
    if text.trim().is_empty() {
        return Err(InvalidWord::Empty { what });
    }
    if text.len() > most {
        return Err(InvalidWord::TooLong { what, length: text.len(), most });
    }
    if text.contains('\0') {
        return Err(InvalidWord::Character { what, character: '\0' });
    }
    Ok(())
}
