//! The configuration of this machine in a team.

use std::io::Read;
use std::path::{Path, PathBuf};

use ringer_config::{RelayLink, TeamLink};
use ringer_journal::{Home, Journal};
use ringer_platform::owned;

use crate::error::Error;
use crate::local_journal::AnswerHandler;
use crate::machine::{MachineId, MachineName};
use crate::repositories::RepositoryNames;

/// The configuration of this machine in a team.
#[derive(Debug, Clone)]
pub struct TeamSetup {
    pub(crate) home: Home,
    pub(crate) team: String,
    /// The name of this machine in the team.
    pub(crate) machine: String,
    /// The addresses of the server, or of the servers of a cluster.
    pub(crate) urls: Vec<String>,
    /// The `jetstream` domain of the stream.
    pub(crate) domain: Option<String>,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    /// Other machines of the team may write to agents of this one, and answer what they ask.
    pub(crate) may_answer: bool,
    /// Messages of agents of the team reach the lead agent of the same repository here.
    pub(crate) may_reach_lead: bool,
    pub(crate) share_marks: bool,
    pub(crate) give_answer: Option<AnswerHandler>,
    pub(crate) repository_names: RepositoryNames,
}

/// An event of a connection to a team, for its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamProgress {
    /// The connection is established.
    Connected {
        /// The version of the server.
        server: String,
        /// The address, one of the configured ones.
        address: String,
    },
    /// The server does not allow this machine to publish its agents, or to receive those of others; with the server's reason.
    AgentsRefused(String),
    /// Messages were removed from the stream before they had arrived. The other machines are asked for them.
    Removed,
    /// Messages were stored, or refused.
    Stored {
        /// The number of new messages.
        new: usize,
        /// The number of refused messages, with the reason for the last one.
        refused: Option<(usize, String)>,
        /// The number of further messages that the server has for this machine.
        waiting: u64,
    },
}

impl TeamSetup {
    /// Converts the person's settings. Returns `None` for a link to one machine.
    pub fn of(home: &Home, link: &RelayLink) -> Option<Self> {
        let TeamLink { urls, domain, machine, credentials, ca, share_marks } = link.team.clone()?;
        Some(Self {
            home: home.clone(),
            team: link.name.clone(),
            machine: machine.unwrap_or_else(host_word),
            urls,
            domain,
            credentials,
            ca,
            may_answer: link.may_answer,
            may_reach_lead: link.may_reach_lead,
            share_marks,
            give_answer: None,
            repository_names: RepositoryNames::default(),
        })
    }

    /// Sets the function that executes other machines' answers to agents here.
    pub fn with_answers(self, give_answer: Option<AnswerHandler>) -> Self {
        Self { give_answer, ..self }
    }

    /// Sets the names of repositories here.
    pub fn with_repository_names(self, repository_names: RepositoryNames) -> Self {
        Self { repository_names, ..self }
    }

    /// Returns the name of this machine in the team.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Returns the journal's key for the cursor of the team, which records how far the team has this machine's messages.
    pub fn export_key(&self) -> String {
        format!("nats:{}", self.team)
    }

    /// Returns the journal's key for the read position in the stream.
    pub(crate) fn received_key(&self) -> String {
        format!("{}:received", self.export_key())
    }

    /// Returns the journal's key for the cursor of a machine of the team. It contains only the server's name for the machine,
    /// which no machine can choose.
    pub(crate) fn import_key(&self, machine: &str) -> String {
        format!("{}:{machine}", self.export_key())
    }

    /// Returns the name of a machine of the team here: `box.platform`. So it cannot be confused with a machine of another link.
    pub(crate) fn name_of(&self, machine: &str) -> Option<MachineName> {
        MachineName::parse(&format!("{machine}.{}", self.team))
    }

    /// Returns a machine's name in the team from its name here.
    pub(crate) fn word_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_suffix(self.team.as_str())?.strip_suffix('.')
    }

    /// Returns the machine of the team in an address: `worker-1@box.platform`.
    pub(crate) fn machine_in<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (_, machine) = address.rsplit_once('@')?;
        self.word_of(machine)
    }

    pub(crate) fn own_id(&self) -> Result<MachineId, Error> {
        MachineId::of(&self.home)
    }

    /// Fails if the team was removed here, which ends its connection: nothing of it is stored again.
    pub(crate) fn check_known(&self, journal: &mut Journal) -> Result<(), Error> {
        let is_known = journal.team_note(&self.export_key())?.is_some();
        is_known.then_some(()).ok_or_else(|| Error::Removed { name: self.team.clone() })
    }
}

fn host_word() -> String {
    MachineName::of_host().as_str().replace('.', "-").chars().take(40).collect()
}

/// The largest file with credentials.
const MAX_SECRET: u64 = 64 * 1024;

/// Reads the credentials of a team: whoever has them can act as this machine.
pub(crate) fn read_secret(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = owned::open_secret(path).and_then(|file| file.take(MAX_SECRET).read_to_string(&mut text));
    read.map(|_| text).map_err(Error::Secret)
}
