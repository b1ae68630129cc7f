//! The error type of this crate.

use std::time::Duration;

use ringer_core::message::InvalidName;

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or a text that cannot be used.
    #[error(transparent)]
    Word(#[from] InvalidName),
    /// Too many senders wait for their pairing.
    #[error("{most} senders are waiting to be paired; the next place is free in {} s", free_in.as_secs())]
    PairingsFull {
        /// The limit.
        most: usize,
        /// When the oldest code runs out.
        free_in: Duration,
    },
    /// No sender waits with this code: mistyped, used before, or older than an hour.
    #[error("no sender is waiting with the pairing code {0:?}")]
    NoSuchCode(String),
    /// The allowlist has no room.
    #[error("the allowlist is full: {most} senders are on it")]
    AllowlistFull {
        /// The limit.
        most: usize,
    },
    /// An allowlist of a newer version, which is not read.
    #[error("the allowlist has version {found}, and this version knows {known}")]
    NewerVersion {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A request id that is not five letters without an l.
    #[error("{0:?} is no request id: five letters from a to z, without l")]
    NoRequestId(String),
    /// Too many permission requests are open.
    #[error("{most} permission requests are open already")]
    RequestsFull {
        /// The limit.
        most: usize,
    },
}
