//! Encodes a screen as the bytes that draw it again, for the next server.

use std::fmt::Write;

use crate::emulator::{Emulator, MAX_SIZE, MouseMode, Size};
use crate::screen::{Cell, write_link};
use crate::style::{ColourDepth, Style};

/// The most lines of scrollback that are saved.
const MAX_HISTORY: usize = 1000;

/// XTWINOPS 8, which sets the size of a terminal in lines and columns. A pane ignores it.
const SIZE: &str = "\x1b[8;";
/// Switches to the alternate screen.
const ALTERNATE: &str = "\x1b[?1049h";

/// Returns the bytes that restore the screen in an empty terminal of the same size. They begin with that size.
pub(crate) fn snapshot(emulator: &mut Emulator) -> String {
    let Size { columns, lines } = emulator.size();
    let mut out = format!("{SIZE}{lines};{columns}t");
    emulator.with_main_screen(|main| {
        let history = i32::try_from(main.history().min(MAX_HISTORY)).unwrap_or(0);
        write_lines(main, -history, &mut out);
        write_own_state(main, &mut out);
    });
    if emulator.is_alternate() {
        out.push_str(ALTERNATE);
        out.push_str("\x1b[H");
        write_lines(emulator, 0, &mut out);
        write_own_state(emulator, &mut out);
    }
    write_state(emulator, &mut out);
    out
}

/// The size of the terminal whose screen was saved. Older versions did not save it, and a damaged file may contain any size.
pub(crate) fn saved_size(saved: &[u8]) -> Option<Size> {
    let rest = saved.strip_prefix(SIZE.as_bytes())?;
    let size = &rest[..rest.iter().position(|byte| *byte == b't')?];
    let (lines, columns) = str::from_utf8(size).ok()?.split_once(';')?;
    let size = Size::at_least(columns.parse().ok()?, lines.parse().ok()?);
    let (columns, lines) = MAX_SIZE;
    (size.columns <= columns && size.lines <= lines).then_some(size)
}

fn write_lines(emulator: &Emulator, first: i32, out: &mut String) {
    let last = i32::from(emulator.size().lines) - 1;
    let mut is_continued = false;
    for line in first..=last {
        let cells: Vec<Cell> = emulator.row(line).collect();
        let blank = Cell::default();
        let is_wrapped = line < last && emulator.is_wrapped(line);
        // A wrapped line is written to its end, so that the next one continues it.
        let length = if is_wrapped {
            cells.len()
        } else {
            // The terminal wraps only when a character follows.
            let end = cells.iter().rposition(|cell| *cell != blank).map_or(0, |at| at + 1);
            end.max(usize::from(is_continued))
        };
        is_continued = is_wrapped;
        write_cells(&cells[..length], out);
        if line < last && !is_wrapped {
            out.push_str("\r\n");
        }
    }
}

/// Writes adjacent cells, and resets the style and the link at the end.
fn write_cells(cells: &[Cell], out: &mut String) {
    let (mut style, mut link) = (Style::default(), None);
    for cell in cells {
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
    }
    if link.is_some() {
        write_link(None, out);
    }
}

/// Writes the state that the screens share.
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
    let (_, _, shape, is_shown) = emulator.program_cursor();
    let _ = write!(out, "\x1b[{shape} q");
    if !is_shown {
        out.push_str("\x1b[?25l");
    }
}

/// Writes the state that each screen has separately.
fn write_own_state(emulator: &Emulator, out: &mut String) {
    let flags = emulator.input_modes().kitty_flags;
    if flags > 0 {
        let _ = write!(out, "\x1b[>{flags}u");
    }
    let (x, y, ..) = emulator.program_cursor();
    let line = emulator.row(i32::from(y)).enumerate();
    // Only a character in the last column puts the cursor into the state of a pending wrap.
    let last = line.filter(|(_, cell)| cell.character.is_some() && emulator.is_at_line_end()).last();
    match last {
        Some((column, cell)) => {
            let _ = write!(out, "\x1b[{};{}H", y + 1, column + 1);
            write_cells(&[cell], out);
        }
        None => _ = write!(out, "\x1b[{};{}H", y + 1, x + 1),
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
        again.feed(snapshot(&mut emulator).as_bytes());
        assert_eq!(shown(&again).0.text(), "0123456789\n\nnext\n");
    }

    /// The linked characters, each with its link, from the first line of the scrollback.
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
        emulator.feed(b"\x1b]8;id=a;http://a/;x\x1b\\first 0123456789\x1b]8;;\x1b\\ plain\r\n\r\n\r\n");
        emulator.feed(b"\x1b]8;;http://b/\x1b\\b \x1b]8;;http://c/\x1b\\c\x1b]8;;\x1b\\\r\nend");
        let before = linked(&emulator);
        assert_eq!(before.len(), 19, "{before:?}");
        emulator.feed(b"\x1b[?1049h\x1b[H\x1b]8;;http://d/\x1b\\d\x1b]8;;\x1b\\");
        let taken = snapshot(&mut emulator);
        let mut again = Emulator::new(size, 100);
        again.feed(taken.as_bytes());
        assert_eq!(linked(&again), linked(&emulator));
        again.feed(b"\x1b[?1049l\r\nafter");
        assert_eq!(linked(&again), before, "what comes after it is no link");
    }

    #[test]
    fn the_main_screen_comes_back_after_several_servers_as_it_was_when_the_program_left_it() {
        let size = Size::at_least(20, 4);
        let mut emulator = Emulator::new(size, 100);
        emulator.feed(b"old\x1b[H\x1b[2J$ less file\r\n\x1b[>1u\x1b[?1049h\x1b[=5u\x1b[2;2Hother");
        for _ in 0..3 {
            let saved = snapshot(&mut emulator);
            emulator = Emulator::new(size, 100);
            emulator.feed(saved.as_bytes());
        }
        assert_eq!(shown(&emulator).0.text(), "\n other\n\n");
        assert_eq!((emulator.is_alternate(), emulator.input_modes().kitty_flags), (true, 5));
        emulator.feed(b"\x1b[?1049l$ ");
        assert_eq!(shown(&emulator).0.text(), "$ less file\n$\n\n");
        assert_eq!((emulator.is_alternate(), emulator.input_modes().kitty_flags), (false, 1));
    }

    #[test]
    fn the_size_is_read_as_it_was_written_and_is_not_shown() {
        let mut emulator = Emulator::new(Size::at_least(20, 4), 100);
        emulator.feed(b"one\r\ntwo");
        let saved = snapshot(&mut emulator);
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
            let mut untouched = Emulator::new(size, 100);
            // As the server does: now and then.
            for piece in bytes.as_bytes().chunks(60) {
                emulator.feed(piece);
                untouched.feed(piece);
                snapshot(&mut emulator);
            }
            let taken = snapshot(&mut emulator);
            let mut again = Emulator::new(size, 100);
            again.feed(taken.as_bytes());
            let (before, after) = (shown(&emulator), shown(&again));
            prop_assert_eq!(before.0.text(), after.0.text());
            prop_assert_eq!(before.1, after.1);
            prop_assert_eq!(linked(&emulator), linked(&again));
            prop_assert_eq!(emulator.input_modes(), again.input_modes());
            prop_assert_eq!(emulator.is_alternate(), again.is_alternate());
            for next in ["", "\x1b[?1049lback", "\x1b[?1049hthere"] {
                for terminal in [&mut emulator, &mut untouched, &mut again] {
                    terminal.feed(next.as_bytes());
                }
                for other in [&untouched, &again] {
                    prop_assert_eq!(shown(&emulator).0.text(), shown(other).0.text());
                    prop_assert_eq!(shown(&emulator).1, shown(other).1);
                    prop_assert_eq!(emulator.input_modes(), other.input_modes());
                }
            }
        }
    }
}
