//! The connection to an X server, on which no wait is longer than a second.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use x11rb::rust_connection::{DefaultStream, PollMode, Stream};
use x11rb::utils::RawFdContainer;

/// How long a server may take. It answers within a millisecond unless it hangs.
const DEADLINE: Duration = Duration::from_secs(1);

/// A connection whose waits end.
#[derive(Debug)]
pub(crate) struct DeadlineStream(DefaultStream);

impl DeadlineStream {
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        DefaultStream::from_unix_stream(stream).map(|(stream, _)| Self(stream))
    }
}

impl AsFd for DeadlineStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Stream for DeadlineStream {
    fn poll(&self, mode: PollMode) -> Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        let deadline = Timespec::try_from(DEADLINE).map_err(Error::other)?;
        loop {
            match poll(&mut [PollFd::new(&self.0, flags)], Some(&deadline)) {
                Ok(0) => return Err(Error::new(ErrorKind::TimedOut, "it does not answer")),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<RawFdContainer>) -> Result<usize> {
        self.0.read(buffer, descriptors)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<RawFdContainer>) -> Result<usize> {
        self.0.write(buffer, descriptors)
    }

    fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        descriptors: &mut Vec<RawFdContainer>,
    ) -> Result<usize> {
        self.0.write_vectored(buffers, descriptors)
    }
}
