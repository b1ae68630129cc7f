//! Agents, as the hub hears of them: by their terminals, by their processes, and by the clock.

use std::time::Duration;

use ringer_core::{Agent, AgentState, Authority, Draft, Event, Kind, Scope, Sender, Signal, SurfaceId, Tag};
use ringer_journal::{AgentInfo, AgentUpdate, IdSource};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::clock::monotonic;
use crate::dispatch::Dispatcher;
use crate::input::Input;
use crate::process;
use crate::watch::Outcome;

/// An agent, as the hub last saw it.
#[derive(Debug)]
pub(crate) struct Followed {
    state: AgentState,
    /// Its process, and who waits for its end.
    process: Option<(u32, JoinHandle<()>)>,
}

impl Default for Followed {
    fn default() -> Self {
        Self { state: AgentState::Starting, process: None }
    }
}

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
        let stamp = IdSource::now();
        if let Err(error) = self.journal.append(draft, &stamp) {
            self.log.line(format!("cannot append: {error}"));
        }
        self.wake();
    }

    /// An agent's terminal gave a sign of what it does.
    pub(crate) fn apply_signal(&mut self, surface: &SurfaceId, signal: Signal) {
        let agent_info = match self.journal.agent_on(surface.as_str()) {
            Ok(Some(agent_info)) => agent_info,
            Ok(None) => match stranger(surface) {
                Some(agent_info) => agent_info,
                None => return,
            },
            Err(error) => return self.log.line(format!("cannot look for an agent: {error}")),
        };
        let signals = [signal];
        let patience = self.patience;
        let heard =
            AgentUpdate { agent: &agent_info, signals: &signals, mono: monotonic(), patience, notify: true };
        let stamp = IdSource::now();
        if let Err(error) = self.journal.update_agent(&heard, None, &stamp) {
            self.log.line(format!("cannot write down what {} does: {error}", agent_info.id.as_str()));
        }
        self.tell_of_agent(surface);
        self.wake();
    }

    /// Tells the engine which agent is on a surface.
    pub(crate) fn tell_of_agent(&mut self, surface: &SurfaceId) {
        if let Ok(agent) = self.journal.agent_on(surface.as_str()) {
            let agent = agent.map(|agent_info| (agent_info.id, agent_info.by_hooks));
            self.handle(Event::AgentOnSurface { surface: surface.clone(), agent });
        }
    }

    /// The time of some agents has come: stuck, or waiting for long.
    pub(crate) fn tick_agents(&mut self, now: Duration) {
        // An agent whose last event is in the spool is not stuck.
        if !self.take_in_spool() {
            self.agents_due = Some(now + Duration::from_secs(1));
            return;
        }
        let patience = self.patience;
        let stamp = IdSource::now();
        match self.journal.tick_agents(now, patience, &stamp) {
            Ok(_) => self.agents_due = self.journal.agents_deadline(now, patience).ok().flatten(),
            Err(error) => {
                self.log.line(format!("cannot look after the agents: {error}"));
                self.agents_due = Some(now + Duration::from_secs(1));
            }
        }
        self.wake();
    }

    /// Looks at the agents: tells of what changed, wakes those that came to rest, and waits for the end of their
    /// processes.
    pub(crate) fn follow_agents(&mut self) -> Result<(), ringer_journal::Error> {
        let live = self.journal.live_agents()?;
        self.followed.retain(|agent, followed| {
            let stays = live.iter().any(|(agent_info, _)| agent_info.id == *agent);
            if let Some((_, task)) = followed.process.as_ref().filter(|_| !stays) {
                task.abort();
            }
            stays
        });
        for (agent_info, state) in live {
            if self.followed.get(&agent_info.id).is_none_or(|followed| followed.state != state) {
                self.agent_changed(&agent_info, state);
            }
            self.follow_process(&agent_info);
        }
        Ok(())
    }

    fn agent_changed(&mut self, agent_info: &AgentInfo, state: AgentState) {
        let agent = &agent_info.id;
        self.followed.entry(agent.clone()).or_default().state = state;
        if let Some(surface) = agent_info.surface.as_deref().map(SurfaceId::new) {
            let known = Some((agent.clone(), agent_info.by_hooks));
            self.handle(Event::AgentOnSurface { surface, agent: known });
        }
        let data = json!({ "id": agent.as_str(), "state": state.as_str(), "client": agent_info.client });
        self.events.add(self.clock.now().wall_ms, "agent", data);
        // It may have come to rest with something waiting; whoever is busy is left alone there.
        self.services.iter_mut().for_each(|service| service.wake(agent));
    }

    fn follow_process(&mut self, agent_info: &AgentInfo) {
        let Some((pid, started)) = agent_info.process else { return };
        let followed = self.followed.entry(agent_info.id.clone()).or_default();
        if followed.process.as_ref().is_some_and(|(known, _)| *known == pid) {
            return;
        }
        let Some(inputs) = self.inputs.upgrade() else { return };
        let agent = agent_info.id.clone();
        let task = tokio::spawn(async move {
            process::ended(pid, started).await;
            let _ = inputs.send(Input::ProcessEnded(agent)).await;
        });
        followed.process = Some((pid, task));
    }

    /// An agent's process ended. If it has not said goodbye, that is told.
    pub(crate) fn agent_ended(&mut self, agent: &Agent) {
        // Its last event may be in the spool: an agent that said goodbye did not end in the middle of a turn.
        let is_behind = self.spool_retry_at.is_some_and(|at| at > monotonic());
        if is_behind || !self.take_in_spool() {
            return self.end_later(agent);
        }
        self.followed.remove(agent);
        let Ok(Some(agent_info)) = self.journal.agent_info(agent) else { return };
        let was = self.journal.agent_state(agent).ok().flatten();
        if was == Some(AgentState::Exited) {
            return;
        }
        let signals = [Signal::state(Authority::Process, AgentState::Exited)];
        let (mono, patience) = (monotonic(), self.patience);
        let heard = AgentUpdate { agent: &agent_info, signals: &signals, mono, patience, notify: true };
        match self.journal.update_agent(&heard, None, &IdSource::now()) {
            Ok(change) if change.messages_sent > 0 => {
                let text = format!("{} ended in the middle of a turn", agent.as_str());
                self.handle(Event::Observed(ringer_core::Observation::new("teammate-shutdown", text)));
            }
            Ok(_) => {}
            Err(error) => self.log.line(format!("cannot write down that {} ended: {error}", agent.as_str())),
        }
        self.wake();
    }

    /// A watched file changed and its command ran.
    pub(crate) fn watched(&mut self, outcome: &Outcome) {
        let mut observation = ringer_core::Observation::new("env-hook", outcome.words());
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
fn stranger(surface: &SurfaceId) -> Option<AgentInfo> {
    let name: String = surface.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    let short: String = name.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
    Some(AgentInfo {
        id: Agent::new(&format!("terminal-{short}")).ok()?,
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
