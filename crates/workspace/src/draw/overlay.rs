//! The page of all keys.

use super::words::cut;
use crate::actions::PaneKeys;
use crate::area::Area;
use crate::help_page::{AFTER_KEY, BETWEEN, HelpPage, OTHER_LINES, SIDE};
use crate::screen::Screen;
use crate::style::Style;

/// What stands below the keys if there are more.
const MORE: &str = "any key: more   esc: back";

pub(super) fn draw_help(keys: &PaneKeys, first: usize, screen: &mut Screen) {
    let room = screen.area();
    let page = HelpPage::new(keys, room, first);
    let tallest = page.columns.iter().map(|column| column.lines.len()).max().unwrap_or(0);
    let width = page.width().min(room.width);
    let height = (u16::try_from(tallest).unwrap_or(0) + OTHER_LINES).min(room.height);
    let area = Area::new((room.width - width) / 2, (room.height - height) / 2, width, height);
    let style = Style::default().reversed();
    for y in area.y..area.bottom() {
        screen.put(area.x, y, &" ".repeat(usize::from(width)), width, style);
    }
    let title = format!("After {}:", keys.prefix.to_string().replace("ctrl-", "^"));
    let inside = width.saturating_sub(2 * SIDE);
    screen.put(area.x + SIDE, area.y + 1, &cut(&title, inside), inside, style.bold());
    if page.next.is_some() {
        let last = area.bottom().saturating_sub(1);
        screen.put(area.x + SIDE, last, &cut(MORE, inside), inside, style);
    }
    let mut x = area.x + SIDE;
    for column in &page.columns {
        for (y, (key, words)) in (area.y + 2..area.bottom().saturating_sub(1)).zip(&column.lines) {
            let left = |x: u16| area.right().saturating_sub(x + SIDE);
            screen.put(x, y, &cut(key, left(x)), left(x), style.bold());
            let x = x + column.keys_width + AFTER_KEY;
            screen.put(x, y, &cut(words, left(x)), left(x), style);
        }
        x += column.width + BETWEEN;
    }
}
