//! Typed access to a parsed TOML file. Every value has its position, so one pass reports all problems with line and column.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::message::validate_name;
use ringer_core::time::parse_span;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::{ConfigError, ConfigErrors, MAX_PROBLEMS, nearest, one_of};
use crate::values::milliseconds::MAX_MILLISECONDS;
use crate::values::span::OFF;
use crate::values::word::{Word, names};

const SPANS: &str = "a span up to a day, like \"90s\", \"20m\" or \"2h\"";

/// A file being read, and the problems found so far.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    path: &'a Path,
    home: Option<&'a Path>,
    text: &'a str,
    problems: RefCell<Vec<ConfigError>>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(path: &'a Path, home: Option<&'a Path>, text: &'a str) -> Self {
        Self { path, home, text, problems: RefCell::new(Vec::new()) }
    }

    /// The base of relative paths.
    pub(crate) fn directory(&self) -> &'a Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Records a problem.
    pub(crate) fn wrong(&self, at: &Range<usize>, message: String, hint: Option<String>) {
        let error =
            ConfigError { hint, ..ConfigError::at(self.path.to_owned(), self.text, at.start, message) };
        self.problems.borrow_mut().push(error);
    }

    /// Returns `read` if there were no problems.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, ConfigErrors> {
        let mut problems = self.problems.into_inner();
        if problems.is_empty() {
            return Ok(read);
        }
        problems.sort_by_key(|error| (error.line, error.column));
        problems.truncate(MAX_PROBLEMS);
        Err(ConfigErrors(problems))
    }

    /// Resolves a path: `~/` is the home directory, and relative paths start at the directory of the file.
    pub(crate) fn resolve(&self, text: &str) -> Result<PathBuf, &'static str> {
        let Some(rest) = text.strip_prefix('~') else {
            return Ok(self.directory().join(text.strip_prefix("./").unwrap_or(text)));
        };
        match (rest.strip_prefix('/'), self.home) {
            _ if !rest.is_empty() && !rest.starts_with('/') => Ok(self.directory().join(text)),
            (_, None) => Err("~ cannot be used: the home directory is not known"),
            (rest, Some(home)) => Ok(rest.map_or_else(|| home.to_owned(), |rest| home.join(rest))),
        }
    }
}

/// A table, and its name and position for messages.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a, 'i> {
    page: &'a Page<'a>,
    name: String,
    table: &'a DeTable<'i>,
    span: Range<usize>,
}

impl<'a, 'i> Section<'a, 'i> {
    /// The whole file.
    pub(crate) fn root(page: &'a Page<'a>, table: &'a Spanned<DeTable<'i>>) -> Self {
        Self { page, name: String::new(), table: table.get_ref(), span: table.span() }
    }

    /// Records a problem for every key that is not in `keys`. Its hint is from `hint` or names the nearest key.
    pub(crate) fn with_keys(self, keys: &[&str], hint: impl Fn(&str) -> Option<String>) -> Self {
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if !keys.contains(&word) {
                let hint = hint(word)
                    .or_else(|| nearest(word, keys).map(|near| format!("did you mean {near:?}?")))
                    .unwrap_or_else(|| format!("there are {}", keys.join(", ")));
                self.page.wrong(&key.span(), format!("unknown key {}", self.name_of(word)), Some(hint));
            }
        }
        self
    }

    /// Records a problem for keys that are known but not allowed in this file.
    pub(crate) fn forbid(self, keys: &[&str], why: &str) -> Self {
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if keys.contains(&word) {
                self.page.wrong(&key.span(), format!("{} {why}", self.name_of(word)), None);
            }
        }
        self
    }

    fn name_of(&self, key: &str) -> String {
        let key = key.escape_debug();
        if self.name.is_empty() { key.to_string() } else { format!("{}.{key}", self.name) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Item<'a, 'i>> {
        let (_, value) = self.table.iter().find(|(own, _)| own.get_ref() == key)?;
        Some(Item { page: self.page, name: self.name_of(key), value })
    }

    /// Returns the value of a required key. Records a problem if it is missing.
    pub(crate) fn require(&self, key: &str) -> Option<Item<'a, 'i>> {
        let found = self.get(key);
        if found.is_none() {
            self.page.wrong(&self.span, format!("{} has no {key}", self.name), None);
        }
        found
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = (&'a str, Item<'a, 'i>)> {
        self.table.iter().map(|(key, value)| {
            let key = key.get_ref().as_ref();
            (key, Item { page: self.page, name: self.name_of(key), value })
        })
    }
}

/// A value, and its full name such as `notify.ring`.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a, 'i> {
    pub(crate) page: &'a Page<'a>,
    name: String,
    value: &'a Spanned<DeValue<'i>>,
}

impl<'a, 'i> Item<'a, 'i> {
    pub(crate) fn value(&self) -> &'a DeValue<'i> {
        self.value.get_ref()
    }

    /// Records a problem. `what` continues the sentence that starts with the name.
    pub(crate) fn wrong<T>(&self, what: impl AsRef<str>, hint: Option<String>) -> Option<T> {
        self.page.wrong(&self.value.span(), format!("{} {}", self.name, what.as_ref()), hint);
        None
    }

    /// Records that the value has the wrong type.
    pub(crate) fn expected<T>(&self, expected: &str) -> Option<T> {
        let found = match self.value() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(format!("is {found}; expected {expected}"), None)
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        self.value().as_bool().or_else(|| self.expected("true or false"))
    }

    /// Reads a string. NUL is rejected everywhere, because arguments and paths cannot contain it.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.value() {
            DeValue::String(text) if text.contains('\0') => self.wrong("has a NUL character in it", None),
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.expected("a string"),
        }
    }

    /// Reads a string that is a valid name.
    pub(crate) fn name_text(&self, what: &'static str) -> Option<String> {
        let text = self.text()?;
        match validate_name(what, text) {
            Ok(()) => Some(text.to_owned()),
            Err(invalid) => self.wrong(format!("cannot be used: {invalid}"), None),
        }
    }

    pub(crate) fn duration(&self) -> Option<Duration> {
        let DeValue::Integer(number) = self.value() else {
            return self.expected("a number of milliseconds");
        };
        let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match read.filter(|number| (1..=MAX_MILLISECONDS).contains(number)) {
            Some(number) => Some(Duration::from_millis(number)),
            None => self.wrong(format!("is {number}; expected 1 to {MAX_MILLISECONDS} milliseconds"), None),
        }
    }

    /// Reads a time span, like `90s`.
    pub(crate) fn span(&self) -> Option<Duration> {
        let text = self.text()?;
        parse_span(text).or_else(|| self.wrong(format!("is {text:?}; expected {SPANS}"), None))
    }

    /// Reads a time span, or `None` for `off`.
    pub(crate) fn span_or_off(&self) -> Option<Duration> {
        let text = self.text().filter(|text| *text != OFF)?;
        let expected = || format!("is {text:?}; expected {SPANS}, or \"{OFF}\"");
        parse_span(text).or_else(|| self.wrong(expected(), None))
    }

    /// Reads a time span longer than zero, or `None` for `off`.
    pub(crate) fn positive_span_or_off(&self) -> Option<Duration> {
        let span = self.span_or_off()?;
        let wrong = || self.wrong(format!("is no time at all; expected {SPANS}, or \"{OFF}\""), None);
        if span.is_zero() { wrong() } else { Some(span) }
    }

    pub(crate) fn word<T: Word>(&self) -> Option<T> {
        let word = self.one_of(&names::<T>())?;
        T::words().into_iter().find(|(own, _)| *own == word).map(|(_, value)| value)
    }

    /// Reads one of these words.
    pub(crate) fn one_of(&self, known: &[&'static str]) -> Option<&'static str> {
        let DeValue::String(text) = self.value() else { return self.expected(&one_of(known)) };
        known.iter().find(|word| **word == text.as_ref()).copied().or_else(|| {
            let hint = nearest(text, known).map(|near| format!("did you mean {near:?}?"));
            self.wrong(format!("is {text:?}; expected {}", one_of(known)), hint)
        })
    }

    pub(crate) fn list(&self, expected: &str) -> Option<Vec<Self>> {
        let DeValue::Array(values) = self.value() else { return self.expected(expected) };
        Some(values.iter().map(|value| Item { value, ..self.clone() }).collect())
    }

    pub(crate) fn section(&self, expected: &str) -> Option<Section<'a, 'i>> {
        match self.value() {
            DeValue::Table(table) => {
                Some(Section { page: self.page, name: self.name.clone(), table, span: self.value.span() })
            }
            _ => self.expected(expected),
        }
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        let text = self.text()?;
        if text.is_empty() {
            return self.wrong("is empty; expected a path", None);
        }
        self.page.resolve(text).map_or_else(|why| self.wrong(format!("is {text:?}: {why}"), None), Some)
    }

    /// Reads a program and its arguments. They run without a shell, so `~/` is expanded here.
    pub(crate) fn command(&self) -> Option<Vec<String>> {
        let items = self.list("a list of strings: the program and its arguments")?;
        let words: Option<Vec<String>> =
            items.iter().enumerate().map(|(at, item)| item.argument(at == 0)).collect();
        words
    }

    /// Reads a command that must not be empty.
    pub(crate) fn program(&self) -> Option<Vec<String>> {
        let command = self.command()?;
        if command.is_empty() {
            self.wrong("is empty; expected a program and its arguments", None)
        } else {
            Some(command)
        }
    }

    fn argument(&self, is_program: bool) -> Option<String> {
        let text = self.text()?;
        if is_program && text.is_empty() {
            return self.wrong("begins with an empty string; expected a program", None);
        }
        // A program with a slash is a path and relative to the file's directory; one without is looked up in PATH.
        let is_path = text == "~" || text.starts_with("~/") || (is_program && text.contains('/'));
        if !is_path {
            return Some(text.to_owned());
        }
        let path = self.path()?;
        path.into_os_string()
            .into_string()
            .ok()
            .or_else(|| self.wrong("leads to a path that is not UTF-8", None))
    }
}
