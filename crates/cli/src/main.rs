//! `ringer`: the notification system for coding agents. One file per command, no rules of its own.

#![forbid(unsafe_code)]

mod commands;
mod exit;
mod failure;
mod output;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os())
}
