//! Finds the surface that a message came from.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::attention::PlaceReason;
use crate::message::{Place, SurfaceId, WorkspaceId};

/// The location that a caller claims.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caller {
    /// The workspace in the caller's environment.
    pub workspace: Option<WorkspaceId>,
    /// The surface in the caller's environment.
    pub surface: Option<SurfaceId>,
    /// The caller's terminal device.
    pub tty: Option<String>,
    /// Set inside tmux, where the ids in the caller's environment belong to the outer terminal: the tty is tried first.
    pub prefer_tty: bool,
}

/// The most surfaces that are known at once. At the limit the one that was registered first is forgotten. A person has fewer;
/// the limit bounds memory when programs make up ids.
pub(crate) const MAX_SURFACES: usize = 4096;

/// The surfaces that hosts have registered.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurfaceRegistry {
    surfaces: HashMap<SurfaceId, RegisteredSurface>,
    ttys: HashMap<String, SurfaceId>,
    /// Number of surfaces in each workspace.
    workspaces: HashMap<WorkspaceId, usize>,
    by_number: BTreeMap<u64, SurfaceId>,
    last_number: u64,
    selected: Option<WorkspaceId>,
}

#[derive(Debug, Clone)]
struct RegisteredSurface {
    workspace: WorkspaceId,
    tty: Option<String>,
    number: u64,
    /// The host reports when the person looks at the surface.
    reports_focus: bool,
}

/// The place of a message, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPlace {
    pub place: Place,
    pub how: PlaceReason,
}

impl SurfaceRegistry {
    /// Adds a surface, or moves it to another workspace. Returns the surface that is forgotten to make room.
    pub(crate) fn register(
        &mut self,
        surface: SurfaceId,
        workspace: WorkspaceId,
        tty: Option<String>,
        reports_focus: bool,
    ) -> Option<SurfaceId> {
        // Fast path: most messages come from a known surface.
        if let Some(known) = self.surfaces.get_mut(&surface)
            && known.workspace == workspace
            && known.tty == tty
        {
            known.reports_focus = reports_focus;
            return None;
        }
        self.remove(&surface);
        if let Some(tty) = &tty {
            self.ttys.insert(tty.clone(), surface.clone());
        }
        *self.workspaces.entry(workspace.clone()).or_default() += 1;
        self.last_number += 1;
        self.by_number.insert(self.last_number, surface.clone());
        self.surfaces
            .insert(surface, RegisteredSurface { workspace, tty, number: self.last_number, reports_focus });
        if self.surfaces.len() <= MAX_SURFACES {
            return None;
        }
        let oldest = self.by_number.first_key_value().map(|(_, surface)| surface.clone())?;
        self.remove(&oldest);
        Some(oldest)
    }

    pub(crate) fn remove(&mut self, surface: &SurfaceId) {
        let Some(RegisteredSurface { workspace, tty, number, .. }) = self.surfaces.remove(surface) else {
            return;
        };
        self.by_number.remove(&number);
        // Another surface may have taken over its terminal.
        if let Some(tty) = tty.filter(|tty| self.ttys.get(tty) == Some(surface)) {
            self.ttys.remove(&tty);
        }
        if let Some(count) = self.workspaces.get_mut(&workspace) {
            *count -= 1;
            if *count == 0 {
                self.workspaces.remove(&workspace);
            }
        }
    }

    /// Records the workspace that the person looked at last.
    pub(crate) fn select(&mut self, workspace: Option<WorkspaceId>) {
        self.selected = workspace;
    }

    /// Returns the workspace of a registered surface.
    pub(crate) fn workspace_of(&self, surface: &SurfaceId) -> Option<&WorkspaceId> {
        self.surfaces.get(surface).map(|known| &known.workspace)
    }

    /// Returns true if the host of a surface reports when the person looks at it.
    pub(crate) fn reports_focus(&self, surface: &SurfaceId) -> bool {
        self.surfaces.get(surface).is_some_and(|known| known.reports_focus)
    }

    /// Finds the place of a caller by its ids or its terminal. The fallback is the selected workspace.
    pub(crate) fn resolve(&self, caller: &Caller) -> Option<ResolvedPlace> {
        let by_ids = || self.by_ids(caller);
        let by_tty = || self.by_tty(caller);
        let first = if caller.prefer_tty { by_tty().or_else(by_ids) } else { by_ids().or_else(by_tty) };
        first.or_else(|| {
            // The host may be gone, and with it the workspace.
            let selected = self.selected.clone().filter(|id| self.workspaces.contains_key(id))?;
            let place = Place::workspace(selected);
            Some(ResolvedPlace { place, how: PlaceReason::SelectedWorkspace })
        })
    }

    /// The workspace of a registered surface overrides the caller's workspace id, which may be stale.
    fn by_ids(&self, caller: &Caller) -> Option<ResolvedPlace> {
        let live = caller.surface.as_ref().and_then(|surface| Some((surface, self.workspace_of(surface)?)));
        if let Some((surface, workspace)) = live {
            let place = Place::surface(workspace.clone(), surface.clone());
            return Some(ResolvedPlace { place, how: PlaceReason::Surface });
        }
        let known = caller.workspace.as_ref().filter(|id| self.workspaces.contains_key(id))?;
        Some(ResolvedPlace { place: Place::workspace(known.clone()), how: PlaceReason::Workspace })
    }

    fn by_tty(&self, caller: &Caller) -> Option<ResolvedPlace> {
        let surface = self.ttys.get(caller.tty.as_ref()?)?;
        let place = Place::surface(self.workspace_of(surface)?.clone(), surface.clone());
        Some(ResolvedPlace { place, how: PlaceReason::Terminal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surfaces() -> SurfaceRegistry {
        let mut surfaces = SurfaceRegistry::default();
        surfaces.register(SurfaceId::new("s1"), WorkspaceId::new("w1"), Some("/dev/pts/1".into()), false);
        surfaces.register(SurfaceId::new("s2"), WorkspaceId::new("w2"), Some("/dev/pts/2".into()), false);
        surfaces.select(Some(WorkspaceId::new("w2")));
        surfaces
    }

    fn caller(workspace: Option<&str>, surface: Option<&str>, tty: Option<&str>, prefer_tty: bool) -> Caller {
        Caller {
            workspace: workspace.map(WorkspaceId::new),
            surface: surface.map(SurfaceId::new),
            tty: tty.map(str::to_owned),
            prefer_tty,
        }
    }

    #[track_caller]
    fn check(caller: &Caller, workspace: &str, surface: Option<&str>) {
        let place = surfaces().resolve(caller).unwrap().place;
        assert_eq!(
            (place.workspace.as_str(), place.surface.as_ref().map(SurfaceId::as_str)),
            (workspace, surface)
        );
    }

    #[test]
    fn ids_first_then_the_tty_then_what_is_selected() {
        check(&caller(Some("w1"), Some("s1"), Some("/dev/pts/2"), false), "w1", Some("s1"));
        check(&caller(None, None, Some("/dev/pts/1"), false), "w1", Some("s1"));
        check(&caller(Some("w1"), None, Some("/dev/pts/2"), false), "w1", None);
        check(&caller(None, None, Some("/dev/pts/9"), false), "w2", None);
        check(&Caller::default(), "w2", None);
    }

    #[test]
    fn a_live_surface_beats_a_stale_workspace_id() {
        check(&caller(Some("gone"), Some("s1"), None, false), "w1", Some("s1"));
        check(&caller(Some("gone"), Some("gone"), Some("/dev/pts/1"), false), "w1", Some("s1"));
    }

    #[test]
    fn inside_tmux_the_tty_beats_inherited_ids() {
        check(&caller(Some("w1"), Some("s1"), Some("/dev/pts/2"), true), "w2", Some("s2"));
        check(&caller(Some("w1"), Some("s1"), Some("/dev/pts/9"), true), "w1", Some("s1"));
    }

    #[test]
    fn a_flood_of_surfaces_pushes_out_the_oldest_ones() {
        let mut surfaces = surfaces();
        let flood = |number: usize| SurfaceId::new(&format!("flood-{number}"));
        for number in 0..MAX_SURFACES {
            let (workspace, tty) = (WorkspaceId::new(&format!("w-{number}")), format!("tty-{number}"));
            let forgotten = surfaces.register(flood(number), workspace.clone(), Some(tty.clone()), false);
            let oldest = ["s1", "s2"].get((number + 2).wrapping_sub(MAX_SURFACES));
            assert_eq!(forgotten, oldest.copied().map(SurfaceId::new), "{number}");
            assert_eq!(surfaces.register(flood(number), workspace, Some(tty), false), None, "it is known");
        }
        assert_eq!(
            surfaces.register(flood(MAX_SURFACES), WorkspaceId::new("w-1"), None, false),
            Some(flood(0))
        );
        for left in [surfaces.surfaces.len(), surfaces.by_number.len()] {
            assert_eq!(left, MAX_SURFACES);
        }
        assert_eq!(surfaces.ttys.len(), MAX_SURFACES - 1);
        assert_eq!(surfaces.workspaces.len(), MAX_SURFACES - 1);
        assert_eq!(surfaces.by_tty(&caller(None, None, Some("/dev/pts/1"), false)), None);
    }

    #[test]
    fn a_terminal_that_another_surface_took_over_stays_with_that_one() {
        let mut surfaces = surfaces();
        surfaces.register(SurfaceId::new("s3"), WorkspaceId::new("w3"), Some("/dev/pts/1".into()), false);
        surfaces.remove(&SurfaceId::new("s1"));
        let found = surfaces.by_tty(&caller(None, None, Some("/dev/pts/1"), false)).unwrap();
        assert_eq!(found.place.surface, Some(SurfaceId::new("s3")));
    }

    #[test]
    fn a_surface_that_has_gone_or_moved_is_not_found_where_it_was() {
        let mut surfaces = surfaces();
        surfaces.register(SurfaceId::new("s1"), WorkspaceId::new("w2"), Some("/dev/pts/7".into()), false);
        assert_eq!(surfaces.by_tty(&caller(None, None, Some("/dev/pts/1"), false)), None);
        assert_eq!(surfaces.workspace_of(&SurfaceId::new("s1")), Some(&WorkspaceId::new("w2")));
        surfaces.remove(&SurfaceId::new("s1"));
        assert_eq!(surfaces.workspace_of(&SurfaceId::new("s1")), None);
        surfaces.select(None);
        assert_eq!(surfaces.resolve(&Caller::default()), None);
    }
}
