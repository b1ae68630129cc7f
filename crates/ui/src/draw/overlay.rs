//! What is shown on top of the list: all keys, the trail of a notification, a menu.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ringer_term::sanitise_line;

use super::paint::{centred, draw_box, put};
use crate::columns::{cut_end, text_lines, text_room, width};
use crate::inbox::Inbox;
use crate::keys::ACTIONS;
use crate::menu::Menu;
use crate::pager::{Pager, shown_lines};
use crate::theme::{Role, Theme};

pub(super) fn draw_help(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
    let keys = ACTIONS.iter().map(|words| (inbox.keys().keys_of(words.action), words.help));
    let lines: Vec<(String, &str)> = keys.collect();
    // In two columns, where the screen is low.
    let fits = usize::from(area.height).saturating_sub(4).max(1);
    let per_column = lines.len().div_ceil(lines.len().div_ceil(fits).max(1));
    let widths = |part: &[(String, &str)]| {
        let keys = part.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0) + 2;
        let help = part.iter().map(|(_, help)| width(help)).max().unwrap_or(0) + 3;
        (keys, help)
    };
    let columns: Vec<(usize, usize)> = lines.chunks(per_column).map(widths).collect();
    let takes: usize = columns.iter().map(|(keys, help)| keys + help).sum();
    let inner = draw_box(buffer, centred(area, takes + 4, per_column + 2), "Keys", theme);
    let mut x = inner.x;
    for (part, (keys_width, help_width)) in lines.chunks(per_column).zip(columns) {
        for ((keys, help), y) in part.iter().zip(inner.y..inner.bottom()) {
            let room = usize::from(inner.right().saturating_sub(x));
            put(buffer, x, y, cut_end(keys, room), room, theme.style(Role::Key));
            let room = room.saturating_sub(keys_width);
            let x = x.saturating_add(u16::try_from(keys_width).unwrap_or(u16::MAX));
            put(buffer, x, y, cut_end(help, room), room, Style::new());
        }
        x = x.saturating_add(u16::try_from(keys_width + help_width).unwrap_or(u16::MAX));
    }
}

pub(super) fn draw_text(buffer: &mut Buffer, area: Rect, text: &Pager, theme: Theme) {
    let room = text_room(area.width);
    let wrapped = text_lines(text.lines(), area.width);
    let height = wrapped.len().min(shown_lines(area.height)) + 2;
    let inner = draw_box(buffer, centred(area, room + 4, height), text.title(), theme);
    let shown = usize::from(inner.height);
    let first = text.scroll().min(wrapped.len().saturating_sub(shown));
    for (y, line) in (inner.y..inner.bottom()).zip(wrapped.iter().skip(first)) {
        put(buffer, inner.x, y, line, room, Style::new());
    }
}

pub(super) fn draw_menu(buffer: &mut Buffer, area: Rect, menu: &Menu, theme: Theme) {
    let lines = menu.lines();
    let title = sanitise_line(menu.title());
    let widest = lines.iter().map(|line| width(line)).max().unwrap_or(0).max(width(&title) + 4);
    let inner = draw_box(buffer, centred(area, widest + 4, lines.len() + 2), &title, theme);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        put(buffer, inner.x, y, line, usize::from(inner.width), Style::new());
    }
}
