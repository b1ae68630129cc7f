//! Agents: their rows, which whoever holds a signal brings up to date, together with what that has to tell.

use std::time::Duration;

use ringer_core::{
    Agent, AgentMachine, AgentState, BlockedOn, Draft, Kind, Notice, Patience as AgentPatience, Scope,
    Sender, Signal, Tag, Telling, Tier, tell,
};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::append::put;
use crate::error::Error;
use crate::inbox::{self, Claim, Claimed};
use crate::journal::Journal;
use crate::prompt;
use crate::stamp::Stamp;

/// How often a sign of life alone is written down. Far less than the time after which an agent counts as stuck.
const ALIVE_EVERY: Duration = Duration::from_mins(1);

/// An agent, as whoever gives a signal sees it.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Its id.
    pub agent: Agent,
    /// The client program.
    pub client: String,
    /// The client's session.
    pub session_id: String,
    /// The repository it works in.
    pub scope: Scope,
    /// Its worktree.
    pub worktree: Option<String>,
    /// Its current directory.
    pub cwd: Option<String>,
    /// The surface it is on.
    pub surface: Option<String>,
    /// The terminal of that surface.
    pub tty: Option<String>,
    /// The agent it works for.
    pub manager: Option<Agent>,
    /// What people call it.
    pub name: Option<String>,
    /// Its process, and when that started.
    pub process: Option<(u32, u64)>,
    /// Whether it reports by hooks.
    pub by_hooks: bool,
}

/// Signals of one agent, to be heard at one moment.
#[derive(Debug)]
pub struct Signals<'a> {
    /// Whose.
    pub of: &'a Sighting,
    /// What they say, in order.
    pub signals: &'a [Signal],
    /// On the clock that never jumps.
    pub mono: Duration,
    /// How long it is waited for.
    pub patience: AgentPatience,
    /// Whether anything is told of it. Subagents are silent.
    pub aloud: bool,
}

/// What became of signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentChange {
    /// Whether something was written.
    pub written: bool,
    /// How many messages it made.
    pub told: usize,
    /// What enters the agent's turn now, if it was asked for.
    pub claimed: Option<Claimed>,
}

impl Journal {
    /// Lets an agent's state machine hear signals. The row, what it has to tell, and what it claims from the inbox are
    /// one transaction. Where nothing changes, nothing is written.
    pub fn hear_agent(
        &mut self,
        heard: &Signals<'_>,
        claim: Option<&Claim<'_>>,
        stamp: &Stamp,
    ) -> Result<AgentChange, Error> {
        let quiet = self.healing(|journal| {
            journal.nothing_changes(heard, claim, stamp).map_err(|error| journal.error(error))
        })?;
        if quiet {
            return Ok(AgentChange::default());
        }
        let (change, bells) = self.write(|transaction| {
            let (told, bells) = hear(transaction, heard, &mut { *stamp })?;
            let agent = heard.of.agent.as_str();
            let claimed =
                claim.map(|claim| inbox::claim(transaction, agent, claim, stamp)).transpose()?.flatten();
            Ok((AgentChange { written: true, told, claimed }, bells))
        })?;
        self.ring(&bells);
        Ok(change)
    }

    /// Whether a look is enough: the state stays, nothing waits, and a sign of life was written down not long ago.
    fn nothing_changes(
        &self,
        heard: &Signals<'_>,
        claim: Option<&Claim<'_>>,
        stamp: &Stamp,
    ) -> rusqlite::Result<bool> {
        let Some(row) = row(&self.connection, heard)? else { return Ok(false) };
        let mut machine = row.machine.clone();
        let told = heard.signals.iter().any(|signal| !machine.apply(heard.mono, signal).is_empty());
        let same = !told && machine.is_as_before(&row.machine, ALIVE_EVERY);
        if !same || row.moved {
            return Ok(false);
        }
        Ok(!inbox::waits(&self.connection, heard.of.agent.as_str(), claim, stamp)?)
    }

    /// Lets time pass for the agents whose time has come. Gives how many messages that made.
    pub fn tick_agents(
        &mut self,
        mono: Duration,
        patience: AgentPatience,
        stamp: &Stamp,
    ) -> Result<usize, Error> {
        let (told, bells) = self.write(|transaction| {
            let (mut told, mut bells) = (0, Vec::new());
            let due = live(transaction)?.into_iter().filter(|(_, machine)| {
                let machine = machine.clone().resume(mono, patience);
                machine.next_deadline().is_some_and(|deadline| deadline <= mono)
            });
            let mut stamp = *stamp;
            for (of, _) in due {
                let heard = Signals { of: &of, signals: &[], mono, patience, aloud: true };
                let (more, rung) = hear(transaction, &heard, &mut stamp)?;
                told += more;
                bells.extend(rung);
            }
            Ok((told, bells))
        })?;
        self.ring(&bells);
        Ok(told)
    }

    /// When time alone may change an agent, for somebody with that patience, on the clock that never jumps.
    pub fn agents_deadline(
        &self,
        mono: Duration,
        patience: AgentPatience,
    ) -> Result<Option<Duration>, Error> {
        let live = live(&self.connection).map_err(|error| self.error(error))?;
        Ok(live.into_iter().filter_map(|(_, machine)| machine.resume(mono, patience).next_deadline()).min())
    }

    /// What an agent does.
    pub fn agent_state(&self, agent: &Agent) -> Result<Option<AgentState>, Error> {
        Ok(self.agent_machine(agent)?.map(|machine| machine.state()))
    }

    /// What an agent does, and what decided that.
    pub fn agent_machine(&self, agent: &Agent) -> Result<Option<AgentMachine>, Error> {
        let machine: rusqlite::Result<Option<String>> = self
            .connection
            .query_row("SELECT machine FROM agent WHERE id = ?1", [agent.as_str()], |row| row.get(0))
            .optional();
        let machine = machine.map_err(|error| self.error(error))?;
        Ok(machine.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// What was last seen of an agent.
    pub fn sighting(&self, agent: &Agent) -> Result<Option<Sighting>, Error> {
        self.connection
            .prepare(&format!("SELECT {SIGHTING} FROM agent WHERE id = ?1"))
            .and_then(|mut statement| statement.query_row([agent.as_str()], sighting).optional())
            .map_err(|error| self.error(error))
    }

    /// The agent that was last seen on a surface and has not gone.
    pub fn agent_on(&self, surface: &str) -> Result<Option<Sighting>, Error> {
        self.connection
            .query_row(
                &format!(
                    "SELECT {SIGHTING} FROM agent WHERE surface = ?1 AND state <> 'exited' ORDER BY seen DESC LIMIT 1"
                ),
                [surface],
                sighting,
            )
            .optional()
            .map_err(|error| self.error(error))
    }

    /// Every agent that has not gone, with what was last seen of it and what it does.
    pub fn live_agents(&self) -> Result<Vec<(Sighting, AgentState)>, Error> {
        let live = live(&self.connection).map_err(|error| self.error(error))?;
        Ok(live.into_iter().map(|(sighting, machine)| (sighting, machine.state())).collect())
    }

    /// Counts a stop that was blocked, or begins to count anew. Gives the number so far.
    pub fn count_block(&mut self, agent: &Agent, blocked: bool) -> Result<i64, Error> {
        self.write(|transaction| {
            let change = if blocked { "blocks + 1" } else { "0" };
            transaction
                .prepare(&format!("UPDATE agent SET blocks = {change} WHERE id = ?1"))?
                .execute([agent.as_str()])?;
            let count: Option<i64> = transaction
                .prepare("SELECT blocks FROM agent WHERE id = ?1")?
                .query_row([agent.as_str()], |row| row.get(0))
                .optional()?;
            Ok(count.unwrap_or(0))
        })
    }

    /// How often in a row that agent's stop was blocked.
    pub fn blocks(&self, agent: &Agent) -> Result<i64, Error> {
        self.connection
            .query_row("SELECT blocks FROM agent WHERE id = ?1", [agent.as_str()], |row| row.get(0))
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(|error| self.error(error))
    }
}

const SIGHTING: &str =
    "id, client, session_id, scope, worktree, cwd, surface, manager, name, pid, started, by_hooks";

/// The agents that have not gone, and their machines.
fn live(connection: &Connection) -> rusqlite::Result<Vec<(Sighting, AgentMachine)>> {
    let mut statement = connection
        .prepare(&format!("SELECT {SIGHTING}, machine FROM agent WHERE state <> 'exited' ORDER BY seen"))?;
    let mut rows = statement.query([])?;
    let mut live = Vec::new();
    while let Some(row) = rows.next()? {
        let machine: String = row.get(12)?;
        // A row that makes no sense is passed over.
        live.extend(
            serde_json::from_str(&machine).ok().and_then(|machine| Some((sighting(row).ok()?, machine))),
        );
    }
    Ok(live)
}

fn sighting(row: &Row<'_>) -> rusqlite::Result<Sighting> {
    let agent = |column| -> rusqlite::Result<Option<Agent>> {
        Ok(row.get::<_, Option<String>>(column)?.and_then(|id| Agent::new(&id).ok()))
    };
    let scope: String = row.get(3)?;
    let process: (Option<u32>, Option<i64>) = (row.get(9)?, row.get(10)?);
    Ok(Sighting {
        agent: agent(0)?.ok_or(rusqlite::Error::InvalidQuery)?,
        client: row.get(1)?,
        session_id: row.get(2)?,
        scope: Scope::new(&scope).unwrap_or_else(|_| Scope::global()),
        worktree: row.get(4)?,
        cwd: row.get(5)?,
        surface: row.get(6)?,
        tty: None,
        manager: agent(7)?,
        name: row.get(8)?,
        process: process.0.zip(process.1.and_then(|started| started.try_into().ok())),
        by_hooks: row.get(11)?,
    })
}

/// What is known of an agent, and whether it is somewhere else by now.
struct Known {
    machine: AgentMachine,
    since_ms: i64,
    moved: bool,
}

fn row(connection: &Connection, heard: &Signals<'_>) -> rusqlite::Result<Option<Known>> {
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

fn hear(
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

/// The messages that tell of a notice.
fn drafts(transaction: &Transaction<'_>, of: &Sighting, notice: &Notice) -> rusqlite::Result<Vec<Draft>> {
    let lead = lead_of(transaction, &of.scope)?;
    let manager = of.manager.clone().or_else(|| lead.clone().filter(|lead| *lead != of.agent));
    let tier = match manager {
        Some(manager) => Tier::Worker { manager },
        None => Tier::Manager { unfinished: unfinished(transaction, &of.agent)? },
    };
    let tellings = tell(&of.agent, &tier, lead.as_ref(), notice);
    Ok(tellings.into_iter().map(|telling| draft(of, notice, telling)).collect())
}

fn draft(of: &Sighting, notice: &Notice, telling: Telling) -> Draft {
    let sender = Sender::new(of.agent.as_str()).unwrap_or_else(|_| Sender::system());
    let mut draft = Draft::tagged(of.scope.clone(), sender, Tag::Notice(notice.kind), &telling.text);
    draft.recipient = telling.recipient;
    draft.category = notice.category.map(str::to_owned);
    draft.key = Some(format!("{}-{}", of.agent.as_str(), notice.episode.number()));
    draft.title = title(of);
    draft.origin.cwd.clone_from(&of.cwd);
    draft.origin.surface.clone_from(&of.surface);
    draft.origin.tty.clone_from(&of.tty);
    draft
}

/// Which agent, and where it works.
fn title(of: &Sighting) -> Option<String> {
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

/// The lead of a scope.
pub(crate) fn lead_of(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<Agent>> {
    let found: Option<Option<String>> = connection
        .prepare("SELECT agent FROM lead WHERE scope = ?1")?
        .query_row([scope.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found.flatten().and_then(|id| Agent::new(&id).ok()))
}
