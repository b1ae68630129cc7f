//! The machines that are linked to this one, as the settings have them.

use ringer_config::{Config, RelayEntry};
use ringer_core::Scope;
use ringer_journal::{Home, Journal};
use ringer_term::sanitise_line;

use crate::commands::config;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::guard;

/// The person's settings; the defaults where there is no file.
pub(crate) fn settings() -> Result<Config, Failure> {
    match config::user_config(&config::environment()) {
        None => Ok(Config::default()),
        Some((_, Ok(config))) => Ok(config),
        Some((path, Err(errors))) => config::report_and_fail(&path, errors),
    }
}

/// The machines that are set. None where the settings cannot be read: a command that only looks goes on without them.
pub(crate) fn machines() -> Vec<RelayEntry> {
    let read = config::user_config(&config::environment());
    read.and_then(|(_, config)| config.ok()).map(|config| config.relays).unwrap_or_default()
}

/// What is wrong with a link, for a command.
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
