//! Where the clients keep their settings, and which of them are installed.

use std::ffi::OsStr;
use std::path::PathBuf;

use ringer_platform::find_program;

use super::entries::Entries;
use super::error::SetupError;
use super::files::beside;
use crate::client::{Client, ClientPaths, FilePlace, Format, McpForm, SettingsFile};

/// For whom a setup is: the person everywhere, or one repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupScope {
    /// The person's own settings.
    User,
    /// The settings in the project directory only.
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

    /// The files that a setup of a client concerns.
    pub fn targets(&self, client: Client, scope: SetupScope) -> Result<Vec<Target>, SetupError> {
        let directory = self.directory(client, scope)?;
        let files = client.adapter().settings.files.iter();
        let files = files.filter(|file| scope == SetupScope::User || file.in_projects);
        let target = |file: &SettingsFile| {
            let path = |name: &str| match file.place {
                FilePlace::Inside => directory.join(name),
                FilePlace::Beside => directory.with_file_name(name),
                FilePlace::In(place) => place(self).join(name),
            };
            let usual = path(file.name);
            let other = file.other_name.map(path).filter(|other| other.exists() && !usual.exists());
            // A person's own servers only: those of a project are started for everyone who works in it.
            let mcp = file.mcp.filter(|_| scope == SetupScope::User);
            let path = other.unwrap_or(usual);
            let lock = file.lock.map(|end| beside(&path, "", end));
            Target { client, scope, format: file.format, mcp, path, lock }
        };
        Ok(files.map(target).collect())
    }
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
    /// The form of the MCP servers in it, where Ringer's may be among them.
    pub mcp: Option<McpForm>,
    /// Where it is, or will be.
    pub path: PathBuf,
    /// The directory that the client makes while it writes the file, if it does.
    pub lock: Option<PathBuf>,
}

impl Target {
    /// Whether it may have such entries.
    pub(crate) fn has(&self, entries: Entries) -> bool {
        (entries.has_hooks() && self.format != Format::McpServers)
            || (entries.has_mcp_server() && self.mcp.is_some())
    }

    /// Whether Ringer has nothing there but its MCP server.
    pub fn is_for_mcp_only(&self) -> bool {
        self.format == Format::McpServers
    }
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
