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
    // Beside each other where there are not enough lines.
    let most = usize::from(room.height.saturating_sub(4).max(1));
    let columns = lines.len().div_ceil(most).max(1);
    let rows = lines.len().div_ceil(columns);
    let one = first + second + 6;
    let width = one.saturating_mul(u16::try_from(columns).unwrap_or(1)).min(room.width);
    let height = u16::try_from(rows + 4).unwrap_or(u16::MAX).min(room.height);
    let area = Area::new((room.width - width) / 2, (room.height - height) / 2, width, height);
    for y in area.y..area.bottom() {
        screen.put(area.x, y, &" ".repeat(usize::from(width)), width, Style::default().reversed());
    }
    let style = Style::default().reversed();
    let title = format!("After {}:", keys.prefix.to_string().replace("ctrl-", "^"));
    screen.put(area.x + 2, area.y + 1, &title, width.saturating_sub(4), style.bold());
    for (x, column) in (area.x..area.right()).step_by(usize::from(one)).zip(lines.chunks(rows.max(1))) {
        for (y, (key, help)) in (area.y + 2..area.bottom().saturating_sub(1)).zip(column) {
            screen.put(x + 2, y, key, first.min(area.right().saturating_sub(x + 3)), style.bold());
            let text = x + first + 4;
            screen.put(text, y, help, second.min(area.right().saturating_sub(text + 1)), style);
        }
    }
}
