//! Reaching an agent that is idle: it gets what waits for it as its next message, and is woken by it.
//!
//! Each client has its own way. Whatever cannot be pushed stays in the inbox, and enters the agent's next turn.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, BlockedOn};
use ringer_core::conversation::{Injection, render};
use ringer_core::message::{Agent, MessagePart, SessionNonce};
use ringer_journal::{
    AgentInfo, CLIENT_INBOX_PREFIX, ClaimedParts, Consumer, EnteredPart, Error as JournalError, Home,
    IdSource, InboxUpdate, Journal,
};
use ringer_platform::{find_own_program, owned};

use crate::client::{Client, ClientPaths, PushMethod};
use crate::codex_server;
use crate::sessions::find_session;

/// How long a client may take to accept a message.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a message in a client's inbox may take to begin a turn. Meanwhile nothing else is written there: its hooks bring the
/// later messages into that turn, and they would overtake what is in the inbox.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// The outcome of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushResult {
    /// Nothing is pending, or the agent is working and its hooks will deliver the messages.
    Nothing,
    /// The number of messages that were delivered.
    Sent(usize),
    /// The last push has not begun a turn yet. Try again in a moment.
    Later,
    /// The client takes no messages while it is idle, for this reason. The messages stay pending.
    Unsupported(String),
    /// The client could not be reached now, for this reason. The messages stay pending.
    Unreachable(String),
}

/// Where to find clients' sessions and programs.
#[derive(Debug, Clone)]
pub struct ClientEndpoints {
    /// The clients' settings directories.
    pub paths: ClientPaths,
    /// The value of `PATH`.
    pub search_path: std::ffi::OsString,
}

/// Pushes an agent's pending messages, if the agent is idle.
pub fn push(home: &Home, endpoints: &ClientEndpoints, agent: &Agent) -> Result<PushResult, JournalError> {
    let mut journal = Journal::open(home)?;
    let Some(agent_info) = journal.agent_info(agent)? else {
        return Ok(PushResult::Nothing);
    };
    let state = journal.agent_state(agent)?;
    if !state.is_some_and(is_idle) {
        return Ok(PushResult::Nothing);
    }
    let Ok(client) = agent_info.client.parse::<Client>() else {
        return Ok(PushResult::Unsupported(format!(
            "nothing is known of how to reach {}",
            agent_info.client
        )));
    };
    match client.adapter().push {
        PushMethod::WaitingHook => return Ok(PushResult::Nothing),
        // The messages stay for a listener.
        PushMethod::Refused(why) => {
            let has_pending = !journal.pending_for(agent, IdSource::now().unix_ms)?.is_empty();
            let unsupported = || PushResult::Unsupported(why.to_owned());
            return Ok(if has_pending { unsupported() } else { PushResult::Nothing });
        }
        _ => move_lead_messages(&mut journal, &agent_info)?,
    }
    if has_no_window(client, &endpoints.paths, &agent_info, state.unwrap_or(AgentState::Exited)) {
        let has_pending = !journal.pending_for(agent, IdSource::now().unix_ms)?.is_empty();
        let unreachable = || PushResult::Unreachable("no window shows its session".to_owned());
        return Ok(if has_pending { unreachable() } else { PushResult::Nothing });
    }
    // A client may drop lines from its socket if too many come. Its next prompts name the messages that arrived.
    let is_confirmed_later = matches!(client.adapter().push, PushMethod::SessionSocket { .. });
    let begun_after =
        IdSource::now().unix_ms.saturating_sub(i64::try_from(BEGINS_WITHIN.as_millis()).unwrap_or(0));
    if is_confirmed_later
        && journal.has_unconfirmed_push(agent, begun_after)?
        && !journal.pending_for(agent, IdSource::now().unix_ms)?.is_empty()
    {
        return Ok(PushResult::Later);
    }
    let prefix = if is_confirmed_later { CLIENT_INBOX_PREFIX } else { "push-" };
    let Some(claimed) = claim_all(&mut journal, agent, prefix)? else { return Ok(PushResult::Nothing) };
    let nonce = journal.session_nonce(agent)?;
    match send(client, &agent_info, endpoints, (&injections(&claimed, agent), nonce.as_ref())) {
        Ok(()) => {
            journal.mark_delivered(agent, &claimed, IdSource::now().unix_ms)?;
            Ok(PushResult::Sent(claimed.parts.len()))
        }
        Err(why) => {
            journal.release(agent, &claimed)?;
            Ok(PushResult::Unreachable(why))
        }
    }
}

/// Returns true if an agent is idle in a session that no window shows. A message would begin a turn that nobody sees.
pub fn has_no_window(client: Client, paths: &ClientPaths, info: &AgentInfo, state: AgentState) -> bool {
    let process = info.process.filter(|_| client.runs_without_window() && is_idle(state));
    process.is_some_and(|(pid, _)| codex_server::has_no_window(paths, pid))
}

/// Claims all pending messages of an agent. The prefix of the claim's id says how they are delivered.
pub(crate) fn claim_all(
    journal: &mut Journal,
    agent: &Agent,
    prefix: &str,
) -> Result<Option<ClaimedParts>, JournalError> {
    let stamp = IdSource::now();
    let lease = format!("{prefix}{}", stamp.message_id());
    let everything = |pending: &[MessagePart], _: &[EnteredPart]| (0..pending.len()).collect();
    let claim = InboxUpdate { call_id: Some(&lease), choose: Some(&everything), ..InboxUpdate::default() };
    journal.claim_for(agent, &claim, &stamp)
}

/// Renders claimed messages as the agent reads them.
pub(crate) fn render_claimed(
    claimed: &ClaimedParts,
    agent: &Agent,
    journal: &mut Journal,
) -> Result<String, JournalError> {
    let nonce = journal.session_nonce(agent)?;
    Ok(render(&injections(claimed, agent), nonce.as_ref()))
}

fn injections(claimed: &ClaimedParts, agent: &Agent) -> Vec<Injection> {
    claimed.parts.iter().filter_map(|part| Injection::of(part, agent)).collect()
}

/// If the agent is the lead and no listener runs for it, moves the lead's messages into its inbox. A lead that was told to keep a
/// listener may have forgotten it.
pub(crate) fn move_lead_messages(journal: &mut Journal, agent_info: &AgentInfo) -> Result<(), JournalError> {
    let AgentInfo { id, scope, name, .. } = agent_info;
    if journal.listeners(Some(scope)).iter().any(|one| one.owner.consumer == Consumer::LEAD) {
        return Ok(());
    }
    let deadline = Some(Instant::now() + DEADLINE);
    journal.move_to_inbox(scope, id, name.as_deref(), deadline).map(drop)
}

/// Returns true if an agent waits for its person. An agent that asks for a permission does not read messages.
pub(crate) fn is_idle(state: AgentState) -> bool {
    matches!(
        state,
        AgentState::Ready | AgentState::Done | AgentState::Error | AgentState::Blocked(BlockedOn::Input)
    )
}

fn send(
    client: Client,
    agent_info: &AgentInfo,
    endpoints: &ClientEndpoints,
    (injections, nonce): (&[Injection], Option<&SessionNonce>),
) -> Result<(), String> {
    let adapter = client.adapter();
    match &adapter.push {
        PushMethod::Refused(why) => Err((*why).to_owned()),
        PushMethod::WaitingHook => Err("a hook of its own takes messages".to_owned()),
        PushMethod::SessionSocket { line } => {
            let session = find_session(client, &endpoints.paths, &agent_info.session_id);
            let socket = session.and_then(|session| session.socket).ok_or("its session has no inbox")?;
            write_line(&socket, &line(injections, nonce)).map_err(|error| format!("its inbox: {error}"))
        }
        PushMethod::Command { program, arguments } => {
            run(endpoints, program, &arguments(&agent_info.session_id, &render(injections, nonce)))
        }
    }
}

fn write_line(socket: &Path, line: &str) -> io::Result<()> {
    let mut stream = owned::connect(socket)?;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(DEADLINE))?;
    stream.write_all(line.as_bytes())
}

fn run(endpoints: &ClientEndpoints, name: &str, arguments: &[&str]) -> Result<(), String> {
    let program = find_own_program(&endpoints.search_path, name).map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let called = format!("{name} {}", arguments.first().unwrap_or(&""));
    let end = Instant::now() + DEADLINE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{called} ended with {status}")),
            Ok(None) if Instant::now() >= end => {
                // The child has exited, or will; there is nothing else to do.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{called} took longer than {DEADLINE:?}"));
            }
            // Without an async runtime, polling is the only way to wait for a child with a deadline.
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
    use ringer_journal::AgentUpdate;
    use serde_json::json;
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    fn agent_info(client: &str) -> AgentInfo {
        AgentInfo {
            by_hooks: true,
            ..AgentInfo::new(Agent::new("claude-6be1e699").unwrap(), client, "6be1e699-d2b2", Scope::global())
        }
    }

    /// A home with one idle agent for which something waits, and a directory for Claude Code.
    fn prepare(state: AgentState) -> (tempfile::TempDir, Home, ClientEndpoints) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        let mut journal = Journal::open(&home).unwrap();
        let agent_info = agent_info("claude");
        let signals = [ringer_core::agent::Signal::state(ringer_core::agent::Authority::Hook, state)];
        let update = AgentUpdate {
            agent: &agent_info,
            signals: &signals,
            mono: Duration::from_secs(1),
            timeouts: ringer_core::agent::AgentTimeouts::default(),
            notify: true,
        };
        journal.update_agent(&update, None, &IdSource::now()).unwrap();
        let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "look <here>").unwrap();
        draft.recipient = Recipient::Agent(agent_info.id.clone());
        journal.append(&draft, &IdSource::now()).unwrap();
        let endpoints =
            ClientEndpoints { paths: ClientPaths::new(directory.path()), search_path: "/nowhere".into() };
        fs::create_dir_all(directory.path().join(".claude/sessions")).unwrap();
        (directory, home, endpoints)
    }

    /// The file of the session that runs: this process is its client.
    fn session_file(directory: &Path) -> std::path::PathBuf {
        directory.join(format!(".claude/sessions/{}.json", std::process::id()))
    }

    #[test]
    fn an_idle_session_of_claude_code_gets_it_through_its_inbox() {
        let (directory, home, endpoints) = prepare(AgentState::Ready);
        let agent = agent_info("claude").id;
        let socket = directory.path().join("inbox.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let session = json!({ "sessionId": "6be1e699-d2b2", "messagingSocketPath": socket });
        // That of a client which was killed, with the socket that it had.
        let old =
            json!({ "sessionId": "6be1e699-d2b2", "messagingSocketPath": directory.path().join("old.sock") });
        fs::write(directory.path().join(".claude/sessions/999999999.json"), old.to_string()).unwrap();
        fs::write(directory.path().join(".claude/sessions/1.json"), "not json").unwrap();
        fs::write(session_file(directory.path()), session.to_string()).unwrap();
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Sent(1));
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        let sent: serde_json::Value = serde_json::from_str(&line).unwrap();
        let content = sent["message"]["content"].as_str().unwrap();
        assert!(content.starts_with("<cross-session-message from=\"ringer\""), "{content}");
        let text = content.split_once("\">\n").map(|(_, text)| text).unwrap();
        assert!(
            text.starts_with("unverified: look &lt;here&gt;\n\n<notification source=\"unver"),
            "{content}"
        );
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Nothing, "once is enough");
    }

    #[test]
    fn a_lead_without_a_listener_is_woken_and_one_that_listens_is_left_alone() {
        use ringer_journal::{Listener, OnParentExit};
        let (directory, home, endpoints) = prepare(AgentState::Done);
        let agent = agent_info("claude").id;
        let mut journal = Journal::open(&home).unwrap();
        journal.want_lead(&Scope::global(), true).unwrap();
        assert!(journal.claim_lead(&Scope::global(), &agent).unwrap());
        let socket = directory.path().join("inbox.sock");
        let inbox = UnixListener::bind(&socket).unwrap();
        let session = json!({ "sessionId": "6be1e699-d2b2", "messagingSocketPath": socket });
        fs::write(session_file(directory.path()), session.to_string()).unwrap();
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Sent(1), "its own message");

        let worker = Sender::new("w1").unwrap();
        let done = Draft::new(Scope::global(), worker, Kind::Complete, "the parser works").unwrap();
        journal.append(&done, &IdSource::now()).unwrap();
        let mut other = Journal::open(&home).unwrap();
        let consumer = Consumer::new(Consumer::LEAD, Scope::global()).unwrap();
        let listener = Listener::begin(&mut other, consumer, None, false, OnParentExit::Continue).unwrap();
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Nothing, "its listener tells it");
        drop(listener);
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Later, "the first begins a turn");
        let entered = journal.entered(&agent, IdSource::now().unix_ms, 10).unwrap();
        let ids: Vec<String> = entered.iter().map(|entered| entered.part.message.id.to_string()).collect();
        journal.mark_seen(&agent, &ids, IdSource::now().unix_ms).unwrap();
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Sent(1));
        let lines: Vec<String> = (0..2)
            .map(|_| {
                let mut line = String::new();
                BufReader::new(inbox.accept().unwrap().0).read_line(&mut line).unwrap();
                line
            })
            .collect();
        assert!(lines[1].contains("complete: the parser works"), "{lines:?}");
        assert_eq!(push(&home, &endpoints, &agent).unwrap(), PushResult::Nothing, "once is enough");
    }

    #[test]
    fn what_cannot_be_pushed_waits() {
        let (_directory, home, endpoints) = prepare(AgentState::Ready);
        let agent = agent_info("claude").id;
        assert_eq!(
            push(&home, &endpoints, &agent).unwrap(),
            PushResult::Unreachable("its session has no inbox".into())
        );
        let mut journal = Journal::open(&home).unwrap();
        assert_eq!(journal.pending_for(&agent, IdSource::now().unix_ms).unwrap().len(), 1);
    }

    #[test]
    fn an_agent_that_works_is_left_to_its_hooks() {
        let (_directory, home, endpoints) = prepare(AgentState::Working);
        assert_eq!(push(&home, &endpoints, &agent_info("claude").id).unwrap(), PushResult::Nothing);
        let unknown = Agent::new("nobody").unwrap();
        assert_eq!(push(&home, &endpoints, &unknown).unwrap(), PushResult::Nothing);
    }
}
