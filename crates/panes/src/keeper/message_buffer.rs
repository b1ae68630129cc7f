//! Splits the bytes of a connection into lines and raw bytes.

use std::io;

use super::wire::LINE_LIMIT;

/// Received bytes that were not taken yet.
#[derive(Debug, Default)]
pub(super) struct MessageBuffer {
    bytes: Vec<u8>,
    /// The number of bytes at the beginning that were taken.
    taken: usize,
    /// Between `taken` and this position there is no end of a line.
    searched: usize,
}

impl MessageBuffer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Moving the rest after every line would cost more than reading it.
        if self.taken > self.bytes.len() / 2 {
            self.bytes.drain(..self.taken);
            self.searched = self.searched.saturating_sub(self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its end. A line that is too long is an error even before it is complete.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let from = self.searched.max(self.taken);
        let found = memchr::memchr(b'\n', self.bytes.get(from..).unwrap_or_default());
        let end = found.map_or(self.bytes.len(), |at| from + at);
        if end - self.taken >= LINE_LIMIT {
            let why = format!("a line is longer than {LINE_LIMIT} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.searched = end;
        if found.is_none() {
            return Ok(None);
        }
        let line = self.bytes.get(self.taken..end).unwrap_or_default().to_vec();
        self.taken = end + 1;
        Ok(Some(line))
    }

    /// Returns `count` raw bytes, once they have been received.
    pub(super) fn next_bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let bytes = self.bytes.get(self.taken..self.taken.checked_add(count)?)?.to_vec();
        self.taken += count;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_wherever_they_were_cut(
            messages in prop::collection::vec(("[a-z{}]{0,20}", prop::collection::vec(any::<u8>(), 0..20)), 0..20),
            cuts in prop::collection::vec(1..30_usize, 1..10),
        ) {
            let mut sent = Vec::new();
            for (line, bytes) in &messages {
                sent.extend_from_slice(line.as_bytes());
                sent.push(b'\n');
                sent.extend_from_slice(bytes);
            }
            let (mut buffer, mut got, mut line) = (MessageBuffer::default(), Vec::new(), None);
            let (mut rest, mut cuts) = (sent.as_slice(), cuts.iter().cycle());
            loop {
                line = match line {
                    None => buffer.next_line().unwrap(),
                    line => line,
                };
                let expected = messages.get(got.len()).map_or(0, |(_, bytes)| bytes.len());
                if line.is_some() && let Some(bytes) = buffer.next_bytes(expected) {
                    got.push((String::from_utf8(line.take().unwrap()).unwrap(), bytes));
                } else if rest.is_empty() {
                    break;
                } else {
                    let (piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                    buffer.push(piece);
                    rest = after;
                }
            }
            prop_assert_eq!(got, messages);
        }
    }

    #[test]
    fn a_line_has_a_limit_whole_or_not() {
        let mut buffer = MessageBuffer::default();
        buffer.push(&vec![b'x'; LINE_LIMIT - 1]);
        assert_eq!(buffer.next_line().unwrap(), None);
        buffer.push(b"\n");
        assert_eq!(buffer.next_line().unwrap().map(|line| line.len()), Some(LINE_LIMIT - 1));
        buffer.push(&vec![b'x'; LINE_LIMIT]);
        assert_eq!(buffer.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
        buffer.push(b"\n");
        assert_eq!(buffer.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
