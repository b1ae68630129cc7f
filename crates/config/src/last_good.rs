//! The settings in force while the person edits the file.

use crate::Config;
use crate::problem::ConfigErrors;

/// What reading the file again brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The same settings.
    Unchanged,
    /// Other settings, which are in force now.
    Changed,
    /// The file is good again, and says what the last good one said.
    Mended,
    /// Problems. The last good settings stay in force.
    Broken(ConfigErrors),
}

/// The last settings that were good. A file that is broken for a moment changes nothing.
///
/// ```
/// use std::path::Path;
/// use ringer_config::{Change, LastGood, parse};
///
/// let read = |text| parse(Path::new("config.toml"), None, text);
/// let mut settings = LastGood::default();
/// assert_eq!(settings.reload(read("[notify]\nring = false")), Change::Changed);
/// assert!(matches!(settings.reload(read("[notify")), Change::Broken(_)));
/// assert!(!settings.config().notify.ring);
/// assert_eq!(settings.reload(read("[notify]\nring = false")), Change::Mended);
/// ```
#[derive(Debug, Clone, Default)]
pub struct LastGood {
    config: Config,
    errors: Option<ConfigErrors>,
}

impl LastGood {
    /// Begins with the first reading. A file that is broken from the start leaves the defaults.
    pub fn new(result: Result<Config, ConfigErrors>) -> Self {
        let mut settings = Self::default();
        settings.reload(result);
        settings
    }

    /// Takes what came of reading the file.
    pub fn reload(&mut self, result: Result<Config, ConfigErrors>) -> Change {
        match result {
            Err(errors) => {
                self.errors = Some(errors.clone());
                Change::Broken(errors)
            }
            Ok(config) => {
                let was_broken = self.errors.take().is_some();
                if config != self.config {
                    self.config = config;
                    Change::Changed
                } else if was_broken {
                    Change::Mended
                } else {
                    Change::Unchanged
                }
            }
        }
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What is wrong with the file as it is now.
    pub fn errors(&self) -> Option<&ConfigErrors> {
        self.errors.as_ref()
    }
}
