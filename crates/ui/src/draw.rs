//! Draws the inbox.

mod list;
mod overlay;
mod paint;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ringer_core::toast::Colour;
use ringer_term::sanitise_line;

use self::paint::{line_of, put, put_line};
use crate::columns::{cut_end, width};
use crate::dialog_layout::MIN_SIZE;
use crate::inbox::{Inbox, VERBOSE_KEY};
use crate::keys::Action;
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
    list::draw(buffer, area, inbox, theme);
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

#[cfg(test)]
mod tests;
