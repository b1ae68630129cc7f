//! `ringer open`, `attach`, `detach` and `pane`, and `ringer pane-server`, which runs the processes behind panes.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use clap::ValueHint;
use ringer_ipc::{tell_failed, tell_ready};
use ringer_panes::{Answer, Request, SplitDirection, check_name, keeper};
use ringer_platform::raise_open_files;

use super::run::check_program;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::{context, guard, hub_client, panes};

/// Run the server or the keeper of panes
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(subcommand)]
    command: ServerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ServerCommand {
    /// Show panes to windows
    Serve,
    /// Hold the programs in panes
    Keep,
}

pub(super) fn run(arguments: &ServerArgs) -> Outcome {
    ringer_ipc::detach().map_err(|error| Failure::new(Exit::Unavailable, "cannot detach").because(error))?;
    hub_client::start_by_another_process();
    // Each pane and each window takes file descriptors.
    raise_open_files();
    let outcome = match arguments.command {
        ServerCommand::Serve => serve(),
        ServerCommand::Keep => keep(),
    };
    outcome.inspect_err(|failure| tell_failed(&failure.to_string()))
}

fn serve() -> Outcome {
    guard::act_for_windows();
    let served = ringer_panes::serve(panes::server_options()?);
    served.map(drop).map_err(|error| Failure::new(Exit::Unavailable, "panes cannot be shown").because(error))
}

fn keep() -> Outcome {
    let paths = panes::paths()?;
    let socket = paths.keeper();
    let failed = |error| Failure::new(Exit::Unavailable, "programs cannot be held").because(error);
    // Another keeper already runs.
    let Some(_lock) = paths.lock(&socket).map_err(failed)? else { return Ok(()) };
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(failed)?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    tell_ready();
    let kept = keeper::serve(listener).map_err(failed);
    let _ = fs::remove_file(&socket);
    kept
}

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
pub(crate) struct OpenArgs {
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

pub(super) fn open(arguments: &OpenArgs) -> Outcome {
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
    show()
}

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
            .hint("ringer panes"));
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

/// Type into a pane
///
/// Examples:
///   ringer pane send tests 'cargo test'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PaneArgs {
    #[command(subcommand)]
    command: PaneCommand,
}

#[derive(Debug, clap::Subcommand)]
enum PaneCommand {
    Send(SendArgs),
}

pub(super) fn pane(arguments: &PaneArgs) -> Outcome {
    match &arguments.command {
        PaneCommand::Send(arguments) => send(arguments),
    }
}

/// Type a text into a pane
///
/// The text is typed as it is, with Enter at its end unless --no-enter is given. Agents may
/// not do this: they could answer for you.
///
/// Examples:
///   ringer pane send tests 'cargo test'
///   ringer pane send pane:4f0k2m1c --no-enter q
///   echo 'fix the build' | ringer pane send claude -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct SendArgs {
    /// The pane: its id or its name, as in `ringer panes`
    surface: String,
    /// What to type; `-` for standard input
    text: String,
    /// Do not press Enter after it
    #[arg(long)]
    no_enter: bool,
}

fn send(arguments: &SendArgs) -> Outcome {
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
