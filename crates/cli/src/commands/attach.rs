//! `ringer attach` and `ringer detach`.

use ringer_panes::Request;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::print_line;
use crate::{guard, panes};

/// Show panes in this terminal
///
/// Everything in panes runs on when you leave (Ctrl-g d), when the terminal is closed, and when
/// Ringer is upgraded. Ctrl-g ? shows all keys.
///
/// Examples:
///   ringer attach
///   ssh -t box ringer attach
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AttachArgs {}

/// Close all windows that show panes; what runs in them goes on
///
/// Examples:
///   ringer detach
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DetachArgs {}

pub(super) fn attach(_: &AttachArgs) -> Outcome {
    if panes::own_surface().is_some() {
        return Err(Failure::usage("this terminal is a pane itself, and would show itself in itself")
            .hint("ringer open   # another pane beside this one"));
    }
    if !panes::has_terminal() {
        return Err(Failure::new(Exit::Unavailable, "panes need a terminal for input and output")
            .hint("ringer surfaces"));
    }
    guard::only_a_person_quietly("attach to panes")?;
    show()
}

/// Shows panes until the person leaves, and prints the reason if there is one.
pub(super) fn show() -> Outcome {
    match panes::attach()? {
        Some(why) => print_line(&why),
        None => Ok(()),
    }
}

pub(super) fn detach(_: &DetachArgs) -> Outcome {
    panes::request_running(&Request::Detach).map(drop)
}
