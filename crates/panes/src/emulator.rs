//! The terminal emulator of a pane: turns a program's output into cells.

mod patches;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::grid::{Dimensions, Scroll};
use alacritty_terminal::index::{Boundary, Column, Direction, Line, Point};
use alacritty_terminal::selection::{Selection, SelectionType};
use alacritty_terminal::term::cell::{Cell as GridCell, Flags};
use alacritty_terminal::term::color::Colors;
use alacritty_terminal::term::search::RegexSearch;
use alacritty_terminal::term::{Config, Osc52, Term, TermDamage, TermMode};
use alacritty_terminal::vte::ansi::{
    Color, CursorShape, CursorStyle, Handler, KeyboardModes, KeyboardModesApplyBehavior, NamedColor,
    Processor, Rgb, StdSyncHandler,
};
use memchr::memmem::find;
use ringer_term::{
    EmulatedTerminal, ProgramStatus, Query, Scanner, TerminalEventKind, Terminator, query99_reply,
};

use self::patches::{PatchedTerm, StringLimit, VersionQueries};
use crate::screen::Cell;
use crate::style::{Colour, Style, Underline};

/// The end of a synchronized update.
const END_OF_UPDATE: &[u8] = b"\x1b[?2026l";
/// The longest link, in bytes. Longer ones become plain text.
const MAX_LINK: usize = 2083;

/// A result of a program's output, besides cells.
#[derive(Debug)]
pub(crate) enum EmulatorEvent {
    /// The answer to a query, for the program.
    Reply(Vec<u8>),
    /// A report to the terminal, such as a title or a notification.
    Event(Box<TerminalEventKind>),
    /// A text for the clipboard.
    Copy(String),
}

/// The keyboard modes that the program has set, and focus reports.
#[expect(clippy::struct_excessive_bools, reason = "modes of a terminal, each by itself")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InputModes {
    pub(crate) application_cursor: bool,
    pub(crate) application_keypad: bool,
    pub(crate) bracketed_paste: bool,
    pub(crate) focus: bool,
    /// The flags of kitty's keyboard protocol.
    pub(crate) kitty_flags: u8,
}

/// The mouse events that the program asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MouseMode {
    /// None. The wheel scrolls the pane.
    #[default]
    Off,
    /// The wheel sends cursor keys, to a program on the alternate screen that has not asked for the mouse.
    WheelAsKeys,
    Clicks,
    Drags,
    Motion,
}

/// The screen and the modes of a program's terminal.
pub(crate) struct Emulator {
    term: Term<Events>,
    config: Config,
    processor: Processor<StdSyncHandler>,
    limit: StringLimit,
    scanner: Scanner,
    version_queries: VersionQueries,
    events: Events,
    /// Something was selected when the pane was last drawn, or since.
    had_selection: bool,
    sync_deadline: Option<Instant>,
}

#[derive(Clone, Default)]
struct Events(Rc<RefCell<Vec<Event>>>);

impl EventListener for Events {
    fn send_event(&self, event: Event) {
        self.0.borrow_mut().push(event);
    }
}

/// The largest size in columns and lines, because each cell takes memory. Only a part of a larger terminal is used.
pub(crate) const MAX_SIZE: (u16, u16) = (2000, 1000);

/// A size in cells, which is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) lines: u16,
}

impl Size {
    /// Enlarges a size to the minimum. With less than two columns, the emulator cannot hold a wide character.
    pub(crate) fn at_least(columns: u16, lines: u16) -> Self {
        Self { columns: columns.max(2), lines: lines.max(1) }
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        usize::from(self.lines)
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.lines)
    }

    fn columns(&self) -> usize {
        usize::from(self.columns)
    }
}

impl Emulator {
    pub(crate) fn new(size: Size, history: usize) -> Self {
        let events = Events::default();
        let config = Config {
            scrolling_history: history,
            kitty_keyboard: true,
            osc52: Osc52::OnlyCopy,
            default_cursor_style: CursorStyle { shape: CursorShape::Block, blinking: false },
            ..Config::default()
        };
        Self {
            term: Term::new(config.clone(), &size, events.clone()),
            config,
            processor: Processor::new(),
            limit: StringLimit::default(),
            scanner: Scanner::new(),
            version_queries: VersionQueries::default(),
            events,
            had_selection: false,
            sync_deadline: None,
        }
    }

    /// Processes output of the program.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<EmulatorEvent> {
        let Self { term, processor, limit, scanner, version_queries, .. } = self;
        limit.feed(bytes, |piece| processor.advance(&mut PatchedTerm(term), piece));
        // The deadline counts from the first beginning: a program that begins its update again and again would never show it.
        let is_new = find(bytes, END_OF_UPDATE).is_some();
        let deadline = processor.sync_timeout().sync_timeout();
        self.sync_deadline = self.sync_deadline.filter(|_| !is_new && deadline.is_some()).or(deadline);
        let mut events = Vec::new();
        events.extend((0..version_queries.count(bytes)).map(|_| EmulatorEvent::Reply(version().into())));
        scanner.feed(bytes, |event| match &event.kind {
            TerminalEventKind::Query(query) if !matches!(query, Query::Alive { .. }) => {
                events.extend(answer(query).map(|text| EmulatorEvent::Reply(text.into())));
            }
            _ => events.push(EmulatorEvent::Event(Box::new(event.kind))),
        });
        self.take_events(&mut events);
        events
    }

    fn take_events(&mut self, events: &mut Vec<EmulatorEvent>) {
        // alacritty increases the scroll position even if a scroll region below the first line keeps no scrolled lines. Reading
        // lines that do not exist would panic.
        if self.scrolled() > self.history() {
            self.term.scroll_display(Scroll::Top);
        }
        let size = self.size();
        for event in self.events.0.borrow_mut().drain(..) {
            match event {
                Event::PtyWrite(text) => events.push(EmulatorEvent::Reply(text.into_bytes())),
                Event::ClipboardStore(_, text) => events.push(EmulatorEvent::Copy(text)),
                Event::TextAreaSizeRequest(format) => {
                    let size = WindowSize {
                        num_lines: size.lines,
                        num_cols: size.columns,
                        cell_width: 8,
                        cell_height: 16,
                    };
                    events.push(EmulatorEvent::Reply(format(size).into_bytes()));
                }
                Event::ColorRequest(index, format) => {
                    let set = self.term.colors()[index.min(alacritty_terminal::term::color::COUNT - 1)];
                    events.push(EmulatorEvent::Reply(
                        format(set.unwrap_or_else(|| usual_colour(index))).into_bytes(),
                    ));
                }
                _ => {}
            }
        }
    }

    /// The deadline of an unfinished synchronized update.
    pub(crate) fn sync_deadline(&self) -> Option<Instant> {
        self.sync_deadline
    }

    /// Ends a synchronized update, and shows its output.
    pub(crate) fn end_sync(&mut self) -> Vec<EmulatorEvent> {
        self.processor.stop_sync(&mut PatchedTerm(&mut self.term));
        self.sync_deadline = None;
        let mut events = Vec::new();
        self.take_events(&mut events);
        events
    }

    pub(crate) fn size(&self) -> Size {
        let cells = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Size { columns: cells(self.term.columns()), lines: cells(self.term.screen_lines()) }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.term.resize(size);
    }

    pub(crate) fn input_modes(&self) -> InputModes {
        let mode = self.term.mode();
        let kitty = [
            (TermMode::DISAMBIGUATE_ESC_CODES, 1),
            (TermMode::REPORT_EVENT_TYPES, 2),
            (TermMode::REPORT_ALTERNATE_KEYS, 4),
            (TermMode::REPORT_ALL_KEYS_AS_ESC, 8),
            (TermMode::REPORT_ASSOCIATED_TEXT, 16),
        ];
        InputModes {
            application_cursor: mode.contains(TermMode::APP_CURSOR),
            application_keypad: mode.contains(TermMode::APP_KEYPAD),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            focus: mode.contains(TermMode::FOCUS_IN_OUT),
            kitty_flags: kitty.iter().filter(|(flag, _)| mode.contains(*flag)).map(|(_, bit)| bit).sum(),
        }
    }

    /// Enables or disables kitty's keyboard protocol. A program that already uses it keeps it.
    pub(crate) fn set_kitty_keyboard(&mut self, is_there: bool) {
        if self.config.kitty_keyboard != is_there && self.input_modes().kitty_flags == 0 {
            self.config.kitty_keyboard = is_there;
            self.term.set_options(self.config.clone());
        }
    }

    pub(crate) fn mouse_mode(&self) -> MouseMode {
        let mode = self.term.mode();
        if mode.contains(TermMode::MOUSE_MOTION) {
            MouseMode::Motion
        } else if mode.contains(TermMode::MOUSE_DRAG) {
            MouseMode::Drags
        } else if mode.contains(TermMode::MOUSE_REPORT_CLICK) {
            MouseMode::Clicks
        } else if mode.contains(TermMode::ALT_SCREEN | TermMode::ALTERNATE_SCROLL) {
            MouseMode::WheelAsKeys
        } else {
            MouseMode::Off
        }
    }

    /// Returns true if the program expects the SGR encoding of the mouse.
    pub(crate) fn has_sgr_mouse(&self) -> bool {
        self.term.mode().contains(TermMode::SGR_MOUSE)
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    /// The column, line and shape of the cursor that the program has set, and whether it is visible.
    pub(crate) fn program_cursor(&self) -> (u16, u16, u8, bool) {
        let point = self.term.grid().cursor.point;
        let line = u16::try_from(point.line.0).unwrap_or(0);
        let style = self.term.cursor_style();
        let shape = shape_number(style.shape).unwrap_or(2) - u8::from(style.blinking);
        let is_shown = self.term.mode().contains(TermMode::SHOW_CURSOR);
        (u16::try_from(point.column.0).unwrap_or(0), line, shape, is_shown)
    }

    /// Returns true if the line is full, so that the next character wraps.
    pub(crate) fn is_at_line_end(&self) -> bool {
        self.term.grid().cursor.input_needs_wrap
    }

    /// The column, line and shape of the cursor, unless it is hidden or scrolled away.
    pub(crate) fn cursor(&self) -> Option<(u16, u16, u8)> {
        // `renderable_content` is not used: it subtracts 1 from column 0 if there is only the second half of a wide character.
        let style = self.term.cursor_style();
        let is_shown = self.term.mode().contains(TermMode::SHOW_CURSOR);
        let shape = shape_number(style.shape).filter(|_| is_shown)?;
        let (point, blinks) = (self.term.grid().cursor.point, style.blinking);
        let line = point.line.0 + i32::try_from(self.term.grid().display_offset()).ok()?;
        let line = u16::try_from(line).ok().filter(|line| *line < self.size().lines)?;
        // On the second half of a wide character, the cursor is shown at the first half. A lone half is a cell by itself.
        let row = &self.term.grid()[point.line];
        let is_wide = |column: usize| row[Column(column)].flags.contains(Flags::WIDE_CHAR);
        let is_half = row[point.column].flags.contains(Flags::WIDE_CHAR_SPACER);
        let first_half = point.column.0.checked_sub(1).filter(|column| is_half && is_wide(*column));
        let column = u16::try_from(first_half.unwrap_or(point.column.0)).ok()?;
        Some((column, line, shape - u8::from(blinks)))
    }

    /// Calls `draw` for each cell of visible lines, with its column and line.
    pub(crate) fn each_cell(
        &self,
        lines: impl IntoIterator<Item = u16>,
        mut draw: impl FnMut(u16, u16, Cell),
    ) {
        let grid = self.term.grid();
        let offset = i32::try_from(grid.display_offset()).unwrap_or(0);
        let selected = self.term.selection.as_ref().and_then(|selection| selection.to_range(&self.term));
        let size = self.size();
        for y in lines.into_iter().filter(|y| *y < size.lines) {
            let line = Line(i32::from(y) - offset);
            let row = &grid[line];
            for x in 0..size.columns {
                let column = Column(usize::from(x));
                let mut cell = screen_cell(&row[column], self.term.colors());
                if selected.is_some_and(|range| range.contains(Point::new(line, column))) {
                    cell.style = cell.style.reversed();
                }
                draw(x, y, cell);
            }
        }
    }

    /// The lines of the screen that may have changed since the last call.
    pub(crate) fn take_changed_lines(&mut self) -> Vec<u16> {
        let lines = self.size().lines;
        // The emulator does not mark lines as damaged when their selection is cleared.
        let has_selection = self.term.selection.is_some();
        let is_stale = std::mem::replace(&mut self.had_selection, has_selection) || has_selection;
        let changed = match self.term.damage() {
            TermDamage::Partial(changed) if !is_stale => {
                changed.filter_map(|bounds| u16::try_from(bounds.line).ok()).collect()
            }
            _ => (0..lines).collect(),
        };
        self.term.reset_damage();
        changed
    }

    /// The number of lines by which the view is scrolled back.
    pub(crate) fn scrolled(&self) -> usize {
        self.term.grid().display_offset()
    }

    /// Returns true if the view is not scrolled back and nothing is selected.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.scrolled() == 0 && self.term.selection.is_none()
    }

    /// Scrolls by a number of lines; positive numbers scroll back.
    pub(crate) fn scroll(&mut self, lines: i32) {
        self.term.scroll_display(Scroll::Delta(lines));
    }

    pub(crate) fn scroll_to_top(&mut self) {
        self.term.scroll_display(Scroll::Top);
    }

    pub(crate) fn scroll_to_bottom(&mut self) {
        self.term.scroll_display(Scroll::Bottom);
    }

    /// The point of a visible cell. Cells beyond the end are limited to the last one, because a window may be larger than the
    /// terminal.
    fn point(&self, x: u16, y: u16) -> Point {
        let offset = i32::try_from(self.scrolled()).unwrap_or(0);
        let size = self.size();
        let (x, y) = (x.min(size.columns - 1), y.min(size.lines - 1));
        Point::new(Line(i32::from(y) - offset), Column(usize::from(x)))
    }

    /// Starts a selection at a cell: of characters, words or lines for 1 to 3 clicks.
    pub(crate) fn select(&mut self, x: u16, y: u16, clicks: u8) {
        let kind = match clicks {
            0 | 1 => SelectionType::Simple,
            2 => SelectionType::Semantic,
            _ => SelectionType::Lines,
        };
        self.term.selection = Some(Selection::new(kind, self.point(x, y), Direction::Left));
        self.had_selection = true;
    }

    /// Extends the selection to a cell.
    pub(crate) fn select_to(&mut self, x: u16, y: u16) {
        let point = self.point(x, y);
        if let Some(selection) = &mut self.term.selection {
            selection.update(point, Direction::Right);
        }
    }

    /// Extends the selection to a cell, unless it is the one where it began.
    pub(crate) fn select_to_if_wider(&mut self, x: u16, y: u16) {
        if self.term.selection.as_ref().is_some_and(|selection| !selection.is_empty()) {
            self.select_to(x, y);
        }
    }

    pub(crate) fn clear_selection(&mut self) {
        self.term.selection = None;
    }

    /// The selected text, unless it is empty.
    pub(crate) fn selected_text(&self) -> Option<String> {
        self.term.selection_to_string().filter(|text| !text.is_empty())
    }

    /// Returns the cells of a line. Lines of the scrollback are negative.
    pub(crate) fn row(&self, line: i32) -> impl Iterator<Item = Cell> {
        let row = &self.term.grid()[Line(line)];
        (0..self.term.columns()).map(move |column| screen_cell(&row[Column(column)], self.term.colors()))
    }

    /// Returns true if a line continues in the next one.
    pub(crate) fn is_wrapped(&self, line: i32) -> bool {
        self.term.grid()[Line(line)][self.term.last_column()].flags.contains(Flags::WRAPLINE)
    }

    /// The number of lines in the scrollback.
    pub(crate) fn history(&self) -> usize {
        self.term.history_size()
    }
}

/// The DECSCUSR number of a cursor that does not blink.
fn shape_number(shape: CursorShape) -> Option<u8> {
    match shape {
        CursorShape::Hidden => None,
        CursorShape::Block | CursorShape::HollowBlock => Some(2),
        CursorShape::Underline => Some(4),
        CursorShape::Beam => Some(6),
    }
}

impl Emulator {
    /// Calls `read` with the main screen active.
    pub(crate) fn with_main_screen<R>(&mut self, read: impl FnOnce(&Self) -> R) -> R {
        if !self.is_alternate() {
            return read(self);
        }
        // The emulator only gives access to the active screen, and clears the alternate screen when it switches to it.
        let (other, selection) = (self.term.grid().clone(), self.term.selection.take());
        let keyboard = KeyboardModes::from_bits_truncate(self.input_modes().kitty_flags);
        self.term.swap_alt();
        let result = read(self);
        self.term.swap_alt();
        *self.term.grid_mut() = other;
        self.term.selection = selection;
        Handler::set_keyboard_mode(&mut self.term, keyboard, KeyboardModesApplyBehavior::Replace);
        result
    }
}

/// The answer to a query that the emulator does not know. The pane answers the query for open notifications.
fn answer(query: &Query) -> Option<String> {
    let text = match query {
        Query::Osc99 { id } => query99_reply(id.as_ref()?, true, Terminator::St),
        Query::Osc7501 => ProgramStatus::query(Terminator::St),
        _ => return None,
    };
    Some(text)
}

/// The answer to XTVERSION, which matches the environment of the program.
fn version() -> String {
    EmulatedTerminal::default().version_reply()
}

/// The answer for a colour that only the outer terminal knows: light text on black, the 8 basic colours, and grey for all others.
fn usual_colour(index: usize) -> Rgb {
    let basic = [0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5];
    let number: u32 = match index {
        0..8 => basic[index],
        256 | 258 => 0xe5_e5e5,
        257 => 0,
        _ => 0x80_8080,
    };
    let [_, r, g, b] = number.to_be_bytes();
    Rgb { r, g, b }
}

impl Emulator {
    /// Selects the next match of a text above or below the selection, and scrolls to it. Returns false if there is none.
    pub(crate) fn find(&mut self, text: &str, is_upwards: bool) -> bool {
        let escaped: String = text.chars().flat_map(escape).collect();
        let Ok(mut search) = RegexSearch::new(&escaped) else { return false };
        let selected = self.term.selection.as_ref().and_then(|selection| selection.to_range(&self.term));
        let (direction, side) =
            if is_upwards { (Direction::Left, Direction::Left) } else { (Direction::Right, Direction::Left) };
        let last = Point::new(self.term.bottommost_line(), self.term.last_column());
        let origin = match (selected, is_upwards) {
            (Some(range), true) => range.start.sub(&self.term, Boundary::None, 1),
            (Some(range), false) => range.end.add(&self.term, Boundary::None, 1),
            (None, _) => last,
        };
        let Some(found) = self.term.search_next(&mut search, origin, direction, side, None) else {
            return false;
        };
        let mut selection = Selection::new(SelectionType::Simple, *found.start(), Direction::Left);
        selection.update(*found.end(), Direction::Right);
        self.term.selection = Some(selection);
        self.had_selection = true;
        self.term.scroll_to_point(*found.start());
        true
    }
}

/// Escapes a character for a regular expression. Only special characters are escaped: `\<` and `\>` would match the ends of a
/// word, and characters beyond ASCII cannot be escaped.
fn escape(character: char) -> Vec<char> {
    let has_meaning = r"\.+*?()|[]{}^$#&-~".contains(character);
    if has_meaning { vec!['\\', character] } else { vec![character] }
}

/// Converts a cell of the emulator.
fn screen_cell(cell: &GridCell, colours: &Colors) -> Cell {
    let flags = cell.flags;
    let is_second = flags.intersects(Flags::WIDE_CHAR_SPACER);
    let underline = match flags.intersection(Flags::ALL_UNDERLINES) {
        Flags::UNDERLINE => Underline::Single,
        Flags::DOUBLE_UNDERLINE => Underline::Double,
        Flags::UNDERCURL => Underline::Curly,
        Flags::DOTTED_UNDERLINE => Underline::Dotted,
        Flags::DASHED_UNDERLINE => Underline::Dashed,
        _ => Underline::None,
    };
    let (foreground, is_dim) = colour(cell.fg, colours);
    let style = Style {
        foreground,
        background: colour(cell.bg, colours).0,
        underline_colour: cell.underline_color().map_or(Colour::Default, |own| colour(own, colours).0),
        underline,
        bold: flags.contains(Flags::BOLD),
        dim: flags.contains(Flags::DIM) || is_dim,
        italic: flags.contains(Flags::ITALIC),
        reverse: flags.contains(Flags::INVERSE),
        hidden: flags.contains(Flags::HIDDEN),
        strike: flags.contains(Flags::STRIKEOUT),
    };
    Cell {
        // The emulator stores a tab in its first cell.
        character: (!is_second).then_some(if cell.c < ' ' { ' ' } else { cell.c }),
        marks: cell.zerowidth().filter(|marks| !marks.is_empty()).map(Into::into),
        style,
        link: cell.hyperlink().filter(|link| link.uri().len() <= MAX_LINK && link.id().len() <= MAX_LINK),
    }
}

/// Converts a colour. Returns true for a dim colour.
fn colour(colour: Color, colours: &Colors) -> (Colour, bool) {
    let set = |index: usize| colours[index].map(|Rgb { r, g, b }| Colour::Rgb(r, g, b));
    match colour {
        Color::Spec(Rgb { r, g, b }) => (Colour::Rgb(r, g, b), false),
        Color::Indexed(index) => (set(usize::from(index)).unwrap_or(Colour::Indexed(index)), false),
        Color::Named(named) => {
            let number = named as usize;
            let dim = NamedColor::DimBlack as usize..=NamedColor::DimWhite as usize;
            let is_dim = dim.contains(&number) || named == NamedColor::DimForeground;
            let index = if dim.contains(&number) { number - NamedColor::DimBlack as usize } else { number };
            let plain = u8::try_from(index).map_or(Colour::Default, Colour::Indexed);
            (set(number).unwrap_or(plain), is_dim)
        }
    }
}
