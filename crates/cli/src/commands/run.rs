//! `ringer run`, and `ringer lead-session`, which it starts on its PTY to start the command there.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueHint;
use ringer_config::{Config, TitleMark};
use ringer_core::message::{Kind, MessageOrigin, Place, SurfaceId};
use ringer_core::time::rounded_span_text;
use ringer_core::{Draft, Recipient, Sender};
use ringer_hosts::run::{self, HubSurface, Launch, OwnSurface, RunResult, exec_in_foreground, lead_session};
use ringer_ipc::discovery::HubAddress;
use ringer_journal::{AgentSummary, IdSource, Journal, SenderClaim};
use ringer_platform::{Ending, die_by, find_program, is_program, variable};
use ringer_term::{Channel, EmulatedTerminal, Env, identity_variables, sanitise_line};

use super::ui::user_settings;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::eprint_line;
use crate::{context, hub_client, origin};

/// Run an agent or any command, and be notified when it needs you or ends
///
/// The command runs as without `ringer run`: keys, colours, size, Ctrl-Z and exit
/// status are the same. Its notifications become Ringer's, and its state is
/// read from its title. When it ends after more than notify.min_turn and you are not
/// looking, you are notified.
///
/// Examples:
///   ringer run -- claude
///   ringer run -- make -j8 test
///   ringer run --name release -- ./release.sh --dry-run
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What notifications call it [default: the name of the command]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    command: CommandWords,
}

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    arguments.name.as_deref().map(check_name).transpose()?;
    let (program, _) = arguments.command.split()?;
    check_program("run", program)?;
    let started_ms = unix_ms();
    let origin = origin::message_origin();
    let settings = user_settings();
    let launch = Launch {
        leader: leader(arguments.command.all())?,
        command: arguments.command.all().to_vec(),
        variables: variables(&origin, arguments.name.as_deref()),
    };
    let finished =
        run::run(&launch, hub_surface(&origin, &settings)).map_err(|error| cannot_run(program, error))?;
    if finished.ran_for >= settings.notify.min_turn && !finished.is_looked_at {
        let name = arguments.name.clone().unwrap_or_else(|| file_name(program));
        let claim = context::claim_of_program(arguments.name.as_deref());
        let report = RunReport { name, claim, origin, started_ms, finished };
        if let Err(failure) = report.send() {
            eprint_line(&failure.to_string());
        }
    }
    match finished.ending {
        Ending::Exit(code) => Ok(ExitCode::from(code)),
        Ending::Signal(signal) => die_by(signal),
    }
}

/// Fails if a name cannot be a sender of notifications.
fn check_name(name: &str) -> Outcome {
    Sender::new(name)?;
    if !Sender::is_reserved(name) {
        return Ok(());
    }
    Err(Failure::usage(format!("{:?} cannot be the name of a command", sanitise_line(name)))
        .hint("ringer run --name release -- ./release.sh"))
}

/// Fails if the program to start does not exist or cannot be executed.
pub(super) fn check_program(command: &str, program: &OsStr) -> Outcome {
    let name = program.to_string_lossy();
    if name.contains('/') {
        return match Path::new(program).metadata() {
            Ok(_) if is_program(Path::new(program)) => Ok(()),
            Ok(found) if found.is_dir() => {
                Err(Failure::new(Exit::NotExecutable, format!("cannot run {name}: it is a directory")))
            }
            Ok(_) => {
                Err(Failure::new(Exit::NotExecutable, format!("cannot run {name}: it is not executable"))
                    .hint(format!("chmod +x {name}")))
            }
            Err(error) => Err(cannot_run(program, error)),
        };
    }
    let search_path = variable("PATH").unwrap_or_default();
    match find_program(&search_path, &name) {
        Some(_) => Ok(()),
        None => Err(Failure::new(Exit::NoCommand, format!("command not found: {name}"))
            .hint(format!("for an alias or function of your shell: ringer {command} -- bash -ic 'NAME …'"))),
    }
}

fn leader(command: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let ringer = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Unavailable, "cannot find the path of the ringer program").because(error)
    })?;
    let leader = [ringer.into_os_string(), LEAD_SESSION.into(), "--".into()];
    Ok(leader.into_iter().chain(command.iter().cloned()).collect())
}

/// Returns the changes to the command's environment. TERM and the variables of multiplexers stay the same: the command draws on
/// the real terminal, through them.
fn variables(origin: &MessageOrigin, name: Option<&str>) -> Vec<(OsString, Option<OsString>)> {
    let socket = context::home().ok().and_then(|home| HubAddress::read(&home)).map(|hub| hub.socket);
    // Without a hub its notifications go to the real terminal, so it must know that one.
    let has_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    let identity = (has_terminal && (socket.is_some() || hub_client::may_start()))
        .then(|| identity_variables(EmulatedTerminal::default()))
        .into_iter()
        .flatten();
    let identity = identity.map(|(name, value)| (name.into(), value.map(OsString::from)));
    let own = [
        ("RINGER_SURFACE", origin.surface.clone().map(OsString::from)),
        ("RINGER_TTY", origin.tty.clone().map(OsString::from)),
        ("RINGER_WORKSPACE", origin.workspace.clone().map(OsString::from)),
        ("RINGER_SOCKET", socket.map(std::path::PathBuf::into_os_string)),
        ("RINGER_AGENT", name.map(OsString::from)),
    ];
    let own = own.into_iter().filter(|(_, value)| value.is_some());
    identity.chain(own.map(|(name, value)| (name.into(), value))).collect()
}

/// Returns the surface of the command. If the environment names it, another program is its host; in tmux, the hub is.
fn hub_surface(origin: &MessageOrigin, settings: &Config) -> Option<HubSurface> {
    let surface = origin.surface.clone()?;
    let is_plain = variable("RINGER_SURFACE").is_none()
        && origin::plain_surface().is_some_and(|(plain, _)| plain == surface);
    let multiplexers = ["TMUX", "TERM", "STY", "ZELLIJ"];
    let set = |name: &'static str| Some((name, variable(name)?.into_string().ok()?));
    let variables = origin::environment(Env::new(multiplexers.into_iter().filter_map(set)));
    let is_alone = ["STY", "ZELLIJ"].iter().all(|name| variables.get(name).is_none())
        && !variables.is_in_tmux()
        && variables.get("TERM").is_some_and(|term| term != "dumb");
    let own = is_plain.then(|| OwnSurface {
        tty: origin.tty.clone(),
        workspace: Some(origin.workspace.clone().unwrap_or_else(workspace_here)),
        reports_focus: is_alone,
        marks_title: is_alone
            && settings.notify.title_mark != TitleMark::Off
            && settings.preferred_channel != Channel::NotificationsDisabled,
    });
    let socket = context::home().ok().and_then(|home| hub_client::socket(&home));
    Some(HubSurface {
        surface: SurfaceId::new(&surface),
        own,
        connect: Box::new(hub_client::quietly),
        socket,
    })
}

fn workspace_here() -> String {
    let scope = context::scope(context::repository().as_ref());
    Place::own_workspace(scope.as_str()).workspace.to_string()
}

fn file_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// A command that ended while the person was not looking.
struct RunReport {
    name: String,
    claim: SenderClaim,
    origin: MessageOrigin,
    started_ms: i64,
    finished: RunResult,
}

impl RunReport {
    /// Notifies the person, unless the agent has already done so.
    fn send(self) -> Outcome {
        let mut journal = context::journal()?;
        if self.was_told(&mut journal)? {
            return Ok(());
        }
        let RunResult { ending, ran_for, .. } = self.finished;
        let kind = if ending.is_success() { Kind::Complete } else { Kind::Error };
        let body = format!("{} after {}", ending.text(), rounded_span_text(ran_for));
        let scope = context::scope(context::repository().as_ref());
        let sender = context::sender(&self.claim, &mut journal)?;
        let mut draft = Draft::new(scope, sender, kind, &body)?;
        draft.title = Some(self.name);
        draft.recipient = Recipient::Person;
        draft.origin = self.origin;
        draft.check()?;
        journal.append(&draft, &IdSource::now())?;
        hub_client::start_if_not_woken(&journal);
        Ok(())
    }

    /// Returns true if the command was an agent, known by its hooks or by its title: it has reported the ends of its turns, which
    /// say more than the end of its process. A failure is only covered if the agent has reported an error.
    fn was_told(&self, journal: &mut Journal) -> Result<bool, Failure> {
        let agents = journal.agent_summaries()?;
        let is_here = |agent: &&AgentSummary| {
            agent.client.is_some() && agent.surface == self.origin.surface && agent.seen_ms >= self.started_ms
        };
        let is_success = self.finished.ending.is_success();
        let told = |agent: &AgentSummary| is_success || agent.state.as_deref() == Some("error");
        Ok(self.origin.surface.is_some() && agents.iter().filter(is_here).any(told))
    }
}

// A `//` comment, because clap would use a doc comment as the description of the command that contains this struct.
#[derive(Debug, clap::Args)]
pub(super) struct CommandWords {
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,
}

impl CommandWords {
    pub(super) fn split(&self) -> Result<(&OsStr, &[OsString]), Failure> {
        let (program, rest) = self.command.split_first().ok_or_else(|| Failure::usage("which command?"))?;
        Ok((program, rest))
    }

    pub(super) fn all(&self) -> &[OsString] {
        &self.command
    }
}

pub(super) const LEAD_SESSION: &str = "lead-session";

/// Run a command in the foreground of a terminal of which this process leads the session
#[derive(Debug, clap::Args)]
pub(crate) struct LeadSessionArgs {
    /// Become the command as soon as this process is in the foreground
    #[arg(long)]
    exec: bool,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

pub(super) fn run_session(arguments: &LeadSessionArgs) -> Result<ExitCode, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(ExitCode::SUCCESS) };
    if arguments.exec {
        return Err(cannot_run(program, exec_in_foreground(program, rest)));
    }
    let ringer = std::env::current_exe().map_err(|error| cannot_run(program, error))?.into_os_string();
    let words = [LEAD_SESSION.into(), "--exec".into(), "--".into()]
        .into_iter()
        .chain(arguments.command.iter().cloned());
    match lead_session(&ringer, &words.collect::<Vec<OsString>>()) {
        Ok(Ending::Exit(code)) => Ok(ExitCode::from(code)),
        Ok(Ending::Signal(signal)) => die_by(signal),
        Err(error) => Err(cannot_run(program, error)),
    }
}

/// Describes a command that could not be started, with the exit codes that shells use.
pub(super) fn cannot_run(program: &OsStr, error: io::Error) -> Failure {
    let exit = match error.kind() {
        ErrorKind::NotFound => Exit::NoCommand,
        _ => Exit::NotExecutable,
    };
    Failure::new(exit, format!("cannot run {}", program.display())).because(error)
}
