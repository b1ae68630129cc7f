//! One hook call: records what the hook reports, and answers with the messages that enter the agent's turn.
//!
//! It never makes the agent fail or wait (except beside an open dialog, where it waits for the person), and loses no event: an
//! event that cannot be written in time is spooled, and the hub applies it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::Scope;
use ringer_core::agent::{AgentState, AnswerMethod, Prompt, Signal, SignalContent};
use ringer_core::conversation::{Injection, InjectionBudget, RateTracker, render, system_prompt};
use ringer_core::message::{Agent, MessagePart, SessionNonce};
use ringer_core::time::parse_span;
use ringer_journal::{
    AgentEvent, AgentInfo, Caller, ClaimedParts, Confirmation, EnteredPart, Error as JournalError,
    EventOutcome, IdSource, InboxRequest, Journal, LockTimeout, ProcessStat, Repository, RunningTools,
    run_different_programs, spool_event,
};

use crate::client::{
    self, Client, ClientPaths, HookPoint, HookReply, HookReport, SessionActivity, ToolCall, agent_id, answer,
};
use crate::push::is_idle;
use crate::sessions::{add_log_detail, find_session, log_and_settings, logged_turn_end};
use crate::waiting_hook::{WaitingHook, wait_while_idle};

pub use crate::hook_context::{HookContext, HookError, HookOutcome};

/// How many times in a row a stop may be blocked. More would be a loop.
pub const MAX_BLOCKS: i64 = 3;
/// Maximum characters that enter a turn of a client without a documented limit. This is Claude Code's limit.
const CONTEXT_LIMIT: usize = 10_000;
/// Total time that one call waits for the write lock: to record its event, to move the lead's cursor, and to mark messages as
/// delivered.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// How long to wait for another reader of the lead's cursor.
const LEAD_LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// Handles a hook call: reads the client's input, records it, and writes the messages that may enter the agent's turn.
pub fn call(
    client: Client,
    event: &str,
    input: impl Read,
    out: &mut impl Write,
    context: &HookContext<'_>,
) -> Result<HookOutcome, HookError> {
    let (mut report, input) = client::read_with_prompt(client, event, input)?;
    let observations = std::mem::take(&mut report.observations);
    let Some(agent) = report.session_id.as_deref().and_then(|session| agent_id(client, session)) else {
        return Ok(HookOutcome { observations, hub_is_missing: false });
    };
    let deadline = check_prompt(client, event, &mut report, context);
    if let Some(session_id) = report.session_id.clone().filter(|_| report.has_unexplained_end()) {
        report.replace_turn_end(&logged_turn_end(client, &(context.paths)(), &session_id));
    }
    if report.log_detail.is_some() {
        add_log_detail(client, &(context.paths)(), &mut report);
    }
    let until = Instant::now() + LONGEST_WAIT;
    let mut call = Call { client, event, agent, report, context, until };
    let hub_is_missing = match Journal::open_without_repair(&context.home, LockTimeout::HOOK) {
        Ok(journal) if call.report.waits_for_messages => {
            wait_while_idle((client, event), &call.agent, journal, out, context)?;
            return Ok(HookOutcome::default());
        }
        Ok(mut journal) => {
            // An earlier event has already reported the dialog that this hook waits for.
            let outcome = if call.report.awaited_call.is_some() {
                EventOutcome::default()
            } else {
                call.run(&mut journal, out)?
            };
            let hub_is_missing = (outcome.spooled || outcome.change.written) && !journal.hub_was_woken();
            if outcome.spooled {
                // If this fails, the next hook or command applies it.
                let _ = journal.apply_spool_without_hub();
            }
            if let Some(waiting) = call.waiting_hook(input.as_ref(), deadline) {
                (context.before_wait)(&HookOutcome { observations, hub_is_missing });
                waiting.run(journal, out)?;
                return Ok(HookOutcome::default());
            }
            hub_is_missing
        }
        // The home is unsafe or cannot be created, so no process would ever apply a spooled event.
        Err(error @ (JournalError::UnsafeHome { .. } | JournalError::NoHome { .. })) => {
            return Err(error.into());
        }
        Err(error) => {
            let event = call.agent_event(None, &IdSource::now());
            !spool_event(&context.home, &event).map_err(|_| error)?
        }
    };
    Ok(HookOutcome { observations, hub_is_missing })
}

struct Call<'a> {
    client: Client,
    event: &'a str,
    agent: Agent,
    report: HookReport,
    context: &'a HookContext<'a>,
    /// The deadline for waiting for the write lock.
    until: Instant,
}

impl Call<'_> {
    fn run(&mut self, journal: &mut Journal, out: &mut impl Write) -> Result<EventOutcome, HookError> {
        let known = journal.agent_info(&self.agent).ok().flatten();
        if known.as_ref().is_some_and(|known| self.is_forged(journal, known)) {
            return Err(HookError::Forged(self.agent.clone()));
        }
        // The parent of a subagent of Copilot CLI may be a subagent as well, and is no agent of Ringer's.
        let asks = self.report.signals.iter().any(Signal::is_blocked);
        if self.report.subagent && known.is_none() && !asks {
            return Ok(EventOutcome::default());
        }
        if self.client.runs_without_window()
            && !journal.agent_state(&self.agent).ok().flatten().is_some_and(is_idle)
        {
            // A turn is cut short. Why is in the log, or shown by the end of the process.
            self.report.session_goes_on();
        }
        self.record_running_tool();
        let stamp = IdSource::now();
        let mut event = self.agent_event(known, &stamp);
        let stored_nonce = if event.session_starts { journal.session_nonce(&self.agent).ok() } else { None };
        let is_new_nonce = matches!(stored_nonce, Some(None));
        event.nonce = stored_nonce
            .filter(|_| self.takes_session_context())
            .map(|stored| stored.unwrap_or_else(|| SessionNonce::new(IdSource::now().random)));
        // If the inbox cannot be read, nothing enters the turn now. The event itself is still recorded.
        let holds_turn = self.may_block_stop(journal, &stamp).unwrap_or(false);
        let (budget, mono) = (self.budget(), event.mono);
        let agent = self.agent.clone();
        let choose = move |pending: &[MessagePart], entered: &[EnteredPart]| {
            let entered = entered.iter().map(|entered| (&entered.part, entered.age(stamp.unix_ms)));
            let mut rates = RateTracker::of_entered(mono, &agent, entered);
            budget.select_parts(mono, pending, &agent, &mut rates)
        };
        let takes_messages = holds_turn || self.takes_context();
        if takes_messages {
            // If this fails, the messages wait for the next hook or the listener.
            let _ = self.move_lead_messages(journal, &event.agent.scope);
        }
        let wanted = InboxRequest { choose: takes_messages.then_some(&choose), holds_turn };
        let mut outcome = journal.record_event(&event, wanted)?;
        let claimed = outcome.change.claimed.take();
        let is_lead = self.is_lead(journal, &event, outcome.spooled).unwrap_or(false);
        // Only injected messages carry the nonce, and most hook calls inject none.
        let nonce = match (&claimed, &event.nonce) {
            (Some(_), None) => journal.session_nonce(&self.agent).ok().flatten(),
            (_, stored) => stored.clone(),
        };
        let answered = self.answer(out, claimed.as_ref(), nonce.as_ref(), is_lead);
        if let Err(error @ HookError::Output(_)) = answered {
            // The client did not read the answer: a turn that was to be continued has ended, and the claimed messages are pending
            // again. The end of the turn is recorded first: if the release fails, the messages become pending when their lease
            // expires.
            let unread_nonce = event.nonce.clone().filter(|_| is_new_nonce);
            let ends =
                AgentEvent { mono: (self.context.clock)(), stamp: IdSource::now(), nonce: None, ..event };
            let ended = if outcome.held {
                journal.record_event(&ends, InboxRequest::default()).map(drop)
            } else {
                Ok(())
            };
            if let Some(claimed) = &claimed {
                journal.with_lock_timeout(self.lock_timeout(), |journal| {
                    journal.release(&self.agent, claimed)
                })?;
            }
            if let Some(nonce) = unread_nonce {
                journal.with_lock_timeout(self.lock_timeout(), |journal| {
                    journal.forget_nonce(&self.agent, &nonce)
                })?;
            }
            ended?;
            return Err(error);
        }
        if let Some(claimed) = &claimed {
            let now = IdSource::now().unix_ms;
            journal.with_lock_timeout(self.lock_timeout(), |journal| {
                journal.mark_delivered(&self.agent, claimed, now)
            })?;
        }
        answered?;
        Ok(outcome)
    }

    /// Records which tool is running, so that the agent does not count as stuck and its row shows the tool.
    fn record_running_tool(&self) {
        let tools = || RunningTools::of(&self.context.home);
        let turn_changes = matches!(
            self.report.hook_point,
            HookPoint::SessionStarts | HookPoint::PromptSubmitted | HookPoint::Stopping { .. }
        );
        match &self.report.tool_call {
            Some(ToolCall::Begins { call, text }) => {
                tools().begin(&self.agent, call, text.as_deref().unwrap_or_default());
            }
            Some(ToolCall::Ended(call)) => tools().end(&self.agent, call),
            None if turn_changes && !self.report.subagent => tools().end_all(&self.agent),
            None => {}
        }
    }

    /// The time left to wait for the write lock: at least 5 ms, because most writers hold the lock for less than a millisecond.
    fn lock_timeout(&self) -> LockTimeout {
        LockTimeout(self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(5)))
    }

    /// The hook that waits for the answer to the dialog it reported. `None` if there is no such dialog.
    fn waiting_hook<'b>(
        &'b self,
        input: Option<&'b serde_json::Value>,
        deadline: Option<Instant>,
    ) -> Option<WaitingHook<'b>> {
        let hooks = self.client.adapter().prompts.as_ref()?;
        let is_beside_dialog = |prompt: &Prompt| prompt.method == AnswerMethod::WaitingHook;
        let call = match (&self.report.awaited_call, &self.report.prompt) {
            (Some(call), _) => call,
            (None, Some(prompt)) if is_beside_dialog(prompt) => {
                self.report.signals.iter().find_map(|signal| signal.call.as_ref())?
            }
            _ => return None,
        };
        if !hooks.waiting_events.contains(&self.event) || self.report.subagent {
            return None;
        }
        Some(WaitingHook {
            client: self.client,
            event: self.event,
            hooks,
            input: input?,
            agent: &self.agent,
            session_id: self.report.session_id.as_deref()?,
            call,
            content: self.report.prompt.as_ref().map(|prompt| &prompt.content),
            deadline,
            context: self.context,
        })
    }

    /// Returns true if another process calls a hook in the name of this agent while the agent's own process runs. A session that
    /// was resumed in another process is called by the same program.
    fn is_forged(&self, journal: &mut Journal, known: &AgentInfo) -> bool {
        let (Some(parent), Some(own)) = (self.context.process, known.process) else { return false };
        if parent == own || ProcessStat::of(own.0).is_none_or(|stat| stat.started != own.1) {
            return false;
        }
        match journal.caller(std::process::id()) {
            Ok(Caller::Agent(caller)) => caller != self.agent,
            _ => run_different_programs(parent.0, own.0),
        }
    }

    /// The event to record. It is self-contained, because another process may apply it later.
    fn agent_event(&mut self, known: Option<AgentInfo>, stamp: &IdSource) -> AgentEvent {
        let mono = (self.context.clock)();
        let agent = self.agent_info(known);
        // Subagents do not notify, except when one needs the person, because that blocks the whole session.
        let notify = !self.report.subagent || self.report.signals.iter().any(Signal::is_blocked);
        // An event without a call id is its own call: the next event confirms what it carried.
        let call_id = self.report.call_id.clone().unwrap_or_else(|| stamp.message_id().to_string());
        let confirms = Confirmation {
            call_id: Some(call_id),
            confirmed_ids: std::mem::take(&mut self.report.confirmed_ids),
        };
        let hook_point = self.report.hook_point;
        AgentEvent {
            agent,
            signals: self.report.signals.clone(),
            prompt: self.report.prompt.clone(),
            taken: self.report.dialog_answer.clone(),
            notify,
            mono,
            stamp: *stamp,
            session_starts: hook_point == HookPoint::SessionStarts && !self.report.subagent,
            turn_changes: matches!(hook_point, HookPoint::PromptSubmitted | HookPoint::Stopping { .. })
                && !self.report.subagent,
            nonce: None,
            confirms: (!self.report.subagent).then_some(confirms),
        }
    }

    /// Returns true if the answer to this event can carry messages. Otherwise they stay in the inbox.
    fn takes_context(&self) -> bool {
        matches!(self.report.hook_point, HookPoint::AfterTool | HookPoint::PromptSubmitted)
            && answer(self.client, self.event, &HookReply::with_context("?")).is_some()
    }

    /// Returns true if the answer to this event can carry instructions for the start of a session.
    fn takes_session_context(&self) -> bool {
        let context = HookReply { session_context: Some("?".to_owned()), ..HookReply::default() };
        answer(self.client, self.event, &context).is_some()
    }

    fn budget(&self) -> InjectionBudget {
        let limit = self.client.context_limit().unwrap_or(CONTEXT_LIMIT);
        InjectionBudget { max_bytes: limit.saturating_sub(200), ..InjectionBudget::default() }
    }

    /// The claimed messages as injections.
    fn claimed_injections(&self, claimed: Option<&ClaimedParts>) -> Vec<Injection> {
        let parts = claimed.map_or(&[][..], |claimed| &claimed.parts);
        self.budget().blocks_of((self.context.clock)(), parts, &self.agent, &mut RateTracker::default())
    }

    /// The agent's place: directory, repository, terminal. In the middle of a turn it has not changed.
    fn agent_info(&self, known: Option<AgentInfo>) -> AgentInfo {
        let mid_turn = matches!(self.report.hook_point, HookPoint::BeforeTool | HookPoint::AfterTool);
        if (mid_turn || self.report.subagent)
            && let Some(known) = known
        {
            // Only signals that need the person are sent from here, so most calls skip the repository lookup.
            let asks = self.report.signals.iter().any(Signal::is_blocked);
            let repository = known.worktree.as_deref().filter(|_| asks).map(Path::new);
            let repository = repository.and_then(Repository::around);
            return AgentInfo {
                by_hooks: true,
                repository: repository.as_ref().and_then(Repository::name),
                branch: repository.as_ref().and_then(Repository::branch),
                ..known
            };
        }
        let cwd = self.report.cwd.clone().map(PathBuf::from).or_else(|| std::env::current_dir().ok());
        let repository = cwd.as_deref().and_then(Repository::around);
        let scope =
            repository.as_ref().map_or_else(Scope::global, |found| found.scope(IdSource::now().number()));
        let origin = (self.context.origin)();
        // A terminal has one session at a time. A background process may be a server of many.
        let replaces_others = self.client.adapter().leaves_sessions_silently
            && self.report.hook_point == HookPoint::SessionStarts
            && self
                .context
                .process
                .and_then(|(pid, _)| ProcessStat::of(pid))
                .is_some_and(|stat| stat.is_in_foreground());
        AgentInfo {
            id: self.agent.clone(),
            client: self.client.to_string(),
            session_id: self.report.session_id.clone().unwrap_or_default(),
            scope,
            repository: repository.as_ref().and_then(Repository::name),
            branch: repository.as_ref().and_then(Repository::branch),
            worktree: repository.map(|found| text(&found.worktree)),
            cwd: cwd.as_deref().map(text),
            surface: origin.surface,
            tty: origin.tty,
            manager: self.context.manager.as_deref().and_then(|id| Agent::new(id).ok()),
            name: self.context.name.clone(),
            process: self.context.process,
            by_hooks: true,
            replaces_others,
        }
    }

    /// Returns true if this agent is the lead of its scope, or will be when its spooled session start is applied.
    fn is_lead(
        &self,
        journal: &mut Journal,
        event: &AgentEvent,
        spooled: bool,
    ) -> Result<bool, JournalError> {
        if self.report.subagent {
            return Ok(false);
        }
        let lead = journal.lead(&event.agent.scope)?;
        let holder = lead.agent.and_then(|id| Agent::new(&id).ok());
        if !(spooled && event.session_starts && event.agent.manager.is_none()) {
            return Ok(holder.as_ref() == Some(&self.agent));
        }
        let holder_lives = match &holder {
            Some(holder) => journal.agent_state(holder)?.is_some_and(|state| state != AgentState::Exited),
            None => false,
        };
        Ok(lead.wanted && (holder.as_ref() == Some(&self.agent) || !holder_lives))
    }

    /// Returns true if the stop may be blocked because messages are pending.
    fn may_block_stop(&self, journal: &mut Journal, stamp: &IdSource) -> Result<bool, JournalError> {
        let HookPoint::Stopping { already_blocked } = self.report.hook_point else { return Ok(false) };
        if self.report.subagent {
            return Ok(false);
        }
        let blocks = journal.blocks(&self.agent)?;
        // A client that reports no earlier block has started a new turn, so the count starts again.
        if already_blocked && blocks >= MAX_BLOCKS {
            return Ok(false);
        }
        let waits = !journal.pending_for(&self.agent, stamp.unix_ms)?.is_empty();
        Ok(waits && blocks < MAX_BLOCKS)
    }

    /// If this agent is the lead, moves the lead's messages into its inbox. The lead's listener uses the same cursor, so that
    /// nothing reaches the agent twice.
    fn move_lead_messages(&self, journal: &mut Journal, scope: &Scope) -> Result<(), JournalError> {
        if self.report.subagent {
            return Ok(());
        }
        let deadline = Some(Instant::now() + LEAD_LOCK_TIMEOUT);
        journal.with_lock_timeout(self.lock_timeout(), |journal| {
            journal.move_to_inbox(scope, &self.agent, self.context.name.as_deref(), deadline).map(drop)
        })
    }

    /// Answers with the claimed messages. At the start of a session it adds the description of notifications, and the
    /// instructions for a lead.
    fn answer(
        &self,
        out: &mut impl Write,
        claimed: Option<&ClaimedParts>,
        nonce: Option<&SessionNonce>,
        is_lead: bool,
    ) -> Result<(), HookError> {
        let begins = self.report.hook_point == HookPoint::SessionStarts && !self.report.subagent;
        let context = begins.then(|| {
            let about = nonce.map(system_prompt);
            let instructions = is_lead.then(|| lead_instructions(&self.agent));
            [about, instructions].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
        });
        let reply = reply(self.report.hook_point, &self.claimed_injections(claimed), nonce, context);
        write(out, self.client, self.event, &reply)
    }
}

fn reply(
    hook_point: HookPoint,
    injections: &[Injection],
    nonce: Option<&SessionNonce>,
    session_context: Option<String>,
) -> HookReply {
    let context = (!injections.is_empty()).then(|| render(injections, nonce));
    match hook_point {
        HookPoint::Stopping { .. } => HookReply { stop_reason: context, ..HookReply::default() },
        _ => HookReply { context, session_context, ..HookReply::default() },
    }
}

fn write(out: &mut impl Write, client: Client, event: &str, reply: &HookReply) -> Result<(), HookError> {
    let Some(answer) = answer(client, event, reply) else { return Ok(()) };
    out.write_all(answer.as_bytes()).and_then(|()| out.flush()).map_err(HookError::Output)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Environment variable that makes hooks of an unattended run wait for a permission. Its value is how long.
const WAIT_PERMISSION: &str = "RINGER_WAIT_PERMISSION";

/// How long the client may take to report that it shows a prompt; 0.1 s was observed. If it has not reported one by then, no
/// prompt was shown. If it was only slow, its own notification follows some seconds later.
const PROMPT_SHOWN_WITHIN: Duration = Duration::from_secs(1);
/// How long a prompt must be open before it is reported: another hook may take a moment to allow the call.
const SETTLED_AFTER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Checks that the client really asks the person, and removes the prompt from the report if not. Claude Code also calls its
/// permission hook when another hook allows the call. The agent does not wait for this check. Returns when a hook that waits for
/// the answer gives up.
fn check_prompt(
    client: Client,
    event: &str,
    report: &mut HookReport,
    context: &HookContext<'_>,
) -> Option<Instant> {
    let prompts = client.adapter().prompts.as_ref()?;
    if let (Some(refuses), Some(session)) = (prompts.refuses, &report.session_id)
        && report.is_about_dialog()
        && let Some((log, settings)) = log_and_settings(client, &(context.paths)(), session)
        && refuses(event, &log, &settings)
    {
        report.dialog_is_refused();
        return None;
    }
    if !prompts.waiting_events.contains(&event) {
        return None;
    }
    if let Some((name, value)) = prompts.unattended
        && (context.variable)(name).as_deref() == Some(value)
    {
        let wait = (context.variable)(WAIT_PERMISSION).and_then(|span| parse_span(&span));
        if wait.is_none() {
            report.replace_permission_prompt(&SignalContent::UnattendedPermission);
            report.prompt = None;
        }
        return wait.and_then(|wait| Instant::now().checked_add(wait));
    }
    // Subagents show the prompt after the hook, and so does every client whose hook does not wait beside the dialog.
    if !report.subagent
        && prompts.method == AnswerMethod::WaitingHook
        && let Some(session) = &report.session_id
        && !shows_prompt(client, &(context.paths)(), session)
    {
        report.replace_permission_prompt(&SignalContent::Alive);
        report.prompt = None;
    }
    None
}

/// Returns true if the client shows a prompt in this session, or does not publish what its sessions do.
fn shows_prompt(client: Client, paths: &ClientPaths, session_id: &str) -> bool {
    let start = Instant::now();
    loop {
        let session = find_session(client, paths, session_id);
        let Some(status) = session.and_then(|session| session.status) else { return true };
        // A session that is idle by now has ended the turn that would have asked.
        let is_shown = !matches!(status.activity, SessionActivity::Busy | SessionActivity::Idle);
        if start.elapsed() >= if is_shown { SETTLED_AFTER } else { PROMPT_SHOWN_WITHIN } {
            return is_shown;
        }
        sleep(LOOK_EVERY);
    }
}

/// Tells the lead to keep one listener running, and what to do for each kind of message.
pub fn lead_instructions(agent: &Agent) -> String {
    format!(
        "You are the lead agent of this repository in Ringer, as {agent}. Other agents that work here report to you.\n\
         \n\
         Start `ringer listen --timeout 300` in the background now, and keep exactly one running. It waits without using \
         anything, prints what arrives as JSON lines (ts, from, type, msg, question_id, id) and exits. When it exits, deal \
         with what it printed, then start it again; also after an empty timeout.\n\
         \n\
         What to do for each type:\n\
         - complete: review the work, then merge it or send it back with what is missing.\n\
         - waiting: look at what the agent needs and instruct it: `ringer notify --to AGENT \"…\"`.\n\
         - question: answer it, `ringer acknowledge QUESTION_ID \"the answer\"`; ask the person if you cannot.\n\
         - stuck: investigate why it has shown no sign of life.\n\
         - error: find out what failed and restart the agent if that helps.\n\
         - status: take note.\n\
         \n\
         `ringer status` shows the agents and their states. Nothing is lost while you are not listening.",
        agent = agent.as_str()
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SESSION: &str = "6be1e699-d2b2";

    fn write(directory: &Path, status: &str) {
        let session = serde_json::json!({ "sessionId": SESSION, "status": status, "statusUpdatedAt": 1 });
        let temporary = directory.join("1.tmp");
        fs::write(&temporary, session.to_string()).unwrap();
        fs::rename(temporary, directory.join("1.json")).unwrap();
    }

    #[test]
    fn a_prompt_is_shown_when_the_client_says_so() {
        let home = tempfile::tempdir().unwrap();
        let (paths, directory) = (ClientPaths::new(home.path()), home.path().join(".claude/sessions"));
        assert!(shows_prompt(Client::Claude, &paths, SESSION), "it says nothing");
        fs::create_dir_all(&directory).unwrap();
        write(&directory, "waiting");
        assert!(shows_prompt(Client::Claude, &paths, SESSION));
        write(&directory, "busy");
        assert!(!shows_prompt(Client::Claude, &paths, SESSION), "another hook allowed it");
        write(&directory, "idle");
        assert!(
            !shows_prompt(Client::Claude, &paths, SESSION),
            "another hook allowed it, and the turn has ended"
        );
        let asks = std::thread::spawn(move || shows_prompt(Client::Claude, &paths, SESSION));
        write(&directory, "waiting");
        assert!(asks.join().unwrap());
    }

    #[test]
    fn every_kind_has_its_line() {
        let text = lead_instructions(&Agent::new("claude-1").unwrap());
        for kind in ringer_core::Kind::all() {
            assert!(text.contains(&format!("- {kind}: ")), "{kind}");
        }
        assert!(text.contains("ringer listen --timeout 300") && text.contains("exactly one"));
    }
}
