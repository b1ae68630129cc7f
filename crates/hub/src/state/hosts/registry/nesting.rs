//! Surfaces inside surfaces of other hosts: tmux panes in a pane of another tmux, or in the window of a terminal.

use std::collections::{BTreeSet, VecDeque};

use ringer_core::Event;
use ringer_core::engine::View;
use ringer_core::message::SurfaceId;
use ringer_ipc::ApiError;

use super::{AttachedHost, AttachedHosts, HostChanges};
use crate::hosts::protocol::ConnectionId;

/// The greatest nesting depth. Hosts are not trusted: they may even report that two surfaces contain each other.
const MAX_DEPTH: usize = 8;

impl AttachedHosts {
    /// Returns the surface around a surface. A parent named by its device may be a pane of another host, which has that device.
    fn parent_of(&self, surface: &SurfaceId) -> Option<SurfaceId> {
        let parent = self.known(surface).find_map(|own| own.parent.as_ref())?;
        let is_attached = self.host_of(parent).is_some();
        let device = device_of(parent).filter(|_| !is_attached);
        let pane = device.and_then(|device| self.nesting.surface_at(device));
        Some(pane.unwrap_or(parent).clone())
    }

    /// Returns the surfaces around a surface, the nearest first.
    pub(in crate::state) fn around(&self, surface: &SurfaceId) -> Vec<SurfaceId> {
        let mut around: Vec<SurfaceId> = Vec::new();
        let mut inner = surface;
        while let Some(outer) = self.parent_of(inner) {
            if outer == *surface || around.contains(&outer) || around.len() == MAX_DEPTH {
                break;
            }
            around.push(outer);
            inner = &around[around.len() - 1];
        }
        around
    }

    /// Returns the surface to whose terminal notifications are written: the nearest one that no host emulates, starting with the
    /// surface itself.
    pub(in crate::state) fn real_terminal(&self, surface: &SurfaceId) -> Option<SurfaceId> {
        let is_real = |own: &SurfaceId| !self.hosts_of(own).any(|(_, host)| host.abilities.emulates);
        if is_real(surface) { Some(surface.clone()) } else { self.around(surface).into_iter().find(is_real) }
    }

    /// Returns all hosts of a surface, and whether each shows its ring: those that draw rings, or all if none does. For example,
    /// the window of a terminal shows no ring while `ringer run` in it does.
    pub(in crate::state) fn ringing_hosts(
        &self,
        surface: &SurfaceId,
    ) -> impl Iterator<Item = (ConnectionId, bool)> {
        let is_drawn = self.drawing(surface).is_some();
        self.hosts_of(surface)
            .map(move |(connection, host)| (connection, host.abilities.draws_rings || !is_drawn))
    }

    /// Returns the surfaces directly inside a surface.
    fn right_inside<'a>(&'a self, surface: &'a SurfaceId) -> impl Iterator<Item = &'a SurfaceId> {
        let device = self.known(surface).find_map(|own| own.tty.as_deref());
        let terminals = device.into_iter().flat_map(|device| self.nesting.terminals_at(device));
        let named = [surface].into_iter().chain(terminals);
        named
            .flat_map(|outer| self.nesting.named_inside(outer))
            .filter(move |inner| self.parent_of(inner).as_ref() == Some(surface))
    }

    /// Returns true if there is a surface inside this one.
    pub(in crate::state) fn has_inside(&self, surface: &SurfaceId) -> bool {
        self.right_inside(surface).any(|inner| inner != surface)
    }

    /// Returns all surfaces inside a surface.
    pub(in crate::state) fn inside(&self, surface: &SurfaceId) -> BTreeSet<SurfaceId> {
        let mut inside = BTreeSet::new();
        let mut next = VecDeque::from([(surface.clone(), 0)]);
        while let Some((outer, depth)) = next.pop_front() {
            for inner in self.right_inside(&outer) {
                if inner != surface && depth < MAX_DEPTH && inside.insert(inner.clone()) {
                    next.push_back((inner.clone(), depth + 1));
                }
            }
        }
        inside
    }

    /// Returns the surfaces around any of these.
    pub(super) fn around_all<'a>(
        &self,
        surfaces: impl IntoIterator<Item = &'a SurfaceId>,
    ) -> BTreeSet<SurfaceId> {
        surfaces.into_iter().flat_map(|surface| self.around(surface)).collect()
    }

    /// Returns events for the hosts whose views or presence changed. A surface is looked at only if all surfaces around it are.
    /// `used` is the host in which the person caused the change.
    pub(super) fn changed_views(&mut self, used: Option<ConnectionId>) -> Vec<Event> {
        let looks = |host: &AttachedHost| {
            let shown = host.views.iter().filter(|view| self.is_shown(&view.surface));
            (shown.cloned().collect::<Vec<View>>(), host.is_present)
        };
        let all = self.hosts.iter().map(|(connection, host)| (*connection, looks(host)));
        let changed: Vec<_> =
            all.filter(|(connection, looks)| self.hosts[connection].reported != *looks).collect();
        let mut events = Vec::new();
        for (connection, (views, present)) in changed {
            if let Some(host) = self.hosts.get_mut(&connection) {
                host.reported = (views.clone(), present);
            }
            let by_person = used == Some(connection);
            events.push(Event::Looks { host: connection.0, views, present, by_person });
        }
        events
    }

    /// Handles a glance at a surface. It counts only if the surfaces around it are looked at.
    pub(super) fn glanced(
        &mut self,
        connection: ConnectionId,
        surface_id: &str,
        at_ms: i64,
    ) -> Result<HostChanges, ApiError> {
        let surface = SurfaceId::new(surface_id);
        let is_own = self.host(connection)?.surfaces.contains_key(&surface);
        let is_seen = is_own && self.is_shown(&surface);
        let events = is_seen.then_some(Event::Glanced { surface, at_ms }).into_iter().collect();
        Ok(HostChanges { events, ..HostChanges::default() })
    }

    /// Returns true if the surfaces around a surface are looked at, as far as their hosts report it.
    fn is_shown(&self, surface: &SurfaceId) -> bool {
        let is_viewed = |outer: &SurfaceId| {
            let hosts = self.hosts.values().filter(|host| host.is_present);
            hosts.flat_map(|host| &host.views).any(|view| view.surface == *outer)
        };
        self.around(surface).iter().all(|outer| !self.reports_focus(outer) || is_viewed(outer))
    }
}

/// The device in the id of a plain terminal.
fn device_of(surface: &SurfaceId) -> Option<&str> {
    surface.tty().map(|plain| plain.tty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::protocol::{HostAbilities, HostRequest, SurfaceParams, ViewParams, ViewsParams};
    use proptest::prelude::*;

    const OUTER: ConnectionId = ConnectionId(1);
    const INNER: ConnectionId = ConnectionId(2);

    fn hosts() -> AttachedHosts {
        let mut hosts = AttachedHosts::default();
        for connection in [OUTER, INNER] {
            let abilities = HostAbilities { can_focus: false, draws_rings: true, emulates: false };
            hosts.handle(connection, HostRequest::Attach { name: "scripted".to_owned(), abilities }).unwrap();
        }
        hosts
    }

    fn open(
        hosts: &mut AttachedHosts,
        connection: ConnectionId,
        id: &str,
        tty: Option<&str>,
        parent: Option<&str>,
    ) -> Vec<Event> {
        let surface = SurfaceParams {
            surface_id: id.to_owned(),
            workspace_id: None,
            tty: tty.map(str::to_owned),
            title: None,
            place: None,
            parent: parent.map(str::to_owned),
            reports_looks: true,
        };
        hosts.handle(connection, HostRequest::Opened(vec![surface])).unwrap().events
    }

    fn looks(hosts: &mut AttachedHosts, connection: ConnectionId, surfaces: &[&str]) -> Vec<(u64, usize)> {
        let view = |surface: &&str| ViewParams { client: "c".to_owned(), surface_id: (*surface).to_owned() };
        let views = surfaces.iter().map(view).collect();
        let looks =
            HostRequest::Views(ViewsParams { views, is_complete: true, present: None, by_person: true });
        seen(&hosts.handle(connection, looks).unwrap().events)
    }

    /// The number of viewed surfaces of each host in these events.
    fn seen(events: &[Event]) -> Vec<(u64, usize)> {
        let looks = events.iter().filter_map(|event| match event {
            Event::Looks { host, views, .. } => Some((*host, views.len())),
            _ => None,
        });
        looks.collect()
    }

    #[test]
    fn a_surface_is_looked_at_if_the_one_around_it_is() {
        let mut hosts = hosts();
        open(&mut hosts, OUTER, "outer", Some("/dev/pts/1"), None);
        open(&mut hosts, OUTER, "beside", None, None);
        open(&mut hosts, INNER, "inner", None, Some("tty:/dev/pts/1@77"));
        assert_eq!(hosts.around(&SurfaceId::new("inner")), [SurfaceId::new("outer")], "by its device");
        assert_eq!(looks(&mut hosts, INNER, &["inner"]), [(2, 1)], "the outer host has not said anything");
        assert_eq!(looks(&mut hosts, OUTER, &["beside"]), [(1, 1), (2, 0)]);
        assert_eq!(looks(&mut hosts, OUTER, &["outer"]), [(1, 1), (2, 1)]);
        looks(&mut hosts, OUTER, &["beside"]);
        assert_eq!(seen(&hosts.detach(OUTER).events), [(2, 1)], "nothing is known of what is around it");
    }

    #[test]
    fn a_surface_is_glanced_at_only_with_the_one_around_it() {
        let mut hosts = hosts();
        open(&mut hosts, OUTER, "outer", None, None);
        open(&mut hosts, INNER, "inner", None, Some("outer"));
        let mut glanced = |connection, surface: &str| {
            let surface_id = surface.to_owned();
            hosts.handle(connection, HostRequest::Glanced { surface_id, at_ms: 7 }).unwrap().events.len()
        };
        assert_eq!((glanced(INNER, "inner"), glanced(OUTER, "inner")), (1, 0), "of its own surfaces alone");
        looks(&mut hosts, OUTER, &[]);
        let request = HostRequest::Glanced { surface_id: "inner".to_owned(), at_ms: 7 };
        assert_eq!(hosts.handle(INNER, request).unwrap().events, []);
    }

    #[test]
    fn one_that_moves_elsewhere_is_looked_at_there() {
        let mut hosts = hosts();
        open(&mut hosts, OUTER, "one", None, None);
        open(&mut hosts, OUTER, "two", None, None);
        looks(&mut hosts, OUTER, &["two"]);
        open(&mut hosts, INNER, "inner", None, Some("one"));
        assert_eq!(looks(&mut hosts, INNER, &["inner"]), [], "it shows nothing to the person");
        assert_eq!(seen(&open(&mut hosts, INNER, "inner", None, Some("two"))), [(2, 1)]);
        assert_eq!(hosts.inside(&SurfaceId::new("two")).len(), 1);
        assert_eq!(hosts.inside(&SurfaceId::new("one")).len(), 0);
    }

    proptest! {
        #[test]
        fn whatever_hosts_say_about_one_another_ends(links in prop::collection::vec((0_u8..12, 0_u8..12), 0..40)) {
            let mut hosts = hosts();
            for (inner, outer) in links {
                open(&mut hosts, OUTER, &inner.to_string(), None, Some(&outer.to_string()));
                let surface = SurfaceId::new(&inner.to_string());
                let around = hosts.around(&surface);
                prop_assert!(around.len() <= MAX_DEPTH && !around.contains(&surface));
                prop_assert_eq!(around.iter().collect::<BTreeSet<_>>().len(), around.len());
                for outer in &around {
                    prop_assert!(hosts.inside(outer).contains(&surface) && hosts.has_inside(outer));
                }
            }
        }
    }
}
