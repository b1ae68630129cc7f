//! How this machine takes part in a team.

use std::io::Read;
use std::path::{Path, PathBuf};

use ringer_core::policy::{RelayLink, TeamLink};
use ringer_journal::{Home, Journal};
use ringer_platform::owned;

use crate::error::Error;
use crate::local_journal::GiveAnswer;
use crate::machine::{MachineId, MachineName};
use crate::repositories::RepositoryNames;

/// What a machine of a team needs.
#[derive(Debug, Clone)]
pub struct TeamSetup {
    pub(crate) home: Home,
    pub(crate) team: String,
    /// What this machine is called in the team.
    pub(crate) machine: String,
    /// The addresses of the server, or of the servers of a cluster.
    pub(crate) urls: Vec<String>,
    /// The `jetstream` domain that the stream is in.
    pub(crate) domain: Option<String>,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    /// Whether other machines of the team may write to agents of this one, and answer what they ask.
    pub(crate) may_answer: bool,
    /// Whether messages of agents of the team reach the lead agent of the same repository here.
    pub(crate) may_reach_lead: bool,
    pub(crate) share_marks: bool,
    pub(crate) give_answer: Option<GiveAnswer>,
    pub(crate) repository_names: RepositoryNames,
}

/// What happens in a connection to a team, for its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamProgress {
    /// The connection stands.
    Connected {
        /// The version of the server.
        server: String,
        /// Its address, of those that are set.
        address: String,
    },
    /// The server does not let this machine tell of its agents, or be told of those of others; in its words.
    AgentsRefused(String),
    /// Messages were removed from the stream before they had come. The other machines are asked for them.
    Removed,
    /// Messages were stored, or refused.
    Stored {
        /// New ones.
        new: usize,
        /// Those that may not be stored; why the last of them.
        refused: Option<(usize, String)>,
        /// How many the server has for this machine beside them.
        waiting: u64,
    },
}

impl TeamSetup {
    /// Out of what the person set. `None` for a link to one machine.
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

    /// The same, with what gives the answers of other machines to what agents ask here.
    pub fn with_answers(self, give_answer: Option<GiveAnswer>) -> Self {
        Self { give_answer, ..self }
    }

    /// The same, with the names of repositories here.
    pub fn with_repository_names(self, repository_names: RepositoryNames) -> Self {
        Self { repository_names, ..self }
    }

    /// What this machine is called in the team.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Under which name the journal keeps how far the team has this machine's messages.
    pub fn export_key(&self) -> String {
        format!("nats:{}", self.team)
    }

    /// Under which name the journal keeps what this machine read last in the stream.
    pub(crate) fn received_key(&self) -> String {
        format!("{}:received", self.export_key())
    }

    /// Under which name the journal keeps how far the messages of a machine of the team are stored. Only the server's word
    /// for it is in it, which no machine can choose.
    pub(crate) fn import_key(&self, machine: &str) -> String {
        format!("{}:{machine}", self.export_key())
    }

    /// What a machine of the team is called here: `box.platform`. So it cannot be taken for one that is linked otherwise.
    pub(crate) fn name_of(&self, machine: &str) -> Option<MachineName> {
        MachineName::parse(&format!("{machine}.{}", self.team))
    }

    /// The word of the team for a machine that is called so here.
    pub(crate) fn word_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_suffix(self.team.as_str())?.strip_suffix('.')
    }

    /// The machine of the team that an address names: `worker-1@box.platform`.
    pub(crate) fn machine_in<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (_, machine) = address.rsplit_once('@')?;
        self.word_of(machine)
    }

    pub(crate) fn own_id(&self) -> Result<MachineId, Error> {
        MachineId::of(&self.home)
    }

    /// Ends a connection to a team that was removed here: nothing of it is stored again.
    pub(crate) fn check_known(&self, journal: &mut Journal) -> Result<(), Error> {
        let is_known = journal.team_note(&self.export_key())?.is_some();
        is_known.then_some(()).ok_or_else(|| Error::Removed { name: self.team.clone() })
    }
}

/// The host name as a word of a subject.
fn host_word() -> String {
    MachineName::of_host().as_str().replace('.', "-").chars().take(40).collect()
}

/// No credentials are that long.
const MAX_SECRET: u64 = 64 * 1024;

/// Reads the credentials of a team: who has them speaks as this machine.
pub(crate) fn read_secret(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = owned::open_secret(path).and_then(|file| file.take(MAX_SECRET).read_to_string(&mut text));
    read.map(|_| text).map_err(Error::Secret)
}
