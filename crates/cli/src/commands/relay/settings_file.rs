//! Edits the `[[relay]]` tables in the person's settings file. Everything else in it stays the same.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringer_config::{Config, RelayEntry, user_path};
use ringer_core::Scope;
use ringer_journal::{Home, Journal};
use ringer_platform::{Durability, replace_file};
use ringer_term::sanitise_line;
use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, Item, Table, value};

use crate::commands::config::{self, environment};
use crate::failure::{Exit, Failure, Outcome};
use crate::guard;
use crate::output::short_path;

/// The settings file, open for changes.
pub(super) struct SettingsFile {
    path: PathBuf,
    /// The text when it was read; `None` if there was no file.
    read: Option<String>,
    document: DocumentMut,
}

impl SettingsFile {
    pub(super) fn open() -> Result<Self, Failure> {
        let path = user_path(&environment()).ok_or_else(|| {
            Failure::new(Exit::Config, "no place for settings: HOME is not set")
                .hint("HOME=/your/home ringer …")
        })?;
        // A symbolic link stays; its target is changed.
        Self::open_at(path.canonicalize().unwrap_or(path))
    }

    fn open_at(path: PathBuf) -> Result<Self, Failure> {
        let read = read(&path)?;
        let document = read.as_deref().unwrap_or_default().parse::<DocumentMut>().map_err(|error| {
            Failure::new(Exit::Config, format!("{} is not valid", short_path(&path)))
                .because(error.message().to_owned())
                .hint("ringer config check")
        })?;
        Ok(Self { path, read, document })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn add(&mut self, entry: &RelayEntry) {
        let mut table = Table::new();
        let mut set = |key: &str, text: &Option<String>| {
            if let Some(text) = text {
                table.insert(key, value(text));
            }
        };
        set("name", &entry.name);
        set("ssh", &entry.ssh);
        set("program", &entry.program);
        set("nats", &entry.nats);
        set("domain", &entry.domain);
        set("team", &entry.team);
        let path = |path: &Option<PathBuf>| path.as_deref().map(|path| path.to_string_lossy().into_owned());
        set("credentials", &path(&entry.credentials));
        set("ca", &path(&entry.ca));
        if !entry.command.is_empty() {
            table.insert("command", value(entry.command.iter().collect::<Array>()));
        }
        table.insert("may_answer", value(entry.may_answer));
        if entry.may_reach_lead {
            table.insert("may_reach_lead", value(true));
        }
        if entry.nats.is_some() {
            table.insert("share_marks", value(entry.share_marks));
        }
        if let Some(tables) = self.tables() {
            tables.push(table);
        }
    }

    /// Removes a machine. Comments above its table stay, because they may be about what follows.
    pub(super) fn remove(&mut self, is_it: impl Fn(&Table) -> bool) {
        if let Some(document) = without_tables(&self.document.to_string(), &is_it) {
            self.document = document;
            return;
        }
        // The tables are written inline.
        let Some(tables) = self.tables() else { return };
        tables.retain(|table| !is_it(table));
        if tables.is_empty() {
            self.document.remove("relay");
        }
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        let item = self.document.entry("relay").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        if !item.is_array_of_tables() {
            // The tables are written inline.
            let before = std::mem::take(item);
            *item = Item::ArrayOfTables(before.into_array_of_tables().unwrap_or_default());
        }
        item.as_array_of_tables_mut()
    }

    pub(super) fn write(&self) -> Outcome {
        // The person may have edited the file while they were being asked.
        if read(&self.path)? != self.read {
            let what = format!("{} was changed meanwhile; nothing was written", short_path(&self.path));
            return Err(Failure::new(Exit::TryAgain, what).hint("type the command again"));
        }
        let failed = |error| {
            Failure::new(Exit::CannotCreate, format!("cannot write {}", short_path(&self.path)))
                .because(error)
        };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        replace_file(&self.path, self.document.to_string().as_bytes(), Durability::Synced).map_err(failed)
    }
}

/// Removes the lines of the matching `[[relay]]` tables. Returns `None` if the tables are not written that way.
fn without_tables(text: &str, is_it: impl Fn(&Table) -> bool) -> Option<DocumentMut> {
    let parsed = Document::parse(text).ok()?;
    let tables = parsed.get("relay")?.as_array_of_tables()?;
    let mut kept = text.to_owned();
    for table in tables.iter().filter(|table| is_it(table)).collect::<Vec<_>>().into_iter().rev() {
        let header = table.span()?;
        let values = table.iter().filter_map(|(_, item)| item.span());
        let end = values.map(|value| value.end).max().unwrap_or(header.end);
        let end = text[end..].find('\n').map_or(text.len(), |line| end + line + 1);
        kept.replace_range(header.start..end, "");
    }
    kept.parse().ok()
}

/// Returns the text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::open(&short_path(path), error)),
    }
}

/// Returns the person's settings; the defaults if there is no file.
pub(crate) fn settings() -> Result<Config, Failure> {
    match config::user_config(&environment()) {
        None => Ok(Config::default()),
        Some((_, Ok(config))) => Ok(config),
        Some((path, Err(errors))) => config::report_and_fail(&path, errors),
    }
}

/// Returns the configured machines. Returns none if the settings cannot be read, so that a command that only reads can continue.
pub(crate) fn machines() -> Vec<RelayEntry> {
    let read = config::user_config(&environment());
    read.and_then(|(_, config)| config.ok()).map(|config| config.relays).unwrap_or_default()
}

/// Converts an error of a link.
pub(super) fn link_failure(error: ringer_relay::Error) -> Failure {
    match error {
        ringer_relay::Error::Journal(error) => error.into(),
        error => Failure::new(Exit::Unavailable, sanitise_line(&error.to_string())),
    }
}

/// Links run programs, so only a person may change them.
pub(super) fn only_a_person(home: &Home) -> Outcome {
    let mut journal = Journal::open(home)?;
    guard::only_a_person(&mut journal, &Scope::global(), "change the links to other machines")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_box(text: &str) -> Option<String> {
        let is_it = |table: &Table| table.get("name").and_then(Item::as_str) == Some("box");
        without_tables(text, is_it).map(|document| document.to_string())
    }

    #[test]
    fn what_was_changed_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let entry = RelayEntry { ssh: Some("box".to_owned()), ..RelayEntry::default() };
        let mut file = SettingsFile::open_at(path.clone()).unwrap();
        file.add(&entry);
        fs::write(&path, "# written meanwhile\n").unwrap();
        assert!(file.write().unwrap_err().to_string().contains("was changed meanwhile"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "# written meanwhile\n");
        let mut file = SettingsFile::open_at(path.clone()).unwrap();
        file.add(&entry);
        file.write().unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("# written meanwhile\n") && written.contains("ssh = \"box\""), "{written}");
    }

    #[test]
    fn comments_stay_when_a_machine_is_removed() {
        let text = "# mine\n[notify]\nrate_limit = \"off\"\n\n# the machines of the lab\n[[relay]]\n\
                    # within\nname = \"box\" # this one\nssh = \"box\"\n\n# the other\n[[relay]]\nssh = \"vm\"\n# end\n";
        let expected = "# mine\n[notify]\nrate_limit = \"off\"\n\n# the machines of the lab\n\n# the other\n\
                        [[relay]]\nssh = \"vm\"\n# end\n";
        assert_eq!(without_box(text).as_deref(), Some(expected));
        assert_eq!(without_box("[[relay]]\nname = \"box\"\nssh = \"box\"").as_deref(), Some(""));
        assert_eq!(without_box("relay = [{ name = \"box\", ssh = \"box\" }]\n"), None);
    }
}
