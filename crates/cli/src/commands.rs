//! The command line: every command, and how errors are reported.

pub(crate) mod answer;
pub(crate) mod ask;
mod completions;
pub(crate) mod config;
mod doctor;
mod help;
mod hook;
mod hub;
mod hub_events;
mod jump;
mod lead;
mod list;
mod listen;
mod log;
mod mark;
mod mcp;
mod mcp_backend;
mod mcp_channels;
mod mute;
mod notify;
mod nuke;
mod pane_list;
mod panes;
mod progress;
mod questions;
mod relay;
mod run;
mod setup;
mod show;
mod status;
mod statusline;

mod tell;
mod term;
mod trust;
pub(crate) mod ui;
pub(crate) mod ui_backend;
mod uninstall;
mod wait;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use ringer_term::sanitise_line;

use crate::context;
use crate::failure::{Failure, Outcome};
use crate::output::{eprint_line, print_bytes};

/// Notifications for coding agents
///
/// Without a command, opens the inbox; in a pipe, prints what needs you.
#[derive(Debug, Parser)]
#[command(name = "ringer", version, max_term_width = 100)]
#[command(override_help = help::FIRST_PAGE, disable_help_subcommand = true)]
struct Ringer {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Notify(notify::Args),
    Listen(listen::Args),
    Ask(ask::Args),
    #[command(hide = true)]
    Questions(questions::Args),
    #[command(alias = "send")]
    Tell(tell::Args),
    Wait(wait::Args),
    Answer(answer::Args),
    #[command(alias = "ack", hide = true)]
    Acknowledge(answer::Args),
    #[command(alias = "ls")]
    List(list::Args),
    #[command(hide = true)]
    Inbox,
    Read(mark::ReadArgs),
    Unread(mark::UnreadArgs),
    Clear(mark::ClearArgs),
    Snooze(mark::SnoozeArgs),
    Mute(mute::Args),
    #[command(hide = true)]
    Unmute(mute::UnmuteArgs),
    Dnd(mute::DndArgs),
    Digest(list::DigestArgs),
    Undo(mark::UndoArgs),
    Jump(jump::Args),
    Why(why::Args),
    Watch(hub_events::WatchArgs),
    Status(status::Args),
    Show(show::Args),
    Log(log::Args),
    Nuke(nuke::Args),
    Term(term::Args),
    Progress(progress::Args),
    Toast(hub_events::ToastArgs),
    Observe(hub_events::ObserveArgs),
    Run(run::Args),
    Open(panes::OpenArgs),
    Attach(panes::AttachArgs),
    Detach(panes::DetachArgs),
    Panes(pane_list::Args),
    Pane(panes::PaneArgs),
    #[command(hide = true)]
    PaneServer(panes::ServerArgs),
    #[command(hide = true)]
    LeadSession(run::LeadSessionArgs),
    Setup(setup::Args),
    Uninstall(uninstall::Args),
    Hook(hook::Args),
    Mcp(mcp::Args),
    Lead(lead::Args),
    Relay(relay::Args),
    Statusline(statusline::Args),
    Hub(hub::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Trust(trust::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Complete(completions::CompleteArgs),
    Man(help::ManArgs),
    Help(help::HelpArgs),
}

pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    if let [_, only] = arguments.as_slice()
        && (only == "--version" || only == "-V")
    {
        return exit_with(print_version());
    }
    let command = match parse_hot_command(&arguments) {
        Some(command) => Some(command),
        None => match Ringer::try_parse_from(&arguments) {
            Ok(ringer) => ringer.command,
            Err(error) => return print_clap_error(&error, &arguments),
        },
    };
    // An agent continues without its hook, and a shell without its completions.
    let is_silent = matches!(command, Some(Command::Hook(_) | Command::Complete(_)));
    let checked = if is_silent { context::check_home_path() } else { context::check_paths() };
    if let Err(failure) = checked {
        return exit_with(if is_silent { Ok(()) } else { Err(failure) });
    }
    let outcome = match command {
        None | Some(Command::Inbox) => ui::run(),
        Some(Command::Notify(arguments)) => notify::run(&arguments).map_err(Failure::while_sending),
        Some(Command::Listen(arguments)) => listen::run(&arguments),
        Some(Command::Ask(arguments)) => ask::run(&arguments),
        Some(Command::Wait(arguments)) => wait::run(&arguments),
        Some(Command::Tell(arguments)) => tell::run(&arguments).map_err(Failure::while_sending),
        Some(Command::Questions(arguments)) => questions::run(&arguments),
        Some(Command::Answer(arguments)) => answer::run(&arguments).map_err(Failure::while_sending),
        Some(Command::Acknowledge(arguments)) => {
            answer::acknowledge(&arguments).map_err(Failure::while_sending)
        }
        Some(Command::Status(arguments)) => status::run(&arguments),
        Some(Command::Show(arguments)) => show::run(&arguments),
        Some(Command::Log(arguments)) => log::run(&arguments),
        Some(Command::Nuke(arguments)) => nuke::run(&arguments),
        Some(Command::Term(arguments)) => term::run(arguments),
        Some(Command::Progress(arguments)) => progress::run(&arguments),
        Some(Command::List(arguments)) => list::run(&arguments),
        Some(Command::Read(arguments)) => mark::read(&arguments),
        Some(Command::Unread(arguments)) => mark::unread(&arguments),
        Some(Command::Clear(arguments)) => mark::clear(&arguments),
        Some(Command::Snooze(arguments)) => mark::snooze(&arguments),
        Some(Command::Mute(arguments)) => mute::run(&arguments),
        Some(Command::Unmute(arguments)) => mute::unmute(&arguments),
        Some(Command::Dnd(arguments)) => mute::dnd(&arguments),
        Some(Command::Digest(arguments)) => list::digest(&arguments),
        Some(Command::Undo(arguments)) => mark::undo(&arguments),
        Some(Command::Jump(arguments)) => jump::run(&arguments),
        Some(Command::Why(arguments)) => why::run(&arguments),
        Some(Command::Watch(arguments)) => hub_events::watch(&arguments),
        Some(Command::Toast(arguments)) => hub_events::toast(&arguments),
        Some(Command::Observe(arguments)) => hub_events::observe(&arguments),
        Some(Command::Hub(arguments)) => hub::run(&arguments),
        Some(Command::Run(arguments)) => match run::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Some(Command::Open(arguments)) => panes::open(&arguments),
        Some(Command::Attach(arguments)) => panes::attach(&arguments),
        Some(Command::Detach(arguments)) => panes::detach(&arguments),
        Some(Command::Panes(arguments)) => pane_list::run(&arguments),
        Some(Command::Pane(arguments)) => panes::pane(&arguments),
        Some(Command::PaneServer(arguments)) => panes::run(&arguments),
        Some(Command::Mcp(arguments)) => match mcp::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Some(Command::LeadSession(arguments)) => match run::run_session(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Some(Command::Setup(arguments)) => setup::run(&arguments),
        Some(Command::Uninstall(arguments)) => uninstall::run(&arguments),
        Some(Command::Hook(arguments)) => hook::run(&arguments),
        Some(Command::Lead(arguments)) => lead::run(&arguments),
        Some(Command::Relay(arguments)) => relay::run(&arguments),
        Some(Command::Statusline(arguments)) => statusline::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Trust(arguments)) => trust::run(&arguments),
        Some(Command::Completions(arguments)) => completions::run(&arguments, Ringer::command()),
        Some(Command::Complete(arguments)) => completions::complete(&arguments, Ringer::command()),
        Some(Command::Man(arguments)) => help::man(&arguments, Ringer::command()),
        Some(Command::Help(arguments)) => help::help(&arguments, Ringer::command()),
    };
    exit_with(outcome)
}

/// Parses the commands that agents run often without describing all the others, which would take as long as the rest of
/// the command. Wrong arguments are left to the full parser, which reports them.
fn parse_hot_command(arguments: &[OsString]) -> Option<Command> {
    fn read<A: clap::Args>(arguments: &[OsString]) -> Option<A> {
        let command = A::augment_args(clap::Command::new("ringer"));
        A::from_arg_matches(&command.try_get_matches_from(arguments).ok()?).ok()
    }
    let after_program = arguments.get(1..)?;
    match after_program.first()?.to_str()? {
        "notify" => read(after_program).map(Command::Notify),
        "hook" => read(after_program).map(Command::Hook),
        "listen" => read(after_program).map(Command::Listen),
        "mcp" => read(after_program).map(Command::Mcp),
        run::LEAD_SESSION => read(after_program).map(Command::LeadSession),
        "ask" => read(after_program).map(Command::Ask),
        "statusline" => read(after_program).map(Command::Statusline),
        _ => None,
    }
}

/// Does not build the full command line first: other programs ask for the version when they start.
fn print_version() -> Outcome {
    print_bytes(concat!("ringer ", env!("CARGO_PKG_VERSION"), "\n").as_bytes())
}

fn exit_with(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure.has_message() {
                eprint_line(&failure.to_string());
            }
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Help and version exit with success; anything else is wrong usage, and reads like every other error.
fn print_clap_error(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        // A failed write to standard output is ignored, as by the other commands.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    exit_with(Err(usage_failure(error, arguments)))
}

/// Returns clap's error: its first paragraph, its tips, and the command that explains more.
fn usage_failure(error: &clap::Error, arguments: &[OsString]) -> Failure {
    let mut command = &Ringer::command();
    let mut page = String::from("ringer help");
    for word in arguments.iter().skip(1).map_while(|argument| argument.to_str()) {
        let Some(subcommand) = command.find_subcommand(word) else { break };
        command = subcommand;
        page = format!("{page} {}", command.get_name());
    }
    let of_command = page.strip_prefix("ringer help ");
    let names = || command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
    match (error.kind(), error.get(ContextKind::InvalidSubcommand), of_command) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name)), None) => {
            return help::unknown_command(name);
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _, Some(of_command)) => {
            return Failure::usage(format!("`ringer {of_command}` needs one of: {}", names())).hint(page);
        }
        _ => {}
    }
    let plain = error.render().to_string();
    let mut paragraphs =
        plain.split("\n\n").map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    let what = paragraphs.next().unwrap_or_default();
    let tips =
        paragraphs.filter_map(|paragraph| Some(paragraph.strip_prefix("tip: ")?.replace(" tip: ", "; ")));
    let hints: Vec<String> = tips.chain([page]).collect();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    Failure::usage(sanitise_line(what)).hint(sanitise_line(&hints.join("; ")))
}
