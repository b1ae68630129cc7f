//! `ringer status`.

use ringer_agents::client::Client;
use ringer_agents::push::has_no_window;
use ringer_core::agent::running_tasks_text;
use ringer_core::attention::Record;
use ringer_core::message::Agent;
use ringer_hub::{Clock, OfflineHub, agents};
use ringer_ipc::StartFailure;
use ringer_journal::{
    Damage, Error, HubLock, HubStore, IdSource, Journal, JournalStats, RepairRecord, SpoolStatus,
};
use ringer_platform::path_variable;
use ringer_term::sanitise_line;
use serde::Serialize;
use serde_json::Value;

use super::mute;
use super::show::RunningCalls;
use crate::agents::{self, UnlistedAgents};
use crate::client_setup::client_paths;
use crate::context;
use crate::failure::{Failure, Outcome};
use crate::hub_client::{self, Problem};
use crate::notifications::needing_person;
use crate::output::{count, print_bytes, print_json, print_text};
use crate::table::{Row, Style, format_rows};

/// Show what needs you, the agents, listeners and the hub
///
/// Examples:
///   ringer status
///   ringer status --json | jq '.listeners | length'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Show only this repository
    #[arg(long)]
    here: bool,
    /// Include every repository; that is the default
    #[arg(long, hide = true, conflicts_with = "here")]
    everywhere: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The hub reads a batch of 64 messages at once, so fewer are not reported as a backlog.
const SOON_READ: i64 = 64;

#[derive(Serialize)]
struct Report {
    home: String,
    scope: String,
    repository: Option<String>,
    messages: i64,
    listeners: Vec<ListenerView>,
    unread: Vec<UnreadView>,
    agents: Vec<Value>,
    /// The number of agents of each other machine that are not in `agents`; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unlisted_agents: Vec<UnlistedAgents>,
    hub: Option<u32>,
    /// Why the hub could not start; absent if one runs, or if the last one exited normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    hub_failure: Option<StartFailure>,
    /// The approximate number of messages that the hub has not read yet.
    hub_behind: i64,
    unread_notifications: i64,
    /// Notifications that need the person, the most urgent first.
    needs_you: Vec<Value>,
    /// The person's mutes; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    muted: Vec<Value>,
    /// Problems of Ringer itself; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
    open_questions: i64,
    /// Hook events that are not in the journal yet or were lost; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    spool: Option<SpoolView>,
    /// Repaired damage; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<RepairView>,
}

#[derive(Serialize)]
struct SpoolView {
    waiting: usize,
    unreadable: usize,
    lost: usize,
    lost_since: Option<String>,
    #[serde(skip)]
    words: String,
}

#[derive(Serialize)]
struct ListenerView {
    consumer: String,
    scope: String,
    pid: u32,
}

#[derive(Serialize)]
struct UnreadView {
    consumer: String,
    scope: String,
    messages: i64,
    last_read: String,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let report = collect(!arguments.here)?;
    if arguments.json {
        return print_json(&report);
    }
    print_bytes(needs_you(&report, Style::of_stdout()).as_bytes())?;
    print_text(&format!("\n{}", format_text(&report)))
}

/// Lists what needs the person, and counts the agents, in all repositories.
pub(crate) fn overview() -> Result<String, Failure> {
    Ok(needs_you(&collect(true)?, Style::of_stdout()))
}

/// Returns everything that `ringer status` shows, for all repositories.
pub(crate) fn whole(style: Style) -> Result<String, Failure> {
    let report = collect(true)?;
    Ok(format!("{}\n{}", needs_you(&report, style), format_text(&report)))
}

fn collect(everywhere: bool) -> Result<Report, Failure> {
    let home = context::home()?;
    let repository = context::repository();
    let scope = context::scope(repository.as_ref());
    let now = IdSource::now().unix_ms;
    let mut journal = context::existing_journal()?;
    let mut hub_store = HubStore::open_to_read(&home)?;
    let stats = journal.as_mut().map(|journal| journal.stats((!everywhere).then_some(&scope), now));
    let stats = stats.transpose()?;
    let clock = Clock::local();
    let (messages, open_questions) =
        stats.as_ref().map_or((0, 0), |stats| (stats.messages, stats.open_questions));
    let mut agents = stats.as_ref().map(|stats| agents(&stats.agents, &clock)).unwrap_or_default();
    let mut unlisted_agents = Vec::new();
    if everywhere {
        let (elsewhere, unlisted) = agents::remote_agents(&home, &clock);
        agents.extend(elsewhere);
        unlisted_agents = unlisted;
    }
    let doing = RunningCalls::now();
    for agent in &mut agents {
        let text =
            doing.text(agent["id"].as_str().unwrap_or_default(), agent["state"].as_str().unwrap_or_default());
        let running = agent["running_tasks"].as_u64().and_then(|count| usize::try_from(count).ok());
        agent["doing"] = text.or_else(|| running.and_then(running_tasks_text)).into();
        if let Some(journal) = &mut journal
            && is_left(agent, journal)?
        {
            agent["has_window"] = false.into();
        }
    }
    let (listeners, unread) = stats.map(|stats| views(stats, &clock)).unwrap_or_default();
    let (unread_notifications, hub_behind) = match &mut journal {
        Some(journal) => hub_numbers(journal, hub_store.as_mut(), now)?,
        None => (0, 0),
    };
    let mut offline = OfflineHub::open(&home)?;
    let here = |record: &Record| everywhere || *record.scope == *scope.as_str();
    let needs_you = offline.as_ref().map(|hub| needing_person(hub.notifications(), &clock, here));
    let muted = offline.as_mut().map(|hub| hub.call("mute.list", Value::Null)).transpose();
    let muted = muted.map_err(hub_client::refusal)?;
    let repairs = repairs(journal.as_mut(), hub_store.as_mut(), &clock)?;
    if let Some(journal) = &journal {
        context::warn_if_repaired(journal);
    }
    let hub = HubLock::owner(&home).map(|holder| holder.pid);
    Ok(Report {
        home: home.path().display().to_string(),
        scope: scope.to_string(),
        repository: repository.map(|repository| repository.worktree.display().to_string()),
        messages,
        listeners,
        unread,
        agents,
        unlisted_agents,
        open_questions,
        hub,
        hub_failure: hub_client::last_failure(&home).filter(|_| hub.is_none()),
        hub_behind,
        unread_notifications,
        needs_you: needs_you.unwrap_or_default(),
        muted: muted.and_then(|muted| muted.as_array().cloned()).unwrap_or_default(),
        problems: hub_client::problems(&home),
        spool: spool(&SpoolStatus::of(&home, now), &clock),
        repairs,
    })
}

/// Returns the number of unread notifications, and the number of messages that the hub has not read yet.
fn hub_numbers(
    journal: &mut Journal,
    mut hub_store: Option<&mut HubStore>,
    now: i64,
) -> Result<(i64, i64), Failure> {
    let unread = journal.status_summary(hub_store.as_deref_mut(), now)?.unread;
    let behind = journal.last_seq()?.saturating_sub(journal.hub_position(hub_store)?.cursor.seq);
    Ok((unread, behind.max(0)))
}

fn spool(status: &SpoolStatus, clock: &Clock) -> Option<SpoolView> {
    let words = context::spool_text(status, clock)?;
    Some(SpoolView {
        waiting: status.waiting,
        unreadable: status.unreadable,
        lost: status.lost.as_ref().map_or(0, |lost| lost.count),
        lost_since: status.lost.as_ref().map(|lost| clock.stamp(lost.since_ms)),
        words,
    })
}

fn views(stats: JournalStats, clock: &Clock) -> (Vec<ListenerView>, Vec<UnreadView>) {
    let listeners = stats.listeners.into_iter().map(|listening| ListenerView {
        consumer: listening.owner.consumer,
        scope: listening.owner.scope,
        pid: listening.owner.pid,
    });
    let unread = stats.unread.into_iter().map(|unread| UnreadView {
        consumer: unread.consumer,
        scope: unread.scope,
        messages: unread.messages,
        last_read: clock.stamp(unread.touched_ms),
    });
    (listeners.collect(), unread.collect())
}

/// Formats the table of what needs the person, and a line about the other agents.
fn needs_you(report: &Report, style: Style) -> String {
    let rows = Row::all(&report.needs_you);
    let heading = match rows.len() {
        0 => "Nothing needs you.".to_owned(),
        1 => "1 needs you".to_owned(),
        many => format!("{many} need you"),
    };
    let state = |agent: &Value| agent["state"].as_str().map(str::to_owned);
    let states: Vec<String> = report.agents.iter().filter_map(state).collect();
    let counted = AGENT_STATES.into_iter().filter_map(|(state, word)| {
        let count = states.iter().filter(|own| *own == state).count();
        (count > 0).then(|| format!("{count} {word}"))
    });
    let agents = counted.collect::<Vec<_>>().join(" · ");
    let agents = match (agents.is_empty(), rows.is_empty()) {
        (true, true) => "No agents are running.\n".to_owned(),
        // The running agents are in the table.
        (true, false) => String::new(),
        (false, _) => format!("{agents}\n"),
    };
    let now_ms = IdSource::now().unix_ms;
    let muted: Vec<String> = report.muted.iter().map(|mute| mute::text(mute, now_ms)).collect();
    let muted = match muted.as_slice() {
        [] => String::new(),
        muted => format!("muted: {}\n", sanitise_line(&muted.join(", "))),
    };
    let problem = |problem: &Problem| {
        format!("problem: {}\n   hint: {}\n", sanitise_line(&problem.text), sanitise_line(&problem.hint))
    };
    let problems: String = report.problems.iter().map(problem).collect();
    format!("{heading}\n{}{agents}{muted}{problems}", format_rows(&rows, false, style))
}

/// The states of agents that do not need the person, and their words.
const AGENT_STATES: [(&str, &str); 6] = [
    ("working", "working"),
    ("compacting", "compacting"),
    ("rate_limited", "waiting for a limit"),
    ("done", "done"),
    ("ready", "idle"),
    ("starting", "starting"),
];

/// Returns true if an agent is idle and no window shows its session.
fn is_left(agent: &Value, journal: &mut Journal) -> Result<bool, Failure> {
    let client = agent["client"].as_str().and_then(|client| client.parse::<Client>().ok());
    let Some(client) = client.filter(|client| client.runs_without_window()) else { return Ok(false) };
    let Ok(id) = Agent::new(agent["id"].as_str().unwrap_or_default()) else { return Ok(false) };
    let (Some(info), Some(state)) = (journal.agent_info(&id)?, journal.agent_state(&id)?) else {
        return Ok(false);
    };
    let paths = client_paths(path_variable("HOME").unwrap_or_default(), None);
    Ok(has_no_window(client, &paths, &info, state))
}

/// Returns true if an agent is idle and messages cannot wake it.
fn is_asleep(agent: &Value, state: &str) -> bool {
    let client = agent["client"].as_str().and_then(|client| client.parse::<Client>().ok());
    matches!(state, "ready" | "done") && client.is_some_and(|client| !client.is_woken_by_messages())
}

fn format_text(report: &Report) -> String {
    let repository = report.repository.as_deref().unwrap_or("none");
    let listed = |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let listeners =
        report.listeners.iter().map(|one| format!("{} (pid {})", one.consumer, one.pid)).collect();
    let unread = report.unread.iter().map(|one| format!("{} for {}", one.messages, one.consumer)).collect();
    let text = |agent: &Value, name: &str| agent[name].as_str().unwrap_or_default().to_owned();
    let agents = report.agents.iter().map(|agent| {
        let lead = if agent["lead"].as_bool() == Some(true) { ", lead" } else { "" };
        let name = agent["name"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
        match agent["state"].as_str() {
            Some(state) => {
                let reads_later = match agent["has_window"].as_bool() {
                    Some(false) => ", no window shows it",
                    _ if is_asleep(agent, state) => ", reads messages with its next prompt",
                    _ => "",
                };
                let doing = agent["doing"].as_str().map(|doing| format!(", {doing}")).unwrap_or_default();
                format!("{}{name} ({state}{lead}{reads_later}{doing})", text(agent, "id"))
            }
            None => text(agent, "id"),
        }
    });
    let more = |more: &UnlistedAgents| format!("{} more on {}", more.count, more.machine);
    let unlisted = report.unlisted_agents.iter().map(more);
    let hub = match report.hub {
        None => match &report.hub_failure {
            Some(failure) => format!("not running: {}", hub_client::failure_text(failure)),
            None => "not running".to_owned(),
        },
        Some(pid) if report.hub_behind <= SOON_READ => format!("pid {pid}"),
        Some(pid) => format!("pid {pid}, still processing {} older messages", report.hub_behind),
    };
    [
        ("journal", format!("{} in {}", count(report.messages, "message"), report.home)),
        ("repository", format!("{repository} (scope {})", report.scope)),
        ("hub", hub),
        ("notifications", format!("{} unread", report.unread_notifications)),
        ("listeners", listed(listeners)),
        ("listener backlog", listed(unread)),
        ("questions", format!("{} open", report.open_questions)),
        ("agents", listed(agents.chain(unlisted).collect())),
    ]
    .into_iter()
    .chain(report.spool.iter().map(|spool| ("hook events", spool.words.clone())))
    .chain(report.repairs.iter().map(|repair| ("repaired", repair.words.clone())))
    .map(|(name, value)| format!("{name:<17} {}\n", sanitise_line(&value)))
    .collect()
}

/// Repaired damage. A damaged file is listed until its copy is removed; damaged rows until they are pruned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RepairView {
    pub(crate) file: &'static str,
    /// When the damage was found.
    pub(crate) ts: String,
    /// The path of the damaged copy; `None` if only rows were damaged.
    pub(crate) aside: Option<String>,
    /// The number of messages or notifications that were kept; for damaged rows, the number of these rows.
    pub(crate) count: usize,
    #[serde(skip)]
    pub(crate) words: String,
}

/// The repairs of both files, oldest first.
pub(crate) fn repairs(
    journal: Option<&mut Journal>,
    hub_store: Option<&mut HubStore>,
    clock: &Clock,
) -> Result<Vec<RepairView>, Error> {
    let mut views = Vec::new();
    if let Some(journal) = journal {
        views.extend(repairs_of_file(("ringer.db", "message"), &journal.repairs()?, clock));
    }
    if let Some(hub_store) = hub_store {
        views.extend(repairs_of_file(("hub.db", "notification"), &hub_store.repairs()?, clock));
    }
    Ok(views)
}

fn repairs_of_file(
    (file, rows): (&'static str, &str),
    repairs: &[RepairRecord],
    clock: &Clock,
) -> Vec<RepairView> {
    let counted = |count: usize| if count == 1 { format!("1 {rows}") } else { format!("{count} {rows}s") };
    let mut views = Vec::new();
    for repair in repairs {
        let Damage::File { damaged_copy: aside, rescued_rows: saved } = &repair.damage else { continue };
        let when = clock.short(repair.unix_ms);
        let words = format!(
            "{file} was damaged ({when}): {} kept, the damaged copy is {}",
            counted(*saved),
            aside.display()
        );
        let (ts, aside) = (clock.stamp(repair.unix_ms), Some(aside.display().to_string()));
        views.push(RepairView { file, ts, aside, count: *saved, words });
    }
    let damaged: Vec<&RepairRecord> =
        repairs.iter().filter(|repair| matches!(repair.damage, Damage::Row { .. })).collect();
    if let Some(first) = damaged.first() {
        let (when, count) = (clock.short(first.unix_ms), damaged.len());
        let words =
            format!("{} of {file} could not be read and {} set aside ({when})", counted(count), were(count));
        views.push(RepairView { file, ts: clock.stamp(first.unix_ms), aside: None, count, words });
    }
    views
}

fn were(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}
