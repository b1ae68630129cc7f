//! Which programs have the focus. Those that want to know are told when they get and lose it.

use std::collections::BTreeSet;

use super::State;
use crate::effect::Effect;
use crate::layout::PaneId;

const FOCUS_IN: &[u8] = b"\x1b[I";
const FOCUS_OUT: &[u8] = b"\x1b[O";

impl State {
    /// The panes that have the keys of a window with the focus. A terminal that has not said anything about it has it.
    fn panes_in_focus(&self) -> BTreeSet<PaneId> {
        let windows =
            self.views.iter().filter(|(_, view)| view.has_focus != Some(false) && !view.is_in_inbox);
        windows.filter_map(|(client, _)| self.focused(*client)).map(|pane| pane.id.clone()).collect()
    }

    /// Tells the programs whose panes got or lost the focus since the last call, if they want to know.
    pub(super) fn tell_focus(&mut self) -> Vec<Effect> {
        let after = self.panes_in_focus();
        let before = std::mem::replace(&mut self.in_focus, after.clone());
        let wants =
            |pane: &&PaneId| self.panes.get(*pane).is_some_and(|pane| pane.emulator.input_modes().focus);
        let lost = before.difference(&after).filter(wants).map(|pane| (pane, FOCUS_OUT));
        let got = after.difference(&before).filter(wants).map(|pane| (pane, FOCUS_IN));
        lost.chain(got).filter_map(|(pane, bytes)| self.send(pane, bytes.to_vec())).collect()
    }

    /// Ends what is typed or read in a window about a pane that does not have its keys any more: it would be done to another one.
    pub(super) fn end_stale_modes(&mut self) {
        let clients: Vec<_> = self.views.keys().copied().collect();
        for client in clients {
            let focused = self.focused(client).map(|pane| pane.id.clone());
            if let Some(view) = self.views.get_mut(&client) {
                view.end_mode_of_other_panes(focused.as_ref());
            }
        }
    }
}
