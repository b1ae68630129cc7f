//! `ringer`: the notification system for coding agents. One file per command; the rules are in the libraries.

#![forbid(unsafe_code)]
#![expect(
    clippy::doc_markdown,
    reason = "doc comments of arguments are help texts, and people do not read Markdown there"
)]

mod agent_threads;
mod agents;
mod client_setup;
mod commands;
mod confirm;
mod context;
mod failure;
mod guard;
mod hub_client;
mod hub_start;
mod notifications;
mod origin;
mod output;
mod panes;
mod places;
mod popup_answerer;
mod probe;
mod sandbox;
mod table;
mod terminal;
mod time_arguments;
mod tmux_setup;

use std::process::ExitCode;

fn main() -> ExitCode {
    guard::ask_panes_with(panes::windows);
    if cfg!(panic = "abort") {
        exit_when_it_panics();
    }
    commands::run(std::env::args_os())
}

/// Exits with the code of internal errors, which callers know, in builds where a panic aborts.
fn exit_when_it_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        std::process::exit(failure::Exit::Software as i32);
    }));
}
