//! `ringer` without a command.

use ringer_term::{Channel, choose_method, sanitise_line};

use crate::failure::Outcome;
use crate::output::print_text;
use crate::probe::detect_here;
use crate::terminal::apple_bell;

/// Says what this terminal is, what the journal holds, and what to try. The workspace will open here once it exists.
pub(crate) fn run() -> Outcome {
    let detection = detect_here();
    let choice = choose_method(Channel::Auto, &detection, apple_bell(&detection));
    let terminal = match &detection.terminal {
        Some(name) => format!("{} ({})", sanitise_line(name), sanitise_line(&detection.evidence)),
        None => "unknown".to_owned(),
    };
    print_text(&format!(
        "Ringer {version}: the notification system for coding agents.\n\
             \n\
             this terminal     {terminal}\n\
             notified through  {method}: {reason}\n\
             {journal}\
             \n\
             Try:\n\
             \x20 ringer setup                  connect your agents\n\
             \x20 ringer listen &               wait for messages, as a lead agent does\n\
             \x20 ringer notify \"hello\"         send one; the listener prints it and ends\n\
             \x20 ringer term notify \"hello\"    tell yourself something through this terminal\n\
             \x20 ringer term scan RECORDING    what a recorded program told its terminal\n\
             \x20 ringer --help                 every command\n",
        version = env!("CARGO_PKG_VERSION"),
        method = choice.method.as_str(),
        reason = sanitise_line(&choice.reason),
        journal = super::status::summary()?,
    ))
}
