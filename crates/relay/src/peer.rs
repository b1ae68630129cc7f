//! The machine at the other end of a connection.

use ringer_journal::{Home, IdSource, Journal, MachineNaming};

use crate::agents::MachineAgents;
use crate::error::Error;
use crate::exchange_setup::ExchangeSetup;
use crate::first_position::{self, first_position};
use crate::frame::Hello;
use crate::import::ImportRules;
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
        let (name, begins_behind) = introduce(&setup.home, journal, setup.name.as_ref(), hello)?;
        let lock = PeerLock::take(&setup.home, &hello.machine, &name)?;
        let may_address_agents = setup.give_answer.is_some() && hello.may_answer;
        let mut rules = ImportRules::new(name, may_address_agents, IdSource::now().unix_ms, hello.unix_ms);
        rules.may_reach_lead |= setup.may_reach_lead;
        rules.may_be_answered = setup.may_answer;
        Ok(Self { machine: hello.machine.clone(), rules, begins_behind, _lock: lock })
    }
}

/// Notes what a machine is called here, and where the messages begin that are for it.
pub fn introduce(
    home: &Home,
    journal: &mut Journal,
    name: Option<&MachineName>,
    hello: &Hello,
) -> Result<(MachineName, i64), Error> {
    let name = match name {
        Some(name) => set_name(journal, &hello.machine, name)?,
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
    match journal.machine_named(name.as_str())? {
        Some(id) if id != hello.machine.as_str() => Err(Error::OtherMachine { name: name.to_string() }),
        _ => Ok(()),
    }
}

fn set_name(journal: &mut Journal, machine: &MachineId, name: &MachineName) -> Result<MachineName, Error> {
    match journal.name_machine(machine.as_str(), name.as_str())? {
        MachineNaming::Named => Ok(name.clone()),
        MachineNaming::NameTaken => Err(Error::OtherMachine { name: name.to_string() }),
        MachineNaming::HasOtherName(known) => Err(Error::KnownAs { known }),
    }
}

fn free_name(journal: &mut Journal, hello: &Hello) -> Result<MachineName, Error> {
    let wanted = MachineName::from_text(&hello.name);
    for number in 1..=MAX_OF_ONE_NAME {
        let name = wanted.numbered(number);
        match journal.name_machine(hello.machine.as_str(), name.as_str())? {
            MachineNaming::Named => return Ok(name),
            MachineNaming::NameTaken => {}
            MachineNaming::HasOtherName(known) => {
                return MachineName::parse(&known).ok_or(Error::KnownAs { known });
            }
        }
    }
    Err(Error::OtherMachine { name: wanted.to_string() })
}

/// Forgets a machine: its name, its agents, and how far the two sides are. Its messages stay.
pub fn forget_machine(home: &Home, journal: &mut Journal, name: &MachineName) -> Result<bool, Error> {
    MachineAgents::forget(home, name);
    let Some(id) = journal.machine_named(name.as_str())? else { return Ok(false) };
    journal.forget_machine(&id)?;
    if let Some(id) = MachineId::parse(&id) {
        first_position::forget(home, id.as_str());
    }
    Ok(true)
}
