//! Hosts on the socket: programs that own surfaces and say what the person looks at. What one reported ends with its
//! connection, so that a host that crashed does not leave a pane looked at for ever.

use std::collections::BTreeMap;

use ringer_core::Event;
use ringer_core::engine::View;
use ringer_core::message::{SurfaceId, WorkspaceId};
use ringer_ipc::ApiError;
use ringer_ipc::host::SurfaceInfo;

use crate::request::{ConnectionId, HostRequest, LooksParams, SurfaceParams};

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
    surfaces: BTreeMap<SurfaceId, SurfaceInfo>,
    /// Whether it ever said what the person looks at. Before that its surfaces may be looked at unnoticed.
    reports_focus: bool,
}

impl AttachedHost {
    fn registration(&self, info: &SurfaceInfo) -> Event {
        registration(info, self.reports_focus)
    }
}

/// What the engine has to know of a surface.
pub(super) fn registration(info: &SurfaceInfo, reports_focus: bool) -> Event {
    Event::Surface {
        surface: info.surface.clone(),
        workspace: info.workspace.clone(),
        tty: info.tty.clone(),
        reports_focus,
    }
}

/// What follows from a host's request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HostChanges {
    /// For the engine.
    pub(super) events: Vec<Event>,
    /// Surfaces that no attached host has any more.
    pub(super) gone: Vec<SurfaceId>,
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
            HostRequest::Attach { name } => {
                check_name("name", &name)?;
                let host = AttachedHost { name, surfaces: BTreeMap::new(), reports_focus: false };
                self.hosts.entry(connection).or_insert(host);
                Ok(HostChanges::default())
            }
            HostRequest::Opened(params) => self.open(connection, params),
            HostRequest::Closed { surface_id } => {
                let surface = SurfaceId::new(&surface_id);
                self.host(connection)?.surfaces.remove(&surface);
                let gone = if self.surface(&surface).is_none() { vec![surface] } else { Vec::new() };
                Ok(HostChanges { events: Vec::new(), gone })
            }
            HostRequest::Looks(params) => self.looks(connection, params),
            HostRequest::Typed => {
                self.host(connection)?;
                Ok(HostChanges { events: vec![Event::Input { host: connection.0 }], gone: Vec::new() })
            }
        }
    }

    fn open(&mut self, connection: ConnectionId, params: SurfaceParams) -> Result<HostChanges, ApiError> {
        check_name("surface_id", &params.surface_id)?;
        check_name("workspace_id", &params.workspace_id)?;
        let host = self.host(connection)?;
        let surface = SurfaceId::new(&params.surface_id);
        if host.surfaces.len() >= MAX_SURFACES && !host.surfaces.contains_key(&surface) {
            return Err(ApiError::new("busy", format!("a host has at most {MAX_SURFACES} surfaces")));
        }
        let info = SurfaceInfo {
            surface: surface.clone(),
            workspace: WorkspaceId::new(&params.workspace_id),
            tty: params.tty,
            host: host.name.clone(),
        };
        let event = host.registration(&info);
        host.surfaces.insert(surface, info);
        Ok(HostChanges { events: vec![event], gone: Vec::new() })
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
        let mut events = Vec::new();
        if !host.reports_focus {
            host.reports_focus = true;
            events.extend(host.surfaces.values().map(|info| host.registration(info)));
        }
        let view = |view: crate::request::ViewParams| View {
            client: view.client,
            surface: SurfaceId::new(&view.surface_id),
        };
        let views = params.views.into_iter().map(view).collect();
        let present = params.present.unwrap_or(true);
        // The views first: what a person who comes back sees at once is not in the digest.
        events.push(Event::Looks { host: connection.0, views, present });
        events.push(Event::Presence { host: connection.0, present: params.present });
        Ok(HostChanges { events, gone: Vec::new() })
    }

    /// A connection has ended, whether it was a host or not.
    pub(super) fn detach(&mut self, connection: ConnectionId) -> HostChanges {
        let Some(host) = self.hosts.remove(&connection) else { return HostChanges::default() };
        let gone = host.surfaces.into_keys().filter(|surface| self.surface(surface).is_none()).collect();
        HostChanges { events: vec![Event::HostGone { host: connection.0 }], gone }
    }

    /// All surfaces of these hosts.
    pub(super) fn surfaces(&self) -> impl Iterator<Item = &SurfaceInfo> {
        self.hosts.values().flat_map(|host| host.surfaces.values())
    }

    /// A surface of one of these hosts.
    pub(super) fn surface(&self, surface: &SurfaceId) -> Option<&SurfaceInfo> {
        self.hosts.values().find_map(|host| host.surfaces.get(surface))
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
    use crate::request::ViewParams;

    const ONE: ConnectionId = ConnectionId(1);
    const TWO: ConnectionId = ConnectionId(2);

    fn attach(hosts: &mut AttachedHosts, connection: ConnectionId) {
        hosts.handle(connection, HostRequest::Attach { name: "scripted".to_owned() }).unwrap();
    }

    fn open(hosts: &mut AttachedHosts, connection: ConnectionId, surface: &str) -> Vec<Event> {
        let (surface_id, workspace_id) = (surface.to_owned(), "w".to_owned());
        let params = SurfaceParams { surface_id, workspace_id, tty: None };
        hosts.handle(connection, HostRequest::Opened(params)).unwrap().events
    }

    fn looks(surface: &str) -> HostRequest {
        let view = ViewParams { client: "main".to_owned(), surface_id: surface.to_owned() };
        HostRequest::Looks(LooksParams { views: vec![view], present: None })
    }

    fn reports(event: &Event) -> Option<bool> {
        match event {
            Event::Surface { reports_focus, .. } => Some(*reports_focus),
            _ => None,
        }
    }

    #[test]
    fn focus_is_known_from_the_first_report_on() {
        let mut hosts = AttachedHosts::default();
        assert_eq!(hosts.handle(ONE, looks("a")).unwrap_err().code, "invalid_request");
        attach(&mut hosts, ONE);
        assert_eq!(reports(&open(&mut hosts, ONE, "a")[0]), Some(false));
        let events = hosts.handle(ONE, looks("a")).unwrap().events;
        assert_eq!((reports(&events[0]), events.len()), (Some(true), 3));
        assert_eq!(hosts.handle(ONE, looks("a")).unwrap().events.len(), 2);
        assert_eq!(reports(&open(&mut hosts, ONE, "b")[0]), Some(true));
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
        let params =
            SurfaceParams { surface_id: "one more".to_owned(), workspace_id: "w".to_owned(), tty: None };
        assert_eq!(hosts.handle(ONE, HostRequest::Opened(params)).unwrap_err().code, "busy");
        let many = |count: usize| {
            let view = |_| ViewParams { client: "c".to_owned(), surface_id: "0".to_owned() };
            HostRequest::Looks(LooksParams { views: (0..count).map(view).collect(), present: None })
        };
        assert!(hosts.handle(ONE, many(MAX_VIEWS)).is_ok());
        assert_eq!(hosts.handle(ONE, many(MAX_VIEWS + 1)).unwrap_err().code, "invalid_params");
        assert_eq!(hosts.handle(ONE, looks(&"x".repeat(MAX_NAME + 1))).unwrap_err().code, "invalid_params");
        assert_eq!(hosts.handle(ONE, looks("")).unwrap_err().code, "invalid_params");
    }
}
