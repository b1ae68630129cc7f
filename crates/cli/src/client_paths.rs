//! Where the clients' settings are, according to the environment.

use std::path::PathBuf;

use ringer_agents::client::ClientPaths;
use ringer_platform::path_variable;

/// The places below a person's home, or where variables say they are.
pub(crate) fn client_paths(home: PathBuf, project: Option<PathBuf>) -> ClientPaths {
    ClientPaths {
        config_home: path_variable("XDG_CONFIG_HOME"),
        claude_dir: path_variable("CLAUDE_CONFIG_DIR"),
        codex_home: path_variable("CODEX_HOME"),
        copilot_home: path_variable("COPILOT_HOME"),
        project,
        ..ClientPaths::new(home)
    }
}
