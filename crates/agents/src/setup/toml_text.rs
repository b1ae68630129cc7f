//! Places in a TOML text, and a string as TOML writes it.

use toml_edit::{Item, Table};

/// Where the last value ends that stands below a table's header, or before the first header in the root; `a.b = 1` belongs
/// to it, `[a]` does not.
pub(crate) fn last_value(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(dotted) if dotted.is_dotted() => last_value(dotted),
        _ => None,
    });
    ends.max()
}

/// The end of the line of `at`, line end included.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// A word in quotes.
pub(crate) fn basic_string(word: &str) -> String {
    toml_edit::Value::from(word).to_string().trim().to_owned()
}
