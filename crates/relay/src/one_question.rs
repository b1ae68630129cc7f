//! A short connection besides the one that exchanges messages: reads the hello, and passes on one answer. [`round_trip`] instead
//! sends a message through the link that the hub keeps connected, and waits until the other machine has confirmed it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, Scope, Sender};
use ringer_journal::{Home, IdSource, Journal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::Error;
use crate::frame::{AnswerOutput, Frame, FrameReader, Hello, PROTOCOL, Purpose};
use crate::link_process::{LinkProcess, set_nonblocking};
use crate::machine::{MachineId, MachineName};
use crate::peer::check_name;

/// The capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// A connection for a single request.
#[derive(Debug)]
pub struct RemoteRequest {
    connection: Connection,
    hello: Hello,
}

impl RemoteRequest {
    /// Starts the program of a link, and waits for the hello of the other machine.
    pub fn begin(
        home: &Home,
        argv: &[String],
        program: &str,
        purpose: Purpose,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let own = Hello {
            protocol: (PROTOCOL, PROTOCOL),
            machine: MachineId::of(home)?,
            name: MachineName::of_host().to_string(),
            program: program.to_owned(),
            unix_ms: IdSource::now().unix_ms,
            purpose,
            may_answer: true,
        };
        let mut connection = Connection::start(argv, timeout)?;
        connection.write(&Frame::Hello(own.clone()))?;
        let hello = loop {
            if let Frame::Hello(hello) = connection.next()? {
                break hello;
            }
        };
        let (from, to) = hello.protocol;
        if !(from..=to).contains(&PROTOCOL) {
            let program = hello.program.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(Error::Version { from, to, own: PROTOCOL, program });
        }
        if hello.machine == own.machine {
            return Err(Error::SameMachine);
        }
        Ok(Self { connection, hello })
    }

    /// Returns the hello of the other machine.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Fails if another machine is known here by that name.
    pub fn is_from(self, journal: &mut Journal, name: &str) -> Result<Self, Error> {
        check_name(journal, MachineName::parse(name).as_ref(), &self.hello)?;
        Ok(self)
    }

    /// Sends an answer, and waits for its outcome.
    pub fn answer(self, message: &str, words: &[String]) -> Result<AnswerOutput, Error> {
        self.send(&Frame::Answer { message: message.to_owned(), words: words.to_vec(), as_json: false })
    }

    /// Returns the whole prompt of a message, as `ringer answer --json` prints it on that machine.
    pub fn show(self, message: &str) -> Result<AnswerOutput, Error> {
        self.send(&Frame::Answer { message: message.to_owned(), words: Vec::new(), as_json: true })
    }

    fn send(mut self, frame: &Frame) -> Result<AnswerOutput, Error> {
        self.connection.write(frame)?;
        loop {
            if let Frame::Answered(answered) = self.connection.next()? {
                return Ok(answered);
            }
        }
    }
}

#[derive(Debug)]
struct Connection {
    process: LinkProcess,
    reader: FrameReader,
    /// Frames that arrived but were not handled yet.
    frames: VecDeque<Frame>,
    deadline: Instant,
    timeout: Duration,
}

impl Connection {
    fn start(argv: &[String], timeout: Duration) -> Result<Self, Error> {
        let program = argv.first().map(String::as_str).unwrap_or_default();
        let process = LinkProcess::start(argv)
            .map_err(|error| Error::Program(format!("{program} cannot be started: {error}")))?;
        for pipe in [process.input(), process.output()] {
            set_nonblocking(pipe)?;
        }
        let (reader, deadline) = (FrameReader::before_hello(), Instant::now() + timeout);
        Ok(Self { process, reader, frames: VecDeque::new(), deadline, timeout })
    }

    /// Writes a frame before the deadline.
    fn write(&self, frame: &Frame) -> Result<(), Error> {
        let line = frame.line();
        let mut written = 0;
        while written < line.len() {
            match rustix::io::write(self.process.input(), &line[written..]) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(self.process.input(), PollFlags::OUT)?,
                // The read reports why it ended.
                Err(Errno::PIPE) => break,
                Err(error) => return Err(io_error("cannot write to the link", error)),
            }
        }
        Ok(())
    }

    /// Waits for one of the pipes until the deadline.
    fn wait(&self, pipe: BorrowedFd<'_>, flags: PollFlags) -> Result<(), Error> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Silent(self.timeout.as_secs()));
        }
        let errors = self.process.errors();
        let mut waits = vec![PollFd::from_borrowed_fd(pipe, flags)];
        waits.extend(errors.to_wait_for());
        match poll(&mut waits, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => Err(Error::Silent(self.timeout.as_secs())),
            Ok(_) | Err(Errno::INTR) => {
                errors.read();
                Ok(())
            }
            Err(error) => Err(io_error("cannot wait for the link", error)),
        }
    }

    /// Returns the next frame before the deadline.
    fn next(&mut self) -> Result<Frame, Error> {
        loop {
            match self.frames.pop_front() {
                Some(Frame::Refused { why }) => {
                    let why = why.chars().filter(|character| !character.is_control()).take(300).collect();
                    return Err(Error::Refused(why));
                }
                Some(frame) => return Ok(frame),
                None => self.read()?,
            }
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        let output = self.process.output();
        self.wait(output, PollFlags::IN)?;
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(output, &mut *chunk) {
            Ok(0) => Err(Error::Program(self.process.describe_end())),
            Ok(read) => {
                let frames = self.reader.feed(&chunk[..read]).map_err(|wrong| Error::Protocol(wrong.0))?;
                self.frames.extend(frames);
                Ok(())
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(io_error("cannot read the link", error)),
        }
    }
}

fn io_error(what: &str, error: Errno) -> Error {
    Error::Io { what: what.to_owned(), source: error.into() }
}

/// Interval at which the confirmation is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Sends a message to the machine of that name through the link that the hub keeps connected. Returns the time until the machine
/// had stored it and this one knew. The message is a mark on a message that does not exist, so it changes nothing there.
pub fn round_trip(home: &Home, name: &str, timeout: Duration) -> Result<Duration, Error> {
    let mut journal = Journal::open(home)?;
    let Some(machine) = journal.machine_id_of(name)? else {
        return Err(Error::Program(format!("{name} was never connected")));
    };
    let target = MarkTarget::Message(IdSource::now().message_id());
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
    draft.key = Some(target.to_string());
    let begun = Instant::now();
    let id = journal.append(&draft, &IdSource::now())?;
    let seq = journal.message(id.as_str())?.map_or(0, |message| message.seq);
    while journal.export_position(&machine, IdSource::now().unix_ms)?.seq < seq {
        if begun.elapsed() >= timeout {
            return Err(Error::Silent(timeout.as_secs()));
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(begun.elapsed())
}
