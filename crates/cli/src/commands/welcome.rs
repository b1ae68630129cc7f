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
        "Ringer {version}: notifications for coding agents.\n\
             \n\
             this terminal     {terminal}\n\
             notified through  {method}: {reason}\n\
             {journal}\
             \n\
             Try:\n\
             \x20 ringer setup                  connect your agents\n\
             \x20 ringer listen &               wait for messages, like a lead agent\n\
             \x20 ringer notify \"hello\"         send a notification\n\
             \x20 ringer term notify \"hello\"    show a notification through this terminal\n\
             \x20 ringer doctor                 check your setup\n\
             \x20 ringer help                   list all commands\n",
        version = env!("CARGO_PKG_VERSION"),
        method = choice.method.as_str(),
        reason = sanitise_line(&choice.reason),
        journal = super::status::summary()?,
    ))
}
