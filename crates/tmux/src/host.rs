//! The host of one server: looks when the doorbell rings, tells the hub, draws what the hub orders.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ringer_core::attention::OnePane;
use ringer_core::message::{ShownKind, SurfaceId, TmuxSurface};
use ringer_ipc::{HostConnection, HubClientError};
use ringer_journal::{ControllingTerminal, Home};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::drawing::{Drawing, PaneRing, undraw};
use crate::look::{FocusReports, Look, Views, commands};
use crate::scan::{Scanning, SeenClients};
use crate::server::{DOORBELL, TmuxError, TmuxServer};
use crate::setup;

/// The shortest time between two looks. Titles with spinners change ten times a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Surfaces that are told of in one request.
const MAX_TOGETHER: usize = 500;

/// Why a host cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error(transparent)]
    Tmux(#[from] TmuxError),
    #[error(transparent)]
    Hub(#[from] HubClientError),
}

/// What wakes a host.
enum Wakeup {
    /// Something changed in the server.
    Doorbell,
    /// The server does not answer any more.
    ServerGone,
    Order(Order),
    /// The hub ended the connection.
    HubGone,
}

/// Why a host has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server is gone, or does not want Ringer any more.
    Server,
    /// The hub is gone, or cut it off.
    Hub,
}

struct Host {
    home: Home,
    server: TmuxServer,
    connection: HostConnection,
    look: Look,
    /// What the hub was told.
    views: Option<Views>,
    reports: FocusReports,
    rings: BTreeMap<String, PaneRing>,
    drawing: Drawing,
    /// How a ring shows in a window with one pane.
    one_pane: Arc<Mutex<OnePane>>,
    scanning: Arc<Scanning>,
    clients: SeenClients,
    /// What the hub was told of each pane.
    told: BTreeMap<String, Value>,
    looked: Option<Instant>,
    /// When to look again without being told to.
    look_at: Option<Instant>,
}

/// Serves one server until it or the hub is gone.
pub(crate) fn run(
    home: &Home,
    server: &TmuxServer,
    one_pane: &Arc<Mutex<OnePane>>,
    scanning: &Arc<Scanning>,
) -> Result<Ended, HostError> {
    if !setup::is_installed(server, home) {
        return Ok(Ended::Server);
    }
    setup::install(server, home)?;
    undraw(server)?;
    let (wake, wakeups) = channel();
    let of_hub = wake.clone();
    let connection = HostConnection::attach(
        home,
        &json!({ "name": "tmux", "version": 1 }),
        move |order: Option<Order>| {
            let _ = of_hub.send(order.map_or(Wakeup::HubGone, Wakeup::Order));
        },
    )?;
    start_waiting(server.clone(), wake);
    let mut host = Host {
        home: home.clone(),
        server: server.clone(),
        connection,
        look: Look::default(),
        views: None,
        reports: FocusReports::default(),
        rings: BTreeMap::new(),
        drawing: Drawing::default(),
        one_pane: one_pane.clone(),
        scanning: scanning.clone(),
        clients: SeenClients::default(),
        told: BTreeMap::new(),
        looked: None,
        look_at: Some(Instant::now()),
    };
    let ended = host.serve(&wakeups);
    drop(wakeups);
    // So that the one that waits for the doorbell ends, too. If the server is gone, it has.
    let _ = server.run(&["wait-for", "-S", DOORBELL]);
    ended
}

/// Waits for the doorbell, on a thread of its own.
fn start_waiting(server: TmuxServer, wake: Sender<Wakeup>) {
    thread::spawn(move || {
        // One that waited and was killed takes the next ring with it.
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
    fn serve(&mut self, wakeups: &Receiver<Wakeup>) -> Result<Ended, HostError> {
        loop {
            let wakeup = match self.look_at {
                Some(at) => wakeups.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => wakeups.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let first = match wakeup {
                Ok(wakeup) => Some(wakeup),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Hub),
            };
            for wakeup in first.into_iter().chain(wakeups.try_iter()) {
                match wakeup {
                    Wakeup::Doorbell => self.look_soon(),
                    Wakeup::Order(order) => self.order(order),
                    Wakeup::ServerGone => return Ok(Ended::Server),
                    Wakeup::HubGone => return Ok(Ended::Hub),
                }
            }
            if self.look_at.is_some_and(|at| at <= Instant::now()) && !self.look()? {
                return Ok(Ended::Server);
            }
            let one_pane = *self.one_pane.lock().unwrap_or_else(PoisonError::into_inner);
            self.drawing.draw(&self.server, &self.look, &self.rings, one_pane)?;
        }
    }

    fn look_soon(&mut self) {
        let now = Instant::now();
        let next = self.looked.map_or(now, |looked| now.max(looked + LOOK_EVERY));
        self.look_at = Some(self.look_at.map_or(next, |at| at.min(next)));
    }

    fn order(&mut self, order: Order) {
        let Order::Ring { surface_id, lit, unread, kind } = order;
        let Some(TmuxSurface { pane, .. }) = surface_id.tmux() else { return };
        if lit {
            let before = self.rings.insert(pane.to_owned(), PaneRing { unread, kind });
            // Whether a client that does not report focus is looked at is only known by looking.
            if before.is_none() {
                self.look_soon();
            }
        } else {
            self.rings.remove(pane);
        }
    }

    /// Reads the state of the server and tells the hub what changed. Gives whether Ringer is still wanted there.
    fn look(&mut self) -> Result<bool, HostError> {
        self.looked = Some(Instant::now());
        let text = match self.server.run(&commands()) {
            Ok(text) => text,
            Err(TmuxError::Refused(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let before = std::mem::replace(&mut self.look, Look::parse(&text));
        if self.look.wanted != setup::mark_of(&self.home) {
            return Ok(false);
        }
        if self.look.has_new_client(&before) {
            // The person's own settings may have replaced hooks meanwhile.
            setup::install(&self.server, &self.home)?;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let (views, again) = self.reports.views(&self.look, now);
        self.look_at =
            again.map(|at| Instant::now() + Duration::from_secs(u64::try_from(at - now).unwrap_or(0)));
        self.tell_panes()?;
        // Where the person looks they heard it. Where something is unread it says nothing new, and may be the hub's own: it
        // rings the bell of terminals that show no notifications.
        let is_news = |pane: &&str| {
            !self.rings.contains_key(*pane) && views.views.iter().all(|view| view.pane != **pane)
        };
        let bells: Vec<SurfaceId> =
            self.look.bells().filter(is_news).map(|pane| self.surface(pane)).collect();
        for surface in bells {
            self.connection.send("surface.heard", &json!({ "surface_id": surface, "bell": true }))?;
        }
        self.clients.scan(&self.server, &self.look, self.home.path(), &self.scanning)?;
        if self.views.as_ref() != Some(&views) {
            let listed: Vec<_> = views
                .views
                .iter()
                .map(|view| json!({ "client": view.client, "surface_id": self.surface(&view.pane) }))
                .collect();
            self.connection
                .send("surface.looks", &json!({ "views": listed, "is_complete": views.is_complete }))?;
            self.views = Some(views);
        }
        Ok(true)
    }

    /// Tells the hub of panes that came, changed or went.
    fn tell_panes(&mut self) -> Result<(), HostError> {
        let mut terminals = Terminals::default();
        let now: BTreeMap<String, Value> = self
            .look
            .panes
            .iter()
            .map(|(id, pane)| {
                let title = (!pane.title.is_empty()).then_some(cut(&pane.title));
                let parent = self.look.client_of(pane).and_then(|client| terminals.of_process(client));
                let told = json!({ "surface_id": self.surface(id), "tty": pane.tty, "title": title,
                                   "place": cut(&pane.place), "parent": parent });
                (id.clone(), told)
            })
            .collect();
        let before = std::mem::replace(&mut self.told, now);
        let changed = self.told.iter().filter(|(id, pane)| before.get(*id) != Some(pane));
        let changed: Vec<&Value> = changed.map(|(_, pane)| pane).collect();
        for together in changed.chunks(MAX_TOGETHER) {
            self.connection.send("surface.opened", &json!({ "surfaces": together }))?;
        }
        for (id, pane) in before.iter().filter(|(id, _)| !self.told.contains_key(*id)) {
            self.rings.remove(id);
            self.connection.send("surface.closed", &json!({ "surface_id": pane["surface_id"] }))?;
        }
        Ok(())
    }

    fn surface(&self, pane: &str) -> SurfaceId {
        let socket = self.server.socket().to_string_lossy();
        TmuxSurface { socket: &socket, server: &self.look.pid, pane }.id()
    }
}

/// The terminals in which clients run, each looked up once.
#[derive(Default)]
struct Terminals {
    known: BTreeMap<u32, Option<String>>,
}

impl Terminals {
    /// The surface around what a client shows: its terminal, which may be a pane of another server.
    fn of_process(&mut self, client: u32) -> Option<String> {
        let surface = || ControllingTerminal::of(client).map(|terminal| terminal.surface());
        self.known.entry(client).or_insert_with(surface).clone()
    }
}

/// As much as a host may say.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(256)]
}

/// What the hub orders, as far as tmux can do it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum Order {
    Ring {
        surface_id: SurfaceId,
        lit: bool,
        #[serde(default)]
        unread: usize,
        #[serde(default)]
        kind: Option<ShownKind>,
    },
}
