//! Operations that are reserved for the person: answer, trust, mute, type into panes.
//!
//! `ringer-guard` finds the evidence. This module requests it, announces doubtful operations and reports refused ones. None of
//! this holds against a debugger of the same user: see docs/security.md.

use std::sync::OnceLock;

use ringer_core::attention::Record;
use ringer_core::hash::fnv1a_64;
use ringer_core::message::{Agent, DONE_IN_TERMINAL, REFUSED, Recipient, Tag, is_about_impostors};
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_guard::{
    AgentProcesses, Evidence, HubProcess, PaneWindows, ProcessFacts as _, Refusal, System, Verdict, examine,
};
use ringer_hub::Clock;
use ringer_hub::RequestGuard;
use ringer_journal::{HubLock, IdSource, Journal, ProcessStat, StoredPrompt};
use ringer_term::sanitise_line;
use serde_json::Value;

use crate::commands::config::{environment, user_config};
use crate::context;
use crate::failure::{Exit, Failure, PERSON_HINT};
use crate::notifications;

/// The category of the notification that a script of the person performed a reserved operation.
const BY_SCRIPT: &str = "done_by_script";

/// Set in the server of panes. Each of its windows was checked when it attached, and nobody else reaches the keys and buttons
/// that it acts on.
static IS_PANE_SERVER: OnceLock<()> = OnceLock::new();

/// Makes this process act for the person at its windows.
pub(crate) fn act_for_windows() {
    let _ = IS_PANE_SERVER.set(());
}

/// A person or agent that may decide, with the evidence.
#[derive(Debug, Clone)]
pub(crate) struct Decider {
    pub(crate) by: Sender,
    /// In words, for `ringer why`; `None` for an agent.
    pub(crate) evidence: Option<String>,
}

impl Decider {
    fn person(evidence: String) -> Self {
        Self { by: Sender::person(), evidence: Some(evidence) }
    }
}

/// Returns the decider of a prompt: the person, or the lead of its scope if the person allows that.
pub(crate) fn decider(journal: &mut Journal, prompt: &StoredPrompt) -> Result<Decider, Failure> {
    let what = format!("answer what {} asks", prompt.agent.as_str());
    let agents = journal.agent_processes()?;
    match verdict(&agents, Some(prompt.asked_ms)) {
        Verdict::Agent(agent) => {
            let lead = journal.lead(&prompt.scope)?;
            let all = agents_above(&agents);
            if lead.may_answer(&agent, &prompt.agent) && all.iter().all(|above| *above == agent) {
                return Ok(Decider { by: Sender::new(agent.as_str())?, evidence: None });
            }
            Err(refuse_agent(journal, &agent, &prompt.scope, &what).hint(
                "only a person may do that; they can allow it to the lead agent: ringer lead --may-decide",
            ))
        }
        verdict => passes(journal, verdict, &prompt.scope, &what, Announcement::Yes).map(Decider::person),
    }
}

/// Refuses an operation that is reserved for the person, unless there is evidence of one.
pub(crate) fn only_a_person(journal: &mut Journal, scope: &Scope, what: &str) -> Result<(), Failure> {
    let agents = journal.agent_processes()?;
    passes(journal, verdict(&agents, None), scope, what, Announcement::Yes).map(drop)
}

/// The same for an operation that is visible anyway, or can be undone.
pub(crate) fn only_a_person_quietly(what: &str) -> Result<(), Failure> {
    let mut journal = context::journal_to_read()?;
    let agents = journal.agent_processes()?;
    passes(&mut journal, verdict(&agents, None), &Scope::global(), what, Announcement::No).map(drop)
}

/// Checks a request that this process handles itself, in the place of a hub.
pub(crate) fn may_request(method: &str, params: &Value) -> Result<(), Failure> {
    let Some((what, reserved)) = reserved(method) else { return Ok(()) };
    let mut journal = context::journal_to_read()?;
    let agents = journal.agent_processes()?;
    let verdict = verdict(&agents, None);
    decide(&mut journal, verdict, System::own_pid(), (what, reserved), params)
}

/// Refuses to quieten notifications of others: an agent may mark, snooze and clear its own. `requests` have the form of the
/// hub's socket.
fn quietens(journal: &mut Journal, verdict: Verdict, what: &str, requests: &[Value]) -> Result<(), Failure> {
    if let Verdict::Agent(agent) = &verdict
        && are_own(journal, agent, requests)?
    {
        return Ok(());
    }
    // Quietening can be undone, but nobody may silently hide the warning that somebody acted for the person.
    let is_warning = |record: &Record| is_about_impostors(record.category.as_deref()) && !record.is_resolved;
    let may_hide_warning = notifications::read()?.newest().any(is_warning);
    let announced = if may_hide_warning { Announcement::Yes } else { Announcement::No };
    passes(journal, verdict, &Scope::global(), what, announced).map(drop)
}

/// Returns true if each request names one notification that the agent sent. The report of a refusal never counts as its own.
fn are_own(journal: &mut Journal, agent: &Agent, requests: &[Value]) -> Result<bool, Failure> {
    let name = journal.agent_info(agent)?.and_then(|info| info.name);
    for request in requests {
        let message = match request["id"].as_str() {
            Some(id) => {
                let id = full_id(id)?;
                journal.message(&id)?
            }
            None => None,
        };
        let is_own = message.is_some_and(|message| {
            let sender = message.draft.sender.as_str();
            let is_sender = sender == agent.as_str() || name.as_deref() == Some(sender);
            is_sender && !is_about_impostors(message.draft.category.as_deref())
        });
        if !is_own {
            return Ok(false);
        }
    }
    Ok(!requests.is_empty())
}

/// Returns the full id of the notification that a person names.
fn full_id(text: &str) -> Result<String, Failure> {
    let named = notifications::named(&notifications::read()?, text, &Clock::local())?;
    Ok(named.map_or_else(|| text.to_owned(), |id| id.to_string()))
}

/// Whether an operation without proof of the person is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announcement {
    Yes,
    No,
}

/// Who may use a reserved method: an agent for its own notifications, programs that act for the person, or only the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reservation {
    Quietening,
    /// Reports which terminals the person looks at: notifications for them count as read.
    Showing,
    Other(Announcement),
}

/// Describes a method of the hub's socket that is reserved for the person.
fn reserved(method: &str) -> Option<(&'static str, Reservation)> {
    Some(match method {
        "notification.mark_read" | "notification.mark_unread" => {
            ("mark notifications", Reservation::Quietening)
        }
        "notification.snooze" => ("snooze notifications", Reservation::Quietening),
        "notification.clear" | "notification.dismiss" => ("clear notifications", Reservation::Quietening),
        "notification.forget" => {
            ("delete the messages of a repository", Reservation::Other(Announcement::Yes))
        }
        "notification.undo" => ("undo what a person did", Reservation::Other(Announcement::Yes)),
        "mute.set" => ("change what is muted", Reservation::Other(Announcement::Yes)),
        "mute.remove" => ("change what is muted", Reservation::Other(Announcement::No)),
        "hub.stop" => ("stop the hub", Reservation::Other(Announcement::No)),
        "host.attach" => ("say what is looked at", Reservation::Showing),
        _ => return None,
    })
}

/// Refuses requests on the hub's socket that only the person may send.
#[derive(Debug)]
pub(crate) struct HubGuard;

impl RequestGuard for HubGuard {
    fn is_reserved(&self, method: &str) -> bool {
        reserved(method).is_some()
    }

    fn check(&self, pid: Option<u32>, method: &str, params: &Value) -> Result<(), String> {
        let Some((what, reserved)) = reserved(method) else { return Ok(()) };
        // The hub's own threads are clients, too. Ringer's other programs report only what is visible in their own windows.
        let is_own = |pid: u32| {
            pid == std::process::id() || reserved == Reservation::Showing && System::runs_this_program(pid)
        };
        if pid.is_some_and(is_own) { Ok(()) } else { check_request(pid, what, reserved, params) }
    }
}

fn check_request(pid: Option<u32>, what: &str, reserved: Reservation, params: &Value) -> Result<(), String> {
    // The process gave up. The hub may have been stopped in the meantime.
    if pid.is_some_and(|pid| ProcessStat::of(pid).is_none()) {
        return Err(format!("the process that wanted to {what} has ended"));
    }
    let check = || {
        let mut journal = context::journal_to_read()?;
        let agents = journal.agent_processes()?;
        let verdict = match pid {
            Some(pid) => of_client(&agents, pid),
            None if cfg!(target_os = "linux") => Verdict::Refused(Refusal::Elsewhere),
            None => return Ok(()),
        };
        decide(&mut journal, verdict, pid, (what, reserved), params)
    };
    check().map_err(|failure: Failure| failure.first_line())
}

fn decide(
    journal: &mut Journal,
    verdict: Verdict,
    pid: Option<u32>,
    (what, reserved): (&str, Reservation),
    params: &Value,
) -> Result<(), Failure> {
    match reserved {
        Reservation::Quietening => quietens(journal, verdict, what, std::slice::from_ref(params)),
        Reservation::Showing => shows(journal, verdict, pid, what),
        Reservation::Other(announced) => {
            passes(journal, verdict, &Scope::global(), what, announced).map(drop)
        }
    }
}

/// Refuses an agent's report of what the person looks at. A program without a terminal may report it, as terminals do, and that
/// is announced.
fn shows(journal: &mut Journal, verdict: Verdict, pid: Option<u32>, what: &str) -> Result<(), Failure> {
    let refused = |why: String| Failure::new(Exit::NoPermission, why);
    match verdict {
        Verdict::Proven(_) | Verdict::Known(_) => Ok(()),
        Verdict::Agent(agent) => {
            let agent = sanitise_line(agent.as_str());
            Err(refused(format!("an agent ({agent}) must not {what}")))
        }
        Verdict::Refused(refusal) if !refusal.may_be_script() => {
            Err(refused(format!("this process must not {what}: {refusal}")))
        }
        Verdict::Refused(_) => {
            let system = System::new(HubProcess::None, &|| None);
            let file = pid.and_then(|pid| system.executable(pid));
            let program = file.map_or_else(|| "A program".to_owned(), |file| file.name().to_owned());
            let text = format!(
                "{program} says what you look at: what is listed for terminals that it names counts as read. If it is not yours, end it."
            );
            if !may_scripts() {
                announce(journal, &Scope::global(), Kind::Status, DONE_IN_TERMINAL, Some(&program), &text);
            }
            Ok(())
        }
    }
}

/// Determines who is behind a client of the hub. The server of panes acts for the people at its windows.
fn of_client(agents: &AgentProcesses, pid: u32) -> Verdict {
    let panes = pane_windows();
    let ask = || panes.clone();
    let system = System::new(HubProcess::Running(std::process::id(), None), &ask);
    let windows = panes.as_ref().filter(|panes| panes.server == pid).map(|panes| panes.windows.clone());
    let of_windows =
        windows.unwrap_or_default().into_iter().map(|window| examine(&system, agents, window, None));
    let passing =
        of_windows.into_iter().find(|verdict| matches!(verdict, Verdict::Proven(_) | Verdict::Known(_)));
    passing.unwrap_or_else(|| examine(&system, agents, pid, None))
}

/// Returns true if an agent calls this command.
pub(crate) fn is_agent(journal: &mut Journal) -> Result<bool, Failure> {
    let agents = journal.agent_processes()?;
    Ok(matches!(verdict(&agents, None), Verdict::Agent(_)))
}

/// Checks that a process may type into panes: a client of the server of panes. A refused attempt is reported.
pub(crate) fn may_type(pid: u32, windows: &PaneWindows, what: &str) -> Result<(), String> {
    let check = || {
        let mut journal = context::journal_to_read()?;
        let agents = journal.agent_processes()?;
        let windows = || Some(windows.clone());
        let verdict = examine(&System::new(hub(), &windows), &agents, pid, None);
        // If this was a command, the command has announced it.
        passes(&mut journal, verdict, &Scope::global(), what, Announcement::No).map(drop)
    };
    check().map_err(|failure: Failure| failure.first_line())
}

/// Determines who calls this command. `asked_ms` is the time of the question, in milliseconds since 1970.
fn verdict(agents: &AgentProcesses, asked_ms: Option<i64>) -> Verdict {
    if IS_PANE_SERVER.get().is_some() {
        return Verdict::Proven(Evidence { programs: vec!["a window of panes".to_owned()], doubt: None });
    }
    let Some(pid) = System::own_pid() else { return Verdict::Refused(Refusal::Unreadable) };
    examine(&System::new(hub(), &pane_windows), agents, pid, asked_ms.and_then(System::ticks_at))
}

/// Returns true if the person lets their scripts decide.
fn may_scripts() -> bool {
    user_config(&environment())
        .and_then(|(_, config)| config.ok())
        .is_some_and(|config| config.answers.scripts)
}

fn hub() -> HubProcess {
    let owner = context::home().ok().and_then(|home| HubLock::owner(&home));
    owner.map_or(HubProcess::None, |owner| HubProcess::Running(owner.pid, owner.started))
}

/// The function that asks the server of panes for its windows.
static ASK_PANES: OnceLock<fn() -> Option<PaneWindows>> = OnceLock::new();

/// Sets the function that asks the server of panes for its windows.
pub(crate) fn ask_panes_with(ask: fn() -> Option<PaneWindows>) {
    let _ = ASK_PANES.set(ask);
}

fn pane_windows() -> Option<PaneWindows> {
    ASK_PANES.get().and_then(|ask| ask())
}

/// Returns every agent above this process.
fn agents_above(agents: &AgentProcesses) -> Vec<Agent> {
    let mut found = Vec::new();
    let mut next = System::own_pid();
    while let Some((pid, stat)) = next.and_then(|pid| Some((pid, ProcessStat::of(pid)?))) {
        found.extend(agents.get(&(pid, stat.started)).cloned());
        next = Some(stat.parent).filter(|parent| *parent > 0);
    }
    found
}

/// Returns the evidence for the person in words, or the refusal.
fn passes(
    journal: &mut Journal,
    verdict: Verdict,
    scope: &Scope,
    what: &str,
    announced: Announcement,
) -> Result<String, Failure> {
    match verdict {
        Verdict::Proven(evidence) => Ok(format!("from {evidence}")),
        Verdict::Known(evidence) if announced == Announcement::No => Ok(format!("from {evidence}")),
        Verdict::Known(evidence) => {
            let text = format!("Somebody in {evidence}, did this: {what}. If it was not you: ringer undo, ringer log");
            // Each has its own key, so that a later one does not replace an earlier one in the list.
            announce(journal, scope, Kind::Status, DONE_IN_TERMINAL, Some(&format!("{:016x}", fnv1a_64(what.bytes()))), &text);
            Ok(format!("from {evidence}"))
        }
        Verdict::Agent(agent) => Err(refuse_agent(journal, &agent, scope, what)
            .hint("only a person may do that, in a terminal of their own; what is typed after ! in an agent is below it, too")),
        Verdict::Refused(refusal) if refusal.may_be_script() && may_scripts() => {
            if announced == Announcement::Yes {
                let text = format!("A script of yours did this: {what} ({refusal}). If it was not yours: ringer undo, ringer log");
                announce(journal, scope, Kind::Status, BY_SCRIPT, None, &text);
            }
            Ok(format!("from a script: {refusal}"))
        }
        Verdict::Refused(refusal) => {
            let text = format!("A process tried to {what}, which only you may do. It was refused: {refusal}.");
            announce(journal, scope, Kind::Error, REFUSED, None, &text);
            let failure = Failure::new(Exit::NoPermission, format!("only a person may {what}: {refusal}"));
            Err(if refusal.may_be_script() {
                failure.hint(PERSON_HINT)
            } else {
                failure.hint("run it in a terminal of your own, on the machine and in the container of the hub")
            })
        }
    }
}

/// Notifies the person, and returns the error for the agent.
fn refuse_agent(journal: &mut Journal, agent: &Agent, scope: &Scope, what: &str) -> Failure {
    let agent = agent.as_str();
    let text = format!("{agent} tried to {what}, which only a person may do. It was refused.");
    announce(journal, scope, Kind::Error, REFUSED, Some(agent), &text);
    Failure::new(Exit::NoPermission, format!("an agent ({}) must not {what}", sanitise_line(agent)))
}

/// Notifies the person. Repetitions by one agent share a row. The sender is Ringer, because an agent may clear and replace its
/// own notifications.
fn announce(
    journal: &mut Journal,
    scope: &Scope,
    kind: Kind,
    category: &str,
    agent: Option<&str>,
    text: &str,
) {
    let mut draft = Draft::tagged(scope.clone(), Sender::system(), Tag::Notice(kind), text);
    draft.recipient = Recipient::Person;
    draft.category = Some(category.to_owned());
    draft.key = Some(agent.map_or_else(|| category.to_owned(), |agent| format!("{category}:{agent}")));
    // The decision stands even if it cannot be announced.
    let _ = journal.append(&draft, &IdSource::now());
}
