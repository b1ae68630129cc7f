//! The settings of a client: where its files are, and the form of its hook file.

use std::path::{Path, PathBuf};

use crate::setup::{Dialect, Obstacle};

/// The directories that settings are found in. The caller reads the environment; nothing here does.
#[derive(Debug, Clone)]
pub struct ClientPaths {
    /// The person's home directory.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, used by opencode; default: `~/.config`.
    pub config_home: Option<PathBuf>,
    /// `$CLAUDE_CONFIG_DIR`; default: `~/.claude`.
    pub claude_dir: Option<PathBuf>,
    /// `$CODEX_HOME`; default: `~/.codex`.
    pub codex_home: Option<PathBuf>,
    /// `$COPILOT_HOME`; default: `~/.copilot`.
    pub copilot_home: Option<PathBuf>,
    /// The root of the repository, for [`SetupScope::Project`](crate::setup::SetupScope::Project).
    pub project: Option<PathBuf>,
    /// The administrator's settings for Claude Code on this machine.
    pub claude_managed: PathBuf,
}

/// The path of an administrator's settings for Claude Code.
const CLAUDE_MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

impl ClientPaths {
    /// The default paths below a home directory.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            home,
            config_home: None,
            claude_dir: None,
            codex_home: None,
            copilot_home: None,
            project: None,
            claude_managed: CLAUDE_MANAGED.into(),
        }
    }

    /// The directory from a variable, or the one of this name in the home directory.
    pub(crate) fn named_or_home(&self, named: Option<&PathBuf>, name: &str) -> PathBuf {
        named.cloned().unwrap_or_else(|| self.home.join(name))
    }
}

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// JSON with comments and a `hooks` object.
    Hooks,
    /// Codex's `config.toml`; only `notify` is changed.
    CodexConfig,
    /// opencode's plugin, which belongs to Ringer.
    OpencodePlugin,
    /// A file in which Ringer has only its MCP server.
    McpServers,
}

/// The form of an MCP server in a client's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpForm {
    /// In JSON, as a member of an object: `{"command": PROGRAM, "args": ["mcp"]}`.
    Command {
        /// The name of the object.
        servers: &'static str,
        /// True if an entry has `"type": "stdio"`.
        has_type: bool,
    },
    /// In JSON, as a member of an object: `{"type": "local", "command": [PROGRAM, "mcp"], "enabled": true}`.
    CommandList {
        /// The name of the object.
        servers: &'static str,
    },
    /// In TOML: the table `mcp_servers.ringer`.
    Table,
}

/// The settings of one client.
#[derive(Debug)]
pub(crate) struct ClientSettings {
    /// The directory of the person's settings.
    pub(crate) user_directory: fn(&ClientPaths) -> PathBuf,
    /// The directory of settings in a project.
    pub(crate) project_directory: &'static str,
    /// The files that setup may change.
    pub(crate) files: &'static [SettingsFile],
    pub(crate) hooks: Option<HookFile>,
    /// The setting in the hook file that turns off the client's own popups, if it shows any.
    pub(crate) own_popups: Option<PopupSetting>,
}

/// A setting that turns off a client's own popups.
#[derive(Debug)]
pub(crate) struct PopupSetting {
    pub(crate) key: &'static str,
    /// The value that turns them off.
    pub(crate) off: &'static str,
    pub(crate) terminals: &'static str,
}

/// The place of a settings file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FilePlace {
    /// In the settings directory.
    Inside,
    /// In another directory.
    In(fn(&ClientPaths) -> PathBuf),
}

/// A file that setup may change.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    /// Projects have this file as well.
    pub(crate) in_projects: bool,
    pub(crate) place: FilePlace,
    /// An alternative name, used if only a file of that name exists.
    pub(crate) other_name: Option<&'static str>,
    /// The form of MCP servers, if the client has them in this file.
    pub(crate) mcp: Option<McpForm>,
    /// The suffix of the lock directory that the client creates while it writes the file.
    pub(crate) lock: Option<&'static str>,
}

impl SettingsFile {
    /// A file that the person and projects have.
    pub(crate) const fn new(name: &'static str, format: Format) -> Self {
        let place = FilePlace::Inside;
        Self { name, format, in_projects: true, place, other_name: None, mcp: None, lock: None }
    }

    /// A file that only the person has, in which only the MCP server is Ringer's.
    pub(crate) const fn with_mcp_servers(name: &'static str, form: McpForm) -> Self {
        Self { in_projects: false, mcp: Some(form), ..Self::new(name, Format::McpServers) }
    }
}

/// The form of a hook file.
#[derive(Debug)]
pub(crate) struct HookFile {
    /// The events that Ringer has an entry for.
    pub(crate) events: &'static [&'static str],
    pub(crate) entry: HookEntryForm,
    /// How to detect that the client does not run its hooks, if known.
    pub(crate) check: Option<HookCheck>,
    /// What the person has to do after the file was changed, and why.
    pub(crate) after_change: Option<NextStep>,
}

/// How to detect that a client does not run the hooks in its file.
#[derive(Debug)]
pub(crate) struct HookCheck {
    /// The JSON dialect that the client accepts.
    pub(crate) dialect: Dialect,
    /// Looks for a reason in a file that the client accepts.
    pub(crate) find: fn(&InstalledHooks) -> Option<Obstacle>,
}

/// A client's hook file, and the other facts that a check may need.
pub(crate) struct InstalledHooks<'a> {
    /// The hook file, and the same path with links resolved.
    pub(crate) path: &'a Path,
    pub(crate) resolved: &'a Path,
    /// The content of the hook file.
    pub(crate) text: &'a str,
    pub(crate) paths: &'a ClientPaths,
    /// The repository that the client would run in.
    pub(crate) repository: Option<&'a Path>,
    /// Reads another file.
    pub(crate) read: &'a dyn Fn(&Path) -> Option<String>,
    /// Returns true if a shell line is Ringer's for this client.
    pub(crate) is_ours: &'a dyn Fn(&str) -> bool,
}

/// A fact, and what to do about it.
#[derive(Debug)]
pub(crate) struct NextStep {
    pub(crate) what: &'static str,
    pub(crate) hint: &'static str,
}

/// The form of an entry in a hook file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HookEntryForm {
    /// An event has groups of handlers: `[{"hooks": [{"type": "command", "command": …, "timeout": …}]}]`.
    Group {
        /// The name of Ringer's handler, if the client shows one.
        name: Option<&'static str>,
        /// Timeout units per second: 1 for seconds, 1000 for milliseconds.
        timeout_per_second: u32,
    },
    /// An event has the handlers directly, in a file with a version: `[{"type": "command", "bash": …, "timeoutSec": …}]`.
    Flat {
        /// The member with the shell line.
        line: &'static str,
        /// The member with the timeout, in seconds.
        timeout: &'static str,
    },
}
