//! Draws the three sections, or a message if they are empty.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ringer_term::sanitise_line;

use super::paint::{line_of, put, put_line};
use crate::columns::{cut_end, cut_middle, pad, pad_front, width, wrap};
use crate::inbox::{FRAME_LINES, Inbox};
use crate::row_list::{ListLine, planned_lines};
use crate::rows::{MARK, Row, Section, Widths};
use crate::theme::{Role, Theme};
use crate::view::View;

pub(super) fn draw(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
    let lines = planned_lines(inbox.list());
    if lines.is_empty() {
        return draw_empty(buffer, area, inbox, theme);
    }
    let columns = usize::from(area.width);
    let widths = |section: Section| Widths::of(inbox.list().rows().section(section), columns);
    let all_widths = Section::ALL.map(widths);
    let of = |row: &Row| {
        let index = Section::ALL.iter().position(|section| *section == row.key.section);
        all_widths[index.unwrap_or(0)]
    };
    let room = usize::from(area.height).saturating_sub(FRAME_LINES);
    for (number, planned) in (1_u16..).zip(lines.iter().take(room)) {
        let place = line_of(area, number);
        match planned {
            ListLine::Blank => {}
            ListLine::Heading(section, position) => {
                let spans = vec![
                    Span::styled(format!(" {}", section.heading()), theme.style(Role::Heading)),
                    Span::styled(format!("  {position}"), theme.style(Role::Dim)),
                ];
                put_line(buffer, place.x, place.y, &Line::from(spans), place.width);
            }
            ListLine::Row(row) if inbox.list().row_lines() > 1 => {
                draw_line(buffer, place, row, inbox, &narrow_row(row, columns, theme));
            }
            ListLine::Row(row) => draw_line(buffer, place, row, inbox, &wide_row(row, of(row), theme)),
            ListLine::Detail(row) => {
                let text = format!("     {}", row.detail(columns.saturating_sub(6)));
                let spans = vec![Span::styled(text, base_style(row, theme))];
                draw_line(buffer, place, row, inbox, &spans);
            }
        }
    }
}

fn draw_line(buffer: &mut Buffer, place: Rect, row: &Row, inbox: &Inbox, spans: &[Span<'_>]) {
    let line = Line::from(spans.to_vec());
    put_line(buffer, place.x, place.y, &line, place.width);
    // Behind a box, the bar of the selection would stick out at both sides.
    let is_covered = matches!(inbox.view(), View::Help | View::Text(_) | View::Agent(_) | View::Dialog(_));
    if inbox.list().selected() == Some(&row.key) && !is_covered {
        buffer.set_style(place, Theme::selected());
    }
}

/// Unread rows are bold. Agents that are idle, starting or have ended are dim. All other rows are plain.
fn base_style(row: &Row, theme: Theme) -> Style {
    match (row.is_unread, row.sign.role) {
        (true, _) => Style::new().add_modifier(Modifier::BOLD),
        (false, Role::Dim) if row.key.section == Section::Agents => theme.style(Role::Dim),
        _ => Style::new(),
    }
}

fn sign<'a>(row: &Row, theme: Theme) -> Span<'a> {
    let text = if theme.ascii { row.sign.ascii } else { row.sign.unicode };
    Span::styled(pad(text, 3), theme.style(row.sign.role))
}

fn mark<'a>(row: &Row, theme: Theme) -> Span<'a> {
    let text = if row.is_unread { format!(" {}", theme.unread_mark()) } else { String::new() };
    Span::styled(pad(&text, MARK), theme.style(row.sign.role))
}

fn wide_row<'a>(row: &Row, widths: Widths, theme: Theme) -> Vec<Span<'a>> {
    let base = base_style(row, theme);
    let mut spans = vec![mark(row, theme)];
    let mut part = |text: String, style: Style| spans.push(Span::styled(text, style));
    if widths.id > 0 {
        part(pad(&cut_end(&row.short_id, widths.id), widths.id + 1), theme.style(Role::Dim));
    }
    part(pad(&row.label(widths.label), widths.label + 2), base);
    if widths.client > 0 {
        part(pad(&cut_end(&row.client, widths.client), widths.client + 2), theme.style(Role::Dim));
    }
    spans.push(sign(row, theme));
    let mut part = |text: String, style: Style| spans.push(Span::styled(text, style));
    part(pad(&cut_end(row.sign.word, widths.word), widths.word + 2), theme.style(row.sign.role));
    part(pad(&row.detail(widths.detail), widths.detail), base);
    part(pad_front(&row.age, widths.age + 2), theme.style(Role::Dim));
    if widths.place > 0 {
        // Cut in the middle, because the number of the window is at the end.
        part(format!("  {}", cut_middle(&row.place, widths.place)), theme.style(Role::Dim));
    }
    spans
}

fn narrow_row<'a>(row: &Row, columns: usize, theme: Theme) -> Vec<Span<'a>> {
    let id = if row.short_id.is_empty() { String::new() } else { format!("{} ", row.short_id) };
    // The widths of the widest word, and of the age at the right end.
    let (word, age) = (16, 5);
    let room = columns.saturating_sub(MARK + width(&id) + 1 + 3 + word + age + 1);
    vec![
        mark(row, theme),
        Span::styled(id, theme.style(Role::Dim)),
        Span::styled(pad(&row.label(room), room + 1), base_style(row, theme)),
        sign(row, theme),
        Span::styled(pad(row.sign.word, word), theme.style(row.sign.role)),
        Span::styled(pad_front(&row.age, age), theme.style(Role::Dim)),
    ]
}

/// Draws a message in place of an empty list.
fn draw_empty(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
    let problem = inbox.data().problem.as_deref().map(sanitise_line).unwrap_or_default();
    let lines: Vec<(&str, Role)> = if !inbox.is_loaded() {
        vec![(&problem, Role::Error)]
    } else if inbox.is_first_run() {
        vec![
            ("Welcome to Ringer.", Role::Heading),
            ("", Role::Plain),
            ("It tells you when an agent has finished, is stuck or asks something,", Role::Plain),
            ("and lets you answer from here.", Role::Plain),
            ("", Role::Plain),
            ("No agent has reported yet. Press Enter to connect your agents:", Role::Plain),
            ("Claude Code, Codex, Gemini CLI, opencode.", Role::Plain),
            ("", Role::Plain),
            ("You see every change before it is made.", Role::Dim),
        ]
    } else if inbox.filter().is_empty() {
        vec![("Nothing needs you.", Role::Plain), ("No agents are running.", Role::Dim)]
    } else {
        vec![("Nothing fits the filter.", Role::Plain), ("esc ends it", Role::Dim)]
    };
    let room = usize::from(area.width).saturating_sub(4);
    let lines: Vec<(String, Role)> = lines
        .into_iter()
        .flat_map(|(text, role)| wrap(text, room).into_iter().map(move |line| (line, role)))
        .collect();
    let top = usize::from(area.height).saturating_sub(FRAME_LINES + lines.len()) / 2;
    for (number, (text, role)) in (top + 1..).zip(lines) {
        if number + 2 >= usize::from(area.height) {
            break;
        }
        let width = u16::try_from(width(text.trim_end())).unwrap_or(0);
        let place = line_of(area, u16::try_from(number).unwrap_or(0));
        let column = (area.width - width.min(area.width)) / 2;
        put(buffer, place.x + column, place.y, text, room, theme.style(role));
    }
}
