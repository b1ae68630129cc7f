//! Reads lines of bounded length from a client.

use ringer_ipc::MAX_LINE;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

/// Bytes to reserve for each read.
const READ_CHUNK: usize = 16 * 1024;

/// A line was longer than [`MAX_LINE`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The bytes of a stream that do not form a whole line yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    held: Vec<u8>,
    /// The length of the part of `held` that contains no newline.
    searched: usize,
}

impl LineBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Returns the next whole line without its newline, or `None` until more bytes arrive.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        if let Some(at) = self.held[self.searched..].iter().position(|byte| *byte == b'\n') {
            let rest = self.held.split_off(self.searched + at + 1);
            let mut line = std::mem::replace(&mut self.held, rest);
            line.pop();
            self.searched = 0;
            return Ok(Some(line));
        }
        self.searched = self.held.len();
        if self.held.len() > MAX_LINE {
            *self = Self::default();
            return Err(TooLong);
        }
        Ok(None)
    }
}

/// The lines of a connection.
pub(crate) struct Lines {
    read: OwnedReadHalf,
    buffer: LineBuffer,
}

impl Lines {
    pub(crate) fn of(read: OwnedReadHalf) -> Self {
        Self { read, buffer: LineBuffer::default() }
    }

    /// Returns the next line, or `None` at the end. Cancel safe: bytes already read stay in the buffer.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            if let Some(line) = self.buffer.next()? {
                return Ok(Some(line));
            }
            self.buffer.held.reserve(READ_CHUNK);
            match self.read.read_buf(&mut self.buffer.held).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn lines_come_whole_however_they_were_cut() {
        let (one, two) = UnixStream::pair().unwrap();
        let (read, _out) = one.into_split();
        let mut lines = Lines::of(read);
        let (_read, mut out) = two.into_split();
        for piece in ["ab", "c\nde", "\n\nf", "g\n"] {
            out.write_all(piece.as_bytes()).await.unwrap();
        }
        for expected in ["abc", "de", "", "fg"] {
            assert_eq!(lines.next().await.unwrap().unwrap(), expected.as_bytes());
        }
        let flood = tokio::spawn(async move {
            let piece = vec![b'x'; 64 * 1024];
            while out.write_all(&piece).await.is_ok() {}
        });
        assert_eq!(lines.next().await, Err(TooLong));
        drop(lines);
        flood.abort();
    }
}
