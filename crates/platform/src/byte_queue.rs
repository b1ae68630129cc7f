//! A queue of bytes for a non-blocking descriptor.

use std::os::fd::AsFd;

use rustix::io::Errno;

/// The length from which on the queue counts as full. It stays full until half of that is written, so that a slow reader costs
/// few system calls.
const FULL: usize = 64 * 1024;

/// Bytes that are queued for writing.
#[derive(Debug, Default)]
pub struct ByteQueue {
    bytes: Vec<u8>,
    written: usize,
    is_full: bool,
}

impl ByteQueue {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.is_full |= self.len() >= FULL;
    }

    /// Returns true if everything was written.
    pub fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Returns true if the caller should stop reading input for the queue.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The number of queued bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Drops all queued bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        self.is_full = false;
    }

    /// Writes as many bytes as the descriptor accepts. It must be non-blocking.
    pub fn write_to(&mut self, to: impl AsFd) -> rustix::io::Result<()> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(&to, rest) {
                Ok(written) => {
                    let is_short = written < rest.len();
                    self.written += written;
                    if is_short {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        self.is_full &= self.len() > FULL / 2;
        // Moving the rest after every short write would cost more than the writes.
        if self.is_empty() {
            self.clear();
        } else if self.written > FULL {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_not_taken_yet_waits_in_its_order() {
        let (to, mut from) = UnixStream::pair().unwrap();
        to.set_nonblocking(true).unwrap();
        let sent: Vec<u8> = (0..=255).cycle().take(2_000_000).collect();
        let mut queue = ByteQueue::default();
        queue.push(&sent);
        assert!(queue.is_full());
        let mut got = Vec::new();
        while got.len() < sent.len() {
            queue.write_to(&to).unwrap();
            let mut piece = [0; 10_000];
            let read = from.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..read]);
        }
        assert!(queue.is_empty() && !queue.is_full() && got == sent);
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (to, from) = UnixStream::pair().unwrap();
        drop(from);
        let mut queue = ByteQueue::default();
        queue.push(b"x");
        assert_eq!(queue.write_to(&to), Err(Errno::PIPE));
    }
}
