//! Tracks the output that the keeper kept while no server was connected, until it may drop that.

use std::collections::BTreeMap;

use crate::late_output::{KeptEnd, KeptPosition};
use crate::layout::PaneId;

/// Output that this server received when it connected. The keeper drops all of it with the first request, so requests that can
/// wait do so until the screens with this output are saved.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    /// The number of this server, which is higher than the number of any earlier server.
    server: u64,
    panes: BTreeMap<PaneId, TakenOutput>,
    /// Closed panes whose programs have ended. The keeper need not be told at once.
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

    pub(super) fn server(&self) -> u64 {
        self.server
    }

    /// Records the position up to which a pane shows the kept output, and how many bytes were lost before.
    pub(super) fn take(&mut self, pane: PaneId, end: KeptEnd, lost: u64) {
        let position = KeptPosition { server: self.server, end, lost };
        self.panes.insert(pane, TakenOutput { position, is_saved: false });
    }

    /// The position to save with the screen of a pane, if the keeper still has output of it.
    pub(super) fn position(&self, pane: &PaneId) -> Option<KeptPosition> {
        self.panes.get(pane).map(|taken| taken.position)
    }

    /// Records that the screen of a pane is saved.
    pub(super) fn set_saved(&mut self, pane: &PaneId) {
        self.panes.get_mut(pane).into_iter().for_each(|taken| taken.is_saved = true);
    }

    /// Returns true if some of the output is not saved in a screen yet.
    pub(super) fn is_needed(&self) -> bool {
        self.panes.values().any(|taken| !taken.is_saved)
    }

    /// Returns true if the keeper still has output, or has not been told about a closed pane.
    pub(super) fn is_held(&self) -> bool {
        !self.panes.is_empty() || !self.closed.is_empty()
    }

    /// Postpones telling the keeper that a pane was closed. Its program has ended.
    pub(super) fn close_later(&mut self, pane: PaneId) {
        self.panes.remove(&pane);
        self.closed.push(pane);
    }

    /// Returns the closed panes that the keeper has to forget.
    pub(super) fn take_closed(&mut self) -> Vec<PaneId> {
        std::mem::take(&mut self.closed)
    }

    /// Records that the keeper received a request, and has dropped the output.
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
