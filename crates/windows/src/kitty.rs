//! The remote control protocol of kitty: commands to its socket, with a deadline.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_platform::owned;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kitty_listing::{Listing, wanted_title};

/// The timeout of a command. kitty answers within tens of milliseconds unless it hangs.
const DEADLINE: Duration = Duration::from_secs(1);
const SET_TITLE: &str = "set-window-title";

/// The socket of a kitty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KittyAddress {
    Path(PathBuf),
    /// A name in the abstract namespace.
    Abstract(String),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KittyError {
    #[error("its socket takes no connection: {0}")]
    Connect(io::Error),
    #[error("it does not answer: {0}")]
    Silent(io::Error),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("{0}")]
    Refused(String),
}

impl KittyAddress {
    /// Parses `KITTY_LISTEN_ON`. `None` for TCP: the owner of the process cannot be checked.
    pub(crate) fn parse(listen_on: &str) -> Option<Self> {
        let address = listen_on.strip_prefix("unix:")?;
        match address.strip_prefix('@') {
            Some("") => None,
            Some(name) => Some(Self::Abstract(name.to_owned())),
            None => Path::new(address).is_absolute().then(|| Self::Path(address.into())),
        }
    }

    /// Lists all windows.
    pub(crate) fn list(&self) -> Result<Listing, KittyError> {
        listing(self.command("ls", &json!({}))?.as_ref())
    }

    /// Makes a window the active one of its tab, and its tab the active one.
    pub(crate) fn focus(&self, window: u64) -> Result<(), KittyError> {
        self.command("focus-window", &json!({ "match": format!("id:{window}") })).map(drop)
    }

    /// Adds or removes title marks, by window id, where necessary. The titles are temporary: the program in the window can still
    /// change them.
    pub(crate) fn mark_titles(&self, marks: &BTreeMap<u64, bool>) -> Result<(), KittyError> {
        let listing = self.list()?;
        let mut result = Ok(());
        for (window, is_marked) in marks {
            let wanted = listing.title(*window).and_then(|title| wanted_title(title, *is_marked));
            let Some(title) = wanted else { continue };
            match self.command(SET_TITLE, &new_title(*window, &title)) {
                // The window may have been closed. Go on with the others.
                Err(error @ KittyError::Refused(_)) => result = Err(error),
                set => drop(set?),
            }
        }
        result
    }

    fn command(&self, command: &str, payload: &Value) -> Result<Option<Value>, KittyError> {
        let end = Instant::now() + DEADLINE;
        let mut stream = self.connect()?;
        limit(&stream, end).map_err(KittyError::Silent)?;
        stream.write_all(&request(command, payload)).map_err(KittyError::Silent)?;
        let mut answer = AnswerReader::default();
        let mut piece = vec![0; 64 * 1024];
        loop {
            limit(&stream, end).map_err(KittyError::Silent)?;
            let read = match stream.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => return Err(KittyError::Silent(io::ErrorKind::UnexpectedEof.into())),
                read => read.map_err(KittyError::Silent)?,
            };
            if let Some(answer) = answer.feed(&piece[..read])? {
                return answer.result().map_err(KittyError::Refused);
            }
        }
    }

    fn connect(&self) -> Result<UnixStream, KittyError> {
        let stream = match self {
            Self::Path(path) => owned::connect(path),
            Self::Abstract(name) => owned::connect_abstract(OsStr::new(name).as_bytes()),
        };
        let stream = stream.map_err(KittyError::Connect)?;
        stream.set_nonblocking(false).map_err(KittyError::Connect)?;
        Ok(stream)
    }
}

fn listing(listed: Option<&Value>) -> Result<Listing, KittyError> {
    let text = listed.and_then(Value::as_str).unwrap_or_default();
    Listing::parse(text).map_err(|_| AnswerError::NotOfKitty.into())
}

fn new_title(window: u64, title: &str) -> Value {
    json!({ "match": format!("id:{window}"), "title": title, "temporary": true })
}

/// Parses the pieces of an answer to `ls`, for fuzzing. `None` while the answer is incomplete.
#[doc(hidden)]
pub fn read_listing<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Listing>, String> {
    let mut reader = AnswerReader::default();
    for piece in pieces {
        if let Some(answer) = reader.feed(piece).map_err(|error| error.to_string())? {
            let listed =
                answer.result().map_err(KittyError::Refused).and_then(|listed| listing(listed.as_ref()));
            return listed.map(Some).map_err(|error| error.to_string());
        }
    }
    Ok(None)
}

/// The request that sets the title of a window, for fuzzing.
#[doc(hidden)]
pub fn title_request(window: u64, title: &str) -> Vec<u8> {
    request(SET_TITLE, &new_title(window, title))
}

/// Sets the timeouts of a stream to a deadline.
fn limit(stream: &UnixStream, end: Instant) -> io::Result<()> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))
}

impl fmt::Display for KittyAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(formatter, "unix:{}", path.display()),
            Self::Abstract(name) => write!(formatter, "unix:@{name}"),
        }
    }
}

/// The longest answer. A window takes about 5 KB, most of it its environment.
const MAX_ANSWER: usize = 1024 * 1024;

const BEGIN: &[u8] = b"\x1bP@kitty-cmd";
const END: &[u8] = b"\x1b\\";
/// The protocol version. Newer versions of kitty accept it.
const VERSION: [u32; 3] = [0, 26, 0];

fn request(command: &str, payload: &Value) -> Vec<u8> {
    let request = json!({ "cmd": command, "version": VERSION, "no_response": false, "payload": payload });
    [BEGIN, request.to_string().as_bytes(), END].concat()
}

/// An answer of kitty.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

impl Answer {
    /// The data, or the error message.
    fn result(self) -> Result<Option<Value>, String> {
        if self.ok { Ok(self.data) } else { Err(self.error.unwrap_or_else(|| "it refuses".to_owned())) }
    }
}

/// Why an answer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("its answer is longer than 1 MiB")]
    TooLong,
    #[error("what it answers is not of kitty")]
    NotOfKitty,
}

/// Assembles an answer from pieces.
#[derive(Debug, Default)]
struct AnswerReader {
    bytes: Vec<u8>,
}

impl AnswerReader {
    /// Adds a piece. Returns the answer once it is complete.
    fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>, AnswerError> {
        // The terminator may be split over two pieces.
        let searched = self.bytes.len().saturating_sub(END.len() - 1).max(BEGIN.len());
        let room = MAX_ANSWER.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let begun = self.bytes.len().min(BEGIN.len());
        if self.bytes[..begun] != BEGIN[..begun] {
            return Err(AnswerError::NotOfKitty);
        }
        let unsearched = self.bytes.get(searched..).unwrap_or_default();
        match unsearched.windows(END.len()).position(|window| window == END) {
            Some(end) => {
                let answer = &self.bytes[BEGIN.len()..searched + end];
                serde_json::from_slice(answer).map(Some).map_err(|_| AnswerError::NotOfKitty)
            }
            None if bytes.len() > room => Err(AnswerError::TooLong),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_sockets_of_this_machine_are_used() {
        let address = |listen_on: &str| KittyAddress::parse(listen_on).map(|address| address.to_string());
        for used in ["unix:/tmp/kitty-7", "unix:@kitty-7"] {
            assert_eq!(address(used).as_deref(), Some(used));
        }
        for other in ["", "tcp:localhost:5000", "unix:", "unix:@", "unix:kitty", "/tmp/kitty"] {
            assert_eq!(address(other), None, "{other}");
        }
    }

    #[test]
    fn a_socket_of_another_user_is_not_asked() {
        if !test_support::is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kitty");
        let _listener = UnixListener::bind(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let error = KittyAddress::Path(path).list().unwrap_err().to_string();
        assert!(error.contains("belongs to another user (uid 65534)"), "{error}");
    }

    #[test]
    fn a_socket_that_takes_a_connection_and_says_nothing_is_waited_for_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kitty");
        let listener = UnixListener::bind(&path).unwrap();
        let address = KittyAddress::Path(path);
        let begin = Instant::now();
        assert!(matches!(address.list(), Err(KittyError::Silent(_))));
        assert!(begin.elapsed() < DEADLINE * 5, "{:?}", begin.elapsed());
        drop(listener);
        assert!(matches!(address.list(), Err(KittyError::Connect(_))));
    }

    fn whole(json: &str) -> Vec<u8> {
        [BEGIN, json.as_bytes(), END].concat()
    }

    #[test]
    fn a_refusal_says_why() {
        let answer = |json: &str| AnswerReader::default().feed(&whole(json)).unwrap().unwrap().result();
        assert_eq!(answer(r#"{"ok": true, "data": "2"}"#), Ok(Some("2".into())));
        assert_eq!(answer(r#"{"ok": true}"#), Ok(None));
        let refusal = r#"{"ok": false, "error": "Remote control is disabled", "tb": "…"}"#;
        assert_eq!(answer(refusal), Err("Remote control is disabled".to_owned()));
    }

    #[test]
    fn what_is_not_of_kitty_ends_at_once() {
        for other in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"\x1bP@kitty-cmdx\x1b\\", b"\x1b]"] {
            assert_eq!(AnswerReader::default().feed(other), Err(AnswerError::NotOfKitty), "{other:?}");
        }
    }

    #[test]
    fn an_answer_without_an_end_is_bounded() {
        let mut reader = AnswerReader::default();
        assert_eq!(reader.feed(BEGIN), Ok(None));
        let piece = vec![b' '; 64 * 1024];
        let pieces = (0..100).take_while(|_| reader.feed(&piece) == Ok(None)).count();
        assert_eq!(pieces, MAX_ANSWER / piece.len() - 1);
        assert_eq!(reader.feed(b"x"), Err(AnswerError::TooLong));
        assert!(reader.bytes.len() <= MAX_ANSWER);
    }

    proptest! {
        #[test]
        fn an_answer_is_the_same_wherever_it_is_split(
            text in ".{0,80}",
            cuts in proptest::collection::vec(1_usize..40, 0..20),
        ) {
            let bytes = whole(&json!({ "ok": true, "data": text.clone() }).to_string());
            let mut reader = AnswerReader::default();
            let (mut rest, mut cuts) = (&bytes[..], cuts.into_iter());
            let answer = loop {
                let (piece, later) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
                rest = later;
                let read = reader.feed(piece).unwrap();
                prop_assert_eq!(read.is_some(), rest.is_empty());
                if let Some(answer) = read {
                    break answer;
                }
            };
            prop_assert_eq!(answer.result(), Ok(Some(text.into())));
        }

        #[test]
        fn any_bytes_are_refused_or_wait_for_more(bytes: Vec<u8>, after_begin: bool) {
            let mut reader = AnswerReader::default();
            if after_begin {
                prop_assert_eq!(reader.feed(BEGIN), Ok(None));
            }
            let _ = reader.feed(&bytes);
        }
    }
}
