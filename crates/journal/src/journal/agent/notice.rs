//! The messages for an agent's notice: their recipients and their text.

use ringer_core::agent::{AgentMessage, AgentNotice, Tier, agent_messages, episode_key};
use ringer_core::message::{About, Agent, Tag};
use ringer_core::{Draft, Scope};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::info::AgentInfo;
use crate::db::text::optional_text;

/// The messages for a notice.
pub(super) fn drafts(
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

/// Which agent, and where it works.
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

/// The name that an agent was given.
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
