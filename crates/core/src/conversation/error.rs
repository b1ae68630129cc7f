//! The error type of this crate.

use std::time::Duration;

use crate::message::InvalidName;

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or a text is invalid.
    #[error(transparent)]
    Word(#[from] InvalidName),
    /// Too many senders are waiting to be paired.
    #[error("{most} senders are waiting to be paired; the next place is free in {} s", free_in.as_secs())]
    PairingsFull {
        /// The limit.
        most: usize,
        /// The time until the oldest code expires.
        free_in: Duration,
    },
    /// No sender has this pairing code: it is mistyped, used already, or expired.
    #[error("no sender is waiting with the pairing code {0:?}")]
    NoSuchCode(String),
    /// The allowlist is full.
    #[error("the allowlist is full: {most} senders are on it")]
    AllowlistFull {
        /// The limit.
        most: usize,
    },
    /// The allowlist was saved by a newer version of Ringer.
    #[error("the allowlist has version {found}, and this version knows {known}")]
    NewerVersion {
        /// The version of the allowlist.
        found: u32,
        /// The newest version that can be read.
        known: u32,
    },
    /// A request id does not consist of five letters from a to z without l.
    #[error("{0:?} is no request id: five letters from a to z, without l")]
    NoRequestId(String),
    /// Too many permission requests are open.
    #[error("{most} permission requests are open already")]
    RequestsFull {
        /// The limit.
        most: usize,
    },
}
