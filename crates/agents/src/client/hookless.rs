//! Clients without hooks. Neither was ever run with Ringer: both are written from documentation.

use super::adapter::Adapter;
use super::settings::{ClientSettings, FilePlace, Format, McpForm, SettingsFile};

/// aider runs one command when it waits, and that command is `ringer notify`.
pub(super) const AIDER: Adapter = Adapter::without_hooks(
    "aider",
    "aider",
    &["aider"],
    "aider takes no messages",
    ClientSettings {
        // Its private files are here; its settings file is beside it.
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

/// VS Code only has MCP servers. The form of the file is from "MCP configuration reference" (code.visualstudio.com/docs, a copy
/// of 2026); its place is from the instructions of other projects.
pub(super) const VSCODE: Adapter = Adapter::without_hooks(
    "vscode",
    "VS Code",
    &["code"],
    "VS Code takes no messages",
    ClientSettings {
        user_directory: |paths| {
            let directory = if cfg!(target_os = "macos") {
                paths.home.join("Library/Application Support")
            } else {
                paths.named_or_home(paths.config_home.as_ref(), ".config")
            };
            directory.join("Code/User")
        },
        project_directory: ".vscode",
        files: &[SettingsFile::with_mcp_servers(
            "mcp.json",
            McpForm::Command { servers: "servers", has_type: true },
        )],
        hooks: None,
        own_popups: None,
    },
);
