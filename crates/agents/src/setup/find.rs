//! Where the clients keep their settings, and which of them are installed.

use std::ffi::OsStr;
use std::path::PathBuf;

use ringer_platform::find_program;

use super::error::SetupError;
use crate::client::Client;

/// For whom a setup is: the person everywhere, or one repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupScope {
    /// The person's own settings.
    User,
    /// The settings in the project directory only.
    Project,
}

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
    /// The root of the repository, for [`SetupScope::Project`].
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

    /// The directory of a client's settings.
    pub fn directory(&self, client: Client, scope: SetupScope) -> Result<PathBuf, SetupError> {
        if scope == SetupScope::Project {
            let project = self.project.as_ref().ok_or(SetupError::NoProject)?;
            return Ok(match client {
                Client::Copilot => project.join(".github"),
                _ => project.join(format!(".{client}")),
            });
        }
        let below_home = |name: &str| self.home.join(name);
        Ok(match client {
            Client::Claude => self.claude_dir.clone().unwrap_or_else(|| below_home(".claude")),
            Client::Codex => self.codex_home.clone().unwrap_or_else(|| below_home(".codex")),
            Client::Gemini => below_home(".gemini"),
            Client::Cursor => below_home(".cursor"),
            Client::Copilot => self.copilot_home.clone().unwrap_or_else(|| below_home(".copilot")),
            // What it keeps for itself; its settings lie beside it.
            Client::Aider => below_home(".aider"),
            Client::Opencode => {
                self.config_home.clone().unwrap_or_else(|| below_home(".config")).join("opencode")
            }
        })
    }

    /// The files that a setup of a client concerns.
    pub fn targets(&self, client: Client, scope: SetupScope) -> Result<Vec<Target>, SetupError> {
        let directory = self.directory(client, scope)?;
        let target = |name: &str, format| Target { client, scope, format, path: directory.join(name) };
        Ok(match (client, scope) {
            (Client::Claude | Client::Gemini, _) => vec![target("settings.json", Format::Hooks)],
            // Codex reads `notify` from the person's own file only.
            (Client::Codex, SetupScope::Project) | (Client::Cursor, _) => {
                vec![target("hooks.json", Format::Hooks)]
            }
            (Client::Codex, SetupScope::User) => {
                vec![target("hooks.json", Format::Hooks), target("config.toml", Format::CodexConfig)]
            }
            (Client::Opencode, _) => vec![target("plugins/ringer.js", Format::OpencodePlugin)],
            // It reads every file of that directory; this one is named after Ringer.
            (Client::Copilot, _) => vec![target("hooks/ringer.json", Format::Hooks)],
            (Client::Aider, _) => {
                let path = directory.with_file_name(".aider.conf.yml");
                vec![Target { client, scope, format: Format::AiderConf, path }]
            }
        })
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
}

/// One file of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whose file it is.
    pub client: Client,
    /// For whom.
    pub scope: SetupScope,
    /// How it is written.
    pub format: Format,
    /// Where it is, or will be.
    pub path: PathBuf,
}

/// What is known of a client on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedClient {
    /// The client.
    pub client: Client,
    /// Its program, if it is on the search path.
    pub program: Option<PathBuf>,
    /// The directory of the person's settings for it.
    pub directory: PathBuf,
    /// Whether that directory is there.
    pub has_directory: bool,
}

impl DetectedClient {
    /// Whether a setup makes sense: the program can be run, or it has been.
    pub fn is_installed(&self) -> bool {
        self.program.is_some() || self.has_directory
    }
}

/// Every supported client, with what is installed of it. `search` is the value of `PATH`.
pub fn find(search: &OsStr, places: &ClientPaths) -> Vec<DetectedClient> {
    let found = Client::ALL.into_iter().filter_map(|client| {
        let directory = places.directory(client, SetupScope::User).ok()?;
        let has_directory = directory.is_dir();
        let program = client.programs().iter().find_map(|name| find_program(search, name));
        Some(DetectedClient { client, program, directory, has_directory })
    });
    found.collect()
}
