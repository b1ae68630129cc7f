//! `ringer relay`.

mod add;
mod add_nats;
mod serve;
mod settings_file;
mod show;

use crate::failure::Outcome;

pub(crate) use serve::give_answer;
pub(crate) use settings_file::{machines, settings};
pub(crate) use show::{set_machines, state_text};

/// See agents of other machines in one inbox
///
/// A link connects this machine with another one over ssh, or over any program
/// that connects two pipes. What is written on one comes to the other, once and
/// in order, also after days without a connection. The hub keeps links connected.
///
/// Examples:
///   ringer relay add ssh box
///   ringer relay add command --name dev -- docker exec -i dev ringer relay serve --stdio
///   ringer relay status
///   ringer relay remove box
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Connect another machine to this one
    Add(add::Args),
    /// List the machines that are set
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show whether the machines are connected, and what waits
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Disconnect a machine; messages that came from it stay
    Remove {
        /// Name of the machine, as `list` shows it
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Serve another machine on standard input and output; links run this
    Serve(serve::Args),
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match &arguments.command {
        Command::Add(arguments) => add::run(arguments),
        Command::List { json } => show::list(*json),
        Command::Status { json } => show::status(*json),
        Command::Remove { name, yes } => add::remove(name, *yes),
        Command::Serve(arguments) => serve::run(arguments),
    }
}
