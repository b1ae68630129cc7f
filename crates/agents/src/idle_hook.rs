//! A hook that waits while its session is idle, and gives what comes for the agent to the client as its next message.
//!
//! It sleeps at a doorbell of its own and needs no hub. It ends without a word as soon as the agent is not idle any more: then
//! other hooks take what comes.

use std::io::Write;

use ringer_core::message::Agent;
use ringer_journal::{HookWake, IdSource, Journal, LockTimeout};

use crate::client::{Client, HookReply, answer};
use crate::hook_context::{HookContext, HookError};
use crate::push;

/// Waits for messages and writes them. The journal is closed meanwhile.
pub(crate) fn run(
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
