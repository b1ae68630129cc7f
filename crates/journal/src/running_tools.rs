//! The tool calls that agents are running: an agent with a long-running tool is not stuck, and lists show what it does.
//!
//! Each call is one small file, `AGENT.CALL`, that describes the call in a line. The database is not used because a write for
//! every tool call would cost agents more than anything else Ringer does. Files of a killed agent are removed when its next
//! session starts.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringer_core::message::Agent;

use crate::home::{Home, RuntimeDirectories, TOOLS, file_name_part, hash, make_private};

/// Longest stored description of a call, in bytes. A list row shows about as much.
const MAX_TEXT: usize = 200;

/// The running tool calls of all agents.
#[derive(Debug)]
pub struct RunningTools {
    directories: RuntimeDirectories,
}

/// A snapshot of the newest running call of each agent.
#[derive(Debug, Clone, Default)]
pub struct NewestCalls {
    /// Start time and file, keyed by the agent's part of the file name.
    files: HashMap<String, (SystemTime, PathBuf)>,
}

impl NewestCalls {
    /// The client's description of the agent's newest call. `None` if no call is running, or it has no description.
    pub fn text(&self, agent: &Agent) -> Option<String> {
        let (_, path) = self.files.get(&file_name_part(agent))?;
        let mut bytes = Vec::new();
        // The call may have ended since.
        File::open(path).ok()?.take(MAX_TEXT as u64).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.is_empty())
    }
}

impl RunningTools {
    /// The running calls of a home's agents.
    pub fn of(home: &Home) -> Self {
        Self { directories: RuntimeDirectories::of(home, TOOLS) }
    }

    /// Records the start of a call with its description. If no file can be created, the agent may count as stuck meanwhile.
    pub fn begin(&self, agent: &Agent, call: &str, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        for directory in &self.directories.written {
            let create = || -> io::Result<()> {
                let mut file = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(directory.join(name(agent, call)))?;
                // On a full disk, an empty file still shows that a tool is running.
                let _ = file.write_all(text.as_bytes());
                Ok(())
            };
            // Usually the directory exists.
            if create().is_ok() || (make_private(directory).is_ok() && create().is_ok()) {
                return;
            }
        }
    }

    /// Records the end of a call.
    pub fn end(&self, agent: &Agent, call: &str) {
        for directory in self.directories.all() {
            let _ = fs::remove_file(directory.join(name(agent, call)));
        }
    }

    /// Ends all calls of an agent, when its turn ends or a new one starts.
    pub fn end_all(&self, agent: &Agent) {
        for path in self.files_of(agent) {
            let _ = fs::remove_file(path);
        }
    }

    /// Returns true if the agent is running a tool.
    pub fn has_any(&self, agent: &Agent) -> bool {
        !self.files_of(agent).is_empty()
    }

    /// The newest call of every agent.
    pub fn newest(&self) -> NewestCalls {
        let mut newest = NewestCalls::default();
        for (directory, name) in self.directories.files() {
            let Some((agent, _)) = name.rsplit_once('.') else { continue };
            let path = directory.join(&name);
            let Ok(begun) = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()) else {
                continue;
            };
            let known = newest.files.get(agent);
            if known.is_none_or(|(before, _)| *before <= begun) {
                newest.files.insert(agent.to_owned(), (begun, path));
            }
        }
        newest
    }

    /// The existing directories to watch for the start and end of calls. Creates the one that hooks write to, so that it can be
    /// watched before the first call.
    pub fn watched_directories(&self) -> impl Iterator<Item = &Path> {
        let _ = self.directories.written.iter().find(|directory| make_private(directory).is_ok());
        self.directories.all().map(PathBuf::as_path).filter(|directory| directory.is_dir())
    }

    fn files_of(&self, agent: &Agent) -> Vec<PathBuf> {
        let start = format!("{}.", file_name_part(agent));
        let own = self.directories.files().filter(|(_, name)| name.starts_with(&start));
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
            tools.begin(&one, "a/../b", "Bash: make");
            tools.begin(&one, "c", "");
            tools.begin(&one, "c", "");
            tools.begin(&other, "c", "Edit: a.rs");
            tools.end(&one, "c");
            assert!(tools.has_any(&one) && tools.has_any(&other));
            tools.end(&one, "a/../b");
            assert!(!tools.has_any(&one) && tools.has_any(&other), "ids that begin alike are two");
            tools.end_all(&other);
            assert!(!tools.has_any(&other));
        }
    }

    #[test]
    fn an_agent_does_what_it_began_last() {
        let directory = tempfile::tempdir().unwrap();
        let tools = RunningTools::of(&Home::new(directory.path()));
        let (agent, other) = (Agent::new("claude-1").unwrap(), Agent::new("x/../y").unwrap());
        let text = |agent: &Agent| tools.newest().text(agent);
        let set_begin = |call: &str, seconds: u64| {
            let path = directory.path().join(TOOLS).join(name(&agent, call));
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        assert_eq!(text(&agent), None);
        tools.begin(&agent, "1", "Agent: review");
        tools.begin(&agent, "2", "Bash: cargo test");
        tools.begin(&other, "1", "Edit: a.rs");
        set_begin("1", 1000);
        set_begin("2", 2000);
        assert_eq!(text(&agent).as_deref(), Some("Bash: cargo test"));
        assert_eq!(text(&other).as_deref(), Some("Edit: a.rs"));
        tools.end(&agent, "2");
        assert_eq!(text(&agent).as_deref(), Some("Agent: review"));
        // A long text is cut between two characters.
        tools.begin(&agent, "1", &format!("{}äöü", "x".repeat(MAX_TEXT - 3)));
        assert_eq!(text(&agent).unwrap(), format!("{}ä", "x".repeat(MAX_TEXT - 3)));
        tools.begin(&agent, "1", "");
        assert_eq!(text(&agent), None);
        assert!(tools.has_any(&agent), "it runs all the same");
    }

    #[test]
    fn where_nothing_can_be_written_nothing_runs() {
        let tools = RunningTools::of(&Home::new("/proc/nowhere"));
        let agent = Agent::new("a").unwrap();
        tools.begin(&agent, "c", "");
        assert!(!tools.has_any(&agent));
    }
}
