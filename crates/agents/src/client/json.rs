//! A JSON reader that keeps little of a document, however long it is.
//!
//! A tool's result may have fifty megabytes. `serde_json` reads a whole string before its length can be checked; this reader
//! reads in small chunks, keeps the members whose names are known, truncates long texts while it reads them, and skips the rest.
//! For what it keeps it agrees with `serde_json`, with one exception: half a surrogate pair, which JavaScript writes when it cuts
//! an emoji in two, is replaced and not rejected.

use std::io::{self, Read};

use super::text::{TextBuilder, TruncatedText};

/// Maximum nesting depth, the same as in `serde_json`.
const MAX_DEPTH: usize = 127;
/// Maximum bytes kept of a number. A longer one is truncated: nothing here computes with numbers.
const MAX_NUMBER: usize = 64;
const READ_CHUNK: usize = 32 * 1024;
/// The cost of a value besides its text: about what it takes in memory.
const NODE_COST: usize = 128;

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// It is not JSON.
    #[error("byte {at}: expected {expected}")]
    Syntax {
        /// Byte offset, from 0.
        at: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The document ends too early.
    #[error("it ends in the middle")]
    Ends,
    /// The nesting is too deep.
    #[error("byte {at}: nested more than {MAX_DEPTH} deep")]
    TooDeep {
        /// Byte offset, from 0.
        at: u64,
    },
    /// The document is too long.
    #[error("more than {most} bytes")]
    TooLong {
        /// The limit, in bytes.
        most: u64,
    },
    /// Reading failed.
    #[error("cannot be read")]
    Read(#[from] io::Error),
}

/// What to keep of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum size of the document, in bytes.
    pub(super) document: u64,
    /// Maximum size of a text, in bytes; a longer one keeps its beginning and a little of its end.
    pub(super) text: usize,
    /// Budget of one member of the outermost object, so that none can crowd out the others.
    pub(super) field: usize,
    /// Budget of all of them.
    pub(super) total: usize,
    /// The members to keep, at any depth.
    pub(super) keeps: fn(&str) -> bool,
}

/// A value; lists and maps may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(TruncatedText),
    List {
        items: Vec<Value>,
        /// The number of items, kept or not.
        seen: usize,
    },
    Map(Vec<(String, Value)>),
}

type Result<T> = std::result::Result<T, InputError>;

/// Reads one document.
pub(super) struct Reader<R> {
    source: R,
    limits: Limits,
    budget: usize,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Offset of the buffer in the document.
    offset: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(source: R, limits: Limits) -> Self {
        let budget = limits.total;
        Self { source, limits, budget, buffer: vec![0; READ_CHUNK], at: 0, end: 0, offset: 0 }
    }

    /// Reads the document. `None` if its one value was too large to keep.
    ///
    /// A complete object or array is returned without waiting for the end of the input: a client may keep the pipe open. What was
    /// read together with it must still be white space.
    pub(super) fn document(mut self) -> Result<Option<Value>> {
        let mut budget = self.budget;
        self.skip_space()?;
        let ends_itself = matches!(self.require()?, b'{' | b'[');
        let value = self.value(0, Some(&mut budget))?;
        let rest = &self.buffer[self.at..self.end];
        if ends_itself && rest.iter().all(|byte| b" \t\n\r".contains(byte)) {
            return Ok(value);
        }
        self.skip_space()?;
        match self.peek()? {
            None => Ok(value),
            Some(_) => Err(self.expected("the end")),
        }
    }

    fn value(&mut self, depth: usize, keep: Option<&mut usize>) -> Result<Option<Value>> {
        self.skip_space()?;
        let keep = keep.filter(|budget| **budget >= NODE_COST).map(|budget| {
            *budget -= NODE_COST;
            budget
        });
        match self.require()? {
            b'{' => self.object(depth + 1, keep),
            b'[' => self.array(depth + 1, keep),
            b'"' => {
                let Some(budget) = keep else { return self.text(None).map(|_| None) };
                let text = self.text(Some((*budget).min(self.limits.text)))?;
                *budget = budget.saturating_sub(text.head.len() + text.tail.len());
                Ok(Some(Value::Text(text)))
            }
            b't' => self.word(b"true", Value::Bool(true), keep.is_some()),
            b'f' => self.word(b"false", Value::Bool(false), keep.is_some()),
            b'n' => self.word(b"null", Value::Null, keep.is_some()),
            b'-' | b'0'..=b'9' => {
                let number = self.number()?;
                Ok(keep.map(|_| Value::Number(number)))
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn object(&mut self, depth: usize, mut keep: Option<&mut usize>) -> Result<Option<Value>> {
        self.enter(depth)?;
        let mut members: Vec<(String, Value)> = Vec::new();
        let mut first = true;
        while self.has_next(b'}', first)? {
            first = false;
            self.skip_space()?;
            if self.require()? != b'"' {
                return Err(self.expected("a name"));
            }
            let name = self.text(Some(self.limits.text))?;
            self.skip_space()?;
            self.consume(b':', "a colon")?;
            let known = !name.cut && (self.limits.keeps)(&name.head);
            let value = match keep.as_deref_mut().filter(|_| known) {
                None => self.value(depth, None)?,
                Some(_) if depth == 1 => {
                    let share = self.budget.min(self.limits.field);
                    let mut left = share;
                    let value = self.value(depth, Some(&mut left))?;
                    self.budget -= share - left;
                    value
                }
                Some(budget) => {
                    *budget = budget.saturating_sub(name.head.len());
                    self.value(depth, Some(budget))?
                }
            };
            let Some(value) = value else { continue };
            // The last of two members with the same name counts, as in other parsers.
            match members.iter_mut().find(|(own, _)| *own == name.head) {
                Some((_, old)) => *old = value,
                None => members.push((name.head, value)),
            }
        }
        Ok(keep.map(|_| Value::Map(members)))
    }

    fn array(&mut self, depth: usize, mut keep: Option<&mut usize>) -> Result<Option<Value>> {
        self.enter(depth)?;
        let (mut items, mut seen) = (Vec::new(), 0);
        while self.has_next(b']', seen == 0)? {
            items.extend(self.value(depth, keep.as_deref_mut())?);
            seen += 1;
        }
        Ok(keep.map(|_| Value::List { items, seen }))
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(InputError::TooDeep { at: self.position() });
        }
        self.at += 1;
        Ok(())
    }

    /// Skips the comma and returns true if another item follows; otherwise skips the closing bracket.
    fn has_next(&mut self, close: u8, first: bool) -> Result<bool> {
        self.skip_space()?;
        if self.require()? == close {
            self.at += 1;
            return Ok(false);
        }
        if !first {
            self.consume(b',', "a comma or the end of the list")?;
        }
        Ok(true)
    }

    fn word(&mut self, word: &[u8], value: Value, keep: bool) -> Result<Option<Value>> {
        for byte in word {
            self.consume(*byte, "true, false or null")?;
        }
        Ok(keep.then_some(value))
    }

    fn number(&mut self) -> Result<String> {
        let mut raw = String::new();
        self.accept(&mut raw, b"-")?;
        if !self.accept(&mut raw, b"0")? {
            self.digits(&mut raw)?;
        }
        if self.accept(&mut raw, b".")? {
            self.digits(&mut raw)?;
        }
        if self.accept(&mut raw, b"eE")? {
            self.accept(&mut raw, b"+-")?;
            self.digits(&mut raw)?;
        }
        Ok(raw)
    }

    fn digits(&mut self, raw: &mut String) -> Result<()> {
        if !self.accept(raw, b"0123456789")? {
            return Err(self.expected("a digit"));
        }
        while self.accept(raw, b"0123456789")? {}
        Ok(())
    }

    /// Reads one of these bytes if it comes next.
    fn accept(&mut self, raw: &mut String, bytes: &[u8]) -> Result<bool> {
        let Some(byte) = self.peek()?.filter(|byte| bytes.contains(byte)) else { return Ok(false) };
        self.at += 1;
        if raw.len() < MAX_NUMBER {
            raw.push(char::from(byte));
        }
        Ok(true)
    }

    /// Reads a text and keeps at most `most` bytes of its beginning; `None` keeps nothing.
    fn text(&mut self, most: Option<usize>) -> Result<TruncatedText> {
        self.consume(b'"', "a text")?;
        let mut builder = TextBuilder::new(most);
        loop {
            self.require()?;
            let rest = &self.buffer[self.at..self.end];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let run = plain.unwrap_or(rest.len());
            builder.push(&rest[..run]);
            self.at += run;
            match rest.get(run).copied() {
                None => {}
                Some(b'"') => {
                    self.at += 1;
                    return Ok(builder.finish());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut builder)?;
                }
                Some(_) => return Err(self.expected("no control character in a text")),
            }
        }
    }

    fn escape(&mut self, builder: &mut TextBuilder) -> Result<()> {
        let byte = self.require()?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    let digit = char::from(self.require()?).to_digit(16);
                    unit = unit * 16 + digit.ok_or_else(|| self.expected("four hex digits"))?;
                    self.at += 1;
                }
                builder.push_unit(unit);
                return Ok(());
            }
            _ => {
                self.at -= 1;
                return Err(self.expected("an escape"));
            }
        };
        builder.push(&[plain]);
        Ok(())
    }

    fn skip_space(&mut self) -> Result<()> {
        while matches!(self.peek()?, Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        Ok(())
    }

    fn consume(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.require()? != byte {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn require(&mut self) -> Result<u8> {
        self.peek()?.ok_or(InputError::Ends)
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        if self.at == self.end {
            self.offset += self.end as u64;
            (self.at, self.end) = (0, self.fill()?);
            if self.offset + self.end as u64 > self.limits.document {
                return Err(InputError::TooLong { most: self.limits.document });
            }
        }
        Ok((self.at < self.end).then(|| self.buffer[self.at]))
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.source.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(|length| length.min(READ_CHUNK)),
            }
        }
    }

    fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    fn expected(&self, expected: &'static str) -> InputError {
        InputError::Syntax { at: self.position(), expected }
    }
}

#[cfg(test)]
mod tests;
