//! JSON with comments, parsed into a tree of byte positions.
//!
//! Settings are edited by people: comments, trailing commas, tabs and CRLF are common. Parsing and printing values would lose
//! them, so this parser keeps only *positions*, and [`super::splice`] edits the text between them. It accepts strict JSON, `//`
//! and `/* */` comments, one trailing comma in an object or array, a byte order mark, and a document without a value (an empty
//! file).
//!
//! A [`Dialect`] is what one client accepts of this, and looks values up as that client would.
//!
//! Nesting is limited to [`MAX_DEPTH`] levels. No input causes a panic.

use std::ops::Range;

use thiserror::Error;

/// Maximum nesting of objects and arrays. The parser recurses once per level.
pub(crate) const MAX_DEPTH: usize = 128;

/// Why a text is not JSON with comments, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct JsoncError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What was found or missing there.
    pub what: &'static str,
}

impl JsoncError {
    /// The error at a byte offset of a text.
    pub(crate) fn at(text: &str, offset: usize, what: &'static str) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().filter(|c| *c != '\u{feff}').count() + 1,
            what,
        }
    }
}

/// A value and its span in the text.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) kind: JsonKind,
}

#[derive(Debug)]
pub(crate) enum JsonKind {
    /// A number, `true`, `false` or `null`, kept unparsed.
    Plain,
    Text(String),
    Array(Body),
    Object(Body),
}

/// The content of an array or object.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) slots: Vec<Slot>,
    /// The end of the last token inside: the bracket, a value, a comma or a comment.
    pub(crate) tail: usize,
}

/// An element of an array or a member of an object.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: Option<String>,
    /// The start of the key in an object, of the value in an array.
    pub(crate) start: usize,
    pub(crate) value: Node,
    /// The comma that follows.
    pub(crate) comma: Option<usize>,
    /// A `//` comment precedes it, whose line end must stay.
    pub(crate) after_line_comment: bool,
}

impl Slot {
    /// The span from the key to the end of the value.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.value.span.end
    }
}

impl Node {
    pub(crate) fn object(&self) -> Option<&Body> {
        if let JsonKind::Object(body) = &self.kind { Some(body) } else { None }
    }

    pub(crate) fn array(&self) -> Option<&Body> {
        if let JsonKind::Array(body) = &self.kind { Some(body) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let JsonKind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The array or object inside, whichever it is.
    pub(crate) fn body(&self) -> Option<&Body> {
        self.object().or_else(|| self.array())
    }

    /// A member's index and value. The last of two members with the same name counts, as for the clients.
    pub(crate) fn member(&self, key: &str) -> Option<(usize, &Node)> {
        let slots = &self.object()?.slots;
        let index = slots.iter().rposition(|slot| slot.key.as_deref() == Some(key))?;
        slots.get(index).map(|slot| (index, &slot.value))
    }
}

#[derive(Debug)]
pub(crate) struct Document {
    /// The value; `None` if there is only white space and comments.
    pub(crate) root: Option<Node>,
    /// Offsets of the comments, in order.
    comments: Vec<usize>,
}

impl Document {
    fn first_comment(&self) -> Option<usize> {
        self.comments.first().copied()
    }

    /// Returns true if a comment is in `outer` but not in `inner`.
    pub(crate) fn has_comment_around(&self, outer: &Range<usize>, inner: &Range<usize>) -> bool {
        self.comments.iter().any(|at| outer.contains(at) && !inner.contains(at))
    }
}

/// Parses a document.
pub(crate) fn parse(text: &str) -> Result<Document, JsoncError> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        solid_end: 0,
        line_comment: false,
        comments: Vec::new(),
    };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_whitespace_and_comments()?;
    if reader.peek().is_none() {
        return Ok(Document { root: None, comments: reader.comments });
    }
    let root = reader.value(0)?;
    reader.skip_whitespace_and_comments()?;
    if reader.peek().is_some() {
        return Err(reader.error("something follows the end of the document"));
    }
    Ok(Document { root: Some(root), comments: reader.comments })
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The end of the last token.
    solid_end: usize,
    /// The last gap ended with a `//` comment.
    line_comment: bool,
    comments: Vec<usize>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn error(&self, what: &'static str) -> JsoncError {
        JsoncError::at(self.text, self.at, what)
    }

    /// Consumes one byte, which must exist.
    fn bump(&mut self) {
        self.at += 1;
        self.solid_end = self.at;
    }

    fn skip_whitespace_and_comments(&mut self) -> Result<(), JsoncError> {
        self.line_comment = false;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' => self.comment()?,
                _ => break,
            }
        }
        Ok(())
    }

    fn comment(&mut self) -> Result<(), JsoncError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = if rest.starts_with(b"//") {
            self.line_comment = true;
            rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            self.line_comment = false;
            let inner = rest.get(2..).unwrap_or_default();
            let end = inner.windows(2).position(|pair| pair == b"*/");
            end.map(|end| end + 4).ok_or_else(|| self.error("a comment is never closed"))?
        } else {
            return Err(self.error("a single slash is not a comment"));
        };
        self.comments.push(self.at);
        self.at += length;
        self.solid_end = self.at;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsoncError> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => JsonKind::Object(self.body(depth, b'}')?),
            Some(b'[') => JsonKind::Array(self.body(depth, b']')?),
            Some(b'"') => JsonKind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            Some(_) => return Err(self.error("a value was expected")),
            None => return Err(self.error("the document ends too early")),
        };
        self.solid_end = self.at;
        Ok(Node { span: start..self.at, kind })
    }

    fn body(&mut self, depth: usize, close: u8) -> Result<Body, JsoncError> {
        if depth >= MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.bump();
        let mut slots: Vec<Slot> = Vec::new();
        loop {
            self.skip_whitespace_and_comments()?;
            match self.peek() {
                None => return Err(self.error("a bracket is never closed")),
                Some(byte) if byte == close => {
                    let tail = self.solid_end;
                    self.bump();
                    return Ok(Body { slots, tail });
                }
                Some(b',') => self.comma(&mut slots)?,
                Some(_) if slots.last().is_some_and(|slot| slot.comma.is_none()) => {
                    return Err(self.error("a comma or the closing bracket was expected"));
                }
                Some(_) => slots.push(self.slot(depth, close)?),
            }
        }
    }

    fn comma(&mut self, slots: &mut [Slot]) -> Result<(), JsoncError> {
        match slots.last_mut() {
            Some(slot) if slot.comma.is_none() => slot.comma = Some(self.at),
            _ => return Err(self.error("a value was expected before the comma")),
        }
        self.bump();
        Ok(())
    }

    fn slot(&mut self, depth: usize, close: u8) -> Result<Slot, JsoncError> {
        let (start, after_line_comment) = (self.at, self.line_comment);
        let key = if close == b'}' {
            if self.peek() != Some(b'"') {
                return Err(self.error("a name in quotes was expected"));
            }
            let key = self.string()?;
            self.skip_whitespace_and_comments()?;
            if self.peek() != Some(b':') {
                return Err(self.error("a colon was expected"));
            }
            self.bump();
            self.skip_whitespace_and_comments()?;
            Some(key)
        } else {
            None
        };
        let value = self.value(depth + 1)?;
        Ok(Slot { key, start, value, comma: None, after_line_comment })
    }

    fn word(&mut self, word: &'static str) -> Result<JsonKind, JsoncError> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return Err(self.error("a value was expected"));
        }
        self.at += word.len();
        Ok(JsonKind::Plain)
    }

    fn number(&mut self) -> Result<JsonKind, JsoncError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits()?;
        if leading_zero && whole > 1 {
            return Err(self.error("a number does not begin with a zero"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(JsonKind::Plain)
    }

    fn digits(&mut self) -> Result<usize, JsoncError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("a digit was expected")) } else { Ok(self.at - start) }
    }

    fn string(&mut self) -> Result<String, JsoncError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            out.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.bump();
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.error("a control character or line end inside a string")),
                None => return Err(self.error("a string is never closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsoncError> {
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an escape that JSON does not have")),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, JsoncError> {
        let first = self.unit()?;
        let pair_follows = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(b"\\u"));
        if (0xd800..0xdc00).contains(&first) && pair_follows {
            let back = self.at;
            self.at += 1;
            let second = self.unit()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        // JSON allows half a surrogate pair. Ringer's entries have none, so its value does not matter.
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Reads `uXXXX` at the current offset.
    fn unit(&mut self) -> Result<u32, JsoncError> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let code = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("four hexadecimal digits were expected"))?;
        self.at += 5;
        Ok(code)
    }
}

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
        let document = parse(text).ok()?;
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
        let document = parse(text).ok()?;
        let value = find(document.root.as_ref()?, keys)?;
        match (&value.kind, text.get(value.span.clone())?) {
            (JsonKind::Plain, "true") => Some(true),
            (JsonKind::Plain, "false") => Some(false),
            _ => None,
        }
    }

    /// Looks up an array of strings. Empty if the client rejects the text.
    pub(crate) fn list(self, text: &str, keys: &[&str]) -> Vec<String> {
        let document = parse(text).ok().filter(|_| self.refuses(text).is_none());
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
    fn what_people_write_is_read() {
        for text in [
            "{}",
            "\u{feff}{}",
            " [1, -2.5e+3, 0, true, false, null,] ",
            "{ \"a\": \"\\u0041\\ud83d\\ude00\\ud800\\n\", /* c */ \"b\": [ /**/ ], // end\r\n}\r\n",
            "// only a comment\n",
            "",
        ] {
            assert!(parse(text).is_ok(), "{text:?}: {:?}", parse(text));
        }
        let root = parse("{\"a\": \"\\u0041\\ud83d\\ude00\", \"a\": 1}").unwrap().root.unwrap();
        assert_eq!(root.object().unwrap().slots[0].value.text(), Some("A😀"));
        assert_eq!(root.member("a").unwrap().0, 1);
    }

    #[test]
    fn errors_say_where() {
        for (text, line, column) in [
            ("{", 1, 2),
            ("{\n  \"é\" 1}", 2, 7),
            ("[1 2]", 1, 4),
            ("[,]", 1, 2),
            ("[1,,]", 1, 4),
            ("{\"a\": 01}", 1, 9),
            ("/* x", 1, 1),
            ("{} {}", 1, 4),
            ("\"a\nb\"", 1, 3),
            ("{a: 1}", 1, 2),
            ("[\"\\x\"]", 1, 4),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
        assert_eq!(parse(&"[".repeat(100_000)).unwrap_err().what, "nested too deeply");
    }

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
