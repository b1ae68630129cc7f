//! Surfaces and who owns them: the hosts that the program plugged in.

mod reachable;

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_core::{Event, Message};
use ringer_ipc::ApiError;
use ringer_ipc::host::{FocusResult, Host, SurfaceInfo};

use super::registry::{AttachedHosts, HostChanges};
use crate::delivery::session_bus::Callers;
use crate::delivery::terminals::Terminal;
use crate::hosts::protocol::{ConnectionId, HostOrder, HostRequest, SentOrder};
use crate::hosts::tmux::{TmuxPane, Unreachable};

/// Terminals of a workspace that are tried for a message that came from none of them. The first is nearly always there; the
/// others are tried when it was closed since it spoke.
const MAX_TRIED: usize = 8;

/// What came of wanting to go to a place.
#[derive(Debug, PartialEq)]
pub(in crate::state) enum FocusOutcome {
    /// The person is there, by that host; or it is known at once that they cannot be.
    Known(Result<String, Unreachable>),
    /// tmux has to be asked, off the loop.
    NeedsTmux(TmuxPane),
    /// An attached host has to be asked to go to this surface.
    NeedsHost(ConnectionId, SurfaceId),
}

/// What follows from what a host said, or from its end.
#[derive(Debug, Default)]
pub(in crate::state) struct AfterHost {
    /// What the engine has to know.
    pub(in crate::state) events: Vec<Event>,
    /// Surfaces around others that came, went or moved, and those that one of two hosts no longer has: their rings follow.
    pub(in crate::state) around: BTreeSet<SurfaceId>,
}

/// The hosts, and the processes that sent the last messages.
pub(in crate::state) struct Surfaces {
    hosts: Vec<Box<dyn Host>>,
    attached: AttachedHosts,
    callers: Callers,
    flash_enabled: bool,
}

impl Surfaces {
    pub(in crate::state) fn new(hosts: Vec<Box<dyn Host>>, flash_enabled: bool) -> Self {
        Self { hosts, attached: AttachedHosts::default(), callers: Callers::default(), flash_enabled }
    }

    pub(in crate::state) fn enable_flash(&mut self, enabled: bool) {
        self.flash_enabled = enabled;
    }

    /// Every surface that a host has now.
    pub(in crate::state) fn list(&self) -> Vec<SurfaceInfo> {
        let attached = self.attached.surfaces().filter_map(|surface| self.info(surface));
        let others = self.hosts.iter().flat_map(|host| host.surfaces());
        attached.chain(others.filter(|info| self.attached.host_of(&info.surface).is_none())).collect()
    }

    /// A surface, as its host knows it. One that is attached knows better than one that only heard of it.
    fn info(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        let plugged_in = self.hosts.iter().find_map(|host| host.surface(surface));
        self.attached.info(surface, plugged_in.clone()).or(plugged_in)
    }

    /// Handles what an attached host sent. Gives what the engine has to know.
    pub(in crate::state) fn handle_host(
        &mut self,
        connection: ConnectionId,
        request: HostRequest,
    ) -> Result<AfterHost, ApiError> {
        let closes = matches!(request, HostRequest::Closed { .. });
        let changes = self.attached.handle(connection, request)?;
        let mut after = self.after_host(changes, closes);
        for event in after.events.iter_mut().filter(|_| closes) {
            // Its host is there, so it does not come back with it.
            if let Event::SurfaceGone(surface) = event {
                *event = Event::SurfaceClosed(surface.clone());
            }
        }
        Ok(after)
    }

    /// The connection of a host ended. Gives what the engine has to know.
    pub(in crate::state) fn detach(&mut self, connection: ConnectionId) -> AfterHost {
        let changes = self.attached.detach(connection);
        self.after_host(changes, true)
    }

    /// A surface that an attached host no longer has may still be known to another one.
    fn after_host(&self, changes: HostChanges, closes: bool) -> AfterHost {
        let HostChanges { changed, events, gone, unread, mut around } = changes;
        around.extend(changed.iter().filter(|_| closes).cloned());
        let unread = unread.and_then(|(surface, is_restored)| {
            let place = Place { workspace: self.info(&surface)?.workspace, surface: Some(surface) };
            Some(if is_restored { Event::Restored(place) } else { Event::Activity(place) })
        });
        let known = |surface: SurfaceId| match self.info(&surface) {
            Some(info) => Event::Surface {
                reports_focus: self.attached.reports_focus(&surface),
                workspace: info.workspace,
                tty: info.tty,
                surface,
            },
            None => Event::SurfaceGone(surface),
        };
        let gone: Vec<Event> = gone.into_iter().map(known).collect();
        let events = changed.into_iter().map(known).chain(events).chain(gone).chain(unread).collect();
        AfterHost { events, around }
    }

    /// The surfaces around a surface, the nearest first.
    pub(in crate::state) fn around(&self, surface: &SurfaceId) -> Vec<SurfaceId> {
        self.attached.around(surface)
    }

    /// Whether what is written to a surface comes from surfaces of another host inside it, which tells what they say.
    pub(in crate::state) fn shows_others(&self, surface: &SurfaceId) -> bool {
        self.attached.has_inside(surface)
    }

    /// The ring that a surface shows, out of all that are lit: its own, and those of the surfaces inside it.
    fn shown_ring<'a>(
        &self,
        surface: &SurfaceId,
        lit: impl Iterator<Item = (&'a SurfaceId, Ring)>,
    ) -> Option<Ring> {
        let inside = self.attached.inside(surface);
        let shown = lit.filter(|(lit, _)| *lit == surface || inside.contains(*lit));
        shown.map(|(_, ring)| ring).reduce(Ring::with)
    }

    /// The workspace in which a surface stands, if a host has it.
    pub(in crate::state) fn workspace_of(&self, surface: &SurfaceId) -> Option<WorkspaceId> {
        self.info(surface).map(|info| info.workspace)
    }

    /// Where a surface is, in the words of its host.
    pub(in crate::state) fn name_of(&self, surface: &SurfaceId) -> Option<String> {
        self.info(surface)?.place
    }

    /// A message came from a process.
    pub(in crate::state) fn add_caller(&mut self, pid: u32) {
        self.callers.heard(pid);
    }

    /// The processes that sent the last messages, the last one first.
    pub(in crate::state) fn callers(&self) -> Vec<u32> {
        self.callers.recent()
    }

    /// A message came from a surface: its host says where the surface stands. One that no host owns stands where the message
    /// says. Gives what the engine has to know of it, if that is news.
    pub(in crate::state) fn register(&mut self, surface: &SurfaceId, message: &Message) -> Option<Event> {
        // An attached host says where its surfaces stand, unless it leaves that to them.
        if self.attached.names_workspace(surface) {
            return None;
        }
        let (origin, scope) = (&message.draft.origin, message.draft.scope.as_str());
        // What the hub appended because of a terminal's signal came from no process: it does not say where the surface is.
        if origin.pid.is_none() && origin.tty.is_none() && self.info(surface).is_some() {
            return None;
        }
        match self.hosts.iter_mut().find(|host| host.owns(surface)) {
            Some(host) => {
                let mut event = host.register(surface, origin.tty.as_deref(), scope)?;
                if let Event::Surface { reports_focus, .. } = &mut event {
                    *reports_focus = self.attached.reports_focus(surface);
                }
                Some(event)
            }
            None => Some(Event::Surface {
                surface: surface.clone(),
                workspace: origin
                    .workspace
                    .as_deref()
                    .map_or_else(|| Place::own_workspace(scope).workspace, WorkspaceId::new),
                tty: origin.tty.clone(),
                reports_focus: self.attached.reports_focus(surface),
            }),
        }
    }

    /// Draws a ring in the hosts that the program plugged in.
    pub(in crate::state) fn ring(&mut self, place: &Place, ring: Option<Ring>) {
        self.hosts.iter_mut().for_each(|host| host.ring(place, ring.is_some()));
    }

    /// What the attached hosts of a surface are told of its ring, with these lit. If one of them has just opened it, for the others
    /// that show the ring nothing changed.
    pub(in crate::state) fn ring_orders<'a>(
        &self,
        surface: &SurfaceId,
        opened_by: Option<ConnectionId>,
        lit: impl Iterator<Item = (&'a SurfaceId, Ring)>,
    ) -> Vec<SentOrder> {
        let ring = self.shown_ring(surface, lit);
        let order = |shows| HostOrder::ring(surface, ring.filter(|_| shows));
        let hosts = self.attached.ringing_hosts(surface);
        let hosts = hosts.filter(|(host, shows)| opened_by.is_none_or(|by| by == *host || !shows));
        hosts.map(|(host, shows)| SentOrder { host, order: order(shows) }).collect()
    }

    /// Whether the ring of a surface is a mark in the title of its terminal, which the hub writes. An attached host of a plain
    /// terminal that shows rings sets the mark itself.
    pub(in crate::state) fn rings_by_title(&self, surface: &SurfaceId) -> bool {
        let is_drawn = self.attached.drawing(surface).is_some() && surface.tmux().is_none();
        !is_drawn && self.hosts.iter().any(|host| host.owns(surface) && host.rings_by_title())
    }

    /// Shows a badge. Gives what attached hosts are told.
    pub(in crate::state) fn badge(&mut self, workspace: &WorkspaceId, badge: Badge) -> Vec<SentOrder> {
        self.hosts.iter_mut().for_each(|host| host.badge(workspace, badge));
        self.for_all(&HostOrder::badge(workspace, badge))
    }

    /// Lets a pane flash. Gives what attached hosts are told.
    pub(in crate::state) fn flash(&mut self, place: &Place) -> Option<SentOrder> {
        if !self.flash_enabled {
            return None;
        }
        self.hosts.iter_mut().for_each(|host| host.flash(place));
        let surface_id = place.surface.clone()?;
        Some(SentOrder { host: self.attached.host_of(&surface_id)?, order: HostOrder::Flash { surface_id } })
    }

    /// Shows a toast. Gives what attached hosts are told.
    pub(in crate::state) fn toast(&mut self, toast: Option<&Toast>) -> Vec<SentOrder> {
        self.hosts.iter_mut().for_each(|host| host.toast(toast));
        self.for_all(&HostOrder::toast(toast))
    }

    /// An order for every attached host.
    pub(in crate::state) fn for_all(&self, order: &HostOrder) -> Vec<SentOrder> {
        self.attached.connections().map(|host| SentOrder { host, order: order.clone() }).collect()
    }

    /// A surface turned out to be closed.
    pub(in crate::state) fn forget(&mut self, surface: &SurfaceId) {
        self.hosts.iter_mut().for_each(|host| host.forget(surface));
    }

    /// Surfaces that have gone since the last call.
    pub(in crate::state) fn take_gone(&mut self) -> Vec<SurfaceId> {
        self.hosts.iter_mut().flat_map(|host| host.gone()).collect()
    }

    /// Brings a place to the front.
    pub(in crate::state) fn focus(&mut self, place: &Place) -> FocusOutcome {
        if let Some(surface) = &place.surface
            && let Some(host) = self.attached.focusing(surface)
        {
            return FocusOutcome::NeedsHost(host, surface.clone());
        }
        for host in &mut self.hosts {
            match host.focus(place) {
                FocusResult::Done => return FocusOutcome::Known(Ok(host.name().to_owned())),
                FocusResult::Cannot(why) => return FocusOutcome::Known(Err(Unreachable::new(why))),
                FocusResult::AskTmux => {
                    let pane = place.surface.as_ref().and_then(TmuxPane::of);
                    let no_pane = || FocusOutcome::Known(Err(Unreachable::new("it is no pane of tmux")));
                    return pane.map_or_else(no_pane, FocusOutcome::NeedsTmux);
                }
                FocusResult::NotOwned => {}
            }
        }
        FocusOutcome::Known(Err(self.unreachable(place)))
    }

    /// Why the person cannot be brought to a place that no host goes to.
    fn unreachable(&self, place: &Place) -> Unreachable {
        let host = place.surface.as_ref().and_then(|surface| self.attached.host_of(surface));
        if let Some(name) = host.and_then(|host| self.attached.name(host)) {
            return Unreachable::new(format!("it is in {name}, which cannot bring it to the front"));
        }
        Unreachable::new(match &place.surface {
            _ if place.workspace.is_on_other_machine() => "it came from another machine",
            None => "it came from no terminal",
            // After a reboot, or while their server starts, panes come back.
            Some(surface) if surface.is_pane() && !self.attached.surfaces().any(SurfaceId::is_pane) => {
                let why = "no panes are open";
                return Unreachable { hint: Some("ringer attach".to_owned()), ..Unreachable::new(why) };
            }
            Some(surface) if surface.is_pane() => "its pane is closed",
            Some(_) => "its terminal is closed",
        })
    }

    /// How many surfaces each workspace has.
    pub(in crate::state) fn counts(&self) -> BTreeMap<WorkspaceId, usize> {
        let mut counts = BTreeMap::new();
        for info in self.list() {
            *counts.entry(info.workspace).or_default() += 1;
        }
        counts
    }

    /// The name of an attached host.
    pub(in crate::state) fn host_name(&self, host: ConnectionId) -> String {
        self.attached.name(host).unwrap_or("a host").to_owned()
    }

    /// The terminal of a place; of a workspace as a whole, those in it, the one that spoke last first.
    pub(in crate::state) fn terminals_of(&self, place: &Place) -> Vec<Terminal> {
        if let Some(surface) = &place.surface {
            return self.terminal_of(surface).into_iter().collect();
        }
        let near =
            self.list().into_iter().filter(|info| info.workspace == place.workspace && info.tty.is_some());
        let mut terminals: Vec<Terminal> = Vec::new();
        // Several panes may be in one terminal.
        for terminal in near.take(MAX_TRIED).filter_map(|info| self.terminal_of(&info.surface)) {
            if !terminals.contains(&terminal) {
                terminals.push(terminal);
            }
        }
        terminals
    }

    /// The terminal of a surface; of one that its host emulates, the terminal around it.
    pub(in crate::state) fn terminal_of(&self, surface: &SurfaceId) -> Option<Terminal> {
        let surface = &self.attached.real_terminal(surface)?;
        let tty = self.info(surface).and_then(|info| info.tty);
        // After a restart no terminal is known until it speaks, but its id says which it is.
        let named = || surface.tty().map(|plain| plain.tty.to_owned());
        let tty = tty.or_else(named);
        (tty.is_some() || TmuxPane::of(surface).is_some()).then(|| Terminal { tty, surface: surface.clone() })
    }
}
