//! Agents, as the hub hears of them: by their terminals, by their processes, and by the clock.

use std::time::Duration;

use ringer_core::{Agent, Draft, Event, Kind, Scope, Sender, Signal, SurfaceId, Tag};
use ringer_journal::{Sighting, Signals, Stamp};

use crate::clock::monotonic;
use crate::dispatch::Dispatcher;
use crate::watch::Outcome;

impl Dispatcher {
    /// A terminal told of something that no agent's episode covers: it becomes a message.
    pub(crate) fn append_sign(
        &mut self,
        surface: &SurfaceId,
        title: Option<&String>,
        body: &str,
        category: Option<&'static str>,
    ) {
        let known = self.journal.agent_on(surface.as_str()).ok().flatten();
        let scope = known.map_or_else(Scope::global, |agent| agent.scope);
        let text = if body.trim().is_empty() { title.map_or("(no text)", String::as_str) } else { body };
        let Ok(mut draft) = Draft::new(scope, Sender::system(), Kind::Status, text) else {
            return self.log.line(format!("{surface} told something that cannot be kept"));
        };
        draft.title = title.filter(|title| *title != text).cloned();
        draft.category = category.map(str::to_owned);
        draft.origin.surface = Some(surface.to_string());
        if draft.check().is_err() {
            draft.title = None;
        }
        self.append(&draft);
    }

    /// Puts a message into the journal. The hub reads it there, like everybody else.
    pub(crate) fn append(&mut self, draft: &Draft) {
        let stamp = Stamp::now();
        if let Err(error) = self.journal.append(draft, &stamp) {
            self.log.line(format!("cannot append: {error}"));
        }
        self.wake();
    }

    /// An agent's terminal gave a sign of what it does.
    pub(crate) fn apply_signal(&mut self, surface: &SurfaceId, signal: Signal) {
        let sighting = match self.journal.agent_on(surface.as_str()) {
            Ok(Some(sighting)) => sighting,
            Ok(None) => match stranger(surface) {
                Some(sighting) => sighting,
                None => return,
            },
            Err(error) => return self.log.line(format!("cannot look for an agent: {error}")),
        };
        let signals = [signal];
        let patience = self.settings.config().patience();
        let heard = Signals { of: &sighting, signals: &signals, mono: monotonic(), patience, aloud: true };
        let stamp = Stamp::now();
        if let Err(error) = self.journal.hear_agent(&heard, None, &stamp) {
            self.log.line(format!("cannot write down what {} does: {error}", sighting.agent.as_str()));
        }
        self.tell_of_agent(surface);
        self.wake();
    }

    /// Tells the engine which agent is on a surface.
    pub(crate) fn tell_of_agent(&mut self, surface: &SurfaceId) {
        if let Ok(agent) = self.journal.agent_on(surface.as_str()) {
            let agent = agent.map(|sighting| (sighting.agent, sighting.by_hooks));
            self.handle(Event::AgentOn { surface: surface.clone(), agent });
        }
    }

    /// The time of some agents has come: stuck, or waiting for long.
    pub(crate) fn tick_agents(&mut self, now: Duration) {
        let patience = self.settings.config().patience();
        let stamp = Stamp::now();
        match self.journal.tick_agents(now, patience, &stamp) {
            Ok(_) => self.agents_due = self.journal.agents_deadline().ok().flatten(),
            Err(error) => {
                self.log.line(format!("cannot look after the agents: {error}"));
                self.agents_due = Some(now + Duration::from_secs(1));
            }
        }
        self.wake();
    }

    /// A watched file changed and its command ran.
    pub(crate) fn watched(&mut self, outcome: &Outcome) {
        let mut observation = ringer_core::Observation::new("env hook", outcome.words());
        observation.error = outcome.result.is_err();
        self.handle(Event::Observed(observation));
        let Some(agent) = outcome.agent.as_deref() else { return };
        let named = self.journal.agent_named(agent).ok().flatten().unwrap_or_else(|| agent.to_owned());
        let output = match &outcome.result {
            Ok(output) => output.clone(),
            Err(why) => why.clone(),
        };
        let body = format!("{}\n{output}", outcome.words());
        let cut: String = body.chars().take(8_000).collect();
        let mut draft =
            Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), cut.trim());
        if let Ok(agent) = Agent::new(&named) {
            draft.recipient = ringer_core::Recipient::Agent(agent);
            draft.category = Some("file_watcher".to_owned());
            self.append(&draft);
        }
    }
}

/// An agent that nobody has heard of, on that surface: it shows itself by its terminal alone.
fn stranger(surface: &SurfaceId) -> Option<Sighting> {
    let name: String = surface.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    let short: String = name.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
    Some(Sighting {
        agent: Agent::new(&format!("terminal-{short}")).ok()?,
        client: "terminal".to_owned(),
        session_id: surface.to_string(),
        scope: Scope::global(),
        worktree: None,
        cwd: None,
        surface: Some(surface.to_string()),
        tty: None,
        manager: None,
        name: None,
        process: None,
        by_hooks: false,
    })
}
