//! A terminal in which panes are shown, as a person sees it.

use std::cell::RefCell;
use std::thread;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Config;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::Processor;
use portable_pty::ExitStatus;
use test_support::until;

use crate::pty::Pane;

/// The key before all keys of panes.
const PREFIX: &str = "\x07";

/// An emulator, and how much of the program's output it has.
pub(super) struct Emulator {
    term: Term<VoidListener>,
    processor: Processor,
    read: usize,
}

struct Size(u16, u16);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        usize::from(self.0)
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0)
    }

    fn columns(&self) -> usize {
        usize::from(self.1)
    }
}

impl Emulator {
    pub(super) fn new(lines: u16, columns: u16) -> Self {
        let term = Term::new(Config::default(), &Size(lines, columns), VoidListener);
        Self { term, processor: Processor::new(), read: 0 }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.processor.advance(&mut self.term, bytes);
        self.read += bytes.len();
    }

    /// A cell of the screen.
    pub(super) fn cell(&self, line: u16, column: u16) -> &Cell {
        &self.term.grid()[Line(i32::from(line))][Column(usize::from(column))]
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let size = (self.term.screen_lines(), self.term.columns());
        let cells = |line| (0..size.1).map(move |column| &self.term.grid()[Line(line)][Column(column)]);
        let line = |line| {
            let shown = cells(line).filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER));
            shown
                .flat_map(|cell| {
                    std::iter::once(cell.c).chain(cell.zerowidth().into_iter().flatten().copied())
                })
                .collect()
        };
        (0..i32::try_from(size.0).expect("a size")).map(line).collect()
    }
}

/// A window: a program in a terminal, and what it shows.
pub(super) struct Window {
    pane: Pane,
    emulator: RefCell<Emulator>,
}

impl Window {
    /// Shows what the program of a terminal of that size writes.
    pub(super) fn new(pane: Pane, (lines, columns): (u16, u16)) -> Self {
        Self { pane, emulator: RefCell::new(Emulator::new(lines, columns)) }
    }

    /// Reads the terminal of [`Session::unread_terminal`](super::session::Session::unread_terminal) from now on.
    pub(super) fn begin_reading(&mut self) {
        self.pane.begin_reading();
    }

    /// Looks at the screen, as it is by now.
    pub(super) fn look<T>(&self, see: impl FnOnce(&Emulator) -> T) -> T {
        let mut emulator = self.emulator.borrow_mut();
        let new = self.pane.written_after(emulator.read);
        emulator.feed(&new);
        see(&emulator)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.look(Emulator::lines)
    }

    pub(super) fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// Everything that came so far, as it came.
    pub(super) fn raw(&self) -> String {
        self.pane.text()
    }

    /// Waits until these words are shown.
    #[track_caller]
    pub(super) fn until(&self, words: &str) {
        until(words, || self.text().contains(words));
    }

    #[track_caller]
    pub(super) fn until_not(&self, words: &str) {
        until(&format!("no {words}"), || !self.text().contains(words));
    }

    /// Waits until a number stands behind a word. Gives it.
    #[track_caller]
    pub(super) fn number_after(&self, word: &str) -> u32 {
        let found = || {
            let text = self.text();
            text.match_indices(word).find_map(|(at, _)| {
                let rest = &text[at + word.len()..];
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            })
        };
        // It may not be shown for long: a server that is replaced leaves its picture until the next one draws.
        let mut number = None;
        until(&format!("a number after {word}"), || {
            number = found();
            number.is_some()
        });
        number.expect("it was there")
    }

    pub(super) fn keys(&mut self, keys: &str) {
        self.pane.type_bytes(keys.as_bytes());
    }

    /// Types a command and Enter.
    pub(super) fn command(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Presses a key after the prefix.
    pub(super) fn press(&mut self, key: &str) {
        self.keys(&format!("{PREFIX}{key}"));
    }

    /// The terminal gets or loses the focus.
    pub(super) fn set_focus(&mut self, has_focus: bool) {
        self.keys(if has_focus { "\x1b[I" } else { "\x1b[O" });
    }

    pub(super) fn resize(&self, lines: u16, columns: u16) {
        self.look(|_| ());
        self.emulator.borrow_mut().term.resize(Size(lines, columns));
        self.pane.resize(lines, columns);
    }

    /// The process of the client.
    pub(super) fn pid(&self) -> u32 {
        self.pane.pid().cast_unsigned()
    }

    /// Waits for the end of its program. Gives what it wrote, and how it ended.
    #[track_caller]
    pub(super) fn end(mut self) -> (String, ExitStatus) {
        let status = self.pane.wait();
        (self.raw(), status)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the window:\n{}", self.text());
        }
    }
}
