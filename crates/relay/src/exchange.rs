//! One connection: a [`Link`] between the journal of this machine and two pipes to another machine. [`serve`] is the far end,
//! `ringer relay serve --stdio`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use ringer_journal::{IdSource, Import, Journal, JournalWatch, monotonic};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::agents::{MAX_AGENTS, WireAgent, own_agents};
use crate::error::Error;
use crate::frame::{Frame, FrameReader, Hello, PROTOCOL, Purpose};
use crate::link::{Input, Link, Output};
use crate::link_process::{ProcessErrors, set_nonblocking};
use crate::local_journal::{self, answer};
use crate::machine::{MachineId, MachineName};
use crate::machine_agents::LinkAgents;
use crate::peer::{ExchangeSetup, Peer, check_name, register_machine};
use crate::position::Position;
use crate::repositories::Repositories;
use crate::wire_message::WireMessage;

/// The capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// The limit of bytes that the other side has not read. The frames in flight are at most half of it, so more means that the other
/// side sends without reading.
const MAX_UNSENT: usize = 8 * 1024 * 1024;
/// Time limit for the other side's hello. ssh has its own timeout for the connection before that.
const HELLO_TIMEOUT: Duration = Duration::from_mins(1);

/// Delay between a change and the next check of the agents: changes come in bursts.
const AGENTS_DELAY: Duration = Duration::from_millis(200);
/// The two pipes, and a way to end the connection locally.
#[derive(Debug, Clone, Copy)]
pub struct Pipes<'a> {
    /// Receives the frames of the other side.
    pub input: BorrowedFd<'a>,
    /// Takes the frames for the other side.
    pub output: BorrowedFd<'a>,
    /// Becomes readable when the connection must end.
    pub stop: Option<BorrowedFd<'a>>,
    /// The standard error of the link's program.
    pub errors: Option<&'a ProcessErrors>,
}

/// How a connection ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The other side closed its end.
    Closed,
    /// This side ended it.
    Stopped,
}

/// An event of a connection, for its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The other side introduced itself.
    Greeted {
        /// The id of the other machine.
        machine: MachineId,
        /// The name of the other machine here.
        name: MachineName,
        /// The program version of the other machine.
        program: String,
    },
    /// Messages of the other machine were stored, or refused.
    Stored {
        /// The number of new messages.
        new: usize,
        /// The number of refused messages, with the reason for the last one.
        refused: Option<(usize, String)>,
        /// The approximate number of messages that wait on the other machine.
        waiting: u32,
    },
}

/// A connection.
pub struct Exchange<'a> {
    setup: &'a ExchangeSetup,
    own: MachineId,
    journal: Journal,
    watch: JournalWatch,
    link: Link,
    pipes: Pipes<'a>,
    reader: FrameReader,
    unsent: Vec<u8>,
    peer: Option<Peer>,
    repositories: Repositories,
    /// The person at the other machine wants to answer what agents ask here.
    other_may_answer: bool,
    /// The last list of agents that was sent, and when to check for changes.
    sent_agents: Option<Vec<WireAgent>>,
    check_agents_at: Option<Instant>,
    progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Exchange<'a> {
    /// Begins a connection by queueing the hello.
    pub fn begin(
        setup: &'a ExchangeSetup,
        pipes: Pipes<'a>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self, Error> {
        // Opening the journal creates the home.
        let mut journal = Journal::open(&setup.home)?;
        let own = MachineId::of(&setup.home)?;
        let watch = JournalWatch::register(&mut journal)?;
        journal.take_reopened();
        for fd in [pipes.input, pipes.output] {
            set_nonblocking(fd)?;
        }
        let hello = Hello {
            protocol: (PROTOCOL, PROTOCOL),
            machine: own.clone(),
            name: MachineName::of_host().to_string(),
            program: setup.program.clone(),
            unix_ms: IdSource::now().unix_ms,
            purpose: Purpose::Exchange,
            may_answer: setup.may_answer,
        };
        let (link, outputs) = Link::begin(monotonic(), hello);
        let (reader, unsent) = (FrameReader::before_hello(), Vec::new());
        let mut exchange = Self {
            setup,
            own,
            journal,
            watch,
            link,
            pipes,
            reader,
            unsent,
            peer: None,
            repositories: Repositories::new(setup.repository_names.clone()),
            other_may_answer: false,
            sent_agents: None,
            check_agents_at: None,
            progress,
        };
        for output in outputs {
            exchange.execute(output)?;
        }
        Ok(exchange)
    }

    /// Runs the connection to its end. Reports an error to the other side.
    pub fn run(mut self) -> Result<ConnectionEnd, Error> {
        let ended = self.serve();
        if let Err(error) = &ended
            && !matches!(error, Error::Refused(_))
        {
            self.queue_frame(&Frame::Refused { why: error.for_other_side() });
            // If the frame cannot be written at once, the end of the pipe says as much.
            let _ = self.write();
        }
        ended
    }

    fn serve(&mut self) -> Result<ConnectionEnd, Error> {
        let greets_until = Instant::now() + HELLO_TIMEOUT;
        loop {
            self.write()?;
            if !self.link.is_greeted() && Instant::now() >= greets_until {
                return Err(Error::Silent(HELLO_TIMEOUT.as_secs()));
            }
            let tick = self.link.next_tick().saturating_sub(monotonic());
            let tick = if self.link.is_greeted() { tick } else { tick.min(Duration::from_secs(1)) };
            let agents = self.check_agents_at.map(|at| at.saturating_duration_since(Instant::now()));
            let ready = self.wait(agents.map_or(tick, |agents| agents.min(tick)))?;
            if ready.stop {
                return Ok(ConnectionEnd::Stopped);
            }
            if (ready.input || ready.closed) && self.read()? {
                return Ok(ConnectionEnd::Closed);
            }
            if ready.closed && !ready.input {
                return Ok(ConnectionEnd::Closed);
            }
            if ready.bell {
                self.watch.prepare(&mut self.journal)?;
                if self.journal.take_reopened() {
                    let source = io::Error::other("the journal was replaced; the link begins anew");
                    return Err(Error::Io { what: "cannot go on".to_owned(), source });
                }
                if let Some(peer) = &self.peer {
                    peer.check_known(&mut self.journal)?;
                }
                self.handle(Input::Changed)?;
                // Nothing can be sent before the hello.
                if self.peer.is_some() {
                    self.check_agents_at = self.check_agents_at.or(Some(Instant::now() + AGENTS_DELAY));
                }
            }
            self.send_agents()?;
            if self.link.next_tick() <= monotonic() {
                self.handle(Input::Tick)?;
            }
        }
    }

    fn wait(&self, timeout: Duration) -> Result<Ready, Error> {
        let Pipes { input, output, stop, errors } = self.pipes;
        let writes = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut waits = vec![
            PollFd::new(&self.watch, PollFlags::IN),
            PollFd::from_borrowed_fd(input, PollFlags::IN),
            PollFd::from_borrowed_fd(output, writes),
        ];
        let stop_at = waits.len();
        waits.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        let errors_at = waits.len();
        waits.extend(errors.and_then(ProcessErrors::to_wait_for));
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Error::Io { what: "cannot wait for the pipes".to_owned(), source: error.into() });
            }
        }
        let is_ready = |at: usize| waits.get(at).is_some_and(|wait| !wait.revents().is_empty());
        let closed = waits[2].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        if let Some(errors) = errors.filter(|_| is_ready(errors_at)) {
            errors.read();
        }
        let stop = stop.is_some() && is_ready(stop_at);
        Ok(Ready { bell: is_ready(0), input: is_ready(1), closed, stop })
    }

    /// Reads the available input. Returns true at its end.
    fn read(&mut self) -> Result<bool, Error> {
        let mut chunk = vec![0; CHUNK];
        let read = match rustix::io::read(self.pipes.input, &mut *chunk) {
            Ok(0) | Err(Errno::CONNRESET | Errno::PIPE) => return Ok(true),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => {
                return Err(Error::Io { what: "cannot read the pipe".to_owned(), source: error.into() });
            }
        };
        let frames = self.reader.feed(&chunk[..read]).map_err(|wrong| Error::Protocol(wrong.0))?;
        for frame in frames {
            self.handle(Input::Frame(frame))?;
        }
        Ok(false)
    }

    /// Handles an input, with all inputs that follow from it.
    fn handle(&mut self, input: Input) -> Result<(), Error> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for output in self.link.handle(monotonic(), input)? {
                inputs.extend(self.execute(output)?);
            }
        }
        Ok(())
    }

    /// Executes an output of the link. Returns the next input, if it has one.
    fn execute(&mut self, output: Output) -> Result<Option<Input>, Error> {
        Ok(match output {
            Output::Send(frame) => {
                self.queue_frame(&frame);
                None
            }
            Output::Greet(hello) => Some(self.greet(&hello)?),
            Output::Locate { after } => {
                let Peer { machine, send_after, .. } = self.peer()?;
                let (machine, send_after) = (machine.clone(), *send_after);
                Some(local_journal::locate(&mut self.journal, &machine, send_after, after)?)
            }
            Output::Read { after } => {
                let machine = self.peer()?.rules.machine.clone();
                let Self { journal, repositories, .. } = self;
                Some(Input::Read(local_journal::read_own(journal, repositories, &machine, after)?))
            }
            Output::Store { messages, end, repeats_until, waiting } => {
                let (new, refused) = self.store(messages, &end, repeats_until)?;
                (self.progress)(Progress::Stored { new, refused, waiting });
                Some(Input::Stored(end))
            }
            Output::Agents(agents) => {
                let Self { peer: Some(peer), journal, .. } = self else { return Ok(None) };
                peer.check_known(journal)?;
                LinkAgents::of(&peer.rules, &peer.machine, agents).write(&self.setup.home);
                None
            }
            Output::Answer { message, words, as_json } => {
                let give = self.setup.give_answer.filter(|_| self.other_may_answer);
                Some(Input::Answered(answer(give, &mut self.journal, &message, words, as_json)?))
            }
            Output::Advance(end) => {
                let machine = self.peer()?.machine.clone();
                let (end, now_ms) = (end.into(), IdSource::now().unix_ms);
                if !self.journal.advance_export(machine.as_str(), &end, now_ms)? {
                    return Err(self.peer()?.removed());
                }
                None
            }
        })
    }

    /// Stores messages. Returns how many were new, and how many were refused.
    fn store(
        &mut self,
        messages: Vec<WireMessage>,
        end: &Position,
        repeats_until: i64,
    ) -> Result<(usize, Option<(usize, String)>), Error> {
        let Peer { machine, rules, .. } = self.peer()?;
        let (machine, rules) = (machine.clone(), rules.clone());
        let Self { journal, repositories, .. } = self;
        let may_be_old = |wire: &WireMessage| wire.seq <= repeats_until;
        let mut checked = local_journal::store(journal, repositories, &rules, messages, may_be_old)?;
        let imported = self.journal.import(&Import {
            machine_id: machine.as_str(),
            machine: rules.machine.as_str(),
            messages: &checked.messages,
            end: &end.clone().into(),
        })?;
        let Some(imported) = imported else { return Err(self.peer()?.removed()) };
        checked.refuse_own_ids(imported.refused);
        Ok((imported.new, checked.refused))
    }

    /// Sends the list of agents, if it is due and has changed.
    fn send_agents(&mut self) -> Result<(), Error> {
        let is_due = self.check_agents_at.is_some_and(|at| at <= Instant::now());
        if !is_due || self.peer.is_none() {
            return Ok(());
        }
        self.check_agents_at = None;
        let mut agents = own_agents(&mut self.journal)?;
        agents.truncate(MAX_AGENTS);
        if self.sent_agents.as_ref() != Some(&agents) {
            self.queue_frame(&Frame::Agents { agents: agents.clone() });
            self.sent_agents = Some(agents);
        }
        Ok(())
    }

    fn peer(&self) -> Result<&Peer, Error> {
        self.peer.as_ref().ok_or(Error::Protocol("it did not begin with a hello"))
    }

    fn greet(&mut self, hello: &Hello) -> Result<Input, Error> {
        if hello.machine == self.own {
            return Err(Error::SameMachine);
        }
        if !self.setup.is_far_end && hello.purpose != Purpose::Exchange {
            return Err(Error::Protocol("it does not exchange messages"));
        }
        self.other_may_answer = hello.may_answer;
        match hello.purpose {
            Purpose::Exchange => {}
            Purpose::Answer => {
                let name = self.setup.name.as_ref().map(|given| &given.name);
                check_name(&mut self.journal, name, hello)?;
                return Ok(Input::GreetedToAnswer);
            }
            Purpose::Register => {
                register_machine(&self.setup.home, &mut self.journal, self.setup.name.as_ref(), hello)?;
                return Ok(Input::GreetedToAnswer);
            }
        }
        let peer = Peer::greet(self.setup, &mut self.journal, hello)?;
        let stored = self.journal.import_position(hello.machine.as_str())?;
        self.check_agents_at = Some(Instant::now());
        let program = hello.program.chars().filter(|c| !c.is_control()).take(40).collect();
        let (machine, name) = (hello.machine.clone(), peer.rules.machine.clone());
        self.peer = Some(peer);
        (self.progress)(Progress::Greeted { machine, name, program });
        Ok(Input::Greeted { stored: stored.map(Into::into) })
    }

    fn queue_frame(&mut self, frame: &Frame) {
        self.unsent.extend(frame.line());
    }

    /// Writes as much as fits into the pipe.
    fn write(&mut self) -> Result<(), Error> {
        if self.unsent.len() > MAX_UNSENT {
            return Err(Error::Protocol("it sends without reading"));
        }
        let mut written = 0;
        while written < self.unsent.len() {
            match rustix::io::write(self.pipes.output, &self.unsent[written..]) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                // The reader notices the end of the pipe, after the last frames of the other side.
                Err(Errno::AGAIN | Errno::PIPE) => break,
                Err(error) => {
                    return Err(Error::Io {
                        what: "cannot write to the pipe".to_owned(),
                        source: error.into(),
                    });
                }
            }
        }
        self.unsent.drain(..written);
        Ok(())
    }
}

/// The descriptors that are ready.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
struct Ready {
    bell: bool,
    input: bool,
    /// The other side no longer reads. Its last frames may still be in the input.
    closed: bool,
    stop: bool,
}

/// Serves the machine at the other end of standard input and output, until it closes its end.
pub fn serve(setup: &ExchangeSetup) -> Result<(), Error> {
    let (input, output) = (io::stdin(), io::stdout());
    let pipes = Pipes { input: input.as_fd(), output: output.as_fd(), stop: None, errors: None };
    match Exchange::begin(setup, pipes, &mut |_| {})?.run()? {
        ConnectionEnd::Closed | ConnectionEnd::Stopped => Ok(()),
    }
}
