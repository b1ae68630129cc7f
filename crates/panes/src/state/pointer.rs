//! Handles the mouse, and encodes its events for programs.

use std::time::Instant;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::State;
use crate::effect::Effect;
use crate::emulator::MouseMode;
use crate::layout::{Area, PaneId};
use crate::sidebar_page::{Row, SidebarLine};
use crate::view::{ClientId, Mode};
use crate::workspace::Workspace;

/// The lines of one step of the wheel.
const WHEEL_LINES: i32 = 3;

impl State {
    pub(super) fn mouse(&mut self, client: ClientId, event: MouseEvent, now: Instant) -> Vec<Effect> {
        let Some(view) = self.views.get_mut(&client) else { return Vec::new() };
        if let Mode::Help(first) = view.mode {
            if matches!(event.kind, MouseEventKind::Down(_)) {
                view.turn_help_page(&self.keys, first);
            }
            return Vec::new();
        }
        let room = view.room();
        let is_press = matches!(event.kind, MouseEventKind::Down(_));
        if is_press && event.column < room.x && event.row < room.bottom() {
            return self.click_sidebar(client, event.row, now);
        }
        if self.drag_border(client, room, event) {
            return Vec::new();
        }
        let Some((pane, area)) = self.pane_at(client, room, event) else { return Vec::new() };
        let mut effects = Vec::new();
        if is_press {
            if let Some(view) = self.views.get_mut(&client) {
                view.pressed = Some(pane.clone());
            }
            let is_focused = self.focused(client).is_some_and(|own| own.id == pane);
            if !is_focused {
                effects = self.go_to(client, &pane, now);
            }
        }
        effects.extend(self.mouse_in(client, &pane, area.inside(), event, now));
        if matches!(event.kind, MouseEventKind::Up(_))
            && let Some(view) = self.views.get_mut(&client)
        {
            view.pressed = None;
        }
        effects
    }

    /// Grabs, moves or releases a border. Returns true if the event is consumed. A press is not: it also focuses its pane.
    fn drag_border(&mut self, client: ClientId, room: Area, event: MouseEvent) -> bool {
        let (x, y) = (event.column, event.row);
        let at = |own: &Workspace| own.border_at(x, y, room);
        let found = self.shown_workspace(client).and_then(at);
        let Some(view) = self.views.get_mut(&client) else { return false };
        let (grabbed, shown) = (view.grabbed.clone(), view.workspace.clone());
        match (event.kind, grabbed) {
            (MouseEventKind::Down(MouseButton::Left), _) => {
                view.grabbed = found;
                false
            }
            (MouseEventKind::Drag(MouseButton::Left), Some(border)) => {
                if let Some(workspace) = self.workspace_mut(&shown) {
                    workspace.move_border(&border, x, y, room);
                }
                true
            }
            (MouseEventKind::Up(_), Some(_)) => {
                (view.grabbed, view.pressed) = (None, None);
                true
            }
            _ => false,
        }
    }

    /// The pane that an event is for: the one in which the button was pressed, or the one under the pointer.
    fn pane_at(&self, client: ClientId, room: Area, event: MouseEvent) -> Option<(PaneId, Area)> {
        let is_held = matches!(event.kind, MouseEventKind::Drag(_) | MouseEventKind::Up(_));
        let pressed = self.views.get(&client)?.pressed.as_ref().filter(|_| is_held);
        let areas = self.shown_workspace(client)?.areas(room);
        areas.into_iter().find(|(pane, area)| match pressed {
            Some(pressed) => pane == pressed,
            None => area.contains(event.column, event.row),
        })
    }

    fn mouse_in(
        &mut self,
        client: ClientId,
        id: &PaneId,
        inside: Area,
        event: MouseEvent,
        now: Instant,
    ) -> Vec<Effect> {
        let is_held = matches!(event.kind, MouseEventKind::Drag(_) | MouseEventKind::Up(_));
        if inside.is_empty() || !is_held && !inside.contains(event.column, event.row) {
            return Vec::new();
        }
        let x = event.column.clamp(inside.x, inside.right() - 1) - inside.x;
        let y = event.row.clamp(inside.y, inside.bottom() - 1) - inside.y;
        let (Some(pane), Some(view)) = (self.panes.get_mut(id), self.views.get_mut(&client)) else {
            return Vec::new();
        };
        // Another window may have made the pane smaller than its area in this one.
        let size = pane.emulator.size();
        let (x, y) = (x.min(size.columns - 1), y.min(size.lines - 1));
        let report = MouseReport {
            mode: pane.emulator.mouse_mode(),
            is_sgr: pane.emulator.has_sgr_mouse(),
            application_cursor: pane.emulator.input_modes().application_cursor,
        };
        let is_for_program =
            pane.ending.is_none() && view.mode != Mode::Scroll && report.mode != MouseMode::Off;
        if is_for_program && let Some(bytes) = report.bytes(event, x, y) {
            return self.send(id, bytes).into_iter().collect();
        }
        if is_for_program && report.mode > MouseMode::WheelAsKeys {
            return Vec::new();
        }
        match event.kind {
            MouseEventKind::ScrollUp => pane.emulator.scroll(WHEEL_LINES),
            MouseEventKind::ScrollDown => pane.emulator.scroll(-WHEEL_LINES),
            MouseEventKind::Down(MouseButton::Left) => {
                let clicks = view.click(event.column, event.row, now);
                pane.emulator.clear_selection();
                pane.emulator.select(x, y, clicks);
            }
            MouseEventKind::Drag(MouseButton::Left) => pane.emulator.select_to(x, y),
            MouseEventKind::Up(MouseButton::Left) => {
                pane.emulator.select_to_if_wider(x, y);
                if let Some(text) = pane.emulator.selected_text() {
                    view.note("copied", now);
                    return vec![Effect::Copy { client, text }];
                }
                pane.emulator.clear_selection();
            }
            _ => {}
        }
        Vec::new()
    }

    fn click_sidebar(&mut self, client: ClientId, line: u16, now: Instant) -> Vec<Effect> {
        let page = self.sidebar_page(client);
        let line = page.as_ref().and_then(|page| page.lines.get(usize::from(line)));
        match line.and_then(SidebarLine::target).cloned() {
            Some(Row::Workspace { at }) => self.show_workspace(client, at),
            Some(Row::Pane { pane, .. }) => self.go_to(client, &pane, now),
            None => Vec::new(),
        }
    }
}

/// The form in which a program expects mouse events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MouseReport {
    mode: MouseMode,
    /// SGR encoding (decimal numbers) instead of single bytes.
    is_sgr: bool,
    /// Application cursor keys, for the wheel as keys.
    application_cursor: bool,
}

impl MouseReport {
    /// Encodes an event at a cell of the pane. Returns `None` if the program does not expect it.
    fn bytes(self, event: MouseEvent, x: u16, y: u16) -> Option<Vec<u8>> {
        if self.mode == MouseMode::WheelAsKeys {
            let key = match (event.kind, self.application_cursor) {
                (MouseEventKind::ScrollUp, true) => "\x1bOA",
                (MouseEventKind::ScrollUp, false) => "\x1b[A",
                (MouseEventKind::ScrollDown, true) => "\x1bOB",
                (MouseEventKind::ScrollDown, false) => "\x1b[B",
                _ => return None,
            };
            return Some(key.repeat(usize::try_from(WHEEL_LINES).unwrap_or(1)).into_bytes());
        }
        let button = |button| match button {
            MouseButton::Left => 0,
            MouseButton::Middle => 1,
            MouseButton::Right => 2,
        };
        let (code, needed, is_release) = match event.kind {
            MouseEventKind::Down(pressed) => (button(pressed), MouseMode::Clicks, false),
            MouseEventKind::Up(pressed) => (button(pressed), MouseMode::Clicks, true),
            MouseEventKind::Drag(held) => (button(held) + 32, MouseMode::Drags, false),
            MouseEventKind::Moved => (35, MouseMode::Motion, false),
            MouseEventKind::ScrollUp => (64, MouseMode::Clicks, false),
            MouseEventKind::ScrollDown => (65, MouseMode::Clicks, false),
            MouseEventKind::ScrollLeft => (66, MouseMode::Clicks, false),
            MouseEventKind::ScrollRight => (67, MouseMode::Clicks, false),
        };
        if self.mode < needed {
            return None;
        }
        let modifiers = [(KeyModifiers::SHIFT, 4), (KeyModifiers::ALT, 8), (KeyModifiers::CONTROL, 16)];
        let held = modifiers.iter().filter(|(modifier, _)| event.modifiers.contains(*modifier));
        let code: u8 = code + held.map(|(_, bit)| bit).sum::<u8>();
        if self.is_sgr {
            let last = if is_release { 'm' } else { 'M' };
            return Some(format!("\x1b[<{code};{};{}{last}", x + 1, y + 1).into_bytes());
        }
        // The X10 encoding does not say which button was released, and reaches no cell beyond 223.
        let code = if is_release { code | 3 } else { code };
        let cell = |number: u16| u8::try_from(number + 33).ok();
        Some(vec![0x1b, b'[', b'M', code + 32, cell(x)?, cell(y)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(mode: MouseMode, is_sgr: bool) -> MouseReport {
        MouseReport { mode, is_sgr, application_cursor: false }
    }

    fn event(kind: MouseEventKind) -> MouseEvent {
        MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE }
    }

    #[test]
    fn events_are_encoded_as_the_program_expects_them() {
        let down = event(MouseEventKind::Down(MouseButton::Left));
        let up = event(MouseEventKind::Up(MouseButton::Left));
        let drag = event(MouseEventKind::Drag(MouseButton::Left));
        let wheel = event(MouseEventKind::ScrollDown);
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text(report(MouseMode::Clicks, true).bytes(down, 4, 2)).unwrap(), "\x1b[<0;5;3M");
        assert_eq!(text(report(MouseMode::Clicks, true).bytes(up, 4, 2)).unwrap(), "\x1b[<0;5;3m");
        assert_eq!(text(report(MouseMode::Clicks, false).bytes(up, 4, 2)).unwrap(), "\x1b[M#%#");
        assert_eq!(report(MouseMode::Clicks, true).bytes(drag, 4, 2), None);
        assert_eq!(text(report(MouseMode::Drags, true).bytes(drag, 4, 2)).unwrap(), "\x1b[<32;5;3M");
        assert_eq!(report(MouseMode::Off, true).bytes(wheel, 0, 0), None);
        assert_eq!(
            text(report(MouseMode::WheelAsKeys, false).bytes(wheel, 0, 0)).unwrap(),
            "\x1b[B\x1b[B\x1b[B"
        );
        assert_eq!(report(MouseMode::Clicks, false).bytes(down, 300, 2), None, "the cell cannot be encoded");
    }
}
