//! `ringer open`.

use std::ffi::OsString;

use clap::ValueHint;
use ringer_panes::{Answer, Request, SplitDirection, check_name};

use super::run::check_program;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::panes;

/// Open a pane that runs a command, or a shell
///
/// The pane goes on when its window is closed. If no window shows panes yet, this terminal
/// becomes one; leave with Ctrl-g d. Otherwise the window that you used last shows the new pane.
/// The exit code is 127 if there is no such command, and 126 if it cannot be executed.
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
    /// The workspace, which is made if there is none of that name [default: that of this pane, else the one shown last]
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// At which side of the other pane it goes [default: right, or where there is most room if it does not get the keys]
    #[arg(long, value_enum)]
    split: Option<Split>,
    /// Do not go there: keys stay where they are, and this terminal shows no panes
    #[arg(long, short)]
    detached: bool,
    /// Go there also from a script: the window that was used last shows the new pane, and what you type there goes to it
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

/// Refuses a name that is invisible or unreadable.
fn check_option(option: &str, name: Option<&String>) -> Outcome {
    let checked = name.map_or(Ok(()), |name| check_name(name));
    checked.map_err(|error| {
        Failure::usage(format!("{option} {error}")).hint(format!("ringer open {option} tests"))
    })
}

pub(super) fn run(arguments: &Args) -> Outcome {
    check_option("--name", arguments.name.as_ref())?;
    check_option("--workspace", arguments.workspace.as_ref())?;
    if let Some(program) = arguments.command.first() {
        check_program("open", program)?;
    }
    let command: Result<Vec<String>, OsString> =
        arguments.command.iter().cloned().map(OsString::into_string).collect();
    let command = command
        .map_err(|word| Failure::usage(format!("{} is not UTF-8, which panes need", word.display())))?;
    let is_typed = !arguments.detached && !arguments.json && panes::is_called_by_person()?;
    let caller = panes::own_surface();
    let is_in_pane = caller.is_some();
    let answer = panes::request(&Request::Open {
        command,
        name: arguments.name.clone(),
        workspace: arguments.workspace.clone(),
        split: arguments.split.map(|split| match split {
            Split::Right => SplitDirection::Right,
            Split::Down => SplitDirection::Down,
        }),
        takes_keys: arguments.go || is_typed,
        caller,
        goes_anyway: arguments.go,
    })?;
    let Answer::Opened { surface, is_shown } = answer else {
        return Err(Failure::new(Exit::Software, "the server of panes gave another answer"));
    };
    if arguments.json {
        return print_json(&serde_json::json!({ "surface": surface, "is_shown": is_shown }));
    }
    if is_shown || is_in_pane || !is_typed {
        return print_line(&surface);
    }
    super::attach::show()
}
