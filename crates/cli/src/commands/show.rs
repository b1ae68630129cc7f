//! `ringer show`.

use ringer_core::conversation::Charset;
use ringer_platform::variable;

use crate::agent_page::{AgentPage, PageStyle};
use crate::failure::Outcome;
use crate::output::{has_unicode, print_json, print_text};
use crate::table::Style;
use crate::{agent_names, context};

/// Show one agent: what it does, what waits for it, and what entered its turns
///
/// Several background commands that completed one after the other are shown as one;
/// those that failed or were killed never are.
///
/// Examples:
///   ringer show                  # the only agent of this repository
///   ringer show api/auth
///   ringer show claude-6be1e699 -v
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Agent: its name, its id, its repository and branch, or a piece of one of these
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Show every background task, and its whole text
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let (agent, mut journal) = agent_names::find(arguments.agent.as_deref())?;
    context::warn_if_repaired(&journal);
    let page = AgentPage::read(agent, &mut journal)?;
    if arguments.json {
        return print_json(&page.json());
    }
    let lines = page.lines(PageStyle {
        width: Style::of_stdout().width(),
        verbose: arguments.verbose,
        charset: charset(),
    });
    print_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// The characters that the terminal can show.
pub(super) fn charset() -> Charset {
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !has_unicode() { Charset::Ascii } else { Charset::Unicode }
}
