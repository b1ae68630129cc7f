//! The thread of one server: starts the server, reads its messages, and restarts it when it ends.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_config::ChannelEntry;
use ringer_core::conversation::{GateRefusal, McpServer};

use super::intake::Intake;
use super::process::{ServerProcess, WaitResult, wait_for};
use super::protocol::{ServerLine, initialize, initialized, split_lines};
use super::shared::Shared;
use super::status_file::ChannelCounter;
use crate::line_splitter::LineSplitter;

/// Time limit for the answer to `initialize`. The first start may download it from a package registry.
const INITIALIZE_TIMEOUT: Duration = Duration::from_mins(1);
/// The longest pause before a restart. If the server ran longer than this, the pause is reset to one second.
const MAX_RESTART_DELAY: Duration = Duration::from_mins(1);
/// Limits the lines and chunks read per second, so that a busy server is throttled instead of keeping the hub busy.
const MAX_PER_SECOND: u32 = 1_000;

/// Delay before the agent's prompts are read again after an error.
const REREAD_DELAY: Duration = Duration::from_secs(1);

/// How a connection ended.
enum ServerOutcome {
    /// The manager stopped it.
    Stopped,
    Refused(GateRefusal),
    /// The server ended or misbehaved, for this reason.
    Failed(String),
}

/// Runs until `woken` is closed. A byte there means that the agent's prompts may have changed.
pub(super) fn run(shared: &Arc<Shared>, server: &ChannelEntry, woken: &UnixStream) {
    let Ok(name) = McpServer::new(&server.name) else { return };
    let mut pause = Duration::from_secs(1);
    let mut intake = Intake::new(Arc::clone(shared), server.clone(), name);
    loop {
        let begun = Instant::now();
        let mut connection =
            Connection { shared, server, woken, intake: &mut intake, initialized: false, reread_at: None };
        let ended = connection.run().unwrap_or_else(|error| ServerOutcome::Failed(error.to_string()));
        match ended {
            ServerOutcome::Stopped => return,
            ServerOutcome::Refused(refusal) => {
                shared.log(refusal.to_string());
                shared.status_file().refused(server, &refusal);
                // Idle until a change makes the manager replace this thread.
                let _ = wait_until_stopped(woken, None);
                return;
            }
            ServerOutcome::Failed(why) => {
                if begun.elapsed() > MAX_RESTART_DELAY {
                    pause = Duration::from_secs(1);
                }
                shared.log(format!("MCP channel {}: {why}; again in {} s", server.name, pause.as_secs()));
                shared.status_file().failed(server, why, pause);
                match wait_until_stopped(woken, Some(Instant::now() + pause)) {
                    Ok(false) => {}
                    _ => return,
                }
                pause = (pause * 2).min(MAX_RESTART_DELAY);
            }
        }
    }
}

/// Waits until the thread is stopped or the deadline passes. Returns true if it was stopped.
fn wait_until_stopped(woken: &UnixStream, until: Option<Instant>) -> io::Result<bool> {
    loop {
        match wait_for(woken, Vec::new(), until)? {
            WaitResult::Woken if read_signal(woken)? == ManagerSignal::Stop => return Ok(true),
            WaitResult::Woken | WaitResult::Ready => {}
            WaitResult::TimedOut => return Ok(false),
        }
    }
}

/// A signal from the manager.
#[derive(PartialEq)]
enum ManagerSignal {
    Nothing,
    PromptsChanged,
    Stop,
}

fn read_signal(mut woken: &UnixStream) -> io::Result<ManagerSignal> {
    let (mut bytes, mut signal) = ([0; 64], ManagerSignal::Nothing);
    loop {
        match woken.read(&mut bytes) {
            Ok(0) => return Ok(ManagerSignal::Stop),
            Ok(_) => signal = ManagerSignal::PromptsChanged,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(signal),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    server: &'a ChannelEntry,
    woken: &'a UnixStream,
    intake: &'a mut Intake,
    /// True once the server has answered and passed all gates. Its messages are accepted from then on.
    initialized: bool,
    /// When to reread the agent's prompts.
    reread_at: Option<Instant>,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<ServerOutcome> {
        let mut process = match ServerProcess::start(self.server) {
            Ok(process) => process,
            Err(error) => return Ok(ServerOutcome::Failed(format!("the server cannot be started: {error}"))),
        };
        self.shared.status_file().starting(self.server, process.pid());
        self.intake.begin();
        process.write(&initialize())?;
        let initialize_deadline = Instant::now() + INITIALIZE_TIMEOUT;
        let (mut splitter, mut throttle) = (LineSplitter::default(), Throttle::new());
        loop {
            self.reread_prompts_if_due();
            for line in self.intake.take_unsent() {
                process.write(&line)?;
            }
            // Checked here so that it also applies to a server that writes without pause.
            if !self.initialized && Instant::now() >= initialize_deadline {
                let seconds = INITIALIZE_TIMEOUT.as_secs();
                return Ok(ServerOutcome::Failed(format!("the server did not answer within {seconds} s")));
            }
            let bytes = match process.read() {
                Ok([]) => return Ok(ServerOutcome::Failed(process.describe_exit())),
                Ok(bytes) => bytes.to_vec(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let unwritten = self.shared.status_file().write_if_due();
                    let until = if self.initialized {
                        [unwritten, self.reread_at].into_iter().flatten().min()
                    } else {
                        Some(initialize_deadline)
                    };
                    match process.wait(self.woken, until)? {
                        WaitResult::Woken if self.is_stopped()? => return Ok(ServerOutcome::Stopped),
                        WaitResult::Woken | WaitResult::TimedOut | WaitResult::Ready => continue,
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
                    while let WaitResult::Woken = wait_for(self.woken, Vec::new(), Some(until))? {
                        if self.is_stopped()? {
                            return Ok(ServerOutcome::Stopped);
                        }
                    }
                }
            }
            // Stop before reading more, even if the server writes without pause.
            if self.is_stopped()? {
                return Ok(ServerOutcome::Stopped);
            }
        }
    }

    /// Drains the wake-up stream. Returns true if the thread was stopped.
    fn is_stopped(&mut self) -> io::Result<bool> {
        let signal = read_signal(self.woken)?;
        if signal == ManagerSignal::PromptsChanged {
            self.reread_at = Some(Instant::now());
        }
        Ok(signal == ManagerSignal::Stop)
    }

    /// Rereads the agent's prompts if they may have changed, and schedules a retry on failure.
    fn reread_prompts_if_due(&mut self) {
        if !self.initialized || self.reread_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.reread_at = self.intake.reread_prompts().err().map(|error| {
            self.shared.log(format!("MCP channel {}: prompts cannot be read: {error}", self.server.name));
            Instant::now() + REREAD_DELAY
        });
    }

    fn handle(&mut self, line: ServerLine, process: &mut ServerProcess) -> io::Result<Option<ServerOutcome>> {
        match line {
            ServerLine::Initialized { declares_channel, relays_permissions } if !self.initialized => {
                if let Some(refusal) = self.shared.refusal(self.server, declares_channel) {
                    return Ok(Some(ServerOutcome::Refused(refusal)));
                }
                process.write(&initialized())?;
                self.initialized = true;
                self.intake.connected(relays_permissions);
                self.reread_at = Some(Instant::now());
                self.shared.status_file().connected(self.server);
                self.shared.log(format!("MCP channel {} is connected", self.server.name));
            }
            ServerLine::Refused(why) if !self.initialized => {
                let why: String = why.chars().take(200).collect();
                return Ok(Some(ServerOutcome::Failed(format!(
                    "the server refused to be initialised: {why}"
                ))));
            }
            ServerLine::Message(message) if self.initialized => self.intake.take(message),
            ServerLine::Verdict { request_id, verdict } if self.initialized => {
                self.intake.take_verdict(&request_id, verdict);
            }
            ServerLine::Request(answer) => process.write(&answer)?,
            ServerLine::Invalid => self.shared.status_file().count(self.server, ChannelCounter::Invalid),
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
        (self.count >= MAX_PER_SECOND).then(|| self.since + Duration::from_secs(1))
    }
}
