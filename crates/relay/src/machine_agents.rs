//! The agents of all other machines, for lists. Each linked machine has a file.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_journal::{Home, IdSource, Lock};
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::agents::{WireAgent, import_agents};
use crate::import::ImportRules;
use crate::machine::{MachineId, MachineName, lock_path};
use crate::status_file::STATUS_FILE;
use crate::team_agents::TeamAgents;

/// The agents of another machine, from its last list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineAgents {
    /// The name of the machine here.
    pub machine: String,
    /// When the list arrived, in milliseconds since 1970.
    pub told_ms: i64,
    /// The machine is connected now. Otherwise the list may be outdated.
    pub is_connected: bool,
    /// Its agents; their names include the machine.
    pub agents: Vec<WireAgent>,
    /// The number of agents that are not in the list.
    pub unlisted: usize,
}

impl MachineAgents {
    /// Returns true if a file of the home affects the agents of other machines, or the connections to them.
    pub fn depend_on(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        LinkAgents::is_file(name) || TeamAgents::team_of_file(name).is_some() || name == STATUS_FILE
    }

    /// Returns the agents of every machine with a list.
    pub fn all(home: &Home) -> Vec<Self> {
        let linked = LinkAgents::all(home).into_iter().map(|linked| Self {
            is_connected: linked.is_connected(home),
            machine: linked.machine,
            told_ms: linked.told_ms,
            agents: linked.agents,
            unlisted: 0,
        });
        let of_team = |team: TeamAgents| {
            team.machines.into_iter().map(|(machine, listed)| Self {
                machine,
                told_ms: listed.told_ms,
                is_connected: listed.is_current,
                agents: listed.agents,
                unlisted: listed.unlisted,
            })
        };
        linked.chain(TeamAgents::all(home).into_iter().flat_map(of_team)).collect()
    }
}

/// The largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;
/// Prefix and suffix of the file names.
const FILE: (&str, &str) = ("relay-agents-", ".json");

/// The agents of a linked machine, from its last list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkAgents {
    /// The name of the machine here.
    pub(crate) machine: String,
    machine_id: MachineId,
    /// When the list arrived, in milliseconds since 1970.
    pub(crate) told_ms: i64,
    /// Its agents; their names include the machine.
    pub(crate) agents: Vec<WireAgent>,
}

impl LinkAgents {
    /// Converts a list of another machine.
    pub(crate) fn of(rules: &ImportRules, machine: &MachineId, agents: Vec<WireAgent>) -> Self {
        Self {
            machine: rules.machine.to_string(),
            machine_id: machine.clone(),
            told_ms: IdSource::now().unix_ms,
            agents: import_agents(rules, agents),
        }
    }

    /// Writes the file for commands. Errors are ignored, because only these commands need the file.
    pub(crate) fn write(&self, home: &Home) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = replace_file(&path(home, &self.machine), &bytes, Durability::Unsynced);
        }
    }

    /// Reads the lists of all linked machines.
    pub(crate) fn all(home: &Home) -> Vec<Self> {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| Self::is_file(name)).collect();
        names.sort_unstable();
        names.iter().filter_map(|name| read(&home.path().join(name))).collect()
    }

    /// Returns true for the names of these files.
    pub(crate) fn is_file(name: &str) -> bool {
        name.starts_with(FILE.0) && name.ends_with(FILE.1)
    }

    pub(crate) fn forget(home: &Home, machine: &MachineName) {
        let _ = fs::remove_file(path(home, machine.as_str()));
    }

    /// Returns true if the machine is connected now. Otherwise the list may be outdated.
    pub(crate) fn is_connected(&self, home: &Home) -> bool {
        let path = lock_path(home, &self.machine_id);
        path.exists() && matches!(Lock::take(&path, Some(Instant::now())), Ok(None))
    }
}

fn path(home: &Home, machine: &str) -> PathBuf {
    home.path().join(format!("{}{machine}{}", FILE.0, FILE.1))
}

fn read(path: &Path) -> Option<LinkAgents> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
