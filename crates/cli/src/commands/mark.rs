//! `ringer read`, `ringer unread`, `ringer clear`.

use ringer_journal::IdSource;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::output::{print_json, print_line};

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
    mark("notification.mark_read", &requests, arguments.json, "read")
}

pub(crate) fn unread(arguments: &UnreadArgs) -> Outcome {
    let requests = requests(&arguments.target, None, "ringer list")?;
    mark("notification.mark_unread", &requests, arguments.json, "unread_again")
}

pub(crate) fn clear(arguments: &ClearArgs) -> Outcome {
    if arguments.all_read {
        let request = json!({ "all_read": true });
        return mark("notification.dismiss", &[request], arguments.json, "removed");
    }
    let all = arguments.all.then_some(json!({ "all": true }));
    let requests = requests(&arguments.target, all, "ringer clear --all")?;
    mark("notification.clear", &requests, arguments.json, "removed")
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

fn mark(method: &str, requests: &[Value], as_json: bool, counted: &str) -> Outcome {
    // `ringer undo` reverts the marks of one command together.
    let command = IdSource::now().message_id();
    let (mut hub, mut count) = (Hub::of_command()?, 0);
    for request in requests {
        let mut params = request.clone();
        params["command"] = json!(command);
        // Marking twice changes nothing.
        count += hub.call(method, &params)?[counted].as_i64().unwrap_or(0);
    }
    if as_json {
        return print_json(&json!({ counted: count }));
    }
    print_line(&format!("{count} {}", counted.replace('_', " ")))
}
