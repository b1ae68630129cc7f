//! The dialog in which a prompt is answered.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ringer_term::sanitise_line;

use super::paint::{centred, draw_box, put, put_line};
use crate::choice_lines::{LineKind, choice_lines};
use crate::columns::{cut_end, width};
use crate::dialog::{Dialog, Phase};
use crate::inbox::Inbox;
use crate::theme::{Role, Theme};

pub(super) fn draw(
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
            // The end of what is typed is what one looks at.
            let before = crate::columns::cut_front(&before, inbox.dialog_room().input_columns());
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
