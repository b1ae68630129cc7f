//! The host of one server: reads its state when the doorbell rings, reports changes to the hub, and draws the rings that the hub
//! asks for.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ringer_config::OnePane;
use ringer_core::message::{ShownKind, SurfaceId, TmuxSurface};
use ringer_ipc::{HostFacts, HostLink, HostOptions, HubClient, LinkEvent, ReportMethod};
use ringer_journal::{ControllingTerminal, Home};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::drawing::{Drawing, PaneRing, undraw};
use crate::scan::{ScannedClients, Scanning};
use crate::server::{DOORBELL, TmuxError, TmuxServer};
use crate::setup;
use crate::snapshot::{FocusReports, Pane, Snapshot, View, Views, commands};

/// The shortest time between two snapshots. Titles with spinners change ten times a second.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);

/// What wakes a host.
enum Wakeup {
    /// Something changed in the server.
    Doorbell,
    /// The server no longer answers.
    ServerGone,
    Hub(LinkEvent<HostCommand>),
}

struct Host {
    home: Home,
    server: TmuxServer,
    link: HostLink,
    snapshot: Snapshot,
    focus_reports: FocusReports,
    rings: BTreeMap<String, PaneRing>,
    drawing: Drawing,
    /// The setting for rings in windows with one pane.
    one_pane: Arc<Mutex<OnePane>>,
    scanning: Arc<Scanning>,
    clients: ScannedClients,
    last_snapshot: Option<Instant>,
    /// When to take the next snapshot.
    next_snapshot: Option<Instant>,
}

/// Serves one server until it has gone, or Ringer was removed from it.
pub(crate) fn run(
    home: &Home,
    server: &TmuxServer,
    one_pane: &Arc<Mutex<OnePane>>,
    scanning: &Arc<Scanning>,
) -> Result<(), TmuxError> {
    if !setup::is_installed(server, home) {
        return Ok(());
    }
    setup::install(server, home)?;
    undraw(server)?;
    let (wake, wakeups) = channel();
    let hub_sender = wake.clone();
    let own_home = home.clone();
    let options = HostOptions {
        attach: json!({ "name": "tmux", "version": 1 }),
        connect: Box::new(move |_| HubClient::connect(&own_home).ok()),
        socket: None,
        restarts_hub: false,
        is_detached_when_empty: false,
    };
    let link = HostLink::start(options, move |event| {
        let _ = hub_sender.send(Wakeup::Hub(event));
    });
    link.begin();
    spawn_doorbell_thread(server.clone(), wake);
    let mut host = Host {
        home: home.clone(),
        server: server.clone(),
        link,
        snapshot: Snapshot::default(),
        focus_reports: FocusReports::default(),
        rings: BTreeMap::new(),
        drawing: Drawing::default(),
        one_pane: one_pane.clone(),
        scanning: scanning.clone(),
        clients: ScannedClients::default(),
        last_snapshot: None,
        next_snapshot: Some(Instant::now()),
    };
    let ended = host.serve(&wakeups);
    drop(wakeups);
    // Ends the thread that waits for the doorbell. If the server has gone, it has ended already.
    let _ = server.run(&["wait-for", "-S", DOORBELL]);
    ended
}

/// Starts the thread that waits for the doorbell.
fn spawn_doorbell_thread(server: TmuxServer, wake: Sender<Wakeup>) {
    thread::spawn(move || {
        // tmux gives the next signal to a waiter that was killed, so signal once for it.
        let mut waited = server.run(&["wait-for", "-S", DOORBELL]).map(drop);
        while waited.is_ok() {
            waited = server.wait();
            if waited.is_ok() && wake.send(Wakeup::Doorbell).is_err() {
                return;
            }
        }
        let _ = wake.send(Wakeup::ServerGone);
    });
}

impl Host {
    fn serve(&mut self, wakeups: &Receiver<Wakeup>) -> Result<(), TmuxError> {
        loop {
            let wakeup = match self.next_snapshot {
                Some(at) => wakeups.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => wakeups.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let first = match wakeup {
                Ok(wakeup) => Some(wakeup),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            for wakeup in first.into_iter().chain(wakeups.try_iter()) {
                match wakeup {
                    Wakeup::Doorbell => self.schedule_snapshot(),
                    Wakeup::Hub(LinkEvent::Order(command)) => self.handle_command(command),
                    // The next hub says which panes ring.
                    Wakeup::Hub(LinkEvent::Lost) => self.rings.clear(),
                    Wakeup::Hub(LinkEvent::Connected | LinkEvent::Answered) => {}
                    Wakeup::ServerGone => return Ok(()),
                }
            }
            if self.next_snapshot.is_some_and(|at| at <= Instant::now()) && !self.take_snapshot()? {
                return Ok(());
            }
            let one_pane = *self.one_pane.lock().unwrap_or_else(PoisonError::into_inner);
            self.drawing.draw(&self.server, &self.snapshot, &self.rings, one_pane)?;
        }
    }

    fn schedule_snapshot(&mut self) {
        let now = Instant::now();
        let next = self.last_snapshot.map_or(now, |last| now.max(last + SNAPSHOT_INTERVAL));
        self.next_snapshot = Some(self.next_snapshot.map_or(next, |at| at.min(next)));
    }

    fn handle_command(&mut self, command: HostCommand) {
        let HostCommand::Ring { surface_id, lit, unread, kind } = command;
        let Some(TmuxSurface { pane, .. }) = surface_id.tmux() else { return };
        if lit {
            let before = self.rings.insert(pane.to_owned(), PaneRing { unread, kind });
            // A client that does not report focus counts as looked at only shortly after a key, so the views may be outdated.
            if before.is_none() {
                self.schedule_snapshot();
            }
        } else {
            self.rings.remove(pane);
        }
    }

    /// Reads the state of the server and reports changes to the hub. Returns false if Ringer was removed from the server.
    fn take_snapshot(&mut self) -> Result<bool, TmuxError> {
        self.last_snapshot = Some(Instant::now());
        let text = match self.server.run(&commands()) {
            Ok(text) => text,
            Err(TmuxError::Refused(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let before = std::mem::replace(&mut self.snapshot, Snapshot::parse(&text));
        if self.snapshot.host_home != setup::mark_of(&self.home) {
            return Ok(false);
        }
        if self.snapshot.has_new_client(&before) {
            // The person may have reloaded tmux.conf, which can replace hooks.
            setup::install(&self.server, &self.home)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let (views, again) = self.focus_reports.views(&self.snapshot, now);
        self.next_snapshot =
            again.map(|at| Instant::now() + Duration::from_secs(u64::try_from(at - now).unwrap_or(0)));
        let facts = self.facts(&views);
        self.link.set_facts(facts);
        self.rings.retain(|pane, _| self.snapshot.panes.contains_key(pane));
        // A bell is news only in a pane that the person does not look at and that has nothing unread. With something unread the
        // bell may be the hub's own: it rings the bell of terminals that show no notifications.
        let is_news = |pane: &&str| {
            !self.rings.contains_key(*pane) && views.views.iter().all(|view| view.pane != **pane)
        };
        let bells: Vec<SurfaceId> =
            self.snapshot.bells().filter(is_news).map(|pane| self.surface(pane)).collect();
        for surface in bells {
            self.link.report(ReportMethod::Terminal, json!({ "surface_id": surface, "bell": true }));
        }
        let is_seen = |pane: &&str| views.views.iter().any(|view| view.pane == **pane);
        let active: Vec<SurfaceId> =
            self.snapshot.activity().filter(|pane| !is_seen(pane)).map(|pane| self.surface(pane)).collect();
        for surface in active {
            self.link.report(ReportMethod::Unread, json!({ "surface_id": surface }));
        }
        self.clients.scan(&self.server, &self.snapshot, self.home.path(), &self.scanning)?;
        Ok(true)
    }

    /// Returns the panes and the views for the hub.
    fn facts(&self, views: &Views) -> HostFacts {
        let mut terminals = ClientTerminals::default();
        let describe = |(id, pane): (&String, &Pane)| {
            let surface = self.surface(id);
            let title = (!pane.title.is_empty()).then_some(cut(&pane.title));
            let parent = self.snapshot.client_of(pane).and_then(|client| terminals.of_process(client));
            let described = json!({ "surface_id": surface, "tty": pane.tty, "title": title,
                               "place": cut(&pane.place), "parent": parent });
            (surface.to_string(), described)
        };
        let surfaces = self.snapshot.panes.iter().map(describe).collect();
        let view = |view: &View| json!({ "client": view.client, "surface_id": self.surface(&view.pane) });
        let listed: Vec<Value> = views.views.iter().map(view).collect();
        let views = Some(json!({ "views": listed, "is_complete": views.is_complete }));
        HostFacts { surfaces, views }
    }

    fn surface(&self, pane: &str) -> SurfaceId {
        let socket = self.server.socket().to_string_lossy();
        TmuxSurface { socket: &socket, server: &self.snapshot.pid, pane }.id()
    }
}

/// Caches the terminal of each tmux client.
#[derive(Default)]
struct ClientTerminals {
    surfaces: BTreeMap<u32, Option<String>>,
}

impl ClientTerminals {
    /// The surface that a client runs in: its terminal, which may be a pane of another server.
    fn of_process(&mut self, client: u32) -> Option<String> {
        let surface = || ControllingTerminal::of(client).map(|terminal| terminal.surface());
        self.surfaces.entry(client).or_insert_with(surface).clone()
    }
}

/// Shortens a text to the limit of the hub.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(256)]
}

/// A command from the hub that tmux can execute.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum HostCommand {
    Ring {
        surface_id: SurfaceId,
        lit: bool,
        #[serde(default)]
        unread: usize,
        #[serde(default)]
        kind: Option<ShownKind>,
    },
}
