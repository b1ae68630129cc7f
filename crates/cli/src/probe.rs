//! Asking this terminal which program it is, once; see [`ringer_term::probe`]. The answer is kept in the home, for the next
//! command here and for the hub.
//!
//! The answer arrives as input, so it is asked only where nothing else can be meant by that: the process is in the
//! foreground, its input and its output are the terminal, and nothing has been typed. What is typed in the moment until the
//! answer is there is lost; nothing that a program may do can put it back.

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

/// How long an answer is waited for. Terminals answer within milliseconds, those at the end of a slow SSH connection within
/// a second; one that came later would be taken for input by the shell.
const ANSWER_DEADLINE: Duration = Duration::from_secs(1);
/// What the keys send that end, quit or stop a program, and the signals for that.
const SIGNAL_KEYS: [(u8, Signal); 3] = [(0x03, Signal::INT), (0x1c, Signal::QUIT), (0x1a, Signal::TSTP)];

/// Detects the terminal, and asks it for its version if that may be done: for commands that write to it.
pub(crate) fn detect_and_ask() -> Detection {
    with_answer(detect_by_environment())
}

/// Detects the terminal, with what it said of itself when it was asked.
pub(crate) fn detect_here() -> Detection {
    with_stored_answer(detect_by_environment())
}

/// The detection, corrected by what this terminal said when it was asked.
fn with_stored_answer(detection: Detection) -> Detection {
    match stored_answer(&detection) {
        Some(known) => known.correct(detection),
        None => detection,
    }
}

/// The same, and asks the terminal if that was never done and may be done now.
fn with_answer(detection: Detection) -> Detection {
    if !is_worth_asking(&detection) || stored_answer(&detection).is_some() {
        return with_stored_answer(detection);
    }
    let (Some((surface, parent)), Ok(home)) = (origin::plain_surface(), context::home()) else {
        return detection;
    };
    let Ok(Some(probe)) = ask(&detection) else { return detection };
    let known = ProbedTerminal::new(&surface, &term(), &probe);
    // If that cannot be written, the terminal is asked again.
    let _ = known.keep(&home, Some(parent));
    known.correct(detection)
}

fn stored_answer(detection: &Detection) -> Option<ProbedTerminal> {
    // Inside a multiplexer the terminal around it counts, and tmux names that one.
    if !detection.multiplexers.is_empty() {
        return None;
    }
    let (surface, parent) = origin::plain_surface()?;
    ProbedTerminal::find(&context::home().ok()?, &surface, &term(), Some(parent))
}

fn term() -> String {
    std::env::var("TERM").unwrap_or_default()
}

/// Whether an answer would change anything, and the terminal is one that answers: the Linux console and `dumb` ones print the
/// question.
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

/// Asks. `None` where that cannot be done without harm.
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

/// Reads until the answer is there or the time is over. Gives the signal that was typed meanwhile, if one was.
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
        // No answer holds such a byte.
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
