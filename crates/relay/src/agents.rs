//! The agents of a machine, as other machines are told of them: a list that is sent whole when it changes, and kept in a file
//! by the side that gets it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_core::message::validate_name;
use ringer_journal::{AgentSummary, Error, Home, IdSource, Journal, Lock};
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::import::ImportRules;
use crate::machine::{MachineId, MachineName};
use crate::peer_lock::lock_path;

/// The most agents that are told of; more than run on one machine.
const MAX_AGENTS: usize = 256;
/// More of a file is not read.
const MAX_FILE: u64 = 1024 * 1024;
/// How the names of the files begin and end.
const FILE: (&str, &str) = ("relay-agents-", ".json");

/// An agent that runs on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireAgent {
    /// Its id.
    pub id: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client program.
    pub client: String,
    /// What it does.
    pub state: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// The directory that it works in, without the path to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The surface that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
}

/// The agents of another machine, as it told of them last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineAgents {
    /// What the machine is called here.
    pub machine: String,
    /// Its id.
    machine_id: MachineId,
    /// When it told of them, in milliseconds since 1970.
    pub told_ms: i64,
    /// Its agents, with the name of the machine in theirs.
    pub agents: Vec<WireAgent>,
}

/// The agents that run on this machine.
pub(crate) fn own_agents(journal: &mut Journal) -> Result<Vec<WireAgent>, Error> {
    let wire = |agent: AgentSummary| {
        let state = agent.state.filter(|state| state != "exited")?;
        let directory =
            agent.cwd.as_deref().and_then(|cwd| Path::new(cwd).file_name()?.to_str().map(str::to_owned));
        Some(WireAgent {
            id: agent.id,
            name: agent.name,
            client: agent.client.unwrap_or_default(),
            state,
            since_ms: agent.since_ms.unwrap_or(agent.seen_ms),
            directory,
            surface: agent.surface,
        })
    };
    Ok(journal.agent_summaries()?.into_iter().filter_map(wire).take(MAX_AGENTS).collect())
}

impl MachineAgents {
    /// What another machine says of its agents. One with a name that is not allowed is left out.
    pub(crate) fn of(rules: &ImportRules, machine: &MachineId, agents: Vec<WireAgent>) -> Self {
        let own = |agent: WireAgent| {
            let name = agent.name.map(|name| rules.named(&name));
            let texts = [Some(&agent.state), name.as_ref(), agent.directory.as_ref()];
            let is_allowed = |text: &String| validate_name("agent", text).is_ok();
            let id = rules.named(&agent.id);
            (is_allowed(&id) && texts.into_iter().flatten().all(is_allowed)).then(|| WireAgent {
                id,
                name,
                client: agent.client.chars().take(40).collect(),
                state: agent.state,
                since_ms: agent.since_ms.saturating_add(rules.clock_ahead_ms),
                directory: agent.directory.map(|directory| format!("{}:{directory}", rules.machine)),
                surface: agent.surface.map(|surface| rules.surface(&surface)),
            })
        };
        Self {
            machine: rules.machine.to_string(),
            machine_id: machine.clone(),
            told_ms: IdSource::now().unix_ms,
            agents: agents.into_iter().take(MAX_AGENTS).filter_map(own).collect(),
        }
    }

    /// Keeps it for commands. Without the file they know less, and all else works.
    pub(crate) fn write(&self, home: &Home) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = replace_file(&path(home, &self.machine), &bytes, Durability::Unsynced);
        }
    }

    /// The agents of every machine that told of some.
    pub fn all(home: &Home) -> Vec<Self> {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let is_own = |name: &String| name.starts_with(FILE.0) && name.ends_with(FILE.1);
        let mut names: Vec<String> = names.filter(is_own).collect();
        names.sort_unstable();
        names.iter().filter_map(|name| read(&home.path().join(name))).collect()
    }

    /// Forgets the agents of a machine.
    pub fn forget(home: &Home, machine: &MachineName) {
        let _ = fs::remove_file(path(home, machine.as_str()));
    }

    /// Whether the machine is connected now. If it is not, its agents may do something else by now.
    pub fn is_connected(&self, home: &Home) -> bool {
        let path = lock_path(home, &self.machine_id);
        path.exists() && matches!(Lock::take(&path, Some(Instant::now())), Ok(None))
    }
}

fn path(home: &Home, machine: &str) -> PathBuf {
    home.path().join(format!("{}{machine}{}", FILE.0, FILE.1))
}

fn read(path: &Path) -> Option<MachineAgents> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
