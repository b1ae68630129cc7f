//! The rules of a link, for both of its ends: what follows from a frame, from what was read and from what was stored.
//!
//! Each side sends its own messages and stores those of the other one. How far a side has stored is known to that side alone,
//! and is stored with the messages themselves; it says so at the beginning of each connection, and the other side goes on from
//! there. So a connection may be cut anywhere, and either side may be killed: nothing is left out, and what comes twice is
//! known by its place.
//!
//! A few frames are on their way at most ([`WINDOW`]), so a backlog of any length takes the same memory.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agents::WireAgent;
use crate::error::Error;
use crate::frame::{Answered, Frame, Hello, PROTOCOL};
use crate::position::Position;
use crate::wire_message::WireMessage;

/// Frames with messages that are sent before the first of them has to be stored on the other side.
pub const WINDOW: usize = 4;
/// How long a side is silent before it says that it is alive.
pub const PING_AFTER: Duration = Duration::from_secs(15);
/// How long nothing has to be heard before the other side counts as gone.
pub const GONE_AFTER: Duration = Duration::from_secs(50);

/// What happened at this end.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The other side sent a frame.
    Frame(Frame),
    /// The answer to [`Output::Greet`]: how far the other machine's messages are stored here.
    Greeted {
        /// The place; `None` if nothing of it is stored.
        stored: Option<Position>,
    },
    /// The other side only wants to answer something.
    GreetedToAnswer,
    /// The answer to [`Output::Answer`].
    Answered(Answered),
    /// The answer to [`Output::Locate`]: where sending begins.
    Located {
        /// The place before the first message that is sent.
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

/// What was read of this machine's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadMessages {
    /// Those that are for the other machine, in order.
    pub messages: Vec<WireMessage>,
    /// The place of the last one of them.
    pub end: Option<Position>,
    /// Everything up to this number was looked at.
    pub looked_at: i64,
    /// There is more behind that.
    pub more: bool,
    /// About how many messages that is.
    pub waiting: u32,
}

/// What this end has to do. What begins with a verb and has an answer is answered before anything else happens.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Send a frame.
    Send(Frame),
    /// The other side said who it is: find out how far its messages are stored here.
    Greet(Hello),
    /// Find the place in this machine's journal from which the other side wants messages.
    Locate {
        /// What it has; `None` if it never had anything.
        after: Option<Position>,
    },
    /// Read messages of this machine behind this number.
    Read {
        /// The number.
        after: i64,
    },
    /// Store messages of the other machine, and with them the place of the last one.
    Store {
        /// The messages.
        messages: Vec<WireMessage>,
        /// The place.
        end: Position,
        /// Those up to this number may be stored already, or may have been forgotten here because they are old.
        repeats_until: i64,
        /// About how many wait on the other machine.
        waiting: u32,
    },
    /// The other side has stored everything up to there.
    Advance(Position),
    /// These agents run on the other machine.
    Agents(Vec<WireAgent>),
    /// The other side answers what a message of this machine asks.
    Answer {
        /// The message.
        message: String,
        /// The words of the answer.
        words: Vec<String>,
        /// Whether what it asks is wanted as JSON.
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

/// The messages of this machine.
#[derive(Debug, Default)]
struct Outgoing {
    /// The place of the last message that was sent; `None` until it is known where to begin.
    sent: Option<Position>,
    /// Everything up to this number was looked at.
    looked_at: i64,
    /// The places of the frames that are on their way.
    in_flight: VecDeque<Position>,
    /// There may be something to read.
    more: bool,
}

/// The messages of the other machine.
#[derive(Debug, Default)]
struct Incoming {
    /// The place of the last message that came; `None` until the other side said where it begins.
    received: Option<Position>,
    repeats_until: i64,
    /// Whether the place was asked for.
    asked: bool,
}

impl Link {
    /// A new connection. The hello of this side is the first frame that is sent.
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

    /// Whether both sides know who the other one is.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Whether all messages of this machine that were found are stored on the other side.
    pub fn is_idle(&self) -> bool {
        self.outgoing.sent.is_some() && self.outgoing.in_flight.is_empty() && !self.outgoing.more
    }

    /// When [`Input::Tick`] is due.
    pub fn next_tick(&self) -> Duration {
        (self.sent_at + PING_AFTER).min(self.received_at + GONE_AFTER)
    }

    /// Handles what happened. After an error the connection is over.
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
                self.outgoing.looked_at = at.seq;
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
            // It is said now instead of a little later, so that an idle process wakes up once and not twice.
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
    /// Reads more, if there may be more and there is room for it.
    fn read(&mut self) -> Option<Output> {
        (self.sent.is_some() && self.more && self.in_flight.len() < WINDOW)
            .then_some(Output::Read { after: self.looked_at })
    }

    fn handle_read(&mut self, read: ReadMessages) -> Vec<Output> {
        let ReadMessages { messages, end, looked_at, more, waiting } = read;
        (self.looked_at, self.more) = (looked_at, more);
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
