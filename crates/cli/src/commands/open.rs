//! `ringer open`.

use std::ffi::OsString;

use clap::ValueHint;
use ringer_workspace::{Answer, Request};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::panes;

/// Open a pane that runs a command, or a shell
///
/// The pane goes on when its window is closed. In a terminal that shows no panes yet, this also
/// attaches it; leave with Ctrl-g d.
///
/// Examples:
///   ringer open
///   ringer open -- claude
///   ringer open --name tests --split down -- cargo watch -x test
///   ringer open --workspace api --detached -- codex
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What the pane is called [default: its agent, command or directory]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The workspace, which is made if there is none of that name [default: the one shown]
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Where the pane goes
    #[arg(long, value_enum, default_value_t = Split::Right)]
    split: Split,
    /// Do not go there: keys stay where they are, and this terminal shows no panes
    #[arg(long, short)]
    detached: bool,
    /// Go there also from a script: what you type in the window that was used last goes to the new pane
    #[arg(long, conflicts_with = "detached")]
    go: bool,
    /// Print one JSON object; implies --detached unless --go is given
    #[arg(long)]
    json: bool,
    /// The command and its arguments [default: your shell]
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Split {
    Right,
    Down,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    let command: Result<Vec<String>, OsString> =
        arguments.command.iter().cloned().map(OsString::into_string).collect();
    let command = command
        .map_err(|word| Failure::usage(format!("{} is not UTF-8, which panes need", word.display())))?;
    let answer = panes::request(&Request::Open {
        command,
        name: arguments.name.clone(),
        workspace: arguments.workspace.clone(),
        is_below: arguments.split == Split::Down,
        takes_keys: arguments.go || !arguments.detached && !arguments.json && panes::has_terminal(),
    })?;
    let Answer::Opened { surface, is_shown } = answer else {
        return Err(Failure::new(Exit::Software, "the server of panes gave another answer"));
    };
    if arguments.json {
        return print_json(&serde_json::json!({ "surface": surface, "is_shown": is_shown }));
    }
    if is_shown || arguments.detached || panes::is_in_pane() || !panes::has_terminal() {
        return print_line(&surface);
    }
    super::attach::show()
}
