//! Locates clients' settings files, detects installed clients, and finds out why a client does not run the hooks in its files.
//!
//! The reasons were observed with the real clients: Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0. Clients that are
//! supported only from documentation have no checks.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use ringer_platform::find_program;

use super::entries::Entries;
use super::error::SetupError;
use super::files::sibling_path;
use crate::client::{Client, ClientPaths, FilePlace, Format, InstalledHooks, McpForm, SettingsFile};
use crate::setup::error::{Obstacle, ObstacleKind, SetupNote};
use crate::setup::files::read;
use crate::setup::jsonc::JsoncError;

/// The scope of a setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupScope {
    /// The person's settings, which apply everywhere.
    User,
    /// The settings in one project directory.
    Project,
}

impl ClientPaths {
    /// The directory of a client's settings.
    pub fn directory(&self, client: Client, scope: SetupScope) -> Result<PathBuf, SetupError> {
        let settings = &client.adapter().settings;
        match scope {
            SetupScope::User => Ok((settings.user_directory)(self)),
            SetupScope::Project => {
                let project = self.project.as_ref().ok_or(SetupError::NoProject)?;
                Ok(project.join(settings.project_directory))
            }
        }
    }

    /// The files that a setup of a client may change.
    pub fn targets(&self, client: Client, scope: SetupScope) -> Result<Vec<Target>, SetupError> {
        let directory = self.directory(client, scope)?;
        let files = client.adapter().settings.files.iter();
        let files = files.filter(|file| scope == SetupScope::User || file.in_projects);
        let target = |file: &SettingsFile| {
            let path = |name: &str| match file.place {
                FilePlace::Inside => directory.join(name),
                FilePlace::In(place) => place(self).join(name),
            };
            let usual = path(file.name);
            let other = file.other_name.map(path).filter(|other| other.exists() && !usual.exists());
            // Only in the person's settings: servers of a project start for everyone who works in it.
            let mcp = file.mcp.filter(|_| scope == SetupScope::User);
            let path = other.unwrap_or(usual);
            let lock = file.lock.map(|end| sibling_path(&path, "", end));
            Target { client, scope, format: file.format, mcp, path, lock }
        };
        Ok(files.map(target).collect())
    }
}

/// A settings file of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The client.
    pub client: Client,
    /// The scope.
    pub scope: SetupScope,
    /// The format of the file.
    pub format: Format,
    /// The form of MCP servers in it, if Ringer's may be among them.
    pub mcp: Option<McpForm>,
    /// The path, which may not exist yet.
    pub path: PathBuf,
    /// The lock directory that the client creates while it writes the file.
    pub lock: Option<PathBuf>,
}

impl Target {
    /// Returns true if the file may contain these entries.
    pub(crate) fn has(&self, entries: Entries) -> bool {
        (entries.has_hooks() && self.format != Format::McpServers)
            || (entries.has_mcp_server() && self.mcp.is_some())
    }

    /// Returns true if only Ringer's MCP server may be in it.
    pub fn is_for_mcp_only(&self) -> bool {
        self.format == Format::McpServers
    }
}

/// A client as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedClient {
    /// The client.
    pub client: Client,
    /// Its program, if found in `PATH`.
    pub program: Option<PathBuf>,
    /// The directory of the person's settings.
    pub directory: PathBuf,
    /// Whether that directory exists.
    pub has_directory: bool,
}

impl DetectedClient {
    /// Returns true if a setup makes sense: the client can be run, or has been.
    pub fn is_installed(&self) -> bool {
        self.program.is_some() || self.has_directory
    }
}

/// Detects every supported client. `search` is the value of `PATH`.
pub fn find(search: &OsStr, paths: &ClientPaths) -> Vec<DetectedClient> {
    let found = Client::ALL.into_iter().filter_map(|client| {
        let directory = paths.directory(client, SetupScope::User).ok()?;
        let has_directory = directory.is_dir();
        let program = client.programs().iter().find_map(|name| find_program(search, name));
        Some(DetectedClient { client, program, directory, has_directory })
    });
    found.collect()
}

/// Returns why a client does not run the hooks of this scope; empty if all seems well. `repository` is the one that the client
/// would run in, whose settings also count. An unreadable file is no obstacle here: setup and doctor report it.
pub fn obstacles(
    client: Client,
    scope: SetupScope,
    paths: &ClientPaths,
    repository: Option<&Path>,
) -> Vec<Obstacle> {
    find_obstacle(client, scope, paths, repository).into_iter().collect()
}

fn find_obstacle(
    client: Client,
    scope: SetupScope,
    paths: &ClientPaths,
    repository: Option<&Path>,
) -> Option<Obstacle> {
    let check = client.adapter().settings.hooks.as_ref()?.check.as_ref()?;
    let target = paths.targets(client, scope).ok()?.into_iter().next()?;
    let text = read_text(&target.path)?;
    if let Some(error) = check.dialect.refuses(&text) {
        return Some(unreadable(client, &target.path, &error));
    }
    let resolved = fs::canonicalize(&target.path).unwrap_or_else(|_| target.path.clone());
    (check.find)(&InstalledHooks {
        path: &target.path,
        resolved: &resolved,
        text: &text,
        paths,
        repository: if scope == SetupScope::Project { paths.project.as_deref() } else { repository },
        read: &read_text,
        is_ours: &|line| client.owns(line),
    })
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()??).ok()
}

fn unreadable(client: Client, path: &Path, error: &JsoncError) -> Obstacle {
    let name = client.adapter().display_name;
    let what = format!("{name} does not read {}: {error}", path.display());
    let hint = format!("take it out of {}; {name} wants plain JSON", path.display());
    Obstacle { kind: ObstacleKind::Unread, note: SetupNote { what, hint } }
}
