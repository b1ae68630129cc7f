//! `ringer mute` and `ringer dnd`: the person's mutes, and their text.

use std::time::Duration;

use ringer_core::Sender;
use ringer_core::message::{Place, ShownKind, WorkspaceId};
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_core::time::rounded_span_text;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::output::{print_json, print_line};
use crate::time_arguments::{UNTIL_EXAMPLES, parse_until};

/// Mute an agent, this repository or everything, for a while
///
/// What is muted is still listed as unread, but makes no popup, flash, sound, command or
/// webhook. Without a time, it is muted until you end it. `ringer undo` takes it back.
///
/// Examples:
///   ringer mute ci 1h
///   ringer mute --here until 18:00
///   ringer mute --all tomorrow      # until 09:00
///   ringer mute --list
///   ringer unmute ci                # also: ringer mute --off ci
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "ringer mute [OPTIONS] [AGENT | --here | --all] [TIME]\n       ringer mute --list\n       ringer mute --off [AGENT | --here | --all]"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Mute what this agent, or a script of this name, sends
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Until when: 20m, 1h30m, 18:00, tonight, tomorrow, `until monday` [default: until you end it]
    #[arg(value_name = "TIME")]
    time: Vec<String>,
    /// Mute this repository
    #[arg(long)]
    here: bool,
    /// Mute everything
    #[arg(long, conflicts_with = "here")]
    all: bool,
    /// End the mute of this agent; without one, end every mute
    #[arg(long)]
    off: bool,
    /// Show what is muted
    #[arg(long, conflicts_with_all = ["agent", "time", "here", "all", "off"])]
    list: bool,
    /// Print what is muted afterwards as a JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.list {
        return list(arguments.json);
    }
    let (target, time) = arguments.target();
    if arguments.off {
        return match time.as_str() {
            "" => change(&Change::End(target), arguments.json),
            time => {
                Err(Failure::usage(format!("--off takes no time: {time:?}")).hint("ringer mute --off ci"))
            }
        };
    }
    let hint = format!("ringer mute ci 1h   # times: {UNTIL_EXAMPLES}");
    let now_ms = IdSource::now().unix_ms;
    let target = match target {
        // `ringer mute 1h` does not mean an agent named `1h`.
        Some(MuteTarget::Agent(agent)) if parse_until(format!("{agent} {time}").trim(), now_ms).is_ok() => {
            None
        }
        target => target,
    };
    if let Some(MuteTarget::Agent(agent)) = &target {
        Sender::new(agent)?;
    }
    let Some(target) = target else {
        return Err(Failure::usage("say whom to mute: an agent, --here or --all").hint(hint));
    };
    let until_unix_ms = match time.as_str() {
        "" => None,
        time => Some(parse_until(time, now_ms).map_err(|error| Failure::usage(error).hint(hint))?),
    };
    let mute = RequestedMute { target, until_unix_ms, allow: Vec::new() };
    change(&Change::Set(mute), arguments.json)
}

impl Args {
    /// Splits the arguments into the target and the time. With `--here` and `--all` every word belongs to the time.
    fn target(&self) -> (Option<MuteTarget>, String) {
        let rest = self.time.join(" ");
        let all = || format!("{} {rest}", self.agent.as_deref().unwrap_or_default()).trim().to_owned();
        match (self.here, self.all) {
            (true, _) => (Some(MuteTarget::Workspace(WorkspaceId::new(&here()))), all()),
            (_, true) => (Some(MuteTarget::All), all()),
            _ => (self.agent.clone().map(MuteTarget::Agent), rest),
        }
    }
}

/// End what `ringer mute` began: of one agent, or every mute
#[derive(Debug, clap::Args)]
pub(crate) struct UnmuteArgs {
    /// The agent, or the script, that is muted [default: every mute]
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
}

pub(crate) fn unmute(arguments: &UnmuteArgs) -> Outcome {
    change(&Change::End(arguments.agent.clone().map(MuteTarget::Agent)), false)
}

/// Do not disturb: mute everything, for a while
///
/// The same as `ringer mute --all`, but some kinds can be let through. Everything is still
/// listed as unread. Without a time, it holds until `ringer dnd off`.
///
/// Examples:
///   ringer dnd 1h
///   ringer dnd until 2pm --allow question,permission
///   ringer dnd off
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DndArgs {
    /// Until when: 20m, 1h30m, 18:00, tonight, tomorrow, `until monday` [default: until you end it]
    #[arg(value_name = "TIME")]
    time: Vec<String>,
    /// Kinds that are not muted, separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',', conflicts_with = "off")]
    allow: Vec<ShownKind>,
    /// End it
    #[arg(long, conflicts_with = "time")]
    off: bool,
    /// Print what is muted afterwards as a JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn dnd(arguments: &DndArgs) -> Outcome {
    let time = arguments.time.join(" ");
    if arguments.off || time == "off" {
        return change(&Change::End(Some(MuteTarget::All)), arguments.json);
    }
    let until_unix_ms = match time.as_str() {
        "" => None,
        time => {
            let until = parse_until(time, IdSource::now().unix_ms);
            let hint = || format!("ringer dnd 1h   # times: {UNTIL_EXAMPLES}");
            Some(until.map_err(|error| Failure::usage(error).hint(hint()))?)
        }
    };
    let mute = RequestedMute { target: MuteTarget::All, until_unix_ms, allow: arguments.allow.clone() };
    change(&Change::Set(mute), arguments.json)
}

/// Describes a mute from the hub: `ci (40m left)`.
pub(crate) fn text(mute: &Value, now_ms: i64) -> String {
    let who = match (mute["agent"].as_str(), mute["workspace"].as_str()) {
        (Some(agent), _) => agent.to_owned(),
        (None, Some(workspace)) if workspace == here() => "this repository".to_owned(),
        (None, Some(workspace)) => workspace.to_owned(),
        (None, None) => "everything".to_owned(),
    };
    let allowed: Vec<&str> =
        mute["allow"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let except = if allowed.is_empty() { String::new() } else { format!(" except {}", allowed.join(", ")) };
    let left = mute["until_unix_ms"].as_i64().map(|until| {
        let left = Duration::from_millis(u64::try_from(until.saturating_sub(now_ms)).unwrap_or(0));
        format!("{} left", rounded_span_text(left))
    });
    format!("{who}{except} ({})", left.as_deref().unwrap_or("until you end it"))
}

fn here() -> String {
    let scope = context::scope(context::repository().as_ref());
    Place::own_workspace(scope.as_str()).workspace.to_string()
}

enum Change {
    Set(RequestedMute),
    /// Ends one mute, or all.
    End(Option<MuteTarget>),
}

impl Change {
    fn request(&self) -> (&'static str, Value) {
        let (method, target, mute) = match self {
            Self::Set(mute) => ("mute.set", Some(&mute.target), Some(mute)),
            Self::End(target) => ("mute.remove", target.as_ref(), None),
        };
        let mut params = match target {
            None => json!({}),
            Some(MuteTarget::All) => json!({ "all": true }),
            Some(MuteTarget::Agent(agent)) => json!({ "agent": agent }),
            Some(MuteTarget::Workspace(workspace)) => json!({ "workspace_id": workspace }),
        };
        if let Some(mute) = mute {
            params["until_unix_ms"] = json!(mute.until_unix_ms);
            params["allow"] = json!(mute.allow);
        }
        (method, params)
    }
}

/// Applies a change, and prints the mutes afterwards.
fn change(change: &Change, as_json: bool) -> Outcome {
    let (method, params) = change.request();
    // Setting the same mute twice changes nothing.
    print(&Hub::of_command()?.call(method, &params)?, as_json)
}

fn list(as_json: bool) -> Outcome {
    print(&Hub::offline()?.call("mute.list", &Value::Null)?, as_json)
}

fn print(muted: &Value, as_json: bool) -> Outcome {
    if as_json {
        return print_json(muted);
    }
    let now_ms = IdSource::now().unix_ms;
    let lines: Vec<String> = muted.as_array().into_iter().flatten().map(|mute| text(mute, now_ms)).collect();
    match lines.as_slice() {
        [] => print_line("Nothing is muted."),
        lines => print_line(&format!("muted: {}", sanitise_line(&lines.join(", ")))),
    }
}
