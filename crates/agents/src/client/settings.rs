//! What a client's settings look like: where its files are, and the form of its hook file.

use std::path::{Path, PathBuf};

use crate::setup::{Dialect, Obstacle};

/// The directories that decide where settings are. The caller reads the environment; nothing here does.
#[derive(Debug, Clone)]
pub struct ClientPaths {
    /// The person's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, for opencode; else `.config` in the home.
    pub config_home: Option<PathBuf>,
    /// `$CLAUDE_CONFIG_DIR`; else `.claude` in the home.
    pub claude_dir: Option<PathBuf>,
    /// `$CODEX_HOME`; else `.codex` in the home.
    pub codex_home: Option<PathBuf>,
    /// `$COPILOT_HOME`; else `.copilot` in the home.
    pub copilot_home: Option<PathBuf>,
    /// The root of the repository, for [`SetupScope::Project`](crate::setup::SetupScope::Project).
    pub project: Option<PathBuf>,
    /// What an administrator sets for Claude Code on this machine.
    pub claude_managed: PathBuf,
}

/// Where Claude Code looks for an administrator's settings.
const CLAUDE_MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

impl ClientPaths {
    /// The usual places below a home.
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

    /// The directory that a variable names, or the one of this name in the home.
    pub(crate) fn named_or_home(&self, named: Option<&PathBuf>, name: &str) -> PathBuf {
        named.cloned().unwrap_or_else(|| self.home.join(name))
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// JSON with comments and a `hooks` object.
    Hooks,
    /// Codex's `config.toml`, of which only `notify` is changed.
    CodexConfig,
    /// opencode's plugin, a file that Ringer owns.
    OpencodePlugin,
    /// aider's `.aider.conf.yml`, of which only the notifications are changed.
    AiderConf,
    /// A file in which Ringer has its MCP server at most.
    McpServers,
}

/// How a client writes down an MCP server that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpForm {
    /// In JSON, as a member of an object: `{"command": PROGRAM, "args": ["mcp"]}`.
    Command {
        /// The name of the object.
        servers: &'static str,
        /// Whether an entry says `"type": "stdio"`.
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
    /// The directory of the person's own settings.
    pub(crate) user_directory: fn(&ClientPaths) -> PathBuf,
    /// The same in a project.
    pub(crate) project_directory: &'static str,
    /// The files that a setup concerns, below the directory.
    pub(crate) files: &'static [SettingsFile],
    /// The hook file, for a client that has one.
    pub(crate) hooks: Option<HookFile>,
    /// The setting in the hook file that turns off popups of its own, for a client that shows any.
    pub(crate) own_popups: Option<PopupSetting>,
}

/// A setting that turns off the popups that a client shows itself.
#[derive(Debug)]
pub(crate) struct PopupSetting {
    pub(crate) key: &'static str,
    /// Its value when they are off.
    pub(crate) off: &'static str,
    /// The terminals in which the client shows popups.
    pub(crate) terminals: &'static str,
}

/// Where a file is that a setup concerns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FilePlace {
    /// In the directory of the settings.
    Inside,
    /// Beside it.
    Beside,
    /// In another directory of the person's.
    In(fn(&ClientPaths) -> PathBuf),
}

/// A file that a setup concerns.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    /// Whether a project has it as well.
    pub(crate) in_projects: bool,
    /// Where it is.
    pub(crate) place: FilePlace,
    /// Another name that the client reads it under; it counts if only a file of that name is there.
    pub(crate) other_name: Option<&'static str>,
    /// The form of the person's MCP servers, if the client has them in this file.
    pub(crate) mcp: Option<McpForm>,
    /// What follows its name in that of the directory that the client makes while it writes the file.
    pub(crate) lock: Option<&'static str>,
}

impl SettingsFile {
    /// A file in the directory, of the person and of projects.
    pub(crate) const fn new(name: &'static str, format: Format) -> Self {
        let place = FilePlace::Inside;
        Self { name, format, in_projects: true, place, other_name: None, mcp: None, lock: None }
    }

    /// A file of the person's in the directory, of which only the MCP server is Ringer's.
    pub(crate) const fn with_mcp_servers(name: &'static str, form: McpForm) -> Self {
        Self { in_projects: false, mcp: Some(form), ..Self::new(name, Format::McpServers) }
    }
}

/// The form of a hook file.
#[derive(Debug)]
pub(crate) struct HookFile {
    /// The events for which Ringer has an entry.
    pub(crate) events: &'static [&'static str],
    /// The form of an entry.
    pub(crate) entry: HookEntryForm,
    /// How to find out that the client does not run its hooks; `None` where that is not known.
    pub(crate) check: Option<HookCheck>,
    /// What a person has to do after the file was changed, and why.
    pub(crate) after_change: Option<NextStep>,
}

/// How to find out that a client does not run the hooks in its file.
#[derive(Debug)]
pub(crate) struct HookCheck {
    /// The JSON that it takes.
    pub(crate) dialect: Dialect,
    /// Looks for a reason in a file that it takes.
    pub(crate) find: fn(&InstalledHooks) -> Option<Obstacle>,
}

/// A hook file of one client, and what a check may look at besides.
pub(crate) struct InstalledHooks<'a> {
    /// The hook file, and the same with links resolved.
    pub(crate) path: &'a Path,
    pub(crate) resolved: &'a Path,
    /// What is in it.
    pub(crate) text: &'a str,
    pub(crate) paths: &'a ClientPaths,
    /// The repository that the client would run in.
    pub(crate) repository: Option<&'a Path>,
    /// Reads another file of the client.
    pub(crate) read: &'a dyn Fn(&Path) -> Option<String>,
    /// Whether a shell line is one of Ringer's for this client.
    pub(crate) is_ours: &'a dyn Fn(&str) -> bool,
}

/// What is the case, and what to do about it.
#[derive(Debug)]
pub(crate) struct NextStep {
    pub(crate) what: &'static str,
    pub(crate) hint: &'static str,
}

/// The form of one entry of a hook file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HookEntryForm {
    /// An event has groups of handlers: `[{"hooks": [{"type": "command", "command": …, "timeout": …}]}]`.
    Group {
        /// The name of Ringer's handler, where the client shows one.
        name: Option<&'static str>,
        /// What the timeout counts: 1 for seconds, 1000 for milliseconds.
        timeout_per_second: u32,
    },
    /// An event has the handlers themselves, in a file with a version: `[{"command": …, "timeout": …}]`.
    Flat {
        /// Whether a handler says `"type": "command"`.
        has_type: bool,
        /// The member that has the shell line.
        line: &'static str,
        /// The member that has the timeout, in seconds.
        timeout: &'static str,
    },
}
