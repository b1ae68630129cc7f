//! Which tools agents run right now: an agent whose tool runs for long is not stuck.
//!
//! One empty file for each call, named `AGENT.CALL`. Not in the database: a write for every tool call would cost the agents
//! more than anything else that Ringer does. What a killed agent leaves is removed when its next session begins.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use ringer_core::message::Agent;

use crate::home::Home;
use crate::runtime_directory::{RuntimeDirectories, TOOLS, file_name_part, hash, make_private};

/// The tools that run.
#[derive(Debug)]
pub struct RunningTools {
    directories: RuntimeDirectories,
}

impl RunningTools {
    /// Those of the agents of a home.
    pub fn of(home: &Home) -> Self {
        Self { directories: RuntimeDirectories::of(home, TOOLS) }
    }

    /// A call begins. Where no file can be made, an agent may count as stuck while its tool runs.
    pub fn begin(&self, agent: &Agent, call: &str) {
        for directory in &self.directories.written {
            let create = || {
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .mode(0o600)
                    .open(directory.join(name(agent, call)))
            };
            // Most of the time the directory is there.
            if create().is_ok() || (make_private(directory).is_ok() && create().is_ok()) {
                return;
            }
        }
    }

    /// A call has ended.
    pub fn end(&self, agent: &Agent, call: &str) {
        for directory in self.directories.all() {
            let _ = fs::remove_file(directory.join(name(agent, call)));
        }
    }

    /// No call of the agent runs any more: its turn is over, or a new one begins.
    pub fn end_all(&self, agent: &Agent) {
        for path in self.files_of(agent) {
            let _ = fs::remove_file(path);
        }
    }

    /// Whether a tool of the agent runs.
    pub fn has_any(&self, agent: &Agent) -> bool {
        !self.files_of(agent).is_empty()
    }

    fn files_of(&self, agent: &Agent) -> Vec<PathBuf> {
        let start = format!("{}.", file_name_part(agent));
        let own = self.directories.names().filter(|(_, name)| name.starts_with(&start));
        own.map(|(directory, name)| directory.join(name)).collect()
    }
}

fn name(agent: &Agent, call: &str) -> String {
    format!("{}.{:016x}", file_name_part(agent), hash(call.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_runs_from_its_beginning_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        for runtime in [None, Some(directory.path().to_owned())] {
            let home = Home::new(directory.path().join("home")).with_runtime(runtime);
            let tools = RunningTools::of(&home);
            let (one, other) = (Agent::new("claude-1").unwrap(), Agent::new("claude-12").unwrap());
            assert!(!tools.has_any(&one));
            tools.end(&one, "never begun");
            tools.begin(&one, "a/../b");
            tools.begin(&one, "c");
            tools.begin(&one, "c");
            tools.begin(&other, "c");
            tools.end(&one, "c");
            assert!(tools.has_any(&one) && tools.has_any(&other));
            tools.end(&one, "a/../b");
            assert!(!tools.has_any(&one) && tools.has_any(&other), "ids that begin alike are two");
            tools.end_all(&other);
            assert!(!tools.has_any(&other));
        }
    }

    #[test]
    fn where_nothing_can_be_written_nothing_runs() {
        let tools = RunningTools::of(&Home::new("/proc/nowhere"));
        let agent = Agent::new("a").unwrap();
        tools.begin(&agent, "c");
        assert!(!tools.has_any(&agent));
    }
}
