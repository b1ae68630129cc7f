//! Session state that clients write to files. It covers what no hook reports: the person interrupted the agent or approved a
//! long-running tool, or the server failed.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, Authority, Signal, SignalContent};
use ringer_core::message::Agent;
use ringer_journal::{
    AgentEvent, AgentInfo, Error as JournalError, Home, IdSource, InboxRequest, Journal, ProcessStat,
};
use ringer_platform::owned;

use crate::client::{
    Client, ClientPaths, HookReport, LogDetail, LogPlace, ReadSession, SessionActivity, SessionFile,
    SessionFiles, SessionStatus, TurnEnd,
};

/// Maximum files to read. Far more than sessions run at once.
pub(crate) const MAX_SESSIONS: usize = 1024;
/// Maximum file size. Real files have a few hundred bytes.
pub(crate) const MAX_BYTES: u64 = 64 * 1024;
/// How long a status must last before it counts, if a hook may report the same with more detail. Hooks arrive faster than this.
const SETTLED_MS: i64 = 700;

/// How long the client may take to write a session's last message after the session is idle. A message that should have been
/// continued means an interruption, which no hook reports.
pub(crate) const LAST_MESSAGE_MS: i64 = 400;

/// How long a hook waits for a line of its session's log. Copilot wrote the refusal of a permission 10 ms after it called the hook;
/// of most permissions there is none.
const REFUSAL_WITHIN: Duration = Duration::from_millis(150);
/// The same for a line that is always written; on a busy machine that took more than 150 ms.
const DETAIL_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// Age of a session file after which its first hook has surely been called.
const FIRST_HOOK: Duration = Duration::from_secs(5);

/// Bytes read from the end of a log: enough for the lines since a turn ended.
const MAX_TAIL: u64 = 64 * 1024;
/// Bytes read from the end of a log to find the beginning of the turn.
const MAX_TURN: u64 = 4 * 1024 * 1024;
/// Maximum size of a client's settings file.
const MAX_SETTINGS: u64 = 1024 * 1024;
/// Maximum directories to search for the log of a session: a resumed session has an old log, in the directory of another day.
const MAX_DIRECTORIES: usize = 256;

/// Reads what a client wrote about a session.
pub(crate) fn find_session(client: Client, paths: &ClientPaths, session_id: &str) -> Option<SessionFile> {
    let adapter = client.adapter();
    let settings = (adapter.settings.user_directory)(paths);
    match adapter.sessions.as_ref()? {
        SessionFiles::StatusFiles { .. } => {
            let (path, read) = find_status_file(client, paths, session_id)?;
            read(&read_small(&path)?)
        }
        SessionFiles::Logs { directory, place, read, .. } => {
            let tail = log_tail(&settings.join(directory), place, session_id)?;
            let status = read(&tail);
            Some(SessionFile { session_id: session_id.to_owned(), socket: None, cwd: None, status })
        }
    }
}

/// Finds the log of a session.
fn log_of(directory: &Path, place: &LogPlace, session_id: &str) -> Option<PathBuf> {
    match place {
        LogPlace::NameEnd(name_end) => find_log(directory, &name_end(session_id)),
        LogPlace::SessionDirectory(name) => {
            let is_name = session_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            is_name.then(|| directory.join(session_id).join(name))
        }
    }
}

/// Reads the end of a session's log.
fn log_tail(directory: &Path, place: &LogPlace, session_id: &str) -> Option<Vec<u8>> {
    tail_of(&log_of(directory, place, session_id)?, MAX_TAIL).ok()
}

/// Adds to a hook's report what only the session's log has. The client may write it while the hook runs.
pub(crate) fn add_log_detail(client: Client, paths: &ClientPaths, report: &mut HookReport) {
    let (Some(detail), Some(session_id)) = (report.log_detail, report.session_id.clone()) else { return };
    let adapter = client.adapter();
    let Some(SessionFiles::Logs { directory, place, add_detail: Some(add_detail), .. }) = &adapter.sessions
    else {
        return;
    };
    let directory = (adapter.settings.user_directory)(paths).join(directory);
    let most = if detail == LogDetail::Permission { REFUSAL_WITHIN } else { DETAIL_WITHIN };
    let start = Instant::now();
    loop {
        let tail = log_tail(&directory, place, &session_id);
        let is_added = tail.is_some_and(|tail| add_detail(report, detail, &tail));
        if is_added || start.elapsed() >= most {
            return;
        }
        sleep(LOOK_EVERY);
    }
}

/// Reads the end of a session's log, and the client's last settings file.
pub(crate) fn log_and_settings(
    client: Client,
    paths: &ClientPaths,
    session_id: &str,
) -> Option<(Vec<u8>, String)> {
    let adapter = client.adapter();
    let Some(SessionFiles::Logs { directory, place, .. }) = &adapter.sessions else { return None };
    let folder = (adapter.settings.user_directory)(paths);
    let log = tail_of(&log_of(&folder.join(directory), place, session_id)?, MAX_TURN).ok()?;
    let settings = owned::read(&folder.join(adapter.settings.files.last()?.name), MAX_SETTINGS);
    let settings = settings.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Some((log, settings.unwrap_or_default()))
}

/// Returns how a turn ended whose end the client's hook reported without saying how: as the log says, or complete.
pub(crate) fn logged_turn_end(client: Client, paths: &ClientPaths, session_id: &str) -> Signal {
    let status = find_session(client, paths, session_id).and_then(|session| session.status);
    match status.map(|status| status.activity) {
        Some(SessionActivity::Interrupted) => Signal::new(Authority::Hook, SignalContent::Interrupted),
        Some(SessionActivity::Failed(why)) => Signal::state(Authority::Hook, AgentState::Error).text(why),
        _ => Signal::state(Authority::Hook, AgentState::Done),
    }
}

/// Finds the status file of a session, and the function that reads it. Files of processes that have exited are skipped: a killed
/// client leaves its file behind, and the session may run again in another process.
pub(crate) fn find_status_file(
    client: Client,
    paths: &ClientPaths,
    session_id: &str,
) -> Option<(PathBuf, ReadSession)> {
    let adapter = client.adapter();
    let Some(SessionFiles::StatusFiles { directory, read, .. }) = &adapter.sessions else { return None };
    let settings = (adapter.settings.user_directory)(paths);
    let entries = fs::read_dir(settings.join(directory)).ok()?.flatten().take(MAX_SESSIONS);
    let mut paths = entries.map(|entry| entry.path()).filter(|path| is_of_running_process(path));
    let is_it = |path: &PathBuf| {
        let session = read_small(path).and_then(|bytes| read(&bytes));
        session.is_some_and(|session| session.session_id == session_id)
    };
    Some((paths.find(is_it)?, *read))
}

/// Returns true if the process that a file `PID.json` is named after is running.
fn is_of_running_process(path: &Path) -> bool {
    let pid = path.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok());
    pid.is_some_and(|pid| ProcessStat::of(pid).is_some())
}

pub(crate) fn read_small(path: &Path) -> Option<Vec<u8>> {
    owned::read(path, MAX_BYTES).ok()
}

/// The ids of a client's running sessions, for a client that writes a file `PID.json` for each. New sessions are left out: their
/// first hook may be on its way.
pub fn running_sessions(client: Client, paths: &ClientPaths) -> Vec<String> {
    let adapter = client.adapter();
    let Some(SessionFiles::StatusFiles { directory, read, .. }) = &adapter.sessions else {
        return Vec::new();
    };
    let settings = (adapter.settings.user_directory)(paths);
    let entries = fs::read_dir(settings.join(directory)).into_iter().flatten().flatten();
    let running = entries.take(MAX_SESSIONS).filter_map(|entry| {
        let path = entry.path();
        if !is_of_running_process(&path) {
            return None;
        }
        let age = entry.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        let bytes = read_small(&path).filter(|_| age >= FIRST_HOOK)?;
        Some(read(&bytes)?.session_id)
    });
    running.collect()
}

/// Finds the log whose name ends like this, at most three directories below. A new session has the last name.
pub(crate) fn find_log(directory: &Path, name_end: &str) -> Option<PathBuf> {
    find_below(directory, name_end, 3, &mut { MAX_DIRECTORIES })
}

fn find_below(directory: &Path, name_end: &str, levels: u32, directories: &mut usize) -> Option<PathBuf> {
    *directories = directories.checked_sub(1)?;
    let entries = fs::read_dir(directory).ok()?.flatten().take(MAX_SESSIONS);
    let mut entries: Vec<_> = entries.map(|entry| (entry.file_name(), entry.file_type())).collect();
    entries.sort_by(|(one, _), (two, _)| two.cmp(one));
    entries.into_iter().find_map(|(name, kind)| {
        let path = directory.join(&name);
        if kind.is_ok_and(|kind| kind.is_dir()) {
            return (levels > 0).then(|| find_below(&path, name_end, levels - 1, directories))?;
        }
        name.to_string_lossy().ends_with(name_end).then_some(path)
    })
}

/// How the last turn of a session ended, according to its last message. Only for clients that publish their running sessions.
pub(crate) fn turn_end(client: Client, paths: &ClientPaths, session_id: &str) -> Option<TurnEnd> {
    let adapter = client.adapter();
    let Some(SessionFiles::StatusFiles { transcripts, .. }) = &adapter.sessions else { return None };
    let settings = (adapter.settings.user_directory)(paths);
    let projects = fs::read_dir(settings.join(transcripts.directory)).ok()?.flatten();
    let name = format!("{session_id}.jsonl");
    let path = projects.map(|project| project.path().join(&name)).find(|path| path.exists())?;
    let tail = tail_of(&path, MAX_TAIL).ok()?;
    tail.rsplit(|byte| *byte == b'\n').find_map(transcripts.read)
}

/// Reads at most `most` bytes from the end of a file.
pub(crate) fn tail_of(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = owned::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut tail = Vec::new();
    file.take(most).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Agents in a turn whose clients publish what their sessions do.
#[derive(Debug)]
pub struct SessionWatch {
    home: Home,
    paths: ClientPaths,
    watched: HashMap<Agent, WatchedSession>,
}

#[derive(Debug)]
struct WatchedSession {
    client: Client,
    info: AgentInfo,
    /// The last status that was compared with the agent's state. It is skipped until either changes.
    compared: Option<SessionStatus>,
}

impl SessionWatch {
    /// Creates an empty watch.
    pub fn new(home: Home, paths: ClientPaths) -> Self {
        Self { home, paths, watched: HashMap::new() }
    }

    /// Returns true if no agent is watched.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Updates the watch after the state of an agent may have changed: an agent is watched while it is in a turn.
    pub fn agent_changed(&mut self, agent: &Agent) -> Result<(), JournalError> {
        self.watched.remove(agent);
        let mut journal = Journal::open(&self.home)?;
        let in_turn = journal.agent_state(agent)?.is_some_and(is_in_turn);
        let Some(info) = journal.agent_info(agent)?.filter(|_| in_turn) else { return Ok(()) };
        if let Ok(client) = info.client.parse::<Client>()
            && client.adapter().sessions.is_some()
        {
            self.watched.insert(agent.clone(), WatchedSession { client, info, compared: None });
        }
        Ok(())
    }

    /// Reads the session files and records what no hook reported. Returns the agents that changed.
    pub fn poll(&mut self, clock: &dyn Fn() -> Duration) -> Result<Vec<Agent>, JournalError> {
        let (mut changed, mut ended) = (Vec::new(), Vec::new());
        for (agent, WatchedSession { client, info, compared }) in &mut self.watched {
            // Taken before the file is read: a hook that comes later is newer than the file.
            let mono = clock();
            let stamp = IdSource::now();
            let session = find_session(*client, &self.paths, &info.session_id);
            let Some(status) = session.and_then(|session| session.status) else { continue };
            let end = || turn_end(*client, &self.paths, &info.session_id);
            if compared.as_ref() == Some(&status) || !status.is_settled(stamp.unix_ms, end) {
                continue;
            }
            let mut journal = Journal::open(&self.home)?;
            let Some((state, since_ms)) =
                journal.agent_state_since(agent)?.filter(|(state, _)| is_in_turn(*state))
            else {
                ended.push(agent.clone());
                continue;
            };
            let signal = signal_of(&status, state, since_ms);
            *compared = Some(status);
            let Some(signal) = signal else { continue };
            let event = AgentEvent {
                agent: info.clone(),
                signals: vec![signal],
                prompt: None,
                taken: None,
                notify: true,
                mono,
                stamp,
                session_starts: false,
                turn_changes: false,
                nonce: None,
                confirms: None,
            };
            journal.record_event(&event, InboxRequest::default())?;
            changed.push(agent.clone());
        }
        for agent in ended {
            self.watched.remove(&agent);
        }
        Ok(changed)
    }
}

fn is_in_turn(state: AgentState) -> bool {
    state.is_busy() || matches!(state, AgentState::Blocked(_))
}

impl SessionStatus {
    /// Returns true if no hook that reports the same can still be on its way. `end` reads how the last turn ended.
    fn is_settled(&self, now_ms: i64, end: impl FnOnce() -> Option<TurnEnd>) -> bool {
        let age_ms = now_ms.saturating_sub(self.since_ms);
        match self.activity {
            SessionActivity::Interrupted | SessionActivity::Failed(_) => true,
            _ if age_ms >= SETTLED_MS => true,
            SessionActivity::Idle => age_ms >= LAST_MESSAGE_MS && end() == Some(TurnEnd::Interrupted),
            _ => false,
        }
    }
}

/// The signal for a status that differs from the agent's state. A status older than that state is ignored: the client writes it
/// up to two seconds after its hooks.
fn signal_of(status: &SessionStatus, state: AgentState, state_since_ms: i64) -> Option<Signal> {
    let SessionStatus { activity, since_ms } = status;
    if *since_ms <= state_since_ms {
        return None;
    }
    match (activity, state) {
        (SessionActivity::Idle | SessionActivity::Interrupted, _) => {
            Some(Signal::new(Authority::Hook, SignalContent::Interrupted))
        }
        (SessionActivity::Failed(why), _) => {
            Some(Signal::state(Authority::Hook, AgentState::Error).text(why))
        }
        // The prompt was answered, and a tool is running.
        (SessionActivity::Busy, AgentState::Blocked(_)) => {
            Some(Signal::state(Authority::Hook, AgentState::Working))
        }
        (SessionActivity::Busy | SessionActivity::Waiting(_) | SessionActivity::Other, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::agent::BlockedOn;

    #[test]
    fn what_a_status_says_that_no_hook_said() {
        use AgentState::{Blocked, Working};
        use SessionActivity::{Busy, Failed, Idle, Interrupted, Waiting};
        let permission = Blocked(BlockedOn::Permission);
        let check = |activity, since_ms, state, age_ms: i64, expected: Option<SignalContent>| {
            let status = SessionStatus { activity, since_ms };
            let is_settled = status.is_settled(since_ms + age_ms, || None);
            let signal = is_settled.then(|| signal_of(&status, state, 1000)).flatten();
            assert_eq!(signal.map(|signal| signal.content), expected, "{status:?} {state:?} {age_ms}");
        };
        check(Idle, 2000, Working, 700, Some(SignalContent::Interrupted));
        check(Idle, 2000, permission, 700, Some(SignalContent::Interrupted));
        check(Interrupted, 2000, Working, 0, Some(SignalContent::Interrupted));
        check(Failed("500".into()), 2000, Working, 0, Some(SignalContent::State(AgentState::Error)));
        check(Busy, 2000, permission, 700, Some(SignalContent::State(Working)));
        check(Busy, 2000, Working, 700, None);
        check(Waiting(Some(BlockedOn::Permission)), 2000, permission, 700, None);
        // It was idle before the prompt, and the file does not say yet that it works.
        check(Idle, 900, Working, 700, None);
        check(Idle, 1000, Working, 700, None);
        // The hook that ends the turn may be on its way, unless the last message says that there is none.
        check(Idle, 2000, Working, 699, None);
        let idle = SessionStatus { activity: Idle, since_ms: 2000 };
        assert!(idle.is_settled(2400, || Some(TurnEnd::Interrupted)));
        assert!(!idle.is_settled(2399, || Some(TurnEnd::Interrupted)));
        assert!(!idle.is_settled(2699, || Some(TurnEnd::Complete("done".into()))));
    }

    #[test]
    fn the_log_of_a_session_says_how_its_last_turn_ended() {
        let directory = tempfile::tempdir().unwrap();
        let day = directory.path().join(".codex/sessions/2026/11/16");
        fs::create_dir_all(&day).unwrap();
        fs::create_dir_all(directory.path().join(".codex/sessions/2026/11/17")).unwrap();
        let log = day.join("rollout-2026-11-16T07-34-19-01a1-fa.jsonl");
        let paths = ClientPaths::new(directory.path());
        let status = |text: &str| {
            fs::write(&log, text).unwrap();
            find_session(Client::Codex, &paths, "01a1-fa").and_then(|session| session.status)
        };
        let started = r#"{"type":"event_msg","payload":{"type":"task_started","started_at":10}}"#;
        let aborted = r#"{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted","completed_at":14}}"#;
        let failed = r#"{"type":"event_msg","payload":{"type":"task_complete","completed_at":20,"last_agent_message":null,
            "error":{"message":"high demand","codex_error_info":"internal_server_error"}}}"#
            .replace('\n', "");
        let other = r#"{"type":"response_item","payload":{"type":"message","role":"user"}}"#;
        let expect = |activity, since_ms| Some(SessionStatus { activity, since_ms });
        assert_eq!(status(&format!("{started}\n{other}\n")), expect(SessionActivity::Other, 10_999));
        assert_eq!(
            status(&format!("{started}\n{aborted}\n{other}\n")),
            expect(SessionActivity::Interrupted, 14_999)
        );
        let all = format!("{started}\n{aborted}\n{started}\n{failed}\n");
        assert_eq!(status(&all), expect(SessionActivity::Failed("high demand".into()), 20_999));
        // A line that is written just now, and more output than is read.
        assert_eq!(
            status(&format!("{aborted}\n{{\"type\":\"event")),
            expect(SessionActivity::Interrupted, 14_999)
        );
        assert_eq!(status(&format!("{aborted}\n{}", "x".repeat(100_000))), None);
        assert_eq!(find_session(Client::Codex, &paths, "another"), None);
    }

    #[test]
    fn a_log_of_copilot_is_in_the_directory_of_its_session() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path().join(".copilot/session-state/eb4951b2-cdcf");
        fs::create_dir_all(&session).unwrap();
        let paths = ClientPaths::new(directory.path());
        let aborted =
            r#"{"type":"abort","data":{"reason":"user_abort"},"timestamp":"2026-11-19T21:08:54.693Z"}"#;
        fs::write(session.join("events.jsonl"), aborted).unwrap();
        let status = |id: &str| find_session(Client::Copilot, &paths, id)?.status;
        assert_eq!(status("eb4951b2-cdcf").map(|status| status.activity), Some(SessionActivity::Interrupted));
        assert_eq!(status("another"), None);
        assert_eq!(status("../session-state/eb4951b2-cdcf"), None);
    }

    #[test]
    fn a_log_of_gemini_tells_of_interruptions_and_errors() {
        let directory = tempfile::tempdir().unwrap();
        let chats = directory.path().join(".gemini/tmp/project/chats");
        fs::create_dir_all(&chats).unwrap();
        let paths = ClientPaths::new(directory.path());
        let status = |lines: &[&str]| {
            fs::write(chats.join("session-2026-11-19T14-29-5c78350b.jsonl"), lines.join("\n")).unwrap();
            let session = find_session(Client::Gemini, &paths, "5c78350b-8c0a-4f3e-9d51-6f7d0a6b8a11")?;
            Some(session.status?.activity)
        };
        let prompt =
            r#"{"id":"1","timestamp":"2026-11-19T14:29:59.534Z","type":"user","content":[{"text":"x"}]}"#;
        let set = r#"{"$set":{"lastUpdated":"2026-11-19T14:29:59.534Z"}}"#;
        let cancelled = r#"{"id":"2","timestamp":"2026-11-19T14:30:04.444Z","type":"info","content":"Request cancelled."}"#;
        let failed = r#"{"id":"3","timestamp":"2026-11-19T14:30:11.240Z","type":"error","content":"[API Error: {\"error\":{\"code\":400,\"message\":\"bad thing\"}}]"}"#;
        let help = r#"{"id":"4","timestamp":"2026-11-19T14:30:11.240Z","type":"info","content":"This request failed."}"#;
        assert_eq!(status(&[prompt, set]), Some(SessionActivity::Other));
        assert_eq!(status(&[prompt, set, cancelled, set]), Some(SessionActivity::Interrupted));
        let again = r#"{"id":"5","timestamp":"2026-11-19T14:30:04.444Z","type":"user","content":[{"text":"<session_context>\nThis is the Gemini CLI."},{"text":"x"}]}"#;
        assert_eq!(status(&[prompt, cancelled, set, again, set]), Some(SessionActivity::Interrupted));
        let error = SessionActivity::Failed("bad thing".to_owned());
        assert_eq!(status(&[prompt, cancelled, prompt, set, failed, set, help, set]), Some(error));
        assert_eq!(status(&[cancelled, prompt]), Some(SessionActivity::Other));
    }
}
