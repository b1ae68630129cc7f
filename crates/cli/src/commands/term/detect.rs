//! `ringer term detect`.

use ringer_term::{Channel, Detection, MethodChoice, Passthrough, choose_method, sanitise_line};
use serde::Serialize;

use crate::failure::Outcome;
use crate::output::{print_json, print_text};
use crate::probe::detect_and_ask;
use crate::terminal::apple_bell;

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
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
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

pub(crate) fn run(arguments: &Args) -> Outcome {
    let detection = detect_and_ask();
    let bell = apple_bell(&detection);
    let choice = choose_method(Channel::Auto, &detection, bell);
    let compatible = choose_method(Channel::Compatible, &detection, bell);
    let report = report(&detection, &choice, &compatible);
    if arguments.json { print_json(&report) } else { print_text(&format_text(&report)) }
}

fn report<'a>(detection: &'a Detection, choice: &'a MethodChoice, compatible: &MethodChoice) -> Report<'a> {
    let outer = detection.outer.as_ref();
    Report {
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

fn format_text(report: &Report<'_>) -> String {
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
