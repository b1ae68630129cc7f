//! Surfaces and their hosts: plugged-in hosts and attached ones.

mod reachable;

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_core::{Event, Message};
use ringer_ipc::ApiError;
use ringer_ipc::host::{FocusResult, Host, SurfaceInfo};

use super::registry::{AttachedHosts, HostChanges};
use crate::delivery::session_bus::RecentSenders;
use crate::delivery::terminals::Terminal;
use crate::hosts::protocol::{ConnectionId, HostOrder, HostRequest, SentOrder};
use crate::hosts::tmux::{TmuxPane, Unreachable};

/// The most terminals of a workspace that are tried for a message without a terminal. The first one nearly always exists; the
/// others are tried if it was closed after its last message.
const MAX_TRIED: usize = 8;

/// The result of a focus attempt.
#[derive(Debug, PartialEq)]
pub(in crate::state) enum FocusOutcome {
    /// The name of the host that brought the place to the front, or the reason why that is impossible.
    Known(Result<String, Unreachable>),
    /// tmux must be asked, off the loop.
    NeedsTmux(TmuxPane),
    /// An attached host must be asked to focus this surface.
    NeedsHost(ConnectionId, SurfaceId),
}

/// The effects of a host's request, or of its end.
#[derive(Debug, Default)]
pub(in crate::state) struct AfterHost {
    /// Events for the engine.
    pub(in crate::state) events: Vec<Event>,
    /// Surfaces around others that were added, removed or moved, and surfaces that one of two hosts no longer has. Their rings
    /// must be sent again.
    pub(in crate::state) around: BTreeSet<SurfaceId>,
}

/// The hosts, and the processes that sent the latest messages.
pub(in crate::state) struct Surfaces {
    hosts: Vec<Box<dyn Host>>,
    attached: AttachedHosts,
    senders: RecentSenders,
    flash_enabled: bool,
}

impl Surfaces {
    pub(in crate::state) fn new(hosts: Vec<Box<dyn Host>>, flash_enabled: bool) -> Self {
        Self { hosts, attached: AttachedHosts::default(), senders: RecentSenders::default(), flash_enabled }
    }

    pub(in crate::state) fn enable_flash(&mut self, enabled: bool) {
        self.flash_enabled = enabled;
    }

    /// Returns every surface of a host.
    pub(in crate::state) fn list(&self) -> Vec<SurfaceInfo> {
        let attached = self.attached.surfaces().filter_map(|surface| self.info(surface));
        let others = self.hosts.iter().flat_map(|host| host.surfaces());
        attached.chain(others.filter(|info| self.attached.host_of(&info.surface).is_none())).collect()
    }

    /// Returns a surface. An attached host knows more than a plugged-in one.
    fn info(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        let plugged_in = self.hosts.iter().find_map(|host| host.surface(surface));
        self.attached.info(surface, plugged_in.clone()).or(plugged_in)
    }

    /// Handles a request of an attached host. Returns its effects.
    pub(in crate::state) fn handle_host(
        &mut self,
        connection: ConnectionId,
        request: HostRequest,
    ) -> Result<AfterHost, ApiError> {
        let closes = matches!(request, HostRequest::Closed { .. });
        let changes = self.attached.handle(connection, request)?;
        let mut after = self.after_host(changes, closes);
        for event in after.events.iter_mut().filter(|_| closes) {
            // The host is still attached, so the surface will not return with it.
            if let Event::SurfaceGone(surface) = event {
                *event = Event::SurfaceClosed(surface.clone());
            }
        }
        Ok(after)
    }

    /// Handles the end of a host's connection. Returns its effects.
    pub(in crate::state) fn detach(&mut self, connection: ConnectionId) -> AfterHost {
        let changes = self.attached.detach(connection);
        self.after_host(changes, true)
    }

    /// Turns changes into effects. A surface that an attached host no longer has may still be known to another host.
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

    /// Returns the surfaces around a surface, the nearest first.
    pub(in crate::state) fn around(&self, surface: &SurfaceId) -> Vec<SurfaceId> {
        self.attached.around(surface)
    }

    /// Returns true if another host has surfaces inside this one. The output then comes from them, and their host reports it.
    pub(in crate::state) fn shows_others(&self, surface: &SurfaceId) -> bool {
        self.attached.has_inside(surface)
    }

    /// Returns the ring that a surface shows: its own, combined with the rings of the surfaces inside it.
    fn shown_ring<'a>(
        &self,
        surface: &SurfaceId,
        lit: impl Iterator<Item = (&'a SurfaceId, Ring)>,
    ) -> Option<Ring> {
        let inside = self.attached.inside(surface);
        let shown = lit.filter(|(lit, _)| *lit == surface || inside.contains(*lit));
        shown.map(|(_, ring)| ring).reduce(Ring::with)
    }

    /// Returns the workspace of a surface, if a host has it.
    pub(in crate::state) fn workspace_of(&self, surface: &SurfaceId) -> Option<WorkspaceId> {
        self.info(surface).map(|info| info.workspace)
    }

    /// Returns the position of a surface, in the words of its host.
    pub(in crate::state) fn name_of(&self, surface: &SurfaceId) -> Option<String> {
        self.info(surface)?.place
    }

    /// Records the process that sent a message.
    pub(in crate::state) fn add_sender(&mut self, pid: u32) {
        self.senders.add(pid);
    }

    /// Returns the processes that sent the latest messages, the latest first.
    pub(in crate::state) fn senders(&self) -> Vec<u32> {
        self.senders.recent()
    }

    /// Registers the surface of a message. Its host says in which workspace it is; for a surface without a host, the message
    /// does. Returns an event for the engine if the surface is new or changed.
    pub(in crate::state) fn register(&mut self, surface: &SurfaceId, message: &Message) -> Option<Event> {
        // An attached host that names the workspace takes precedence.
        if self.attached.names_workspace(surface) {
            return None;
        }
        let (origin, scope) = (&message.draft.origin, message.draft.scope.as_str());
        // The hub itself appended this message for a terminal's signal, so it does not say where the surface is.
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

    /// Returns the orders that show a surface's ring, for its attached hosts. If `opened_by` has just opened the surface, other
    /// hosts that show the ring need no order, because nothing changed for them.
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

    /// Returns true if a surface rings by a mark that the hub sets in the title of its terminal. An attached host that shows the
    /// rings of a plain terminal sets the mark itself.
    pub(in crate::state) fn rings_by_title(&self, surface: &SurfaceId) -> bool {
        let is_drawn = self.attached.drawing(surface).is_some() && surface.tmux().is_none();
        !is_drawn && self.hosts.iter().any(|host| host.owns(surface) && host.rings_by_title())
    }

    /// Shows a badge. Returns the orders for attached hosts.
    pub(in crate::state) fn badge(&mut self, workspace: &WorkspaceId, badge: Badge) -> Vec<SentOrder> {
        self.hosts.iter_mut().for_each(|host| host.badge(workspace, badge));
        self.for_all(&HostOrder::badge(workspace, badge))
    }

    /// Flashes a pane. Returns the order for an attached host.
    pub(in crate::state) fn flash(&mut self, place: &Place) -> Option<SentOrder> {
        if !self.flash_enabled {
            return None;
        }
        self.hosts.iter_mut().for_each(|host| host.flash(place));
        let surface_id = place.surface.clone()?;
        Some(SentOrder { host: self.attached.host_of(&surface_id)?, order: HostOrder::Flash { surface_id } })
    }

    /// Shows a toast. Returns the orders for attached hosts.
    pub(in crate::state) fn toast(&mut self, toast: Option<&Toast>) -> Vec<SentOrder> {
        self.hosts.iter_mut().for_each(|host| host.toast(toast));
        self.for_all(&HostOrder::toast(toast))
    }

    /// Returns an order for every attached host.
    pub(in crate::state) fn for_all(&self, order: &HostOrder) -> Vec<SentOrder> {
        self.attached.connections().map(|host| SentOrder { host, order: order.clone() }).collect()
    }

    /// Forgets a surface that turned out to be closed.
    pub(in crate::state) fn forget(&mut self, surface: &SurfaceId) {
        self.hosts.iter_mut().for_each(|host| host.forget(surface));
    }

    /// Returns the surfaces that were removed since the last call.
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

    /// The reason why no host can focus a place.
    fn unreachable(&self, place: &Place) -> Unreachable {
        let host = place.surface.as_ref().and_then(|surface| self.attached.host_of(surface));
        if let Some(name) = host.and_then(|host| self.attached.name(host)) {
            return Unreachable::new(format!("it is in {name}, which cannot bring it to the front"));
        }
        Unreachable::new(match &place.surface {
            _ if place.workspace.is_on_other_machine() => "it came from another machine",
            None => "it came from no terminal",
            // Panes return after a reboot, or once their server has started.
            Some(surface) if surface.is_pane() && !self.attached.surfaces().any(SurfaceId::is_pane) => {
                let why = "no panes are open";
                return Unreachable { hint: Some("ringer attach".to_owned()), ..Unreachable::new(why) };
            }
            Some(surface) if surface.is_pane() => "its pane is closed",
            Some(_) => "its terminal is closed",
        })
    }

    /// Returns the number of surfaces of each workspace.
    pub(in crate::state) fn counts(&self) -> BTreeMap<WorkspaceId, usize> {
        let mut counts = BTreeMap::new();
        for info in self.list() {
            *counts.entry(info.workspace).or_default() += 1;
        }
        counts
    }

    /// Returns the name of an attached host, or a placeholder.
    pub(in crate::state) fn host_name(&self, host: ConnectionId) -> String {
        self.attached.name(host).unwrap_or("a host").to_owned()
    }

    /// Returns the terminal of a place. For a whole workspace, returns its terminals, the one with the latest message first.
    pub(in crate::state) fn terminals_of(&self, place: &Place) -> Vec<Terminal> {
        if let Some(surface) = &place.surface {
            return self.terminal_of(surface).into_iter().collect();
        }
        let near =
            self.list().into_iter().filter(|info| info.workspace == place.workspace && info.tty.is_some());
        let mut terminals: Vec<Terminal> = Vec::new();
        // Several panes may share a terminal.
        for terminal in near.take(MAX_TRIED).filter_map(|info| self.terminal_of(&info.surface)) {
            if !terminals.contains(&terminal) {
                terminals.push(terminal);
            }
        }
        terminals
    }

    /// Returns the terminal of a surface. If a host emulates the surface, it is the terminal around it.
    pub(in crate::state) fn terminal_of(&self, surface: &SurfaceId) -> Option<Terminal> {
        let surface = &self.attached.real_terminal(surface)?;
        let tty = self.info(surface).and_then(|info| info.tty);
        // After a restart, a terminal is unknown until its next message, but its id contains the device.
        let named = || surface.tty().map(|plain| plain.tty.to_owned());
        let tty = tty.or_else(named);
        (tty.is_some() || TmuxPane::of(surface).is_some()).then(|| Terminal { tty, surface: surface.clone() })
    }
}
