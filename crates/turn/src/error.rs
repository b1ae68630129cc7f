//! What can go wrong on the way into a conversation.

use std::time::Duration;

use ringer_core::InvalidName;

/// Why something could not enter, or not be decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or a text that cannot be used.
    #[error(transparent)]
    Word(#[from] InvalidName),
    /// An injection was brought to the inbox of somebody else.
    #[error("{id} is for {to}, and this is the inbox of {inbox}")]
    NotMine {
        /// The injection.
        id: String,
        /// Whom it is for.
        to: String,
        /// Whose inbox it is.
        inbox: String,
    },
    /// The inbox has no room. Nothing was taken, so nothing is lost: offer it again later.
    #[error("the inbox of {agent} is full: {most} are waiting")]
    InboxFull {
        /// Whose inbox it is.
        agent: String,
        /// The limit.
        most: usize,
    },
    /// A lease that is over: somebody else has claimed what it held, or there never was one.
    #[error("lease {0} holds nothing any more")]
    LeaseOver(u64),
    /// As many senders as may wait for their pairing are waiting already.
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
    /// An allowlist written by a newer version. It is not guessed at.
    #[error("the allowlist has version {found}, and this version knows {known}")]
    Newer {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A request id that is not five letters without an l.
    #[error("{0:?} is no request id: five letters from a to z, without l")]
    NoRequestId(String),
    /// As many permission requests as may be open are open already.
    #[error("{most} permission requests are open already")]
    RequestsFull {
        /// The limit.
        most: usize,
    },
}
