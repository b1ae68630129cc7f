//! The JSON dialect of a client, and lookups as the client would do them.

use super::jsonc::{self, JsonKind, JsoncError, Node};

/// What a client accepts besides strict JSON. No client accepts a trailing comma.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) comments: bool,
    pub(crate) byte_order_mark: bool,
}

impl Dialect {
    /// The first thing in a text that the client rejects.
    pub(crate) fn refuses(self, text: &str) -> Option<JsoncError> {
        if !self.byte_order_mark && text.starts_with('\u{feff}') {
            return Some(JsoncError::at(text, 0, "a byte order mark"));
        }
        let document = jsonc::parse(text).ok()?;
        let comment = document.first_comment().filter(|_| !self.comments);
        let comma = document.root.as_ref().and_then(trailing_comma);
        let comment = comment.map(|offset| (offset, "a comment"));
        let comma = comma.map(|offset| (offset, "a comma after the last member"));
        let (offset, what) = comment.into_iter().chain(comma).min()?;
        Some(JsoncError::at(text, offset, what))
    }

    /// Looks up a boolean. `None` if the client rejects the text.
    pub(crate) fn boolean(self, text: &str, keys: &[&str]) -> Option<bool> {
        if self.refuses(text).is_some() {
            return None;
        }
        let document = jsonc::parse(text).ok()?;
        let value = find(document.root.as_ref()?, keys)?;
        match (&value.kind, text.get(value.span.clone())?) {
            (JsonKind::Plain, "true") => Some(true),
            (JsonKind::Plain, "false") => Some(false),
            _ => None,
        }
    }

    /// Looks up an array of strings. Empty if the client rejects the text.
    pub(crate) fn list(self, text: &str, keys: &[&str]) -> Vec<String> {
        let document = jsonc::parse(text).ok().filter(|_| self.refuses(text).is_none());
        let root = document.as_ref().and_then(|document| document.root.as_ref());
        let array = root.and_then(|root| find(root, keys)?.array());
        let texts = array.into_iter().flat_map(|array| &array.slots).filter_map(|slot| slot.value.text());
        texts.map(str::to_owned).collect()
    }
}

/// Looks up a value by a path of member names.
fn find<'a>(object: &'a Node, keys: &[&str]) -> Option<&'a Node> {
    keys.iter().try_fold(object, |object, key| object.member(key).map(|(_, value)| value))
}

/// The offset of the first trailing comma.
fn trailing_comma(node: &Node) -> Option<usize> {
    let slots = &node.body()?.slots;
    let inner = slots.iter().filter_map(|slot| trailing_comma(&slot.value));
    inner.chain(slots.last().and_then(|slot| slot.comma)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_json() {
        let strict = Dialect { comments: false, byte_order_mark: true };
        let check = |dialect: Dialect, text: &str, expected: Option<&str>| {
            assert_eq!(dialect.refuses(text).map(|error| error.to_string()).as_deref(), expected, "{text}");
        };
        check(strict, "{\"a\": [1, {\"b\": \"// no, /* no */ ,}\"}]}", None);
        check(strict, "\u{feff}{}", None);
        check(strict, "{\n  // mine\n}", Some("line 2, column 3: a comment"));
        check(strict, "{} // mine", Some("line 1, column 4: a comment"));
        check(
            strict,
            "{\"a\": [1, 2, ], /* c */ }",
            Some("line 1, column 12: a comma after the last member"),
        );
        let gemini = Dialect { comments: true, byte_order_mark: false };
        check(gemini, "{ /* c */ \"a\": 1 }", None);
        check(
            gemini,
            "{ /* c */ \"a\": {\"b\": 1,} }",
            Some("line 1, column 23: a comma after the last member"),
        );
        check(gemini, "\u{feff}{}", Some("line 1, column 1: a byte order mark"));
    }
}
