//! Between the server and its clients: frames of a kind, a length and so many bytes.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use ringer_term::sanitise_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::layout::SplitDirection;
use crate::line_settings::LineSettings;

/// Changes when an older client or server could not go on.
pub(crate) const VERSION: u32 = 1;
/// A kind and a length.
const HEADER: usize = 5;
/// A frame is not longer.
pub(crate) const MAX_FRAME: usize = 4 * 1024 * 1024;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// From a client: who it is.
    Hello,
    /// From a client: bytes of its terminal.
    Input,
    /// From a client: the size of its terminal.
    Resize,
    /// From a client: it has its terminal back from another program, the inbox or its shell, and shows panes again.
    TerminalBack,
    /// From a client: a command.
    Request,
    /// From a client: it leaves, and gives its terminal back itself.
    Leaving,
    /// To a client: who the server is.
    Welcome,
    /// To a client: bytes for its terminal.
    Output,
    /// To a client: show the inbox.
    Inbox,
    /// To a client: leave.
    Bye,
    /// To a client: what came of a command.
    Answer,
    /// To a client: what its window shows now.
    Shown,
}

const KINDS: [(FrameKind, u8); 12] = [
    (FrameKind::Hello, 1),
    (FrameKind::Input, 2),
    (FrameKind::Resize, 3),
    (FrameKind::TerminalBack, 4),
    (FrameKind::Request, 5),
    (FrameKind::Leaving, 6),
    (FrameKind::Welcome, 65),
    (FrameKind::Output, 66),
    (FrameKind::Inbox, 67),
    (FrameKind::Bye, 68),
    (FrameKind::Answer, 69),
    (FrameKind::Shown, 70),
];

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// What it says: JSON, or the bytes of a terminal.
    pub body: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(kind: FrameKind, body: impl Into<Vec<u8>>) -> Self {
        Self { kind, body: body.into() }
    }

    /// A frame with a value as JSON.
    pub(crate) fn json(kind: FrameKind, value: &impl Serialize) -> Self {
        // What is sent has only texts as keys.
        Self::new(kind, serde_json::to_vec(value).unwrap_or_default())
    }

    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> io::Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Appends the frame as it is sent.
    pub fn write(&self, out: &mut Vec<u8>) {
        let number = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or(0, |(_, number)| *number);
        let length = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        out.push(number);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.body);
    }
}

/// What the other side reads of a frame, written again: for fuzzing. The error is that the body cannot be read.
#[doc(hidden)]
pub fn rewrite_frame(frame: &Frame) -> io::Result<Frame> {
    fn rewrite<T: Serialize + for<'a> Deserialize<'a>>(frame: &Frame) -> io::Result<Frame> {
        Ok(Frame::json(frame.kind, &frame.read::<T>()?))
    }
    match frame.kind {
        FrameKind::Hello => rewrite::<Hello>(frame),
        FrameKind::Resize => rewrite::<(u16, u16)>(frame),
        FrameKind::Request => rewrite::<Request>(frame),
        FrameKind::Welcome => rewrite::<Welcome>(frame),
        FrameKind::Bye => rewrite::<Bye>(frame),
        FrameKind::Answer => rewrite::<Answer>(frame),
        FrameKind::Shown => rewrite::<WindowShown>(frame),
        FrameKind::Input
        | FrameKind::TerminalBack
        | FrameKind::Leaving
        | FrameKind::Output
        | FrameKind::Inbox => Ok(frame.clone()),
    }
}

/// Takes bytes as they come, and gives frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: VecDeque<u8>,
}

impl FrameReader {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next frame, if all of it is there. A frame of an unknown kind is passed over; one that is too long is an error.
    #[expect(clippy::should_implement_trait, reason = "there may be another frame after none")]
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if self.bytes.len() < HEADER {
                return Ok(None);
            }
            let header: Vec<u8> = self.bytes.iter().take(HEADER).copied().collect();
            let length = header[1..].iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
            if length > MAX_FRAME {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
            }
            if self.bytes.len() < HEADER + length {
                return Ok(None);
            }
            self.bytes.drain(..HEADER);
            let body: Vec<u8> = self.bytes.drain(..length).collect();
            let kind = KINDS.iter().find(|(_, number)| *number == header[0]).map(|(kind, _)| *kind);
            if let Some(kind) = kind {
                return Ok(Some(Frame { kind, body }));
            }
        }
    }
}

/// What a client says first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    /// The version of the program.
    pub(crate) program: String,
    /// The client's terminal, if it shows panes.
    pub(crate) terminal: Option<TerminalFacts>,
    /// What new panes get.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

/// The terminal of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TerminalFacts {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
    /// How many colours it has: 0, 16, 256 or more.
    pub(crate) colours: u32,
    pub(crate) is_ascii: bool,
    pub(crate) has_mouse: bool,
    pub(crate) surface: Option<String>,
    /// What it was set to before the client made it raw.
    #[serde(default)]
    pub(crate) line_settings: Option<LineSettings>,
    /// What its window showed before, as the last server said it: [`WindowShown`], or what another version has for it.
    #[serde(default)]
    pub(crate) shown: Option<Value>,
}

/// What a window shows. Its client keeps it, and says it to the next server: a server that is killed can save nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowShown {
    /// The id of the workspace.
    pub(crate) workspace: String,
    pub(crate) has_sidebar: bool,
}

/// What the server answers to that.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) version: u32,
    pub(crate) program: String,
    /// Whether the server reads and writes the terminal itself, whose descriptor came with the hello. A key has two processes
    /// less on its way then.
    #[serde(default)]
    pub(crate) takes_terminal: bool,
}

/// Why a client is to leave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Bye {
    /// What the person is told.
    pub(crate) why: Option<String>,
    /// Another server will be there in a moment.
    pub(crate) comes_back: bool,
}

/// What a command wants of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open a pane.
    Open {
        /// What to run; a shell if it is empty.
        command: Vec<String>,
        /// What to call it.
        name: Option<String>,
        /// The workspace, by its name.
        workspace: Option<String>,
        /// Where it is beside another pane, if the person chose that.
        split: Option<SplitDirection>,
        /// Whether the keys go there at once. With a caller, only if that has them.
        takes_keys: bool,
        /// The surface of the pane in which the command was called.
        caller: Option<String>,
        /// Whether the keys go there also if the caller does not have them.
        goes_anyway: bool,
    },
    /// Write to a pane.
    Send {
        /// The pane, by its surface or its name.
        surface: String,
        /// What to write.
        text: String,
    },
    /// Go to a pane in the window that was used last.
    Focus {
        /// The pane.
        surface: String,
    },
    /// All panes.
    List,
    /// The processes whose windows show panes.
    Windows,
    /// All windows leave.
    Detach,
    /// The server ends; programs run on, and the next server shows them.
    Replace,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is done.
    Done,
    /// A pane was opened.
    Opened {
        /// Its surface.
        surface: String,
        /// Whether a window shows its workspace.
        is_shown: bool,
    },
    /// All panes.
    Panes(Vec<PaneListed>),
    /// The processes whose windows show panes.
    Windows {
        /// The server, which holds the terminals of all panes.
        server: u32,
        /// The clients.
        windows: Vec<u32>,
    },
    /// It cannot be done.
    Failed {
        /// Why.
        why: String,
    },
    /// It cannot be done now, and may be later.
    Busy {
        /// Why.
        why: String,
    },
}

/// A pane, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneListed {
    /// Its surface.
    pub surface: String,
    /// The name of its workspace.
    pub workspace: String,
    /// The id of its workspace.
    pub workspace_id: String,
    /// What it is called.
    pub name: String,
    /// What its program says of itself.
    pub title: String,
    /// Its terminal device.
    pub tty: Option<String>,
    /// The process that leads the session on its terminal.
    pub pid: Option<u32>,
    /// Whether it has the keys of the window that was used last.
    pub is_focused: bool,
    /// How many notifications of it are unread.
    pub unread: usize,
    /// How its program ended, if it has.
    pub ending: Option<String>,
}

/// A name has no more characters: borders and lists have no room for more.
pub(crate) const MAX_NAME: usize = 100;

/// Why something cannot be called so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has no character that can be seen.
    #[error("is empty")]
    Empty,
    /// It has more characters than a name may have.
    #[error("has {0} characters, and at most {MAX_NAME} are allowed")]
    TooLong(usize),
}

/// Whether a pane or a workspace may be called so.
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name.chars().count() {
        _ if sanitise_line(name).trim().is_empty() => Err(NameError::Empty),
        length if length > MAX_NAME => Err(NameError::TooLong(length)),
        _ => Ok(()),
    }
}

/// Cuts a name that has too many characters.
pub(crate) fn cut_name(name: &mut String, most: usize) {
    if let Some((at, _)) = name.char_indices().nth(most) {
        name.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_terminal_of_an_earlier_or_a_later_version_is_understood() {
        let sent =
            r#"{"columns":80,"lines":24,"colours":16,"is_ascii":false,"has_mouse":true,"surface":null}"#;
        let earlier: TerminalFacts = serde_json::from_str(sent).unwrap();
        assert_eq!(earlier.shown, None);
        let sent = sent.replace("null}", r#"null,"shown":{"tab":3}}"#);
        let later: TerminalFacts = serde_json::from_str(&sent).unwrap();
        assert!(later.shown.is_some_and(|shown| serde_json::from_value::<WindowShown>(shown).is_err()));
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_wherever_they_are_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
            cuts in prop::collection::vec(1_usize..40, 0..20),
        ) {
            let frames: Vec<Frame> = bodies.into_iter().map(|body| Frame::new(FrameKind::Input, body)).collect();
            let mut bytes = Vec::new();
            // One of a kind that this version does not know.
            bytes.extend_from_slice(&[99, 2, 0, 0, 0, 1, 2]);
            for frame in &frames {
                frame.write(&mut bytes);
            }
            let (mut reader, mut read, mut rest) = (FrameReader::default(), Vec::new(), &bytes[..]);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.push(piece);
                while let Some(frame) = reader.next().unwrap() {
                    read.push(frame);
                }
                rest = after;
            }
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn garbage_is_no_reason_to_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }

    #[test]
    fn a_name_has_from_one_to_a_hundred_characters() {
        for blank in ["", " ", "\u{200b}\t", "\x1b"] {
            assert_eq!(check_name(blank), Err(NameError::Empty), "{blank:?}");
        }
        assert_eq!(check_name(&"ä".repeat(101)), Err(NameError::TooLong(101)));
        for name in ["a", &"漢".repeat(100)] {
            assert_eq!(check_name(name), Ok(()));
        }
        let mut long = "ä".repeat(101);
        cut_name(&mut long, MAX_NAME);
        assert_eq!(long, "ä".repeat(100));
    }
}
