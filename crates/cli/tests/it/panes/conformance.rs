//! What a pane shows is what a terminal shows.

use std::fs;

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::Color;
use test_support::until;

use super::session::Session;
use super::window::{Emulator, Window};

/// The size of the pane in a window of 28 lines and 98 columns.
pub(super) const LINES: u16 = 24;
pub(super) const COLUMNS: u16 = 80;
/// Where it begins there, behind the sidebar and the border.
pub(super) const FIRST: (u16, u16) = (1, 17);

/// Where a line goes on is no matter of what is seen.
const UNSEEN: Flags = Flags::WRAPLINE.union(Flags::LEADING_WIDE_CHAR_SPACER);

/// What is seen of a cell.
fn seen(cell: &Cell) -> (String, Color, Color, Flags, Option<String>) {
    let colour = |colour| match colour {
        // There are two ways to say the first sixteen.
        Color::Named(named) => u8::try_from(named as usize).map_or(Color::Named(named), Color::Indexed),
        other => other,
    };
    // A tab is kept as such in its first cell.
    let first = if cell.c < ' ' { ' ' } else { cell.c };
    let text = std::iter::once(first).chain(cell.zerowidth().into_iter().flatten().copied()).collect();
    let link = cell.hyperlink().map(|link| link.uri().to_owned());
    (text, colour(cell.fg), colour(cell.bg), cell.flags.difference(UNSEEN), link)
}

/// The first cell that differs, in words.
fn difference(window: &Window, expected: &Emulator) -> Option<String> {
    window.look(|shown| {
        let cells = (0..LINES).flat_map(|line| (0..COLUMNS).map(move |column| (line, column)));
        cells.into_iter().find_map(|(line, column)| {
            let own = seen(shown.cell(FIRST.0 + line, FIRST.1 + column));
            let expected = seen(expected.cell(line, column));
            (own != expected).then(|| format!("line {line}, column {column}: {own:?}, but {expected:?}"))
        })
    })
}

/// Shows these bytes in a pane and in an emulator alone.
#[track_caller]
fn check_same(files: &[(String, Vec<u8>)]) {
    let session = Session::new();
    let mut window = session.window(&["attach"], LINES + 4, COLUMNS + 18);
    window.until("$ ");
    for (number, (name, bytes)) in files.iter().enumerate() {
        fs::write(session.file("bytes"), bytes).expect("a file");
        window.command(&format!(
            "stty raw -echo; printf '\\033c'; cat bytes; echo > shown-{number}; read -r line; stty sane; printf '\\033c'; echo next-$((1000+{number}))"
        ));
        let mut expected = Emulator::new(LINES, COLUMNS);
        expected.feed(bytes);
        session.line_count(&format!("shown-{number}"), 1);
        let mut last = None;
        until(&format!("{name} is shown as by a terminal alone"), || {
            last = difference(&window, &expected);
            if let Some(difference) = &last {
                println!("{name}: {difference}");
            }
            last.is_none()
        });
        window.keys("\n");
        window.until(&format!("next-{}", 1000 + number));
    }
}

#[test]
fn recordings_of_real_clients_look_as_in_a_terminal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../term/tests/fixtures/captures");
    let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files: Vec<(String, Vec<u8>)> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "bin"))
        .map(|path| (path.display().to_string(), fs::read(path).expect("a file")))
        .collect();
    assert!(files.len() >= 10, "{folder}");
    check_same(&files);
}

#[test]
fn colours_styles_links_and_wide_characters_look_as_in_a_terminal() {
    let styles: String = (0..10).map(|style| format!("\x1b[{style}mstyle{style}\x1b[0m ")).collect();
    let colours: String =
        (0..256).map(|colour| format!("\x1b[38;5;{colour}m#\x1b[48;5;{}m-\x1b[0m", 255 - colour)).collect();
    let text = format!(
        "{styles}\r\n{colours}\r\n\x1b[38;2;1;2;3;48;2;250;128;7mtrue colour\x1b[0m\r\n\
         \x1b[4:3;58;2;255;0;0mcurly\x1b[0m \x1b[21mdouble\x1b[0m\r\n\
         \x1b]8;id=a;https://example.org/a\x07a link\x1b]8;;\x07 and text\r\n\
         漢字 wide 😀 e\u{301} é ﬁ \t tab\r\n{}漢\r\n\x1b[7minverse\x1b[0m\x1b[5;70Hplaced",
        "x".repeat(usize::from(COLUMNS) - 1)
    );
    check_same(&[("styles".to_owned(), text.into_bytes())]);
}
