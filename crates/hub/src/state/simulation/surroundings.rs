//! What a simulated hub runs in: a host, and chance.

use ringer_core::{Event, Place, SurfaceId};

use crate::host::{FocusResult, Host, SurfaceInfo};

/// Marks in these titles can be counted.
pub(super) const PANES: [&str; 3] = ["tmux:/tmp/s:1:%0", "tmux:/tmp/s:1:%1", "tmux:/tmp/s:1:%2"];

/// A host whose rings are marks in titles.
pub(super) struct TitleHost;

impl Host for TitleHost {
    fn name(&self) -> &'static str {
        "title"
    }

    fn surfaces(&self) -> Vec<SurfaceInfo> {
        Vec::new()
    }

    fn owns(&self, surface: &SurfaceId) -> bool {
        PANES.contains(&surface.as_str())
    }

    fn register(&mut self, surface: &SurfaceId, _tty: Option<&str>, scope: &str) -> Option<Event> {
        let workspace = Place::own_workspace(scope).workspace;
        Some(Event::Surface { surface: surface.clone(), workspace, tty: None })
    }

    fn rings_by_title(&self) -> bool {
        true
    }

    fn focus(&mut self, _place: &Place) -> FocusResult {
        FocusResult::Done
    }
}

/// Numbers that can be had again (`SplitMix64`).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}
