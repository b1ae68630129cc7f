//! `ringer undo`.

use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, Scope, Sender};
use ringer_ipc::HubClientError;
use ringer_journal::{IdSource, Journal};
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line};
use crate::{context, guard, hub_client};

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
pub(crate) struct Args {
    /// Print one JSON object with what was undone and the counts
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let Some(mut client) = hub_client::connect()? else { return undo_in_journal() };
    let answer = match client.call("notification.undo", &json!({})) {
        Ok(answer) => answer,
        // Unlike a mark, undo must not be sent twice: the second would undo the previous command.
        Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => {
            return Err(Failure::new(Exit::TryAgain, "sent, but the hub has not confirmed it")
                .hint("ringer list   # shows whether it was done"));
        }
        Err(error) => return Err(hub_client::failure(error)),
    };
    hub_client::warn_if_behind(&client);
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

/// Without a hub the request is appended to the journal for the next hub: only a hub knows what the last command changed.
fn undo_in_journal() -> Outcome {
    let mut journal = Journal::open(&context::home()?)?;
    guard::only_a_person_quietly("undo what a person did")?;
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Undo), "");
    draft.key = Some(MarkTarget::All.to_string());
    journal.append(&draft, &IdSource::now())?;
    eprint_line("The hub is not running: it is done when the hub starts.");
    Ok(())
}
