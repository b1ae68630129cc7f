//! Finds out which places can be focused, without asking a host or a part.

use std::collections::{HashMap, HashSet};

use ringer_core::message::{Place, TmuxSurface};
use ringer_journal::ProcessStat;

use super::Surfaces;

/// Checks many places, and checks each tmux server only once.
pub(in crate::state) struct Reachable<'a> {
    surfaces: &'a Surfaces,
    /// The pids of the tmux servers whose panes are all attached by a host.
    hosted: HashSet<&'a str>,
    /// True for the tmux servers that are still running.
    runs: HashMap<String, bool>,
}

impl Surfaces {
    /// Returns a checker of places.
    pub(in crate::state) fn reachable(&self) -> Reachable<'_> {
        let own = self.attached.surfaces().filter(|surface| self.attached.focusing(surface).is_some());
        let hosted = own.filter_map(|surface| Some(surface.tmux()?.server)).collect();
        Reachable { surfaces: self, hosted, runs: HashMap::new() }
    }
}

impl Reachable<'_> {
    /// Returns true if a place can be focused.
    pub(in crate::state) fn has(&mut self, place: &Place) -> bool {
        // `ringer jump` connects to the other machine.
        if place.workspace.is_on_other_machine() {
            return true;
        }
        let Some(surface) = &place.surface else { return false };
        self.surfaces.attached.focusing(surface).is_some()
            || surface.tmux().is_some_and(|pane| self.may_have(pane))
    }

    /// Returns true if a running tmux server without a host may have the pane. With a host, all its existing panes are attached.
    fn may_have(&mut self, TmuxSurface { server, .. }: TmuxSurface<'_>) -> bool {
        let runs = || server.parse().is_ok_and(|pid: u32| ProcessStat::of(pid).is_some());
        !self.hosted.contains(server) && *self.runs.entry(server.to_owned()).or_insert_with(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FocusOutcome, FocusTarget};
    use super::*;
    use crate::hosts::protocol::ConnectionId;
    use crate::hosts::protocol::{HostAbilities, HostRequest, SurfaceParams};
    use ringer_core::Event;
    use ringer_core::message::{SurfaceId, WorkspaceId};

    const HOST: ConnectionId = ConnectionId(1);

    fn surfaces(can_focus: bool, opened: &[&str]) -> Surfaces {
        let mut surfaces = Surfaces::new(true);
        let abilities = HostAbilities { can_focus, draws_rings: true, emulates: false };
        surfaces.handle_host(HOST, HostRequest::Attach { name: "h".to_owned(), abilities }).unwrap();
        let params = |id: &&str| serde_json::from_value(serde_json::json!({ "surface_id": id })).unwrap();
        let opened: Vec<SurfaceParams> = opened.iter().map(params).collect();
        surfaces.handle_host(HOST, HostRequest::Opened(opened)).unwrap();
        surfaces
    }

    fn reaches(surfaces: &Surfaces, workspace: &str, surface: Option<&str>) -> bool {
        let place = Place { workspace: WorkspaceId::new(workspace), surface: surface.map(SurfaceId::new) };
        surfaces.reachable().has(&place)
    }

    #[test]
    fn a_surface_that_is_open_can_be_reached_and_a_closed_one_cannot() {
        let mut surfaces = surfaces(true, &["pane:a", "pane:b"]);
        assert!(reaches(&surfaces, "panes:1", Some("pane:a")));
        let request = HostRequest::Closed { surface_id: "pane:a".to_owned() };
        let closed = surfaces.handle_host(HOST, request).unwrap().events;
        assert!(closed.contains(&Event::SurfaceClosed(SurfaceId::new("pane:a"))), "{closed:?}");
        assert!(
            !reaches(&surfaces, "panes:1", Some("pane:a")) && reaches(&surfaces, "panes:1", Some("pane:b"))
        );
        let gone = surfaces.detach(HOST).events;
        assert!(gone.contains(&Event::SurfaceGone(SurfaceId::new("pane:b"))), "it may come back: {gone:?}");
        assert!(!reaches(&surfaces, "panes:1", Some("pane:b")), "its host is gone");
        for elsewhere in [None, Some("tty:/dev/pts/1@5")] {
            assert!(!reaches(&surfaces, "repo:x", elsewhere), "{elsewhere:?}");
        }
        assert!(
            reaches(&surfaces, "machine:box", None)
                && reaches(&surfaces, "machine:box", Some("machine:box:pane:a"))
        );
    }

    #[test]
    fn why_a_place_cannot_be_reached_is_said_plainly() {
        let check = |surfaces: &Surfaces, workspace: &str, surface: Option<&str>, why: &str, hint| {
            let place =
                Place { workspace: WorkspaceId::new(workspace), surface: surface.map(SurfaceId::new) };
            let FocusOutcome::Known(Err(found)) = surfaces.focus(&place) else { panic!("{place:?}") };
            assert_eq!((found.why.as_str(), found.hint.as_deref()), (why, hint));
        };
        let mut surfaces = surfaces(true, &["pane:b"]);
        check(&surfaces, "panes:1", Some("pane:a"), "its pane is closed", None);
        check(&surfaces, "w", Some("other:a"), "its terminal is closed", None);
        check(&surfaces, "repo:x", None, "it came from no terminal", None);
        // After a restart, a terminal that an earlier hub knew is found by its id.
        let why = |tty: &str| {
            format!(
                "it came from {tty}, and Ringer does not know the window of that terminal (`ringer doctor` there says why)"
            )
        };
        check(&surfaces, "w", Some("tty:/dev/pts/7@5"), &why("/dev/pts/7"), None);
        check(&surfaces, "w", Some("tmux:nonsense"), &why("tmux:nonsense"), None);
        let pane = SurfaceId::new("tmux:/tmp/s:77:%3");
        let place = Place::surface(WorkspaceId::new("w"), pane.clone());
        assert_eq!(surfaces.focus(&place), FocusOutcome::Ask(FocusTarget::PaneControl, pane));
        check(&surfaces, "machine:box", Some("machine:box:pane:a"), "it came from another machine", None);
        surfaces.detach(HOST);
        check(&surfaces, "panes:1", Some("pane:a"), "no panes are open", Some("ringer attach"));
    }

    #[test]
    fn a_pane_of_tmux_may_be_there_unless_its_host_does_not_have_it_or_its_server_has_ended() {
        let own = std::process::id();
        let [open, other] = ["%1", "%2"].map(|pane| format!("tmux:/tmp/s:{own}:{pane}"));
        let check = |surfaces: &Surfaces, expected| {
            assert_eq!((reaches(surfaces, "w", Some(&open)), reaches(surfaces, "w", Some(&other))), expected);
        };
        check(&surfaces(true, &[]), (true, true));
        check(&surfaces(true, &[&open]), (true, false));
        // `ringer run` in a pane attaches only that pane.
        check(&surfaces(false, &[&open]), (true, true));
        assert!(
            !reaches(&surfaces(true, &[]), "w", Some("tmux:/tmp/s:4194305:%1")),
            "no process has such a number"
        );
    }
}
