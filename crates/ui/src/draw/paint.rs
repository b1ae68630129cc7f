//! Writes texts and boxes to the screen buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::columns::cut_end;
use crate::theme::{Role, Theme};

/// Returns one line of an area.
pub(super) fn line_of(area: Rect, line: u16) -> Rect {
    Rect { x: area.x, y: area.y + line, width: area.width, height: 1 }
}

/// Writes a text; what is outside of the screen is cut.
pub(super) fn put(buffer: &mut Buffer, x: u16, y: u16, text: impl AsRef<str>, columns: usize, style: Style) {
    if y < buffer.area.bottom() && x < buffer.area.right() {
        buffer.set_stringn(x, y, text, columns, style);
    }
}

/// Writes a line of styled pieces; what is outside of the screen is cut.
pub(super) fn put_line(buffer: &mut Buffer, x: u16, y: u16, line: &Line<'_>, columns: u16) {
    if y < buffer.area.bottom() && x < buffer.area.right() {
        buffer.set_line(x, y, line, columns);
    }
}

/// Draws an empty box with a title, and returns its inside.
pub(super) fn draw_box(buffer: &mut Buffer, area: Rect, title: &str, theme: Theme) -> Rect {
    let border = theme.style(Role::Border);
    let inner_width = usize::from(area.width.saturating_sub(2));
    for line in area.top()..area.bottom() {
        let text = if line == area.top() {
            format!("┌{}┐", "─".repeat(inner_width))
        } else if line + 1 == area.bottom() {
            format!("└{}┘", "─".repeat(inner_width))
        } else {
            format!("│{}│", " ".repeat(inner_width))
        };
        // Clears the colours of what was drawn there before.
        buffer.set_style(Rect { y: line, height: 1, ..area }, Style::reset());
        put(buffer, area.x, line, text, usize::from(area.width), border);
    }
    // Text inside the box does not get the colour of the frame.
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    };
    buffer.set_style(inside.intersection(buffer.area), Style::reset());
    let title = format!(" {} ", cut_end(title, inner_width.saturating_sub(4)));
    put(buffer, area.x + 2, area.y, title, inner_width, Style::reset().add_modifier(Modifier::BOLD));
    Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

/// Returns an area of this size in the centre of another one.
pub(super) fn centred(area: Rect, columns: usize, lines: usize) -> Rect {
    let width = u16::try_from(columns).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines).unwrap_or(u16::MAX).min(area.height);
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
