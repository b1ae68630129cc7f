//! `ringer dnd`.

use ringer_core::message::ShownKind;
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_journal::IdSource;

use crate::failure::{Failure, Outcome};
use crate::mutes::{self, Change};
use crate::time_arguments::{UNTIL_EXAMPLES, parse_until};

/// Do not disturb: mute everything, for a while
///
/// The same as `ringer mute --all`, but some kinds can be let through. Everything is still
/// listed as unread. Without a time, it holds until `ringer dnd --off`.
///
/// Examples:
///   ringer dnd 1h
///   ringer dnd until 14:00 --allow question,permission
///   ringer dnd --off
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Until when: 90s, 20m, 2h, `until 18:00`, tomorrow [default: until you end it]
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

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.off {
        return mutes::change(&Change::End(Some(MuteTarget::All)), arguments.json);
    }
    let until_unix_ms = match arguments.time.join(" ").as_str() {
        "" => None,
        time => {
            let until = parse_until(time, IdSource::now().unix_ms);
            let hint = || format!("ringer dnd 1h   # times: {UNTIL_EXAMPLES}");
            Some(until.map_err(|error| Failure::usage(error).hint(hint()))?)
        }
    };
    let mute = RequestedMute { target: MuteTarget::All, until_unix_ms, allow: arguments.allow.clone() };
    mutes::change(&Change::Set(mute), arguments.json)
}
