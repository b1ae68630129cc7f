//! `ringer`: the notification system for coding agents. One file per command, no rules of its own.

#![forbid(unsafe_code)]
#![expect(
    clippy::doc_markdown,
    reason = "doc comments of arguments are help texts, and people do not read Markdown there"
)]

mod caller;
mod commands;
mod consent;
mod exit;
mod failure;
mod line;
mod link;
mod output;
mod place;
mod probe;
mod pushes;
mod repairs;
mod span;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
