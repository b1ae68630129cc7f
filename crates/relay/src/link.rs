//! The rules of a link, for both of its ends. They are pure: inputs are received frames and results of I/O, outputs are requests.
//!
//! Each side sends its own messages and stores those of the other side. Only the receiver knows how far it has stored, and it
//! stores that position together with the messages. It reports the position at the beginning of each connection, and the sender
//! continues from there. So a connection may be cut anywhere, and either side may be killed: no message is lost, and a duplicate
//! is recognised by its position.
//!
//! Only a few frames are in flight at a time ([`WINDOW`]), so memory use does not depend on the backlog.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agents::WireAgent;
use crate::error::Error;
use crate::frame::{AnswerOutput, Frame, Hello, PROTOCOL};
use crate::position::Position;
use crate::wire_message::WireMessage;

/// The most frames with messages in flight, until the other side has stored the first of them.
pub const WINDOW: usize = 4;
/// A side that has sent nothing for this long sends a ping.
pub const PING_AFTER: Duration = Duration::from_secs(15);
/// If nothing is received for this long, the other side counts as gone.
pub const GONE_AFTER: Duration = Duration::from_secs(50);

/// An input of this end.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A frame of the other side.
    Frame(Frame),
    /// The answer to [`Output::Greet`]: how far the other machine's messages are stored here.
    Greeted {
        /// The position; `None` if nothing is stored.
        stored: Option<Position>,
    },
    /// The other side only wants an answer, and exchanges no messages.
    GreetedToAnswer,
    /// The answer to [`Output::Answer`].
    Answered(AnswerOutput),
    /// The answer to [`Output::Locate`]: where sending begins.
    Located {
        /// The position before the first message that is sent.
        at: Position,
        /// Messages up to this number may have been sent before.
        repeats_until: i64,
    },
    /// The answer to [`Output::Read`].
    Read(ReadMessages),
    /// The answer to [`Output::Store`].
    Stored(Position),
    /// The journal of this machine may have new messages.
    Changed,
    /// Time passed.
    Tick,
}

/// Messages that were read from this machine's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadMessages {
    /// The messages for the other machine, in order.
    pub messages: Vec<WireMessage>,
    /// The position of the last of these messages.
    pub end: Option<Position>,
    /// All messages up to this number have been examined.
    pub examined_to: i64,
    /// The journal has more messages after that.
    pub more: bool,
    /// The approximate number of remaining messages.
    pub waiting: u32,
}

/// A request of this end. A request that has an answer is answered before any other input.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// The other side introduced itself: find out how far its messages are stored here.
    Greet(Hello),
    /// Find the position in this machine's journal at which sending begins.
    Locate {
        /// The last position that the other side has; `None` if it never had any.
        after: Option<Position>,
    },
    /// Read messages of this machine after this number.
    Read {
        /// The number.
        after: i64,
    },
    /// Store messages of the other machine, together with the position of the last one.
    Store {
        /// The messages.
        messages: Vec<WireMessage>,
        /// The position.
        end: Position,
        /// Messages up to this number may already be stored, or may have been pruned here.
        repeats_until: i64,
        /// The approximate number of messages that wait on the other machine.
        waiting: u32,
    },
    /// The other side has stored everything up to this position.
    Advance(Position),
    /// The agents of the other machine.
    Agents(Vec<WireAgent>),
    /// The other side answers what a message of this machine asks.
    Answer {
        /// The id of the message.
        message: String,
        /// The words of the answer.
        words: Vec<String>,
        /// Requests the prompt as JSON.
        as_json: bool,
    },
}

/// One end of a connection.
#[derive(Debug)]
pub struct Link {
    greeted: bool,
    outgoing: Outgoing,
    incoming: Incoming,
    received_at: Duration,
    sent_at: Duration,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// The position of the last message that was sent; `None` until the start is known.
    sent: Option<Position>,
    /// All messages up to this number have been examined.
    examined_to: i64,
    /// The end positions of the frames in flight.
    in_flight: VecDeque<Position>,
    /// The journal may have more messages.
    more: bool,
}

#[derive(Debug, Default)]
struct Incoming {
    /// The position of the last message that arrived; `None` until the other side has sent its start.
    received: Option<Position>,
    repeats_until: i64,
    /// The start position was requested.
    asked: bool,
}

impl Link {
    /// Begins a connection. The first frame to send is this side's hello.
    pub fn begin(now: Duration, own: Hello) -> (Self, Vec<Output>) {
        let link = Self {
            greeted: false,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            received_at: now,
            sent_at: now,
        };
        (link, vec![Output::Send(Frame::Hello(own))])
    }

    /// Returns true once both sides have introduced themselves.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Returns true if the other side has stored all messages of this machine that were found.
    pub fn is_idle(&self) -> bool {
        self.outgoing.sent.is_some() && self.outgoing.in_flight.is_empty() && !self.outgoing.more
    }

    /// Returns the time at which [`Input::Tick`] is due.
    pub fn next_tick(&self) -> Duration {
        (self.sent_at + PING_AFTER).min(self.received_at + GONE_AFTER)
    }

    /// Handles an input. An error ends the connection.
    pub fn handle(&mut self, now: Duration, input: Input) -> Result<Vec<Output>, Error> {
        let outputs = match input {
            Input::Frame(frame) => {
                self.received_at = now;
                self.handle_frame(now, frame)?
            }
            Input::Greeted { stored } => {
                self.incoming.asked = true;
                vec![Output::Send(Frame::Want { after: stored })]
            }
            Input::GreetedToAnswer => Vec::new(),
            Input::Answered(answered) => vec![Output::Send(Frame::Answered(answered))],
            Input::Located { at, repeats_until } => {
                self.outgoing.examined_to = at.seq;
                self.outgoing.sent = Some(at.clone());
                self.outgoing.more = true;
                let mut outputs = vec![Output::Send(Frame::Start { at, repeats_until })];
                outputs.extend(self.outgoing.read());
                outputs
            }
            Input::Read(read) => self.outgoing.handle_read(read),
            Input::Stored(end) => vec![Output::Send(Frame::Stored { end })],
            Input::Changed => {
                self.outgoing.more = true;
                self.outgoing.read().into_iter().collect()
            }
            Input::Tick => self.tick(now)?,
        };
        if outputs.iter().any(|output| matches!(output, Output::Send(_))) {
            self.sent_at = now;
        }
        Ok(outputs)
    }

    fn tick(&self, now: Duration) -> Result<Vec<Output>, Error> {
        if now >= self.received_at + GONE_AFTER {
            return Err(Error::Silent(GONE_AFTER.as_secs()));
        }
        let is_due = now >= self.sent_at + PING_AFTER;
        Ok(is_due.then_some(Output::Send(Frame::Ping)).into_iter().collect())
    }

    fn handle_frame(&mut self, now: Duration, frame: Frame) -> Result<Vec<Output>, Error> {
        match frame {
            Frame::Hello(hello) if !self.greeted => {
                let (from, to) = hello.protocol;
                if !(from..=to).contains(&PROTOCOL) {
                    let program = hello.program.chars().filter(|c| !c.is_control()).take(40).collect();
                    return Err(Error::Version { from, to, own: PROTOCOL, program });
                }
                self.greeted = true;
                Ok(vec![Output::Greet(hello)])
            }
            Frame::Refused { why } => {
                Err(Error::Refused(why.chars().filter(|c| !c.is_control()).take(300).collect()))
            }
            // Pings now instead of a little later, so that an idle process wakes up once and not twice.
            Frame::Ping if self.greeted && now >= self.sent_at + PING_AFTER / 2 => {
                Ok(vec![Output::Send(Frame::Ping)])
            }
            Frame::Ping | Frame::Unknown => Ok(Vec::new()),
            _ if !self.greeted => Err(Error::Protocol("it did not begin with a hello")),
            Frame::Hello(_) => Err(Error::Protocol("it said hello twice")),
            Frame::Want { .. } if self.outgoing.sent.is_some() => {
                Err(Error::Protocol("it said twice what it wants"))
            }
            Frame::Want { after } => Ok(vec![Output::Locate { after }]),
            Frame::Start { at, repeats_until } => {
                if !self.incoming.asked || self.incoming.received.is_some() {
                    return Err(Error::Protocol("it began where it was not asked to"));
                }
                self.incoming.received = Some(at);
                self.incoming.repeats_until = repeats_until;
                Ok(Vec::new())
            }
            Frame::Messages { after, end, messages, waiting } => {
                if self.incoming.received.as_ref() != Some(&after) {
                    return Err(Error::Protocol("its messages are not in order"));
                }
                if messages.is_empty() || end.seq <= after.seq {
                    return Err(Error::Protocol("its messages have no end"));
                }
                self.incoming.received = Some(end.clone());
                let repeats_until = self.incoming.repeats_until;
                Ok(vec![Output::Store { messages, end, repeats_until, waiting }])
            }
            Frame::Stored { end } => self.outgoing.handle_stored(end),
            Frame::Agents { agents } => Ok(vec![Output::Agents(agents)]),
            Frame::Answer { message, words, as_json } => Ok(vec![Output::Answer { message, words, as_json }]),
            Frame::Answered(_) => Err(Error::Protocol("it answered what was not asked")),
        }
    }
}

impl Outgoing {
    /// Reads more, if there may be more and the window has room.
    fn read(&mut self) -> Option<Output> {
        (self.sent.is_some() && self.more && self.in_flight.len() < WINDOW)
            .then_some(Output::Read { after: self.examined_to })
    }

    fn handle_read(&mut self, read: ReadMessages) -> Vec<Output> {
        let ReadMessages { messages, end, examined_to, more, waiting } = read;
        (self.examined_to, self.more) = (examined_to, more);
        let mut outputs = Vec::new();
        if let (Some(after), Some(end), false) = (self.sent.clone(), end, messages.is_empty()) {
            self.in_flight.push_back(end.clone());
            self.sent = Some(end.clone());
            outputs.push(Output::Send(Frame::Messages { after, end, messages, waiting }));
        }
        outputs.extend(self.read());
        outputs
    }

    fn handle_stored(&mut self, end: Position) -> Result<Vec<Output>, Error> {
        match self.in_flight.pop_front() {
            Some(first) if first == end => {}
            _ => return Err(Error::Protocol("it stored what was not sent")),
        }
        let more = self.read();
        Ok(std::iter::once(Output::Advance(end)).chain(more).collect())
    }
}
