//! `ringer term detect`, `notify` and `scan`.

mod scan;

use clap::Subcommand;
use ringer_term::{
    CHANNELS, Channel, Detection, Method, MethodChoice, NotificationId, OutgoingNotification, Passthrough,
    Urgency, choose_method, sanitise_line,
};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, json, print_bytes, print_json, print_line, print_text};
use crate::probe::detect_and_ask;
use crate::terminal::{apple_bell, random_id, write_to_terminal};

/// Terminal tools: detect, scan, notify
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Detect(DetectArgs),
    Scan(scan::Args),
    Notify(NotifyArgs),
}

pub(crate) fn run(arguments: Args) -> Outcome {
    match arguments.command {
        Command::Detect(arguments) => detect(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Notify(arguments) => notify(&arguments),
    }
}

/// Detect this terminal and the notification method it supports
///
/// Names the terminal as Claude Code does, and shows what identified it, the
/// multiplexers, the outer terminal and SSH. The terminal is queried for its
/// version once; the answer is kept.
///
/// Examples:
///   ringer term detect
///   ringer term detect --json | jq .channel
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DetectArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DetectReport<'a> {
    terminal: Option<&'a str>,
    version: Option<String>,
    row: u8,
    evidence: &'a str,
    multiplexers: Vec<&'static str>,
    outer: Option<&'a str>,
    outer_passthrough: Option<&'static str>,
    ssh: bool,
    channel: &'static str,
    channel_reason: &'a str,
    compatible_channel: &'static str,
}

pub(crate) fn detect(arguments: &DetectArgs) -> Outcome {
    let detection = detect_and_ask();
    let bell = apple_bell(&detection);
    let choice = choose_method(Channel::Auto, &detection, bell);
    let compatible = choose_method(Channel::Compatible, &detection, bell);
    let report = report(&detection, &choice, &compatible);
    if arguments.json { print_json(&report) } else { print_text(&format_text(&report)) }
}

fn report<'a>(
    detection: &'a Detection,
    choice: &'a MethodChoice,
    compatible: &MethodChoice,
) -> DetectReport<'a> {
    let outer = detection.outer.as_ref();
    DetectReport {
        terminal: detection.terminal.as_deref(),
        version: detection.identity.version.map(|version| version.to_string()),
        row: detection.row,
        evidence: &detection.evidence,
        multiplexers: detection.multiplexers.iter().map(|layer| layer.as_str()).collect(),
        outer: outer.map(|outer| outer.name.as_str()).filter(|name| !name.is_empty()),
        outer_passthrough: outer.map(|outer| match outer.passthrough {
            Passthrough::Off => "off",
            Passthrough::Visible => "on",
            Passthrough::All => "all",
        }),
        ssh: detection.ssh,
        channel: choice.method.as_str(),
        channel_reason: &choice.reason,
        compatible_channel: compatible.method.as_str(),
    }
}

fn format_text(report: &DetectReport<'_>) -> String {
    let inside = match report.multiplexers.as_slice() {
        [] => "nothing".to_owned(),
        layers => layers.join(", inside "),
    };
    let mut lines = vec![
        ("terminal", report.terminal.unwrap_or("unknown").to_owned()),
        ("version", report.version.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("detected by", report.evidence.to_owned()),
        ("inside", inside),
    ];
    if let Some(outer) = report.outer {
        let passthrough = report.outer_passthrough.unwrap_or("unknown");
        lines.push(("outer terminal", format!("{outer} (tmux allow-passthrough: {passthrough})")));
    }
    lines.push(("ssh", if report.ssh { "yes" } else { "no" }.to_owned()));
    lines.push(("channel", format!("{}: {}", report.channel, report.channel_reason)));
    lines.into_iter().map(|(name, value)| format!("{name:<14} {}\n", sanitise_line(&value))).collect()
}

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
pub(crate) struct NotifyArgs {
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
struct NotifyReport<'a> {
    method: &'static str,
    channel: &'static str,
    terminal: Option<&'a str>,
    multiplexers: Vec<&'static str>,
    id: Option<&'a str>,
    bytes: usize,
    reason: &'a str,
}

pub(crate) fn notify(arguments: &NotifyArgs) -> Outcome {
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
        icon: None,
    };
    let bytes = notice.encode(choice.method, &detection.multiplexers);
    if arguments.stdout {
        print_bytes(&bytes)?;
    } else if !bytes.is_empty() {
        write_to_terminal(&bytes)?;
    }

    let report = if arguments.json {
        json(&NotifyReport {
            method: choice.method.as_str(),
            channel: arguments.channel.as_str(),
            terminal: detection.terminal.as_deref(),
            multiplexers: detection.multiplexers.iter().map(|layer| layer.as_str()).collect(),
            id: (choice.method == Method::Kitty).then_some(id.as_str()),
            bytes: bytes.len(),
            reason: &choice.reason,
        })?
    } else {
        sanitise_line(&format!("{}: {}", choice.method.as_str(), choice.reason))
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
