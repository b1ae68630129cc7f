//! Runs a hub: takes the lock, binds the socket, and runs the loop until there is nothing left to do.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};
use std::{panic, thread};

use ringer_config::Environment;
use ringer_deliver::{Desktop, PopupHandle, PreviousPopup, REPLY_DEADLINE};
use ringer_ipc::discovery::socket_path;
use ringer_ipc::part::Part;
use ringer_ipc::{HubAddress, StartFailure};
use ringer_journal::{Error as JournalError, Home, HubLock, HubStore, IdSource, Journal, ReadPosition};
use ringer_platform::{path_variable, variable};
use tokio::sync::{Notify, mpsc};

use crate::clock::Clock;
use crate::delivery::executor::JobExecutor;
use crate::delivery::part_calls::PartCalls;
use crate::delivery::session_bus::SessionDesktop;
use crate::delivery::setup::{DeliverySetup, search_path};
use crate::drop_box::DropBoxService;
use crate::error::HubError;
use crate::event_loop::{EventLoop, LoopChannels, LoopExit, MAX_INPUTS};
use crate::log::Log;
use crate::message::{Input, LoopEvent};
use crate::repository_probe::RepositoryProber;
use crate::socket::server::{self, RequestGuard};
use crate::state::{HubState, RandomSource, Settings, TimeSource};

/// How long shutdown waits for threads that are blocked on a disk. Whatever they still do ends with the process.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(1);
/// The most jobs that wait for the executor. It only starts them, so the queue drains quickly.
const MAX_JOBS: usize = 1024;

/// A hub that repaired a file when it started, and meets damage again within this time, does not start another hub. The disk
/// may be failing, and hubs would restart each other forever.
const REPAIR_LASTS: Duration = Duration::from_mins(1);

/// How long an idle hub stays.
const IDLE_AFTER: Duration = Duration::from_mins(10);

/// The system bus if `DBUS_SYSTEM_BUS_ADDRESS` is not set.
const SYSTEM_BUS: &str = "unix:path=/run/dbus/system_bus_socket";

const LOG: &str = "hub.log";

/// The environment and options of a hub.
#[derive(Debug, Clone)]
pub struct HubOptions {
    /// The home. Each home has at most one hub.
    pub home: Home,
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// The address of the session bus.
    pub bus: Option<String>,
    /// The usual path of the session bus socket. It may not exist yet.
    pub usual_bus: Option<PathBuf>,
    /// The address of the system bus, on which logind is reached. `None` disables that.
    pub system_bus: Option<String>,
    /// The variables that locate the settings.
    pub environment: Environment,
    /// How long an idle hub stays.
    pub idle_after: Duration,
    /// Runs in the foreground, and copies the log to standard error.
    pub foreground: bool,
    /// Starts the next hub if this one must end while there is still something to do.
    pub starts_next: bool,
    /// Checks the senders of requests. Without it, every process of this user may send any request.
    pub guard: Option<Arc<dyn RequestGuard>>,
    /// The log of this process.
    pub log: Log,
}

impl HubOptions {
    /// Returns the options for this process's environment.
    pub fn of_process(home: Home, foreground: bool) -> Self {
        let runtime = path_variable("XDG_RUNTIME_DIR");
        let bus = variable("DBUS_SESSION_BUS_ADDRESS").map(|address| address.to_string_lossy().into_owned());
        let bus = bus.or_else(|| {
            let socket = runtime.as_ref()?.join("bus");
            socket.exists().then(|| format!("unix:path={}", socket.display()))
        });
        let environment = Environment {
            ringer_config: path_variable("RINGER_CONFIG"),
            xdg_config_home: path_variable("XDG_CONFIG_HOME"),
            home: path_variable("HOME"),
        };
        let idle = variable("RINGER_HUB_IDLE_MS").and_then(|ms| ms.to_str()?.parse().ok());
        let idle_after = idle.map_or(IDLE_AFTER, Duration::from_millis);
        let own = rustix::process::geteuid().as_raw();
        let usual_bus = runtime.clone().unwrap_or_else(|| format!("/run/user/{own}").into()).join("bus");
        let system_bus = variable("DBUS_SYSTEM_BUS_ADDRESS");
        let system_bus = system_bus.map(|address| address.to_string_lossy().into_owned());
        let log = Log::new(home.path().join(LOG), foreground);
        Self {
            log,
            home,
            runtime,
            bus,
            usual_bus: Some(usual_bus),
            system_bus: Some(system_bus.unwrap_or_else(|| SYSTEM_BUS.to_owned())),
            environment,
            idle_after,
            foreground,
            starts_next: !foreground,
            guard: None,
        }
    }
}

/// Runs a hub until it is told to stop or has been idle for long enough. A failure is logged, written to a [`StartFailure`], and
/// reported to the process that waits for this one to start.
pub fn run(options: &HubOptions, parts: Vec<Box<dyn Part>>) -> Result<(), HubError> {
    let ran = run_hub(options, parts);
    match &ran {
        Ok(()) | Err(HubError::Running { .. }) => {}
        Err(error) => report(options, error),
    }
    ran
}

fn report(options: &HubOptions, error: &HubError) {
    let home = &options.home;
    // Nothing is written to a directory that another user controls, not even by root.
    if !matches!(error, HubError::Journal(JournalError::UnsafeHome { .. })) {
        options.log.quiet_line(format!("the hub cannot run: {error}"));
    }
    let failure = StartFailure { unix_ms: IdSource::now().unix_ms, why: error.to_string() };
    // If this fails too, the waiting process still gets the reason.
    let _ = failure.write(home, options.runtime.as_deref());
    if !options.foreground {
        ringer_ipc::tell_failed(&error.to_string());
    }
}

fn run_hub(options: &HubOptions, parts: Vec<Box<dyn Part>>) -> Result<(), HubError> {
    let home = &options.home;
    home.check_owner()?;
    let Some(lock) = HubLock::acquire(home)? else {
        return Err(HubError::Running { pid: HubLock::owner(home).map(|owner| owner.pid) });
    };
    // A hub that meets damage ends. Files are repaired only here, before this process uses them.
    let (journal, store) = (Journal::open_repaired(home)?, HubStore::open_repaired(home)?);
    let repaired = (journal.repair().is_some() || store.repair().is_some()).then(Instant::now);
    let log = options.log.clone();
    let socket = socket_path(home, options.runtime.as_deref()).map_err(HubError::Socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(HubError::Runtime)?;
    let address =
        HubAddress { socket, pid: std::process::id(), version: env!("CARGO_PKG_VERSION").to_owned() };
    log.line(format!("hub {} begins, pid {}", address.version, address.pid));
    log_panics(&log);
    let drop_box = DropBoxService::start(home, &log);
    if let Err(error) = &drop_box {
        log.line(format!("sandboxes cannot reach the hub: the drop box cannot be used: {error}"));
    }
    let files = (journal, store);
    let exit = runtime.block_on(serve(options, &address, files, lock, parts, &log));
    runtime.shutdown_timeout(SHUTDOWN_WITHIN);
    if let Ok(drop_box) = drop_box {
        drop_box.end(SHUTDOWN_WITHIN);
    }
    // Removed before the lock is dropped, because after that another hub may write its own.
    address.remove(home);
    log.line("the hub ends");
    let is_damage = |error: &HubError| matches!(error, HubError::Journal(error) if error.is_corruption());
    let may_repair = repaired.is_none_or(|at| at.elapsed() > REPAIR_LASTS);
    match exit {
        Ok(LoopExit { lock, unusable: true, .. }) => {
            drop(lock);
            if may_repair {
                start_next(options);
            }
            Ok(())
        }
        Ok(LoopExit { lock, position, was_idle, .. }) => {
            drop(lock);
            if was_idle {
                start_again_if_behind(options, &position, &log);
            }
            Ok(())
        }
        Err(error) => {
            if is_damage(&error) && may_repair {
                start_next(options);
            }
            Err(error)
        }
    }
}

/// Starts the hub that replaces this one.
fn start_next(options: &HubOptions) {
    if options.starts_next
        && let Ok(program) = std::env::current_exe()
    {
        let _ = ringer_ipc::start_detached(&program);
    }
}

/// Logs every panic, including those that end the process. A hub in the background has nowhere else to report them.
fn log_panics(log: &Log) {
    let (log, before) = (log.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        log.line_unless_busy(format!("an error in Ringer: {info}"));
        before(info);
    }));
}

/// Starts another hub if a process rang the doorbell after this one decided to end, and so believes that a hub heard it.
fn start_again_if_behind(options: &HubOptions, position: &ReadPosition, log: &Log) {
    let journal = Journal::open_existing(&options.home).ok().flatten();
    let is_behind = |mut journal: Journal| {
        let position = journal.resume_at(position)?;
        Ok::<bool, JournalError>(journal.has_spooled_events()? || journal.last_seq()? > position.cursor.seq)
    };
    if journal.is_some_and(|journal| is_behind(journal).unwrap_or(false)) && options.starts_next {
        log.line("something came in the last moment: starting again");
        start_next(options);
    }
}

async fn serve(
    options: &HubOptions,
    address: &HubAddress,
    (journal, mut store): (Journal, HubStore),
    lock: HubLock,
    parts: Vec<Box<dyn Part>>,
    log: &Log,
) -> Result<LoopExit, HubError> {
    let listener = server::listen(&address.socket).map_err(HubError::Socket)?;
    address.write(&options.home).map_err(HubError::Socket)?;
    StartFailure::remove(&options.home, options.runtime.as_deref());
    if !options.foreground {
        ringer_ipc::tell_ready();
    }
    let settings = Settings::read(options.environment.clone(), &options.home);
    let known = store.popups()?.into_iter().map(|popup| PreviousPopup {
        key: popup.key,
        id: popup.id,
        handle: PopupHandle { number: popup.number, server: popup.server },
        offer: popup.offer,
    });
    let known: Vec<PreviousPopup> = known.collect();
    let on_desktop = known.iter().map(|popup| popup.id.clone()).collect();
    let (desktop, clicks) = Desktop::new(options.bus.clone(), known, REPLY_DEADLINE);
    let clients = Arc::new(AtomicUsize::new(0));
    let (inputs, received) = mpsc::channel(MAX_INPUTS);
    let (jobs, queued) = mpsc::channel(MAX_JOBS);
    let setup = DeliverySetup::of(&settings.config(), search_path());
    let home = options.home.clone();
    let on_bus = SessionDesktop::new(desktop.clone(), options.usual_bus.clone());
    let calls = PartCalls::of(&parts);
    let executor = JobExecutor::new(setup, on_bus.clone(), inputs.clone(), on_desktop, home, calls);
    let settings_changes = report_settings(options, inputs.clone());
    let login_session = report_login_session(options, inputs.clone(), executor.deliveries());
    let channels = LoopChannels {
        jobs,
        inputs: inputs.downgrade(),
        clients: Arc::clone(&clients),
        desktop,
        log: log.clone(),
        idle_after: options.idle_after,
    };
    let setup = LoopSetup { files: (journal, store), lock, settings, parts, channels };
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let loop_thread = thread::Builder::new().name("loop".to_owned()).spawn(move || {
        // Dropped when the loop ends, also by a panic.
        let _ended = ended;
        run_loop(setup, received)
    });
    let loop_thread = loop_thread.map_err(HubError::Runtime)?;
    let signals = wait_for_signal(inputs.clone());
    tokio::select! {
        () = server::serve(listener, inputs, clients, on_bus, options.guard.clone()) => {}
        () = executor.run(queued, clicks) => {}
        () = signals => {}
        () = login_session => {}
        () = settings_changes => {}
        _ = end => {}
    }
    loop_thread.join().unwrap_or_else(|panic| Err(HubError::Panicked(words_of(panic.as_ref()))))
}

/// Reports the person's desktop session to the loop, where logind exists. Never returns.
async fn report_login_session(options: &HubOptions, inputs: mpsc::Sender<Input>, deliveries: Arc<Notify>) {
    #[cfg(not(target_os = "macos"))]
    if let Some(bus) = &options.system_bus {
        crate::login_session::report(bus, inputs, &deliveries).await;
    }
    #[cfg(target_os = "macos")]
    drop((options, inputs, deliveries));
    std::future::pending::<()>().await;
}

/// Reports changes of the settings to the loop, where the system announces file changes. Never returns.
async fn report_settings(options: &HubOptions, inputs: mpsc::Sender<Input>) {
    #[cfg(target_os = "linux")]
    if let Some(path) = ringer_config::user_path(&options.environment) {
        crate::settings_watch::report(path, inputs).await;
    }
    #[cfg(not(target_os = "linux"))]
    drop((options, inputs));
    std::future::pending::<()>().await;
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a word").to_owned()
}

struct LoopSetup {
    files: (Journal, HubStore),
    lock: HubLock,
    settings: Settings,
    parts: Vec<Box<dyn Part>>,
    channels: LoopChannels,
}

fn run_loop(setup: LoopSetup, inputs: mpsc::Receiver<Input>) -> Result<LoopExit, HubError> {
    let LoopSetup { files, lock, settings, parts, channels } = setup;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(HubError::Runtime)?;
    let exit = runtime.block_on(async {
        let probers = RepositoryProber::new(settings.home(), channels.log.clone());
        let sources = (TimeSource::System, RandomSource::System);
        let state = HubState::new(files, Some(lock.spool_lock()), settings, parts, Clock::local(), sources)?;
        let event_loop = EventLoop::begin(state, lock, channels, probers).await?;
        Ok(event_loop.run(inputs).await)
    });
    runtime.shutdown_timeout(SHUTDOWN_WITHIN);
    exit
}

/// Sends [`LoopEvent::Stop`] on SIGTERM or Ctrl-C. Never returns, because the loop decides when to end.
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
    let _ = inputs.send(Input::Event(LoopEvent::Stop)).await;
    std::future::pending::<()>().await;
}
