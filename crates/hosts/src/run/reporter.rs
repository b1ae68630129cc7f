//! Reports to the hub about the program and the person in front of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::{Connect, HostFacts, HostLink, HostOptions, LinkEvent, ProgramReports, ReportMethod};
use ringer_platform::{clear_wakes, wake, wake_pair};
use ringer_term::{TerminalEventKind, parse_title};
use serde::Deserialize;
use serde_json::{Value, json};

use super::focus::Input;

/// How long after a key the person counts as present, and the shortest time between two reports of that.
const TYPED_FOR: Duration = Duration::from_secs(10);
/// How long the end of the program waits for unsent reports.
const FINISH_WITHIN: Duration = Duration::from_millis(500);
/// The longest title that a host may report, in bytes.
const MAX_TITLE: usize = 256;

/// The surface of the program, for the hub.
pub struct HubSurface {
    /// The id of the surface.
    pub surface: SurfaceId,
    /// The description of the surface, if no other host has it.
    pub own: Option<OwnSurface>,
    /// Connects to the hub.
    pub connect: Connect,
    /// The hub's socket.
    pub socket: Option<PathBuf>,
}

/// A surface whose host is this process.
#[derive(Debug, Clone, Default)]
pub struct OwnSurface {
    /// The device of the real terminal.
    pub tty: Option<String>,
    /// The id of its workspace.
    pub workspace: Option<String>,
    /// The terminal may be asked to report focus.
    pub reports_focus: bool,
    /// The ring is shown as a mark in the title.
    pub marks_title: bool,
}

/// An order of the hub.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum HubOrder {
    Ring { surface_id: SurfaceId, lit: bool },
}

/// Tracks the program and the person, and reports to the hub.
#[derive(Debug)]
pub(crate) struct Reporter {
    link: HostLink,
    is_lit: Arc<AtomicBool>,
    /// Readable when the ring or the connection may have changed.
    woken: UnixStream,
    facts: HostFacts,
    surface: SurfaceId,
    /// This process is the host of the surface.
    is_own: bool,
    reports: ProgramReports,
    /// The last title, without a spinner.
    title: String,
    started: Instant,
    has_focus: Option<bool>,
    typed: Option<Instant>,
    presence_reported: Option<Instant>,
}

impl Reporter {
    pub(crate) fn start(hub: HubSurface) -> io::Result<Self> {
        let HubSurface { surface, own, connect, socket } = hub;
        let (woken, wakes) = wake_pair()?;
        let is_lit = Arc::new(AtomicBool::new(false));
        let options = HostOptions {
            attach: json!({ "name": "run" }),
            connect,
            socket,
            // A hub that was stopped stays so until the program has something to report.
            restarts_hub: false,
            is_detached_when_empty: false,
        };
        let (ring, own_surface) = (Arc::clone(&is_lit), surface.clone());
        let link = HostLink::start(options, move |event| {
            match event {
                LinkEvent::Order(HubOrder::Ring { surface_id, lit }) if surface_id == own_surface => {
                    ring.store(lit, Ordering::Relaxed);
                }
                LinkEvent::Connected | LinkEvent::Lost => ring.store(false, Ordering::Relaxed),
                LinkEvent::Order(_) | LinkEvent::Answered => return,
            }
            wake(&wakes);
        });
        let mut facts = HostFacts::default();
        if let Some(own) = &own {
            let opened = json!({ "surface_id": surface, "workspace_id": own.workspace, "tty": own.tty });
            facts.surfaces.insert(surface.to_string(), opened);
        }
        link.set_facts(facts.clone());
        link.begin();
        Ok(Self {
            link,
            is_lit,
            woken,
            facts,
            surface,
            is_own: own.is_some(),
            reports: ProgramReports::default(),
            title: String::new(),
            started: Instant::now(),
            has_focus: None,
            typed: None,
            presence_reported: None,
        })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    pub(crate) fn clear_wakes(&self) {
        clear_wakes(&self.woken);
    }

    /// Returns true if a hub is connected, which shows the program's notifications.
    pub(crate) fn is_attached(&self) -> bool {
        self.link.is_connected()
    }

    /// Returns true if the surface rings.
    pub(crate) fn is_lit(&self) -> bool {
        self.is_lit.load(Ordering::Relaxed)
    }

    /// Handles a report of the program to its terminal.
    pub(crate) fn event(&mut self, event: &TerminalEventKind) {
        // A person in front of the terminal hears the bell.
        if *event == TerminalEventKind::Bell && self.is_looked_at() {
            return;
        }
        if let Some(report) = self.reports.report(self.started.elapsed(), event) {
            self.report(report);
        }
        if let TerminalEventKind::Title(title) = event
            && self.is_own
        {
            self.set_title(parse_title(title).task);
        }
    }

    fn set_title(&mut self, title: &str) {
        if title != self.title && !title.is_empty() {
            title.clone_into(&mut self.title);
            let cut = &title[..title.floor_char_boundary(MAX_TITLE)];
            if let Some(own) = self.facts.surfaces.get_mut(self.surface.as_str()) {
                own["title"] = json!(cut);
            }
            self.link.set_facts(self.facts.clone());
        }
    }

    fn report(&self, mut params: Value) {
        params["surface_id"] = json!(self.surface);
        self.link.report(ReportMethod::Terminal, params);
    }

    /// Handles input of the terminal.
    pub(crate) fn input(&mut self, input: Input) {
        if input.is_typed {
            self.typed = Some(Instant::now());
        }
        if !self.is_own {
            return;
        }
        let is_news = input.has_focus.is_some() && input.has_focus != self.has_focus;
        self.has_focus = input.has_focus.or(self.has_focus);
        let is_due = self.presence_reported.is_none_or(|at| at.elapsed() >= TYPED_FOR);
        if is_news || input.is_typed && is_due {
            self.set_views();
            if input.is_typed {
                self.presence_reported = self.typed;
                self.link.present();
            }
        }
    }

    /// Reports the views. It does not use `surface.typed`, which would report the person as away as soon as they type nothing
    /// here, although they may work in another window.
    fn set_views(&mut self) {
        let view = json!({ "client": "terminal", "surface_id": self.surface });
        let views: Vec<Value> = (self.has_focus == Some(true)).then_some(view).into_iter().collect();
        self.facts.views = Some(json!({ "views": views, "is_complete": self.has_focus.is_some() }));
        self.link.set_facts(self.facts.clone());
    }

    /// Returns true if the person looks at the program, as far as known.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.has_focus.unwrap_or_else(|| self.typed.is_some_and(|at| at.elapsed() < TYPED_FOR))
    }

    /// Reports the end of the program.
    pub(crate) fn finish(self) {
        if let Some(report) = self.reports.ended() {
            self.report(report);
        }
        self.link.finish(FINISH_WITHIN);
    }
}
