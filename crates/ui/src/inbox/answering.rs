//! Answering in place: the dialog on top of the list.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ringer_term::sanitise_line;

use super::{Effect, Inbox};
use crate::backend::Request;
use crate::columns::width;
use crate::dialog::DialogEffect;
use crate::dialog_room::DialogRoom;
use crate::keys::KeyPress;
use crate::view::View;

/// Goes on with a text in the person's editor.
const EDITOR_KEY: KeyPress = KeyPress::with_control('g');

impl Inbox {
    pub(super) fn press_in_dialog(&mut self, key: &KeyEvent, now_ms: i64) -> Vec<Effect> {
        let effects = self.press_key_of_dialog(key);
        self.hint_at_editor(now_ms);
        effects
    }

    fn press_key_of_dialog(&mut self, key: &KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.view = View::List;
            return Vec::new();
        }
        let room = self.dialog_room();
        let View::Dialog(dialog) = &mut self.view else { return Vec::new() };
        if KeyPress::of(key) == EDITOR_KEY
            && self.editor.is_some()
            && let Some(input) = dialog.input()
        {
            return vec![Effect::Edit(input.text())];
        }
        let id = dialog.id().to_owned();
        let effect = dialog.handle(key, room.lines(dialog));
        room.limit_scroll(dialog);
        match effect {
            Some(DialogEffect::Send(words)) => vec![Effect::Request(Request::Answer { id, words })],
            Some(DialogEffect::GoThere) => {
                self.view = View::List;
                vec![Effect::Request(Request::GoTo { id })]
            }
            Some(DialogEffect::Close) => {
                self.view = View::List;
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// The text that was given to the editor has changed.
    pub fn edited(&mut self, text: &str, now_ms: i64) {
        if let View::Dialog(dialog) = &mut self.view {
            dialog.replace_input(text);
        }
        self.hint_at_editor(now_ms);
    }

    /// Says that there is an editor as long as what is typed is longer than its line.
    fn hint_at_editor(&mut self, now_ms: i64) {
        let room = self.dialog_room().input_columns();
        let input = if let View::Dialog(dialog) = &self.view { dialog.input() } else { None };
        let is_long = input.is_some_and(|input| width(&input.text()) > room);
        let hint = self.editor.as_ref().filter(|_| is_long);
        let hint = hint.map(|editor| format!("{EDITOR_KEY} goes on in {}", sanitise_line(editor)));
        self.note.set_hint(hint, now_ms);
    }

    /// The room for a dialog.
    pub(crate) fn dialog_room(&self) -> DialogRoom {
        DialogRoom::on(self.size)
    }

    /// What it is like is on the screen now.
    pub fn drawn(&mut self) {
        let room = self.dialog_room();
        if let View::Dialog(dialog) = &mut self.view {
            room.drawn(dialog);
        }
    }
}
