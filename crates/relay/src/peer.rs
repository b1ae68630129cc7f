//! The machine at the other end of a connection.

use ringer_journal::{Home, IdSource, Journal, NameSource, NamingResult};

use crate::error::Error;
use crate::exchange_setup::ExchangeSetup;
use crate::first_position::{self, first_position};
use crate::frame::Hello;
use crate::given_name::GivenName;
use crate::import::ImportRules;
use crate::link_agents::LinkAgents;
use crate::machine::{MachineId, MachineName};
use crate::peer_lock::PeerLock;

/// Machines of one name that are told apart by a number.
const MAX_OF_ONE_NAME: usize = 100;

/// The other machine, once it said who it is. No other connection to it is made meanwhile.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) machine: MachineId,
    pub(crate) rules: ImportRules,
    /// The number behind which messages of this machine may go to it.
    pub(crate) begins_behind: i64,
    _lock: PeerLock,
}

impl Peer {
    /// The machine that said hello. Without a name it is called as it was called before, or as it calls itself.
    pub(crate) fn greet(setup: &ExchangeSetup, journal: &mut Journal, hello: &Hello) -> Result<Self, Error> {
        // Before anything is noted: a machine that is connected keeps its name until that connection ends.
        let lock = PeerLock::take(&setup.home, &hello.machine, || name_in_words(setup, journal, hello))?;
        let (name, begins_behind) = register_machine(&setup.home, journal, setup.name.as_ref(), hello)?;
        let may_address_agents = setup.give_answer.is_some() && hello.may_answer;
        let mut rules = ImportRules::new(name, may_address_agents, IdSource::now().unix_ms, hello.unix_ms);
        rules.may_reach_lead |= setup.may_reach_lead;
        rules.may_be_answered = setup.may_answer;
        Ok(Self { machine: hello.machine.clone(), rules, begins_behind, _lock: lock })
    }

    /// Ends the connection if the machine was removed here, or has another name by now.
    pub(crate) fn check_known(&self, journal: &mut Journal) -> Result<(), Error> {
        let id = journal.machine_id_of(self.rules.machine.as_str())?;
        if id.as_deref() == Some(self.machine.as_str()) { Ok(()) } else { Err(self.removed()) }
    }

    /// Why a connection to a machine ends that was removed here.
    pub(crate) fn removed(&self) -> Error {
        Error::Removed { name: self.rules.machine.to_string() }
    }
}

/// What a machine is called here, or would be.
fn name_in_words(setup: &ExchangeSetup, journal: &mut Journal, hello: &Hello) -> String {
    let known = journal.machine_name(hello.machine.as_str()).ok().flatten();
    let given = setup.name.as_ref().map(|given| given.name.to_string());
    known.or(given).unwrap_or_else(|| MachineName::from_text(&hello.name).to_string())
}

/// Notes what a machine is called here, and where the messages begin that are for it.
pub fn register_machine(
    home: &Home,
    journal: &mut Journal,
    name: Option<&GivenName>,
    hello: &Hello,
) -> Result<(MachineName, i64), Error> {
    let name = match name {
        Some(name) => set_name(home, journal, &hello.machine, name)?,
        None => free_name(journal, hello)?,
    };
    Ok((name, first_position(home, journal, hello.machine.as_str())?))
}

/// Makes sure that a machine is the one of a name that was set, without noting anything.
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
    given: &GivenName,
) -> Result<MachineName, Error> {
    let (id, name) = (machine.as_str(), given.name.as_str());
    let naming = match journal.name_machine(id, name, &given.source)? {
        NamingResult::HasOtherName { name: known, source } if given.replaces(&known, &source) => {
            if source == NameSource::Machine && journal.machine_id_of(name)?.is_none() {
                // Any machine can say the id of this one. One that does gets what this one has not confirmed, and nothing older.
                first_position::forget(home, id);
            }
            let naming = journal.rename_machine(id, &known, name, &given.source)?;
            if let Some(known) = MachineName::parse(&known).filter(|_| naming == NamingResult::Named) {
                LinkAgents::forget(home, &known);
            }
            naming
        }
        naming => naming,
    };
    match naming {
        NamingResult::Named => Ok(given.name.clone()),
        NamingResult::NameTaken => Err(Error::OtherMachine { name: given.name.to_string() }),
        NamingResult::HasOtherName { name: known, .. } => Err(Error::KnownAs { known }),
    }
}

/// What a machine is called for which no name is set: as it was called before, or as it calls itself.
fn free_name(journal: &mut Journal, hello: &Hello) -> Result<MachineName, Error> {
    if let Some((known, source)) = journal.machine_name_and_source(hello.machine.as_str())? {
        return known_name(known, &source);
    }
    let wanted = MachineName::from_text(&hello.name);
    for number in 1..=MAX_OF_ONE_NAME {
        let name = wanted.numbered(number);
        match journal.name_machine(hello.machine.as_str(), name.as_str(), &NameSource::Machine)? {
            NamingResult::Named => return Ok(name),
            NamingResult::NameTaken => {}
            // Another process was quicker.
            NamingResult::HasOtherName { name: known, source } => return known_name(known, &source),
        }
    }
    Err(Error::OtherMachine { name: wanted.to_string() })
}

/// The name that a machine has, unless it is one of `serve --name`.
fn known_name(known: String, source: &NameSource) -> Result<MachineName, Error> {
    // Only the key with that forced command is for the machine of this name, whatever another one calls itself.
    let name = MachineName::parse(&known).filter(|_| *source != NameSource::Serve);
    name.ok_or(Error::KnownAs { known })
}

/// Forgets a machine: its name, its agents, and how far the two sides are. Its messages stay.
pub fn forget_machine(home: &Home, journal: &mut Journal, name: &MachineName) -> Result<bool, Error> {
    LinkAgents::forget(home, name);
    let Some(id) = journal.machine_id_of(name.as_str())? else { return Ok(false) };
    journal.forget_machine(&id)?;
    if let Some(id) = MachineId::parse(&id) {
        first_position::forget(home, id.as_str());
    }
    Ok(true)
}
