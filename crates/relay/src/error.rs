//! Errors of links.

use std::io;
use std::path::PathBuf;

/// The error of a build without team support.
pub const WITHOUT_NATS: &str = "this ringer was built without NATS, which teams need";
/// The command that builds Ringer with team support.
pub const BUILD_WITH_NATS: &str = "cargo install --path crates/cli --features nats";

/// An error of a link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal of this machine cannot be used.
    #[error(transparent)]
    Journal(#[from] ringer_journal::Error),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file with this machine's id has other content.
    #[error("{} holds no machine id; remove it and a new one is made", .0.display())]
    NoMachineId(PathBuf),
    /// The program of the link cannot be started, or exited.
    #[error("{0}")]
    Program(String),
    /// The other side refused to continue.
    #[error("the other machine refused: {0}")]
    Refused(String),
    /// The other side uses incompatible versions of the protocol.
    #[error(
        "the other machine has ringer {program}, which speaks link protocol {from} to {to}; this one speaks {own}. \
         Install the same version on both"
    )]
    Version {
        /// The oldest version that the other side speaks.
        from: u32,
        /// The newest version that the other side speaks.
        to: u32,
        /// The version of this side.
        own: u32,
        /// The program version of the other side.
        program: String,
    },
    /// The link leads back to this machine.
    #[error(
        "the other side has the id of this machine. A copied home has the id of its original: \
         remove the file machine-id in one of them"
    )]
    SameMachine,
    /// A named link leads to a different machine than before.
    #[error(
        "the machine that answers is not the one that was linked as {name}. If that is right: \
         ringer relay remove {name}, then ringer relay add"
    )]
    OtherMachine {
        /// The name of the link.
        name: String,
    },
    /// The other side has the id of a machine with a different name here.
    #[error(
        "the other machine is known here as {known}, or has its id. Remove that first: ringer relay remove {known}. \
         A copied home has the id of its original: remove the file machine-id in one of them"
    )]
    KnownAs {
        /// The name of that machine.
        known: String,
    },
    /// Another link between the two machines is connected.
    #[error(
        "another link to {0} is connected already, or to a copy of its home, which has the same id: \
         then remove the file machine-id in the copy"
    )]
    Connected(String),
    /// The machine was removed while it was connected.
    #[error("{name} was removed, or is called otherwise now; a new connection begins anew")]
    Removed {
        /// The former name.
        name: String,
    },
    /// The other side violated the protocol.
    #[error("the other side does not speak the link protocol: {0}")]
    Protocol(&'static str),
    /// A team's server does not work as required.
    #[error("{0}")]
    Team(String),
    /// This program was built without team support.
    #[error("{WITHOUT_NATS}; build it with: {BUILD_WITH_NATS}")]
    WithoutNats,
    /// Other users can read the credentials of this machine.
    #[error("the file that lets this machine in cannot be used: {0}")]
    Secret(io::Error),
    /// Nothing was received for too long.
    #[error("nothing was heard from the other machine for {0} s")]
    Silent(u64),
}

impl Error {
    /// Returns the text for the other side. It hides details about the files of this machine.
    pub(crate) fn for_other_side(&self) -> String {
        match self {
            Self::Journal(_) | Self::Io { .. } | Self::Secret(_) | Self::NoMachineId(_) => {
                "its journal cannot be used; `ringer doctor` there says why".to_owned()
            }
            Self::Program(_) => "its program ended".to_owned(),
            error => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_the_other_side_contain_no_local_path() {
        let source = || io::Error::other("no space left");
        let journal = ringer_journal::Error::Full { path: PathBuf::from("/people/ada") };
        for error in [
            Error::NoMachineId(PathBuf::from("/people/ada/machine-id")),
            Error::Io { what: "cannot lock /people/ada/relay.lock".to_owned(), source: source() },
            Error::Journal(journal),
        ] {
            let text = error.for_other_side();
            assert!(!text.contains("ada"), "{text}");
        }
        assert_eq!(Error::SameMachine.for_other_side(), Error::SameMachine.to_string());
    }
}
