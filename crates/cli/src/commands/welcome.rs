//! `ringer` without a command.

use std::io::{self, IsTerminal};

use ringer_term::{Channel, choose_method, sanitise_line};

use crate::context;
use crate::failure::Outcome;
use crate::output::{print_bytes, print_text};
use crate::probe::detect_here;
use crate::terminal::apple_bell;

/// Shows what needs the person. In a terminal also describes the terminal, and suggests commands.
pub(crate) fn run() -> Outcome {
    let has_journal = context::home().is_ok_and(|home| home.database().exists());
    if has_journal {
        print_bytes(super::status::overview()?.as_bytes())?;
    }
    if !io::stdout().is_terminal() {
        return if has_journal { Ok(()) } else { print_text("Nothing needs you.\nNo agents are running.\n") };
    }
    let detection = detect_here();
    let choice = choose_method(Channel::Auto, &detection, apple_bell(&detection));
    let terminal = match &detection.terminal {
        Some(name) => format!("{} ({})", sanitise_line(name), sanitise_line(&detection.evidence)),
        None => "unknown".to_owned(),
    };
    print_text(&format!(
        "{gap}Ringer {version}: notifications for coding agents.\n\
             \n\
             this terminal     {terminal}\n\
             notified through  {method}: {reason}\n\
             \n\
             Try:\n\
             \x20 ringer setup                  connect your agents\n\
             \x20 ringer listen &               wait for messages, like a lead agent\n\
             \x20 ringer notify \"hello\"         send a notification\n\
             \x20 ringer term notify \"hello\"    show a notification through this terminal\n\
             \x20 ringer doctor                 check your setup\n\
             \x20 ringer help                   list all commands\n",
        gap = if has_journal { "\n" } else { "" },
        version = env!("CARGO_PKG_VERSION"),
        method = choice.method.as_str(),
        reason = sanitise_line(&choice.reason),
    ))
}
