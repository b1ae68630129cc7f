//! What can go wrong with a link.

use std::io;
use std::path::PathBuf;

/// What is wrong where this program was built without teams.
pub const WITHOUT_NATS: &str = "this ringer was built without NATS, which teams need";
/// The command that builds it with them.
pub const BUILD_WITH_NATS: &str = "cargo install --path crates/cli --features nats";

/// Why a link does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal of this machine cannot be used.
    #[error(transparent)]
    Journal(#[from] ringer_journal::Error),
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file with this machine's id holds something else.
    #[error("{} holds no machine id; remove it and a new one is made", .0.display())]
    NoMachineId(PathBuf),
    /// The program of the link cannot be started, or ended.
    #[error("{0}")]
    Program(String),
    /// The other side refused to go on.
    #[error("the other machine refused: {0}")]
    Refused(String),
    /// The other side speaks other versions of the protocol.
    #[error(
        "the other machine has ringer {program}, which speaks link protocol {from} to {to}; this one speaks {own}. \
         Install the same version on both"
    )]
    Version {
        /// The oldest that it speaks.
        from: u32,
        /// The newest that it speaks.
        to: u32,
        /// What this version speaks.
        own: u32,
        /// The version of its program.
        program: String,
    },
    /// The link leads back.
    #[error(
        "the other side has the id of this machine. A copied home has the id of its original: \
         remove the file machine-id in one of them"
    )]
    SameMachine,
    /// The link of a name leads to another machine than it used to.
    #[error(
        "the machine that answers is not the one that was linked as {name}. If that is right: \
         ringer relay remove {name}, then ringer relay add"
    )]
    OtherMachine {
        /// The name.
        name: String,
    },
    /// The other side has the id of a machine that has another name here.
    #[error(
        "the other machine is known here as {known}, or has its id. Remove that first: ringer relay remove {known}. \
         A copied home has the id of its original: remove the file machine-id in one of them"
    )]
    KnownAs {
        /// That name.
        known: String,
    },
    /// There is another link between the two.
    #[error(
        "another link to {0} is connected already, or to a copy of its home, which has the same id: \
         then remove the file machine-id in the copy"
    )]
    Connected(String),
    /// The machine was removed while it was connected.
    #[error("{name} was removed, or is called otherwise now; a new connection begins anew")]
    Removed {
        /// What it was called.
        name: String,
    },
    /// The other side broke the rules of the protocol.
    #[error("the other side does not speak the link protocol: {0}")]
    Protocol(&'static str),
    /// A team's server does not do what it should.
    #[error("{0}")]
    Team(String),
    /// This program was built without teams.
    #[error("{WITHOUT_NATS}; build it with: {BUILD_WITH_NATS}")]
    WithoutNats,
    /// Other people can read what lets this machine in.
    #[error("the file that lets this machine in cannot be used: {0}")]
    Secret(io::Error),
    /// Nothing was heard for too long.
    #[error("nothing was heard from the other machine for {0} s")]
    Silent(u64),
}

impl Error {
    /// What the other side is told. What is wrong with the files of this machine is its own business.
    pub(crate) fn for_other_side(&self) -> String {
        match self {
            Self::Journal(_) | Self::Io { .. } | Self::Secret(_) | Self::NoMachineId(_) => {
                "its journal cannot be used; `ringer doctor` there says why".to_owned()
            }
            Self::Program(_) => "its program ended".to_owned(),
            told => told.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_of_this_machine_is_told_to_another_one() {
        let source = || io::Error::other("no space left");
        let journal = ringer_journal::Error::Full { path: PathBuf::from("/people/ada") };
        for error in [
            Error::NoMachineId(PathBuf::from("/people/ada/machine-id")),
            Error::Io { what: "cannot lock /people/ada/relay.lock".to_owned(), source: source() },
            Error::Journal(journal),
        ] {
            let told = error.for_other_side();
            assert!(!told.contains("ada"), "{told}");
        }
        assert_eq!(Error::SameMachine.for_other_side(), Error::SameMachine.to_string());
    }
}
