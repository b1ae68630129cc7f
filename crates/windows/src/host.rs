//! The host: finds the windows of surfaces, follows displays and kitties, and brings a surface to the front when the hub asks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::{HostFacts, HostLink, HostOptions, HubClient, LinkEvent};
use ringer_journal::{Home, ProcessStat};
use ringer_platform::clear_wakes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use crate::display::{ActiveWindow, Display, DisplayError, DisplayEvent, WindowId};
use crate::display_name::DisplayName;
use crate::kitties::Kitties;
use crate::kitty::{KittyAddress, KittyError};
use crate::kitty_marks::KittyMarks;
use crate::kitty_worker::{KittyEvent, KittyWorker};
use crate::terminal::{Terminal, TerminalWindow};
use crate::visibility::{SurfaceWindow, Visibility, visibility};
use crate::wakeup::{HostCommand, Waker, Wakeup};

/// The most surfaces that are followed; each takes a descriptor.
const MAX_SURFACES: usize = 256;
/// The timeout of a focus command. The hub waits for two seconds.
const FOCUS_TIMEOUT: Duration = Duration::from_millis(1500);
/// The most distinct lines that are logged.
const MAX_LOGGED: usize = 64;

/// A surface whose window is known.
struct Surface {
    tty: String,
    shown_in: SurfaceWindow,
    /// A pidfd of the session leader. It becomes readable when the terminal is closed.
    leader_fd: OwnedFd,
}

/// A focus command that is not finished.
struct PendingFocus {
    surface: SurfaceId,
    /// The window that must become active. `None` while kitty has not answered, or if no display reports the active window.
    window: Option<(DisplayName, WindowId)>,
    deadline: Instant,
}

pub(crate) struct Host {
    waker: Waker,
    log: Box<dyn Fn(String) + Send>,
    logged: BTreeSet<String>,
    hub: HostLink,
    surfaces: BTreeMap<SurfaceId, Surface>,
    unusable: UnusableSurfaces,
    displays: BTreeMap<DisplayName, Display>,
    kitties: Kitties,
    pending_focus: Vec<PendingFocus>,
    /// The kitties that were listed since the last report to the hub, and when they were queried, in milliseconds since 1970.
    listed: BTreeMap<KittyAddress, i64>,
    marks: KittyMarks,
}

impl Host {
    pub(crate) fn new(home: Home, waker: Waker, log: Box<dyn Fn(String) + Send>) -> Self {
        Self {
            hub: start_link(home, waker.clone()),
            waker,
            log,
            logged: BTreeSet::new(),
            surfaces: BTreeMap::new(),
            unusable: UnusableSurfaces::default(),
            displays: BTreeMap::new(),
            kitties: Kitties::default(),
            pending_focus: Vec::new(),
            listed: BTreeMap::new(),
            marks: KittyMarks::default(),
        }
    }

    /// Runs until the process ends. `begin` is called before an active surface is examined.
    pub(crate) fn run(mut self, polled: &UnixStream, wakeups: &Receiver<Wakeup>, begin: impl Fn(&SurfaceId)) {
        loop {
            for wakeup in wakeups.try_iter() {
                match wakeup {
                    Wakeup::SurfaceActive(surface) => {
                        begin(&surface);
                        self.surface_active(surface);
                    }
                    Wakeup::Command(HostCommand::Focus { surface_id }) => self.focus(surface_id),
                    Wakeup::Command(HostCommand::Ring { surface_id, lit }) => {
                        self.marks.ring(&surface_id, lit);
                    }
                    Wakeup::TitleMarks(are_on) => self.marks.set_enabled(are_on),
                    Wakeup::Kitty(kitty, event) => self.handle_kitty_event(&kitty, event),
                }
            }
            // A reply to a request may have arrived together with events.
            while self.read_displays() {}
            self.expire_pending_focus();
            self.update_hub();
            self.wait(polled);
        }
    }

    fn visibility(&self) -> Visibility {
        let active =
            |name: &DisplayName| self.displays.get(name).map_or(ActiveWindow::Unknown, Display::active);
        let surfaces = self.surfaces.iter().map(|(id, surface)| (id, &surface.shown_in));
        visibility(surfaces, active, self.kitties.states())
    }

    fn update_hub(&mut self) {
        let visibility = self.visibility();
        let shown_in = self.surfaces.iter().map(|(id, surface)| (id, &surface.shown_in));
        self.marks.update(shown_in, &self.kitties, |kitty| self.listed.contains_key(kitty));
        self.hub.set_facts(self.facts(&visibility));
        let listed = std::mem::take(&mut self.listed);
        for surface in &visibility.glanced_at {
            if let Some(SurfaceWindow::Kitty { kitty, .. }) =
                self.surfaces.get(surface).map(|own| &own.shown_in)
                && let Some(requested_ms) = listed.get(kitty)
            {
                // It would not be noticed when the person looks away, so this says nothing about later notifications.
                let glance = json!({ "surface_id": surface, "at_ms": requested_ms });
                self.hub.moment("surface.glanced", glance);
            }
        }
        let surfaces = &self.surfaces;
        let shown_in = || surfaces.values().map(|surface| &surface.shown_in);
        self.kitties.retain(|own| {
            shown_in().any(|shown_in| matches!(shown_in, SurfaceWindow::Kitty { kitty, .. } if kitty == own))
        });
        self.displays.retain(|name, _| shown_in().any(|shown_in| shown_in.display() == Some(name)));
    }

    fn facts(&self, visibility: &Visibility) -> HostFacts {
        let describe = |(id, surface): (&SurfaceId, &Surface)| {
            let reports_looks = !visibility.unreported.contains(id);
            let described = json!({ "surface_id": id, "tty": surface.tty, "reports_looks": reports_looks });
            (id.to_string(), described)
        };
        // Each surface is its own client: it has its own window.
        let view = |surface: &SurfaceId| json!({ "client": surface, "surface_id": surface });
        let views: Vec<Value> = visibility.looked_at.iter().map(view).collect();
        let views = Some(json!({ "views": views }));
        HostFacts { surfaces: self.surfaces.iter().map(describe).collect(), views }
    }

    /// Waits until something happens.
    fn wait(&mut self, polled: &UnixStream) {
        let deadline = self.pending_focus.iter().map(|focus| focus.deadline).min();
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let ends = self.surfaces.values().map(|surface| surface.leader_fd.as_fd());
        let displays = self.displays.values().map(AsFd::as_fd);
        let all = ends.chain(displays).chain([polled.as_fd()]);
        let mut descriptors: Vec<PollFd<'_>> =
            all.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        if poll(&mut descriptors, left.as_ref()).is_err() {
            // Interrupted by a signal.
            return;
        }
        let ended: Vec<SurfaceId> = self
            .surfaces
            .keys()
            .zip(&descriptors)
            .filter(|(_, end)| !end.revents().is_empty())
            .map(|(surface, _)| surface.clone())
            .collect();
        drop(descriptors);
        clear_wakes(polled);
        for surface in ended {
            self.surfaces.remove(&surface);
        }
    }

    /// Finds the window of a surface, or lists its kitty again.
    fn surface_active(&mut self, surface: SurfaceId) {
        if let Some(known) = self.surfaces.get(&surface) {
            if let SurfaceWindow::Kitty { kitty, .. } = &known.shown_in
                && self.visibility().unreported.contains(&surface)
                && let Some(worker) = self.kitties.worker(kitty)
            {
                worker.list();
            }
            return;
        }
        if self.unusable.contains(&surface) || self.surfaces.len() >= MAX_SURFACES {
            return;
        }
        match Terminal::of(&surface) {
            Some(terminal) => match terminal.kitty.clone() {
                Some(kitty) => self.kitties.add(&kitty, (surface, terminal), &self.waker),
                None => self.find_window(surface, terminal, |_| true),
            },
            None => self.unusable.add(surface),
        }
    }

    /// Answers a focus command that succeeded. The new views are reported first, as far as they are known: a kitty lists its
    /// windows a moment later.
    fn focus_succeeded(&mut self, surface: &SurfaceId) {
        self.update_hub();
        self.answer_focus(surface, None);
    }

    fn answer_focus(&self, surface: &SurfaceId, why: Option<&str>) {
        self.hub.moment("surface.focused", json!({ "surface_id": surface, "why": why }));
    }

    fn add(&mut self, surface: SurfaceId, terminal: Terminal, shown_in: SurfaceWindow) {
        let pid = i32::try_from(terminal.leader.pid).ok().and_then(Pid::from_raw);
        let leader_fd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        // Checked after opening the pidfd, because pids are reused.
        let started = ProcessStat::of(terminal.leader.pid).map(|stat| stat.started);
        let is_same = started == surface.tty().map(|plain| plain.leader_started);
        match leader_fd.filter(|_| is_same) {
            Some(leader_fd) => {
                self.unusable.remove(&surface);
                self.surfaces.insert(surface, Surface { tty: terminal.tty, shown_in, leader_fd });
            }
            None => self.unusable.add(surface),
        }
    }

    /// Looks up the X11 window that a terminal names, and uses it if `is_right` accepts its class.
    fn find_window(&mut self, surface: SurfaceId, terminal: Terminal, is_right: impl Fn(&str) -> bool) {
        let (Some(name), Some(window)) = (terminal.display.clone(), terminal.window) else {
            return self.unusable.add(surface);
        };
        let found = self.on_display(&name, |display| {
            let found = TerminalWindow::find(display, &terminal, window)?;
            found.iter().try_for_each(|own| display.watch(own.id, false))?;
            Ok(found)
        });
        let found = found.and_then(Result::ok).filter(|window| is_right(&window.class));
        let Some(TerminalWindow { id, is_alone, .. }) = found else { return self.unusable.add(surface) };
        let shown_in = SurfaceWindow::Window { display: name, window: id, is_alone };
        self.add(surface, terminal, shown_in);
    }

    /// Runs `ask` on a display, connecting first if necessary. A display that fails is disconnected.
    fn on_display<T>(
        &mut self,
        name: &DisplayName,
        ask: impl FnOnce(&mut Display) -> Result<T, DisplayError>,
    ) -> Option<T> {
        let connected = match self.displays.remove(name) {
            Some(display) => Ok(display),
            None => Display::connect(name),
        };
        let result = connected.and_then(|mut display| ask(&mut display).map(|answer| (answer, display)));
        match result {
            Ok((answer, display)) => {
                self.displays.insert(name.clone(), display);
                Some(answer)
            }
            Err(error) => {
                self.lose_display(name, &error);
                None
            }
        }
    }

    /// Forgets a display that has gone or hangs, with its windows.
    fn lose_display(&mut self, name: &DisplayName, error: &DisplayError) {
        self.displays.remove(name);
        let lost = |surface: &Surface| matches!(&surface.shown_in, SurfaceWindow::Window { display, .. } if display == name);
        let lost: Vec<SurfaceId> =
            self.surfaces.iter().filter(|(_, own)| lost(own)).map(|(id, _)| id.clone()).collect();
        for surface in lost {
            self.surfaces.remove(&surface);
            self.unusable.add(surface);
        }
        self.log_once(format!("display {name}: {error}"));
    }

    fn log_once(&mut self, line: String) {
        if self.logged.len() < MAX_LOGGED && self.logged.insert(line.clone()) {
            (self.log)(line);
        }
    }

    /// Handles the events of all displays. Returns true if there were any.
    fn read_displays(&mut self) -> bool {
        let names: Vec<DisplayName> = self.displays.keys().cloned().collect();
        let mut has_any = false;
        for name in names {
            for event in self.on_display(&name, Display::events).unwrap_or_default() {
                has_any = true;
                self.handle_display_event(&name, event);
            }
        }
        has_any
    }

    fn handle_display_event(&mut self, name: &DisplayName, event: DisplayEvent) {
        let active = self.displays.get(name).map_or(ActiveWindow::Unknown, Display::active);
        match event {
            DisplayEvent::Active => {
                let ActiveWindow::Known(window) = active else { return };
                if let Some(pid) = self.on_display(name, |display| display.pid(window)).flatten() {
                    self.kitties.activated(pid);
                }
                let is_active = |focus: &PendingFocus| {
                    focus.window.as_ref().is_some_and(|(on, wanted)| on == name && *wanted == window)
                };
                let done: Vec<PendingFocus> =
                    self.pending_focus.extract_if(.., |focus| is_active(focus)).collect();
                for focus in done {
                    self.focus_succeeded(&focus.surface);
                }
            }
            DisplayEvent::Title(window) if active == ActiveWindow::Known(window) => {
                for kitty in self.kitties_in(name, window) {
                    self.kitties.worker(&kitty).into_iter().for_each(KittyWorker::list_after_title);
                }
            }
            DisplayEvent::Title(_) => {}
            DisplayEvent::Closed(window) => {
                for kitty in self.kitties_in(name, window) {
                    self.kitties.worker(&kitty).into_iter().for_each(KittyWorker::list);
                }
                self.surfaces.retain(|_, own| own.shown_in.window() != Some((name, window)));
            }
        }
    }

    /// The kitties that have a surface in a window.
    fn kitties_in(&self, name: &DisplayName, window: WindowId) -> BTreeSet<KittyAddress> {
        let of = |surface: &Surface| match &surface.shown_in {
            SurfaceWindow::Kitty { kitty, display, pid } if display.as_ref() == Some(name) => {
                let is_there = self.kitties.window(kitty, *pid)?.os_window == Some(window);
                is_there.then(|| kitty.clone())
            }
            _ => None,
        };
        self.surfaces.values().filter_map(of).collect()
    }

    fn handle_kitty_event(&mut self, address: &KittyAddress, event: KittyEvent) {
        let listing = match event {
            KittyEvent::Focused { surface, result } => return self.kitty_focused(address, surface, result),
            KittyEvent::MarkFailed(error) => return self.log_once(format!("kitty at {address}: {error}")),
            KittyEvent::Listed { requested_ms, listing } => {
                self.listed.insert(address.clone(), requested_ms);
                listing
            }
        };
        if let Err(error) = &listing {
            self.log_once(format!("kitty at {address}: {error}"));
        }
        let is_known = listing.is_ok();
        let candidates = self.kitties.set_listing(address, listing.ok());
        for (surface, terminal) in candidates {
            let pid = terminal.leader.pid;
            match self.kitties.window(address, pid) {
                Some(_) => {
                    let display = terminal.display.clone();
                    self.add(
                        surface,
                        terminal,
                        SurfaceWindow::Kitty { kitty: address.clone(), display, pid },
                    );
                }
                None if is_known => self.find_window(surface, terminal, |_| true),
                // A kitty that did not answer is queried again soon, and not treated as a window without tabs.
                None => {
                    self.find_window(surface.clone(), terminal, |class| class != "kitty");
                    self.unusable.retry_soon(&surface);
                }
            }
        }
        let mut watched = BTreeSet::new();
        let (mut closed, mut focused) = (Vec::new(), Vec::new());
        for (id, surface) in &self.surfaces {
            let SurfaceWindow::Kitty { kitty, display, pid } = &surface.shown_in else { continue };
            if kitty != address {
                continue;
            }
            let window = self.kitties.window(kitty, *pid);
            match (display, window.and_then(|window| window.os_window)) {
                (Some(display), Some(window)) => drop(watched.insert((display.clone(), window))),
                (_, None) if is_known && window.is_none() => closed.push(id.clone()),
                _ => {}
            }
            if window.is_some_and(|window| window.is_focused) {
                let is_done = |focus: &PendingFocus| focus.surface == *id && focus.window.is_none();
                focused.extend(self.pending_focus.extract_if(.., |focus| is_done(focus)));
            }
        }
        for surface in closed {
            self.surfaces.remove(&surface);
        }
        for (display, window) in watched {
            self.on_display(&display, |display| display.watch(window, true));
        }
        for focus in focused {
            self.focus_succeeded(&focus.surface);
        }
    }

    /// Executes a focus command.
    fn focus(&mut self, surface: SurfaceId) {
        let deadline = Instant::now() + FOCUS_TIMEOUT;
        self.pending_focus.retain(|focus| focus.surface != surface);
        match self.surfaces.get(&surface).map(|own| own.shown_in.clone()) {
            None => self.answer_focus(&surface, Some("its window was closed")),
            Some(SurfaceWindow::Window { display, window, .. }) => {
                self.activate(surface, display, window, deadline);
            }
            Some(SurfaceWindow::Kitty { kitty, pid, .. }) => {
                let window = self.kitties.window(&kitty, pid).map(|window| window.id);
                match (self.kitties.worker(&kitty), window) {
                    (Some(worker), Some(window)) => {
                        worker.focus(surface.clone(), window);
                        self.pending_focus.push(PendingFocus { surface, window: None, deadline });
                    }
                    _ => self.answer_focus(&surface, Some("kitty does not answer")),
                }
            }
        }
    }

    /// kitty has switched to a tab, or refused. Its OS window may still have to be activated.
    fn kitty_focused(&mut self, address: &KittyAddress, surface: SurfaceId, result: Result<(), KittyError>) {
        let Some(at) = self.pending_focus.iter().position(|focus| focus.surface == surface) else { return };
        if let Err(error) = result {
            self.pending_focus.remove(at);
            return self.answer_focus(&surface, Some(&format!("kitty: {error}")));
        }
        self.kitties.set_outdated(address);
        let display = self.surfaces.get(&surface).and_then(|own| own.shown_in.display().cloned());
        let reports_active = |name: &DisplayName| {
            self.displays.get(name).is_some_and(|display| display.active() != ActiveWindow::Unknown)
        };
        let pid = self.surfaces.get(&surface).and_then(|own| own.shown_in.leader());
        let window = pid.and_then(|pid| self.kitties.window(address, pid)?.os_window);
        if let (Some(display), Some(window)) = (display.filter(reports_active), window) {
            let deadline = self.pending_focus.remove(at).deadline;
            self.activate(surface, display, window, deadline);
        }
    }

    fn activate(&mut self, surface: SurfaceId, name: DisplayName, window: WindowId, deadline: Instant) {
        let result = self.on_display(&name, |display| Ok((display.active(), display.activate(window)?)));
        match result {
            None => self.answer_focus(&surface, Some(&format!("display {name} does not answer"))),
            Some((_, Err(why))) => self.answer_focus(&surface, Some(why)),
            Some((active, Ok(()))) if active == ActiveWindow::Known(window) => self.focus_succeeded(&surface),
            Some(_) => {
                self.pending_focus.push(PendingFocus { surface, window: Some((name, window)), deadline });
            }
        }
    }

    /// Answers focus commands whose timeout has passed.
    fn expire_pending_focus(&mut self) {
        let now = Instant::now();
        let late: Vec<PendingFocus> =
            self.pending_focus.extract_if(.., |focus| focus.deadline <= now).collect();
        for focus in late {
            let why = match focus.window {
                Some(_) => "the window manager did not bring it to the front",
                None => "kitty went to its tab, but the desktop did not bring the window to the front",
            };
            self.answer_focus(&focus.surface, Some(why));
        }
    }
}

/// Connects to the hub, in whose process this runs, while there is a surface to report.
fn start_link(home: Home, waker: Waker) -> HostLink {
    let options = HostOptions {
        attach: json!({ "name": "window", "can_focus": true, "draws_rings": false }),
        connect: Box::new(move |_| HubClient::connect(&home).ok()),
        socket: None,
        restarts_hub: false,
        is_detached_when_empty: true,
    };
    let link = HostLink::start(options, move |event| {
        if let LinkEvent::Order(command) = event {
            waker.wake(Wakeup::Command(command));
        }
    });
    link.begin();
    link
}

/// How long a surface without a usable window is ignored.
const UNUSABLE_FOR: Duration = Duration::from_mins(1);
/// The same if the terminal did not answer in time.
const UNANSWERED_FOR: Duration = Duration::from_secs(5);
/// The most surfaces that are ignored.
const MAX_UNUSABLE: usize = 1024;

/// Surfaces without a usable window, which are ignored for a while.
#[derive(Default)]
struct UnusableSurfaces {
    until: BTreeMap<SurfaceId, Instant>,
}

impl UnusableSurfaces {
    fn contains(&self, surface: &SurfaceId) -> bool {
        self.until.get(surface).is_some_and(|until| *until > Instant::now())
    }

    fn add(&mut self, surface: SurfaceId) {
        if self.until.len() >= MAX_UNUSABLE {
            self.until.clear();
        }
        self.until.insert(surface, Instant::now() + UNUSABLE_FOR);
    }

    /// Shortens the time for a surface whose terminal did not answer, if it is ignored.
    fn retry_soon(&mut self, surface: &SurfaceId) {
        if let Some(until) = self.until.get_mut(surface) {
            *until = Instant::now() + UNANSWERED_FOR;
        }
    }

    fn remove(&mut self, surface: &SurfaceId) {
        self.until.remove(surface);
    }
}
