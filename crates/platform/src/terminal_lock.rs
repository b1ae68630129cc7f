//! A lock on a terminal, for programs that write it beside each other.
//!
//! One write to a terminal is whole. But what a terminal does not take at once is written in pieces, and another program could
//! write between them, in the middle of an escape sequence. Held by the descriptor, and gone with it.

use std::os::fd::AsFd;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Takes the lock, unless another program has it: `false`. Where a terminal cannot be locked, it counts as taken.
pub fn try_lock_terminal(terminal: impl AsFd) -> bool {
    flock(terminal, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// Gives it back.
pub fn unlock_terminal(terminal: impl AsFd) {
    // It cannot fail for one that is locked.
    let _ = flock(terminal, FlockOperation::Unlock);
}
