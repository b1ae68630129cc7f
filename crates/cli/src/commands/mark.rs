//! `ringer read`, `unread`, `clear`, `snooze` and `undo`: what the person has done with notifications.

use ringer_hub::Clock;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::notifications;
use crate::output::{print_json, print_line};
use crate::time_arguments::{UNTIL_EXAMPLES, parse_until};

/// Mark notifications read
///
/// Examples:
///   ringer read k3fx
///   ringer read infra     # all of that agent
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
    /// Agents, repositories or ids, as `ringer list` shows them, or `last`
    #[arg(value_name = "WHO")]
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
        let list = notifications::read()?;
        // A name stands for all notifications that have it.
        return Ok(target
            .ids
            .iter()
            .flat_map(|word| {
                let named: Vec<Value> =
                    list.with_name(word).map(|record| json!({ "id": record.id })).collect();
                if named.is_empty() { vec![json!({ "id": word })] } else { named }
            })
            .collect());
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

/// Hide a notification until later; it comes back as new
///
/// Its popup and its ring are gone now. At that time it is unread again, rings and pops
/// up again, unless it ended before. What is over cannot be snoozed: exit code 65.
/// `ringer unread ID` brings it back at once.
///
/// Examples:
///   ringer snooze 20m
///   ringer snooze k3fx 2h
///   ringer snooze k3fx until 18:00
///   ringer snooze last tomorrow     # 09:00
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, override_usage = "ringer snooze [OPTIONS] [WHO] <TIME>")]
pub(crate) struct SnoozeArgs {
    /// Agent, repository or id, as `ringer list` shows them, or `last` [default: the most urgent unread]
    #[arg(value_name = "WHO")]
    id: Option<String>,
    /// Until when: 20m, 1h30m, 18:00, tonight, tomorrow, `until monday`
    #[arg(value_name = "TIME")]
    time: Vec<String>,
    /// Print the notification as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn snooze(arguments: &SnoozeArgs) -> Outcome {
    let now_ms = IdSource::now().unix_ms;
    let (id, until_ms) = arguments.read(now_ms)?;
    // Snoozing twice until the same moment changes nothing.
    let params = json!({ "id": id, "until_unix_ms": until_ms });
    let snoozed = Hub::of_command()?.call("notification.snooze", &params)?;
    if arguments.json {
        return print_json(&snoozed);
    }
    if snoozed.is_null() {
        return print_line("No unread notifications.");
    }
    let text = |name: &str| snoozed[name].as_str().unwrap_or_default().to_owned();
    let until = Clock::local().near(until_ms, now_ms);
    print_line(&sanitise_line(&format!("{} snoozed until {until}: {}", text("short_id"), text("body"))))
}

impl SnoozeArgs {
    /// Splits the arguments into the id and the moment. The first word is an id unless all words together are a time.
    fn read(&self, now_ms: i64) -> Result<(Option<String>, i64), Failure> {
        let hint = format!("ringer snooze k3fx 20m   # times: {UNTIL_EXAMPLES}");
        let time = self.time.join(" ");
        let Some(first) = &self.id else { return Err(Failure::usage("no time given").hint(hint)) };
        let whole = format!("{first} {time}");
        if let Ok(until_ms) = parse_until(whole.trim(), now_ms) {
            return Ok((None, until_ms));
        }
        if time.is_empty() {
            return Err(Failure::usage(format!("no time given, or an invalid one: {first:?}")).hint(hint));
        }
        let until_ms = parse_until(&time, now_ms).map_err(|error| Failure::usage(error).hint(hint))?;
        Ok((Some(first.clone()), until_ms))
    }
}

/// Take your last `ringer read`, `clear` or `mute` back
///
/// What it read is unread again, what it cleared is on the list again, at the top, and
/// what is muted is as before (also after `mute --off` and `dnd`).
/// No popup is shown again. What has ended since, such as a question that was answered,
/// stays as it is. Run it again to go one command further back. The last 10 commands can
/// be taken back, each with its newest 1,000 notifications.
///
/// Examples:
///   ringer undo
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct UndoArgs {
    /// Print one JSON object with what was undone and the counts
    #[arg(long)]
    json: bool,
}

pub(crate) fn undo(arguments: &UndoArgs) -> Outcome {
    let answer = Hub::of_command()?.call_once("notification.undo", &json!({}))?;
    if arguments.json {
        return print_json(&answer);
    }
    print_line(&undone_text(&answer))
}

/// Describes what the hub has undone.
pub(crate) fn undone_text(answer: &Value) -> String {
    let count = |name: &str| answer[name].as_i64().unwrap_or(0);
    match answer["undone"].as_str() {
        None => "Nothing to undo.".to_owned(),
        Some("mute") => "the last change of what is muted was taken back".to_owned(),
        Some("clear") => format!("{} back on the list", count("listed")),
        Some(_) => format!("{} unread again", count("unread")),
    }
}
