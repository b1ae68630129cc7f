//! The panes that the keeper holds: their programs, each a session leader on its own PTY, and their output without a server.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use pty_process::blocking::{Command, Pts, open};
use ringer_platform::{Change, Child, Ending, pty_error, with_first_open_files};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};
use rustix::termios::{
    InputModes, OptionalActions, Winsize, tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize, ttyname,
};

use super::wire::{ByteString, KeeperMessage, NOTE_LIMIT, PaneHeader, StartRequest};

/// The most panes. Each takes a descriptor, and the usual limit of a process is 1024.
const PANE_LIMIT: usize = 512;
/// The most bytes that are read from a pane before the others have their turn. One read from a PTY returns 4 KiB at most.
const READ_AT_ONCE: usize = 64 * 1024;
/// How long to wait before a PTY that no process has open is read again: its program may open it once more.
const CLOSED_WAIT: Duration = Duration::from_secs(1);

/// The number of servers that receive the same output. If the output makes a server crash before its first request, it would make
/// all later ones crash, too.
const HAND_OVER_LIMIT: u8 = 3;

/// All panes, in the order in which they were started.
#[derive(Debug, Default)]
pub(super) struct KeptPanes {
    panes: Vec<Pane>,
    /// The number of servers that have received the kept output, and may not have saved it.
    handed_over: u8,
    /// Programs of forgotten panes that have not ended. They are kept to be reaped.
    forgotten: Vec<PaneProcess>,
}

#[derive(Debug)]
struct Pane {
    id: String,
    process: PaneProcess,
    /// Shared with the queued answer to the server.
    master: Rc<OwnedFd>,
    note: String,
    ending: Option<Ending>,
    /// The connected server was told the ending.
    ending_is_sent: bool,
    ring: OutputRing,
    input: PaneInput,
}

/// The state of a pane's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaneInput {
    /// There may be output.
    Open,
    /// No process has the PTY open. It is read again at this time.
    ClosedUntil(Instant),
    /// The program has ended, and all output was read.
    Ended,
}

impl KeptPanes {
    pub(super) fn len(&self) -> usize {
        self.panes.len()
    }

    fn find(&mut self, id: &str) -> Result<&mut Pane, String> {
        self.panes.iter_mut().find(|pane| pane.id == id).ok_or_else(|| format!("there is no pane {id}"))
    }

    /// Starts a program. Returns the answer and the master.
    pub(super) fn start(
        &mut self,
        mut request: StartRequest,
    ) -> Result<(KeeperMessage, Rc<OwnedFd>), String> {
        if self.find(&request.id).is_ok() {
            return Err(format!("there is a pane {} already", request.id));
        }
        if self.panes.len() >= PANE_LIMIT {
            return Err(format!("there are {PANE_LIMIT} panes already, and no more are kept; close one"));
        }
        check_note(&request.note)?;
        let (id, note) = (std::mem::take(&mut request.id), std::mem::take(&mut request.note));
        let (process, master) = PaneProcess::start(request)?;
        let master = Rc::new(master);
        let (pid, tty) = (process.pid(), process.tty().to_owned());
        let answer = KeeperMessage::Started { id: id.clone(), pid, tty };
        self.panes.push(Pane {
            id,
            process,
            master: Rc::clone(&master),
            note,
            ending: None,
            ending_is_sent: false,
            ring: OutputRing::default(),
            input: PaneInput::Open,
        });
        Ok((answer, master))
    }

    pub(super) fn set_note(&mut self, id: &str, text: String) -> Result<(), String> {
        check_note(&text)?;
        self.find(id)?.note = text;
        Ok(())
    }

    /// Hangs up a program and drops its pane.
    pub(super) fn forget(&mut self, id: &str) -> Result<(), String> {
        self.find(id)?;
        for pane in self.panes.extract_if(.., |pane| pane.id == id) {
            pane.process.hang_up(&pane.master);
            if pane.ending.is_none() {
                self.forgotten.push(pane.process);
            }
        }
        Ok(())
    }

    /// Reaps the programs that have ended.
    pub(super) fn note_endings(&mut self) {
        for pane in &mut self.panes {
            pane.ending = pane.ending.or_else(|| pane.process.ending());
        }
        self.forgotten.retain_mut(|process| process.ending().is_none());
    }

    /// Returns the endings that the server has not been told, and marks them as told.
    pub(super) fn take_endings(&mut self) -> Vec<KeeperMessage> {
        let mut endings = Vec::new();
        for pane in self.panes.iter_mut().filter(|pane| !pane.ending_is_sent) {
            if let Some(ending) = pane.ending {
                pane.ending_is_sent = true;
                endings.push(KeeperMessage::Ended { id: pane.id.clone(), ending });
            }
        }
        endings
    }

    /// Returns a pane for a new server: its header, its master and its output.
    pub(super) fn hand_over(&mut self, index: usize) -> Option<(KeeperMessage, Rc<OwnedFd>, Vec<u8>)> {
        let pane = self.panes.get_mut(index)?;
        pane.ending_is_sent = pane.ending.is_some();
        let output = pane.ring.to_bytes();
        let header = PaneHeader {
            id: pane.id.clone(),
            pid: pane.process.pid(),
            tty: pane.process.tty().to_owned(),
            note: pane.note.clone(),
            ending: pane.ending,
            dropped: pane.ring.dropped(),
            bytes: output.len(),
        };
        Some((KeeperMessage::Pane(header), Rc::clone(&pane.master), output))
    }

    /// Records that a server was sent everything. It may be killed before it has saved that, so the output stays for the next
    /// one.
    pub(super) fn note_hand_over(&mut self) {
        if self.panes.iter().any(|pane| !pane.ring.is_empty()) {
            self.handed_over += 1;
        }
        if self.handed_over >= HAND_OVER_LIMIT {
            self.clear_output();
        }
    }

    /// Drops the kept output, which the server has saved.
    pub(super) fn clear_output(&mut self) {
        if self.handed_over > 0 {
            self.panes.iter_mut().for_each(|pane| pane.ring.clear());
            self.handed_over = 0;
        }
    }

    /// Starts to read the masters.
    pub(super) fn begin_draining(&mut self) {
        for pane in &mut self.panes {
            // The server may have made the master blocking. If this fails, the master can still be read.
            let _ = do_not_block(&pane.master);
        }
    }

    /// The masters to read, each with its index.
    pub(super) fn readable(&self, now: Instant) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let is_open = move |input| match input {
            PaneInput::Open => true,
            PaneInput::ClosedUntil(then) => then <= now,
            PaneInput::Ended => false,
        };
        self.panes
            .iter()
            .enumerate()
            .filter(move |(_, pane)| is_open(pane.input))
            .map(|(index, pane)| (index, pane.master.as_fd()))
    }

    /// Returns true if a polled PTY was closed at its last read. It is read even if it is not readable.
    pub(super) fn is_due(&self, index: usize) -> bool {
        self.panes.get(index).is_some_and(|pane| matches!(pane.input, PaneInput::ClosedUntil(_)))
    }

    /// When a PTY that no process has open is next read.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let then = |pane: &Pane| match pane.input {
            PaneInput::ClosedUntil(then) => Some(then),
            PaneInput::Open | PaneInput::Ended => None,
        };
        self.panes.iter().filter_map(then).min()
    }

    /// Reads and keeps output of a program.
    pub(super) fn drain(&mut self, index: usize, now: Instant) {
        if let Some(pane) = self.panes.get_mut(index) {
            pane.drain(now);
        }
    }
}

impl Pane {
    fn drain(&mut self, now: Instant) {
        let (mut total, mut buffer) = (0, [0; 4096]);
        while total < READ_AT_ONCE {
            match rustix::io::read(&*self.master, &mut buffer) {
                Ok(0) | Err(Errno::IO) => return self.close(now),
                Ok(count) => {
                    total += count;
                    self.input = PaneInput::Open;
                    self.ring.push(buffer.get(..count).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.input = PaneInput::Open;
                    return;
                }
                Err(_) => {
                    self.input = PaneInput::Ended;
                    return;
                }
            }
        }
    }

    /// Handles a PTY that no process has open.
    fn close(&mut self, now: Instant) {
        self.input =
            if self.ending.is_some() { PaneInput::Ended } else { PaneInput::ClosedUntil(now + CLOSED_WAIT) };
    }
}

fn check_note(note: &str) -> Result<(), String> {
    if note.len() > NOTE_LIMIT {
        return Err(format!("a note of {} bytes is longer than {NOTE_LIMIT} bytes", note.len()));
    }
    Ok(())
}

/// The most output that is kept for one pane: more than the scrollback of a terminal usually holds.
pub(super) const RING_LIMIT: usize = 1024 * 1024;

/// The last bytes of output, and the number of bytes that were dropped before. It takes no memory while it is empty.
#[derive(Debug, Default)]
pub(super) struct OutputRing {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl OutputRing {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Only the end of a piece that is longer than the ring is kept.
        let skipped = bytes.len().saturating_sub(RING_LIMIT);
        let kept = bytes.get(skipped..).unwrap_or_default();
        let oldest = (self.bytes.len() + kept.len()).saturating_sub(RING_LIMIT);
        self.bytes.drain(..oldest);
        self.bytes.extend(kept);
        self.dropped += (skipped + oldest) as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns a copy of the bytes, oldest first.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (first, second) = self.bytes.as_slices();
        [first, second].concat()
    }

    /// Clears the ring and frees its memory.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The number of files that are opened to start a program, with a margin.
const SPAWN_FILES: u64 = 16;

/// A started program and the name of its terminal.
#[derive(Debug)]
pub(super) struct PaneProcess {
    child: Child,
    tty: String,
}

impl PaneProcess {
    /// Starts a program. Also returns the master of its PTY. The error is a sentence for people.
    pub(super) fn start(request: StartRequest) -> Result<(Self, OwnedFd), String> {
        let StartRequest { argv, environment, directory, columns, lines, .. } = request;
        let mut argv = argv.into_iter().map(ByteString::into_os_string);
        let program = argv.next().ok_or("there is no program to start: `argv` is empty")?;
        let directory = existing_directory(Path::new(&directory.into_os_string()));
        let (master, terminal, tty) = open_terminal(columns, lines)
            .map_err(|error| format!("cannot open a terminal for {}: {error}", program.display()))?;
        let environment =
            environment.into_iter().map(|(name, value)| (name.into_os_string(), value.into_os_string()));
        let command = Command::new(&program).args(argv).env_clear().envs(environment).current_dir(&directory);
        let needed = u64::try_from(master.as_raw_fd()).unwrap_or_default() + SPAWN_FILES;
        let started = with_first_open_files(needed, || command.spawn(terminal));
        let started = started.map_err(pty_error).and_then(|child| Child::of(child.id()));
        match started {
            Ok(child) => Ok((Self { child, tty }, master)),
            Err(error) => Err(format!("cannot start {}: {error}", program.display())),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(super) fn tty(&self) -> &str {
        &self.tty
    }

    /// How the program ended, if it has ended since the last call. Does not block.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        loop {
            // Programs that are stopped are left to the shell in the pane.
            if let Change::Ended(ending) = self.child.change()? {
                return Some(ending);
            }
        }
    }

    /// Does what the kernel does when a terminal is closed, even if another process still has the master: the program and the
    /// foreground group get SIGHUP, and SIGCONT so that they see it.
    pub(super) fn hang_up(&self, master: &OwnedFd) {
        let Some(group) = self.child.running() else { return };
        let foreground = tcgetpgrp(master).ok().filter(|foreground| *foreground != group);
        for group in foreground.into_iter().chain([group]) {
            for signal in [Signal::HUP, Signal::CONT] {
                // The group may be gone.
                let _ = kill_process_group(group, signal);
            }
        }
    }
}

/// Returns the directory, or its nearest parent that exists: it may have been removed while a program was in it.
fn existing_directory(directory: &Path) -> PathBuf {
    let mut above = directory.ancestors();
    above.find(|directory| directory.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Opens a PTY. Returns the master, the terminal and its name. Children inherit neither end.
fn open_terminal(columns: u16, lines: u16) -> io::Result<(OwnedFd, Pts, String)> {
    let (master, terminal) = open().map_err(pty_error)?;
    let mut settings = tcgetattr(&terminal)?;
    // With IUTF8, Backspace removes a whole character, and not only its last byte, while the kernel edits a line.
    settings.input_modes |= InputModes::IUTF8;
    tcsetattr(&terminal, OptionalActions::Now, &settings)?;
    tcsetwinsize(&master, Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let tty = ttyname(&terminal, Vec::new())?.to_string_lossy().into_owned();
    let master = OwnedFd::from(master);
    do_not_block(&master)?;
    Ok((master, terminal, tty))
}

/// Makes a master non-blocking. The flag belongs to the open file, which is shared with the server, so either process can
/// change it.
pub(super) fn do_not_block(master: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(master, fcntl_getfl(master)? | OFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The start of a piece in a sequence of bytes that differ from their neighbours, and its size around the limit.
    fn pieces() -> impl Strategy<Value = Vec<(usize, usize)>> {
        let size = prop_oneof![
            4 => 0..5000_usize,
            2 => 0..RING_LIMIT,
            1 => RING_LIMIT - 2..RING_LIMIT + 3,
            1 => RING_LIMIT..2 * RING_LIMIT,
        ];
        prop::collection::vec((0..1000_usize, size), 0..12)
    }

    #[test]
    fn it_is_the_end_of_all_that_was_pushed() {
        let sequence: Vec<u8> = (0..=250).cycle().take(2 * RING_LIMIT + 1000).collect();
        proptest!(ProptestConfig::with_cases(64), |(pieces in pieces())| {
            let (mut ring, mut all) = (OutputRing::default(), Vec::new());
            for (first, size) in pieces {
                let piece = &sequence[first..first + size];
                ring.push(piece);
                all.extend_from_slice(piece);
                let dropped = all.len().saturating_sub(RING_LIMIT);
                prop_assert_eq!(ring.dropped(), dropped as u64);
                prop_assert!(ring.to_bytes() == all[dropped..]);
                prop_assert!(ring.bytes.capacity() <= 2 * RING_LIMIT);
            }
        });
    }

    #[test]
    fn it_takes_no_memory_while_it_is_empty() {
        let mut ring = OutputRing::default();
        assert_eq!(ring.bytes.capacity(), 0);
        ring.push(&vec![b'x'; 3 * RING_LIMIT]);
        assert_eq!((ring.bytes.len(), ring.dropped()), (RING_LIMIT, 2 * RING_LIMIT as u64));
        ring.clear();
        assert_eq!((ring.bytes.capacity(), ring.dropped()), (0, 0));
    }
}
