//! The page of all keys.

use unicode_width::UnicodeWidthStr;

use super::words::cut;
use crate::actions::{ACTIONS, PaneKeys};
use crate::area::Area;
use crate::screen::Screen;
use crate::style::Style;

/// The lines of the page that have no key: the title, and empty ones around it and at the end.
const OTHER_LINES: u16 = 4;
/// Empty columns: at each side, between columns of keys, and between a key and what it does.
const SIDE: u16 = 2;
const BETWEEN: u16 = 3;
const AFTER_KEY: u16 = 2;

/// Keys and what they do, below each other.
struct KeyColumn<'a> {
    lines: &'a [(String, &'static str)],
    keys_width: u16,
    width: u16,
}

impl<'a> KeyColumn<'a> {
    fn new(lines: &'a [(String, &'static str)]) -> Self {
        let widest =
            |widths: &mut dyn Iterator<Item = usize>| u16::try_from(widths.max().unwrap_or(0)).unwrap_or(0);
        let keys_width = widest(&mut lines.iter().map(|line| line.0.width()));
        let words_width = widest(&mut lines.iter().map(|line| line.1.width()));
        Self { lines, keys_width, width: keys_width + AFTER_KEY + words_width }
    }
}

pub(super) fn draw_help(keys: &PaneKeys, screen: &mut Screen) {
    let lines: Vec<(String, &str)> =
        ACTIONS.iter().map(|words| (keys.keys_of(words.action), words.help)).collect();
    let room = screen.area();
    let most = usize::from(room.height.saturating_sub(OTHER_LINES).max(1));
    // As many columns as are needed, or else as have room.
    let count = lines.len().div_ceil(most);
    let divided = |count: usize| -> Vec<KeyColumn<'_>> {
        lines.chunks(lines.len().div_ceil(count.max(1))).map(KeyColumn::new).collect()
    };
    let width_of = |columns: &[KeyColumn<'_>]| {
        let all: u16 = columns.iter().map(|column| column.width + BETWEEN).sum();
        all.saturating_sub(BETWEEN) + 2 * SIDE
    };
    let fits = |columns: &Vec<KeyColumn<'_>>| width_of(columns) <= room.width;
    let columns = (1..=count).rev().map(divided).find(fits).unwrap_or_else(|| divided(1));
    let tallest = columns.iter().map(|column| column.lines.len()).max().unwrap_or(0).min(most);
    let width = width_of(&columns).min(room.width);
    let height = (u16::try_from(tallest).unwrap_or(0) + OTHER_LINES).min(room.height);
    let area = Area::new((room.width - width) / 2, (room.height - height) / 2, width, height);
    let style = Style::default().reversed();
    for y in area.y..area.bottom() {
        screen.put(area.x, y, &" ".repeat(usize::from(width)), width, style);
    }
    let title = format!("After {}:", keys.prefix.to_string().replace("ctrl-", "^"));
    let inside = width.saturating_sub(2 * SIDE);
    screen.put(area.x + SIDE, area.y + 1, &cut(&title, inside), inside, style.bold());
    let mut x = area.x + SIDE;
    for column in columns {
        for (y, (key, words)) in (area.y + 2..area.bottom().saturating_sub(1)).zip(column.lines) {
            let left = |x: u16| area.right().saturating_sub(x + SIDE);
            screen.put(x, y, &cut(key, left(x)), left(x), style.bold());
            let x = x + column.keys_width + AFTER_KEY;
            screen.put(x, y, &cut(words, left(x)), left(x), style);
        }
        x += column.width + BETWEEN;
    }
}
