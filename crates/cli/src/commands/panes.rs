//! `ringer panes`: the processes behind panes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use ringer_ipc::{detach, tell_failed, tell_ready};
use ringer_panes::keeper;
use ringer_platform::raise_open_files;

use crate::failure::{Exit, Failure, Outcome};
use crate::{guard, hub_client, panes};

/// Run the server or the keeper of panes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show panes to windows
    Serve,
    /// Hold the programs in panes
    Keep,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    detach().map_err(|error| Failure::new(Exit::Unavailable, "cannot detach").because(error))?;
    hub_client::start_by_another_process();
    // Each pane and each window takes file descriptors.
    raise_open_files();
    let outcome = match arguments.command {
        Command::Serve => serve(),
        Command::Keep => keep(),
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
