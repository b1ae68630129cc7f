//! The protocol between the two ends of a link: one JSON object per line.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::agents::WireAgent;
use crate::machine::MachineId;
use crate::position::Position;
use crate::wire_message::WireMessage;

/// The protocol version of this program.
pub const PROTOCOL: u32 = 1;
/// The maximum size of a frame, in bytes. A longer one ends the link.
pub const MAX_FRAME: usize = 1024 * 1024;
/// The maximum length of a list in a frame. An empty message has three bytes in a frame, and some hundred in memory.
pub const MAX_PARTS: usize = 2048;

/// One line of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Frame {
    /// The first frame of each side.
    Hello(Hello),
    /// How far the sender of this frame has stored the messages of the other machine. Without a position, nothing yet.
    Want {
        /// The sender wants messages after this position.
        after: Option<Position>,
    },
    /// The start of the messages that follow.
    Start {
        /// The position before them.
        at: Position,
        /// Messages up to this number may have been sent before, because the journal was replaced.
        #[serde(default)]
        repeats_until: i64,
    },
    /// Messages, in order.
    Messages {
        /// The position before them, which is the `end` of the previous frame.
        after: Position,
        /// The position of the last message.
        end: Position,
        /// The messages.
        #[serde(deserialize_with = "bounded")]
        messages: Vec<WireMessage>,
        /// The approximate number of messages that wait behind them; at most 10,000 are counted.
        #[serde(default)]
        waiting: u32,
    },
    /// Everything up to this position is stored durably.
    Stored {
        /// The position of the last message.
        end: Position,
    },
    /// The agents on the sender's machine, sent whenever they change.
    Agents {
        /// The complete list.
        #[serde(deserialize_with = "bounded")]
        agents: Vec<WireAgent>,
    },
    /// Answers what a message of the other machine asks. Without words, requests the prompt.
    Answer {
        /// The message that asks.
        message: String,
        /// The words, as a person would type them after `ringer answer ID`.
        #[serde(deserialize_with = "bounded")]
        words: Vec<String>,
        /// Requests the prompt as JSON, for a screen.
        #[serde(default)]
        as_json: bool,
    },
    /// The outcome of an answer, as `ringer answer` printed it.
    Answered(AnswerOutput),
    /// Keeps the connection alive.
    Ping,
    /// The sender ends the link.
    Refused {
        /// The reason, for a person.
        why: String,
    },
    /// A frame of a newer version. It is ignored.
    #[serde(other)]
    Unknown,
}

/// The introduction of a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The oldest and the newest protocol version that it speaks.
    pub protocol: (u32, u32),
    /// The id of the machine.
    pub machine: MachineId,
    /// The name that the machine has chosen.
    pub name: String,
    /// The version of its program.
    pub program: String,
    /// Its clock, in milliseconds since 1970. Clocks differ, and this corrects the times of messages.
    pub unix_ms: i64,
    /// The purpose of the connection.
    #[serde(default)]
    pub purpose: Purpose,
    /// The person at this side wants to answer what agents ask on the other machine, and to write to them.
    #[serde(default)]
    pub may_answer: bool,
}

/// The outcome of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerOutput {
    /// The exit code of `ringer answer` on the other machine.
    pub exit: u8,
    /// Its standard output.
    pub text: String,
    /// Its standard error.
    pub error: String,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Messages go both ways until it ends.
    #[default]
    Exchange,
    /// Answers something, or reads only the hello. There may be many such connections at the same time.
    Answer,
    /// Sets up a link: from now on, messages are kept for the machine that says hello.
    #[serde(rename = "introduce")]
    Register,
}

impl Frame {
    /// Encodes the frame as a line.
    pub fn line(&self) -> Vec<u8> {
        // Plain data cannot fail to encode.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Parses a line. Returns `None` if it is not a frame.
    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// Deserialises a list of at most [`MAX_PARTS`] parts.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Parts<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
        type Value = Vec<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "a list of at most {MAX_PARTS} parts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = list.next_element()? {
                if parts.len() == MAX_PARTS {
                    return Err(A::Error::invalid_length(MAX_PARTS + 1, &self));
                }
                parts.push(part);
            }
            Ok(parts)
        }
    }

    from.deserialize_seq(Parts(PhantomData))
}

/// The most lines before the first frame that are skipped: more than any greeting of a shell has.
const MAX_SKIPPED: usize = 100;

/// Splits received bytes into frames. Holds at most one incomplete frame.
#[derive(Debug, Default)]
pub struct FrameReader {
    partial: Vec<u8>,
    /// The remaining number of lines without a frame that are skipped.
    may_skip: usize,
}

/// A line that is not a frame, with the reason. It ends the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFrame(pub &'static str);

impl FrameReader {
    /// Returns a reader for the beginning of a connection. The start-up files of a shell may print something first: lines without
    /// a frame are skipped until the first frame.
    pub fn before_hello() -> Self {
        Self { partial: Vec::new(), may_skip: MAX_SKIPPED }
    }

    /// Reads bytes. Returns the frames that they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<Frame>, InvalidFrame> {
        let mut frames = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.keep(line)?;
            let line = std::mem::take(&mut self.partial);
            match Frame::read(&line) {
                Some(frame) => {
                    self.may_skip = 0;
                    frames.push(frame);
                }
                None if self.may_skip > 0 => self.may_skip -= 1,
                None => return Err(InvalidFrame("a line is no frame")),
            }
        }
        self.keep(bytes)?;
        Ok(frames)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), InvalidFrame> {
        if self.partial.len() + bytes.len() > MAX_FRAME {
            return Err(InvalidFrame("a frame is longer than 1 MiB"));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_of_a_newer_version_is_ignored() {
        assert_eq!(Frame::read(br#"{"type":"dance","steps":3}"#), Some(Frame::Unknown));
        assert_eq!(Frame::read(br#"{"type":"ping","tempo":"slow"}"#), Some(Frame::Ping));
        assert_eq!(Frame::read(b"{}"), None);
        assert_eq!(Frame::read(b"Last login: today"), None);
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.feed(&vec![b' '; MAX_FRAME]), Ok(Vec::new()));
        assert_eq!(reader.feed(b" "), Err(InvalidFrame("a frame is longer than 1 MiB")));
    }

    #[test]
    fn a_frame_with_too_many_messages_is_refused() {
        let frame = |count: usize| {
            let place = r#"{"generation":"g","seq":0}"#;
            let messages = vec!["{}"; count].join(",");
            format!(r#"{{"type":"messages","after":{place},"end":{place},"messages":[{messages}]}}"#)
        };
        assert!(Frame::read(frame(MAX_PARTS).as_bytes()).is_some());
        assert_eq!(Frame::read(frame(MAX_PARTS + 1).as_bytes()), None);
    }

    #[test]
    fn shell_output_before_the_first_frame_is_skipped() {
        let mut reader = FrameReader::before_hello();
        assert_eq!(reader.feed(b"Welcome!\n\n{\"type\":\"ping\"}\n"), Ok(vec![Frame::Ping]));
        assert_eq!(reader.feed(b"Welcome!\n"), Err(InvalidFrame("a line is no frame")));
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_how_the_input_is_split(cuts in prop::collection::vec(0_usize..400, 0..6)) {
            let frames = [
                Frame::Ping,
                Frame::Want { after: None },
                Frame::Stored { end: Position { generation: "g".into(), seq: 7, id: Some("a\nb".into()) } },
                Frame::Refused { why: "no \u{2028} é".into() },
            ];
            let bytes: Vec<u8> = frames.iter().flat_map(Frame::line).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut reader = FrameReader::default();
            let mut read = Vec::new();
            for cut in cuts.windows(2) {
                read.extend(reader.feed(&bytes[cut[0]..cut[1]]).unwrap());
            }
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn any_line_is_parsed_or_rejected(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frame::read(&line);
        }
    }
}
