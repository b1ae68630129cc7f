//! Draws the window of a client.

mod footer;
mod panes;
mod sidebar;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;
use std::time::Instant;

use self::words::cut;
use crate::actions::PaneKeys;
use crate::help_page::{AFTER_KEY, BETWEEN, HelpPage, OTHER_LINES, SIDE};
use crate::layout::Area;
use crate::layout::PaneId;
use crate::screen::Screen;
use crate::state::State;
use crate::style::Style;
use crate::view::{ClientId, Mode};

/// Draws a whole window.
pub(crate) fn draw(state: &State, client: ClientId, now: Instant, screen: &mut Screen) {
    let Some(view) = state.view(client) else { return };
    screen.clear(view.facts.columns, view.facts.lines);
    let room = view.room();
    if view.shows_sidebar() {
        sidebar::draw(state, client, screen, room.x, room.height);
    }
    panes::draw(state, client, now, screen, room);
    if view.shows_footer() {
        footer::draw(state, client, now, screen);
    } else {
        footer::draw_prompt(state, client, now, screen);
    }
    if let Mode::Help(first) = view.mode {
        draw_help(state.keys(), first, screen);
        screen.cursor = None;
    }
}

/// Draws changed lines of panes, if nothing else has changed. Returns the lines of the screen that were drawn, or `None` if the
/// whole window has to be drawn.
pub(crate) fn draw_lines(
    state: &State,
    client: ClientId,
    changed: &[(PaneId, Vec<u16>)],
    shown: &Screen,
    screen: &mut Screen,
) -> Option<BTreeSet<u16>> {
    let view = state.view(client)?;
    let size = Area::new(0, 0, view.facts.columns, view.facts.lines);
    // The help page covers the panes.
    if matches!(view.mode, Mode::Help(_)) || shown.area() != size {
        return None;
    }
    screen.match_size(shown);
    Some(panes::draw_lines(state, client, changed, shown, screen))
}

/// The hint below the keys if there is another page.
const MORE: &str = "any key: more   esc: back";

fn draw_help(keys: &PaneKeys, first: usize, screen: &mut Screen) {
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
