//! `ringer term`: detect the terminal, scan a recording, notify through the terminal.

mod detect;
mod notify;
mod report;
mod scan;
mod view;

use clap::Subcommand;

use crate::failure::Outcome;

/// Terminal tools: detect, scan, notify
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Detect(detect::Args),
    Scan(scan::Args),
    Notify(notify::Args),
}

pub(crate) fn run(arguments: Args) -> Outcome {
    match arguments.command {
        Command::Detect(arguments) => detect::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Notify(arguments) => notify::run(&arguments),
    }
}
