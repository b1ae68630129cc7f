//! Typed access to a parsed TOML file. Every value has its position, so one pass reports all problems with line and column.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ringer_core::message::validate_name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::{ConfigError, ConfigErrors, MAX_PROBLEMS, nearest, one_of};
use crate::rules::Rules;

/// The kind of file that contains an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The person's own file. They wrote it, so its programs run.
    #[default]
    User,
    /// A repository's file. It came with a checkout, so its programs run only after the person has trusted them.
    Repository,
}

/// The file that contains an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The kind of file.
    pub origin: Origin,
    /// The path of the file.
    pub path: PathBuf,
}

impl Source {
    /// Returns the directory of the file. Programs of the file run there by default.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// A file being read, and the problems found so far.
#[derive(Debug)]
pub(crate) struct SettingsReader<'a> {
    source: Source,
    home: Option<&'a Path>,
    text: &'a str,
    rules: &'a Rules,
    problems: RefCell<Vec<ConfigError>>,
}

impl<'a> SettingsReader<'a> {
    pub(crate) fn new(source: Source, home: Option<&'a Path>, text: &'a str, rules: &'a Rules) -> Self {
        Self { source, home, text, rules, problems: RefCell::new(Vec::new()) }
    }

    /// Parses TOML. After a syntax error the parser recovers, but its tree is then a guess, and problems found in it would
    /// mislead; so the tree is dropped.
    pub(crate) fn tree(&self) -> Option<Spanned<DeTable<'a>>> {
        let (tree, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let end = self.text.len()..self.text.len();
            self.wrong(&error.span().unwrap_or(end), error.message().to_owned(), None);
        }
        errors.is_empty().then_some(tree)
    }

    /// Records a problem.
    fn wrong(&self, at: &Range<usize>, message: String, hint: Option<String>) {
        let error = ConfigError::at(self.source.path.clone(), self.text, at.start, message);
        self.problems.borrow_mut().push(ConfigError { hint, ..error });
    }

    /// Returns `read` if there were no problems.
    pub(crate) fn finish<T>(&self, read: T) -> Result<T, ConfigErrors> {
        let mut problems = self.problems.take();
        if problems.is_empty() {
            return Ok(read);
        }
        problems.sort_by_key(|error| (error.line, error.column));
        problems.truncate(MAX_PROBLEMS);
        Err(ConfigErrors(problems))
    }
}

/// A table, and its name and position for messages.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a, 'i> {
    reader: &'a SettingsReader<'a>,
    name: String,
    table: &'a DeTable<'i>,
    span: Range<usize>,
    is_restricted: bool,
}

impl<'a, 'i> Section<'a, 'i> {
    /// The whole file.
    pub(crate) fn root(reader: &'a SettingsReader<'a>, table: &'a Spanned<DeTable<'i>>) -> Self {
        let (span, table) = (table.span(), table.get_ref());
        Self { reader, name: String::new(), table, span, is_restricted: false }
    }

    /// Records a problem for every key that is not in `keys`. Its hint is from `hint` or names the nearest key.
    pub(crate) fn with_keys(self, keys: &[&str], hint: impl Fn(&str) -> Option<String>) -> Self {
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if !keys.contains(&word) {
                let hint = hint(word)
                    .or_else(|| nearest(word, keys).map(|near| format!("did you mean {near:?}?")))
                    .unwrap_or_else(|| format!("there are {}", keys.join(", ")));
                self.reader.wrong(&key.span(), format!("unknown key {}", self.name_of(word)), Some(hint));
            }
        }
        self
    }

    /// In a repository's file, allows only the settings that are marked for it.
    pub(crate) fn restricted(self) -> Self {
        Self { is_restricted: self.reader.source.origin == Origin::Repository, ..self }
    }

    pub(crate) fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Returns the file that contains the table.
    pub(crate) fn source(&self) -> Source {
        self.reader.source.clone()
    }

    fn name_of(&self, key: &str) -> String {
        let key = key.escape_debug();
        if self.name.is_empty() { key.to_string() } else { format!("{}.{key}", self.name) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Field<'a, 'i>> {
        self.fields().find(|(own, _)| *own == key).map(|(_, field)| field)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, Field<'a, 'i>)> {
        self.table.iter().map(|(key, value)| {
            let (key, key_span) = (key.get_ref().as_ref(), key.span());
            (key, Field { reader: self.reader, name: self.name_of(key), key_span, value })
        })
    }

    /// Records a problem at the start of the table. `what` continues the sentence that starts with the name.
    pub(crate) fn wrong(&self, what: impl AsRef<str>, hint: Option<&str>) {
        let message = format!("{} {}", self.name, what.as_ref());
        self.reader.wrong(&self.span, message, hint.map(str::to_owned));
    }
}

/// A value, and its full name such as `notify.ring`.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a, 'i> {
    reader: &'a SettingsReader<'a>,
    name: String,
    key_span: Range<usize>,
    value: &'a Spanned<DeValue<'i>>,
}

impl<'a, 'i> Field<'a, 'i> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn value(&self) -> &'a DeValue<'i> {
        self.value.get_ref()
    }

    pub(crate) fn rules(&self) -> &'a Rules {
        self.reader.rules
    }

    /// Records a problem. `what` continues the sentence that starts with the name.
    pub(crate) fn wrong<T>(&self, what: impl AsRef<str>, hint: Option<String>) -> Option<T> {
        self.reader.wrong(&self.value.span(), format!("{} {}", self.name, what.as_ref()), hint);
        None
    }

    /// Records a problem with the key. `what` continues the sentence that starts with the name.
    pub(crate) fn wrong_key(&self, what: &str) {
        self.reader.wrong(&self.key_span, format!("{} {what}", self.name), None);
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

    /// Reads one of these words.
    pub(crate) fn one_of(&self, known: &[&'static str]) -> Option<&'static str> {
        let DeValue::String(text) = self.value() else { return self.expected(&one_of(known)) };
        known.iter().find(|word| **word == text.as_ref()).copied().or_else(|| {
            let hint = nearest(text, known).map(|near| format!("did you mean {near:?}?"));
            self.wrong(format!("is {text:?}; expected {}", one_of(known)), hint)
        })
    }

    /// Resolves a path: `~/` is the home directory, and relative paths start at the directory of the file.
    pub(crate) fn resolve(&self, text: &str) -> Result<PathBuf, &'static str> {
        let directory = self.reader.source.directory();
        let Some(rest) = text.strip_prefix('~') else {
            return Ok(directory.join(text.strip_prefix("./").unwrap_or(text)));
        };
        match (rest.strip_prefix('/'), self.reader.home) {
            _ if !rest.is_empty() && !rest.starts_with('/') => Ok(directory.join(text)),
            (_, None) => Err("~ cannot be used: the home directory is not known"),
            (rest, Some(home)) => Ok(rest.map_or_else(|| home.to_owned(), |rest| home.join(rest))),
        }
    }

    pub(crate) fn list(&self, expected: &str) -> Option<Vec<Self>> {
        let DeValue::Array(values) = self.value() else { return self.expected(expected) };
        Some(values.iter().map(|value| Self { value, ..self.clone() }).collect())
    }

    pub(crate) fn section(&self, expected: &str) -> Option<Section<'a, 'i>> {
        self.as_section().or_else(|| self.expected(expected))
    }

    fn as_section(&self) -> Option<Section<'a, 'i>> {
        let (table, span) = (self.value().as_table()?, self.value.span());
        Some(Section { reader: self.reader, name: self.name.clone(), table, span, is_restricted: false })
    }
}

/// Records a problem for each table of a list whose `key` has the text of an earlier one.
pub(crate) fn check_unique(list: &Field<'_, '_>, key: &str) {
    let DeValue::Array(tables) = list.value() else { return };
    let mut seen: Vec<&str> = Vec::new();
    for value in tables {
        let table = Field { value, ..list.clone() };
        let Some(field) = table.as_section().and_then(|section| section.get(key)) else { continue };
        let DeValue::String(text) = field.value() else { continue };
        if seen.contains(&text.as_ref()) {
            field.wrong::<()>(format!("{text:?} is used twice; each {key} must be unique"), None);
        }
        seen.push(text);
    }
}
