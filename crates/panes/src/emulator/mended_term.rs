//! Corrects the emulator. It accepts any number of combining marks on one character, and in origin mode it moves the cursor to
//! the wrong line. It also shows deceptive characters, and links that lead anywhere but to pages, mail and own files.

use alacritty_terminal::event::EventListener;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Term, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, PrivateMode, Rgb, StandardCharset, TabulationClearMode,
};
use ringer_term::is_shown_in_cell;
use unicode_width::UnicodeWidthChar;

use crate::link_rule::may_be_followed;

/// The most combining marks on one character. An emoji of several people has about ten.
pub(super) const MAX_MARKS: usize = 16;

/// A space that is two columns wide.
const WIDE_SPACE: char = '\u{3000}';

/// A terminal with these corrections.
pub(super) struct MendedTerm<'a, T>(pub(super) &'a mut Term<T>);

impl<T: EventListener> MendedTerm<'_, T> {
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

impl<T: EventListener> Handler for MendedTerm<'_, T> {
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

#[cfg(test)]
mod tests {
    use alacritty_terminal::event::VoidListener;
    use alacritty_terminal::index::{Column, Line};
    use alacritty_terminal::term::Config;
    use alacritty_terminal::term::test::TermSize;
    use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};

    use super::*;

    #[test]
    fn a_character_has_no_more_marks_than_can_be_drawn_however_they_come() {
        let mut term = Term::new(Config::default(), &TermSize::new(10, 3), VoidListener);
        let mut processor: Processor<StdSyncHandler> = Processor::new();
        // Adjacent, with other sequences between them, and after the cursor went back.
        let marks = "\u{301}".repeat(1000);
        let text = format!("x{marks}\x1b[0m{marks}y\x1b[1;2H{marks}\r\n漢{marks}\x1b[2;10Hz{marks}");
        processor.advance(&mut MendedTerm(&mut term), text.as_bytes());
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
        processor.advance(&mut MendedTerm(&mut term), text.as_bytes());
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
            processor.advance(&mut MendedTerm(&mut term), text.as_bytes());
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
            processor.advance(&mut MendedTerm(&mut term), format!("\x1b[3;4r\x1b[?6h{moves}").as_bytes());
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
}
