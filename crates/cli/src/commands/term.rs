//! `ringer term`: what this terminal is, what a program tells it, telling it something.

mod detect;
mod notify;
mod scan;
mod view;

use clap::Subcommand;

use crate::failure::Outcome;

/// What this terminal is, what a program tells it, tell it something
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
