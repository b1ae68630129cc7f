//! What terminals send, and how it comes back through the journal.

use ringer_core::agent::{AgentState, Authority, Signal};
use ringer_core::engine::{Caller, IncomingMessage, TerminalNotification, TerminalSignal};
use ringer_core::message::{Agent, Place, SurfaceId};
use ringer_core::{Draft, Event, Kind, Message, MessageId, Scope, Sender};

use crate::Simulation;

impl Simulation {
    /// A terminal sends a signal, or the agent of a surface changes.
    pub(crate) fn terminal_signal(&mut self, place: &Place) -> Event {
        let surface = place.surface.clone().expect("they are surfaces");
        let body = format!("text {}", self.random.below(3));
        let agent = Agent::new("agent0").expect("a name");
        let signal = match self.random.below(5) {
            0 => {
                let agent = [None, Some((agent.clone(), true)), Some((agent, false))];
                return Event::AgentOnSurface { surface, agent: self.random.pick(&agent).clone() };
            }
            1 => TerminalSignal::Bell,
            2 => TerminalSignal::Agent(Signal::state(Authority::Title, AgentState::Working)),
            _ => TerminalSignal::Notified(TerminalNotification { body, ..TerminalNotification::default() }),
        };
        self.signals_sent += 1;
        Event::TerminalSignal { surface, signal, report: None }
    }

    /// A terminal's report comes back through the journal as a message.
    pub(crate) fn append(&mut self, surface: &SurfaceId, body: &str, category: Option<&str>) {
        self.sent += 1;
        let sender = Sender::new("terminal").expect("a name");
        let mut draft = Draft::new(Scope::global(), sender, Kind::Status, body).expect("a text");
        draft.category = category.map(str::to_owned);
        let id = MessageId::new(self.sent, [0; 10]);
        self.ended.insert(id.clone(), false);
        let message = Message { seq: 1, id, unix_ms: self.wall_ms, draft, machine: None };
        let caller = Caller { surface: Some(surface.clone()), ..Caller::default() };
        let incoming = IncomingMessage { message, caller, is_subagent: false, pending: false };
        self.appended.push(Event::Message(Box::new(incoming)));
    }
}
