//! A message arrives: where it came from is found out before the engine gets it.

use ringer_core::{Caller, Event, IncomingMessage, Message, Place, Record, SurfaceId, WorkspaceId};
use ringer_journal::{Age, Error};

use crate::dispatch::Dispatcher;
use crate::scout::{Sight, Spot};

impl Dispatcher {
    /// Looks whether the journal is still the one in which we are so far. If it was removed, damaged, or replaced by an
    /// older copy, it is read again from its beginning.
    pub(crate) fn go_on(&mut self) -> Result<(), Error> {
        let here = self.journal.resume_at(&self.taken)?;
        if here.cursor.seq != self.taken.cursor.seq {
            self.log.line(format!(
                "the journal is not the one that was read up to {}: reading it from its beginning",
                self.taken.cursor.seq
            ));
        }
        if here != self.taken {
            self.taken = here;
            self.book.take(self.taken.clone());
        }
        Ok(())
    }

    /// Takes a message behind our place. What an exchanged journal brings again is known by its id. What it brings from
    /// before, and was never taken, is listed as read: it is too late to ring for it, and its marks are about what the
    /// list was then.
    pub(crate) fn take_message(&mut self, message: Message, sights: &[(Spot, Sight)]) -> Result<(), Error> {
        let age = self.taken.age(&message);
        let is_known = age != Age::New && self.memory.knows(&message.id)?;
        self.taken.advance(message.seq, &message.id);
        match age {
            _ if is_known => {}
            Age::New | Age::MaybeSeen => self.arrive(message, sights),
            Age::Old => self.list_as_read(&message),
        }
        Ok(())
    }

    fn list_as_read(&mut self, message: &Message) {
        let Some(record) = Record::of(message) else { return };
        let now = self.clock.now();
        let mut record = Record { is_read: true, open_question: None, ..record };
        record.trail.add(now.wall_ms, "found in a journal that took the place of another: listed as read");
        let orders = self.engine.restore(now, [record.clone()], []);
        self.carry_out(now, orders);
        self.remember(now, record, true);
    }

    /// A message has come: where it came from is found out, its repository's settings apply, and the engine gets it.
    pub(crate) fn arrive(&mut self, message: Message, sights: &[(Spot, Sight)]) {
        let scope = message.draft.scope.as_str();
        if let Some(cwd) = &message.draft.origin.cwd
            && let Some((_, sight)) = sights.iter().find(|(spot, _)| spot.is_around(scope, cwd))
        {
            self.see(scope, sight);
        }
        let origin = &message.draft.origin;
        if let Some(pid) = origin.pid {
            self.callers.heard(pid);
        }
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
        let incoming = IncomingMessage { message, caller, is_subagent, pending: false };
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
