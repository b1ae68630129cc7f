//! Attached hosts: programs on the socket that own surfaces and report what the person looks at. A host's reports end with its
//! connection, so that a pane of a crashed host does not count as looked at forever.

mod nesting;
mod nesting_index;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nesting_index::NestingIndex;
use ringer_core::Event;
use ringer_core::engine::View;
use ringer_core::message::{Place, Scope, SurfaceId, WorkspaceId};
use ringer_ipc::ApiError;

use crate::hosts::protocol::{
    ConnectionId, HostAbilities, HostRequest, SurfaceInfo, SurfaceParams, ViewParams, ViewsParams,
};

/// The most surfaces of one host: more than a person opens. The engine has the same limit for all hosts together.
const MAX_SURFACES: usize = 4096;
/// The most clients of one host that show a surface.
const MAX_VIEWS: usize = 256;
/// The longest name of a host or a client, and the longest id, in bytes.
const MAX_NAME: usize = 256;
/// The longest display text, in bytes. A longer one is cut off rather than refused, so that its surface still exists.
const MAX_TEXT: usize = 1024;

/// A host and its reports.
#[derive(Debug)]
struct AttachedHost {
    name: String,
    surfaces: BTreeMap<SurfaceId, AttachedSurface>,
    /// True if it reported everything that the person looks at. Otherwise its surfaces may be looked at unnoticed.
    reports_focus: bool,
    abilities: HostAbilities,
    /// The surfaces that it shows to the person.
    views: Vec<View>,
    /// True if the person is present, as far as it knows.
    is_present: bool,
    /// The last report to the engine: the views whose surrounding surfaces are all looked at, and the presence.
    reported: (Vec<View>, bool),
}

/// A surface of an attached host.
#[derive(Debug)]
struct AttachedSurface {
    workspace: Option<WorkspaceId>,
    tty: Option<String>,
    title: Option<String>,
    place: Option<String>,
    /// The surface around it, as named by its host.
    parent: Option<SurfaceId>,
    /// True if the host would report that it is looked at.
    reports_looks: bool,
}

impl AttachedHost {
    fn new(name: String, abilities: HostAbilities) -> Self {
        Self {
            name,
            abilities,
            surfaces: BTreeMap::new(),
            reports_focus: false,
            views: Vec::new(),
            is_present: true,
            reported: (Vec::new(), true),
        }
    }

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
            parent: own.parent.clone(),
        })
    }
}

/// The effects of a host's request.
#[derive(Debug, Default, PartialEq)]
pub(in crate::state) struct HostChanges {
    /// Surfaces that the engine must be told about again.
    pub(in crate::state) changed: Vec<SurfaceId>,
    /// Events for the engine, after `changed`.
    pub(in crate::state) events: Vec<Event>,
    /// Surfaces that no attached host has any longer.
    pub(in crate::state) gone: Vec<SurfaceId>,
    /// A surface that is unread, and whether it was unread in the earlier session.
    pub(in crate::state) unread: Option<(SurfaceId, bool)>,
    /// Surfaces around others that were added, removed or moved. Their rings must be sent again.
    pub(in crate::state) around: BTreeSet<SurfaceId>,
}

/// The attached hosts.
#[derive(Debug, Default)]
pub(in crate::state) struct AttachedHosts {
    hosts: BTreeMap<ConnectionId, AttachedHost>,
    nesting: NestingIndex,
}

impl AttachedHosts {
    /// Handles a request of a host.
    pub(in crate::state) fn handle(
        &mut self,
        connection: ConnectionId,
        request: HostRequest,
    ) -> Result<HostChanges, ApiError> {
        match request {
            HostRequest::Attach { name, abilities } => {
                check_name("name", &name)?;
                self.hosts.entry(connection).or_insert(AttachedHost::new(name, abilities));
                Ok(HostChanges::default())
            }
            HostRequest::Opened(surfaces) => self.open(connection, surfaces),
            HostRequest::Closed { surface_id } => {
                let surface = SurfaceId::new(&surface_id);
                let around = self.around_all([&surface]);
                if let Some(own) = self.host(connection)?.surfaces.remove(&surface) {
                    let key = (surface.clone(), connection);
                    self.nesting.remove(&key, own.parent.as_ref(), own.tty.as_deref());
                }
                let events = self.changed_views(None);
                Ok(HostChanges { events, around, ..self.without([surface]) })
            }
            HostRequest::Views(params) => self.looks(connection, params),
            HostRequest::Glanced { surface_id, at_ms } => self.glanced(connection, &surface_id, at_ms),
            HostRequest::Unread { surface_id, is_restored, .. } => {
                let host = self.host(connection)?;
                let surface = SurfaceId::new(&surface_id);
                if !host.surfaces.contains_key(&surface) {
                    return Err(ApiError::params(format!("this host has no surface {surface_id:?}")));
                }
                Ok(HostChanges { unread: Some((surface, is_restored)), ..HostChanges::default() })
            }
            // The answer to a focus order changes nothing here.
            HostRequest::Focused { .. } => self.host(connection).map(|_| HostChanges::default()),
            HostRequest::Typed => self.host(connection).map(|_| HostChanges {
                events: vec![Event::Input { host: connection.0 }],
                ..HostChanges::default()
            }),
        }
    }

    /// Adds or changes all surfaces, or none on an error.
    fn open(
        &mut self,
        connection: ConnectionId,
        opened: Vec<SurfaceParams>,
    ) -> Result<HostChanges, ApiError> {
        self.host(connection)?;
        for params in &opened {
            check_name("surface_id", &params.surface_id)?;
            for (what, id) in [("workspace_id", &params.workspace_id), ("parent", &params.parent)] {
                id.as_deref().map_or(Ok(()), |id| check_name(what, id))?;
            }
        }
        let ids: Vec<SurfaceId> = opened.iter().map(|params| SurfaceId::new(&params.surface_id)).collect();
        let mut around = self.around_all(&ids);
        let Some(host) = self.hosts.get_mut(&connection) else { return Ok(HostChanges::default()) };
        let new: BTreeSet<&SurfaceId> = ids.iter().filter(|id| !host.surfaces.contains_key(*id)).collect();
        if host.surfaces.len() + new.len() > MAX_SURFACES {
            return Err(ApiError::new("busy", format!("a host has at most {MAX_SURFACES} surfaces")));
        }
        for (id, params) in ids.iter().zip(opened) {
            let workspace = params.workspace_id.as_deref().map(WorkspaceId::new);
            let parent = params.parent.as_deref().map(SurfaceId::new);
            let SurfaceParams { tty, title, place, reports_looks, .. } = params;
            let (title, place) = (title.and_then(shown_text), place.and_then(shown_text));
            let own = AttachedSurface { workspace, tty, title, place, parent, reports_looks };
            let key = (id.clone(), connection);
            if let Some(before) = host.surfaces.get(id) {
                self.nesting.remove(&key, before.parent.as_ref(), before.tty.as_deref());
            }
            self.nesting.add(key, own.parent.as_ref(), own.tty.as_deref());
            host.surfaces.insert(id.clone(), own);
        }
        around.extend(self.around_all(&ids));
        Ok(HostChanges { changed: ids, around, events: self.changed_views(None), ..HostChanges::default() })
    }

    fn looks(&mut self, connection: ConnectionId, params: ViewsParams) -> Result<HostChanges, ApiError> {
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
        host.views = params.views.into_iter().map(view).collect();
        host.is_present = params.present.unwrap_or(true);
        // The views first: the digest leaves out what a returning person sees at once.
        let mut events = self.changed_views(params.by_person.then_some(connection));
        events.push(Event::Presence { host: connection.0, present: params.present });
        Ok(HostChanges { changed, events, ..HostChanges::default() })
    }

    /// Handles the end of a connection, which need not be a host.
    pub(in crate::state) fn detach(&mut self, connection: ConnectionId) -> HostChanges {
        let Some(host) = self.hosts.get(&connection) else { return HostChanges::default() };
        let around = self.around_all(host.surfaces.keys());
        let surfaces = self.hosts.remove(&connection).map(|host| host.surfaces).unwrap_or_default();
        for (surface, own) in &surfaces {
            let key = (surface.clone(), connection);
            self.nesting.remove(&key, own.parent.as_ref(), own.tty.as_deref());
        }
        let mut events = vec![Event::HostGone { host: connection.0 }];
        events.extend(self.changed_views(None));
        HostChanges { events, around, ..self.without(surfaces.into_keys()) }
    }

    /// The changes if a host no longer has these surfaces. Another host of a surface may know less about it.
    fn without(&self, surfaces: impl IntoIterator<Item = SurfaceId>) -> HostChanges {
        let (changed, gone) = surfaces.into_iter().partition(|surface| self.host_of(surface).is_some());
        HostChanges { changed, gone, ..HostChanges::default() }
    }

    /// Returns all attached hosts.
    pub(in crate::state) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.hosts.keys().copied()
    }

    /// Returns all surfaces of attached hosts.
    pub(in crate::state) fn surfaces(&self) -> impl Iterator<Item = &SurfaceId> {
        self.hosts.values().flat_map(|host| host.surfaces.keys())
    }

    /// The hosts that have a surface.
    fn hosts_of(&self, surface: &SurfaceId) -> impl Iterator<Item = (ConnectionId, &AttachedHost)> {
        let hosts = self.hosts.iter().map(|(connection, host)| (*connection, host));
        hosts.filter(|(_, host)| host.surfaces.contains_key(surface))
    }

    /// Returns the host of a surface. Of two, it is the one that shows the ring: `ringer run` in a terminal whose window another
    /// host knows.
    pub(in crate::state) fn host_of(&self, surface: &SurfaceId) -> Option<ConnectionId> {
        self.drawing(surface).or_else(|| self.hosts_of(surface).next().map(|(connection, _)| connection))
    }

    /// Returns the host that shows the ring of a surface.
    pub(in crate::state) fn drawing(&self, surface: &SurfaceId) -> Option<ConnectionId> {
        self.hosts_of(surface).find(|(_, host)| host.abilities.draws_rings).map(|(connection, _)| connection)
    }

    /// Returns a surface. `elsewhere` is the information of a plain terminal, because an attached host may leave out the
    /// workspace.
    pub(in crate::state) fn info(
        &self,
        surface: &SurfaceId,
        elsewhere: Option<SurfaceInfo>,
    ) -> Option<SurfaceInfo> {
        self.hosts.get(&self.host_of(surface)?)?.info(surface, elsewhere)
    }

    /// Returns the host that can focus a surface.
    pub(in crate::state) fn focusing(&self, surface: &SurfaceId) -> Option<ConnectionId> {
        self.hosts_of(surface).find(|(_, host)| host.abilities.can_focus).map(|(connection, _)| connection)
    }

    /// Returns the name of an attached host.
    pub(in crate::state) fn name(&self, connection: ConnectionId) -> Option<&str> {
        self.hosts.get(&connection).map(|host| host.name.as_str())
    }

    /// Returns true if the host of a surface names its workspace.
    pub(in crate::state) fn names_workspace(&self, surface: &SurfaceId) -> bool {
        self.known(surface).next().is_some_and(|own| own.workspace.is_some())
    }

    /// Returns true if a host of a surface reports when the person looks at it.
    pub(in crate::state) fn reports_focus(&self, surface: &SurfaceId) -> bool {
        let reports = |own: &AttachedSurface| own.reports_looks;
        self.hosts_of(surface)
            .any(|(_, host)| host.reports_focus && host.surfaces.get(surface).is_some_and(reports))
    }

    /// Returns a surface as known by each of its hosts.
    fn known<'a>(&'a self, surface: &'a SurfaceId) -> impl Iterator<Item = &'a AttachedSurface> {
        self.hosts.values().filter_map(|host| host.surfaces.get(surface))
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

/// Returns a display text cut to its limit, or `None` if it is empty.
fn shown_text(mut text: String) -> Option<String> {
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    (!text.is_empty()).then_some(text)
}

/// The most remembered reports: more than all hosts together usually have sent without an answer.
const MAX_REPORTS: usize = 4096;
/// The longest id of a report. Longer ones are ignored.
const MAX_ID: usize = 64;

/// The ids of the latest reports, oldest first.
#[derive(Debug, Default)]
pub(in crate::state) struct RecentReports(VecDeque<String>);

impl RecentReports {
    /// Remembers a report. Returns true if it is new.
    pub(in crate::state) fn is_new(&mut self, report: &str) -> bool {
        if report.is_empty() || report.len() > MAX_ID {
            return true;
        }
        // A repeated report was first sent a moment ago, so the search starts at the end.
        if self.0.iter().rev().any(|heard| heard == report) {
            return false;
        }
        if self.0.len() == MAX_REPORTS {
            self.0.pop_front();
        }
        self.0.push_back(report.to_owned());
        true
    }
}

#[cfg(test)]
mod tests;
