//! The invariants.

use super::*;
use crate::draw::draw;
use crate::screen::{Abilities, written_marks};
use crate::style::ColourDepth;
use crate::view::Mode;

impl Simulation {
    /// Nothing is written to a program that has ended, except if its pane is closed later in the same step.
    pub(super) fn check_writes(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Write { pane, bytes } = effect {
                let runs = |pane: &Pane| pane.ending.is_none() && pane.failure.is_none();
                let is_gone = self.state.pane(pane).is_none();
                assert!(is_gone || self.state.pane(pane).is_some_and(runs), "{pane} is written {bytes:?}");
            }
        }
    }

    pub(super) fn check(&mut self) {
        self.check_workspaces();
        self.check_sizes();
        self.check_described();
        self.check_questions();
        let clients: Vec<ClientId> = self.windows.keys().copied().collect();
        for client in clients {
            self.check_window(client);
        }
    }

    fn check_workspaces(&self) {
        let mut seen = BTreeSet::new();
        for workspace in self.state.workspaces() {
            assert!(!workspace.is_empty(), "{} is empty", workspace.name);
            let focused = workspace.focused().expect("a pane has the keys");
            assert!(workspace.contains(focused), "{focused} has the keys of a workspace in which it is not");
            for pane in workspace.panes() {
                assert!(self.state.pane(&pane).is_some(), "{pane} is shown, but is not there");
                assert!(seen.insert(pane.clone()), "{pane} is shown twice");
            }
        }
        assert_eq!(seen.len(), self.state.panes().count(), "panes that are in no workspace");
        for client in self.windows.keys() {
            let is_shown = self.state.shown_workspace(*client).is_some();
            assert!(is_shown || self.state.workspaces().is_empty(), "{client:?} shows no workspace");
        }
    }

    fn check_sizes(&self) {
        for pane in self.state.panes() {
            if let Some(size) = self.state.size_of(&pane.id) {
                assert_eq!(pane.emulator.size(), size, "{}", pane.id);
            }
        }
    }

    fn check_described(&self) {
        let is_known = |pane: &&Pane| pane.tty.is_some() || pane.failure.is_some();
        let known = self.state.panes().filter(is_known).map(Pane::surface);
        assert_eq!(self.described, known.collect(), "the facts for the hub");
    }

    /// Only running programs ask questions.
    fn check_questions(&self) {
        for (pane, number) in &self.asked {
            let runs = self.state.pane(pane).is_some_and(|own| own.ending.is_none());
            assert!(runs, "{number:?} of {pane} is open");
        }
    }

    /// The picture fits the window, and its terminal shows it after the changes are written.
    fn check_window(&mut self, client: ClientId) {
        let (columns, lines) = match self.state.view(client) {
            Some(view) => (view.facts.columns, view.facts.lines),
            None => return,
        };
        let mut screen = Screen::new(0, 0);
        draw(&self.state, client, self.now, &mut screen);
        assert_eq!((screen.area().width, screen.area().height), (columns, lines));
        if let Some(cursor) = screen.cursor {
            assert!(screen.area().contains(cursor.x, cursor.y), "{cursor:?} is not in {:?}", screen.area());
        }
        self.check_focused_is_seen(client, &screen);
        let Some(window) = self.windows.get_mut(&client) else { return };
        let mut bytes = String::new();
        let abilities = Abilities { colours: ColourDepth::Rgb, is_ascii: false };
        screen.changes(window.shown.as_ref(), abilities, &mut bytes);
        window.terminal.feed(bytes.as_bytes());
        if !bytes.is_empty() && columns > 1 && lines > 0 {
            window.terminal.each_cell(0..window.terminal.size().lines, |x, y, cell| {
                let drawn = screen.cell(x, y).expect("a cell of the window");
                let (mut written, marks) = (drawn.clone(), written_marks(drawn));
                written.marks = (!marks.is_empty()).then(|| marks.into());
                assert!(cell == written, "{client:?} at {x}, {y}: {cell:?} is shown, {drawn:?} was drawn");
            });
            let cursor = screen.cursor.map(|cursor| (cursor.x, cursor.y, cursor.shape));
            assert_eq!(window.terminal.cursor(), cursor, "the cursor of {client:?}");
        }
        window.shown = Some(screen);
    }

    /// The focused pane is drawn, at least with the minimum size of a pane or the size of the window.
    fn check_focused_is_seen(&self, client: ClientId, screen: &Screen) {
        let (Some(view), Some(workspace)) = (self.state.view(client), self.state.shown_workspace(client))
        else {
            return;
        };
        let (room, focused) = (view.room(), workspace.focused());
        let seen = workspace.areas(room).into_iter().find(|(pane, _)| Some(pane) == focused);
        let (pane, area) = seen.expect("the pane that has the keys is seen");
        let is_large = area.width >= room.width.min(12) && area.height >= room.height.min(5);
        let is_inside = area.right() <= room.right() && area.bottom() <= room.bottom();
        assert!(is_large && is_inside, "{pane} has {area:?} of {room:?} in {client:?}");
        let corner = screen.cell(area.x, area.y).and_then(|cell| cell.character);
        let is_drawn = matches!(corner, Some('┌' | '┏'));
        let can_be_seen = area.width > 1 && area.height > 1 && !matches!(view.mode, Mode::Help(_));
        assert!(is_drawn || !can_be_seen, "{pane} is not drawn in {client:?}: {corner:?}");
    }
}
