//! `ringer why`.

use ringer_hub::{Client, Clock, explain};
use ringer_journal::Journal;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{print, print_json};
use crate::{link, place};

/// Say what became of a message, step by step, and why
///
/// Examples:
///   ringer why 01997a3e-0a1b-7c2d-8e3f-0123456789ab
///   ringer why $(ringer list --json | jq -r '.[0].id')
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The message
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let home = place::home()?;
    // A hub that runs may know more than is written down yet; starting one would change nothing.
    let answer = match Client::connect(&home) {
        Ok(mut client) => {
            Some(client.call("notification.why", &json!({ "id": arguments.id })).map_err(link::failure)?)
        }
        Err(_) => match Journal::open_existing(&home)? {
            Some(journal) => explain(&journal, &arguments.id, &Clock::local())?,
            None => None,
        },
    };
    let Some(answer) = answer else {
        let what = format!("the journal has no message {}", sanitise_line(&arguments.id));
        return Err(Failure::new(Exit::Data, what).hint("ringer list --all"));
    };
    if arguments.json { print_json(&answer) } else { print(words(&answer).as_bytes()) }
}

fn words(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut lines = vec![format!(
        "{}  sent by {} to {}",
        text(&answer["sent"]),
        text(&answer["from"]),
        text(&answer["to"])
    )];
    let steps = answer["trail"].as_array().into_iter().flatten();
    lines.extend(steps.map(|step| format!("{}  {}", text(&step["ts"]), text(&step["text"]))));
    let receipts = answer["receipts"].as_array().into_iter().flatten();
    lines.extend(receipts.map(|receipt| {
        format!(
            "for {}: {}, queued {}, delivered {}, seen {}",
            text(&receipt["agent"]),
            text(&receipt["state"]),
            text(&receipt["queued"]),
            text(&receipt["delivered"]),
            text(&receipt["seen"])
        )
    }));
    if answer["taken"].as_bool() == Some(false) {
        lines.push("no hub has taken it yet: ringer hub start".to_owned());
    }
    lines.iter().map(|line| sanitise_line(line) + "\n").collect()
}
