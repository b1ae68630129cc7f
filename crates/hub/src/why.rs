//! Explains what happened to a message. Uses stored data only, so it works without a running hub.

use ringer_journal::{Age, AgentSummary, Error, HubStore, Journal};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::view;

/// Returns the trail of a message and its receipts by agents, or `None` if there is no such message.
pub fn explain(
    journal: &mut Journal,
    mut memory: Option<&mut HubStore>,
    id: &str,
    short_id: Option<&str>,
    clock: &Clock,
) -> Result<Option<Value>, Error> {
    let message = journal.message(id)?;
    let record = memory.as_mut().map(|memory| memory.notification(id)).transpose()?.flatten();
    if message.is_none() && record.is_none() {
        return Ok(None);
    }
    let trail = memory.as_mut().map(|memory| memory.trail(id)).transpose()?.unwrap_or_default();
    let trail: Vec<Value> = trail.steps().map(|step| view::step(step, clock)).collect();
    let mut receipts = Vec::new();
    for receipt in journal.receipts(id)? {
        receipts.push(json!({
            "agent": receipt.agent,
            "known": journal.agent_named(&receipt.agent)?.is_some(),
            "state": receipt.state,
            "queued": clock.stamp(receipt.queued_ms),
            "delivered": receipt.delivered_ms.map(|ms| clock.stamp(ms)),
            "seen": receipt.seen_ms.map(|ms| clock.stamp(ms)),
        }));
    }
    let taken = match &message {
        Some(message) if record.is_none() && trail.is_empty() => {
            let taken = journal.hub_position(memory)?;
            message.seq <= taken.cursor.seq || taken.age(message) == Age::Old
        }
        // A record or a trail proves that a hub has read the message.
        _ => true,
    };
    Ok(Some(json!({
        "id": id,
        "sent": message.as_ref().map(|message| clock.stamp(message.unix_ms)),
        "from": message.as_ref().map(|message| message.draft.sender.to_string()),
        "to": message.as_ref().map(|message| message.draft.recipient.to_string()),
        "title": message.as_ref().and_then(|message| message.draft.title.clone()),
        "body": message.as_ref().map(|message| message.draft.body.clone()),
        "taken": taken,
        "notification": record.map(|record| view::notification(&record, short_id, clock)),
        "trail": trail,
        "receipts": receipts,
    })))
}

/// Formats agents as `ringer status --json` lists them.
pub fn agents(agents: &[AgentSummary], clock: &Clock) -> Vec<Value> {
    let view = |agent: &AgentSummary| {
        json!({
            "id": agent.id,
            "client": agent.client,
            "session_id": agent.session_id,
            "state": agent.state,
            "running_tasks": agent.running_tasks,
            "since": agent.since_ms.map(|ms| clock.stamp(ms)),
            "cwd": agent.cwd,
            "surface": agent.surface,
            "lead": agent.lead,
            "name": agent.name,
            "scope": agent.scope,
            "last_seen": clock.stamp(agent.seen_ms),
        })
    };
    agents.iter().map(view).collect()
}
