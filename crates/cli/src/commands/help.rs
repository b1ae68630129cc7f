//! `ringer help` and `ringer man`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::{Man, generate_to};
use ringer_config::nearest;
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_bytes, print_text};

/// The first page of help: what people need.
pub(super) const FIRST_PAGE: &str = "\
Ringer shows which of your coding agents need you, and takes your answer.

  ringer                       open the inbox
  ringer list                  what needs you, and what happened (--open, --search WORDS)
  ringer answer [WHO] ANSWER   allow, deny, or reply
  ringer jump [WHO]            go to the pane that needs you
  ringer tell WHO TEXT         write to an agent
  ringer why [WHO]             why you were notified, or not
  ringer read|snooze|mute|dnd  quieten one, or everything

  ringer notify TEXT           send a notification        ringer run -- CMD    watch any command
  ringer ask QUESTION          ask and wait for an answer ringer open -- CMD   run it in a pane

  ringer setup                 connect your agents, tmux, desktop and shell
  ringer status | doctor       what is running; what is broken and how to fix it
  ringer relay                 other machines

ringer help --all lists every command; ringer help COMMAND explains one, with examples.
";

/// The commands under their headings in `ringer help --all`. A test checks that each visible command is in exactly one group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Inbox",
        &[
            "list", "answer", "jump", "why", "read", "unread", "clear", "snooze", "mute", "dnd", "digest",
            "undo",
        ],
    ),
    ("Send", &["tell", "notify", "ask", "progress"]),
    ("Agents", &["run", "status", "show", "wait", "listen", "lead"]),
    ("Panes", &["open", "attach", "detach", "panes", "pane"]),
    ("Setup", &["setup", "doctor", "relay", "config", "trust", "uninstall", "completions", "man", "help"]),
    (PLUMBING, &["mcp", "hook", "hub", "term", "toast", "observe", "log", "watch", "statusline", "nuke"]),
];

/// The heading of the commands that other programs run.
const PLUMBING: &str = "Plumbing";

/// What people type for a command of another name, or know from elsewhere.
const OTHER_NAMES: [&str; 5] = ["ls", "inbox", "questions", "acknowledge", "send"];

/// Every command that is shown.
pub(super) fn all_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Returns the command that was probably meant, but none that other programs run.
pub(super) fn nearest_command(word: &str) -> Option<&'static str> {
    let groups = GROUPS.iter().filter(|(heading, _)| *heading != PLUMBING);
    let names: Vec<&str> = groups.flat_map(|(_, names)| names.iter().copied()).chain(OTHER_NAMES).collect();
    nearest(word, &names)
}

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

/// Explain a command, with examples
///
/// Examples:
///   ringer help
///   ringer help notify
///   ringer help mcp proxy
///   ringer help --all     # every command, and the exit codes
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct HelpArgs {
    /// List every command, and the exit codes
    #[arg(long)]
    all: bool,
    /// The command, as in `ringer help notify`
    #[arg(value_name = "COMMAND", conflicts_with = "all")]
    command: Vec<String>,
}

/// Prints the first page, all commands, or the page of one, from the whole command line.
pub(crate) fn help(arguments: &HelpArgs, mut command: Command) -> Outcome {
    command.build();
    if arguments.all {
        return print_text(&all_commands(&command));
    }
    let Some((last, parents)) = arguments.command.split_last() else {
        return print_text(FIRST_PAGE);
    };
    let mut found = &mut command;
    for name in parents.iter().chain([last]) {
        let is_known = found.find_subcommand(name).is_some();
        found = match found.find_subcommand_mut(name) {
            Some(subcommand) if is_known => subcommand,
            _ => return Err(unknown_command(name)),
        };
    }
    print_bytes(found.render_long_help().to_string().as_bytes())
}

/// The error for a command that does not exist.
pub(super) fn unknown_command(name: &str) -> Failure {
    let nearest = nearest_command(name).map(|nearest| format!("did you mean `ringer {nearest}`? "));
    let hint = format!("{}ringer help lists what there is", nearest.unwrap_or_default());
    Failure::usage(format!("there is no command {:?}", sanitise_line(name))).hint(hint)
}

fn all_commands(command: &Command) -> String {
    let mut list = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(list, "{heading}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let _ = writeln!(list, "  {name:<11}  {}", about.map(ToString::to_string).unwrap_or_default());
        }
        list.push('\n');
    }
    format!("{list}Exit codes:\n{EXIT_CODES}\n\nringer help COMMAND explains one, with examples.\n")
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
        let mut listed: Vec<&str> = all_names().collect();
        listed.sort_unstable();
        let mut command = Ringer::command();
        command.build();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(listed, visible);
    }

    #[test]
    fn the_first_page_names_commands_that_people_type() {
        let mut command = Ringer::command();
        command.build();
        let words = FIRST_PAGE.split("ringer ").skip(1).filter_map(|rest| rest.split([' ', '\n']).next());
        let names: Vec<&str> =
            words.flat_map(|names| names.split('|')).filter(|name| !name.is_empty()).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(command.find_subcommand(name).is_some_and(|found| !found.is_hide_set()), "{name}");
        }
    }

    #[test]
    fn what_is_suggested_is_never_plumbing() {
        assert_eq!(nearest_command("anwser"), Some("answer"));
        assert_eq!(nearest_command("lits"), Some("list"));
        assert_eq!(nearest_command("hokk"), None);
        assert_eq!(nearest_command("lead-sesion"), None);
    }
}
