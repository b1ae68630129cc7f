//! Hosts on the socket: programs that own surfaces and say what the person looks at. What one reported ends with its
//! connection, so that a host that crashed does not leave a pane looked at for ever.

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::Event;
use ringer_core::engine::View;
use ringer_core::message::{Place, Scope, SurfaceId, WorkspaceId};
use ringer_ipc::ApiError;
use ringer_ipc::host::SurfaceInfo;

use crate::host_request::{HostRequest, LooksParams, SurfaceParams, ViewParams};
use crate::request::ConnectionId;

/// Surfaces that one host may have: more than a person opens. The engine knows as many of all hosts.
const MAX_SURFACES: usize = 4096;
/// Clients of one host that may show a surface.
const MAX_VIEWS: usize = 256;
/// The longest name of a host or a client, and the longest id, in bytes.
const MAX_NAME: usize = 256;

/// A host, and what it told.
#[derive(Debug)]
struct AttachedHost {
    name: String,
    surfaces: BTreeMap<SurfaceId, AttachedSurface>,
    /// Whether it said what the person looks at, and would know of all of it. Otherwise its surfaces may be looked at unnoticed.
    reports_focus: bool,
    /// Whether it goes to a surface when it is asked to.
    can_focus: bool,
}

/// A surface, as an attached host knows it.
#[derive(Debug)]
struct AttachedSurface {
    workspace: Option<WorkspaceId>,
    tty: Option<String>,
    title: Option<String>,
    place: Option<String>,
}

impl AttachedHost {
    fn info(&self, surface: &SurfaceId, elsewhere: Option<SurfaceInfo>) -> Option<SurfaceInfo> {
        let own = self.surfaces.get(surface)?;
        let workspace = own.workspace.clone().or(elsewhere.map(|info| info.workspace));
        Some(SurfaceInfo {
            surface: surface.clone(),
            workspace: workspace.unwrap_or_else(|| Place::own_workspace(Scope::global().as_str()).workspace),
            tty: own.tty.clone(),
            host: self.name.clone(),
            title: own.title.clone(),
            place: own.place.clone(),
        })
    }
}

/// What follows from a host's request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HostChanges {
    /// Surfaces of which the engine has to know something else.
    pub(super) changed: Vec<SurfaceId>,
    /// For the engine, after them.
    pub(super) events: Vec<Event>,
    /// Surfaces that no attached host has any more.
    pub(super) gone: Vec<SurfaceId>,
    /// A surface that is unread, and whether it was so in the session before.
    pub(super) unread: Option<(SurfaceId, bool)>,
}

/// The hosts that are connected.
#[derive(Debug, Default)]
pub(super) struct AttachedHosts {
    hosts: BTreeMap<ConnectionId, AttachedHost>,
}

impl AttachedHosts {
    /// Handles what a host sent.
    pub(super) fn handle(
        &mut self,
        connection: ConnectionId,
        request: HostRequest,
    ) -> Result<HostChanges, ApiError> {
        match request {
            HostRequest::Attach { name, can_focus } => {
                check_name("name", &name)?;
                let surfaces = BTreeMap::new();
                let host = AttachedHost { name, surfaces, reports_focus: false, can_focus };
                self.hosts.entry(connection).or_insert(host);
                Ok(HostChanges::default())
            }
            HostRequest::Opened(surfaces) => self.open(connection, surfaces),
            HostRequest::Closed { surface_id } => {
                let surface = SurfaceId::new(&surface_id);
                self.host(connection)?.surfaces.remove(&surface);
                let gone = if self.host_of(&surface).is_none() { vec![surface] } else { Vec::new() };
                Ok(HostChanges { gone, ..HostChanges::default() })
            }
            HostRequest::Looks(params) => self.looks(connection, params),
            HostRequest::Unread { surface_id, is_restored } => {
                let host = self.host(connection)?;
                let surface = SurfaceId::new(&surface_id);
                if !host.surfaces.contains_key(&surface) {
                    return Err(ApiError::params(format!("this host has no surface {surface_id:?}")));
                }
                Ok(HostChanges { unread: Some((surface, is_restored)), ..HostChanges::default() })
            }
            // It changes nothing that is known of the host.
            HostRequest::Focused { .. } => self.host(connection).map(|_| HostChanges::default()),
            HostRequest::Typed => {
                self.host(connection)?;
                let events = vec![Event::Input { host: connection.0 }];
                Ok(HostChanges { events, ..HostChanges::default() })
            }
        }
    }

    /// All of them or none.
    fn open(
        &mut self,
        connection: ConnectionId,
        opened: Vec<SurfaceParams>,
    ) -> Result<HostChanges, ApiError> {
        let host = self.host(connection)?;
        for params in &opened {
            check_name("surface_id", &params.surface_id)?;
            for (what, text) in
                [("workspace_id", &params.workspace_id), ("title", &params.title), ("place", &params.place)]
            {
                text.as_deref().map_or(Ok(()), |text| check_name(what, text))?;
            }
        }
        let ids: Vec<SurfaceId> = opened.iter().map(|params| SurfaceId::new(&params.surface_id)).collect();
        let new: BTreeSet<&SurfaceId> = ids.iter().filter(|id| !host.surfaces.contains_key(*id)).collect();
        if host.surfaces.len() + new.len() > MAX_SURFACES {
            return Err(ApiError::new("busy", format!("a host has at most {MAX_SURFACES} surfaces")));
        }
        for (id, params) in ids.iter().zip(opened) {
            let workspace = params.workspace_id.as_deref().map(WorkspaceId::new);
            let SurfaceParams { tty, title, place, .. } = params;
            host.surfaces.insert(id.clone(), AttachedSurface { workspace, tty, title, place });
        }
        Ok(HostChanges { changed: ids, ..HostChanges::default() })
    }

    fn looks(&mut self, connection: ConnectionId, params: LooksParams) -> Result<HostChanges, ApiError> {
        if params.views.len() > MAX_VIEWS {
            return Err(ApiError::params(format!("a host has at most {MAX_VIEWS} views")));
        }
        for view in &params.views {
            check_name("client", &view.client)?;
            check_name("surface_id", &view.surface_id)?;
        }
        let host = self.host(connection)?;
        let before = std::mem::replace(&mut host.reports_focus, params.is_complete);
        let changed =
            if before == params.is_complete { Vec::new() } else { host.surfaces.keys().cloned().collect() };
        let view = |view: ViewParams| View { client: view.client, surface: SurfaceId::new(&view.surface_id) };
        let views = params.views.into_iter().map(view).collect();
        let present = params.present.unwrap_or(true);
        // The views first: what a person who comes back sees at once is not in the digest.
        let looks = Event::Looks { host: connection.0, views, present };
        let events = vec![looks, Event::Presence { host: connection.0, present: params.present }];
        Ok(HostChanges { changed, events, ..HostChanges::default() })
    }

    /// A connection has ended, whether it was a host or not.
    pub(super) fn detach(&mut self, connection: ConnectionId) -> HostChanges {
        let Some(host) = self.hosts.remove(&connection) else { return HostChanges::default() };
        let gone = host.surfaces.into_keys().filter(|surface| self.host_of(surface).is_none()).collect();
        let events = vec![Event::HostGone { host: connection.0 }];
        HostChanges { events, gone, ..HostChanges::default() }
    }

    /// All connected hosts.
    pub(super) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.hosts.keys().copied()
    }

    /// All surfaces of these hosts.
    pub(super) fn surfaces(&self) -> impl Iterator<Item = &SurfaceId> {
        self.hosts.values().flat_map(|host| host.surfaces.keys())
    }

    /// The host that has a surface.
    pub(super) fn host_of(&self, surface: &SurfaceId) -> Option<ConnectionId> {
        let mut hosts = self.hosts.iter();
        hosts.find(|(_, host)| host.surfaces.contains_key(surface)).map(|(connection, _)| *connection)
    }

    /// A surface of one of these hosts. `elsewhere` is what another one knows of it: a host may leave out the workspace.
    pub(super) fn info(&self, surface: &SurfaceId, elsewhere: Option<SurfaceInfo>) -> Option<SurfaceInfo> {
        self.hosts.get(&self.host_of(surface)?)?.info(surface, elsewhere)
    }

    /// The host that goes to a surface when it is asked to: its connection and its name.
    pub(super) fn focusing(&self, surface: &SurfaceId) -> Option<(ConnectionId, &str)> {
        let connection = self.host_of(surface)?;
        let host = self.hosts.get(&connection).filter(|host| host.can_focus)?;
        Some((connection, &host.name))
    }

    /// The name of an attached host.
    pub(super) fn name(&self, connection: ConnectionId) -> Option<&str> {
        self.hosts.get(&connection).map(|host| host.name.as_str())
    }

    /// Whether the host of a surface says in which workspace it stands.
    pub(super) fn names_workspace(&self, surface: &SurfaceId) -> bool {
        let host = self.host_of(surface).and_then(|connection| self.hosts.get(&connection));
        host.and_then(|host| host.surfaces.get(surface)).is_some_and(|own| own.workspace.is_some())
    }

    /// Whether the host of a surface says what the person looks at.
    pub(super) fn reports_focus(&self, surface: &SurfaceId) -> bool {
        let host = self.host_of(surface).and_then(|connection| self.hosts.get(&connection));
        host.is_some_and(|host| host.reports_focus)
    }

    fn host(&mut self, connection: ConnectionId) -> Result<&mut AttachedHost, ApiError> {
        let missing =
            || ApiError::new("invalid_request", "this connection is no host: send host.attach first");
        self.hosts.get_mut(&connection).ok_or_else(missing)
    }
}

fn check_name(what: &str, name: &str) -> Result<(), ApiError> {
    if name.is_empty() {
        return Err(ApiError::params(format!("{what} is empty")));
    }
    if name.len() > MAX_NAME {
        return Err(ApiError::params(format!("{what} has {} bytes; the limit is {MAX_NAME}", name.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnectionId = ConnectionId(1);
    const TWO: ConnectionId = ConnectionId(2);

    fn attach(hosts: &mut AttachedHosts, connection: ConnectionId) {
        hosts
            .handle(connection, HostRequest::Attach { name: "scripted".to_owned(), can_focus: false })
            .unwrap();
    }

    fn surface_of(id: &str) -> SurfaceParams {
        let workspace_id = Some("w".to_owned());
        SurfaceParams { surface_id: id.to_owned(), workspace_id, tty: None, title: None, place: None }
    }

    fn open(hosts: &mut AttachedHosts, connection: ConnectionId, surface: &str) -> Vec<SurfaceId> {
        hosts.handle(connection, HostRequest::Opened(vec![surface_of(surface)])).unwrap().changed
    }

    fn looks(surface: &str) -> HostRequest {
        let view = ViewParams { client: "main".to_owned(), surface_id: surface.to_owned() };
        HostRequest::Looks(LooksParams { views: vec![view], is_complete: true, present: None })
    }

    #[test]
    fn focus_is_known_from_the_first_report_on() {
        let mut hosts = AttachedHosts::default();
        assert_eq!(hosts.handle(ONE, looks("a")).unwrap_err().code, "invalid_request");
        attach(&mut hosts, ONE);
        let surface = SurfaceId::new("a");
        assert_eq!(open(&mut hosts, ONE, "a"), std::slice::from_ref(&surface));
        assert!(!hosts.reports_focus(&surface));
        assert_eq!(hosts.handle(ONE, looks("a")).unwrap().changed, std::slice::from_ref(&surface));
        assert!(hosts.reports_focus(&surface));
        assert_eq!(hosts.handle(ONE, looks("a")).unwrap().changed, []);
        let incomplete = LooksParams { views: Vec::new(), is_complete: false, present: None };
        assert_eq!(
            hosts.handle(ONE, HostRequest::Looks(incomplete)).unwrap().changed,
            std::slice::from_ref(&surface)
        );
        assert!(!hosts.reports_focus(&surface), "a terminal does not report");
    }

    #[test]
    fn a_host_may_leave_the_workspace_to_what_its_surfaces_send() {
        let mut hosts = AttachedHosts::default();
        attach(&mut hosts, ONE);
        let surface = SurfaceId::new("a");
        let params = SurfaceParams { workspace_id: None, title: Some("vim".to_owned()), ..surface_of("a") };
        hosts.handle(ONE, HostRequest::Opened(vec![params])).unwrap();
        let workspace = |elsewhere| hosts.info(&surface, elsewhere).unwrap().workspace.to_string();
        assert!(!hosts.names_workspace(&surface));
        assert_eq!(workspace(None), "repo:global");
        let elsewhere = SurfaceInfo {
            surface: surface.clone(),
            workspace: WorkspaceId::new("repo:x"),
            tty: None,
            host: "terminal".to_owned(),
            title: None,
            place: None,
        };
        assert_eq!(workspace(Some(elsewhere)), "repo:x");
        assert_eq!(hosts.info(&surface, None).unwrap().title.as_deref(), Some("vim"));
    }

    #[test]
    fn what_a_host_said_ends_with_its_connection() {
        let mut hosts = AttachedHosts::default();
        for (connection, surface) in [(ONE, "a"), (ONE, "shared"), (TWO, "shared")] {
            attach(&mut hosts, connection);
            open(&mut hosts, connection, surface);
        }
        let changes = hosts.detach(ONE);
        assert_eq!(changes.gone, [SurfaceId::new("a")]);
        assert_eq!(changes.events, [Event::HostGone { host: 1 }]);
        assert_eq!(hosts.detach(ONE), HostChanges::default());
        assert_eq!(hosts.surfaces().count(), 1);
        let closed = HostRequest::Closed { surface_id: "shared".to_owned() };
        assert_eq!(hosts.handle(TWO, closed).unwrap().gone, [SurfaceId::new("shared")]);
    }

    #[test]
    fn what_a_host_may_say_is_bounded() {
        let mut hosts = AttachedHosts::default();
        attach(&mut hosts, ONE);
        for number in 0..MAX_SURFACES {
            open(&mut hosts, ONE, &number.to_string());
        }
        let one_more = HostRequest::Opened(vec![surface_of("0"), surface_of("one more")]);
        assert_eq!(hosts.handle(ONE, one_more).unwrap_err().code, "busy");
        let many = |count: usize| {
            let view = |_| ViewParams { client: "c".to_owned(), surface_id: "0".to_owned() };
            HostRequest::Looks(LooksParams {
                views: (0..count).map(view).collect(),
                is_complete: true,
                present: None,
            })
        };
        assert!(hosts.handle(ONE, many(MAX_VIEWS)).is_ok());
        assert_eq!(hosts.handle(ONE, many(MAX_VIEWS + 1)).unwrap_err().code, "invalid_params");
        assert_eq!(hosts.handle(ONE, looks(&"x".repeat(MAX_NAME + 1))).unwrap_err().code, "invalid_params");
        assert_eq!(hosts.handle(ONE, looks("")).unwrap_err().code, "invalid_params");
    }
}
