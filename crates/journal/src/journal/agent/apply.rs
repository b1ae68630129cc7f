//! Applies signals to an agent's row and appends the resulting messages, in one transaction.

use std::time::Duration;

use ringer_core::agent::{
    AgentMachine, AgentMessage, AgentNotice, AgentState, Authority, Prompt, Signal, Tier, agent_messages,
    episode_key,
};
use ringer_core::attention::{MarkTarget, ResolvedBy};
use ringer_core::message::{About, Agent, EPISODE_KEY_PREFIX, Mark, QuestionId, Tag};
use ringer_core::{Draft, Kind, MessageId, Scope};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::db::tables::{optional_text, text};
use crate::ids::IdSource;
use crate::journal::agent::{AGENT_INFO, AgentInfo, AgentUpdate, agent_info};
use crate::journal::append::put;
use crate::journal::prompt;
use crate::process::started;
use crate::wake::subscription::{self, Topic};

/// When an event happened and when it is applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTime {
    /// Time of the event, on the monotonic clock.
    pub(crate) mono: Duration,
    /// The current time, on the same clock.
    pub(crate) now: Duration,
    /// For an event of an earlier boot, its time in milliseconds since 1970, because the monotonic clock has restarted.
    pub(crate) earlier_boot_ms: Option<i64>,
}

impl EventTime {
    /// Returns true if the agent's newest event happened after this one.
    fn is_older_than(&self, known: &KnownState) -> bool {
        match self.earlier_boot_ms {
            Some(unix_ms) => known.seen_ms > unix_ms,
            // If the newest event is in the future, it is of an earlier boot.
            None => known.newest > self.mono && known.newest <= self.now.max(self.mono),
        }
    }
}

/// The stored state of an agent.
pub(super) struct KnownState {
    pub(super) machine: AgentMachine,
    since_ms: i64,
    seen_ms: i64,
    /// Time of its newest event: a hook call or the end of its process.
    newest: Duration,
    /// The update names another scope, surface or directory.
    pub(super) moved: bool,
}

pub(super) fn row(connection: &Connection, update: &AgentUpdate<'_>) -> rusqlite::Result<Option<KnownState>> {
    let of = update.agent;
    let found = connection
        .prepare("SELECT machine, since, seen, newest, scope, surface, cwd FROM agent WHERE id = ?1")?
        .query_row([of.id.as_str()], |row| {
            let (machine, since_ms, seen_ms) = (text(row, 0)?, row.get(1)?, row.get(2)?);
            let newest = Duration::from_nanos(row.get::<_, i64>(3)?.unsigned_abs());
            let place = (text(row, 4)?, optional_text(row, 5)?, optional_text(row, 6)?);
            let differs = |seen: &Option<String>, known: &Option<String>| seen.is_some() && seen != known;
            let moved =
                place.0 != of.scope.as_str() || differs(&of.surface, &place.1) || differs(&of.cwd, &place.2);
            Ok((machine, since_ms, seen_ms, newest, moved))
        })
        .optional()?;
    Ok(found.and_then(|(machine, since_ms, seen_ms, newest, moved)| {
        let machine: AgentMachine = serde_json::from_str(&machine).ok()?;
        let machine = machine.resume(update.mono, update.timeouts);
        Some(KnownState { machine, since_ms, seen_ms, newest, moved })
    }))
}

/// Returns true if a newer event of the agent was already applied.
pub(crate) fn is_late(
    connection: &Connection,
    update: &AgentUpdate<'_>,
    time: EventTime,
) -> rusqlite::Result<bool> {
    Ok(row(connection, update)?.is_some_and(|known| time.is_older_than(&known)))
}

/// Applies signals to an agent. Returns the number of messages sent, and the doorbells to wake after the commit.
///
/// `time` is set for events, which may arrive after a newer one of their session. Such an event sends its notices but does not
/// change the state.
pub(crate) fn apply_signals(
    transaction: &Transaction<'_>,
    update: &AgentUpdate<'_>,
    stamp: &mut IdSource,
    time: Option<EventTime>,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let known = row(transaction, update)?;
    let is_new = known.is_none();
    let is_late = |known: &KnownState| time.is_some_and(|time| time.is_older_than(known));
    let (mut machine, since_ms) = match known {
        Some(newer) if is_late(&newer) => {
            return apply_late_signals(transaction, update, newer.machine, stamp);
        }
        Some(known) => (known.machine, known.since_ms),
        None => (AgentMachine::new(update.mono, update.timeouts), stamp.unix_ms),
    };
    let (before, asked) = (machine.state(), machine.asks());
    // Timeouts belong to the parent agent, even if a subagent's event triggers the check.
    let mut changes = machine.tick(update.mono);
    for signal in update.signals {
        let mut more = machine.apply(update.mono, signal);
        if !update.notify {
            more.notices.clear();
        }
        changes.extend(more);
    }
    let since_ms = if machine.state() == before { since_ms } else { stamp.unix_ms };
    save(transaction, update, &machine, since_ms, stamp.unix_ms, time)?;
    let (mut sent, mut bells) = end_replaced(transaction, update, stamp)?;
    if is_new || machine.state() != before {
        bells.extend(subscription::registered_for(transaction, &Topic::EverythingAndAgents)?);
    }
    let needs_info = !changes.is_empty() || (asked && !machine.asks());
    let of = if needs_info { info_for_messages(transaction, update)? } else { update.agent.clone() };
    if !changes.notices.is_empty() {
        for notice in &changes.notices {
            sent += append_notice(transaction, &of, notice, stamp, &mut bells)?.len();
        }
    }
    // After the notices, because one of them may have ended as well.
    for end in &changes.ended {
        let key = episode_key(&of.id, end.episode);
        bells.extend(close_questions(transaction, &of, Some(&key), stamp)?);
        prompt::end(transaction, &key, stamp.unix_ms)?;
        let target = MarkTarget::Key(key);
        bells.extend(put_resolved(transaction, &of, &target, end.by, &stamp.next())?);
    }
    if asked && !machine.asks() {
        bells.extend(close_questions(transaction, &of, None, stamp)?);
    }
    Ok((sent, bells))
}

/// Ends the other sessions of the agent's process if this one replaces them and the client does not report their end.
fn end_replaced(
    transaction: &Transaction<'_>,
    update: &AgentUpdate<'_>,
    stamp: &mut IdSource,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let (mut sent, mut bells) = (0, Vec::new());
    let of = update.agent;
    let Some((pid, started)) = of.process.filter(|_| of.replaces_others) else { return Ok((sent, bells)) };
    let left: Vec<Option<AgentInfo>> = transaction
        .prepare(&format!(
            "SELECT {AGENT_INFO} FROM agent
             WHERE pid = ?1 AND started = ?2 AND client = ?3 AND id <> ?4 AND state <> 'exited'"
        ))?
        .query_map(params![pid, i64::try_from(started).unwrap_or(0), of.client, of.id.as_str()], agent_info)?
        .collect::<rusqlite::Result<_>>()?;
    for agent in left.iter().flatten() {
        let signals = [Signal::state(Authority::Hook, AgentState::Exited)];
        let left = AgentUpdate { agent, signals: &signals, ..*update };
        let (more, rung) = apply_signals(transaction, &left, stamp, None)?;
        sent += more;
        bells.extend(rung);
    }
    Ok((sent, bells))
}

/// Stores the dialog of a client under the key of its open notice. Without an open notice the dialog is already over.
pub(crate) fn store_prompt(
    transaction: &Transaction<'_>,
    update: &AgentUpdate<'_>,
    asked: &Prompt,
    unix_ms: i64,
) -> rusqlite::Result<()> {
    let Some(known) = row(transaction, update)? else { return Ok(()) };
    let of = update.agent;
    for call in update.signals.iter().filter_map(|signal| signal.call.as_deref()) {
        if let Some(episode) = known.machine.prompt_about(call) {
            let key = episode_key(&of.id, episode);
            prompt::open(transaction, (&of.id, &of.scope), (&key, call), asked, unix_ms)?;
        }
    }
    Ok(())
}

/// Applies an event after a newer one of its session. Its notices are still sent. They are resolved at once if the newer event
/// shows that their cause has ended.
fn apply_late_signals(
    transaction: &Transaction<'_>,
    update: &AgentUpdate<'_>,
    mut newer: AgentMachine,
    stamp: &mut IdSource,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let mut then = AgentMachine::new(update.mono, update.timeouts);
    let (mut sent, mut bells) = (0, Vec::new());
    for signal in update.signals {
        let notices = then.apply(update.mono, signal).notices;
        for mut notice in notices.into_iter().filter(|_| update.notify) {
            let episode = newer.add_late(&notice, then.state(), signal.call.as_deref());
            notice.episode = episode.unwrap_or_else(|| newer.next_late_episode());
            let of = info_for_messages(transaction, update)?;
            let ids = append_notice(transaction, &of, &notice, stamp, &mut bells)?;
            sent += ids.len();
            if episode.is_some() {
                continue;
            }
            let key = episode_key(&of.id, notice.episode);
            bells.extend(close_questions(transaction, &of, Some(&key), stamp)?);
            for id in ids {
                let target = MarkTarget::Message(id);
                bells.extend(put_resolved(transaction, &of, &target, ResolvedBy::WentOn, &stamp.next())?);
            }
        }
    }
    if sent > 0 {
        save_machine(transaction, &update.agent.id, &newer)?;
    }
    Ok((sent, bells))
}

/// The agent as named in its messages. Read from its row, because earlier events may have reported more about it than this one.
fn info_for_messages(transaction: &Transaction<'_>, update: &AgentUpdate<'_>) -> rusqlite::Result<AgentInfo> {
    let of = transaction
        .prepare(&format!("SELECT {AGENT_INFO} FROM agent WHERE id = ?1"))?
        .query_row([update.agent.id.as_str()], agent_info)?;
    let of = of.unwrap_or_else(|| update.agent.clone());
    let seen = update.agent;
    Ok(AgentInfo {
        tty: seen.tty.clone(),
        repository: seen.repository.clone(),
        branch: seen.branch.clone(),
        ..of
    })
}

/// Appends the messages of a notice. Returns their ids.
fn append_notice(
    transaction: &Transaction<'_>,
    of: &AgentInfo,
    notice: &AgentNotice,
    stamp: &mut IdSource,
    bells: &mut Vec<String>,
) -> rusqlite::Result<Vec<MessageId>> {
    let mut ids = Vec::new();
    let mut question = None;
    for mut draft in drafts(transaction, of, notice)? {
        let stamp_now = stamp.next();
        let id = stamp_now.message_id();
        if notice.kind == Kind::Question {
            // The messages to all recipients share one question.
            let id = question.take().map_or_else(|| open_question(transaction, &draft, &stamp_now), Ok)?;
            draft.question_id = Some(id.clone());
            question = Some(id);
        }
        bells.extend(put(transaction, &draft, &id, stamp_now.unix_ms)?);
        ids.push(id);
    }
    Ok(ids)
}

/// Appends a mark that resolves notifications of an agent.
fn put_resolved(
    transaction: &Transaction<'_>,
    of: &AgentInfo,
    target: &MarkTarget,
    by: ResolvedBy,
    stamp: &IdSource,
) -> rusqlite::Result<Vec<String>> {
    let mut mark = Draft::tagged(of.scope.clone(), of.sender(), Tag::Mark(Mark::Resolve), by.as_str());
    mark.key = Some(target.to_string());
    put(transaction, &mark, &stamp.message_id(), stamp.unix_ms)
}

/// The agent's name, unless another live agent has it: a session that an agent starts inherits its environment.
fn own_name(transaction: &Transaction<'_>, of: &AgentInfo) -> rusqlite::Result<Option<String>> {
    let Some(name) = &of.name else { return Ok(None) };
    let holders: Vec<(Option<u32>, Option<i64>)> = transaction
        .prepare("SELECT pid, started FROM agent WHERE name = ?1 AND id <> ?2 AND state <> 'exited'")?
        .query_map([name, of.id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let own = of.process.map(|(pid, _)| pid);
    // A session takes over the name of an earlier session in the same process.
    let is_another = |(pid, since): &(Option<u32>, Option<i64>)| {
        let runs = |pid: u32| started(pid).and_then(|started| i64::try_from(started).ok()) == *since;
        *pid != own && pid.is_some_and(runs)
    };
    Ok(Some(name.clone()).filter(|_| !holders.iter().any(is_another)))
}

/// Saves only the state machine of a known agent.
pub(super) fn save_machine(
    transaction: &Transaction<'_>,
    agent: &Agent,
    machine: &AgentMachine,
) -> rusqlite::Result<()> {
    let mut update = transaction.prepare("UPDATE agent SET machine = ?2 WHERE id = ?1")?;
    update.execute([agent.as_str(), &to_json(machine)]).map(drop)
}

fn to_json(machine: &AgentMachine) -> String {
    // Plain data: it cannot fail to be written.
    serde_json::to_string(machine).unwrap_or_default()
}

fn save(
    transaction: &Transaction<'_>,
    update: &AgentUpdate<'_>,
    machine: &AgentMachine,
    since_ms: i64,
    now_ms: i64,
    time: Option<EventTime>,
) -> rusqlite::Result<()> {
    let of = update.agent;
    let (pid, started) = of.process.unzip();
    // An update without signals is a timeout, which is no sign of life.
    let seen_ms = (!update.signals.is_empty()).then_some(now_ms);
    // Terminal signals are not ordered with the session's events, so they do not make those late.
    let is_event = |signal: &Signal| matches!(signal.authority, Authority::Hook | Authority::Process);
    let is_of_this_boot = time.is_none_or(|time| time.earlier_boot_ms.is_none());
    let mono = if is_of_this_boot { i64::try_from(update.mono.as_nanos()).unwrap_or(0) } else { 0 };
    let newest = update.signals.iter().any(is_event).then_some(mono);
    register_process(transaction, of)?;
    transaction
        .prepare(
            "INSERT INTO agent (id, client, session_id, scope, worktree, cwd, surface, manager, name, pid, started,
                                by_hooks, state, since, seen, machine, blocks, newest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, coalesce(?15, ?14), ?16, 0,
                     coalesce(?17, 0))
             ON CONFLICT (id) DO UPDATE SET
                 scope = excluded.scope, worktree = coalesce(excluded.worktree, worktree),
                 cwd = coalesce(excluded.cwd, cwd), surface = coalesce(excluded.surface, surface),
                 manager = coalesce(excluded.manager, manager), name = coalesce(excluded.name, name),
                 pid = coalesce(excluded.pid, pid), started = coalesce(excluded.started, started),
                 by_hooks = max(by_hooks, excluded.by_hooks), state = excluded.state, since = excluded.since,
                 seen = coalesce(?15, seen), machine = excluded.machine, newest = coalesce(?17, newest)",
        )?
        .execute(params![
            of.id.as_str(),
            of.client,
            of.session_id,
            of.scope.as_str(),
            of.worktree,
            of.cwd,
            of.surface,
            of.manager.as_ref().map(Agent::as_str),
            own_name(transaction, of)?,
            pid,
            started.and_then(|started| i64::try_from(started).ok()),
            of.by_hooks,
            state_name(machine.state()),
            since_ms,
            seen_ms,
            to_json(machine),
            newest,
        ])
        .map(drop)
}

/// Adds the agent's process to those registered for it. Earlier ones stay, because an event may name any process.
fn register_process(transaction: &Transaction<'_>, of: &AgentInfo) -> rusqlite::Result<()> {
    let Some((pid, started)) = of.process else { return Ok(()) };
    let process = params![pid, i64::try_from(started).unwrap_or(0), of.id.as_str()];
    let query = "SELECT EXISTS (SELECT 1 FROM agent_process WHERE pid = ?1 AND started = ?2 AND agent = ?3)";
    if transaction.prepare(query)?.query_row(process, |row| row.get(0))? {
        return Ok(());
    }
    let insert = "INSERT OR REPLACE INTO agent_process (pid, started, agent) VALUES (?1, ?2, ?3)";
    transaction.prepare(insert)?.execute(process).map(drop)
}

/// Deletes the registrations of exited processes.
pub(crate) fn forget_ended_processes(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let registered: Vec<(u32, i64)> = transaction
        .prepare("SELECT pid, started FROM agent_process")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (pid, began) in registered {
        if started(pid).and_then(|started| i64::try_from(started).ok()) != Some(began) {
            let delete = "DELETE FROM agent_process WHERE pid = ?1 AND started = ?2";
            transaction.execute(delete, (pid, began))?;
        }
    }
    Ok(())
}

/// The name of a state in the table and in output for programs.
fn state_name(state: AgentState) -> &'static str {
    match state {
        AgentState::Blocked(_) => "blocked",
        AgentState::RateLimited => "rate_limited",
        state => state.as_str(),
    }
}

/// The messages for a notice, one for each recipient.
fn drafts(
    transaction: &Transaction<'_>,
    of: &AgentInfo,
    notice: &AgentNotice,
) -> rusqlite::Result<Vec<Draft>> {
    let lead = lead_of(transaction, &of.scope)?;
    let manager = of.manager.clone().or_else(|| lead.clone().filter(|lead| *lead != of.id));
    let tier = match manager {
        Some(manager) => {
            let manager_name = name_of(transaction, &manager)?;
            Tier::Worker { manager, manager_name }
        }
        None => Tier::Manager { unfinished: unfinished(transaction, &of.id)? },
    };
    let messages = agent_messages(&of.id, of.name.as_deref(), &tier, lead.as_ref(), notice);
    Ok(messages.into_iter().map(|message| draft(of, notice, message)).collect())
}

fn draft(of: &AgentInfo, notice: &AgentNotice, message: AgentMessage) -> Draft {
    let mut draft = Draft::tagged(of.scope.clone(), of.sender(), Tag::Notice(notice.kind), &message.text);
    draft.recipient = message.recipient;
    draft.category = notice.category.map(str::to_owned);
    draft.key = Some(episode_key(&of.id, notice.episode));
    draft.title = title(of);
    draft.about = Some(about(of, notice));
    draft.origin.cwd.clone_from(&of.cwd);
    draft.origin.surface.clone_from(&of.surface);
    draft.origin.tty.clone_from(&of.tty);
    draft
}

fn about(of: &AgentInfo, notice: &AgentNotice) -> About {
    let directory = of.worktree.as_deref().or(of.cwd.as_deref()).map(std::path::Path::new);
    let directory =
        directory.and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    About {
        name: of.name.clone(),
        client: Some(of.client.clone()),
        repository: of.repository.clone().or(directory),
        branch: of.branch.clone(),
        detail: notice.detail(),
        turn_ms: notice.turn.map(|turn| u64::try_from(turn.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// `NAME in DIRECTORY`.
fn title(of: &AgentInfo) -> Option<String> {
    let place = of.worktree.as_deref().or(of.cwd.as_deref())?;
    let name = std::path::Path::new(place).file_name()?.to_string_lossy();
    Some(format!("{} in {name}", of.name.as_deref().unwrap_or(&of.client)))
}

fn unfinished(transaction: &Transaction<'_>, manager: &Agent) -> rusqlite::Result<usize> {
    let count: i64 = transaction
        .prepare(
            "SELECT count(*) FROM agent WHERE manager = ?1 AND state NOT IN ('done', 'exited', 'error')",
        )?
        .query_row([manager.as_str()], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The name of an agent.
fn name_of(connection: &Connection, agent: &Agent) -> rusqlite::Result<Option<String>> {
    let query = "SELECT name FROM agent WHERE id = ?1";
    let found =
        connection.prepare(query)?.query_row([agent.as_str()], |row| optional_text(row, 0)).optional();
    found.map(Option::flatten)
}

/// The lead of a scope.
fn lead_of(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<Agent>> {
    let found: Option<Option<String>> = connection
        .prepare("SELECT agent FROM lead WHERE scope = ?1")?
        .query_row([scope.as_str()], |row| optional_text(row, 0))
        .optional()?;
    Ok(found.flatten().and_then(|id| Agent::new(&id).ok()))
}

/// Stores a question that an agent asks in its terminal. Returns the id for its message.
fn open_question(
    transaction: &Transaction<'_>,
    draft: &Draft,
    stamp: &IdSource,
) -> rusqlite::Result<QuestionId> {
    let id = stamp.question_id();
    transaction
        .prepare(
            "INSERT OR IGNORE INTO question (id, scope, asker, asked, question, options) VALUES (?1, ?2, ?3, ?4, ?5, '[]')",
        )?
        .execute(params![id.as_str(), draft.scope.as_str(), draft.sender.as_str(), stamp.unix_ms, draft.body])?;
    Ok(id)
}

/// Closes questions that an agent asked in its terminal, one or all: they were answered there, or the agent no longer waits.
/// Questions of `ringer ask` stay open. Returns the doorbells to wake.
fn close_questions(
    transaction: &Transaction<'_>,
    of: &AgentInfo,
    key: Option<&str>,
    stamp: &mut IdSource,
) -> rusqlite::Result<Vec<String>> {
    let open: Vec<String> = transaction
        .prepare(
            "SELECT DISTINCT question.id FROM question JOIN message ON message.question_id = question.id
             WHERE question.answered IS NULL AND message.kind = 'question'
                 AND (message.key = ?1 OR ?1 IS NULL AND substr(message.key, 1, length(?2)) = ?2)",
        )?
        .query_map(params![key, format!("{EPISODE_KEY_PREFIX}{}:", of.id.as_str())], |row| text(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut bells = Vec::new();
    for id in open {
        let stamp = stamp.next();
        transaction
            .prepare("UPDATE question SET answered = ?2, answerer = ?3 WHERE id = ?1")?
            .execute(params![id, stamp.unix_ms, of.sender().as_str()])?;
        let mut mark = Draft::tagged(of.scope.clone(), of.sender(), Tag::Mark(Mark::Answer), "");
        mark.question_id = QuestionId::parse(&id).ok();
        bells.extend(put(transaction, &mark, &stamp.message_id(), stamp.unix_ms)?);
    }
    Ok(bells)
}
