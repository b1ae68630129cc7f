//! State that the threads of all servers share: settings, status file and allowlist.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ringer_config::ChannelEntry;
use ringer_core::Sender;
use ringer_core::agent::AgentState;
use ringer_core::conversation::{
    Access, Account, AdmittedSender, Auth, ChannelSender, GateRefusal, McpServer, PermissionVerdict,
    WaitingSender,
};
use ringer_core::message::Agent;
use ringer_ipc::part::AnswerOutcome;
use ringer_journal::{AgentInfo, Error, Home, IdSource, Journal, LockTimeout, Uptime};

use super::files::{AccessError, allowlist_stamp, load};
use super::gates::{self, GateInputs, changeable_file};
use super::status_file::StatusFile;

/// Finds out how the person is signed in to an agent's client.
pub type FindAccount = Box<dyn Fn(&AgentInfo) -> (Auth, Account) + Send + Sync>;

/// Answers the prompt with this key in the name of this sender, and waits until the agent accepts it.
pub type GiveAnswer = Box<dyn Fn(&str, PermissionVerdict, &Sender) -> AnswerOutcome + Send + Sync>;

/// What the program that runs the hub provides to the channels.
pub struct ChannelsSetup {
    /// The home of the hub.
    pub home: Home,
    /// The value of `PATH`.
    pub search_path: OsString,
    /// Finds out how the person is signed in to an agent's client.
    pub find_account: FindAccount,
    /// Answers prompts of agents.
    pub answer: GiveAnswer,
    /// Writes a line to the log.
    pub log: Box<dyn Fn(String) + Send + Sync>,
}

/// The person's settings of the servers.
#[derive(Debug, Clone, Default)]
pub(super) struct ChannelSettings {
    /// The kill switch.
    pub(super) enabled: bool,
    /// The servers, in the order of the file.
    pub(super) servers: Vec<ChannelEntry>,
}

pub(super) struct Shared {
    setup: ChannelsSetup,
    settings: Mutex<ChannelSettings>,
    status_file: Mutex<StatusFile>,
    senders: Mutex<Senders>,
}

impl Shared {
    pub(super) fn new(setup: ChannelsSetup) -> Self {
        let status_file = Mutex::new(StatusFile::new(setup.home.clone()));
        let senders = Mutex::new(Senders::new(setup.home.clone()));
        Self { setup, settings: Mutex::default(), status_file, senders }
    }

    pub(super) fn home(&self) -> &Home {
        &self.setup.home
    }

    pub(super) fn log(&self, line: String) {
        (self.setup.log)(line);
    }

    pub(super) fn answer(&self, key: &str, verdict: PermissionVerdict, by: &Sender) -> AnswerOutcome {
        (self.setup.answer)(key, verdict, by)
    }

    pub(super) fn status_file(&self) -> MutexGuard<'_, StatusFile> {
        self.status_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn senders(&self) -> MutexGuard<'_, Senders> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settings(&self) -> ChannelSettings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings.
    pub(super) fn set(&self, settings: ChannelSettings) {
        self.senders().set_configured(&settings.servers);
        self.status_file().keep(&settings.servers);
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Returns the agent that receives a server's messages, if it is running.
    pub(super) fn target(&self, server: &ChannelEntry) -> Result<Option<AgentInfo>, Error> {
        let mut journal = Journal::open_without_repair(self.home(), LockTimeout::COMMAND)?;
        match running_agent(&mut journal, &server.to)? {
            Some(agent) => journal.agent_info(&agent),
            None => Ok(None),
        }
    }

    /// Checks the gates with the current settings.
    pub(super) fn refusal(&self, server: &ChannelEntry, declares_channel: bool) -> Option<GateRefusal> {
        let target = self.target(server).ok().flatten();
        self.refusal_for(server, target.as_ref(), declares_channel)
    }

    pub(super) fn refusal_for(
        &self,
        server: &ChannelEntry,
        target: Option<&AgentInfo>,
        declares_channel: bool,
    ) -> Option<GateRefusal> {
        let circumstances = GateInputs {
            enabled: self.settings().enabled,
            account: target.map(|agent| (self.setup.find_account)(agent)),
            changeable: changeable_file(&server.command, &self.setup.search_path),
            declares_channel,
        };
        // Never an error: the names were validated when the settings were read.
        gates::refusal(server, &circumstances).ok().flatten()
    }
}

/// Returns the agent with this name or id, unless it has exited.
pub(super) fn running_agent(journal: &mut Journal, name: &str) -> Result<Option<Agent>, Error> {
    let Some(id) = journal.agent_named(name)? else { return Ok(None) };
    let Ok(agent) = Agent::new(&id) else { return Ok(None) };
    let state = journal.agent_state(&agent)?;
    Ok(state.filter(|state| *state != AgentState::Exited).map(|_| agent))
}

/// The senders of all servers. Nothing that arrives over a channel can change who may write.
#[derive(Debug)]
pub(super) struct Senders {
    home: Home,
    access: Access,
    /// The version of the allowlist last read.
    stamp: Option<(u64, SystemTime)>,
}

impl Senders {
    pub(super) fn new(home: Home) -> Self {
        Self { home, access: Access::default(), stamp: None }
    }

    /// Sets the senders that the person's own settings allow.
    pub(super) fn set_configured(&mut self, servers: &[ChannelEntry]) {
        let named = servers.iter().flat_map(|server| {
            let sender = |user: &String| ChannelSender::new(McpServer::new(&server.name).ok()?, user).ok();
            server.allow.iter().filter_map(sender)
        });
        self.access.set_configured(named.collect::<BTreeSet<_>>());
    }

    /// Reads the allowlist if the file has changed. A file that cannot be read changes nothing, and the error is returned once.
    pub(super) fn refresh(&mut self) -> Result<(), AccessError> {
        let stamp = allowlist_stamp(&self.home);
        if stamp == self.stamp {
            return Ok(());
        }
        self.stamp = stamp;
        Ok(self.access.set_allowlist(load(&self.home)?)?)
    }

    pub(super) fn admit<'a>(&self, sender: &'a ChannelSender) -> Option<AdmittedSender<'a>> {
        self.access.admit(sender)
    }

    /// Creates a pairing code for a sender who may not write. `None` if the sender already has one, or too many are waiting.
    pub(super) fn offer_code(&mut self, sender: &ChannelSender) -> Option<String> {
        let (now, [a, b, c, ..]) = (Uptime::now().since_boot, IdSource::now().random);
        let waits = |access: &Access| access.waiting(now).any(|waiting| waiting.sender == *sender);
        if waits(&self.access) {
            return None;
        }
        self.access.offer_code(now, sender, [a, b, c]).ok().map(|code| code.to_string())
    }

    pub(super) fn waiting(&self) -> Vec<WaitingSender> {
        self.access.waiting(Uptime::now().since_boot).collect()
    }
}
