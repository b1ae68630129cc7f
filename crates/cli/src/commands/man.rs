//! `ringer man`.

use std::path::{Path, PathBuf};

use clap_mangen::{Man, generate_to};
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_bytes};

/// Generate man pages
///
/// Examples:
///   ringer man | man -l -
///   ringer man ~/.local/share/man/man1 && man ringer-notify
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Write the pages of all commands into this directory [default: print the main page]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Writes pages of the whole command line, which is `command`.
pub(crate) fn run(arguments: &Args, command: clap::Command) -> Outcome {
    match &arguments.directory {
        Some(directory) => write_all(directory, command),
        None => print_main(command),
    }
}

fn print_main(command: clap::Command) -> Outcome {
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot write the man page").because(error))?;
    print_bytes(&page)
}

fn write_all(directory: &Path, command: clap::Command) -> Outcome {
    std::fs::create_dir_all(directory).and_then(|()| generate_to(command, directory)).map_err(|error| {
        let name = sanitise_line(&directory.display().to_string());
        Failure::new(Exit::CannotCreate, format!("cannot write the man pages to {name}")).because(error)
    })?;
    eprint_line(&format!("wrote the man pages to {}", sanitise_line(&directory.display().to_string())));
    Ok(())
}
