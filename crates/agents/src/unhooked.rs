//! Sessions of clients whose hooks are not set up. Their terminals reveal little; the status files that such a client writes
//! reveal more.

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

/// Interval between two looks for the last message of a session.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Maximum searches for the status file of an agent: a client writes it a moment after it has drawn its screen, and some clients
/// never do.
const MAX_SEARCHES: u32 = 100;

/// The agents that are known only by their terminals.
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
    file: Option<StatusFile>,
    searches: u32,
    /// The last status that was recorded.
    last_status: Option<SessionStatus>,
}

/// The status file of a running session.
#[derive(Debug)]
struct StatusFile {
    client: Client,
    path: PathBuf,
    read: ReadSession,
}

impl UnhookedSessions {
    /// Creates an empty set.
    pub fn new(home: Home, paths: ClientPaths) -> Self {
        Self { home, paths, agents: HashMap::new() }
    }

    /// Returns true if no agent is known.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Returns true if the status file of an agent may still appear.
    pub fn is_searching(&self) -> bool {
        self.agents.values().any(|agent| agent.file.is_none() && agent.searches < MAX_SEARCHES)
    }

    /// The directories of the status files, to watch for changes.
    pub fn directories(&self) -> Vec<PathBuf> {
        let files = self.agents.values().filter_map(|agent| agent.file.as_ref());
        files.filter_map(|file| Some(file.path.parent()?.to_owned())).collect()
    }

    /// Updates the set after an agent may have started, changed or ended.
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
            last_status: None,
        });
        self.poll(clock)
    }

    /// Reads the files and records changes. A change that cannot be written is retried with the next look; the error is the last
    /// one.
    pub fn poll(&mut self, clock: &dyn Fn() -> Duration) -> Result<(), JournalError> {
        let mut result = Ok(());
        for (agent, unhooked) in &mut self.agents {
            if let Err(error) = unhooked.record_change(agent, &self.home, &self.paths, clock) {
                result = Err(error);
            }
        }
        result
    }
}

impl UnhookedAgent {
    fn record_change(
        &mut self,
        agent: &Agent,
        home: &Home,
        paths: &ClientPaths,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), JournalError> {
        let mono = clock();
        let Some((status, end)) = self.new_status(paths) else { return Ok(()) };
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
        self.last_status = Some(status);
        Ok(())
    }

    /// The session's status if it has changed, and how its last turn ended.
    fn new_status(&mut self, paths: &ClientPaths) -> Option<(SessionStatus, LastTurnEnd)> {
        if self.file.as_ref().is_none_or(|file| !file.path.exists()) {
            self.file = find_status_file(paths, &self.surface);
            self.searches += 1;
        }
        let file = self.file.as_ref()?;
        let session = (file.read)(&read_small(&file.path)?)?;
        if self.info.cwd.is_none() {
            self.info.cwd = session.cwd;
        }
        let status = session.status.filter(|status| self.last_status.as_ref() != Some(status))?;
        let end = match (&status.activity, &self.last_status) {
            // The status is from before the watch: no turn ended meanwhile.
            (_, None) => LastTurnEnd::BeforeWatch,
            (SessionActivity::Idle, Some(_)) => {
                let end = file.turn_end(paths, &status, &session.session_id);
                end.map_or(LastTurnEnd::Unknown, LastTurnEnd::Known)
            }
            _ => LastTurnEnd::Unknown,
        };
        Some((status, end))
    }
}

impl StatusFile {
    /// Waits for the end of the last turn: the client writes its last message and its status at about the same time.
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

/// How the last turn of an idle session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LastTurnEnd {
    /// Before the watch began, if there was a turn at all.
    BeforeWatch,
    /// The last message was not found in time.
    Unknown,
    Known(TurnEnd),
}

/// Finds the status file of the session on a surface. The file is named after the process, whose environment names the surface.
fn find_status_file(paths: &ClientPaths, surface: &SurfaceId) -> Option<StatusFile> {
    Client::ALL.into_iter().find_map(|client| {
        let adapter = client.adapter();
        let Some(SessionFiles::StatusFiles { directory, read, .. }) = &adapter.sessions else { return None };
        let directory = (adapter.settings.user_directory)(paths).join(directory);
        let entries = fs::read_dir(directory).ok()?.flatten().take(MAX_SESSIONS);
        let mut files = entries.map(|entry| entry.path()).filter(|path| {
            let pid = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
            pid.filter(|pid| ProcessStat::of(*pid).is_some()).and_then(surface_of).as_ref() == Some(surface)
        });
        Some(StatusFile { client, path: files.next()?, read: *read })
    })
}

/// The surface of a process: its tmux pane, or `RINGER_SURFACE` as set by `ringer run`. Only on systems with `/proc`.
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

/// The signal for a status of an agent in this state.
fn signal_of(status: &SessionStatus, end: LastTurnEnd, state: AgentState) -> Option<Signal> {
    let interrupted = || Some(Signal::new(Authority::Status, SignalContent::Interrupted));
    let says = |state: AgentState| Some(Signal::state(Authority::Status, state));
    match &status.activity {
        SessionActivity::Busy => says(AgentState::Working),
        SessionActivity::Waiting(on) => says(AgentState::Blocked((*on)?)),
        SessionActivity::Failed(why) => says(AgentState::Error).map(|signal| signal.text(why)),
        SessionActivity::Idle if state == AgentState::Starting => says(AgentState::Ready),
        SessionActivity::Idle => match end {
            LastTurnEnd::Known(TurnEnd::Complete(text)) => {
                says(AgentState::Done).map(|signal| signal.text(text))
            }
            LastTurnEnd::Known(TurnEnd::Failed(why)) => {
                says(AgentState::Error).map(|signal| signal.text(why))
            }
            // The end of this turn was already reported from the terminal title.
            LastTurnEnd::BeforeWatch | LastTurnEnd::Unknown if state == AgentState::Done => None,
            // A spinner while the client starts is no turn.
            LastTurnEnd::Known(TurnEnd::Interrupted) | LastTurnEnd::BeforeWatch => interrupted(),
            // When in doubt, report that the turn ended.
            LastTurnEnd::Unknown => says(AgentState::Done),
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
        let complete = || LastTurnEnd::Known(TurnEnd::Complete("all done".into()));
        assert_eq!(
            signal(SessionActivity::Idle, complete(), AgentState::Working),
            Some((SignalContent::State(AgentState::Done), Some("all done".into())))
        );
        let interrupted = Some((SignalContent::Interrupted, None));
        for end in [LastTurnEnd::Known(TurnEnd::Interrupted), LastTurnEnd::BeforeWatch] {
            assert_eq!(signal(SessionActivity::Idle, end, AgentState::Working), interrupted);
        }
        let known = LastTurnEnd::Known(TurnEnd::Interrupted);
        assert_eq!(signal(SessionActivity::Idle, known, AgentState::Done), interrupted, "the title guessed");
        let done = Some((SignalContent::State(AgentState::Done), None));
        assert_eq!(signal(SessionActivity::Idle, LastTurnEnd::Unknown, AgentState::Working), done);
        for end in [LastTurnEnd::BeforeWatch, LastTurnEnd::Unknown] {
            assert_eq!(signal(SessionActivity::Idle, end, AgentState::Done), None, "it was told");
        }
        let asks = SessionActivity::Waiting(Some(BlockedOn::Permission));
        let blocked = SignalContent::State(AgentState::Blocked(BlockedOn::Permission));
        assert_eq!(signal(asks, LastTurnEnd::Unknown, AgentState::Working), Some((blocked, None)));
        assert_eq!(signal(SessionActivity::Waiting(None), LastTurnEnd::Unknown, AgentState::Working), None);
    }
}
