//! A hook that waits beside the client's open dialog, and answers for the person who answers elsewhere.
//!
//! It sleeps at a doorbell of its own and needs no hub. It ends without a word, which leaves the dialog to the person, as soon
//! as the prompt is over or cannot be answered by it any more.

use std::io::Write;
use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, AgentTimeouts, Authority, PromptContent, Signal};
use ringer_core::message::Agent;
use ringer_journal::{
    AgentUpdate, Error as JournalError, HookWake, IdSource, Journal, LockTimeout, PromptWaiter,
};
use serde_json::Value;

use crate::client::{Client, HookReply, PromptHooks, answer};
use crate::hook_context::{HookContext, HookError};
use crate::push;
use crate::session_watch::{DialogState, DialogWatch};

/// How often the session's file is read where the system does not tell of changes.
#[cfg(not(target_os = "linux"))]
const LOOK_EVERY: Option<Duration> = Some(Duration::from_millis(500));
#[cfg(target_os = "linux")]
const LOOK_EVERY: Option<Duration> = None;

/// A hook call that waits.
pub(crate) struct WaitingHook<'a> {
    pub(crate) client: Client,
    pub(crate) event: &'a str,
    pub(crate) hooks: &'a PromptHooks,
    /// The client's input, for the answer.
    pub(crate) input: &'a Value,
    pub(crate) agent: &'a Agent,
    pub(crate) session_id: &'a str,
    /// The tool call that the dialog is about.
    pub(crate) call: &'a str,
    /// What the dialog asks, where the call alone does not tell it from another one.
    pub(crate) content: Option<&'a PromptContent>,
    /// When to give up.
    pub(crate) deadline: Option<Instant>,
    pub(crate) at: &'a HookContext<'a>,
}

impl WaitingHook<'_> {
    /// Waits for the answer and writes it. The journal is closed meanwhile.
    pub(crate) fn run(&self, mut journal: Journal, out: &mut impl Write) -> Result<(), HookError> {
        // The event itself may be in the spool.
        let _ = journal.settle_spool_within(LockTimeout::COMMAND.0);
        let waiter = journal.with_lock_timeout(LockTimeout::COMMAND, |journal| {
            journal.wait_at_prompt(self.agent, self.call)
        })?;
        drop(journal);
        let Some(mut waiter) = waiter else { return Ok(()) };
        let mut dialog = DialogWatch::begin(self.client, &(self.at.paths)(), self.session_id);
        loop {
            let Some(prompt) = waiter.look()?.filter(|prompt| prompt.ended_ms.is_none()) else {
                return Ok(());
            };
            // The person is shown the first of two calls that look alike. An answer to it is none to the other.
            if self.content.is_some_and(|content| *content != prompt.prompt.content) {
                return Ok(());
            }
            match dialog.as_mut().map_or(DialogState::Shown, DialogWatch::look) {
                DialogState::Shown => {}
                DialogState::WentOn => return Ok(self.note_answered_in_dialog()?),
                DialogState::Gone => return Ok(()),
            }
            if let Some(decision) = prompt.decision {
                let output = (self.hooks.output)(self.event, self.input, &decision.answer);
                let Some(output) = output else { return Ok(()) };
                out.write_all(output.as_bytes()).and_then(|()| out.flush()).map_err(HookError::Output)?;
                Journal::open(&self.at.home)?.note_answer_handed(waiter.key(), IdSource::now().unix_ms)?;
                return Ok(());
            }
            if !self.sleep(&mut waiter, dialog.as_ref())? {
                return Ok(());
            }
        }
    }

    /// Sleeps until something may have changed. Gives whether to go on.
    fn sleep(&self, waiter: &mut PromptWaiter, dialog: Option<&DialogWatch>) -> Result<bool, HookError> {
        let next_look = dialog.and(LOOK_EVERY).map(|every| Instant::now() + every);
        let until = [next_look, self.deadline].into_iter().flatten().min();
        let changes = dialog.and_then(DialogWatch::changes);
        // The person may take hours.
        ringer_platform::release_clean_pages();
        let woken = waiter.sleep(changes.as_slice(), self.at.stdout, until)?;
        Ok(match woken {
            HookWake::ClientEnded => false,
            HookWake::TimedOut => self.deadline.is_none_or(|deadline| Instant::now() < deadline),
            HookWake::Other => !self.at.is_hung_up(),
            _ => true,
        })
    }

    /// The person answered in the dialog: the session works on the call, and no hook tells that until its end.
    fn note_answered_in_dialog(&self) -> Result<(), JournalError> {
        let mut journal = Journal::open(&self.at.home)?;
        note_went_on(&mut journal, self.agent, self.call, (self.at.clock)())
    }
}

/// Notes that an agent works on a call that it had a prompt about.
pub(crate) fn note_went_on(
    journal: &mut Journal,
    agent: &Agent,
    call: &str,
    mono: Duration,
) -> Result<(), JournalError> {
    let Some(info) = journal.agent_info(agent)? else { return Ok(()) };
    let signals = [Signal::state(Authority::Hook, AgentState::Working).call(call)];
    let timeouts = AgentTimeouts::default();
    let update = AgentUpdate { agent: &info, signals: &signals, mono, timeouts, notify: true };
    journal.update_agent(&update, None, &IdSource::now()).map(drop)
}

/// Waits for messages and writes them. The journal is closed meanwhile.
pub(crate) fn wait_while_idle(
    (client, event): (Client, &str),
    agent: &Agent,
    mut journal: Journal,
    out: &mut impl Write,
    at: &HookContext<'_>,
) -> Result<(), HookError> {
    // The end of the turn may be in the spool.
    let _ = journal.settle_spool_within(LockTimeout::COMMAND.0);
    let waiter =
        journal.with_lock_timeout(LockTimeout::COMMAND, |journal| journal.wait_for_messages(agent))?;
    drop(journal);
    let Some(mut waiter) = waiter else { return Ok(()) };
    loop {
        let Some(mut journal) = waiter.journal()? else { return Ok(()) };
        let Some(info) = journal.agent_info(agent)? else { return Ok(()) };
        if !journal.agent_state(agent)?.is_some_and(push::is_idle) {
            return Ok(());
        }
        push::take_in_for_lead(&mut journal, &info)?;
        if let Some(claimed) = push::claim_everything(&mut journal, agent, "idle-")? {
            let message = push::text_of(&claimed, agent, &mut journal)?;
            let reply = HookReply { stop_reason: Some(message), ..HookReply::default() };
            let text = answer(client, event, &reply).unwrap_or_default();
            if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                journal.release(agent, &claimed)?;
                return Err(HookError::Output(error));
            }
            journal.mark_delivered(agent, &claimed, IdSource::now().unix_ms)?;
            return Ok(());
        }
        drop(journal);
        // A session may be idle for days.
        ringer_platform::release_clean_pages();
        match waiter.sleep(&[], at.stdout, None)? {
            HookWake::ClientEnded => return Ok(()),
            HookWake::Other if at.is_hung_up() => return Ok(()),
            _ => {}
        }
    }
}
