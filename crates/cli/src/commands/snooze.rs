//! `ringer snooze`.

use ringer_core::attention::MarkTarget;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, MessageId, Scope, Sender};
use ringer_hub::{Clock, view};
use ringer_ipc::HubClientError;
use ringer_journal::{IdSource, Journal};
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::notifications::Notifications;
use crate::output::{print_json, print_line};
use crate::time_arguments::{UNTIL_EXAMPLES, parse_until};
use crate::{context, guard, hub_client};

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
#[command(verbatim_doc_comment, override_usage = "ringer snooze [OPTIONS] [ID] <TIME>")]
pub(crate) struct Args {
    /// Notification id [default: the most urgent unread]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Until when: 90s, 20m, 2h, `until 18:00`, tomorrow
    #[arg(value_name = "TIME")]
    time: Vec<String>,
    /// Print the notification as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let now_ms = IdSource::now().unix_ms;
    let (id, until_ms) = arguments.read(now_ms)?;
    let snoozed = match hub_client::connect()? {
        Some(mut client) => {
            match client.call("notification.snooze", &json!({ "id": id, "until_unix_ms": until_ms })) {
                Ok(answer) => {
                    hub_client::warn_if_behind(&client);
                    answer
                }
                // The hub ended or stopped during the request. It may have applied it already; snoozing twice until the same
                // moment changes nothing.
                Err(HubClientError::NoHub | HubClientError::Silent(_) | HubClientError::Late { .. }) => {
                    snooze_in_journal(id.as_deref(), until_ms)?
                }
                Err(error) => return Err(hub_client::failure(error)),
            }
        }
        None => snooze_in_journal(id.as_deref(), until_ms)?,
    };
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

impl Args {
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

/// Without a hub the mark is appended to the journal, and the next hub applies it.
fn snooze_in_journal(id: Option<&str>, until_ms: i64) -> Result<Value, Failure> {
    let mut journal = Journal::open(&context::home()?)?;
    guard::may_quieten(&mut journal, "snooze notifications", &[json!({ "id": id })])?;
    let clock = Clock::local();
    let notifications = Notifications::read(&mut journal)?;
    let id = match id {
        Some(text) => match notifications.named(text, &clock)? {
            Some(id) => id,
            None => MessageId::parse(text)?,
        },
        None => match notifications.most_urgent_unread() {
            Some(record) => record.id.clone(),
            None => return Ok(Value::Null),
        },
    };
    let Some(record) = notifications.record(&id) else {
        return Err(Failure::new(Exit::Data, format!("unknown notification {id}")).hint("ringer list"));
    };
    let short_id = notifications.short_id(&id);
    if record.is_resolved {
        let name = short_id.as_deref().unwrap_or(id.as_str());
        return Err(Failure::new(Exit::Data, format!("notification {name} is over"))
            .hint("ringer   # shows what needs you"));
    }
    let text = until_ms.to_string();
    let mut draft = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Snooze), &text);
    draft.key = Some(MarkTarget::Message(id).to_string());
    journal.append(&draft, &IdSource::now())?;
    let mut records = vec![record.clone()];
    let target = MarkTarget::Message(record.id.clone());
    ringer_core::attention::apply_mark(Mark::Snooze, &target, &text, &mut records);
    Ok(records.first().map_or(Value::Null, |record| view::notification(record, short_id.as_deref(), &clock)))
}
