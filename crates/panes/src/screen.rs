//! The contents of a client's terminal, and the bytes that turn one screen into the next.

use std::fmt::Write;

use alacritty_terminal::term::cell::Hyperlink;
use unicode_width::UnicodeWidthChar;

use crate::layout::Area;
use crate::style::{ColourDepth, Style};

/// Zero-width joiner, which combines emoji.
const JOINER: char = '\u{200d}';

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// `None` in the second cell of a wide character.
    pub(crate) character: Option<char>,
    /// Combining characters: accents, and the rest of an emoji.
    pub(crate) marks: Option<Box<[char]>>,
    pub(crate) style: Style,
    pub(crate) link: Option<Hyperlink>,
}

impl Default for Cell {
    fn default() -> Self {
        Self { character: Some(' '), marks: None, style: Style::default(), link: None }
    }
}

/// The visible cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) x: u16,
    pub(crate) y: u16,
    /// The DECSCUSR number.
    pub(crate) shape: u8,
}

/// The capabilities of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) colours: ColourDepth,
    /// Only ASCII characters.
    pub(crate) is_ascii: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screen {
    width: u16,
    height: u16,
    cells: Vec<Cell>,
    pub(crate) cursor: Option<Cursor>,
}

impl Screen {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let cells = vec![Cell::default(); usize::from(width) * usize::from(height)];
        Self { width, height, cells, cursor: None }
    }

    pub(crate) fn area(&self) -> Area {
        Area::new(0, 0, self.width, self.height)
    }

    /// Clears the screen and sets its size.
    pub(crate) fn clear(&mut self, width: u16, height: u16) {
        (self.width, self.height, self.cursor) = (width, height, None);
        self.cells.clear();
        self.cells.resize(usize::from(width) * usize::from(height), Cell::default());
    }

    /// Sets the size of another screen. The contents are undefined then.
    pub(crate) fn match_size(&mut self, other: &Self) {
        if self.area() != other.area() {
            self.clear(other.width, other.height);
        }
    }

    fn row_mut(&mut self, y: u16) -> &mut [Cell] {
        let first = usize::from(y) * usize::from(self.width);
        self.cells.get_mut(first..first + usize::from(self.width)).unwrap_or_default()
    }

    /// Copies a line of another screen of the same size.
    pub(crate) fn copy_row(&mut self, y: u16, from: &Self) {
        let first = usize::from(y) * usize::from(self.width);
        let row = from.cells.get(first..first + usize::from(self.width)).unwrap_or_default();
        self.row_mut(y).clone_from_slice(row);
    }

    /// Swaps a line with another screen of the same size.
    pub(crate) fn swap_row(&mut self, y: u16, other: &mut Self) {
        self.row_mut(y).swap_with_slice(other.row_mut(y));
    }

    fn index(&self, x: u16, y: u16) -> Option<usize> {
        (x < self.width && y < self.height).then(|| usize::from(y) * usize::from(self.width) + usize::from(x))
    }

    pub(crate) fn cell(&self, x: u16, y: u16) -> Option<&Cell> {
        self.index(x, y).and_then(|index| self.cells.get(index))
    }

    pub(crate) fn cell_mut(&mut self, x: u16, y: u16) -> Option<&mut Cell> {
        self.index(x, y).and_then(|index| self.cells.get_mut(index))
    }

    /// Writes a text without control characters into at most `most` cells. Returns the column after it.
    pub(crate) fn put(&mut self, x: u16, y: u16, text: &str, most: u16, style: Style) -> u16 {
        let end = x.saturating_add(most).min(self.width);
        let mut at = x;
        for character in text.chars() {
            let width = u16::try_from(character.width().unwrap_or(0)).unwrap_or(0);
            if width == 0 {
                continue;
            }
            if at + width > end {
                break;
            }
            self.break_wide(at, y);
            self.break_wide(at + width - 1, y);
            if let Some(cell) = self.cell_mut(at, y) {
                *cell = Cell { character: Some(character), style, ..Cell::default() };
            }
            if width == 2
                && let Some(cell) = self.cell_mut(at + 1, y)
            {
                *cell = Cell { character: None, style, ..Cell::default() };
            }
            at += width;
        }
        at
    }

    /// Blanks the other half of a wide character before one half is overwritten.
    fn break_wide(&mut self, x: u16, y: u16) {
        let is_second = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.character.is_none());
        if is_second(self.cell(x, y))
            && x > 0
            && let Some(first) = self.cell_mut(x - 1, y)
        {
            (first.character, first.marks) = (Some(' '), None);
        }
        if is_second(self.cell(x + 1, y))
            && let Some(second) = self.cell_mut(x + 1, y)
        {
            second.character = Some(' ');
        }
    }

    /// Blanks lone halves of wide characters in an area: programs insert, delete and erase single cells, and a window may be
    /// narrower than the pane.
    pub(crate) fn mend_halves(&mut self, area: Area) {
        let is_wide = |cell: &Cell| cell.character.is_some_and(|character| character.width() == Some(2));
        for y in area.y..area.bottom() {
            let mut is_second_half = false;
            for x in area.x..area.right() {
                let has_second_half =
                    x + 1 < area.right() && self.cell(x + 1, y).is_some_and(|next| next.character.is_none());
                let Some(cell) = self.cell_mut(x, y) else { break };
                let is_lone = match cell.character {
                    None => !is_second_half,
                    Some(_) => is_wide(cell) && !has_second_half,
                };
                if is_lone {
                    (cell.character, cell.marks) = (Some(' '), None);
                }
                is_second_half = is_wide(cell);
            }
        }
    }

    /// Appends the bytes that turn `before` into this screen. Without `before`, the contents of the terminal are unknown.
    pub(crate) fn changes(&self, before: Option<&Self>, abilities: Abilities, out: &mut String) {
        self.changes_of_rows(0..self.height, before, abilities, out);
    }

    /// Like [`Self::changes`], if only these lines differ.
    pub(crate) fn changes_of_rows(
        &self,
        rows: impl IntoIterator<Item = u16>,
        before: Option<&Self>,
        abilities: Abilities,
        out: &mut String,
    ) {
        let before = before.filter(|before| (before.width, before.height) == (self.width, self.height));
        let begun = out.len();
        out.push_str("\x1b[?2026h\x1b[?25l");
        let header = out.len();
        if before.is_none() {
            out.push_str("\x1b[0m\x1b[2J");
        }
        let mut pen = Pen { abilities, at: None, style: None, link: None };
        let blank = Cell::default();
        for y in rows {
            for x in 0..self.width {
                let Some(cell) = self.cell(x, y) else { continue };
                let old = before.map_or(Some(&blank), |before| before.cell(x, y));
                let is_changed = Some(cell) != old;
                // The second half of a wide character is drawn together with the first.
                if is_changed && cell.character.is_some() {
                    pen.draw(
                        x,
                        y,
                        cell,
                        self.cell(x + 1, y).is_some_and(|next| next.character.is_none()),
                        out,
                    );
                } else if is_changed
                    && x > 0
                    && let Some(first) = self.cell(x - 1, y)
                    && pen.at != Some((x + 1, y))
                {
                    pen.draw(x - 1, y, first, true, out);
                }
            }
        }
        pen.end(out);
        let is_same = out.len() == header && before.is_some_and(|before| before.cursor == self.cursor);
        if is_same {
            out.truncate(begun);
            return;
        }
        if let Some(Cursor { x, y, shape }) = self.cursor {
            if before.and_then(|before| before.cursor).is_none_or(|old| old.shape != shape) {
                let _ = write!(out, "\x1b[{shape} q");
            }
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1);
        }
        out.push_str("\x1b[?2026l");
    }

    /// The text, line by line.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let line = |y: u16| -> String {
            let cells = (0..self.width).filter_map(|x| self.cell(x, y));
            let text: String = cells.filter_map(|cell| cell.character).collect();
            text.trim_end().to_owned()
        };
        (0..self.height).map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The state of the terminal while cells are written.
struct Pen {
    abilities: Abilities,
    at: Option<(u16, u16)>,
    style: Option<Style>,
    link: Option<Hyperlink>,
}

impl Pen {
    fn draw(&mut self, x: u16, y: u16, cell: &Cell, is_wide: bool, out: &mut String) {
        if self.at != Some((x, y)) {
            let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        if self.style != Some(cell.style) {
            cell.style.write(self.abilities.colours, out);
            self.style = Some(cell.style);
        }
        if self.link != cell.link {
            write_link(cell.link.as_ref(), out);
            self.link.clone_from(&cell.link);
        }
        let character = cell.character.filter(|char| !char.is_control()).unwrap_or(' ');
        let marks = written_marks(cell);
        if self.abilities.is_ascii {
            out.push(ascii(character));
            if is_wide {
                out.push(' ');
            }
        } else {
            out.push(character);
            out.extend(marks.iter().filter(|char| !char.is_control()));
        }
        // Terminals differ in the position of the cursor after combining marks, and at the end of a line.
        let width = if is_wide { 2 } else { 1 };
        self.at = marks.is_empty().then_some((x + width, y));
    }

    fn end(&self, out: &mut String) {
        if self.link.is_some() {
            write_link(None, out);
        }
        if self.style.is_some_and(|style| style != Style::default()) {
            out.push_str("\x1b[0m");
        }
    }
}

/// The marks of a cell that are written, without joiners at their end. The character after a joiner is in another cell, and
/// tmux 3.3a would draw that into the cell before, even if it is a border or part of the next picture.
pub(crate) fn written_marks(cell: &Cell) -> &[char] {
    let mut marks = cell.marks.as_deref().unwrap_or_default();
    while let [before @ .., JOINER] = marks {
        marks = before;
    }
    marks
}

/// Appends the sequence that begins or ends a link.
pub(crate) fn write_link(link: Option<&Hyperlink>, out: &mut String) {
    let plain = |text: &str| -> String { text.chars().filter(|char| !char.is_control()).collect() };
    // `is_control` includes the C1 controls, which end a sequence in some terminals.
    let _ = match link {
        Some(link) => write!(out, "\x1b]8;id={};{}\x1b\\", plain(link.id()), plain(link.uri())),
        None => write!(out, "\x1b]8;;\x1b\\"),
    };
}

fn ascii(character: char) -> char {
    match character {
        ' '..='~' => character,
        '─' | '–' | '—' => '-',
        '│' => '|',
        // A ring is recognizable without colours.
        '━' | '═' => '=',
        '┃' | '║' | '┏' | '┓' | '┗' | '┛' => '#',
        '┌' | '┐' | '└' | '┘' | '╭' | '╮' | '╯' | '╰' | '├' | '┤' | '┬' | '┴' | '┼' | '✓' => {
            '+'
        }
        '↑' | '▴' => '^',
        '↓' | '▾' => 'v',
        '→' | '❯' => '>',
        '←' => '<',
        '●' | '◐' | '•' => '*',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '✗' => 'x',
        '·' => '.',
        '○' => 'o',
        '⏲' | '…' => '~',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use alacritty_terminal::event::VoidListener;
    use alacritty_terminal::grid::Dimensions;
    use alacritty_terminal::index::{Column, Line};
    use alacritty_terminal::term::test::TermSize;
    use alacritty_terminal::term::{Config, Term};
    use alacritty_terminal::vte::ansi::{Processor, StdSyncHandler};
    use proptest::prelude::*;

    use super::*;
    use crate::style::Colour;

    const SIZE: (u16, u16) = (12, 4);

    /// A terminal that receives output like a client's.
    struct Outer(Term<VoidListener>, Processor<StdSyncHandler>);

    impl Outer {
        fn new() -> Self {
            let size = TermSize::new(usize::from(SIZE.0), usize::from(SIZE.1));
            Self(Term::new(Config::default(), &size, VoidListener), Processor::new())
        }

        fn text(&self) -> String {
            let grid = self.0.grid();
            let line = |line: usize| -> String {
                let row = &grid[Line(i32::try_from(line).unwrap())];
                let cells = (0..grid.columns()).map(|column| &row[Column(column)]);
                let is_second = |cell: &alacritty_terminal::term::cell::Cell| {
                    cell.flags.contains(alacritty_terminal::term::cell::Flags::WIDE_CHAR_SPACER)
                };
                cells
                    .filter(|cell| !is_second(cell))
                    .map(|cell| cell.c)
                    .collect::<String>()
                    .trim_end()
                    .to_owned()
            };
            (0..grid.screen_lines()).map(line).collect::<Vec<_>>().join("\n")
        }
    }

    fn screen() -> impl Strategy<Value = Screen> {
        let text = prop::collection::vec((0..SIZE.0, 0..SIZE.1, "[a-z 漢é●]{0,9}", 0..4u8), 0..12);
        text.prop_map(|texts| {
            let mut screen = Screen::new(SIZE.0, SIZE.1);
            for (x, y, text, colour) in texts {
                let style = Style::foreground(Colour::Indexed(colour));
                screen.put(x, y, &text, SIZE.0, if colour == 0 { Style::default() } else { style });
            }
            screen.mend_halves(screen.area());
            screen
        })
    }

    proptest! {
        #[test]
        fn a_terminal_shows_each_screen_of_a_row(screens in prop::collection::vec(screen(), 1..8)) {
            let mut outer = Outer::new();
            let abilities = Abilities { colours: ColourDepth::Rgb, is_ascii: false };
            let mut before: Option<&Screen> = None;
            for screen in &screens {
                let mut bytes = String::new();
                screen.changes(before, abilities, &mut bytes);
                let Outer(term, processor) = &mut outer;
                processor.advance(term, bytes.as_bytes());
                prop_assert_eq!(outer.text(), screen.text());
                before = Some(screen);
            }
        }
    }

    #[test]
    fn a_link_ends_no_sequence() {
        let mut screen = Screen::new(3, 1);
        let link = Hyperlink::new(Some("a\u{9c}b"), "http://x\u{9c}\u{9b}2J/\x07".to_owned());
        *screen.cell_mut(0, 0).unwrap() = Cell { link: Some(link), ..Cell::default() };
        let mut out = String::new();
        screen.changes(None, Abilities::default(), &mut out);
        assert!(out.contains("\x1b]8;id=ab;http://x2J/\x1b\\"), "{out:?}");
    }

    #[test]
    fn a_joiner_is_not_written_before_what_has_a_cell_of_its_own() {
        let mut screen = Screen::new(8, 1);
        screen.put(0, 0, "👩👧ae|", 8, Style::default());
        let mut set_marks =
            |x: u16, marks: &[char]| screen.cell_mut(x, 0).unwrap().marks = Some(marks.into());
        set_marks(0, &[JOINER]);
        set_marks(4, &['\u{301}', JOINER, JOINER]);
        set_marks(5, &['\u{301}']);
        let mut out = String::new();
        screen.changes(None, Abilities::default(), &mut out);
        assert!(out.contains("👩👧a\u{301}\x1b[1;6He\u{301}\x1b[1;7H|"), "{out:?}");
    }

    #[test]
    fn nothing_is_written_where_nothing_changes() {
        let mut screen = Screen::new(10, 2);
        screen.put(0, 0, "hello", 10, Style::default());
        let mut out = String::new();
        screen.changes(Some(&screen.clone()), Abilities::default(), &mut out);
        assert_eq!(out, "");
        let before = screen.clone();
        screen.put(4, 0, "!", 1, Style::default());
        screen.changes(Some(&before), Abilities::default(), &mut out);
        assert_eq!(out.replace('\x1b', "ESC"), "ESC[?2026hESC[?25lESC[1;5HESC[0m!ESC[?2026l");
    }
}
