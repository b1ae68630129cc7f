//! The `[[relay]]` tables in the person's own file. What else is in it stays as it is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringer_config::{RelayEntry, user_path};
use ringer_platform::{Durability, replace_file};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::commands::config::environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::short_path;

/// The person's file as it can be changed.
pub(super) struct SettingsFile {
    path: PathBuf,
    document: DocumentMut,
}

impl SettingsFile {
    pub(super) fn open() -> Result<Self, Failure> {
        let path = user_path(&environment()).ok_or_else(|| {
            Failure::new(Exit::Config, "no place for settings: HOME is not set")
                .hint("HOME=/your/home ringer …")
        })?;
        // A link stays a link: what it leads to is changed.
        let path = path.canonicalize().unwrap_or(path);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::open(&short_path(&path), error)),
        };
        let document = text.parse::<DocumentMut>().map_err(|error| {
            Failure::new(Exit::Config, format!("{} is not valid", short_path(&path)))
                .because(error.message().to_owned())
                .hint("ringer config check")
        })?;
        Ok(Self { path, document })
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
        if !entry.command.is_empty() {
            table.insert("command", value(entry.command.iter().collect::<Array>()));
        }
        table.insert("may_answer", value(entry.may_answer));
        if let Some(tables) = self.tables() {
            tables.push(table);
        }
    }

    /// Takes a machine out. Gives whether it was there.
    pub(super) fn remove(&mut self, is_it: impl Fn(&Table) -> bool) -> bool {
        let Some(tables) = self.tables() else { return false };
        let before = tables.len();
        tables.retain(|table| !is_it(table));
        let removed = tables.len() < before;
        if tables.is_empty() {
            self.document.remove("relay");
        }
        removed
    }

    fn tables(&mut self) -> Option<&mut ArrayOfTables> {
        let item = self.document.entry("relay").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        if !item.is_array_of_tables() {
            // Written in one line, or the empty `[relay]` of an older example.
            let before = std::mem::take(item);
            *item = Item::ArrayOfTables(before.into_array_of_tables().unwrap_or_default());
        }
        item.as_array_of_tables_mut()
    }

    pub(super) fn write(&self) -> Outcome {
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
