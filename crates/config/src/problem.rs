//! Problems in a settings file, with their positions.

use std::fmt;
use std::path::PathBuf;

use strsim::osa_distance;

/// The most problems that are reported for one file. A file with more needs to be reviewed as a whole.
pub const MAX_PROBLEMS: usize = 100;
/// The longest word that [`nearest`] compares. No key is longer.
const MAX_COMPARED: usize = 64;

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{column}: {message}", path.display())]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The problem, and the expected value.
    pub message: String,
    /// A suggested fix, if it says more than the message.
    pub hint: Option<String>,
}

impl ConfigError {
    pub(crate) fn at(path: PathBuf, text: &str, offset: usize, message: String) -> Self {
        let (line, column) = position(text, offset);
        Self { path, line, column, message, hint: None }
    }
}

/// The problems of a file, ordered by line. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(formatter, "{newline}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// Returns the line and column of a byte offset, both from 1. An offset beyond the end counts as the end.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// Returns the known word that was probably meant.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > MAX_COMPARED {
        return None;
    }
    // A third of the letters may be wrong, and always two: typos in short words are often transpositions.
    let most = (word.chars().count() / 3).max(2);
    let with_distance = known.iter().map(|own| (osa_distance(word, own), *own));
    with_distance
        .filter(|(distance, own)| *distance <= most && *distance < own.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, own)| own)
}

/// Formats words as `a, b or c`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let check =
            |text, offset, expected| assert_eq!(position(text, offset), expected, "{text:?} {offset}");
        check("", 0, (1, 1));
        check("ab", 1, (1, 2));
        check("a\nb", 2, (2, 1));
        check("ä = ü", 5, (1, 5));
        check("ä", 1, (1, 1));
        check("a\n", 99, (2, 1));
    }

    #[test]
    fn the_word_that_was_meant() {
        let known = ["ring", "flash", "reorder", "quiet_hours", "id"];
        let check = |word, expected| assert_eq!(nearest(word, &known), expected, "{word}");
        check("rign", Some("ring"));
        check("rings", Some("ring"));
        check("quiethours", Some("quiet_hours"));
        check("Flash", Some("flash"));
        check("banana", None);
        check("xy", None);
        check(&"x".repeat(1000), None);
    }

    #[test]
    fn lists_in_words() {
        assert_eq!([one_of(&[]), one_of(&["a"]), one_of(&["a", "b", "c"])], ["", "a", "a, b or c"]);
    }
}
