//! Protocol between the server and its clients: each frame is a kind (1 byte), a length (4 bytes, little-endian) and a body.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use ringer_term::sanitise_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::layout::SplitDirection;
use crate::outer_terminal::LineSettings;

/// Incremented when an older client or server can no longer take part.
pub(crate) const VERSION: u32 = 1;
const HEADER: usize = 5;
/// The longest body of a frame.
pub(crate) const MAX_FRAME: usize = 4 * 1024 * 1024;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// From a client: its version, terminal and environment. It is sent first.
    Hello,
    /// From a client: input of its terminal.
    Input,
    /// From a client: the size of its terminal.
    Resize,
    /// From a client: another program (the inbox, or its shell) had the terminal, and the client shows panes again.
    TerminalBack,
    /// From a client: a command.
    Request,
    /// From a client: it leaves, and resets its terminal itself.
    Leaving,
    /// To a client: the server's version. It answers the hello.
    Welcome,
    /// To a client: output for its terminal.
    Output,
    /// To a client: show the inbox.
    Inbox,
    /// To a client: leave.
    Bye,
    /// To a client: the answer to a command.
    Answer,
    /// To a client: the view of its window, which the client keeps for the next server.
    View,
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
    (FrameKind::View, 70),
];

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The kind, which determines the form of the body.
    pub kind: FrameKind,
    /// JSON, or the bytes of a terminal.
    pub body: Vec<u8>,
}

impl Frame {
    pub(crate) fn new(kind: FrameKind, body: impl Into<Vec<u8>>) -> Self {
        Self { kind, body: body.into() }
    }

    pub(crate) fn json(kind: FrameKind, value: &impl Serialize) -> Self {
        // All maps that are sent have strings as keys, so this cannot fail.
        Self::new(kind, serde_json::to_vec(value).unwrap_or_default())
    }

    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> io::Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Appends the encoded frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        let number = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or(0, |(_, number)| *number);
        let length = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        out.push(number);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.body);
    }
}

/// Decodes the body of a frame and encodes it again, for fuzzing. Returns an error if the body is not valid.
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
        FrameKind::View => rewrite::<WindowView>(frame),
        FrameKind::Input
        | FrameKind::TerminalBack
        | FrameKind::Leaving
        | FrameKind::Output
        | FrameKind::Inbox => Ok(frame.clone()),
    }
}

/// Splits a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: VecDeque<u8>,
}

impl FrameReader {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Returns the next complete frame. A frame of an unknown kind is skipped; one that is too long is an error.
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

/// The first message of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    /// The version of the client's program.
    pub(crate) program: String,
    /// `None` if the client only sends a request.
    pub(crate) terminal: Option<TerminalFacts>,
    /// The environment for new panes.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

/// The terminal of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TerminalFacts {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
    /// The number of colours: 0, 16, 256 or more.
    pub(crate) colours: u32,
    pub(crate) is_ascii: bool,
    pub(crate) has_mouse: bool,
    pub(crate) surface: Option<String>,
    /// The settings before the client made the terminal raw.
    #[serde(default)]
    pub(crate) line_settings: Option<LineSettings>,
    /// The view of its window under the last server: [`WindowView`], or the form of another version.
    #[serde(default)]
    pub(crate) shown: Option<Value>,
}

/// The view of a window. The client keeps it and sends it to the next server, because a server that is killed can save nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowView {
    pub(crate) workspace: String,
    pub(crate) has_sidebar: bool,
}

/// The server's answer to [`Hello`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) version: u32,
    pub(crate) program: String,
    /// The server reads and writes the terminal itself, through the descriptor that came with the hello. This takes the client
    /// out of the path of each key.
    #[serde(default)]
    pub(crate) takes_terminal: bool,
}

/// Tells a client to leave.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Bye {
    /// A message for the person.
    pub(crate) why: Option<String>,
    /// Another server takes over, and the client should connect to it.
    pub(crate) comes_back: bool,
}

/// A command for the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open a pane.
    Open {
        /// The command and its arguments; a shell if empty.
        command: Vec<String>,
        /// The name of the pane.
        name: Option<String>,
        /// The name of the workspace.
        workspace: Option<String>,
        /// The direction of the split, if the person chose one.
        split: Option<SplitDirection>,
        /// Focus the pane. With a caller, only if the caller has the focus.
        takes_keys: bool,
        /// The surface of the pane in which the command was run.
        caller: Option<String>,
        /// Focus the pane even if the caller does not have the focus.
        goes_anyway: bool,
    },
    /// Write to a pane.
    Send {
        /// The surface or the name of the pane.
        surface: String,
        /// The text to write.
        text: String,
    },
    /// Focus a pane in the window that was used last.
    Focus {
        /// The surface or the name of the pane.
        surface: String,
    },
    /// List all panes.
    List,
    /// List the processes whose windows show panes.
    Windows,
    /// Detach all windows.
    Detach,
    /// End the server. The programs go on running, and the next server shows them.
    Replace,
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The request succeeded.
    Done,
    /// A pane was opened.
    Opened {
        /// The surface of the pane.
        surface: String,
        /// A window shows the workspace of the pane.
        is_shown: bool,
    },
    /// All panes.
    Panes(Vec<PaneEntry>),
    /// The processes whose windows show panes.
    Windows {
        /// The server, which holds the terminals of all panes.
        server: u32,
        /// The clients' processes.
        windows: Vec<u32>,
    },
    /// The request failed.
    Failed {
        /// The reason.
        why: String,
    },
    /// The request failed, and may succeed later.
    Busy {
        /// The reason.
        why: String,
    },
}

/// A pane in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneEntry {
    /// The surface of the pane.
    pub surface: String,
    /// The name of its workspace.
    pub workspace: String,
    /// The id of its workspace.
    pub workspace_id: String,
    /// The name that the person sees.
    pub name: String,
    /// The title that its program has set.
    pub title: String,
    /// The terminal device.
    pub tty: Option<String>,
    /// The session leader of its terminal.
    pub pid: Option<u32>,
    /// It has the focus of the window that was used last.
    pub is_focused: bool,
    /// The number of its unread notifications.
    pub unread: usize,
    /// How its program ended, or why it did not start.
    pub ending: Option<String>,
}

/// The longest name, in characters: borders and lists have no room for more.
pub(crate) const MAX_NAME: usize = 100;

/// The reason a name is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no visible character.
    #[error("is empty")]
    Empty,
    /// The name has more characters than are allowed.
    #[error("has {0} characters, and at most {MAX_NAME} are allowed")]
    TooLong(usize),
}

/// Checks a name for a pane or a workspace.
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name.chars().count() {
        _ if sanitise_line(name).trim().is_empty() => Err(NameError::Empty),
        length if length > MAX_NAME => Err(NameError::TooLong(length)),
        _ => Ok(()),
    }
}

/// Truncates a name to `most` characters.
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
        assert!(later.shown.is_some_and(|shown| serde_json::from_value::<WindowView>(shown).is_err()));
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
