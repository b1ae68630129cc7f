//! Corrects alacritty's emulator.
//!
//! - [`PatchedTerm`] limits combining marks, hides deceptive characters, drops links that lead anywhere but to pages, mail and own
//!   files, and keeps the cursor in the scroll region in origin mode.
//! - [`VersionQueries`] finds queries for the name and version of the terminal (XTVERSION, `CSI > q`), which the emulator ignores.
//! - [`StringLimit`] truncates the text of an OSC, DCS, APC, PM or SOS, which the emulator would keep without a limit.

use alacritty_terminal::event::EventListener;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Term, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, PrivateMode, Rgb, StandardCharset, TabulationClearMode,
};
use memchr::memchr;
use memchr::memmem::find;
use ringer_term::is_shown_in_cell;
use unicode_width::UnicodeWidthChar;

use crate::link_rule::may_be_followed;

/// The most combining marks on one character. An emoji of several people has about ten.
pub(super) const MAX_MARKS: usize = 16;

/// A space that is two columns wide.
const WIDE_SPACE: char = '\u{3000}';

/// A terminal with corrected handlers.
pub(super) struct PatchedTerm<'a, T>(pub(super) &'a mut Term<T>);

impl<T: EventListener> PatchedTerm<'_, T> {
    /// The cell that a combining mark would be added to. The emulator finds it in the same way.
    fn marked_cell(&self) -> &Cell {
        let grid = self.0.grid();
        let (cursor, mut column) = (&grid.cursor, grid.cursor.point.column);
        if !cursor.input_needs_wrap {
            column.0 = column.saturating_sub(1);
        }
        let row = &grid[cursor.point.line];
        if row[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column.0 = column.saturating_sub(1);
        }
        &row[column]
    }

    /// Writes a character, unless it deceives or hides. Such a character is replaced with spaces of the same width, so that the
    /// program and its screen agree on the position of the cursor.
    fn input_beyond_ascii(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        let cell = self.marked_cell();
        let marks = cell.zerowidth().unwrap_or_default();
        let before = (width == 0).then(|| marks.last().copied().unwrap_or(cell.c));
        match width {
            0 if marks.len() >= MAX_MARKS || !is_shown_in_cell(character, before) => {}
            1 if !is_shown_in_cell(character, None) => self.0.input(' '),
            2 if !is_shown_in_cell(character, None) => self.0.input(WIDE_SPACE),
            _ => self.0.input(character),
        }
    }

    /// Moves the cursor by a number of lines, to a column. In origin mode, the emulator would add the top of the scroll region a
    /// second time.
    fn move_to(&mut self, lines: i32, column: Option<usize>) {
        let at = self.0.grid().cursor.point;
        let column = column.unwrap_or(at.column.0);
        let top = if self.0.mode().contains(TermMode::ORIGIN) {
            self.0.goto(0, 0);
            self.0.grid().cursor.point.line.0
        } else {
            0
        };
        self.0.goto((at.line.0 - top + lines).max(0), column);
    }
}

/// Converts a number of lines, limited to more lines than a terminal has.
fn distance(lines: usize) -> i32 {
    i32::try_from(lines).unwrap_or(i32::MAX / 4).min(i32::MAX / 4)
}

/// Defines methods that only call the terminal.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[inline]
            fn $name(&mut self, $($argument: $kind),*) {
                self.0.$name($($argument),*);
            }
        )*
    };
}

impl<T: EventListener> Handler for PatchedTerm<'_, T> {
    #[inline]
    fn input(&mut self, character: char) {
        if character.is_ascii() {
            self.0.input(character);
        } else {
            self.input_beyond_ascii(character);
        }
    }

    fn set_hyperlink(&mut self, link: Option<Hyperlink>) {
        self.0.set_hyperlink(link.filter(|link| may_be_followed(&link.uri)));
    }

    fn goto_col(&mut self, column: usize) {
        self.move_to(0, Some(column));
    }

    fn move_up(&mut self, lines: usize) {
        self.move_to(-distance(lines), None);
    }

    fn move_down(&mut self, lines: usize) {
        self.move_to(distance(lines), None);
    }

    fn move_up_and_cr(&mut self, lines: usize) {
        self.move_to(-distance(lines), Some(0));
    }

    fn move_down_and_cr(&mut self, lines: usize) {
        self.move_to(distance(lines), Some(0));
    }

    pass_on! {
        set_title(title: Option<String>);
        set_cursor_style(style: Option<CursorStyle>);
        set_cursor_shape(shape: CursorShape);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        insert_blank(count: usize);
        identify_terminal(intermediate: Option<char>);
        device_status(number: usize);
        move_forward(columns: usize);
        move_backward(columns: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        linefeed();
        bell();
        substitute();
        newline();
        set_horizontal_tabstop();
        scroll_up(lines: usize);
        scroll_down(lines: usize);
        insert_blank_lines(lines: usize);
        delete_lines(lines: usize);
        erase_chars(count: usize);
        delete_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        clear_screen(mode: ClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        reset_state();
        reverse_index();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        report_mode(mode: Mode);
        set_private_mode(mode: PrivateMode);
        unset_private_mode(mode: PrivateMode);
        report_private_mode(mode: PrivateMode);
        set_scrolling_region(top: usize, bottom: Option<usize>);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: Rgb);
        dynamic_color_sequence(prefix: String, index: usize, terminator: &str);
        reset_color(index: usize);
        clipboard_store(clipboard: u8, text: &[u8]);
        clipboard_load(clipboard: u8, terminator: &str);
        decaln();
        push_title();
        pop_title();
        text_area_size_pixels();
        text_area_size_chars();
        report_keyboard_mode();
        push_keyboard_mode(mode: KeyboardModes);
        pop_keyboard_modes(count: u16);
        set_keyboard_mode(mode: KeyboardModes, behavior: KeyboardModesApplyBehavior);
    }
}

/// The beginning of a version query.
const BEGINNING: &[u8] = b"\x1b[>";
const ESCAPE: u8 = 0x1b;

/// The part of a query that has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum QueryState {
    #[default]
    Nothing,
    Escape,
    Bracket,
    /// The whole beginning, and perhaps a parameter of 0.
    Beginning,
}

/// Counts the queries in a program's output, even if they are split among reads. ESC ends any string, so the bytes before it do
/// not matter.
#[derive(Debug, Default)]
pub(super) struct VersionQueries {
    seen: QueryState,
}

impl VersionQueries {
    /// Returns the number of queries that these bytes complete.
    pub(super) fn count(&mut self, bytes: &[u8]) -> usize {
        let (mut rest, mut count) = (bytes, 0);
        loop {
            if self.seen == QueryState::Nothing {
                // The fast path: nearly all output has none.
                let Some(at) = find(rest, BEGINNING) else { break };
                rest = &rest[at + BEGINNING.len()..];
                self.seen = QueryState::Beginning;
            }
            let Some((byte, after)) = rest.split_first() else { return count };
            rest = after;
            self.seen = match (self.seen, *byte) {
                (QueryState::Escape, b'[') => QueryState::Bracket,
                (QueryState::Bracket, b'>') | (QueryState::Beginning, b'0') => QueryState::Beginning,
                (_, ESCAPE) => QueryState::Escape,
                (QueryState::Beginning, b'q') => {
                    count += 1;
                    QueryState::Nothing
                }
                _ => QueryState::Nothing,
            };
        }
        self.seen = match rest {
            [.., ESCAPE] => QueryState::Escape,
            [.., ESCAPE, b'['] => QueryState::Bracket,
            _ => QueryState::Nothing,
        };
        count
    }
}

/// The longest string. Longer titles and links are of no use.
const MAX_STRING: usize = 256 * 1024;
/// The longest clipboard text (OSC 52): 1 MiB as base64, and the parameters before it.
const MAX_COPY: usize = (1024 * 1024_usize).div_ceil(3) * 4 + 16;
const COPY: &[u8] = b"52;";
const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StringState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a string, after `had` bytes. `is_copy` is true while it may be OSC 52.
    String { had: usize, is_copy: bool },
}

/// Passes on a program's output without the excess of long strings.
#[derive(Debug, Default)]
pub(super) struct StringLimit {
    state: StringState,
}

impl StringLimit {
    /// Calls `pass` for each piece of the output. Reads may end anywhere.
    pub(super) fn feed(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match self.state {
                StringState::Text => {
                    let found = memchr(ESCAPE, rest);
                    let length = found.map_or(rest.len(), |at| at + 1);
                    pass(&rest[..length]);
                    self.state = if found.is_some() { StringState::Escape } else { StringState::Text };
                    length
                }
                StringState::Escape => {
                    pass(&rest[..1]);
                    self.state = match rest[0] {
                        b']' | b'P' | b'_' | b'^' | b'X' => {
                            StringState::String { had: 0, is_copy: rest[0] == b']' }
                        }
                        // These bytes do not end the sequence.
                        0x00..=0x17 | 0x19 | ESCAPE..=0x1f | 0x7f.. => StringState::Escape,
                        _ => StringState::Text,
                    };
                    1
                }
                StringState::String { had, is_copy } => self.string(rest, had, is_copy, &mut pass),
            };
            rest = &rest[taken..];
        }
    }

    /// Processes the bytes of a string up to its end.
    fn string(&mut self, rest: &[u8], had: usize, is_copy: bool, pass: &mut impl FnMut(&[u8])) -> usize {
        let is_end = |byte: &u8| matches!(*byte, ESCAPE | BELL | CANCEL | SUBSTITUTE);
        let end = rest.iter().position(is_end);
        let text = &rest[..end.unwrap_or(rest.len())];
        let is_copy = is_copy && COPY.iter().skip(had).zip(text).all(|(byte, own)| byte == own);
        let most = if is_copy { MAX_COPY } else { MAX_STRING };
        let room = most.saturating_sub(had).min(text.len());
        pass(&text[..room]);
        let had = had.saturating_add(text.len());
        match end {
            None => {
                self.state = StringState::String { had, is_copy };
                rest.len()
            }
            Some(at) => {
                pass(&rest[at..=at]);
                // ESC ends the string, and begins the next sequence.
                self.state = if rest[at] == ESCAPE { StringState::Escape } else { StringState::Text };
                at + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alacritty_terminal::event::VoidListener;
    use alacritty_terminal::index::{Column, Line};
    use alacritty_terminal::term::Config;
    use alacritty_terminal::term::test::TermSize;
    use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_character_has_no_more_marks_than_can_be_drawn_however_they_come() {
        let mut term = Term::new(Config::default(), &TermSize::new(10, 3), VoidListener);
        let mut processor: Processor<StdSyncHandler> = Processor::new();
        // Adjacent, with other sequences between them, and after the cursor went back.
        let marks = "\u{301}".repeat(1000);
        let text = format!("x{marks}\x1b[0m{marks}y\x1b[1;2H{marks}\r\n漢{marks}\x1b[2;10Hz{marks}");
        processor.advance(&mut PatchedTerm(&mut term), text.as_bytes());
        let marks = |line: i32, column: usize| {
            term.grid()[Line(line)][Column(column)].zerowidth().map_or(0, <[char]>::len)
        };
        assert_eq!(
            [marks(0, 0), marks(0, 1), marks(1, 0), marks(1, 9)],
            [MAX_MARKS, 0, MAX_MARKS, MAX_MARKS]
        );
    }

    #[test]
    fn what_deceives_or_hides_is_not_on_the_screen() {
        let mut term = Term::new(Config::default(), &TermSize::new(20, 4), VoidListener);
        let mut processor: Processor<StdSyncHandler> = Processor::new();
        let text = "user\u{202e}txt\u{200b}.\u{2066}exe\u{feff}\r\n\
            👩\u{200d}🚀 ❤\u{fe0f} می\u{200c}خ\r\n\
            a\u{200d}\u{fe0f}b\u{3164}\u{115f}\u{10eeee}c\r\n\
            \u{e0b0}\u{f0001}";
        processor.advance(&mut PatchedTerm(&mut term), text.as_bytes());
        let line = |line: i32| -> String {
            let cells = (0..20).map(|column| &term.grid()[Line(line)][Column(column)]);
            let cells = cells.filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER));
            let text = |cell: &Cell| [&[cell.c], cell.zerowidth().unwrap_or_default()].concat();
            cells.flat_map(text).collect::<String>().trim_end().to_owned()
        };
        assert_eq!(line(0), "usertxt.exe");
        assert_eq!(line(1), "👩\u{200d}🚀 ❤\u{fe0f} می\u{200c}خ");
        // One filler has no width, the other is two columns wide, and the placeholder of an image one column.
        assert_eq!(line(2), "ab\u{3000} c");
        assert_eq!(line(3), "\u{e0b0}\u{f0001}");
    }

    #[test]
    fn only_pages_and_own_files_are_linked() {
        let linked = |uri: &str| {
            let mut term = Term::new(Config::default(), &TermSize::new(20, 1), VoidListener);
            let mut processor: Processor<StdSyncHandler> = Processor::new();
            let text = format!("\x1b]8;;{uri}\x1b\\x\x1b]8;;\x1b\\");
            processor.advance(&mut PatchedTerm(&mut term), text.as_bytes());
            let cell = &term.grid()[Line(0)][Column(0)];
            assert_eq!(cell.c, 'x', "the text is shown");
            cell.hyperlink().map(|link| link.uri().to_owned())
        };
        assert_eq!(linked("https://example.org/").as_deref(), Some("https://example.org/"));
        for uri in ["javascript:alert(1)", "vscode://file/x", "file://elsewhere/x", "file:///missing"] {
            assert_eq!(linked(uri), None, "{uri}");
        }
    }

    /// A scroll region of lines 3 and 4 in origin mode.
    #[test]
    fn in_origin_mode_the_cursor_stays_in_the_region() {
        let at = |moves: &str| {
            let mut term = Term::new(Config::default(), &TermSize::new(10, 6), VoidListener);
            let mut processor: Processor<StdSyncHandler> = Processor::new();
            processor.advance(&mut PatchedTerm(&mut term), format!("\x1b[3;4r\x1b[?6h{moves}").as_bytes());
            let point = term.grid().cursor.point;
            (point.line.0, point.column.0)
        };
        assert_eq!(at("\x1b[2;1H\x1b[A"), (2, 0));
        assert_eq!(at("\x1b[2;3H\x1b[9A"), (2, 2));
        assert_eq!(at("\x1b[1;3H\x1b[B"), (3, 2));
        assert_eq!(at("\x1b[1;3H\x1b[9999999999B"), (3, 2));
        assert_eq!(at("\x1b[2;3H\x1b[5G"), (3, 4));
        assert_eq!(at("\x1b[2;3H\x1b[F"), (2, 0));
        assert_eq!(at("\x1b[1;3H\x1b[E"), (3, 0));
        assert_eq!(at("\x1b[?6l\x1b[5;3H\x1b[2A"), (2, 2));
    }

    fn count(pieces: &[&[u8]]) -> usize {
        let mut questions = VersionQueries::default();
        pieces.iter().map(|piece| questions.count(piece)).sum()
    }

    #[test]
    fn only_the_question_is_one() {
        assert_eq!(count(&[b"a\x1b[>qb\x1b[>0q\x1b\x1b[>q\x1b]2;t\x1b[>00q"]), 4);
        assert_eq!(count(&[b"\x1b[>1q\x1b[q\x1b[ q\x1b[>c\x1b[>4;1m\x1b[>0;0q[>q\x1b[>"]), 0);
        assert_eq!(count(&[b"\x1b", b"[", b"", b">", b"q", b"q"]), 1);
    }

    proptest! {
        #[test]
        fn it_is_found_wherever_it_is_cut(
            bytes in prop::collection::vec(prop::sample::select(b"\x1b[>0qx".to_vec()), 0..40),
            cut in 0..40_usize,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(count(&[first, second]), count(&[&bytes]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(count(&single), count(&[&bytes]));
        }
    }

    fn passed(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut limit, mut out) = (StringLimit::default(), Vec::new());
        for piece in pieces {
            limit.feed(piece, |bytes| out.extend_from_slice(bytes));
        }
        out
    }

    #[test]
    fn a_string_without_an_end_is_cut() {
        let flood = vec![b'a'; 3 * MAX_STRING];
        let out = passed(&[b"x\x1b]2;", &flood, &flood, b"\x07y\x1b]2;t\x1b\\z"]);
        assert_eq!(out.len(), b"x\x1b]".len() + MAX_STRING + b"\x07y\x1b]2;t\x1b\\z".len());
        assert!(out.ends_with(b"a\x07y\x1b]2;t\x1b\\z"));
    }

    #[test]
    fn what_is_copied_may_be_longer_but_not_without_an_end() {
        let copy = [b"\x1b]52;c;", &vec![b'a'; 1_398_104][..], b"\x07"].concat();
        assert_eq!(passed(&[&copy]), copy);
        assert_eq!(passed(&[&copy[..3], &copy[3..4], &copy[4..]]), copy);
        let flood = vec![b'a'; 2 * MAX_COPY];
        assert_eq!(passed(&[b"\x1b]52;", &flood]).len(), b"\x1b]".len() + MAX_COPY);
        for other in [&b"\x1b]5"[..], b"\x1b]53;", b"\x1bP52;", b"\x1b]152;"] {
            assert_eq!(passed(&[other, &flood]).len(), 2 + MAX_STRING);
        }
    }

    #[test]
    fn controls_after_an_escape_byte_do_not_hide_a_string() {
        let flood = vec![b'a'; 3 * MAX_STRING];
        assert_eq!(passed(&[b"\x1b\n\x7f]2;", &flood]).len(), b"\x1b\n\x7f]".len() + MAX_STRING);
    }

    proptest! {
        #[test]
        fn what_is_short_passes_as_it_is_wherever_it_is_cut(
            bytes in prop::collection::vec(prop_oneof![
                Just(ESCAPE), Just(BELL), Just(b']'), Just(b'\\'), Just(b'P'), Just(CANCEL), any::<u8>(),
            ], 0..300),
            at in 0..300usize,
        ) {
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(passed(&[first, second]), bytes);
        }
    }
}
