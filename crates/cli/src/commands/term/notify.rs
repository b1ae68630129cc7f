//! `ringer term notify`.

use ringer_term::{CHANNELS, Channel, Method, NotificationId, OutgoingNotification, Urgency, choose_method};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, json, print_bytes, print_line};
use crate::probe::detect_and_ask;
use crate::terminal::{apple_bell, random_id, write_to_terminal};

/// Show a notification through this terminal; it is not stored
///
/// Writes to the controlling terminal, so it works inside a pipeline, and prints
/// the method used. Your settings, hooks, mutes and quiet hours do not count: it is
/// for scripts that write to a terminal themselves. `ringer notify` obeys them.
///
/// Examples:
///   ringer term notify "tests pass"
///   make; ringer term notify --title make "finished with $?"
///   ringer term notify --channel kitty --id build "updated in place"
///   ringer term notify --channel iterm2 --stdout "hello" | od -c
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Message text
    body: String,
    /// Terminal channel to use instead of the best one
    #[arg(long, value_name = "CHANNEL", default_value = "auto", value_parser = parse_channel)]
    channel: Channel,
    /// Title
    #[arg(long)]
    title: Option<String>,
    /// Notification id, for channels that have ids: sending it again updates the notification
    #[arg(long, value_parser = parse_id)]
    id: Option<NotificationId>,
    /// Write the escape sequence to standard output, and the report to standard error
    #[arg(long)]
    stdout: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    method: &'static str,
    channel: &'static str,
    terminal: Option<&'a str>,
    multiplexers: Vec<&'static str>,
    id: Option<&'a str>,
    bytes: usize,
    reason: &'a str,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    if arguments.body.trim().is_empty() {
        return Err(Failure::usage("the message is empty").hint("ringer term notify \"hello\""));
    }
    let detection = detect_and_ask();
    let choice = choose_method(arguments.channel, &detection, apple_bell(&detection));
    let id = arguments.id.clone().unwrap_or_else(random_id);
    let notice = OutgoingNotification {
        id: &id,
        title: arguments.title.as_deref(),
        body: &arguments.body,
        urgency: Urgency::Normal,
    };
    let bytes = notice.encode(choice.method, &detection.multiplexers);
    if arguments.stdout {
        print_bytes(&bytes)?;
    } else if !bytes.is_empty() {
        write_to_terminal(&bytes)?;
    }

    let report = if arguments.json {
        json(&Report {
            method: choice.method.as_str(),
            channel: arguments.channel.as_str(),
            terminal: detection.terminal.as_deref(),
            multiplexers: detection.multiplexers.iter().map(|layer| layer.as_str()).collect(),
            id: (choice.method == Method::Kitty).then_some(id.as_str()),
            bytes: bytes.len(),
            reason: &choice.reason,
        })?
    } else {
        ringer_term::sanitise_line(&format!("{}: {}", choice.method.as_str(), choice.reason))
    };
    if arguments.stdout {
        eprint_line(&report);
        Ok(())
    } else {
        print_line(&report)
    }
}

fn parse_channel(name: &str) -> Result<Channel, String> {
    name.parse().map_err(|error| {
        let names: Vec<&str> = CHANNELS.iter().map(|(name, _)| *name).collect();
        format!("{error} (known: {})", names.join(", "))
    })
}

fn parse_id(text: &str) -> Result<NotificationId, String> {
    NotificationId::new(text).map_err(|error| error.to_string())
}
