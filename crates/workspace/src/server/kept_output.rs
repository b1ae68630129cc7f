//! What the keeper kept before this server came, and has until it may drop it.

use std::collections::BTreeMap;

use crate::late_output::{KeptEnd, KeptPosition};
use crate::layout::PaneId;

/// Output that this server got when it connected. The keeper drops all of it with the first request, so requests that can wait
/// do so until the screens with it are saved.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    /// The number of this server: higher than that of each server before.
    server: u64,
    panes: BTreeMap<PaneId, TakenOutput>,
    /// Panes that are closed and whose programs have ended: the keeper need not know at once.
    closed: Vec<PaneId>,
}

#[derive(Debug)]
struct TakenOutput {
    position: KeptPosition,
    is_saved: bool,
}

impl KeptOutput {
    pub(super) fn new(server: u64) -> Self {
        Self { server, ..Self::default() }
    }

    /// The number of this server.
    pub(super) fn server(&self) -> u64 {
        self.server
    }

    /// A pane shows what was kept of its output up to here, of which some was lost before.
    pub(super) fn take(&mut self, pane: PaneId, end: KeptEnd, lost: u64) {
        let position = KeptPosition { server: self.server, end, lost };
        self.panes.insert(pane, TakenOutput { position, is_saved: false });
    }

    /// What stands behind the saved screen of a pane, if the keeper still has some of its output.
    pub(super) fn position(&self, pane: &PaneId) -> Option<KeptPosition> {
        self.panes.get(pane).map(|taken| taken.position)
    }

    /// The screen of a pane is saved.
    pub(super) fn set_saved(&mut self, pane: &PaneId) {
        self.panes.get_mut(pane).into_iter().for_each(|taken| taken.is_saved = true);
    }

    /// Whether some of it is nowhere else.
    pub(super) fn is_needed(&self) -> bool {
        self.panes.values().any(|taken| !taken.is_saved)
    }

    /// Whether the keeper has some of it, or has not heard of a pane that was closed.
    pub(super) fn is_held(&self) -> bool {
        !self.panes.is_empty() || !self.closed.is_empty()
    }

    /// A pane is closed, and its program has ended.
    pub(super) fn close_later(&mut self, pane: PaneId) {
        self.panes.remove(&pane);
        self.closed.push(pane);
    }

    /// The panes that were closed meanwhile, for the keeper to forget.
    pub(super) fn take_closed(&mut self) -> Vec<PaneId> {
        std::mem::take(&mut self.closed)
    }

    /// The keeper has got a request, and has none of it.
    pub(super) fn drop_all(&mut self) {
        self.panes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_needed_until_all_of_it_is_saved_or_closed() {
        let mut kept = KeptOutput::new(4);
        let [one, other, quiet] = ["one", "other", "quiet"].map(PaneId::new);
        let end = KeptEnd::of(b"output", 0).expect("an end");
        kept.take(one.clone(), end, 2);
        kept.take(other.clone(), end, 0);
        assert_eq!(kept.position(&one), Some(KeptPosition { server: 4, end, lost: 2 }));
        assert_eq!(kept.position(&quiet), None);
        kept.set_saved(&one);
        assert!(kept.is_needed());
        kept.close_later(other.clone());
        assert!(!kept.is_needed() && kept.is_held());
        assert_eq!(kept.take_closed(), [other]);
        assert!(kept.take_closed().is_empty() && kept.is_held());
        kept.drop_all();
        assert_eq!(kept.position(&one), None);
        assert!(!kept.is_held());
    }
}
