//! Surfaces: those of attached hosts, and plain terminals.

mod reachable;

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::attention::{Badge, Ring};
use ringer_core::message::{Place, SurfaceId, WorkspaceId};
use ringer_core::toast::Toast;
use ringer_core::{Event, Message};
use ringer_ipc::ApiError;
use ringer_ipc::part::Unreachable;

use super::plain_terminals::PlainTerminals;
use super::registry::{AttachedHosts, HostChanges};
use crate::delivery::session_bus::RecentSenders;
use crate::delivery::terminals::Terminal;
use crate::hosts::protocol::{ConnectionId, HostOrder, HostRequest, SentOrder, SurfaceInfo};

/// The most terminals of a workspace that are tried for a message without a terminal. The first one nearly always exists; the
/// others are tried if it was closed after its last message.
const MAX_TRIED: usize = 8;

/// The result of a focus attempt.
#[derive(Debug, PartialEq)]
pub(in crate::state) enum FocusOutcome {
    /// The name of the host that brought the place to the front, or the reason why that is impossible.
    Known(Result<String, Unreachable>),
    /// A host or a part must be asked to focus this surface.
    Ask(FocusTarget, SurfaceId),
}

/// What brings a surface to the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::state) enum FocusTarget {
    /// An attached host.
    Host(ConnectionId),
    /// The part that controls panes, off the loop.
    PaneControl,
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

/// The surfaces, and the processes that sent the latest messages.
pub(in crate::state) struct Surfaces {
    plain: PlainTerminals,
    attached: AttachedHosts,
    senders: RecentSenders,
    flash_enabled: bool,
}

impl Surfaces {
    pub(in crate::state) fn new(flash_enabled: bool) -> Self {
        Self {
            plain: PlainTerminals::default(),
            attached: AttachedHosts::default(),
            senders: RecentSenders::default(),
            flash_enabled,
        }
    }

    pub(in crate::state) fn enable_flash(&mut self, enabled: bool) {
        self.flash_enabled = enabled;
    }

    /// Returns every surface.
    pub(in crate::state) fn list(&self) -> Vec<SurfaceInfo> {
        let attached = self.attached.surfaces().filter_map(|surface| self.info(surface));
        let plain = self.plain.list().into_iter();
        attached.chain(plain.filter(|info| self.attached.host_of(&info.surface).is_none())).collect()
    }

    /// Returns a surface. An attached host knows more about a terminal than the hub itself.
    fn info(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        let plain = self.plain.info(surface);
        self.attached.info(surface, plain.clone()).or(plain)
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

    /// Registers the surface of a message. Its host says in which workspace it is; for any other surface, the message does.
    /// Returns an event for the engine if the surface is new or changed.
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
        let workspace = if PlainTerminals::owns(surface) {
            self.plain.register(surface, origin.tty.as_deref(), scope)?
        } else {
            let named = origin.workspace.as_deref().map(WorkspaceId::new);
            named.unwrap_or_else(|| Place::own_workspace(scope).workspace)
        };
        Some(Event::Surface {
            surface: surface.clone(),
            workspace,
            tty: origin.tty.clone(),
            reports_focus: self.attached.reports_focus(surface),
        })
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
        !is_drawn && PlainTerminals::owns(surface)
    }

    /// Returns the orders that show a badge.
    pub(in crate::state) fn badge(&self, workspace: &WorkspaceId, badge: Badge) -> Vec<SentOrder> {
        self.for_all(&HostOrder::badge(workspace, badge))
    }

    /// Returns the order that flashes a surface.
    pub(in crate::state) fn flash(&self, place: &Place) -> Option<SentOrder> {
        let surface_id = place.surface.clone().filter(|_| self.flash_enabled)?;
        Some(SentOrder { host: self.attached.host_of(&surface_id)?, order: HostOrder::Flash { surface_id } })
    }

    /// Returns the orders that show a toast.
    pub(in crate::state) fn toast(&self, toast: Option<&Toast>) -> Vec<SentOrder> {
        self.for_all(&HostOrder::toast(toast))
    }

    /// Returns an order for every attached host.
    pub(in crate::state) fn for_all(&self, order: &HostOrder) -> Vec<SentOrder> {
        self.attached.connections().map(|host| SentOrder { host, order: order.clone() }).collect()
    }

    /// Forgets a surface that turned out to be closed.
    pub(in crate::state) fn forget(&mut self, surface: &SurfaceId) {
        self.plain.forget(surface);
    }

    /// Returns the surfaces that were removed since the last call.
    pub(in crate::state) fn take_gone(&mut self) -> Vec<SurfaceId> {
        self.plain.take_gone()
    }

    /// Finds out what can bring a place to the front.
    pub(in crate::state) fn focus(&self, place: &Place) -> FocusOutcome {
        let Some(surface) = &place.surface else { return FocusOutcome::Known(Err(self.unreachable(place))) };
        if let Some(host) = self.attached.focusing(surface) {
            return FocusOutcome::Ask(FocusTarget::Host(host), surface.clone());
        }
        if surface.tmux().is_some() {
            return FocusOutcome::Ask(FocusTarget::PaneControl, surface.clone());
        }
        FocusOutcome::Known(Err(self.unreachable(place)))
    }

    /// The reason why no host can focus a place.
    fn unreachable(&self, place: &Place) -> Unreachable {
        if let Some(surface) = place.surface.as_ref().filter(|surface| PlainTerminals::owns(surface)) {
            let tty = surface.tty().map_or(surface.as_str(), |plain| plain.tty);
            return Unreachable::new(format!(
                "it came from {tty}, and Ringer does not know the window of that terminal (`ringer doctor` there says why)"
            ));
        }
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
        (tty.is_some() || surface.tmux().is_some()).then(|| Terminal { tty, surface: surface.clone() })
    }
}
