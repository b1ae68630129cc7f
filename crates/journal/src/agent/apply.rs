//! Signals applied to an agent's row, in the transaction that also appends what they have to tell.

use std::time::Duration;

use ringer_core::{
    Agent, AgentMachine, AgentNotice, AgentState, Authority, BlockedOn, Draft, Kind, Mark, MarkTarget,
    MessageId, Scope, Sender, Signal, Tag,
};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::notice::drafts;
use super::{SIGHTING, Sighting, Signals, sighting};
use crate::append::put;
use crate::prompt;
use crate::row::{optional_text, text};
use crate::stamp::Stamp;

/// When an event happened, and when it is taken in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTime {
    /// On the clock that never jumps.
    pub(crate) mono: Duration,
    /// The same clock now.
    pub(crate) now: Duration,
    /// Set for an event from before the machine was started: its time in milliseconds since 1970. The other clock began
    /// anew since.
    pub(crate) earlier_boot_ms: Option<i64>,
}

impl EventTime {
    /// Whether the agent's newest event happened after this one.
    fn is_older_than(&self, known: &Known) -> bool {
        match self.earlier_boot_ms {
            Some(unix_ms) => known.seen_ms > unix_ms,
            // A newest event in the future is of an earlier boot.
            None => known.newest > self.mono && known.newest <= self.now.max(self.mono),
        }
    }
}

/// What is known of an agent, and whether it is somewhere else by now.
pub(super) struct Known {
    pub(super) machine: AgentMachine,
    since_ms: i64,
    seen_ms: i64,
    /// When its newest event happened: a hook call, or the end of its process.
    newest: Duration,
    pub(super) moved: bool,
}

pub(super) fn row(connection: &Connection, heard: &Signals<'_>) -> rusqlite::Result<Option<Known>> {
    let of = heard.of;
    let found = connection
        .prepare("SELECT machine, since, seen, newest, scope, surface, cwd FROM agent WHERE id = ?1")?
        .query_row([of.agent.as_str()], |row| {
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
        let machine = machine.resume(heard.mono, heard.patience);
        Some(Known { machine, since_ms, seen_ms, newest, moved })
    }))
}

/// Whether a newer event of the agent has been applied.
pub(crate) fn is_late(
    connection: &Connection,
    heard: &Signals<'_>,
    time: EventTime,
) -> rusqlite::Result<bool> {
    Ok(row(connection, heard)?.is_some_and(|known| time.is_older_than(&known)))
}

/// Applies signals to an agent. Gives how many messages that made, and the doorbells to ring once it is on disk.
///
/// `time` is given for events, which may be taken in after a newer one of their session: such an event appends its notice
/// and leaves the state as it is.
pub(crate) fn hear(
    transaction: &Transaction<'_>,
    heard: &Signals<'_>,
    stamp: &mut Stamp,
    time: Option<EventTime>,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let known = row(transaction, heard)?;
    if let Some(newer) = known.as_ref().filter(|known| time.is_some_and(|time| time.is_older_than(known))) {
        return hear_late(transaction, heard, newer.machine.state(), stamp);
    }
    let (mut machine, since_ms) = match known {
        Some(known) => (known.machine, known.since_ms),
        None => (AgentMachine::new(heard.mono, heard.patience), stamp.unix_ms),
    };
    let before = machine.state();
    // What time alone has to tell is the agent's own, also when a subagent's signal finds it.
    let mut notices = machine.tick(heard.mono);
    for signal in heard.signals {
        let told = machine.apply(heard.mono, signal);
        notices.extend(told.into_iter().filter(|_| heard.aloud));
    }
    let since_ms = if machine.state() == before { since_ms } else { stamp.unix_ms };
    save(transaction, heard, &machine, since_ms, stamp.unix_ms, time)?;
    let mut bells = Vec::new();
    let asks = |state| state == AgentState::Blocked(BlockedOn::Question);
    if asks(before) && !asks(machine.state()) {
        bells = prompt::close(transaction, &heard.of.agent, &heard.of.scope, stamp)?;
    }
    let told = tell(transaction, heard, &notices, stamp, &mut bells, Told::InTime)?;
    Ok((told, bells))
}

/// An event that a newer one of its session has overtaken. What it has to tell is kept. It needs no one any more where the
/// agent has gone on working since; but a dialog may still stand, so that a permission or a question stays open.
fn hear_late(
    transaction: &Transaction<'_>,
    heard: &Signals<'_>,
    now: AgentState,
    stamp: &mut Stamp,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let mut machine = AgentMachine::new(heard.mono, heard.patience);
    let notices: Vec<AgentNotice> = heard
        .signals
        .iter()
        .flat_map(|signal| machine.apply(heard.mono, signal))
        .filter(|_| heard.aloud)
        .collect();
    let mut bells = Vec::new();
    let told = tell(transaction, heard, &notices, stamp, &mut bells, Told::Late { busy: now.is_busy() })?;
    Ok((told, bells))
}

/// When a notice is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    InTime,
    /// After a newer event of the session.
    Late {
        /// The agent works again.
        busy: bool,
    },
}

/// Appends the messages of notices. Gives how many.
fn tell(
    transaction: &Transaction<'_>,
    heard: &Signals<'_>,
    notices: &[AgentNotice],
    stamp: &mut Stamp,
    bells: &mut Vec<String>,
    when: Told,
) -> rusqlite::Result<usize> {
    if notices.is_empty() {
        return Ok(0);
    }
    // As the row has it by now: this look may have seen less of the agent than an earlier one.
    let of = transaction
        .prepare(&format!("SELECT {SIGHTING} FROM agent WHERE id = ?1"))?
        .query_row([heard.of.agent.as_str()], sighting)?;
    let of = of.unwrap_or_else(|| heard.of.clone());
    let of = Sighting { tty: heard.of.tty.clone(), ..of };
    let mut told = 0;
    for notice in notices {
        let needs_an_answer = matches!(notice.kind, Kind::Question | Kind::Waiting);
        let is_over = when == Told::Late { busy: true } && !needs_an_answer;
        let mut question = None;
        for mut draft in drafts(transaction, &of, notice)? {
            let stamp_now = stamp.next();
            let id = stamp_now.message_id();
            if when != Told::InTime {
                // Its episode's number is another notice's by now.
                draft.key = Some(format!("{}-late-{id}", of.agent.as_str()));
            } else if notice.kind == Kind::Question {
                // One question, whoever is told of it.
                let id = question.take().map_or_else(|| prompt::open(transaction, &draft, &stamp_now), Ok)?;
                draft.question_id = Some(id.clone());
                question = Some(id);
            }
            bells.extend(put(transaction, &draft, &id, stamp_now.unix_ms)?);
            told += 1;
            if is_over {
                bells.extend(put_read(transaction, &draft.scope, id, &stamp.next())?);
            }
        }
    }
    Ok(told)
}

/// Marks a message read that was just put in.
fn put_read(
    transaction: &Transaction<'_>,
    scope: &Scope,
    id: MessageId,
    stamp: &Stamp,
) -> rusqlite::Result<Vec<String>> {
    let mut mark = Draft::tagged(scope.clone(), Sender::system(), Tag::Mark(Mark::Read), "");
    mark.key = Some(MarkTarget::Message(id).to_string());
    put(transaction, &mark, &stamp.message_id(), stamp.unix_ms)
}

fn save(
    transaction: &Transaction<'_>,
    heard: &Signals<'_>,
    machine: &AgentMachine,
    since_ms: i64,
    now_ms: i64,
    time: Option<EventTime>,
) -> rusqlite::Result<()> {
    let of = heard.of;
    // Plain data: it cannot fail to be written.
    let written = serde_json::to_string(machine).unwrap_or_default();
    let (pid, started) = of.process.unzip();
    // Time that passed is no sighting.
    let seen_ms = (!heard.signals.is_empty()).then_some(now_ms);
    // Terminals tell in no order with the session's own events, so what they say does not make those late.
    let is_event = |signal: &Signal| matches!(signal.authority, Authority::Hook | Authority::Process);
    let is_of_this_boot = time.is_none_or(|time| time.earlier_boot_ms.is_none());
    let mono = if is_of_this_boot { i64::try_from(heard.mono.as_nanos()).unwrap_or(0) } else { 0 };
    let newest = heard.signals.iter().any(is_event).then_some(mono);
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
            of.agent.as_str(),
            of.client,
            of.session_id,
            of.scope.as_str(),
            of.worktree,
            of.cwd,
            of.surface,
            of.manager.as_ref().map(Agent::as_str),
            of.name,
            pid,
            started.and_then(|started| i64::try_from(started).ok()),
            of.by_hooks,
            word(machine.state()),
            since_ms,
            seen_ms,
            written,
            newest,
        ])
        .map(drop)
}

/// The word of a state in the table and in output: one word for each, as programs like it.
fn word(state: AgentState) -> &'static str {
    match state {
        AgentState::Blocked(_) => "blocked",
        AgentState::RateLimited => "rate_limited",
        state => state.as_str(),
    }
}
