//! Sessions of clients whose hooks are not set up. Their terminals tell little of them; the files that such a client writes about
//! its sessions tell more.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, Authority, Signal, SignalContent};
use ringer_core::message::{Agent, SurfaceId, TmuxSurface};
use ringer_journal::{
    AgentEvent, AgentInfo, Error as JournalError, Home, IdSource, InboxRequest, Journal, ProcessStat,
    TERMINAL_CLIENT,
};

use crate::client::{
    Client, ClientPaths, ReadSession, SessionActivity, SessionFiles, SessionStatus, TurnEnd,
};
use crate::sessions::{LAST_MESSAGE_MS, MAX_SESSIONS, read_small, turn_end};

/// How often the last message of a session is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the file of an agent is looked for: a client writes it a moment after it has drawn itself, and some have none.
const MAX_SEARCHES: u32 = 100;

/// The agents that are known by their terminals alone.
#[derive(Debug)]
pub struct UnhookedSessions {
    home: Home,
    paths: ClientPaths,
    agents: HashMap<Agent, UnhookedAgent>,
}

#[derive(Debug)]
struct UnhookedAgent {
    info: AgentInfo,
    surface: SurfaceId,
    file: Option<StateFile>,
    /// How often its file has been looked for.
    searches: u32,
    /// The status that was told last.
    told: Option<SessionStatus>,
}

/// The file about a session that runs.
#[derive(Debug)]
struct StateFile {
    client: Client,
    path: PathBuf,
    read: ReadSession,
}

impl UnhookedSessions {
    /// Knows no agent yet.
    pub fn new(home: Home, paths: ClientPaths) -> Self {
        Self { home, paths, agents: HashMap::new() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Whether there may soon be a file that is not there yet.
    pub fn is_searching(&self) -> bool {
        self.agents.values().any(|agent| agent.file.is_none() && agent.searches < MAX_SEARCHES)
    }

    /// Where the files are that change with what a session does; none as long as no session has one.
    pub fn directories(&self) -> Vec<PathBuf> {
        let files = self.agents.values().filter_map(|agent| agent.file.as_ref());
        files.filter_map(|file| Some(file.path.parent()?.to_owned())).collect()
    }

    /// An agent may have begun, changed or ended.
    pub fn agent_changed(&mut self, agent: &Agent, clock: &dyn Fn() -> Duration) -> Result<(), JournalError> {
        let mut journal = Journal::open(&self.home)?;
        let lives = journal.agent_state(agent)?.is_some_and(|state| state != AgentState::Exited);
        let info = journal.agent_info(agent)?;
        let unhooked = info.filter(|info| lives && info.client == TERMINAL_CLIENT && !info.by_hooks);
        let surface = unhooked.as_ref().and_then(|info| info.surface.as_deref()).map(SurfaceId::new);
        let Some((info, surface)) = unhooked.zip(surface) else {
            self.agents.remove(agent);
            return Ok(());
        };
        self.agents.entry(agent.clone()).or_insert_with(|| UnhookedAgent {
            info,
            surface,
            file: None,
            searches: 0,
            told: None,
        });
        self.look(clock)
    }

    /// Looks at the files, and writes down what they tell. What cannot be written now is written with the next look; the error is
    /// the last one.
    pub fn look(&mut self, clock: &dyn Fn() -> Duration) -> Result<(), JournalError> {
        let mut result = Ok(());
        for (agent, unhooked) in &mut self.agents {
            if let Err(error) = unhooked.tell_news(agent, &self.home, &self.paths, clock) {
                result = Err(error);
            }
        }
        result
    }
}

impl UnhookedAgent {
    fn tell_news(
        &mut self,
        agent: &Agent,
        home: &Home,
        paths: &ClientPaths,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), JournalError> {
        let mono = clock();
        let Some((status, end)) = self.news(paths) else { return Ok(()) };
        let mut journal = Journal::open(home)?;
        let Some(state) = journal.agent_state(agent)? else { return Ok(()) };
        if let Some(signal) = signal_of(&status, end, state) {
            let event = AgentEvent {
                agent: self.info.clone(),
                signals: vec![signal],
                prompt: None,
                taken: None,
                notify: true,
                mono,
                stamp: IdSource::now(),
                session_starts: false,
                turn_changes: false,
                nonce: None,
                confirms: None,
            };
            journal.record_event(&event, InboxRequest::default())?;
        }
        self.told = Some(status);
        Ok(())
    }

    /// What its session does, if that was not told yet; and how its turn ended.
    fn news(&mut self, paths: &ClientPaths) -> Option<(SessionStatus, SeenEnd)> {
        if self.file.as_ref().is_none_or(|file| !file.path.exists()) {
            self.file = find(paths, &self.surface);
            self.searches += 1;
        }
        let file = self.file.as_ref()?;
        let session = (file.read)(&read_small(&file.path)?)?;
        if self.info.cwd.is_none() {
            self.info.cwd = session.cwd;
        }
        let status = session.status.filter(|status| self.told.as_ref() != Some(status))?;
        let end = match (&status.activity, &self.told) {
            // It is from before: no turn ended while it was looked at.
            (_, None) => SeenEnd::Before,
            (SessionActivity::Idle, Some(_)) => {
                let end = file.turn_end(paths, &status, &session.session_id);
                end.map_or(SeenEnd::Unknown, SeenEnd::Known)
            }
            _ => SeenEnd::Unknown,
        };
        Some((status, end))
    }
}

impl StateFile {
    /// How the last turn of a session ended. The client writes its last message and its status at about the same time.
    fn turn_end(&self, paths: &ClientPaths, status: &SessionStatus, session_id: &str) -> Option<TurnEnd> {
        let begun = Instant::now();
        loop {
            let is_over = IdSource::now().unix_ms >= status.since_ms.saturating_add(LAST_MESSAGE_MS)
                || begun.elapsed().as_millis() >= u128::from(LAST_MESSAGE_MS.unsigned_abs());
            let end = turn_end(self.client, paths, session_id);
            if is_over || matches!(end, Some(TurnEnd::Complete(_) | TurnEnd::Failed(_))) {
                return end;
            }
            sleep(LOOK_EVERY);
        }
    }
}

/// How the turn of a session that is idle ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SeenEnd {
    /// Before the session was looked at, if there was one.
    Before,
    /// Its last message was not found in time.
    Unknown,
    Known(TurnEnd),
}

/// The file about the session on a surface: its name is the process, and the process's environment tells where it is.
fn find(paths: &ClientPaths, surface: &SurfaceId) -> Option<StateFile> {
    Client::ALL.into_iter().find_map(|client| {
        let adapter = client.adapter();
        let Some(SessionFiles::States { directory, read, .. }) = &adapter.sessions else { return None };
        let directory = (adapter.settings.user_directory)(paths).join(directory);
        let entries = fs::read_dir(directory).ok()?.flatten().take(MAX_SESSIONS);
        let mut files = entries.map(|entry| entry.path()).filter(|path| {
            let pid = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
            pid.filter(|pid| ProcessStat::of(*pid).is_some()).and_then(surface_of).as_ref() == Some(surface)
        });
        Some(StateFile { client, path: files.next()?, read: *read })
    })
}

/// The surface that a process is on: a pane of tmux, or what `ringer run` says. Only where the kernel tells it as a file.
fn surface_of(pid: u32) -> Option<SurfaceId> {
    surface_in(&fs::read(format!("/proc/{pid}/environ")).ok()?)
}

fn surface_in(environment: &[u8]) -> Option<SurfaceId> {
    let variables = environment.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
    let variables: HashMap<&str, &str> = variables.filter_map(|one| one.split_once('=')).collect();
    let pane = variables.get("TMUX").zip(variables.get("TMUX_PANE"));
    let pane = pane.and_then(|(tmux, pane)| TmuxSurface::of_variables(tmux, pane));
    pane.map(TmuxSurface::id)
        .or_else(|| variables.get("RINGER_SURFACE").map(|surface| SurfaceId::new(surface)))
}

/// What a status says of an agent in this state.
fn signal_of(status: &SessionStatus, end: SeenEnd, state: AgentState) -> Option<Signal> {
    let interrupted = || Some(Signal::new(Authority::Status, SignalContent::Interrupted));
    let says = |state: AgentState| Some(Signal::state(Authority::Status, state));
    match &status.activity {
        SessionActivity::Busy => says(AgentState::Working),
        SessionActivity::Waiting(on) => says(AgentState::Blocked((*on)?)),
        SessionActivity::Failed(why) => says(AgentState::Error).map(|signal| signal.text(why)),
        SessionActivity::Idle if state == AgentState::Starting => says(AgentState::Ready),
        SessionActivity::Idle => match end {
            SeenEnd::Known(TurnEnd::Complete(text)) => says(AgentState::Done).map(|signal| signal.text(text)),
            SeenEnd::Known(TurnEnd::Failed(why)) => says(AgentState::Error).map(|signal| signal.text(why)),
            // What its title ended has been told.
            SeenEnd::Before | SeenEnd::Unknown if state == AgentState::Done => None,
            // A spinner while the client starts is no turn.
            SeenEnd::Known(TurnEnd::Interrupted) | SeenEnd::Before => interrupted(),
            // That a turn ended is told rather than kept.
            SeenEnd::Unknown => says(AgentState::Done),
        },
        SessionActivity::Interrupted => interrupted(),
        SessionActivity::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::agent::BlockedOn;

    #[test]
    fn a_process_is_in_the_pane_or_on_the_surface_that_its_environment_names() {
        let surface = |text: &str| surface_in(text.as_bytes()).map(|surface| surface.to_string());
        let run = "HOME=/x\0RINGER_SURFACE=tty:/dev/pts/1@5\0";
        assert_eq!(surface(run).as_deref(), Some("tty:/dev/pts/1@5"));
        let pane = format!("{run}TMUX=/tmp/a,b/s,77,0\0TMUX_PANE=%3\0");
        assert_eq!(surface(&pane).as_deref(), Some("tmux:/tmp/a,b/s:77:%3"));
        assert_eq!(surface("HOME=/x\0TMUX=\0TMUX_PANE=%3\0"), None);
    }

    #[test]
    fn a_session_that_is_idle_again_is_done_or_was_interrupted() {
        let signal = |activity, end, state| {
            let signal = signal_of(&SessionStatus { activity, since_ms: 7 }, end, state)?;
            Some((signal.content, signal.text))
        };
        let complete = || SeenEnd::Known(TurnEnd::Complete("all done".into()));
        assert_eq!(
            signal(SessionActivity::Idle, complete(), AgentState::Working),
            Some((SignalContent::State(AgentState::Done), Some("all done".into())))
        );
        let interrupted = Some((SignalContent::Interrupted, None));
        for end in [SeenEnd::Known(TurnEnd::Interrupted), SeenEnd::Before] {
            assert_eq!(signal(SessionActivity::Idle, end, AgentState::Working), interrupted);
        }
        let known = SeenEnd::Known(TurnEnd::Interrupted);
        assert_eq!(signal(SessionActivity::Idle, known, AgentState::Done), interrupted, "the title guessed");
        let done = Some((SignalContent::State(AgentState::Done), None));
        assert_eq!(signal(SessionActivity::Idle, SeenEnd::Unknown, AgentState::Working), done);
        for end in [SeenEnd::Before, SeenEnd::Unknown] {
            assert_eq!(signal(SessionActivity::Idle, end, AgentState::Done), None, "it was told");
        }
        let asks = SessionActivity::Waiting(Some(BlockedOn::Permission));
        let blocked = SignalContent::State(AgentState::Blocked(BlockedOn::Permission));
        assert_eq!(signal(asks, SeenEnd::Unknown, AgentState::Working), Some((blocked, None)));
        assert_eq!(signal(SessionActivity::Waiting(None), SeenEnd::Unknown, AgentState::Working), None);
    }
}
