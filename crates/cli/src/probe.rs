//! Queries this terminal for its program, once; see [`ringer_term::probe`]. The home keeps the reply, for the next command here
//! and for the hub.
//!
//! The reply arrives as input, so the query is sent only if that cannot be confused with anything else: the process is in the
//! foreground, its input and its output are the terminal, and nothing has been typed. What is typed before the reply arrives is
//! lost; a program has no way to put it back.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use ringer_hub::ProbedTerminal;
use ringer_term::probe::Probe;
use ringer_term::{Detection, TerminalProgram};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::terminal::{detect_by_environment, random_id, write_before};
use crate::{context, origin};

/// Time limit for the reply. Terminals reply within milliseconds, those at the end of a slow SSH connection within a second.
/// The shell would take a later reply for input.
const ANSWER_DEADLINE: Duration = Duration::from_secs(1);
/// The keys that interrupt, quit or suspend a program, with their signals.
const SIGNAL_KEYS: [(u8, Signal); 3] = [(0x03, Signal::INT), (0x1c, Signal::QUIT), (0x1a, Signal::TSTP)];

/// Detects the terminal, and queries its version if that is safe: for commands that write to it.
pub(crate) fn detect_and_ask() -> Detection {
    with_answer(detect_by_environment())
}

/// Detects the terminal, with its stored reply to an earlier query.
pub(crate) fn detect_here() -> Detection {
    with_stored_answer(detect_by_environment())
}

/// Corrects the detection by the terminal's stored reply.
fn with_stored_answer(detection: Detection) -> Detection {
    match stored_answer(&detection) {
        Some(known) => known.correct(detection),
        None => detection,
    }
}

/// The same, but queries the terminal if that was never done and is safe now.
fn with_answer(detection: Detection) -> Detection {
    if !is_worth_asking(&detection) || stored_answer(&detection).is_some() {
        return with_stored_answer(detection);
    }
    let (Some((surface, parent)), Ok(home)) = (origin::plain_surface(), context::home()) else {
        return detection;
    };
    let Ok(Some(probe)) = ask(&detection) else { return detection };
    let known = ProbedTerminal::new(&surface, &term(), &probe);
    // If this cannot be written, the terminal is queried again next time.
    let _ = known.keep(&home, Some(parent));
    known.correct(detection)
}

fn stored_answer(detection: &Detection) -> Option<ProbedTerminal> {
    // Inside a multiplexer the terminal around it matters, and tmux names that one.
    if !detection.multiplexers.is_empty() {
        return None;
    }
    let (surface, parent) = origin::plain_surface()?;
    ProbedTerminal::find(&context::home().ok()?, &surface, &term(), Some(parent))
}

fn term() -> String {
    std::env::var("TERM").unwrap_or_default()
}

/// Returns true if a reply could change the result and the terminal replies at all: the Linux console and `dumb` terminals print
/// the query.
fn is_worth_asking(detection: &Detection) -> bool {
    use TerminalProgram::{Foot, Ghostty, Iterm2, Kitty, Konsole, Unknown, Vte};
    let identity = &detection.identity;
    let depends_on_version =
        matches!(identity.program, Foot | Ghostty | Iterm2 | Kitty | Konsole | Unknown | Vte);
    detection.multiplexers.is_empty()
        && depends_on_version
        && identity.version.is_none()
        && !["", "dumb", "linux"].contains(&term().as_str())
}

/// Queries the terminal. Returns `None` if that is not safe.
fn ask(detection: &Detection) -> io::Result<Option<Probe>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(None);
    }
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open("/dev/tty")?;
    if tcgetpgrp(&terminal)? != getpgrp() {
        return Ok(None);
    }
    let raw_mode = RawMode::enter(&terminal)?;
    // Keys were typed ahead. They are not read, so the shell still gets them.
    if wait_readable(&terminal, Duration::ZERO)? {
        return Ok(None);
    }
    let mut probe = Probe::new(random_id());
    let deadline = Instant::now() + ANSWER_DEADLINE;
    if write_before(&terminal, &probe.query_bytes(&detection.multiplexers), deadline).is_err() {
        return Ok(None);
    }
    let key = read_answer(&terminal, &mut probe, deadline)?;
    drop(raw_mode);
    if let Some(signal) = key {
        kill_process(getpid(), signal)?;
        return Ok(None);
    }
    Ok(Some(probe))
}

/// Reads until the reply is complete or the deadline passes. Returns the signal of a key that was typed meanwhile.
fn read_answer(mut terminal: &File, probe: &mut Probe, deadline: Instant) -> io::Result<Option<Signal>> {
    let mut bytes = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait_readable(terminal, left)? {
            return Ok(None);
        }
        let read = match terminal.read(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
            Err(error) => return Err(error),
        };
        // A reply never contains such a byte.
        let key = |byte: &u8| SIGNAL_KEYS.iter().find(|(key, _)| key == byte);
        if let Some((_, signal)) = bytes[..read].iter().find_map(key) {
            return Ok(Some(*signal));
        }
        if probe.feed(&bytes[..read]) {
            return Ok(None);
        }
    }
}

fn wait_readable(terminal: &File, wait: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A terminal without line buffering, echo and signal keys. Dropping it restores the terminal.
struct RawMode<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> RawMode<'a> {
    fn enter(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        let guard = Self { terminal, before };
        tcsetattr(terminal, OptionalActions::Now, &raw)?;
        Ok(guard)
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        // A closed terminal cannot be restored.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}
