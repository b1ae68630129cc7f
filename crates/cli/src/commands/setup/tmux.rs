//! `ringer setup tmux`.

use ringer_term::sanitise_line;
use ringer_tmux::{TmuxServer, remove};
use serde_json::json;

use crate::client_setup::own_path;
use crate::confirm::confirm_or_show;
use crate::context;
use crate::failure::{Failure, Outcome};
use crate::output::{count, eprint_line, print_json, print_line, print_text, short_path};
use crate::tmux_setup::{
    ConfigChange, KEY, check_server_around, failed, installed_servers, running_servers, start_in,
};

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(super) struct Options {
    pub(super) yes: bool,
    pub(super) dry_run: bool,
    pub(super) remove: bool,
    pub(super) json: bool,
}

pub(super) fn run(arguments: Options) -> Outcome {
    if arguments.remove { disconnect(arguments) } else { connect(arguments) }
}

fn connect(arguments: Options) -> Outcome {
    check_server_around()?;
    let program = own_path()?;
    let change = ConfigChange::add(&program, Some(KEY))?;
    let servers = running_servers();
    if !agreed(arguments, &change, &servers)? {
        return Ok(());
    }
    if change.is_change() {
        change.write()?;
    }
    for server in &servers {
        start_in(server, Some(KEY), &program)?;
    }
    if arguments.json {
        return report(&change, &servers);
    }
    print_line("Done. Undo: ringer setup tmux --remove")
}

fn disconnect(arguments: Options) -> Outcome {
    let change = ConfigChange::remove()?;
    let servers = installed_servers(&context::home()?);
    if !change.is_change() && servers.is_empty() && !arguments.json {
        return print_line("Ringer is not set up in tmux; nothing to remove.");
    }
    if !agreed(arguments, &change, &servers)? {
        return Ok(());
    }
    if change.is_change() {
        change.write()?;
    }
    for server in &servers {
        remove(server).map_err(|error| failed(server, &error))?;
    }
    if arguments.json { report(&change, &servers) } else { print_line("Done.") }
}

/// Shows the changes, and asks.
fn agreed(arguments: Options, change: &ConfigChange, servers: &[TmuxServer]) -> Result<bool, Failure> {
    let show =
        || print_text(&change.diff().lines().map(|line| sanitise_line(line) + "\n").collect::<String>());
    if arguments.json && arguments.dry_run {
        report(change, servers)?;
        return Ok(false);
    }
    if !arguments.json {
        print_text(&described(arguments.remove, change, servers))?;
    }
    if arguments.dry_run {
        show()?;
        return Ok(false);
    }
    let (question, skip) = if arguments.remove {
        ("Disconnect tmux?", "ringer setup tmux --remove --yes")
    } else {
        ("Connect tmux?", "ringer setup tmux --yes")
    };
    let agreed = arguments.yes || confirm_or_show(question, skip, show)?;
    if !agreed {
        eprint_line("Nothing was changed.");
    }
    Ok(agreed)
}

fn described(removes: bool, change: &ConfigChange, servers: &[TmuxServer]) -> String {
    let file = short_path(&change.path);
    let running = match servers.len() {
        0 => "no server runs".to_owned(),
        many => format!("in {} that {}", count(many, "server"), if many == 1 { "runs" } else { "run" }),
    };
    if removes {
        return format!("  tmux  hooks, badges and the key go: the lines in {file}; {running}\n");
    }
    format!(
        "  tmux  a ring around the pane that wants you, its number in the window list, prefix + {KEY} for the inbox;\n        \
         what you look at is read. One line in {file}; {running}: hooks (place 97), focus-events on\n"
    )
}

fn report(change: &ConfigChange, servers: &[TmuxServer]) -> Outcome {
    let sockets: Vec<_> = servers.iter().map(TmuxServer::socket).collect();
    print_json(&json!({
        "file": { "path": change.path, "changes": change.is_change(), "diff": change.diff() },
        "servers": sockets,
    }))
}
