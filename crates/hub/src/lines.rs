//! Lines that a client sends, of a bounded length.

use ringer_ipc::MAX_LINE;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

/// What is read at once.
const READ_CHUNK: usize = 16 * 1024;

/// A line was longer than [`MAX_LINE`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Lines out of a stream, of a bounded length.
pub(crate) struct Lines {
    read: OwnedReadHalf,
    held: Vec<u8>,
    /// So much of what is held has no end of a line in it.
    searched: usize,
}

impl Lines {
    pub(crate) fn of(read: OwnedReadHalf) -> Self {
        Self { read, held: Vec::new(), searched: 0 }
    }

    /// The next line. `None` at the end. Can be cancelled: what was read stays.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        loop {
            if let Some(at) = self.held[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.pop();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.held.len();
            if self.held.len() > MAX_LINE {
                self.held = Vec::new();
                self.searched = 0;
                return Err(TooLong);
            }
            self.held.reserve(READ_CHUNK);
            match self.read.read_buf(&mut self.held).await {
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
