//! `ringer send`.

use std::io::Read;

use ringer_panes::Request;

use crate::failure::{Exit, Failure, Outcome};
use crate::{context, guard, panes};

/// Type a text into a pane
///
/// The text is typed as it is, with Enter at its end unless --no-enter is given. Agents may
/// not do this: they could answer for you.
///
/// Examples:
///   ringer send tests 'cargo test'
///   ringer send pane:4f0k2m1c --no-enter q
///   echo 'fix the build' | ringer send claude -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The pane: its id or its name, as in `ringer surfaces`
    surface: String,
    /// What to type; `-` for standard input
    text: String,
    /// Do not press Enter after it
    #[arg(long)]
    no_enter: bool,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    let scope = context::scope(context::repository().as_ref());
    guard::only_a_person(&mut context::journal_to_read()?, &scope, "type into a pane")?;
    let mut text = arguments.text.clone();
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|error| {
            Failure::new(Exit::NoInput, "standard input cannot be read as text").because(error)
        })?;
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    if !arguments.no_enter {
        text.push('\r');
    }
    panes::request_running(&Request::Send { surface: arguments.surface.clone(), text }).map(drop)
}
