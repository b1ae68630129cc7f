//! The loop between the terminal and the program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pty_process::blocking::Pty;
use ringer_platform::{ByteQueue, Change, Child, Ending, clear_wakes, wake_pair};
use ringer_term::{NotificationStripper, TerminalEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, getsid, kill_process_group};
use rustix::termios::tcsetwinsize;
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::low_level::pipe;

use super::focus::{FocusInput, FocusModes};
use super::launch::Launch;
use super::outer_terminal::{FOCUS_ON, OuterTerminal, TitleRing};
use super::reporter::{HubSurface, OwnSurface, Reporter};

/// The most bytes that are read at once. One read from a PTY returns 4 KiB at most.
const READ: usize = 64 * 1024;
/// How long an ESC at the end of a read may be the beginning of a notification. Programs usually write a sequence at once.
const ESCAPE_WAIT: Duration = Duration::from_millis(5);
/// How long the PTY must be silent after the end of the program, if another process still has it open: the last output may not
/// have arrived yet.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// The interval of checks whether the shell has put this process into the foreground, which need not cause a signal.
const FOREGROUND_CHECK: Duration = Duration::from_millis(250);
/// How long to wait until the process stops. It does not stop in an orphaned process group, where no shell would notice.
const STOP_WITHIN: Duration = Duration::from_millis(50);

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunResult {
    /// How the program ended.
    pub ending: Ending,
    /// How long it ran.
    pub ran_for: Duration,
    /// The person looked at it at its end, as far as known.
    pub is_looked_at: bool,
}

/// Runs a program until it has ended. If there is no terminal, it is started directly.
pub fn run(launch: &Launch, hub: Option<HubSurface>) -> io::Result<RunResult> {
    let own = hub.as_ref().and_then(|hub| hub.own.clone()).unwrap_or_default();
    let Some(mut outer) = OuterTerminal::find(own.reports_focus)? else { return run_here(launch) };
    let signals = Signals::new()?;
    let size = outer.size().ok_or(io::ErrorKind::Unsupported)?;
    let started = Instant::now();
    let (child, pty) = launch.start_on_pty(outer.settings(), size)?;
    let reporter = hub.map(Reporter::start).transpose()?;
    if outer.is_ours() {
        outer.make_raw()?;
    }
    let run_loop = RunLoop {
        outer,
        own,
        pty,
        child,
        signals,
        reporter,
        filter: NotificationStripper::new(),
        modes: FocusModes::default(),
        input: FocusInput::default(),
        ring: TitleRing::default(),
        to_outer: ByteQueue::default(),
        to_pty: ByteQueue::default(),
        inserts: Vec::new(),
        buffer: vec![0; READ].into_boxed_slice(),
        last_output: started,
        pty_ended: false,
        outer_gone: false,
        ending: None,
    };
    let (ending, is_looked_at) = run_loop.serve()?;
    Ok(RunResult { ending, ran_for: started.elapsed(), is_looked_at })
}

/// Runs a program in this process's group and session.
fn run_here(launch: &Launch) -> io::Result<RunResult> {
    let signals = Signals::new()?;
    let started = Instant::now();
    let mut child = launch.start_here()?;
    loop {
        signals.clear_wakes();
        if let Some(Change::Ended(ending)) = child.change() {
            return Ok(RunResult { ending, ran_for: started.elapsed(), is_looked_at: false });
        }
        for signal in signals.take_forwarded() {
            child.signal(signal);
        }
        match poll(&mut [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

struct RunLoop {
    outer: OuterTerminal,
    own: OwnSurface,
    pty: Pty,
    child: Child,
    signals: Signals,
    reporter: Option<Reporter>,
    filter: NotificationStripper,
    modes: FocusModes,
    input: FocusInput,
    ring: TitleRing,
    to_outer: ByteQueue,
    to_pty: ByteQueue,
    /// Sequences for the terminal that are inserted as soon as the program's output is not inside a sequence.
    inserts: Vec<u8>,
    buffer: Box<[u8]>,
    last_output: Instant,
    /// No process has the PTY open any more.
    pty_ended: bool,
    /// The terminal was closed. The program may go on running.
    outer_gone: bool,
    ending: Option<Ending>,
}

/// The descriptors that are ready.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each descriptor and direction; all can hold at once"
)]
#[derive(Debug, Clone, Copy, Default)]
struct Ready {
    signal: bool,
    hub: bool,
    from_outer: bool,
    from_pty: bool,
    to_pty: bool,
}

impl RunLoop {
    fn serve(mut self) -> io::Result<(Ending, bool)> {
        loop {
            let ready = self.wait()?;
            if ready.signal {
                self.signals()?;
            }
            if ready.hub
                && let Some(reporter) = &self.reporter
            {
                reporter.clear_wakes();
                self.ring.ring(reporter.is_lit());
            }
            if ready.from_outer {
                self.read_outer();
            }
            if ready.to_pty || ready.from_outer && !self.to_pty.is_empty() {
                // The program is gone.
                if self.to_pty.write_to(&self.pty).is_err() {
                    self.to_pty.clear();
                }
            }
            if ready.from_pty {
                self.read_pty();
            } else if self.filter.holds_escape() && self.last_output.elapsed() >= ESCAPE_WAIT {
                let (modes, to_outer) = (&mut self.modes, &mut self.to_outer);
                self.filter.release(|bytes| {
                    modes.read(bytes);
                    to_outer.push(bytes);
                });
            }
            self.insert();
            if !self.to_outer.is_empty() {
                self.write_outer();
            }
            if !self.outer.is_raw() && !self.outer_gone && self.outer.is_ours() {
                self.resume()?;
            }
            if let Some(ending) = self.ending
                && (self.pty_ended || self.last_output.elapsed() >= LAST_OUTPUT)
                && (self.to_outer.is_empty() || self.outer_gone)
            {
                return Ok((ending, self.finish()));
            }
        }
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut outer_events = PollFlags::empty();
        outer_events.set(PollFlags::IN, self.outer.is_raw() && !self.to_pty.is_full());
        outer_events.set(PollFlags::OUT, !self.to_outer.is_empty());
        let mut pty_events = PollFlags::empty();
        pty_events.set(PollFlags::IN, !self.to_outer.is_full() || self.outer_gone);
        pty_events.set(PollFlags::OUT, !self.to_pty.is_empty());
        let mut polled = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        // A descriptor without requested events would spin on POLLHUP.
        let mut add = |is_in: bool, fd| {
            is_in.then(|| {
                polled.push(fd);
                polled.len() - 1
            })
        };
        let hub = self.reporter.as_ref();
        let hub = hub.and_then(|hub| add(true, PollFd::from_borrowed_fd(hub.as_fd(), PollFlags::IN)));
        let outer_fd = PollFd::from_borrowed_fd(self.outer.as_fd(), outer_events);
        let outer = add(!self.outer_gone && !outer_events.is_empty(), outer_fd);
        let pty_fd = PollFd::new(&self.pty, pty_events);
        let pty = add(!self.pty_ended && !pty_events.is_empty(), pty_fd);
        let timeout = self.timeout().and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events = |index: Option<usize>| {
            index.and_then(|index| polled.get(index)).map_or(PollFlags::empty(), PollFd::revents)
        };
        // The end of a descriptor is found by reading it.
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(Ready {
            signal: !events(Some(0)).is_empty(),
            hub: !events(hub).is_empty(),
            from_outer: events(outer).intersects(readable),
            from_pty: events(pty).intersects(readable),
            to_pty: events(pty).contains(PollFlags::OUT),
        })
    }

    /// The time until the next timer.
    fn timeout(&self) -> Option<Duration> {
        let since_output = self.last_output.elapsed();
        let escape = self.filter.holds_escape().then(|| ESCAPE_WAIT.saturating_sub(since_output));
        let is_draining = self.ending.is_some() && !self.pty_ended;
        let ending = is_draining.then(|| LAST_OUTPUT.saturating_sub(since_output));
        let foreground = (!self.outer.is_raw() && !self.outer_gone).then_some(FOREGROUND_CHECK);
        [escape, ending, foreground].into_iter().flatten().min()
    }

    fn signals(&mut self) -> io::Result<()> {
        self.signals.clear_wakes();
        if self.signals.take_continued() && self.outer.is_ours() {
            self.resume()?;
        }
        if self.signals.take_size_change() {
            self.resize();
        }
        for signal in self.signals.take_forwarded() {
            self.child.signal_foreground(&self.pty, signal);
        }
        while let Some(change) = self.child.change() {
            match change {
                Change::Stopped => self.suspend()?,
                Change::Ended(ending) => {
                    self.ending = Some(ending);
                    self.last_output = Instant::now();
                }
            }
        }
        Ok(())
    }

    /// Stops this process group because the program was stopped with Ctrl-Z.
    fn suspend(&mut self) -> io::Result<()> {
        // This process leads the session, so there is no shell that could continue it.
        if getsid(None).is_ok_and(|session| session == getpid()) {
            self.child.signal(Signal::CONT);
            return Ok(());
        }
        if !self.pty_ended {
            self.read_pty();
        }
        self.write_outer();
        self.outer.restore();
        kill_process_group(getpgrp(), Signal::TSTP)?;
        let end = Instant::now() + STOP_WITHIN;
        while !self.signals.take_continued() && Instant::now() < end {
            let rest = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
            let _ = poll(&mut [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)], rest.as_ref());
            self.signals.clear_wakes();
        }
        if self.outer.is_ours() {
            self.resume()?;
        }
        self.child.signal(Signal::CONT);
        Ok(())
    }

    /// Uses the terminal again after this process was in the background.
    fn resume(&mut self) -> io::Result<()> {
        self.outer.make_raw()?;
        self.resize();
        Ok(())
    }

    fn resize(&self) {
        if let Some(size) = self.outer.size() {
            // This fails if the PTY is gone.
            let _ = tcsetwinsize(&self.pty, size);
        }
    }

    fn read_outer(&mut self) {
        let read = match rustix::io::read(self.outer.as_fd(), &mut *self.buffer) {
            Ok(0) => return self.lose_outer(),
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // In the background, this process must not read.
            Err(_) if !self.outer.is_ours() => return,
            Err(_) => return self.lose_outer(),
        };
        let bytes = self.buffer.get(..read).unwrap_or_default();
        let mut keys = Vec::with_capacity(read);
        let wants = self.modes.is_wanted() || !self.own.reports_focus;
        let input = self.input.read(bytes, wants, &mut keys);
        self.to_pty.push(&keys);
        if let Some(reporter) = &mut self.reporter {
            reporter.input(input);
        }
    }

    fn lose_outer(&mut self) {
        self.outer_gone = true;
        self.to_outer.clear();
        self.child.signal_foreground(&self.pty, Signal::HUP);
    }

    fn read_pty(&mut self) {
        let mut total = 0;
        while total < READ && (!self.to_outer.is_full() || self.outer_gone) {
            match rustix::io::read(&self.pty, &mut *self.buffer) {
                // Linux returns an error (EIO) at the end, other systems return 0.
                Ok(0) | Err(Errno::IO) => {
                    self.pty_ended = true;
                    let to_outer = &mut self.to_outer;
                    return self.filter.release(|bytes| to_outer.push(bytes));
                }
                Ok(read) => {
                    total += read;
                    self.output(read);
                }
                Err(_) => break,
            }
        }
        if total > 0 {
            self.last_output = Instant::now();
        }
    }

    /// Handles output of the program.
    fn output(&mut self, read: usize) {
        let Self { filter, modes, to_outer, reporter, ring, buffer, own, .. } = self;
        let bytes = buffer.get(..read).unwrap_or_default();
        let withhold = reporter.as_ref().is_some_and(Reporter::is_attached);
        let mut stopped_reports = false;
        filter.feed(
            bytes,
            withhold,
            |passed| {
                stopped_reports |= modes.read(passed);
                to_outer.push(passed);
            },
            |event| {
                if let Some(reporter) = reporter {
                    reporter.event(&event.kind);
                }
                if let TerminalEventKind::Title(title) = &event.kind {
                    ring.set_title(title);
                }
            },
        );
        if stopped_reports && own.reports_focus && !modes.is_wanted() {
            self.inserts.extend_from_slice(FOCUS_ON);
        }
    }

    /// Inserts Ringer's own sequences where the program's output allows it.
    fn insert(&mut self) {
        if self.own.marks_title
            && let Some(title) = self.ring.change()
        {
            self.inserts.extend_from_slice(title.as_bytes());
        }
        let is_free = self.filter.is_between_sequences() && self.modes.is_between_sequences();
        if !self.inserts.is_empty() && is_free && !self.outer_gone {
            self.to_outer.push(&self.inserts);
            self.inserts.clear();
        }
    }

    fn write_outer(&mut self) {
        if self.outer_gone {
            self.to_outer.clear();
        } else if self.to_outer.write_to(self.outer.as_fd()).is_err() {
            self.lose_outer();
        }
    }

    /// Restores the terminal. Returns true if the person looked at the program.
    fn finish(mut self) -> bool {
        self.ring.ring(false);
        self.insert();
        self.write_outer();
        self.outer.restore();
        self.reporter.is_some_and(|reporter| {
            let is_looked_at = reporter.is_looked_at();
            reporter.finish();
            is_looked_at
        })
    }
}

/// Signals that are forwarded to the program.
const FORWARDED: [(i32, Signal); 6] = [
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGTERM, Signal::TERM),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
];

/// The signals that have arrived.
#[derive(Debug)]
pub(crate) struct Signals {
    wakes: UnixStream,
    size: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    forwarded: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let (wakes, write) = wake_pair()?;
        let register = |signal: i32| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            // After the flag, so that it is set when the loop wakes.
            pipe::register(signal, write.try_clone()?)?;
            io::Result::Ok(flag)
        };
        register(SIGCHLD)?;
        let forwarded = FORWARDED.iter().map(|(number, signal)| Ok((*signal, register(*number)?)));
        let forwarded = forwarded.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { size: register(SIGWINCH)?, continued: register(SIGCONT)?, forwarded, wakes })
    }

    /// Becomes readable on every signal, including SIGCHLD.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// Must be called before the flags are read.
    pub(crate) fn clear_wakes(&self) {
        clear_wakes(&self.wakes);
    }

    pub(crate) fn take_size_change(&self) -> bool {
        self.size.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// Returns the signals to forward.
    pub(crate) fn take_forwarded(&self) -> impl Iterator<Item = Signal> + '_ {
        let came = self.forwarded.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed));
        came.map(|(signal, _)| *signal)
    }
}
