//! Checks the settings, and collects the programs that they name.

use std::path::Path;

use ringer_config::{Config, ConfigErrors, HookEntry, REPOSITORY_FILE, Trusted, Watch, load_repository};
use ringer_hub::trust_file;
use ringer_journal::Home;

use super::row::Row;
use crate::commands::config;
use crate::context;

/// A program that the settings name, and whether it may run.
#[derive(Debug)]
pub(super) enum NamedProgram {
    Hook { entry: HookEntry, trusted: bool },
    Watch { entry: Watch, trusted: bool },
}

#[derive(Debug)]
pub(super) struct Settings {
    /// The person's own settings; the defaults if they are broken, as for a hub that starts now.
    pub(super) config: Config,
    /// Hooks and watches: the person's, then those of the current repository.
    pub(super) programs: Vec<NamedProgram>,
    pub(super) rows: Vec<Row>,
}

impl Settings {
    pub(super) fn read(home: Option<&Home>) -> Self {
        let environment = config::environment();
        let mut rows = Vec::new();
        let config = match config::user_config(&environment) {
            None => {
                rows.push(Row::ok("config", "no config directory is known; using defaults"));
                Config::default()
            }
            Some((path, Ok(config))) => {
                match config::left_out(&path, &environment) {
                    Some(errors) => rows.extend(left_out(errors)),
                    None => rows.push(fine(&path)),
                }
                config
            }
            Some((_, Err(errors))) => {
                rows.extend(problems(errors));
                Config::default()
            }
        };
        let mut programs: Vec<NamedProgram> =
            config.hooks.iter().cloned().map(|entry| NamedProgram::Hook { entry, trusted: true }).collect();
        programs
            .extend(config.watches.iter().cloned().map(|entry| NamedProgram::Watch { entry, trusted: true }));
        if let Some(root) = context::repository().map(|repository| repository.worktree) {
            match load_repository(&root, environment.home.as_deref()) {
                Ok(settings) => {
                    if root.join(REPOSITORY_FILE).exists() {
                        rows.push(fine(&settings.path));
                    }
                    let trusted = trusted(home, &mut rows);
                    let hooks = settings.hooks.into_iter();
                    programs.extend(
                        hooks.map(|entry| NamedProgram::Hook { trusted: trusted.is_trusted(&entry), entry }),
                    );
                    let watches = settings.watches.into_iter();
                    programs.extend(
                        watches
                            .map(|entry| NamedProgram::Watch { trusted: trusted.is_trusted(&entry), entry }),
                    );
                }
                Err(errors) => rows.extend(problems(errors)),
            }
        }
        Self { config, programs, rows }
    }
}

fn fine(path: &Path) -> Row {
    let there = if path.exists() { "ok" } else { "no config file; using defaults" };
    Row::ok("config", format!("{}: {there}", path.display()))
}

/// Wrong entries of `[keys]` and `[theme]`. The rest of the file applies.
fn left_out(errors: ConfigErrors) -> impl Iterator<Item = Row> {
    errors.0.into_iter().map(|error| {
        let fix = error.hint.clone().unwrap_or_else(|| "ringer config check".to_owned());
        Row::warn("config", format!("{error}; it is left out, and the rest of the file counts")).fix(fix)
    })
}

fn problems(errors: ConfigErrors) -> impl Iterator<Item = Row> {
    errors.0.into_iter().map(|error| {
        let fix = error.hint.clone().unwrap_or_else(|| "ringer config show --default".to_owned());
        Row::broken("config", error.to_string()).fix(fix)
    })
}

/// Returns the trusted entries; none if the file cannot be read.
fn trusted(home: Option<&Home>, rows: &mut Vec<Row>) -> Trusted {
    let Some(home) = home else { return Trusted::default() };
    Trusted::load(&trust_file(home)).unwrap_or_else(|error| {
        rows.push(Row::broken("trust", error.to_string()).fix("ringer trust --list"));
        Trusted::default()
    })
}
