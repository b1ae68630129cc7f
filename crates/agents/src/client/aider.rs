//! aider, which has no hooks.

use super::adapter::Adapter;
use super::settings::{ClientSettings, FilePlace, Format, SettingsFile};

/// aider. It has no hooks: it runs one command when it waits, and that command is `ringer notify`.
pub(super) const ADAPTER: Adapter = Adapter::without_hooks(
    "aider",
    "aider",
    &["aider"],
    "aider takes no messages",
    ClientSettings {
        // What it keeps for itself; its settings are beside it.
        user_directory: |paths| paths.home.join(".aider"),
        project_directory: ".aider",
        files: &[SettingsFile {
            place: FilePlace::Beside,
            ..SettingsFile::new(".aider.conf.yml", Format::AiderConf)
        }],
        hooks: None,
        own_popups: None,
    },
);
