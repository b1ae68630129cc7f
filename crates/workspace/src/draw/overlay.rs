//! The page of all keys.

use unicode_width::UnicodeWidthStr;

use crate::actions::{ACTIONS, PaneKeys};
use crate::area::Area;
use crate::screen::Screen;
use crate::style::Style;

pub(super) fn draw_help(keys: &PaneKeys, screen: &mut Screen) {
    let lines: Vec<(String, &str)> =
        ACTIONS.iter().map(|words| (keys.keys_of(words.action), words.help)).collect();
    let column = |of: &dyn Fn(&(String, &str)) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let first = u16::try_from(column(&|line| line.0.width())).unwrap_or(0);
    let second = u16::try_from(column(&|line| line.1.width())).unwrap_or(0);
    let room = screen.area();
    let width = (first + second + 6).min(room.width);
    let height = u16::try_from(lines.len() + 4).unwrap_or(u16::MAX).min(room.height);
    let area = Area::new((room.width - width) / 2, (room.height - height) / 2, width, height);
    for y in area.y..area.bottom() {
        screen.put(area.x, y, &" ".repeat(usize::from(width)), width, Style::default().reversed());
    }
    let style = Style::default().reversed();
    let title = format!("After {}:", keys.prefix.to_string().replace("ctrl-", "^"));
    screen.put(area.x + 2, area.y + 1, &title, width.saturating_sub(4), style.bold());
    for (y, (key, help)) in (area.y + 2..area.bottom().saturating_sub(1)).zip(&lines) {
        screen.put(area.x + 2, y, key, first, style.bold());
        screen.put(area.x + first + 4, y, help, width.saturating_sub(first + 5), style);
    }
}
