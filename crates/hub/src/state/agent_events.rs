//! Updates the state of agents from their terminals, their processes and the passing of time.

use std::collections::HashSet;
use std::time::Duration;

use ringer_core::agent::{AgentState, Authority, Signal};
use ringer_core::attention::ResolvedBy;
use ringer_core::engine::TerminalNotification;
use ringer_core::hash::fnv1a_32;
use ringer_core::message::{Agent, ICON, Mark, SurfaceId, TERMINAL_KEY_PREFIX, Tag, validate_name};
use ringer_core::toast::{Observation, SourceNotification};
use ringer_core::{Draft, Event, Kind, MessageId, Now, Recipient, Scope, Sender};
use ringer_ipc::part::PartEvent;
use ringer_journal::{AgentInfo, AgentUpdate, Error, TERMINAL_CLIENT};
use serde_json::json;

use super::{HubState, RETRY_AFTER};
use crate::message::{Action, WatchOutcome};

/// The longest output of a watch's command that an agent is sent: its context is expensive, and it can read the file.
const MAX_OUTPUT_CHARS: usize = 8_000;
/// Grace period for signals of a terminal that arrive after its agent has exited.
const LATE_SIGNALS: Duration = Duration::from_secs(3);
/// A notification with a longer id cannot be withdrawn, and a longer name of an icon is ignored.
const MAX_ID: usize = 64;

/// The key of a terminal notification with an id. `None` if the id is too long.
fn terminal_key(surface: &SurfaceId, id: &str) -> Option<String> {
    let key = format!("{TERMINAL_KEY_PREFIX}{surface}:{id}");
    (id.len() <= MAX_ID && validate_name("key", &key).is_ok()).then_some(key)
}

impl HubState {
    /// Appends a message for output of a terminal that no agent's turn covers.
    pub(super) fn append_terminal_notification(
        &mut self,
        now: Now,
        surface: &SurfaceId,
        notification: &TerminalNotification,
        category: Option<String>,
        report: Option<MessageId>,
    ) {
        let TerminalNotification { title, body, kind, id, ttl_ms, icon } = notification;
        let (title, kind) = (title.as_ref(), kind.unwrap_or_default());
        let known = self.journal.agent_on(surface.as_str()).ok().flatten();
        let scope = known.map_or_else(Scope::global, |agent| agent.scope);
        let text = if body.trim().is_empty() { title.map_or("(no text)", String::as_str) } else { body };
        let Ok(mut draft) = Draft::new(scope, Sender::system(), kind, text) else {
            return self.log(format!("{surface} showed a text that cannot be stored"));
        };
        draft.title = title.filter(|title| *title != text).cloned();
        draft.category = category;
        draft.key = id.as_deref().and_then(|id| terminal_key(surface, id));
        draft.ttl = ttl_ms.map(Duration::from_millis);
        draft.origin.surface = Some(surface.to_string());
        // The host may be gone when the message is read.
        draft.origin.workspace = self.surfaces.workspace_of(surface).map(|workspace| workspace.to_string());
        if let Some(icon) = icon.as_deref().filter(|icon| icon.len() <= MAX_ID) {
            draft.origin.meta.insert(ICON.to_owned(), icon.to_owned());
        }
        if draft.check().is_err() {
            draft.title = None;
        }
        self.append_or_log(now, &draft, report);
    }

    /// Withdraws a terminal notification by its id. The mark is a message too, so it is read after the notification even if that
    /// is still unread.
    pub(super) fn withdraw_terminal_notification(
        &mut self,
        now: Now,
        surface: &SurfaceId,
        id: &str,
        report: Option<MessageId>,
    ) {
        let Some(key) = terminal_key(surface, id) else { return };
        let (tag, by) = (Tag::Mark(Mark::Resolve), ResolvedBy::Withdrawn);
        let mut mark = Draft::tagged(Scope::global(), Sender::system(), tag, by.as_str());
        mark.key = Some(key);
        self.append_or_log(now, &mark, report);
    }

    /// Sends the person a notification of a toast source, such as a limit or a model.
    pub(super) fn append_source_notification(&mut self, now: Now, sent: &SourceNotification) {
        let Ok(mut draft) = Draft::new(Scope::global(), Sender::system(), Kind::Status, &sent.text) else {
            return;
        };
        draft.recipient = Recipient::Person;
        draft.title = Some(sent.title.clone());
        draft.key = Some(sent.source.clone());
        self.append_or_log(now, &draft, None);
    }

    fn append_or_log(&mut self, now: Now, draft: &Draft, id: Option<MessageId>) {
        let appended = self.append(now, draft, id);
        self.log_unless_passing("cannot append", appended);
    }

    /// Applies a signal of a terminal to the agent in it.
    pub(super) fn update_agent_on(
        &mut self,
        now: Now,
        surface: &SurfaceId,
        signal: &Signal,
    ) -> Result<(), Error> {
        let known = self.journal.agent_on(surface.as_str())?;
        // The last output of a terminal may arrive after the end of its agent was noticed. It belongs to no other agent.
        if known.is_none() && self.journal.agent_ended_on(surface.as_str(), now.wall_ms, LATE_SIGNALS)? {
            return Ok(());
        }
        if let Some(info) = known.or_else(|| unknown_agent(surface)) {
            self.update_agent(now, &info, signal.clone())?;
            self.refresh_agent_on(now, surface);
        }
        Ok(())
    }

    /// Returns the number of messages that the update sent.
    fn update_agent(&mut self, now: Now, info: &AgentInfo, signal: Signal) -> Result<usize, Error> {
        let signals = [signal];
        let timeouts = self.agents.timeouts();
        let update = AgentUpdate { agent: info, signals: &signals, mono: now.mono, timeouts, notify: true };
        let ids = self.ids(now);
        self.agents.mark_stale();
        self.journal.update_agent(&update, None, &ids).map(|change| change.messages_sent)
    }

    /// Tells the engine which agent is on a surface.
    pub(super) fn refresh_agent_on(&mut self, now: Now, surface: &SurfaceId) {
        if let Ok(info) = self.journal.agent_on(surface.as_str()) {
            let agent = info.map(|info| (info.id, info.by_hooks));
            self.feed_engine(now, Event::AgentOnSurface { surface: surface.clone(), agent });
        }
    }

    /// Finds agents that are stuck, or that have waited for their person too long.
    pub(super) fn tick_agents(&mut self, now: Now) {
        // An agent whose last event is in the spool is not stuck.
        if !self.apply_spool(now) {
            return self.agents.set_next_deadline(Some(now.mono + RETRY_AFTER));
        }
        let (timeouts, ids) = (self.agents.timeouts(), self.ids(now));
        let deadline = match self.journal.tick_agents(now.mono, timeouts, &ids) {
            Ok(_) => self.journal.live_agents(now.mono, timeouts).ok().and_then(|live| live.deadline),
            Err(error) => {
                self.write_failed(now, "cannot look after the agents", &error);
                Some(now.mono + RETRY_AFTER)
            }
        };
        self.agents.set_next_deadline(deadline);
        self.agents.mark_stale();
        self.ingest.schedule();
    }

    /// Refreshes the live agents from the journal: publishes changes, wakes agents that became idle, and watches their processes.
    pub(super) fn refresh_agents(&mut self, now: Now) -> Result<(), Error> {
        let mut live = self.journal.live_agents(now.mono, self.agents.timeouts())?;
        for guess in take_guesses(&mut live.agents) {
            if !self.is_offline() {
                self.end_quietly(now, &guess)?;
            }
        }
        self.agents.set_next_deadline(live.deadline);
        let changes = self.agents.update(live.agents);
        if !changes.changed.is_empty() || !changes.unwatch.is_empty() {
            self.parts.tell(PartEvent::AgentsChanged);
        }
        for agent in changes.unwatch {
            self.act(Action::UnwatchProcess(agent));
        }
        for (info, state) in changes.changed {
            self.agent_changed(now, &info, state);
        }
        for (agent, pid, started) in changes.watch {
            self.act(Action::WatchProcess { agent, pid, started });
        }
        Ok(())
    }

    /// Ends an agent that was known by its terminal alone, without a notification, because its hooks report now.
    fn end_quietly(&mut self, now: Now, info: &AgentInfo) -> Result<(), Error> {
        let signals = [Signal::state(Authority::Process, AgentState::Exited)];
        let timeouts = self.agents.timeouts();
        let update = AgentUpdate { agent: info, signals: &signals, mono: now.mono, timeouts, notify: false };
        let ids = self.ids(now);
        self.journal.update_agent(&update, None, &ids).map(drop)
    }

    fn agent_changed(&mut self, now: Now, info: &AgentInfo, state: AgentState) {
        if let Some(surface) = info.surface.as_deref().map(SurfaceId::new) {
            self.parts.tell(PartEvent::SurfaceActive(&surface));
            let agent = Some((info.id.clone(), info.by_hooks));
            self.feed_engine(now, Event::AgentOnSurface { surface, agent });
        }
        let (id, surface) = (info.id.as_str(), &info.surface);
        let data = json!({ "id": id, "state": state.as_str(), "client": info.client, "surface": surface });
        self.publish(now, "agent", data);
        // It may have become idle with messages waiting. The parts leave a busy agent alone.
        self.parts.tell(PartEvent::AgentActive(&info.id));
    }

    /// Handles the end of an agent's process. Notifies the person if the agent did not report its end itself.
    pub(super) fn process_ended(&mut self, now: Now, agent: &Agent) {
        // Its last event may be in the spool. An agent that exited properly did not end in the middle of a turn.
        if self.ingest.spool_is_behind(now.mono) || !self.apply_spool(now) {
            return self.act(Action::RetryProcessEnd(agent.clone()));
        }
        self.agents.remove(agent);
        self.act(Action::UnwatchProcess(agent.clone()));
        let Ok(Some(info)) = self.journal.agent_info(agent) else { return };
        let was = self.journal.agent_state(agent).ok().flatten();
        if was == Some(AgentState::Exited) {
            return;
        }
        let signal = Signal::state(Authority::Process, AgentState::Exited);
        match self.update_agent(now, &info, signal) {
            Ok(0) => {}
            Ok(_) => {
                let text = format!("{} ended in the middle of a turn", agent.as_str());
                self.feed_engine(now, Event::Observed(Observation::new("teammate-shutdown", text)));
            }
            Err(error) => {
                self.write_failed(now, "cannot write down that an agent ended, trying again", &error);
                self.act(Action::RetryProcessEnd(agent.clone()));
            }
        }
        self.parts.tell(PartEvent::AgentsChanged);
        self.ingest.schedule();
    }

    /// Handles the result of a watch's command.
    pub(super) fn watch_finished(&mut self, now: Now, outcome: &WatchOutcome) {
        let mut observation = Observation::new("env-hook", outcome.words());
        observation.error = outcome.result.is_err();
        self.feed_engine(now, Event::Observed(observation));
        let Some(agent) = outcome.agent.as_deref() else { return };
        let named = self.journal.agent_named(agent).ok().flatten().unwrap_or_else(|| agent.to_owned());
        let (Ok(output) | Err(output)) = &outcome.result;
        let body = format!("{}\n{output}", outcome.words());
        let cut: String = body.chars().take(MAX_OUTPUT_CHARS).collect();
        let mut draft =
            Draft::tagged(Scope::global(), Sender::system(), Tag::Notice(Kind::Status), cut.trim());
        if let Ok(agent) = Agent::new(&named) {
            draft.recipient = Recipient::Agent(agent);
            draft.category = Some("file_watcher".to_owned());
            self.append_or_log(now, &draft, None);
        }
    }
}

/// Removes the agents that are known by their terminals alone, if another agent on the same terminal reports by hooks: both are
/// the same. This happens with clients that call their first hook with the first prompt.
fn take_guesses(live: &mut Vec<(AgentInfo, AgentState)>) -> Vec<AgentInfo> {
    let hooked: HashSet<String> =
        live.iter().filter(|(info, _)| info.by_hooks).filter_map(|(info, _)| info.surface.clone()).collect();
    let is_guess = |info: &AgentInfo| {
        info.client == TERMINAL_CLIENT
            && info.surface.as_ref().is_some_and(|surface| hooked.contains(surface))
    };
    live.extract_if(.., |(info, _)| is_guess(info)).map(|(info, _)| info).collect()
}

/// An agent without hooks, known by its terminal alone. Its name is a hash of the whole surface, because the ids of two terminals
/// often have the same ending.
fn unknown_agent(surface: &SurfaceId) -> Option<AgentInfo> {
    let hash = fnv1a_32(surface.as_str().bytes());
    Some(AgentInfo {
        surface: Some(surface.to_string()),
        ..AgentInfo::new(
            Agent::new(&format!("terminal-{hash:08x}")).ok()?,
            TERMINAL_CLIENT,
            surface.to_string(),
            Scope::global(),
        )
    })
}
