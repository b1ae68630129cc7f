//! Running a hub: lock, then bind, then the loop, until there is nothing to do.

use std::any::Any;
use std::panic;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::Duration;

use ringer_deliver::{Desktop, PopupHandle, PreviousPopup, REPLY_DEADLINE};
use ringer_journal::{
    Error as JournalError, Home, HubLock, HubStore, IdSource, Journal, ReadPosition, SpoolStatus,
};
use tokio::sync::mpsc;

use crate::delivery_setup::DeliverySetup;
use crate::dispatch::{Dispatcher, Ended, IDLE_AFTER, Parts, search_path};
use crate::host::{Host, Service};
use crate::input::{Input, MAX_INPUTS};
use crate::log::Log;
use crate::perform::Performer;
use crate::server;
use crate::session_bus::SessionDesktop;
use crate::settings::Settings;
use ringer_config::Environment;
use ringer_ipc::Presence;
use ringer_ipc::StartFailure;
use ringer_ipc::discovery::socket_path;

/// How long threads that wait for a disk are waited for at the end. One that hangs would hold the end up for ever; whatever
/// it does ends with the process.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(1);
/// Jobs that may wait for the performer, which only starts them.
const MAX_JOBS: usize = 1024;

/// The name of the log in the home.
const LOG: &str = "hub.log";

/// Where a hub runs, and with what.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The home: one hub for each.
    pub home: Home,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// The address of the session bus.
    pub bus: Option<String>,
    /// Where the socket of the person's session bus usually is, which may not be there yet.
    pub usual_bus: Option<PathBuf>,
    /// Where the settings are.
    pub environment: Environment,
    /// How long it stays with nothing to do.
    pub idle_after: Duration,
    /// Whether it tells its log to standard error as well.
    pub aloud: bool,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process(home: Home, aloud: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let runtime = path("XDG_RUNTIME_DIR");
        let bus = set("DBUS_SESSION_BUS_ADDRESS").map(|address| address.to_string_lossy().into_owned());
        let bus = bus.or_else(|| {
            let socket = runtime.as_ref()?.join("bus");
            socket.exists().then(|| format!("unix:path={}", socket.display()))
        });
        let environment = Environment {
            ringer_config: path("RINGER_CONFIG"),
            xdg_config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
        };
        let idle = set("RINGER_HUB_IDLE_MS").and_then(|ms| ms.to_str()?.parse().ok());
        let idle_after = idle.map_or(IDLE_AFTER, Duration::from_millis);
        let own = rustix::process::geteuid().as_raw();
        let usual_bus = runtime.clone().unwrap_or_else(|| format!("/run/user/{own}").into()).join("bus");
        Self { home, runtime, bus, usual_bus: Some(usual_bus), environment, idle_after, aloud }
    }
}

/// Why a hub could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is one already.
    #[error("a hub runs already{}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Running {
        /// Its process, where that is known.
        pid: Option<u32>,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The socket cannot be made.
    #[error("the hub's socket cannot be made: {0}")]
    Socket(std::io::Error),
    /// The loop panicked: an error in Ringer. What it had not written down is behind its cursor, and the next hub takes it.
    #[error("the hub ended by an error of its own: {0}")]
    Panicked(String),
    /// The machine has no threads or descriptors left.
    #[error("the hub cannot start: {0}")]
    Runtime(std::io::Error),
}

/// What the program plugs into a hub.
#[derive(Default)]
pub struct Plugs {
    /// Who owns surfaces.
    pub hosts: Vec<Box<dyn Host>>,
    /// Who carries messages on.
    pub services: Vec<Box<dyn Service>>,
}

/// Runs a hub with these until it is told to end, or has nothing to do. If it cannot, the reason is in the log, in a
/// [`StartFailure`], and with the process that waits for this one.
pub fn run(surroundings: &Surroundings, plugs: Plugs) -> Result<(), RunError> {
    let ran = run_hub(surroundings, plugs);
    match &ran {
        Ok(()) | Err(RunError::Running { .. }) => {}
        Err(error) => report(surroundings, error),
    }
    ran
}

fn report(surroundings: &Surroundings, error: &RunError) {
    let home = &surroundings.home;
    // What another user owns is not written to, also not by root.
    if !matches!(error, RunError::Journal(JournalError::WrongOwner { .. })) {
        Log::open(home.path().join(LOG), false).line(format!("the hub cannot run: {error}"));
    }
    let failure = StartFailure { unix_ms: IdSource::now().unix_ms, why: error.to_string() };
    // Where even that cannot be written, the process that waits still gets the reason.
    let _ = failure.write(home, surroundings.runtime.as_deref());
    if !surroundings.aloud {
        ringer_ipc::tell_failed(&error.to_string());
    }
}

fn run_hub(surroundings: &Surroundings, plugs: Plugs) -> Result<(), RunError> {
    let home = &surroundings.home;
    let journal = Journal::open(home)?;
    let Some(bell) = HubLock::acquire(home)? else {
        return Err(RunError::Running { pid: HubLock::owner(home).map(|holder| holder.pid) });
    };
    let memory = HubStore::open(home)?;
    let log = Log::open(home.path().join(LOG), surroundings.aloud);
    let socket = socket_path(home, surroundings.runtime.as_deref()).map_err(RunError::Socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::Runtime)?;
    let presence =
        Presence { socket, pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
    log.line(format!("hub {} begins, pid {}", presence.version, presence.pid));
    log_panics(&log);
    let ended = runtime.block_on(serve(surroundings, &presence, (journal, memory), bell, plugs, &log));
    runtime.shutdown_timeout(SHUTDOWN_WITHIN);
    // Before the bell: from then on another hub may write its own.
    presence.remove(home);
    log.line("the hub ends");
    let Ended { bell, taken, by_itself } = ended?;
    drop(bell);
    if by_itself {
        start_again_if_behind(surroundings, &taken, &log);
    }
    Ok(())
}

/// Lets every panic of this process be told in the log, also where the process ends by it: a hub in the background has no
/// other place to tell it.
fn log_panics(log: &Log) {
    let (log, before) = (log.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        log.line_unless_busy(format!("an error in Ringer: {info}"));
        before(info);
    }));
}

/// Somebody may have rung between our decision to end and our end, and believes that a hub has heard it.
fn start_again_if_behind(surroundings: &Surroundings, taken: &ReadPosition, log: &Log) {
    let journal = Journal::open_existing(&surroundings.home).ok().flatten();
    let is_behind = |mut journal: Journal| {
        let taken = journal.resume_at(taken)?;
        let spooled = SpoolStatus::of(&surroundings.home, IdSource::now().unix_ms).waiting > 0;
        Ok::<bool, JournalError>(spooled || journal.last_seq()? > taken.cursor.seq)
    };
    if journal.is_some_and(|journal| is_behind(journal).unwrap_or(false)) && !surroundings.aloud {
        log.line("something came in the last moment: starting again");
        if let Ok(program) = std::env::current_exe() {
            let _ = ringer_ipc::start_detached(&program);
        }
    }
}

async fn serve(
    surroundings: &Surroundings,
    presence: &Presence,
    (journal, mut memory): (Journal, HubStore),
    bell: HubLock,
    plugs: Plugs,
    log: &Log,
) -> Result<Ended, RunError> {
    let listener = server::listen(&presence.socket).map_err(RunError::Socket)?;
    presence.write(&surroundings.home).map_err(RunError::Socket)?;
    StartFailure::remove(&surroundings.home, surroundings.runtime.as_deref());
    if !surroundings.aloud {
        ringer_ipc::tell_ready();
    }
    let settings = Settings::read(surroundings.environment.clone(), &surroundings.home);
    let known = memory.popups()?.into_iter().map(|popup| PreviousPopup {
        key: popup.key,
        id: popup.id,
        shown: PopupHandle { number: popup.number, server: popup.server },
    });
    let known: Vec<PreviousPopup> = known.collect();
    let on_desktop = known.iter().map(|popup| popup.id.clone()).collect();
    let (desktop, clicks) = Desktop::new(surroundings.bus.clone(), known, REPLY_DEADLINE);
    let connections = Arc::new(AtomicUsize::new(0));
    let (inputs, heard) = mpsc::channel(MAX_INPUTS);
    let (jobs, to_do) = mpsc::channel(MAX_JOBS);
    let outfit = DeliverySetup::of(&settings.config(), search_path());
    let home = surroundings.home.clone();
    let on_bus = SessionDesktop::new(desktop.clone(), surroundings.usual_bus.clone());
    let performer = Performer::new(outfit, on_bus.clone(), inputs.clone(), on_desktop, home);
    let parts = Parts {
        journal,
        memory,
        bell,
        settings,
        plugs,
        jobs,
        inputs: inputs.downgrade(),
        under_way: Arc::new(AtomicUsize::new(0)),
        connections: Arc::clone(&connections),
        desktop,
        log: log.clone(),
        idle_after: surroundings.idle_after,
    };
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let loop_thread = thread::Builder::new().name("loop".to_owned()).spawn(move || {
        // Whoever waits for the end hears of it when this is dropped, however that comes about.
        let _ended = ended;
        dispatch(parts, heard)
    });
    let loop_thread = loop_thread.map_err(RunError::Runtime)?;
    let signals = wait_for_signal(inputs.clone());
    tokio::select! {
        () = server::serve(listener, inputs, connections, on_bus) => {}
        () = performer.run(to_do, clicks) => {}
        () = signals => {}
        _ = end => {}
    }
    loop_thread.join().unwrap_or_else(|panic| Err(RunError::Panicked(words_of(panic.as_ref()))))
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a word").to_owned()
}

fn dispatch(parts: Parts, heard: mpsc::Receiver<Input>) -> Result<Ended, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::Runtime)?;
    let ended = runtime.block_on(async {
        let dispatcher = Dispatcher::begin(parts).await?;
        Ok(dispatcher.run(heard).await)
    });
    runtime.shutdown_timeout(SHUTDOWN_WITHIN);
    ended
}

/// Waits for SIGTERM or Ctrl-C, tells the loop, and never ends by itself: the loop does.
async fn wait_for_signal(inputs: mpsc::Sender<Input>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let _ = inputs.send(Input::Stop).await;
    std::future::pending::<()>().await;
}
