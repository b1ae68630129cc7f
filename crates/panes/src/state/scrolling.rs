//! Handles keys in the scrollback, and in the prompts for a search text and a name.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::State;
use crate::effect::Effect;
use crate::pane::Pane;
use crate::protocol::{MAX_NAME, check_name, cut_name};
use crate::view::{ClientId, Mode, View};

/// The longest search text, in bytes.
const MAX_TYPED: usize = 200;

/// Truncates typed text to its limit.
pub(super) fn limit_typed(mode: &mut Mode) {
    match mode {
        Mode::Search(text) => text.truncate(text.floor_char_boundary(MAX_TYPED)),
        Mode::Rename(name) => cut_name(name, MAX_NAME),
        _ => {}
    }
}

impl State {
    pub(super) fn scroll_key(&mut self, client: ClientId, key: &KeyEvent, now: Instant) -> Vec<Effect> {
        let id = self.focused(client).map(|pane| pane.id.clone());
        let (Some(view), Some(pane)) =
            (self.views.get_mut(&client), id.and_then(|id| self.panes.get_mut(&id)))
        else {
            return Vec::new();
        };
        let screenful = i32::from(pane.emulator.size().lines.saturating_sub(1).max(1));
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => pane.emulator.scroll(1),
            KeyCode::Down | KeyCode::Char('j') => pane.emulator.scroll(-1),
            KeyCode::PageUp => pane.emulator.scroll(screenful),
            KeyCode::Char('b' | 'u') if is_control => pane.emulator.scroll(screenful),
            KeyCode::PageDown | KeyCode::Char(' ') => pane.emulator.scroll(-screenful),
            KeyCode::Char('f' | 'd') if is_control => pane.emulator.scroll(-screenful),
            KeyCode::Home | KeyCode::Char('g') => pane.emulator.scroll_to_top(),
            KeyCode::End | KeyCode::Char('G') => pane.emulator.scroll_to_bottom(),
            KeyCode::Char('/') => view.mode = Mode::Search(String::new()),
            KeyCode::Char('n' | 'N') if !view.searched.is_empty() => {
                let (text, is_upwards) = (view.searched.clone(), key.code == KeyCode::Char('n'));
                find(view, pane, &text, is_upwards, now);
            }
            KeyCode::Char('y') | KeyCode::Enter => {
                if let Some(text) = pane.emulator.selected_text() {
                    view.mode = Mode::Program;
                    pane.emulator.clear_selection();
                    pane.emulator.scroll_to_bottom();
                    return vec![Effect::Copy { client, text }];
                }
            }
            KeyCode::Char('c') if !is_control => {}
            KeyCode::Esc | KeyCode::Char('q' | 'c') => {
                view.mode = Mode::Program;
                pane.emulator.clear_selection();
                pane.emulator.scroll_to_bottom();
            }
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn typed_line(&mut self, client: ClientId, key: &KeyEvent, now: Instant) -> Vec<Effect> {
        let id = self.focused(client).map(|pane| pane.id.clone());
        let pane = id.and_then(|id| self.panes.get_mut(&id));
        let (Some(view), Some(pane)) = (self.views.get_mut(&client), pane) else { return Vec::new() };
        let (Mode::Search(text) | Mode::Rename(text)) = &mut view.mode else { return Vec::new() };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char(char) if !is_control => {
                text.push(char);
                limit_typed(&mut view.mode);
            }
            // A search that is cancelled in the scrollback leaves the scroll position as it was.
            KeyCode::Esc | KeyCode::Char('c') => {
                let is_reading = matches!(view.mode, Mode::Search(_)) && pane.emulator.scrolled() > 0;
                view.mode = if is_reading { Mode::Scroll } else { Mode::Program };
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Enter => {
                let typed = std::mem::take(text);
                let is_search = matches!(view.mode, Mode::Search(_));
                view.mode = if is_search { Mode::Scroll } else { Mode::Program };
                if !is_search {
                    pane.name = Some(typed).filter(|name| check_name(name).is_ok());
                } else if !typed.is_empty() {
                    find(view, pane, &typed, true, now);
                    view.searched = typed;
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

/// Scrolls to the next match of a text, or shows a message that there is none.
fn find(view: &mut View, pane: &mut Pane, text: &str, is_upwards: bool, now: Instant) {
    if pane.emulator.find(text, is_upwards) {
        view.clear_note();
    } else {
        view.note(format!("not found: {text}"), now);
    }
}
