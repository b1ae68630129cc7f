//! The machine at the other end of a connection: its name here, and the setup of the connection.

use ringer_journal::{Home, IdSource, Journal, NameSource, NamingResult};

use crate::error::Error;
use crate::frame::Hello;
use crate::import::ImportRules;
use crate::local_journal::AnswerHandler;
use crate::machine::{MachineId, MachineName, PeerLock};
use crate::machine_agents::LinkAgents;
use crate::position::{first_position, forget_first_position};
use crate::repositories::RepositoryNames;

/// The most machines with the same name, which are distinguished by a number.
const MAX_NUMBERED_NAMES: usize = 100;

/// The other machine, after its hello. While this exists, no other connection to it is possible.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) machine: MachineId,
    pub(crate) rules: ImportRules,
    /// Only messages of this machine after this number may be sent to it.
    pub(crate) send_after: i64,
    _lock: PeerLock,
}

impl Peer {
    /// Registers the machine that said hello. Without a configured name it keeps its earlier one, or gets the one that it chose.
    pub(crate) fn greet(setup: &ExchangeSetup, journal: &mut Journal, hello: &Hello) -> Result<Self, Error> {
        // Locked before anything is stored: a machine that is connected keeps its name until that connection ends.
        let lock = PeerLock::take(&setup.home, &hello.machine, || display_name(setup, journal, hello))?;
        let (name, send_after) = register_machine(&setup.home, journal, setup.name.as_ref(), hello)?;
        let may_address_agents = setup.give_answer.is_some() && hello.may_answer;
        let mut rules = ImportRules::new(name, may_address_agents, IdSource::now().unix_ms, hello.unix_ms);
        rules.may_reach_lead |= setup.may_reach_lead;
        rules.may_be_answered = setup.may_answer;
        Ok(Self { machine: hello.machine.clone(), rules, send_after, _lock: lock })
    }

    /// Ends the connection if the machine was removed here, or was renamed.
    pub(crate) fn check_known(&self, journal: &mut Journal) -> Result<(), Error> {
        let id = journal.machine_id_of(self.rules.machine.as_str())?;
        if id.as_deref() == Some(self.machine.as_str()) { Ok(()) } else { Err(self.removed()) }
    }

    /// Returns the error for a connection to a machine that was removed here.
    pub(crate) fn removed(&self) -> Error {
        Error::Removed { name: self.rules.machine.to_string() }
    }
}

/// Returns the name that a machine has here, or would get.
fn display_name(setup: &ExchangeSetup, journal: &mut Journal, hello: &Hello) -> String {
    let known = journal.machine_name(hello.machine.as_str()).ok().flatten();
    let configured = setup.name.as_ref().map(|configured| configured.name.to_string());
    known.or(configured).unwrap_or_else(|| MachineName::from_text(&hello.name).to_string())
}

/// Stores the name of a machine, and where its messages begin.
pub fn register_machine(
    home: &Home,
    journal: &mut Journal,
    name: Option<&ConfiguredName>,
    hello: &Hello,
) -> Result<(MachineName, i64), Error> {
    let name = match name {
        Some(name) => set_name(home, journal, &hello.machine, name)?,
        None => unconfigured_name(journal, hello)?,
    };
    Ok((name, first_position(home, journal, hello.machine.as_str())?))
}

/// Fails if a configured name belongs to another machine. Stores nothing.
pub(crate) fn check_name(
    journal: &mut Journal,
    name: Option<&MachineName>,
    hello: &Hello,
) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    match journal.machine_id_of(name.as_str())? {
        Some(id) if id != hello.machine.as_str() => Err(Error::OtherMachine { name: name.to_string() }),
        _ => Ok(()),
    }
}

fn set_name(
    home: &Home,
    journal: &mut Journal,
    machine: &MachineId,
    configured: &ConfiguredName,
) -> Result<MachineName, Error> {
    let (id, name) = (machine.as_str(), configured.name.as_str());
    let naming = match journal.name_machine(id, name, &configured.source)? {
        NamingResult::HasOtherName { name: known, source } if configured.replaces(&known, &source) => {
            if source == NameSource::Machine && journal.machine_id_of(name)?.is_none() {
                // Any machine can claim the id of this one. It then receives what this one has not confirmed, and nothing older.
                forget_first_position(home, id);
            }
            let naming = journal.rename_machine(id, &known, name, &configured.source)?;
            if let Some(known) = MachineName::parse(&known).filter(|_| naming == NamingResult::Named) {
                LinkAgents::forget(home, &known);
            }
            naming
        }
        naming => naming,
    };
    match naming {
        NamingResult::Named => Ok(configured.name.clone()),
        NamingResult::NameTaken => Err(Error::OtherMachine { name: configured.name.to_string() }),
        NamingResult::HasOtherName { name: known, .. } => Err(Error::KnownAs { known }),
    }
}

/// Returns the name of a machine without a configured one: its earlier name, or the one that it chose.
fn unconfigured_name(journal: &mut Journal, hello: &Hello) -> Result<MachineName, Error> {
    if let Some((known, source)) = journal.machine_name_and_source(hello.machine.as_str())? {
        return known_name(known, &source);
    }
    let wanted = MachineName::from_text(&hello.name);
    for number in 1..=MAX_NUMBERED_NAMES {
        let name = wanted.numbered(number);
        match journal.name_machine(hello.machine.as_str(), name.as_str(), &NameSource::Machine)? {
            NamingResult::Named => return Ok(name),
            NamingResult::NameTaken => {}
            // Another process was faster.
            NamingResult::HasOtherName { name: known, source } => return known_name(known, &source),
        }
    }
    Err(Error::OtherMachine { name: wanted.to_string() })
}

/// Returns the name that a machine has, unless it was configured by `serve --name`.
fn known_name(known: String, source: &NameSource) -> Result<MachineName, Error> {
    // That name is reserved for the key with the forced command, whatever another machine calls itself.
    let name = MachineName::parse(&known).filter(|_| *source != NameSource::Serve);
    name.ok_or(Error::KnownAs { known })
}

/// Forgets a machine: its name, its agents, and the positions of both sides. Its messages stay. Returns true if it was known.
pub fn forget_machine(home: &Home, journal: &mut Journal, name: &MachineName) -> Result<bool, Error> {
    LinkAgents::forget(home, name);
    let Some(id) = journal.machine_id_of(name.as_str())? else { return Ok(false) };
    journal.forget_machine(&id)?;
    if let Some(id) = MachineId::parse(&id) {
        forget_first_position(home, id.as_str());
    }
    Ok(true)
}

/// The name that a person gave the other machine, in a configured link or with `ringer relay serve --name`.
#[derive(Debug, Clone)]
pub struct ConfiguredName {
    pub(crate) name: MachineName,
    pub(crate) source: NameSource,
    /// The names of all configured links.
    links: Vec<String>,
}

impl ConfiguredName {
    /// Returns the name of a link with this command. `links` are the names of all configured links.
    pub fn for_link(name: MachineName, command: &[String], links: Vec<String>) -> Self {
        Self { name, source: NameSource::Link { command: command.join(" ") }, links }
    }

    /// Returns the only name that a far end serves.
    pub fn for_far_end(name: MachineName) -> Self {
        Self { name, source: NameSource::Serve, links: Vec::new() }
    }

    /// Returns true if this name replaces a machine's current one: the machine chose that itself, or this link gave it. A name
    /// from another link, or from `serve --name`, stays, because a machine could otherwise take over the id of another one.
    pub(crate) fn replaces(&self, known: &str, source: &NameSource) -> bool {
        let is_of_link = self.links.iter().any(|link| link == known);
        match (&self.source, source) {
            (NameSource::Link { .. }, NameSource::Machine) => !is_of_link,
            (NameSource::Link { command }, NameSource::Link { command: before }) => {
                !is_of_link && command == before
            }
            _ => false,
        }
    }
}

/// The configuration of a connection.
#[derive(Debug, Clone)]
pub struct ExchangeSetup {
    /// The home of this machine.
    pub home: Home,
    /// The version of this program.
    pub program: String,
    /// This is the far end of a link, which also serves requests other than messages.
    pub is_far_end: bool,
    /// The name of the other machine here. Without one, the machine's own choice is used.
    pub name: Option<ConfiguredName>,
    /// Executes the other machine's answers to agents here. Without it, that machine may neither answer nor write to agents.
    pub give_answer: Option<AnswerHandler>,
    /// The person at this machine wants to answer what agents ask there.
    pub may_answer: bool,
    /// Messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The names of repositories here.
    pub repository_names: RepositoryNames,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_name_replaces_only_names_that_no_person_chose() {
        let link = |command: &str| NameSource::Link { command: command.to_owned() };
        let command = ["ssh", "box"].map(str::to_owned);
        let name = MachineName::parse("build").unwrap();
        let links = ["build", "vm"].map(str::to_owned).to_vec();
        let configured = ConfiguredName::for_link(name.clone(), &command, links);
        assert!(configured.replaces("box", &NameSource::Machine), "the machine chose it");
        assert!(configured.replaces("box", &link("ssh box")), "the same link had that name");
        assert!(!configured.replaces("box", &link("ssh vm")), "another link had that name");
        assert!(!configured.replaces("box", &NameSource::Serve));
        for source in [NameSource::Machine, link("ssh box")] {
            assert!(!configured.replaces("vm", &source), "another link has that name");
            assert!(!ConfiguredName::for_far_end(name.clone()).replaces("box", &source));
        }
    }
}
