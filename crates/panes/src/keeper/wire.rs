//! The encoding of the messages between keeper and server, which is frozen (see the parent module), and the buffer that splits
//! received bytes into messages.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use ringer_platform::Ending;
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;
/// The longest line, including its end. The environment of a program takes the most room.
pub(super) const LINE_LIMIT: usize = 1024 * 1024;
/// The longest note.
pub(super) const NOTE_LIMIT: usize = 64 * 1024;

/// The longest id.
const ID_LIMIT: usize = 256;
/// The longest reason, which may quote a request that is as long as a line.
const WHY_LIMIT: usize = 1024;

/// The first line of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
}

/// The keeper's answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) version: u32,
    pub(super) panes: usize,
}

/// A request of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeeperRequest {
    Start(StartRequest),
    Note { id: String, text: String },
    Forget { id: String },
}

impl KeeperRequest {
    /// Parses a line. The error is the answer to an invalid request.
    pub(super) fn read(line: &[u8]) -> Result<Self, KeeperMessage> {
        let request = serde_json::from_slice(line).map_err(|error| {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            let id = value.as_object().and_then(|request| request.values().next()?.get("id")?.as_str());
            let id = id.filter(|id| id.len() <= ID_LIMIT).unwrap_or_default();
            KeeperMessage::failed(id.to_owned(), format!("the request cannot be read: {error}"))
        })?;
        let (Self::Start(StartRequest { id, .. }) | Self::Note { id, .. } | Self::Forget { id }) = &request;
        if id.len() > ID_LIMIT {
            let why = format!("an id of {} bytes is longer than {ID_LIMIT} bytes", id.len());
            return Err(KeeperMessage::failed(String::new(), why));
        }
        Ok(request)
    }
}

/// A program to start on a PTY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartRequest {
    pub(super) id: String,
    pub(super) argv: Vec<ByteString>,
    pub(super) environment: Vec<(ByteString, ByteString)>,
    pub(super) directory: ByteString,
    pub(super) columns: u16,
    pub(super) lines: u16,
    pub(super) note: String,
}

/// A message of the keeper after its welcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeeperMessage {
    Pane(PaneHeader),
    Started { id: String, pid: u32, tty: String },
    Failed { id: String, why: String },
    Ended { id: String, ending: Ending },
}

impl KeeperMessage {
    /// The answer to a request that failed.
    pub(super) fn failed(id: String, mut why: String) -> Self {
        why.truncate(why.floor_char_boundary(WHY_LIMIT));
        Self::Failed { id, why }
    }
}

/// A pane that is handed over, followed by `bytes` bytes of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PaneHeader {
    pub(super) id: String,
    pub(super) pid: u32,
    pub(super) tty: String,
    pub(super) note: String,
    pub(super) ending: Option<Ending>,
    pub(super) dropped: u64,
    pub(super) bytes: usize,
}

/// Bytes that are encoded as a string if they are UTF-8, and as an array of numbers otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ByteString {
    Text(String),
    Bytes(Vec<u8>),
}

impl ByteString {
    pub(super) fn into_os_string(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

impl From<&OsStr> for ByteString {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

/// Splits received bytes into lines and raw bytes.
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
    use std::fmt::Debug;

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;

    use super::*;

    /// A line of version 1, whose encoding must never change.
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T, line: &str) {
        assert_eq!(serde_json::to_string(message).unwrap(), line);
        assert_eq!(&serde_json::from_str::<T>(line).unwrap(), message);
    }

    #[test]
    fn the_lines_of_version_1_stay_as_they_are() {
        check(&Hello { version: VERSION }, r#"{"version":1}"#);
        check(&Welcome { version: VERSION, panes: 2 }, r#"{"version":1,"panes":2}"#);
        let start = StartRequest {
            id: "a".to_owned(),
            argv: vec![ByteString::Text("sh".to_owned()), ByteString::Bytes(vec![255, 10])],
            environment: vec![(ByteString::Text("A".to_owned()), ByteString::Text("ä".to_owned()))],
            directory: ByteString::Text("/".to_owned()),
            columns: 80,
            lines: 24,
            note: "n".to_owned(),
        };
        check(
            &KeeperRequest::Start(start),
            r#"{"start":{"id":"a","argv":["sh",[255,10]],"environment":[["A","ä"]],"directory":"/","columns":80,"lines":24,"note":"n"}}"#,
        );
        let (id, text) = ("a".to_owned(), "t".to_owned());
        check(&KeeperRequest::Note { id: id.clone(), text }, r#"{"note":{"id":"a","text":"t"}}"#);
        check(&KeeperRequest::Forget { id: id.clone() }, r#"{"forget":{"id":"a"}}"#);
        let tty = "/dev/pts/1".to_owned();
        let mut pane = PaneHeader {
            id: id.clone(),
            pid: 7,
            tty: tty.clone(),
            note: String::new(),
            ending: None,
            dropped: 3,
            bytes: 5,
        };
        check(
            &KeeperMessage::Pane(pane.clone()),
            r#"{"pane":{"id":"a","pid":7,"tty":"/dev/pts/1","note":"","ending":null,"dropped":3,"bytes":5}}"#,
        );
        pane.ending = Some(Ending::Signal(9));
        check(
            &KeeperMessage::Pane(pane),
            r#"{"pane":{"id":"a","pid":7,"tty":"/dev/pts/1","note":"","ending":{"signal":9},"dropped":3,"bytes":5}}"#,
        );
        check(
            &KeeperMessage::Started { id: id.clone(), pid: 7, tty },
            r#"{"started":{"id":"a","pid":7,"tty":"/dev/pts/1"}}"#,
        );
        let why = "w".to_owned();
        check(&KeeperMessage::Failed { id: id.clone(), why }, r#"{"failed":{"id":"a","why":"w"}}"#);
        check(
            &KeeperMessage::Ended { id, ending: Ending::Exit(0) },
            r#"{"ended":{"id":"a","ending":{"exit":0}}}"#,
        );
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_id() {
        let refused = |line: &str| match KeeperRequest::read(line.as_bytes()) {
            Err(KeeperMessage::Failed { id, why }) => (id, why),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(r#"{"dance":{"id":"a"}}"#).0, "a");
        assert_eq!(refused(r#"{"start":{"id":"b","argv":"sh"}}"#).0, "b");
        for line in ["", "{", "[]", "7", r#"{"forget":{"id":7}}"#, r#"{"forget":{}}"#, "{}"] {
            assert_eq!(refused(line).0, "", "{line}");
        }
        // An answer is never too long to be read, whatever it quotes.
        let long = "ä".repeat(100_000);
        let (id, why) = refused(&format!(r#"{{"forget":{{"id":"{long}"}}}}"#));
        assert_eq!((id.as_str(), why.as_str()), ("", "an id of 200000 bytes is longer than 256 bytes"));
        let (id, why) = refused(&format!(r#"{{"{long}":{{"id":"{long}"}}}}"#));
        assert!(id.is_empty() && why.len() <= WHY_LIMIT && why.len() > WHY_LIMIT - 2, "{}", why.len());
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [&b"plain"[..], "ä\n".as_bytes(), b"\xff\x00\xc3", b""] {
            let line = serde_json::to_string(&ByteString::from(OsStr::from_bytes(bytes))).unwrap();
            let back: ByteString = serde_json::from_str(&line).unwrap();
            assert_eq!(back.into_os_string().as_bytes(), bytes, "{line}");
        }
    }

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
    fn a_line_has_a_limit_complete_or_not() {
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
