//! `ringer mute`.

use ringer_core::Sender;
use ringer_core::message::WorkspaceId;
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_journal::IdSource;

use crate::failure::{Failure, Outcome};
use crate::mutes::{self, Change};
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
///   ringer mute --off ci
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
    /// Until when: 90s, 20m, 2h, `until 18:00`, tomorrow [default: until you end it]
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
        return mutes::list(arguments.json);
    }
    let (target, time) = arguments.target();
    if arguments.off {
        return match time.as_str() {
            "" => mutes::change(&Change::End(target), arguments.json),
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
    mutes::change(&Change::Set(mute), arguments.json)
}

impl Args {
    /// Splits the arguments into the target and the time. With `--here` and `--all` every word belongs to the time.
    fn target(&self) -> (Option<MuteTarget>, String) {
        let rest = self.time.join(" ");
        let all = || format!("{} {rest}", self.agent.as_deref().unwrap_or_default()).trim().to_owned();
        match (self.here, self.all) {
            (true, _) => (Some(MuteTarget::Workspace(WorkspaceId::new(&mutes::here()))), all()),
            (_, true) => (Some(MuteTarget::All), all()),
            _ => (self.agent.clone().map(MuteTarget::Agent), rest),
        }
    }
}
