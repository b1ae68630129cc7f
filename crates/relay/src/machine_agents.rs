//! The agents of all other machines, for lists.

use std::path::Path;

use ringer_journal::Home;

use crate::agents::WireAgent;
use crate::link_agents::LinkAgents;
use crate::status_file::STATUS_FILE;
use crate::team_agents::TeamAgents;

/// The agents of another machine, as it told of them last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineAgents {
    /// What the machine is called here.
    pub machine: String,
    /// When it told of them, in milliseconds since 1970.
    pub told_ms: i64,
    /// Whether the machine is connected now. If it is not, its agents may do something else by now.
    pub is_connected: bool,
    /// Its agents, with the name of the machine in theirs.
    pub agents: Vec<WireAgent>,
    /// How many it has beside these.
    pub unlisted: usize,
}

impl MachineAgents {
    /// Whether a file of the home says something of the agents of other machines, or of the connections to them.
    pub fn depend_on(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        LinkAgents::is_file(name) || TeamAgents::team_of_file(name).is_some() || name == STATUS_FILE
    }

    /// The agents of every machine that told of some.
    pub fn all(home: &Home) -> Vec<Self> {
        let linked = LinkAgents::all(home).into_iter().map(|linked| Self {
            is_connected: linked.is_connected(home),
            machine: linked.machine,
            told_ms: linked.told_ms,
            agents: linked.agents,
            unlisted: 0,
        });
        let of_team = |team: TeamAgents| {
            team.machines.into_iter().map(|(machine, told)| Self {
                machine,
                told_ms: told.told_ms,
                is_connected: told.is_current,
                agents: told.agents,
                unlisted: told.unlisted,
            })
        };
        linked.chain(TeamAgents::all(home).into_iter().flat_map(of_team)).collect()
    }
}
