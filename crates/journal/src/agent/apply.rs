//! Signals applied to an agent's row, in the transaction that also appends what they have to tell.

use ringer_core::{Agent, AgentMachine, AgentState, BlockedOn, Kind};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::notice::drafts;
use super::{SIGHTING, Sighting, Signals, sighting};
use crate::append::put;
use crate::prompt;
use crate::stamp::Stamp;

/// What is known of an agent, and whether it is somewhere else by now.
pub(super) struct Known {
    pub(super) machine: AgentMachine,
    since_ms: i64,
    pub(super) moved: bool,
}

pub(super) fn row(connection: &Connection, heard: &Signals<'_>) -> rusqlite::Result<Option<Known>> {
    let of = heard.of;
    let found = connection
        .prepare("SELECT machine, since, scope, surface, cwd FROM agent WHERE id = ?1")?
        .query_row([of.agent.as_str()], |row| {
            let (machine, since_ms): (String, i64) = (row.get(0)?, row.get(1)?);
            let place: (String, Option<String>, Option<String>) = (row.get(2)?, row.get(3)?, row.get(4)?);
            let differs = |seen: &Option<String>, known: &Option<String>| seen.is_some() && seen != known;
            let moved =
                place.0 != of.scope.as_str() || differs(&of.surface, &place.1) || differs(&of.cwd, &place.2);
            Ok((machine, since_ms, moved))
        })
        .optional()?;
    Ok(found.and_then(|(machine, since_ms, moved)| {
        let machine: AgentMachine = serde_json::from_str(&machine).ok()?;
        Some(Known { machine: machine.resume(heard.mono, heard.patience), since_ms, moved })
    }))
}

pub(super) fn hear(
    transaction: &Transaction<'_>,
    heard: &Signals<'_>,
    stamp: &mut Stamp,
) -> rusqlite::Result<(usize, Vec<String>)> {
    let known = row(transaction, heard)?;
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
    // Time that passed is no sighting.
    let seen_ms = (!heard.signals.is_empty()).then_some(stamp.unix_ms);
    save(transaction, heard.of, &machine, since_ms, seen_ms)?;
    let (mut told, mut bells) = (0, Vec::new());
    let asks = |state| state == AgentState::Blocked(BlockedOn::Question);
    if asks(before) && !asks(machine.state()) {
        bells = prompt::close(transaction, &heard.of.agent, &heard.of.scope, stamp)?;
    }
    if notices.is_empty() {
        return Ok((told, bells));
    }
    // As the row has it by now: this look may have seen less of the agent than an earlier one.
    let of = transaction
        .prepare(&format!("SELECT {SIGHTING} FROM agent WHERE id = ?1"))?
        .query_row([heard.of.agent.as_str()], sighting)?;
    let of = Sighting { tty: heard.of.tty.clone(), ..of };
    for notice in &notices {
        let mut question = None;
        for mut draft in drafts(transaction, &of, notice)? {
            let stamp = stamp.next();
            if notice.kind == Kind::Question {
                // One question, whoever is told of it.
                let id = question.take().map_or_else(|| prompt::open(transaction, &draft, &stamp), Ok)?;
                draft.question_id = Some(id.clone());
                question = Some(id);
            }
            bells.extend(put(transaction, &draft, &stamp.message_id(), stamp.unix_ms)?);
            told += 1;
        }
    }
    Ok((told, bells))
}

fn save(
    transaction: &Transaction<'_>,
    of: &Sighting,
    machine: &AgentMachine,
    since_ms: i64,
    seen_ms: Option<i64>,
) -> rusqlite::Result<()> {
    // Plain data: it cannot fail to be written.
    let written = serde_json::to_string(machine).unwrap_or_default();
    let (pid, started) = of.process.unzip();
    transaction
        .prepare(
            "INSERT INTO agent (id, client, session_id, scope, worktree, cwd, surface, manager, name, pid, started,
                                by_hooks, state, since, seen, machine, blocks)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, coalesce(?15, ?14), ?16, 0)
             ON CONFLICT (id) DO UPDATE SET
                 scope = excluded.scope, worktree = coalesce(excluded.worktree, worktree),
                 cwd = coalesce(excluded.cwd, cwd), surface = coalesce(excluded.surface, surface),
                 manager = coalesce(excluded.manager, manager), name = coalesce(excluded.name, name),
                 pid = coalesce(excluded.pid, pid), started = coalesce(excluded.started, started),
                 by_hooks = max(by_hooks, excluded.by_hooks), state = excluded.state, since = excluded.since,
                 seen = coalesce(?15, seen), machine = excluded.machine",
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
