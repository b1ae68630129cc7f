//! Waits in the runtime for a descriptor.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A copy of a descriptor, of which the runtime tells when it can be read.
pub(crate) fn readable(fd: BorrowedFd<'_>) -> io::Result<AsyncFd<OwnedFd>> {
    let copy = fd.try_clone_to_owned()?;
    #[expect(
        deprecated,
        reason = "the other way is unsafe, for types that may close their descriptor; this cannot"
    )]
    AsyncFd::with_interest(copy, Interest::READABLE)
}
