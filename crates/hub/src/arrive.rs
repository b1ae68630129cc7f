//! A message arrives: where it came from is found out before the engine gets it.

use ringer_core::{Caller, Event, Incoming, Message, Place, SurfaceId, WorkspaceId};

use crate::dispatch::Dispatcher;
use crate::scout::{Sight, Spot};

impl Dispatcher {
    /// A message has come: where it came from is found out, its repository's settings apply, and the engine gets it.
    pub(crate) fn arrive(&mut self, message: Message, sights: &[(Spot, Sight)]) {
        let scope = message.draft.scope.as_str();
        if let Some(cwd) = &message.draft.origin.cwd
            && let Some((_, sight)) = sights.iter().find(|(spot, _)| spot.is_around(scope, cwd))
        {
            self.see(scope, sight);
        }
        let origin = &message.draft.origin;
        let surface = origin.surface.as_deref().map(SurfaceId::new);
        let (tty, pane) = (origin.tty.clone(), origin.pane.clone());
        self.adopt(surface.as_ref(), &message);
        let caller = Caller {
            workspace: message.draft.origin.workspace.as_deref().map(WorkspaceId::new),
            surface,
            tty,
            prefer_tty: pane.is_some(),
        };
        if let Some(agent) = message.draft.recipient.agent().cloned() {
            self.services.iter_mut().for_each(|service| service.wake(&agent));
        }
        let is_subagent = message.draft.category.as_deref() == Some("subagent");
        let incoming = Incoming { message, caller, is_subagent, pending: false };
        self.handle(Event::Message(Box::new(incoming)));
    }

    /// A surface speaks: its host says where it stands. One that no host owns stands where the message says.
    fn adopt(&mut self, surface: Option<&SurfaceId>, message: &Message) {
        let Some(surface) = surface else { return };
        let (origin, scope) = (&message.draft.origin, message.draft.scope.as_str());
        let event = match self.hosts.iter_mut().find(|host| host.owns(surface)) {
            Some(host) => host.adopt(surface, origin.tty.as_deref(), scope),
            None => Some(Event::Surface {
                surface: surface.clone(),
                workspace: origin
                    .workspace
                    .as_deref()
                    .map_or_else(|| Place::own_workspace(scope).workspace, WorkspaceId::new),
                tty: origin.tty.clone(),
            }),
        };
        if let Some(event) = event {
            self.handle(event);
            self.tell_of_agent(surface);
        }
    }
}
