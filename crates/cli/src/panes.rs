//! Shared by the commands of panes: finding and starting the server, and its requests.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use ringer_core::message::PANE_PREFIX;
use ringer_guard::PaneWindows;
use ringer_ipc::{StartError, start_with_arguments, tell_ready};
use ringer_journal::{Home, Journal};
use ringer_panes::{
    Answer, ClientError, ClientSettings, PaneEntry, PaneKeys, PanePaths, Request, ServerOptions, Surroundings,
};
use ringer_platform::{variable, with_first_open_files};
use ringer_ui::Backend;

use crate::commands::ui::{show_inbox, user_settings};
use crate::commands::ui_backend::UiBackend;
use crate::failure::{Exit, Failure};
use crate::output::has_unicode;
use crate::{context, guard, hub_client, origin};

/// Time limit for the server or the keeper to start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for opening the home: a network share whose server has gone hangs for ever. Shorter than the start timeout, so that
/// a server or a keeper can report the reason.
const HOME_TIMEOUT: Duration = Duration::from_secs(5);
/// The arguments that make this program the server or the keeper.
const SERVER: [&str; 2] = ["pane-server", "serve"];
const KEEPER: [&str; 2] = ["pane-server", "keep"];

/// Starts the server for a client of panes.
pub(crate) struct ThisProgram;

impl Surroundings for ThisProgram {
    fn start_server(&self) -> Result<(), String> {
        start(&SERVER)
    }

    fn show_inbox(&self) -> io::Result<()> {
        show_inbox()
    }
}

fn start(arguments: &[&str]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // After an upgrade the newer program has the path of this one.
    let replaced = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    let program = replaced.filter(|newer| newer.exists()).unwrap_or(program);
    start_with_arguments(&program, arguments, START_TIMEOUT).map_err(|error| match error {
        StartError::Failed(why) => why,
        error => error.to_string(),
    })
}

/// Returns the sockets and files of this home.
pub(crate) fn paths() -> Result<PanePaths, Failure> {
    let home = context::home()?;
    let path = home.path().to_owned();
    let (found, finds) = sync_channel(1);
    // A thread that hangs ends with the process.
    thread::spawn(move || found.send(open_paths(&home)));
    finds.recv_timeout(HOME_TIMEOUT).unwrap_or_else(|_| {
        let what = format!("the state directory {} does not answer", path.display());
        Err(Failure::new(Exit::Unavailable, what).hint("RINGER_HOME=/some/directory ringer …"))
    })
}

fn open_paths(home: &Home) -> Result<PanePaths, Failure> {
    // The journal holds the session.
    let opened = Journal::open(home);
    let paths = PanePaths::of(home).map_err(|error| {
        Failure::new(Exit::CannotCreate, "there is no safe directory for the sockets of panes").because(error)
    });
    match opened {
        Ok(journal) => context::warn_if_repaired(&journal),
        // Programs in panes remain reachable on a disk that is read-only or failing.
        Err(error) if error.may_pass() && paths.as_ref().is_ok_and(PanePaths::has_programs) => {}
        Err(error) => return Err(error.into()),
    }
    paths
}

/// The client's description of its terminal and its environment.
pub(crate) fn settings() -> ClientSettings {
    let theme = user_settings().theme;
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").map(|term| term.to_string_lossy().into_owned()).unwrap_or_default();
    let colours = if set("NO_COLOR") {
        0
    } else if variable("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit") {
        1 << 24
    } else if term.contains("256color") || term.contains("kitty") || term.contains("ghostty") {
        256
    } else {
        16
    };
    ClientSettings {
        colours,
        is_ascii: !has_unicode(),
        has_mouse: theme.get("mouse").is_none_or(|mouse| mouse != "off"),
        surface: window_surface(),
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        directory: current_directory(),
    }
}

/// Returns the current directory. One whose name is not UTF-8 cannot be sent to the server.
fn current_directory() -> PathBuf {
    std::env::current_dir().ok().filter(|path| path.to_str().is_some()).unwrap_or_else(|| "/".into())
}

/// Returns the surface of the pane in which this process runs. The terminal decides: a terminal that was started in a pane, as by
/// tmux, inherits the pane's environment, and `su -` or `env -i` in a pane lose it.
pub(crate) fn own_surface() -> Option<String> {
    let named = || {
        let surface = variable("RINGER_SURFACE")?.into_string().ok()?;
        surface.starts_with(PANE_PREFIX).then_some(surface)
    };
    let Some(tty) = origin::message_origin().tty else { return named() };
    let Ok(panes) = list() else { return named() };
    let is_own = |pane: &PaneEntry| pane.ending.is_none() && pane.tty.as_ref() == Some(&tty);
    panes.into_iter().find(is_own).map(|pane| pane.surface)
}

/// Returns the surface of a window's terminal. A pane in the environment is ignored, because it belongs to another terminal.
fn window_surface() -> Option<String> {
    let surface = origin::message_origin().surface.filter(|surface| !surface.starts_with(PANE_PREFIX));
    surface.or_else(|| origin::plain_surface().map(|(surface, _)| surface))
}

/// Returns true if this process has a terminal that can show panes.
pub(crate) fn has_terminal() -> bool {
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns true if a person typed this command, as far as can be determined: it has a terminal, and no agent has called it. Some
/// agents run commands in a terminal.
pub(crate) fn is_called_by_person() -> Result<bool, Failure> {
    if !has_terminal() {
        return Ok(false);
    }
    // Fails if the home hangs, where opening the journal would block.
    paths()?;
    Ok(!guard::is_agent(&mut context::journal_to_read()?)?)
}

pub(crate) fn attach() -> Result<Option<String>, Failure> {
    ringer_panes::attach(&paths()?, &settings(), &ThisProgram).map_err(failure)
}

/// Sends a request to the server, and starts one if there is none.
pub(crate) fn request(request: &Request) -> Result<Answer, Failure> {
    ringer_panes::request(&paths()?, &settings(), request, Some(&ThisProgram)).map_err(failure)
}

/// Sends a request to the server, if there are panes.
pub(crate) fn request_running(request: &Request) -> Result<Answer, Failure> {
    ask_running(request).map_err(failure)?
}

/// Starts a killed server again if its programs still run.
fn ask_running(request: &Request) -> Result<Result<Answer, Failure>, ClientError> {
    let paths = match paths() {
        Ok(paths) => paths,
        Err(failure) => return Ok(Err(failure)),
    };
    let program: Option<&dyn Surroundings> = if paths.has_programs() { Some(&ThisProgram) } else { None };
    ringer_panes::request(&paths, &settings(), request, program).map(Ok)
}

/// Returns all panes; none if no server runs.
pub(crate) fn list() -> Result<Vec<PaneEntry>, Failure> {
    match ask_running(&Request::List) {
        Ok(answer) => match answer? {
            Answer::Panes(panes) => Ok(panes),
            _ => Ok(Vec::new()),
        },
        Err(ClientError::NoServer) => Ok(Vec::new()),
        Err(error) => Err(failure(error)),
    }
}

/// Returns the windows that show panes. Starts no server, and creates nothing if there never were panes.
pub(crate) fn windows() -> Option<PaneWindows> {
    if !PanePaths::has_session(&context::home().ok()?) {
        return None;
    }
    match ringer_panes::request(&paths().ok()?, &settings(), &Request::Windows, None).ok()? {
        Answer::Windows { server, windows } => Some(PaneWindows { server, windows }),
        _ => None,
    }
}

/// Returns the number of open panes. Creates nothing if there never were any.
pub(crate) fn open_count() -> usize {
    let had_panes = context::home().is_ok_and(|home| PanePaths::has_session(&home));
    if had_panes { list().map_or(0, |panes| panes.len()) } else { 0 }
}

fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::NoServer => Failure::new(Exit::Unavailable, error.to_string()).hint("ringer open"),
        ClientError::Refused(_) => Failure::new(Exit::Data, error.to_string()).hint("ringer panes"),
        ClientError::Busy(_) => Failure::new(Exit::TryAgain, error.to_string()),
        ClientError::TooLong(_) => Failure::new(Exit::Data, error.to_string()).hint("split -C 1M"),
        ClientError::OtherVersion { .. } => Failure::new(Exit::Unavailable, error.to_string())
            .hint("ringer attach   # takes over what runs in panes"),
        ClientError::NewerServer { .. } => {
            Failure::new(Exit::Unavailable, error.to_string()).hint("which -a ringer   # use the newer one")
        }
        ClientError::Terminal(_) => Failure::new(Exit::InputOutput, error.to_string()),
        error => Failure::new(Exit::Unavailable, error.to_string()).hint("ringer doctor"),
    }
}

pub(crate) fn server_options() -> Result<ServerOptions, Failure> {
    let home = context::home()?;
    let backend: Arc<dyn Backend> = Arc::new(UiBackend::default());
    Ok(ServerOptions {
        paths: paths()?,
        load_keys: Box::new(|| PaneKeys::with(&user_settings().keys).0),
        backend,
        connect: Box::new(hub_client::quietly),
        // Programs in panes inherit the keeper's limit of open files.
        start_keeper: Box::new(|| with_first_open_files(0, || start(&KEEPER)).map_err(io::Error::other)),
        hub_socket: hub_client::socket(&home),
        tell_ready: Box::new(tell_ready),
        may_type: Box::new(|typist| {
            let windows = PaneWindows { server: std::process::id(), windows: typist.windows.clone() };
            guard::may_type(typist.pid, &windows, typist.what)
        }),
    })
}
