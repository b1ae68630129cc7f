//! A screen as the bytes that draw it again: what the next server shows if this one is killed.

use std::fmt::Write;

use memchr::memmem::find;

use crate::emulator::{Emulator, MAX_SIZE, MouseMode, Size};
use crate::screen::{Cell, write_link};
use crate::style::{ColourDepth, Style};

/// Lines of what was scrolled away that come back.
const MAX_HISTORY: usize = 1000;

/// Sets the size of a terminal, where that is possible. A pane leaves it out.
const SIZE: &str = "\x1b[8;";
/// Shows the other screen. Nothing else that is saved has it.
const ALTERNATE: &str = "\x1b[?1049h";

/// Remembers the main screen while a program shows its other one.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    main: String,
}

impl Snapshots {
    /// The bytes that make an empty terminal of the same size show what this one shows. They begin with that size.
    pub(crate) fn take(&mut self, emulator: &Emulator) -> String {
        let Size { columns, lines } = emulator.size();
        let mut out = format!("{SIZE}{lines};{columns}t");
        if emulator.is_alternate() {
            out.push_str(&self.main);
            out.push_str(ALTERNATE);
            out.push_str("\x1b[H");
            write_lines(emulator, 0, &mut out);
        } else {
            let history = i32::try_from(emulator.history().min(MAX_HISTORY)).unwrap_or(0);
            self.main.clear();
            write_lines(emulator, -history, &mut self.main);
            out.push_str(&self.main);
        }
        write_state(emulator, &mut out);
        out
    }

    /// Goes on with what another server saved, which this terminal shows.
    pub(crate) fn take_over(&mut self, saved: &[u8], emulator: &Emulator) {
        let screen = split_size(saved).map_or(saved, |(_, screen)| screen);
        match find(screen, ALTERNATE.as_bytes()) {
            Some(at) => self.main = String::from_utf8_lossy(&screen[..at]).into_owned(),
            None => drop(self.take(emulator)),
        }
    }
}

/// The size of the terminal that a screen was saved of. Older versions did not save it, and a damaged file may say anything.
pub(crate) fn saved_size(saved: &[u8]) -> Option<Size> {
    let (columns, lines) = MAX_SIZE;
    split_size(saved).map(|(size, _)| size).filter(|size| size.columns <= columns && size.lines <= lines)
}

/// The size at the beginning of what was saved, and the rest.
fn split_size(saved: &[u8]) -> Option<(Size, &[u8])> {
    let rest = saved.strip_prefix(SIZE.as_bytes())?;
    let (size, screen) = rest.split_at_checked(rest.iter().position(|byte| *byte == b't')?)?;
    let (lines, columns) = str::from_utf8(size).ok()?.split_once(';')?;
    Some((Size::at_least(columns.parse().ok()?, lines.parse().ok()?), &screen[1..]))
}

fn write_lines(emulator: &Emulator, first: i32, out: &mut String) {
    let last = i32::from(emulator.size().lines) - 1;
    let (mut style, mut link) = (Style::default(), None);
    let mut is_continued = false;
    for line in first..=last {
        let cells: Vec<Cell> = emulator.row(line).collect();
        let blank = Cell::default();
        let is_wrapped = line < last && emulator.is_wrapped(line);
        // A line that goes on is written to its end, so that the next one follows it.
        let length = if is_wrapped {
            cells.len()
        } else {
            // Only a character makes the terminal go on in the next line.
            let end = cells.iter().rposition(|cell| *cell != blank).map_or(0, |at| at + 1);
            end.max(usize::from(is_continued))
        };
        is_continued = is_wrapped;
        for cell in cells.iter().take(length) {
            let Some(character) = cell.character else { continue };
            if cell.style != style {
                cell.style.write(ColourDepth::Rgb, out);
                style = cell.style;
            }
            if cell.link != link {
                write_link(cell.link.as_ref(), out);
                link.clone_from(&cell.link);
            }
            out.push(character);
            out.extend(cell.marks.iter().flatten());
        }
        if style != Style::default() {
            out.push_str("\x1b[0m");
            style = Style::default();
        }
        if link.take().is_some() {
            write_link(None, out);
        }
        if line < last && !is_wrapped {
            out.push_str("\r\n");
        }
    }
}

fn write_state(emulator: &Emulator, out: &mut String) {
    let modes = emulator.input_modes();
    let mouse = match emulator.mouse_mode() {
        MouseMode::Clicks => "\x1b[?1000h",
        MouseMode::Drags => "\x1b[?1002h",
        MouseMode::Motion => "\x1b[?1003h",
        MouseMode::Off | MouseMode::WheelAsKeys => "",
    };
    let switches = [
        (modes.application_cursor, "\x1b[?1h"),
        (modes.application_keypad, "\x1b="),
        (modes.bracketed_paste, "\x1b[?2004h"),
        (modes.focus, "\x1b[?1004h"),
        (emulator.has_sgr_mouse(), "\x1b[?1006h"),
        (true, mouse),
    ];
    switches.iter().filter(|(is_set, _)| *is_set).for_each(|(_, sequence)| out.push_str(sequence));
    if modes.kitty_flags > 0 {
        let _ = write!(out, "\x1b[>{}u", modes.kitty_flags);
    }
    let (x, y, shape, is_shown) = emulator.program_cursor();
    let _ = write!(out, "\x1b[{};{}H\x1b[{shape} q", y + 1, x + 1);
    if !is_shown {
        out.push_str("\x1b[?25l");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::screen::Screen;

    fn shown(emulator: &Emulator) -> (Screen, Option<(u16, u16, u8)>) {
        let Size { columns, lines } = emulator.size();
        let mut screen = Screen::new(columns, lines);
        emulator.each_cell(0..lines, |x, y, cell| *screen.cell_mut(x, y).unwrap() = cell);
        (screen, emulator.cursor())
    }

    #[test]
    fn a_line_that_goes_on_with_a_space_comes_back() {
        let size = Size::at_least(10, 4);
        let mut emulator = Emulator::new(size, 100);
        emulator.feed(b"0123456789 \r\nnext");
        let mut again = Emulator::new(size, 100);
        again.feed(Snapshots::default().take(&emulator).as_bytes());
        assert_eq!(shown(&again).0.text(), "0123456789\n\nnext\n");
    }

    /// The characters that are linked, each with its link, from the first line that was scrolled away.
    fn linked(emulator: &Emulator) -> Vec<(char, String, String)> {
        let first = -i32::try_from(emulator.history()).unwrap();
        let cells = (first..i32::from(emulator.size().lines)).flat_map(|line| emulator.row(line));
        let linked = cells.filter_map(|cell| Some((cell.character?, cell.link?)));
        linked.map(|(character, link)| (character, link.id().to_owned(), link.uri().to_owned())).collect()
    }

    #[test]
    fn links_come_back_over_lines_in_what_was_scrolled_away_and_behind_the_other_screen() {
        let size = Size::at_least(10, 3);
        let mut emulator = Emulator::new(size, 100);
        let mut snapshots = Snapshots::default();
        emulator.feed(b"\x1b]8;id=a;http://a/;x\x1b\\first 0123456789\x1b]8;;\x1b\\ plain\r\n\r\n\r\n");
        emulator.feed(b"\x1b]8;;http://b/\x1b\\b \x1b]8;;http://c/\x1b\\c\x1b]8;;\x1b\\\r\nend");
        let before = linked(&emulator);
        assert_eq!(before.len(), 19, "{before:?}");
        snapshots.take(&emulator);
        emulator.feed(b"\x1b[?1049h\x1b[H\x1b]8;;http://d/\x1b\\d\x1b]8;;\x1b\\");
        let taken = snapshots.take(&emulator);
        let mut again = Emulator::new(size, 100);
        again.feed(taken.as_bytes());
        assert_eq!(linked(&again), linked(&emulator));
        again.feed(b"\x1b[?1049l\r\nafter");
        assert_eq!(linked(&again), before, "what comes after it is no link");
    }

    #[test]
    fn the_main_screen_comes_back_after_several_servers() {
        let size = Size::at_least(20, 4);
        let mut emulator = Emulator::new(size, 100);
        let mut snapshots = Snapshots::default();
        emulator.feed(b"main");
        snapshots.take(&emulator);
        emulator.feed(b"\x1b[?1049hother");
        let mut saved = snapshots.take(&emulator);
        for _ in 0..3 {
            emulator = Emulator::new(size, 100);
            emulator.feed(saved.as_bytes());
            let mut snapshots = Snapshots::default();
            snapshots.take_over(saved.as_bytes(), &emulator);
            saved = snapshots.take(&emulator);
        }
        assert!(emulator.is_alternate() && shown(&emulator).0.text().contains("other"));
        emulator.feed(b"\x1b[?1049l");
        assert!(shown(&emulator).0.text().contains("main"));
        // One that showed its main screen when it was saved may show the other one before it is saved again.
        let mut snapshots = Snapshots::default();
        snapshots.take_over(b"main", &emulator);
        emulator.feed(b"\x1b[?1049h");
        assert!(snapshots.take(&emulator).starts_with("\x1b[8;4;20tmain"));
    }

    #[test]
    fn the_size_is_read_as_it_was_written_and_is_not_shown() {
        let mut emulator = Emulator::new(Size::at_least(20, 4), 100);
        emulator.feed(b"one\r\ntwo");
        let saved = Snapshots::default().take(&emulator);
        assert_eq!(saved_size(saved.as_bytes()), Some(Size::at_least(20, 4)));
        let mut again = Emulator::new(Size::at_least(20, 4), 100);
        again.feed(saved.as_bytes());
        assert_eq!(shown(&again).0.text(), "one\ntwo\n\n");
        for other in ["", "one", "\x1b[8;", "\x1b[8;4t", "\x1b[8;4;xt", "\x1b[8;60000;60000t", "\x1b[8;4;20"]
        {
            assert_eq!(saved_size(other.as_bytes()), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn a_screen_comes_back_as_it_was(
            bytes in "([a-z 漢é]{1,30}|\r\n|\x1b\\[3[0-7]m|\x1b\\[0m|\x1b\\[[1-9];[1-9]H|\x1b\\[\\?1049[hl]|\x1b\\[\\?1h|\x1b\\[4 q|\x1b]8;;(http://x/)?\x1b\\\\){0,40}",
        ) {
            let size = Size::at_least(20, 6);
            let mut emulator = Emulator::new(size, 100);
            let mut snapshots = Snapshots::default();
            // As the server does: now and then.
            for piece in bytes.as_bytes().chunks(60) {
                emulator.feed(piece);
                snapshots.take(&emulator);
            }
            let taken = snapshots.take(&emulator);
            let mut again = Emulator::new(size, 100);
            again.feed(taken.as_bytes());
            let (before, after) = (shown(&emulator), shown(&again));
            prop_assert_eq!(before.0.text(), after.0.text());
            prop_assert_eq!(before.1, after.1);
            prop_assert_eq!(linked(&emulator), linked(&again));
            prop_assert_eq!(emulator.input_modes(), again.input_modes());
            prop_assert_eq!(emulator.is_alternate(), again.is_alternate());
        }
    }
}
