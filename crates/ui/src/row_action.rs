//! Maps an action on the selected row to a request, a menu or a page.

use ringer_core::message::ShownKind;

use crate::backend::Request;
use crate::data::{Agent, Data, Notification};
use crate::keys::Action;
use crate::rows::{Row, Section};
use crate::view::{Menu, SilenceTarget};

/// The effect of an action on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowEffect {
    Request(Request),
    Menu(Menu),
    /// Show the page of this agent.
    Page(String),
    /// The action is not possible, for this reason.
    Refused(&'static str),
    Nothing,
}

/// Returns the effect of an action on a row.
pub(crate) fn row_effect(action: Action, row: &Row, data: &Data) -> RowEffect {
    let agent = agent_of(row, data);
    match action {
        Action::Show => {
            let unknown = RowEffect::Refused("It is not known which agent this is from.");
            return agent.map_or(unknown, |agent| RowEffect::Page(agent.id.clone()));
        }
        // Senders are muted, not agents: an agent with a name sends under that name.
        Action::Mute => {
            let sender = agent.map(|agent| &agent.sender);
            let sender = sender.or_else(|| notification_of(row, data).map(|one| &one.from));
            return sender.map_or(RowEffect::Nothing, |sender| {
                RowEffect::Menu(Menu::new(SilenceTarget::Mute { agent: sender.clone() }, &row.label))
            });
        }
        _ => {}
    }
    let id = if row.key.section == Section::Agents {
        // An open notification can also be handled on the row of its agent.
        let open = agent.and_then(|agent| data.needs_you.iter().find(|one| one.from == agent.sender));
        match (open, action, agent.and_then(|agent| agent.surface.clone())) {
            (Some(open), _, _) => open.id.clone(),
            (None, Action::GoThere, Some(surface)) => {
                return RowEffect::Request(Request::GoToSurface { surface });
            }
            (None, Action::GoThere, None) => {
                return RowEffect::Refused("It is not known where this agent runs.");
            }
            (None, _, _) => return RowEffect::Refused("This agent has nothing open."),
        }
    } else {
        row.key.id.clone()
    };
    let request = match action {
        Action::GoThere => Request::GoTo { id },
        Action::Answer => {
            let asks =
                |kind| matches!(kind, ShownKind::Permission | ShownKind::Question | ShownKind::Waiting);
            if !data.needs_you.iter().any(|one| one.id == id && asks(one.kind)) {
                return RowEffect::Refused("This asks nothing.");
            }
            Request::Prompt { id }
        }
        Action::Snooze => return RowEffect::Menu(Menu::new(SilenceTarget::Snooze { id }, &row.label)),
        Action::Read => Request::Read { id },
        Action::Unread => Request::Unread { id },
        Action::Remove => Request::Remove { id },
        Action::Why => Request::Why { id },
        _ => return RowEffect::Nothing,
    };
    RowEffect::Request(request)
}

/// Returns the agent of a row: the agent itself, or the sender of the notification.
fn agent_of<'a>(row: &Row, data: &'a Data) -> Option<&'a Agent> {
    if row.key.section == Section::Agents {
        return data.agents.iter().find(|agent| agent.id == row.key.id);
    }
    let from = &notification_of(row, data)?.from;
    data.agents.iter().find(|agent| agent.sender == *from)
}

fn notification_of<'a>(row: &Row, data: &'a Data) -> Option<&'a Notification> {
    data.needs_you.iter().chain(&data.recent).find(|one| one.id == row.key.id)
}
