//! Draws the views on top of the list: all keys, a text, a menu, the dialog in which a prompt is answered.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ringer_term::sanitise_line;

use super::paint::{centred, draw_box, put, put_line};
use crate::columns::{cut_end, cut_front, text_lines, text_room, width};
use crate::dialog::{Dialog, LineKind, Phase, choice_lines};
use crate::inbox::Inbox;
use crate::keys::ACTIONS;
use crate::theme::{Role, Theme};
use crate::view::{Menu, Pager, visible_lines};

pub(super) fn draw_help(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
    let keys = ACTIONS.iter().map(|words| (inbox.keys().keys_of(words.action), words.help));
    let lines: Vec<(String, &str)> = keys.collect();
    // In several columns on a low screen.
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
    let height = wrapped.len().min(visible_lines(area.height)) + 2;
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

pub(super) fn draw_dialog(
    buffer: &mut Buffer,
    area: Rect,
    inbox: &Inbox,
    dialog: &Dialog,
    theme: Theme,
) -> Option<(u16, u16)> {
    let columns = inbox.dialog_room().columns();
    let text = dialog.lines(columns);
    let below = choice_lines(dialog, columns);
    let height = inbox.dialog_room().lines(dialog);
    let shown = text.len().min(height);
    let inner = draw_box(buffer, centred(area, columns + 4, shown + below.len() + 4), &dialog.title(), theme);
    let room = usize::from(inner.width);
    if inbox.dialog_room().is_too_low(dialog) {
        put(
            buffer,
            inner.x,
            inner.y,
            "Too small to answer here: make it larger, or esc.",
            room,
            theme.style(Role::Error),
        );
        return None;
    }
    let mut line = inner.y + 1;
    for text in text.iter().skip(dialog.scroll()).take(shown) {
        put(buffer, inner.x, line, text, room, Style::new());
        line += 1;
    }
    if text.len() > shown {
        let last = dialog.scroll() + shown;
        let position = format!("{}–{last} of {} lines", dialog.scroll() + 1, text.len());
        let column = inner.width.saturating_sub(u16::try_from(width(&position)).unwrap_or(0));
        put(buffer, inner.x + column, line, position, room, theme.style(Role::Dim));
    }
    line += 1;
    let mut cursor = None;
    for below in below {
        let style = match below.kind {
            LineKind::Choice => Style::new().add_modifier(Modifier::BOLD),
            LineKind::NotReady | LineKind::Description | LineKind::Hint => theme.style(Role::Dim),
            LineKind::Good => theme.style(Role::Done),
            LineKind::Bad => theme.style(Role::Error),
            LineKind::Input => Style::new(),
        };
        if let (LineKind::Input, Phase::Typing(input)) = (below.kind, dialog.phase()) {
            let before = sanitise_line(input.before_cursor());
            // Cut at the front, so that the text next to the cursor stays visible.
            let before = cut_front(&before, inbox.dialog_room().input_columns());
            let after =
                cut_end(&sanitise_line(input.after_cursor()), room.saturating_sub(width(&before) + 3));
            let typed = Line::from(vec![Span::raw(format!("> {before}")), Span::raw(after)]);
            put_line(buffer, inner.x, line, &typed, inner.width);
            let column = u16::try_from(width(&before) + 2).unwrap_or(0);
            cursor = Some((inner.x + column, line));
        } else {
            put(buffer, inner.x, line, below.text, room, style);
        }
        line += 1;
    }
    cursor
}
