//! Names of senders, agents and keys. They are used in database columns, file names and lines of output.

/// The longest name, in bytes.
const MAX_NAME: usize = 256;

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// It is empty.
    #[error("the {what} is empty")]
    Empty {
        /// The name of the checked field.
        what: &'static str,
    },
    /// It is too long.
    #[error("the {what} has {length} bytes; the limit is {most}")]
    TooLong {
        /// The name of the checked field.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// It has a character that is not allowed.
    #[error("the {what} contains {character:?}, which is not allowed")]
    Character {
        /// The name of the checked field.
        what: &'static str,
        /// The character.
        character: char,
    },
    /// It begins like Ringer's own names.
    #[error("the {what} begins with {start:?}, as Ringer's own do")]
    Reserved {
        /// The name of the checked field.
        what: &'static str,
        /// The reserved prefix.
        start: &'static str,
    },
    /// It is none of the known names.
    #[error("unknown {what} {word:?} (known: {known})")]
    Unknown {
        /// The name of the checked field.
        what: &'static str,
        /// The given name.
        word: String,
        /// The known names.
        known: String,
    },
}

/// Checks that a name is not empty, not too long and has no control characters.
pub fn validate_name(what: &'static str, text: &str) -> Result<(), InvalidName> {
    validate_text(what, text, MAX_NAME)?;
    match text.chars().find(|c| c.is_control()) {
        Some(character) => Err(InvalidName::Character { what, character }),
        None => Ok(()),
    }
}

/// Checks a text: any content but NUL, which neither a C string nor a program argument can hold.
pub fn validate_text(what: &'static str, text: &str, most: usize) -> Result<(), InvalidName> {
    if text.trim().is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if text.len() > most {
        return Err(InvalidName::TooLong { what, length: text.len(), most });
    }
    if text.contains('\0') {
        return Err(InvalidName::Character { what, character: '\0' });
    }
    Ok(())
}
