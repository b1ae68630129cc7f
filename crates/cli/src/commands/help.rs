//! `ringer man`, and the text of `ringer help`: the commands in groups, and the exit codes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::builder::StyledStr;
use clap_mangen::{Man, generate_to};
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_bytes};

/// Every visible command, under its heading in `ringer help`. A test checks that each is in exactly one group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Inbox",
        &[
            "list", "why", "read", "unread", "clear", "snooze", "mute", "dnd", "digest", "undo", "answer",
            "jump",
        ],
    ),
    ("Send", &["notify", "ask", "progress"]),
    ("Agents", &["run", "setup", "uninstall", "status", "show", "listen", "questions", "lead"]),
    ("Panes", &["open", "attach", "detach", "send", "surfaces", "workspaces"]),
    ("Setup", &["doctor", "relay", "config", "trust", "completions", "man", "help"]),
    (
        "Plumbing",
        &[
            "hook",
            "mcp",
            "mcp-proxy",
            "hub",
            "term",
            "toast",
            "observe",
            "log",
            "watch",
            "statusline",
            "nuke",
        ],
    ),
];

/// The exit codes of all commands; keep in step with [`crate::failure::Exit`].
const EXIT_CODES: &str = "   0  success
   1  doctor: something is broken
  64  wrong usage
  65  invalid data, such as an unknown id
  66  an input file is missing or unreadable
  69  something needed is unavailable
  70  internal error
  73  cannot create a file or directory
  74  reading or writing failed
  75  temporary failure; run it again
  77  permission denied
  78  invalid configuration
 126  run, open: the command cannot be executed
 127  run, open: no such command; any other code of run is that of the command";

/// Adds help that lists the commands in groups. clap supports only one heading for all commands, so the list is part of the
/// template.
pub(super) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                // clap adds this command when it parses.
                None => "Print this help, or the help of a command".to_owned(),
            };
            let _ = writeln!(list, "  {literal}{name:<11}{literal:#}  {about}");
        }
        list.push('\n');
    }
    let template = |end: &str| {
        StyledStr::from(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}{end}"
        ))
    };
    command
        .help_template(template("{after-help}"))
        .after_help(StyledStr::from(format!(
            "Run {literal}ringer help COMMAND{literal:#} for the options of a command, with examples."
        )))
        .after_long_help(StyledStr::from(format!(
            "{header}Exit codes:{header:#}\n{EXIT_CODES}\n\nRun {literal}ringer help COMMAND{literal:#} for the options of a command, with examples."
        )))
}

/// Generate man pages
///
/// Examples:
///   ringer man | man -l -
///   ringer man ~/.local/share/man/man1 && man ringer-notify
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this directory [default: print the main page]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Writes pages of the whole command line, which is `command`.
pub(crate) fn man(arguments: &ManArgs, command: Command) -> Outcome {
    match &arguments.directory {
        Some(directory) => write_all(directory, command),
        None => print_main(command),
    }
}

fn print_main(command: Command) -> Outcome {
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot write the man page").because(error))?;
    print_bytes(&page)
}

fn write_all(directory: &Path, command: Command) -> Outcome {
    std::fs::create_dir_all(directory).and_then(|()| generate_to(command, directory)).map_err(|error| {
        let name = sanitise_line(&directory.display().to_string());
        Failure::new(Exit::CannotCreate, format!("cannot write the man pages to {name}")).because(error)
    })?;
    eprint_line(&format!("wrote the man pages to {}", sanitise_line(&directory.display().to_string())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Ringer;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let mut command = Ringer::command();
        command.build();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(listed, visible);
    }
}
