//! The terminal that shows panes: a PTY whose other end is read at once.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Config;
use alacritty_terminal::vte::ansi::Processor;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long anything may take to be on the screen.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between keys that are pressed.
const KEY_PAUSE: Duration = Duration::from_millis(10);
/// How many of the last bytes are kept: more than any text that is waited for has.
const TAIL: usize = 400;
/// What a program shows first that is waited for.
pub(crate) const READY: &str = "ready";
const SIZE: PtySize = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };

/// What reads the output.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    /// An emulator, as in a terminal's window.
    Emulator,
    /// It is searched for what is waited for, and thrown away.
    Discarding,
}

/// Where a text is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// It ends where the cursor is.
    BeforeCursor,
    /// In any line: the cursor is hardly ever in its pane while another one floods.
    Anywhere,
}

/// A program in a terminal.
pub(crate) struct Terminal {
    pub(crate) pid: u32,
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    shared: Arc<Shared>,
}

struct Shared {
    display: Mutex<Display>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Display> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    pub(crate) fn of(command: CommandBuilder, reader: Reader) -> Self {
        let pair = native_pty_system().openpty(SIZE).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("a program");
        drop(pair.slave);
        let output = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        let shared = Arc::new(Shared { display: Mutex::new(Display::new(reader)), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        thread::spawn(move || read_all(output, &own));
        let pid = child.process_id().expect("a process");
        Self { pid, child, writer, master: pair.master, shared }
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush()).expect("a key is typed");
    }

    /// Presses keys one after the other, not quicker than a person: tmux takes keys within a millisecond for a paste.
    pub(crate) fn press(&mut self, keys: &[&str]) {
        for key in keys {
            thread::sleep(KEY_PAUSE);
            self.write(key);
        }
    }

    /// Types something and gives how long it takes until a text is there.
    pub(crate) fn type_until(&mut self, typed: &str, shown: &str, place: Place) -> Duration {
        let mut display = self.shared.lock();
        (display.wanted, display.place) = (shown.to_owned(), place);
        (display.found, display.tail) = (None, Vec::new());
        drop(display);
        let begun = Instant::now();
        self.write(typed);
        let found = self.wait_for(shown, |display| display.found);
        found.saturating_duration_since(begun)
    }

    /// Waits until the program has shown [`READY`].
    pub(crate) fn wait_until_ready(&self) {
        self.wait_for(READY, |display| display.found);
    }

    /// Waits for something that the terminal shows.
    pub(crate) fn wait_for<T>(&self, what: &str, find: impl Fn(&Display) -> Option<T>) -> T {
        let over = Instant::now() + PATIENCE;
        let mut display = self.shared.lock();
        loop {
            if let Some(found) = find(&display) {
                return found;
            }
            let left = over.saturating_duration_since(Instant::now());
            let is_late = left.is_zero() || display.is_over;
            assert!(!is_late, "{what:?} does not come; the terminal shows:\n{}", display.text());
            let waited = self.shared.changed.wait_timeout(display, left);
            display = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = PtySize { cols: columns, rows: lines, ..SIZE };
        self.shared.lock().resize(size);
        self.master.resize(size).expect("a size");
    }

    /// Waits until the program has ended by itself.
    pub(crate) fn wait_for_end(&self) {
        let over = Instant::now() + PATIENCE;
        let mut display = self.shared.lock();
        while !display.is_over {
            let left = over.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it does not end; the terminal shows:\n{}", display.text());
            let waited = self.shared.changed.wait_timeout(display, left);
            display = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_all(mut output: Box<dyn Read + Send>, shared: &Shared) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        shared.lock().take(&buffer[..count]);
        shared.changed.notify_all();
    }
    shared.lock().is_over = true;
    shared.changed.notify_all();
}

/// What the terminal shows.
pub(crate) struct Display {
    reader: Reader,
    term: Term<VoidListener>,
    parser: Processor,
    /// The text that is waited for.
    wanted: String,
    place: Place,
    /// When it was there.
    found: Option<Instant>,
    /// The last bytes, in which a text may have begun.
    tail: Vec<u8>,
    is_over: bool,
}

impl Display {
    fn new(reader: Reader) -> Self {
        let term =
            Term::new(Config { scrolling_history: 0, ..Config::default() }, &Cells(SIZE), VoidListener);
        Self {
            reader,
            term,
            parser: Processor::new(),
            wanted: READY.to_owned(),
            place: Place::BeforeCursor,
            found: None,
            tail: Vec::new(),
            is_over: false,
        }
    }

    fn resize(&mut self, size: PtySize) {
        self.term.resize(Cells(size));
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Reader::Emulator = self.reader {
            self.parser.advance(&mut self.term, bytes);
        }
        if self.found.is_none() && self.is_there(bytes) {
            self.found = Some(Instant::now());
        }
    }

    fn is_there(&mut self, bytes: &[u8]) -> bool {
        if let Reader::Emulator = self.reader {
            return match self.place {
                Place::BeforeCursor => self.is_before_cursor(&self.wanted),
                Place::Anywhere => self.is_anywhere(&self.wanted),
            };
        }
        let wanted = self.wanted.as_bytes();
        self.tail.extend_from_slice(bytes);
        let mut begins = self.tail.iter().enumerate().filter(|(_, byte)| **byte == wanted[0]);
        let is_there = begins.any(|(at, _)| self.tail[at..].starts_with(wanted));
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        is_there
    }

    /// Whether a text is in a line.
    fn is_anywhere(&self, text: &str) -> bool {
        let grid = self.term.grid();
        let is_at = |line: usize, begin: usize| {
            let row = &grid[Line(i32::try_from(line).unwrap_or(0))];
            text.chars().zip(begin..).all(|(expected, column)| row[Column(column)].c == expected)
        };
        let begins = 0..=grid.columns().saturating_sub(text.len());
        (0..grid.screen_lines()).any(|line| begins.clone().any(|begin| is_at(line, begin)))
    }

    /// Whether a text ends where the cursor is.
    fn is_before_cursor(&self, text: &str) -> bool {
        let cursor = self.term.grid().cursor.point;
        let Some(begin) = cursor.column.0.checked_sub(text.len()) else { return false };
        let row = &self.term.grid()[cursor.line];
        text.chars().zip(begin..).all(|(expected, column)| row[Column(column)].c == expected)
    }

    /// The number in front of the cursor, if a prompt is there: `123> `.
    pub(crate) fn prompt(&self) -> Option<u32> {
        let cursor = self.term.grid().cursor.point;
        let row = &self.term.grid()[cursor.line];
        let before: String = (0..cursor.column.0).map(|column| row[Column(column)].c).collect();
        let digits = before.strip_suffix("> ")?;
        let begin = digits
            .rfind(|letter: char| !letter.is_ascii_digit())
            .map_or(0, |at| at + digits[at..].chars().next().map_or(0, char::len_utf8));
        digits[begin..].parse().ok()
    }

    /// All lines; without an emulator, the last bytes.
    pub(crate) fn text(&self) -> String {
        let (grid, mut text) = (self.term.grid(), String::new());
        if let Reader::Discarding = self.reader {
            return self.tail.escape_ascii().to_string();
        }
        for line in 0..grid.screen_lines() {
            let row = &grid[Line(i32::try_from(line).unwrap_or(0))];
            text.extend((0..grid.columns()).map(|column| row[Column(column)].c));
            text.push('\n');
        }
        text
    }
}

/// The size of the screen, for the emulator.
struct Cells(PtySize);

impl Dimensions for Cells {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.0.cols)
    }
}
