//! Draws the inbox: the header, the three sections, the keys and the footer.

mod overlay;
mod paint;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ringer_core::toast::Colour;
use ringer_term::sanitise_line;

use self::paint::{line_of, put, put_line};
use crate::columns::{cut_end, cut_middle, pad, pad_front, width, wrap};
use crate::dialog::MIN_SIZE;
use crate::inbox::{FRAME_LINES, Inbox, VERBOSE_KEY};
use crate::keys::Action;
use crate::row_list::{ListLine, planned_lines};
use crate::rows::{MARK, Row, Section, Widths};
use crate::theme::{Role, Theme};
use crate::view::View;

/// The right end of the header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) machine: String,
    pub(crate) time: String,
}

/// Draws the whole screen, and shows the cursor if a text is being typed.
pub(crate) fn draw(frame: &mut Frame<'_>, inbox: &Inbox, theme: Theme, header: &Header) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let cursor = draw_all(buffer, area, inbox, theme, header);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

fn draw_all(
    buffer: &mut Buffer,
    area: Rect,
    inbox: &Inbox,
    theme: Theme,
    header: &Header,
) -> Option<(u16, u16)> {
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        put(buffer, 0, 0, "too small", usize::from(area.width), Style::new());
        return None;
    }
    draw_header(buffer, area, inbox, theme, header);
    draw_list(buffer, area, inbox, theme);
    let mut cursor = draw_keys(buffer, line_of(area, area.height - 2), inbox, theme);
    draw_footer(buffer, line_of(area, area.height - 1), inbox, theme);
    match inbox.view() {
        View::Help => overlay::draw_help(buffer, area, inbox, theme),
        View::Text(text) => overlay::draw_text(buffer, area, text, theme),
        View::Agent(view) => {
            if let Some(text) = view.text() {
                overlay::draw_text(buffer, area, text, theme);
            }
        }
        View::Menu(menu) => overlay::draw_menu(buffer, area, menu, theme),
        View::Dialog(dialog) => cursor = overlay::draw_dialog(buffer, area, inbox, dialog, theme),
        View::List | View::Filter(_) | View::ConfirmClear => {}
    }
    if theme.ascii {
        make_ascii(buffer);
    }
    cursor
}

fn draw_header(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme, header: &Header) {
    let mut spans = vec![Span::styled(" ringer ", theme.style(Role::Heading)), Span::raw("  ")];
    if inbox.is_loaded() {
        spans.extend(counts(inbox, theme));
        // Counts that do not fit are dropped whole, the last one first.
        while spans.len() > 3 && Line::from(spans.clone()).width() > usize::from(area.width) {
            spans.pop();
        }
    }
    let right = [header.machine.as_str(), header.time.as_str()];
    let right: Vec<&str> = right.into_iter().filter(|part| !part.is_empty()).collect();
    let right = sanitise_line(&right.join(" · "));
    draw_two(buffer, line_of(area, 0), &Line::from(spans), Span::styled(right, theme.style(Role::Dim)));
}

/// Returns the counts of the header: `2 need you · 2 working · 1 done`.
fn counts(inbox: &Inbox, theme: Theme) -> Vec<Span<'static>> {
    let data = inbox.data();
    let needs = match data.needs_you.len() + data.needs_you_unlisted {
        0 => Span::raw("nothing needs you"),
        1 => Span::styled("1 needs you", theme.style(Role::Permission)),
        many => Span::styled(format!("{many} need you"), theme.style(Role::Permission)),
    };
    let mut spans = vec![needs];
    let words = [("working", "working"), ("compacting", "compacting"), ("done", "done"), ("ready", "idle")];
    for (state, word) in words {
        let count = data.agents.iter().filter(|agent| agent.state == state).count();
        if count > 0 {
            spans.push(Span::raw(format!(" · {count} {word}")));
        }
    }
    spans
}

/// Draws one part at the left, and one at the right if there is room.
fn draw_two(buffer: &mut Buffer, area: Rect, left: &Line<'_>, right: Span<'_>) {
    let room = usize::from(area.width).saturating_sub(1);
    put_line(buffer, area.x, area.y, left, area.width);
    let takes = right.width();
    if left.width() + takes + 2 <= room {
        let column = u16::try_from(room - takes).unwrap_or(0);
        put_line(buffer, area.x + column, area.y, &Line::from(right), area.width.saturating_sub(column));
    }
}

/// Draws the useful keys, the filter field or the question before clearing. Returns the position of the cursor, if there is one.
fn draw_keys(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) -> Option<(u16, u16)> {
    if let View::Filter(input) = inbox.view() {
        let before = format!(" filter: {}", sanitise_line(input.before_cursor()));
        let line = Line::from(vec![
            Span::raw(before.clone()),
            Span::raw(sanitise_line(input.after_cursor())),
            Span::styled("   enter keep   esc end", theme.style(Role::Dim)),
        ]);
        put_line(buffer, area.x, area.y, &line, area.width);
        let column = u16::try_from(width(&before)).unwrap_or(0).min(area.width - 1);
        return Some((area.x + column, area.y));
    }
    if *inbox.view() == View::ConfirmClear {
        let question =
            " Remove all notifications from the list? What is open stays. y yes   any other key no";
        put(buffer, area.x, area.y, question, usize::from(area.width), theme.style(Role::Warning));
        return None;
    }
    let shown = key_hints(inbox);
    // The last two hints always stay: in the list, all keys and quit.
    let takes = |(key, words): &(String, &str)| width(key) + 1 + width(words) + 3;
    let room = usize::from(area.width).saturating_sub(1);
    let (first, last) = shown.split_at(shown.len().saturating_sub(2));
    let mut used: usize = last.iter().map(takes).sum();
    let fits = first.iter().take_while(|hint| {
        used += takes(hint);
        used <= room + 3
    });
    let mut spans = vec![Span::raw(" ")];
    for (key, words) in fits.chain(last) {
        spans.push(Span::styled(key_name(key, theme), theme.style(Role::Key)));
        spans.push(Span::styled(format!(" {words}   "), theme.style(Role::Dim)));
    }
    put_line(buffer, area.x, area.y, &Line::from(spans), area.width);
    None
}

/// Returns the keys that are useful in the current view, with their meanings.
fn key_hints(inbox: &Inbox) -> Vec<(String, &'static str)> {
    let keys = |actions: &[(Action, &'static str)]| -> Vec<(String, &'static str)> {
        let key = |action: Action| inbox.keys().first_key(action);
        actions.iter().filter_map(|(action, words)| Some((key(*action)?, *words))).collect()
    };
    let back = ("esc".to_owned(), "back");
    match inbox.view() {
        View::Agent(view) => {
            let verbose = if view.is_verbose() { "fewer tasks" } else { "every task" };
            let mut hints = vec![(VERBOSE_KEY.to_string(), verbose)];
            hints.extend(keys(&[(Action::GoThere, "go there"), (Action::Answer, "answer")]));
            hints.push(back);
            return hints;
        }
        View::Help | View::Text(_) | View::Menu(_) => return vec![back],
        // A dialog lists its own keys.
        View::Dialog(_) => return Vec::new(),
        View::List | View::Filter(_) | View::ConfirmClear => {}
    }
    if inbox.is_first_run() {
        return keys(&[
            (Action::GoThere, "connect your agents"),
            (Action::Help, "all keys"),
            (Action::Quit, "leave"),
        ]);
    }
    keys(&[
        (Action::GoThere, "go there"),
        (Action::Answer, "answer"),
        (Action::Snooze, "snooze"),
        (Action::Mute, "mute"),
        (Action::Read, "read"),
        (Action::Filter, "filter"),
        (Action::Show, "agent"),
        (Action::Why, "why"),
        (Action::Help, "all keys"),
        (Action::Quit, "leave"),
    ])
}

fn key_name(key: &str, theme: Theme) -> String {
    if key == "enter" && !theme.ascii { "⏎".to_owned() } else { key.to_owned() }
}

/// Draws the current toast or else the indicators at the right, and a problem with Ringer or else the filter at the left.
fn draw_footer(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
    let columns = usize::from(area.width).saturating_sub(2);
    let problem = inbox.data().problem.as_deref().map(sanitise_line);
    let filter = Some(inbox.filter()).filter(|filter| !filter.is_empty());
    let left = match (problem, filter) {
        (Some(problem), _) => Span::styled(format!(" {problem}"), theme.style(Role::Error)),
        (None, Some(filter)) => {
            Span::styled(format!(" filter: {}", sanitise_line(filter)), theme.style(Role::Warning))
        }
        (None, None) => Span::raw(""),
    };
    // The left part keeps up to a third.
    let room = columns - (left.width() + 2).min(columns / 3) * usize::from(left.width() > 0);
    let mut spans = Vec::new();
    if let Some(toast) = inbox.toast() {
        let mut left = room;
        for (text, colour) in &toast.spans {
            let text = cut_end(&sanitise_line(text), left);
            left = left.saturating_sub(width(&text));
            spans.push(Span::styled(text, theme.style(role_of(*colour))));
        }
    } else {
        let indicators: Vec<String> =
            inbox.data().indicators.iter().map(|text| sanitise_line(text)).collect();
        spans.push(Span::styled(cut_end(&indicators.join(" │ "), room), theme.style(Role::Dim)));
    }
    let right = Line::from(spans);
    let takes = right.width();
    let column = u16::try_from(columns + 1 - takes.min(columns)).unwrap_or(0);
    let left = Span::styled(cut_end(&left.content, usize::from(column).saturating_sub(2)), left.style);
    put_line(buffer, area.x, area.y, &Line::from(left), column);
    put_line(buffer, area.x + column, area.y, &right, area.width.saturating_sub(column));
}

fn role_of(colour: Colour) -> Role {
    match colour {
        Colour::Warning => Role::Warning,
        Colour::Error => Role::Error,
        Colour::Success => Role::Done,
        _ => Role::Plain,
    }
}

/// Replaces characters that a terminal without Unicode cannot show.
fn make_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let replacement = match cell.symbol() {
            symbol if symbol.is_ascii() => continue,
            "│" => "|",
            "─" | "–" => "-",
            "┌" | "┐" | "└" | "┘" => "+",
            "…" => "~",
            "·" => ".",
            _ => "?",
        };
        cell.set_symbol(replacement);
    }
}

fn draw_list(buffer: &mut Buffer, area: Rect, inbox: &Inbox, theme: Theme) {
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
