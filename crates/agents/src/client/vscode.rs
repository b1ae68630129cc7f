//! VS Code, which has no hooks: from its documents, never run. Its file of MCP servers is that of its page "MCP configuration
//! reference" (code.visualstudio.com/docs, a copy of 2026); where that is, other projects' instructions say.

use super::adapter::Adapter;
use super::settings::{ClientSettings, McpForm, SettingsFile};

/// VS Code. It has no hooks, only MCP servers.
pub(super) const ADAPTER: Adapter = Adapter::without_hooks(
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
