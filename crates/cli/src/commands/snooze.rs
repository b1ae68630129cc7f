//! `ringer snooze`.

use ringer_hub::Clock;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::hub_client::Hub;
use crate::output::{print_json, print_line};
use crate::time_arguments::{UNTIL_EXAMPLES, parse_until};

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
