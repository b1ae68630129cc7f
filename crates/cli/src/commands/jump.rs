//! `ringer jump`.

use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::link;
use crate::output::{print_json, print_line};

/// Go to where the newest unread notification rang, and read it
///
/// What cannot be reached stays unread, and the exit code is 69. Panes of tmux can be
/// reached; the windows of other terminals cannot.
///
/// Examples:
///   ringer jump
///   ringer jump 01997a3e-0a1b-7c2d-8e3f-0123456789ab
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// To this one instead
    id: Option<String>,
    /// Print what was opened as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let answer = match &arguments.id {
        Some(id) => link::call("notification.open", &json!({ "id": id }))?,
        None => link::call("notification.jump_to_unread", &Value::Null)?,
    };
    if answer.is_null() {
        return if arguments.json { print_json(&answer) } else { print_line("nothing is unread") };
    }
    let text = |name: &str| answer["notification"][name].as_str().unwrap_or_default().to_owned();
    if arguments.json {
        print_json(&answer)?;
    } else {
        print_line(&sanitise_line(&format!("{}  {}", text("from"), text("body"))))?;
    }
    let focus = &answer["focus"];
    if focus["focused"].as_bool() == Some(true) {
        return Ok(());
    }
    let why = focus["why"].as_str().unwrap_or("it cannot be brought to the front");
    let hint = focus["hint"].as_str().map_or_else(|| format!("ringer read {}", text("id")), str::to_owned);
    let what = format!("it stays unread: {}", sanitise_line(why));
    Err(Failure::new(Exit::Unavailable, what).hint(sanitise_line(&hint)))
}
