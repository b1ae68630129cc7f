//! The test at the end of a setup: a notification that is sent like an agent's.

use ringer_agents::setup::Client;
use ringer_core::message::MessageId;
use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_journal::{IdSource, Journal};

use crate::commands::{doctor, why};
use crate::confirm::confirm_by_enter;
use crate::failure::{Failure, Outcome};
use crate::output::{print_line, print_text};
use crate::{context, hub_client, origin};

/// Sends it. With `ask`, asks whether the person has seen it, and explains possible reasons if not.
pub(super) fn send(clients: &[Client], ask: bool) -> Outcome {
    let id = append(clients)?;
    if !ask {
        return print_line(&format!("A test notification was sent. If you did not see it: ringer why {id}"));
    }
    if confirm_by_enter("A test notification was sent. Did you see it?", "ringer setup --yes")? {
        return Ok(());
    }
    explain(&id)
}

/// Appends it to the journal, and starts a hub if necessary.
fn append(clients: &[Client]) -> Result<MessageId, Failure> {
    let names: Vec<&str> = clients.iter().map(|client| client.as_str()).collect();
    let text = format!("Ringer is connected to {}", names.join(", "));
    let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, &text)?;
    draft.recipient = Recipient::Person;
    draft.title = Some("Ringer".to_owned());
    draft.origin = origin::message_origin();
    let mut journal = Journal::open(&context::home()?)?;
    let id = journal.append(&draft, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    Ok(id)
}

/// Explains how it was delivered, and what is wrong with the delivery channels.
fn explain(id: &MessageId) -> Outcome {
    print_line("What became of it:")?;
    why::explain_message(id.as_str(), false)?;
    let problems = doctor::delivery_problems();
    if problems.is_empty() {
        return print_line(
            "Every way to you works, as far as Ringer can see. Look for a \"do not disturb\" mode of your desktop, \
             or send a test through every channel: ringer doctor --send",
        );
    }
    print_line("The reason may be:")?;
    print_text(&problems)
}
