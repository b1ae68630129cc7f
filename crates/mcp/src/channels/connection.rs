//! The thread of one server: starts the server, reads its messages, and restarts it when it ends.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_core::policy::McpChannel;
use ringer_turn::{GateRefusal, McpServer};

use super::intake::Intake;
use super::process::{ServerProcess, Waited, wait_for};
use super::protocol::{ServerLine, initialize, initialized, split_lines};
use super::shared::Shared;
use super::status_file::Counted;
use crate::line_splitter::LineSplitter;

/// How long a server may take to answer `initialize`. The first start may download it from a package registry.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);
/// The longest pause before a restart. If the server ran longer than this, the pause is reset to one second.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Limits the lines and chunks read per second, so that a busy server is throttled instead of keeping the hub busy.
const PER_SECOND: u32 = 1_000;

/// Delay before the agent's prompts are read again after an error.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a connection ended.
enum Ended {
    /// The manager stopped it.
    Stopped,
    Refused(GateRefusal),
    /// The server ended or misbehaved, for this reason.
    Failed(String),
}

/// Runs until `woken` is closed. A byte there means that the agent's prompts may have changed.
pub(super) fn run(shared: &Arc<Shared>, server: &McpChannel, woken: &UnixStream) {
    let Ok(name) = McpServer::new(&server.name) else { return };
    let mut pause = Duration::from_secs(1);
    let mut intake = Intake::new(Arc::clone(shared), server.clone(), name);
    loop {
        let begun = Instant::now();
        let mut connection =
            Connection { shared, server, woken, intake: &mut intake, initialized: false, look_at: None };
        let ended = connection.run().unwrap_or_else(|error| Ended::Failed(error.to_string()));
        match ended {
            Ended::Stopped => return,
            Ended::Refused(refusal) => {
                shared.log(refusal.to_string());
                shared.status_file().refused(server, &refusal);
                // Idle until a change makes the manager replace this thread.
                let _ = wait_until_stopped(woken, None);
                return;
            }
            Ended::Failed(why) => {
                if begun.elapsed() > LONGEST_PAUSE {
                    pause = Duration::from_secs(1);
                }
                shared.log(format!("MCP channel {}: {why}; again in {} s", server.name, pause.as_secs()));
                shared.status_file().failed(server, why, pause);
                match wait_until_stopped(woken, Some(Instant::now() + pause)) {
                    Ok(false) => {}
                    _ => return,
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Waits until the thread is stopped or the deadline passes. Returns true if it was stopped.
fn wait_until_stopped(woken: &UnixStream, until: Option<Instant>) -> io::Result<bool> {
    loop {
        match wait_for(woken, Vec::new(), until)? {
            Waited::Woken if read_told(woken)? == Told::Stop => return Ok(true),
            Waited::Woken | Waited::Ready => {}
            Waited::TimedOut => return Ok(false),
        }
    }
}

/// A signal from the manager.
#[derive(PartialEq)]
enum Told {
    Nothing,
    PromptsChanged,
    Stop,
}

fn read_told(mut woken: &UnixStream) -> io::Result<Told> {
    let (mut bytes, mut told) = ([0; 64], Told::Nothing);
    loop {
        match woken.read(&mut bytes) {
            Ok(0) => return Ok(Told::Stop),
            Ok(_) => told = Told::PromptsChanged,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(told),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    server: &'a McpChannel,
    woken: &'a UnixStream,
    intake: &'a mut Intake,
    /// True once the server has answered and passed all gates. Its messages are accepted from then on.
    initialized: bool,
    /// When to reread the agent's prompts.
    look_at: Option<Instant>,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<Ended> {
        let mut process = match ServerProcess::start(self.server) {
            Ok(process) => process,
            Err(error) => return Ok(Ended::Failed(format!("the server cannot be started: {error}"))),
        };
        self.shared.status_file().starting(self.server, process.pid());
        self.intake.begin();
        process.write(&initialize())?;
        let answers_until = Instant::now() + ANSWERS_WITHIN;
        let (mut splitter, mut throttle) = (LineSplitter::default(), Throttle::new());
        loop {
            self.look_if_due();
            for line in self.intake.take_unsent() {
                process.write(&line)?;
            }
            // Checked here so that it also applies to a server that writes without pause.
            if !self.initialized && Instant::now() >= answers_until {
                let seconds = ANSWERS_WITHIN.as_secs();
                return Ok(Ended::Failed(format!("the server did not answer within {seconds} s")));
            }
            let bytes = match process.read() {
                Ok([]) => return Ok(Ended::Failed(process.end_in_words())),
                Ok(bytes) => bytes.to_vec(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let unwritten = self.shared.status_file().write_if_due();
                    let until = if self.initialized {
                        [unwritten, self.look_at].into_iter().flatten().min()
                    } else {
                        Some(answers_until)
                    };
                    match process.wait(self.woken, until)? {
                        Waited::Woken if self.is_stopped()? => return Ok(Ended::Stopped),
                        Waited::Woken | Waited::TimedOut | Waited::Ready => continue,
                    }
                }
                Err(error) => return Err(error),
            };
            let lines = split_lines(&mut splitter, &bytes);
            throttle.count(1);
            for line in lines {
                if let Some(ended) = self.handle(line, &mut process)? {
                    return Ok(ended);
                }
                throttle.count(1);
                if let Some(until) = throttle.pause() {
                    self.shared.status_file().write_if_due();
                    // Nothing is read meanwhile, so the pipe fills and the server blocks.
                    while let Waited::Woken = wait_for(self.woken, Vec::new(), Some(until))? {
                        if self.is_stopped()? {
                            return Ok(Ended::Stopped);
                        }
                    }
                }
            }
            // Stop before reading more, even if the server writes without pause.
            if self.is_stopped()? {
                return Ok(Ended::Stopped);
            }
        }
    }

    /// Drains the wake-up stream. Returns true if the thread was stopped.
    fn is_stopped(&mut self) -> io::Result<bool> {
        let told = read_told(self.woken)?;
        if told == Told::PromptsChanged {
            self.look_at = Some(Instant::now());
        }
        Ok(told == Told::Stop)
    }

    /// Rereads the agent's prompts if they may have changed, and schedules a retry on failure.
    fn look_if_due(&mut self) {
        if !self.initialized || self.look_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.look_at = self.intake.look_at_prompts().err().map(|error| {
            self.shared.log(format!("MCP channel {}: prompts cannot be read: {error}", self.server.name));
            Instant::now() + LOOK_AGAIN
        });
    }

    fn handle(&mut self, line: ServerLine, process: &mut ServerProcess) -> io::Result<Option<Ended>> {
        match line {
            ServerLine::Initialized { declares_channel, relays_permissions } if !self.initialized => {
                if let Some(refusal) = self.shared.refusal(self.server, declares_channel) {
                    return Ok(Some(Ended::Refused(refusal)));
                }
                process.write(&initialized())?;
                self.initialized = true;
                self.intake.connected(relays_permissions);
                self.look_at = Some(Instant::now());
                self.shared.status_file().connected(self.server);
                self.shared.log(format!("MCP channel {} is connected", self.server.name));
            }
            ServerLine::Refused(why) if !self.initialized => {
                let why: String = why.chars().take(200).collect();
                return Ok(Some(Ended::Failed(format!("the server refused to be initialised: {why}"))));
            }
            ServerLine::Message(message) if self.initialized => self.intake.take(message),
            ServerLine::Verdict { request_id, verdict } if self.initialized => {
                self.intake.take_verdict(&request_id, verdict);
            }
            ServerLine::Request(answer) => process.write(&answer)?,
            ServerLine::Invalid => self.shared.status_file().count(self.server, Counted::Invalid),
            ServerLine::Initialized { .. }
            | ServerLine::Refused(_)
            | ServerLine::Message(_)
            | ServerLine::Verdict { .. }
            | ServerLine::Other => {}
        }
        Ok(None)
    }
}

/// Counts what was read in the current second.
struct Throttle {
    since: Instant,
    count: u32,
}

impl Throttle {
    fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    fn count(&mut self, more: u32) {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self::new();
        }
        self.count += more;
    }

    /// Returns when reading may go on, if the limit has been reached.
    fn pause(&self) -> Option<Instant> {
        (self.count >= PER_SECOND).then(|| self.since + Duration::from_secs(1))
    }
}
