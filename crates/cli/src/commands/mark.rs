//! `ringer read`, `ringer unread`, `ringer clear`: marks, which also work without a hub.

use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, Place, SurfaceId, Tag, WorkspaceId};
use ringer_core::{Draft, MessageId, Scope, Sender};
use ringer_hub::Clock;
use ringer_ipc::HubClientError;
use ringer_journal::{IdSource, Journal};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::notifications::Notifications;
use crate::output::{print_json, print_line};
use crate::{context, guard, hub_client};

/// Mark notifications read
///
/// Examples:
///   ringer read k3fx
///   ringer read last
///   ringer read --all
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    target: Target,
    /// Select all notifications
    #[arg(long, conflicts_with_all = ["ids", "workspace", "surface"])]
    all: bool,
    /// Print one JSON object with the count
    #[arg(long)]
    json: bool,
}

/// Mark notifications unread
///
/// Examples:
///   ringer unread k3fx
///   ringer unread --workspace repo:0a1b2c3d
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct UnreadArgs {
    #[command(flatten)]
    target: Target,
    /// Print one JSON object with the count
    #[arg(long)]
    json: bool,
}

/// Remove notifications from the list; the history keeps them
///
/// Pending deliveries to a cleared workspace or surface are cancelled.
///
/// Examples:
///   ringer clear k3fx
///   ringer clear --all
///   ringer clear --workspace repo:0a1b2c3d
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ClearArgs {
    #[command(flatten)]
    target: Target,
    /// Select all notifications
    #[arg(long, conflicts_with_all = ["ids", "workspace", "surface"])]
    all: bool,
    /// Select all read notifications
    #[arg(long, conflicts_with_all = ["ids", "workspace", "surface", "all"])]
    all_read: bool,
    /// Print one JSON object with the count
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// Notification ids, as `ringer list` shows them, or `last`
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Select all notifications of this workspace
    #[arg(long, value_name = "W", conflicts_with = "ids")]
    workspace: Option<String>,
    /// Select all notifications of this surface
    #[arg(long, value_name = "S", conflicts_with = "ids")]
    surface: Option<String>,
}

pub(crate) fn read(arguments: &ReadArgs) -> Outcome {
    let all = arguments.all.then_some(json!({ "all": true }));
    let requests = requests(&arguments.target, all, "ringer read --all")?;
    mark_through_hub("notification.mark_read", Mark::Read, &requests, arguments.json, "read")
}

pub(crate) fn unread(arguments: &UnreadArgs) -> Outcome {
    let requests = requests(&arguments.target, None, "ringer list")?;
    mark_through_hub("notification.mark_unread", Mark::Unread, &requests, arguments.json, "unread_again")
}

pub(crate) fn clear(arguments: &ClearArgs) -> Outcome {
    if arguments.all_read {
        let request = json!({ "all_read": true });
        return mark_through_hub("notification.dismiss", Mark::Clear, &[request], arguments.json, "removed");
    }
    let all = arguments.all.then_some(json!({ "all": true }));
    let requests = requests(&arguments.target, all, "ringer clear --all")?;
    mark_through_hub("notification.clear", Mark::Clear, &requests, arguments.json, "removed")
}

/// Builds the requests for the hub: one for each id, or one for a workspace or surface.
fn requests(target: &Target, all: Option<Value>, hint: &str) -> Result<Vec<Value>, Failure> {
    if let Some(all) = all {
        return Ok(vec![all]);
    }
    if !target.ids.is_empty() {
        return Ok(target.ids.iter().map(|id| json!({ "id": id })).collect());
    }
    if target.workspace.is_none() && target.surface.is_none() {
        return Err(Failure::usage("no notification given").hint(hint));
    }
    Ok(vec![json!({ "workspace_id": target.workspace, "surface_id": target.surface })])
}

fn mark_through_hub(method: &str, mark: Mark, requests: &[Value], as_json: bool, counted: &str) -> Outcome {
    // `ringer undo` reverts the marks of one command together.
    let command = IdSource::now().message_id();
    let Some(mut client) = hub_client::connect()? else { return mark_in_journal(mark, requests, &command) };
    let mut count = 0;
    for (done, request) in requests.iter().enumerate() {
        let mut params = request.clone();
        params["command"] = json!(command);
        match client.call(method, &params) {
            Ok(answer) => count += answer[counted].as_i64().unwrap_or(0),
            // The hub ended or stopped during the request. It may have applied this one already; marking twice changes nothing.
            Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => {
                return mark_in_journal(mark, &requests[done..], &command);
            }
            Err(error) => return Err(hub_client::failure(error)),
        }
    }
    hub_client::warn_if_behind(&client);
    if as_json {
        return print_json(&json!({ counted: count }));
    }
    print_line(&format!("{count} {}", counted.replace('_', " ")))
}

fn mark_words(mark: Mark) -> &'static str {
    match mark {
        Mark::Clear => "clear notifications",
        _ => "mark notifications",
    }
}

/// Without a hub the mark is appended to the journal, and the next hub applies it.
fn mark_in_journal(mark: Mark, requests: &[Value], command: &MessageId) -> Outcome {
    let mut journal = Journal::open(&context::home()?)?;
    guard::may_quieten(&mut journal, mark_words(mark), requests)?;
    let clock = Clock::local();
    let names_one = requests.iter().any(|request| request["id"].is_string());
    let notifications = if names_one { Notifications::read(&mut journal)? } else { Notifications::default() };
    for request in requests {
        let text = |name: &str| request[name].as_str();
        let target = match (text("id"), text("workspace_id"), text("surface_id")) {
            (Some(text), ..) => MarkTarget::Message(match notifications.named(text, &clock)? {
                Some(id) => id,
                None => MessageId::parse(text)?,
            }),
            (None, Some(workspace), surface) => MarkTarget::Place(Place {
                workspace: WorkspaceId::new(workspace),
                surface: surface.map(SurfaceId::new),
            }),
            (None, None, Some(_)) => {
                return Err(Failure::usage("--surface needs --workspace while the hub is not running")
                    .hint("ringer list --json   # shows the workspace"));
            }
            (None, None, None) if request["all_read"].as_bool() == Some(true) => MarkTarget::AllRead,
            (None, None, None) => MarkTarget::All,
        };
        if let MarkTarget::Message(id) = &target
            && journal.message(id.as_str())?.is_none()
        {
            return Err(Failure::new(crate::failure::Exit::Data, format!("unknown notification {id}"))
                .hint("ringer list"));
        }
        let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(mark), command.as_str());
        draft.key = Some(target.to_string());
        journal.append(&draft, &IdSource::now())?;
    }
    Ok(())
}
