//! The host: learns where surfaces are seen, follows displays and kitties, and goes to a surface when the hub asks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_journal::{Home, ProcessStat};
use ringer_platform::clear_wakes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::display::{ActiveWindow, Display, DisplayError, DisplayEvent, WindowId};
use crate::display_name::DisplayName;
use crate::hub_side::HubSide;
use crate::kitties::Kitties;
use crate::kitty::{KittyAddress, KittyError};
use crate::kitty_marks::KittyMarks;
use crate::kitty_worker::{KittyNews, KittyWorker};
use crate::looks::{Looks, SeenIn, looks};
use crate::terminal::{Terminal, TerminalWindow};
use crate::wakeup::{Order, Waker, Wakeup};

/// Surfaces that are followed; each takes a descriptor.
const MAX_SURFACES: usize = 256;
/// How long going to a surface may take. The hub waits for two seconds.
const GO_WITHIN: Duration = Duration::from_millis(1500);
/// Different things that are logged.
const MAX_LOGGED: usize = 64;

/// A surface whose window is known.
struct Surface {
    tty: String,
    seen_in: SeenIn,
    /// Becomes readable when the process that leads its session ends: the terminal is closed then.
    end: OwnedFd,
}

/// A surface that the hub wants to be in front.
struct Going {
    surface: SurfaceId,
    /// The window that has to become active; none while kitty is asked, or if no display tells.
    window: Option<(DisplayName, WindowId)>,
    deadline: Instant,
}

pub(crate) struct Host {
    waker: Waker,
    log: Box<dyn Fn(String) + Send>,
    logged: BTreeSet<String>,
    hub: HubSide,
    surfaces: BTreeMap<SurfaceId, Surface>,
    unusable: UnusableSurfaces,
    displays: BTreeMap<DisplayName, Display>,
    kitties: Kitties,
    going: Vec<Going>,
    /// The kitties that have answered since the hub was told, and when they were asked, in milliseconds since 1970.
    answered: BTreeMap<KittyAddress, i64>,
    marks: KittyMarks,
}

impl Host {
    pub(crate) fn new(home: Home, waker: Waker, log: Box<dyn Fn(String) + Send>) -> Self {
        Self {
            hub: HubSide::new(home, waker.clone()),
            waker,
            log,
            logged: BTreeSet::new(),
            surfaces: BTreeMap::new(),
            unusable: UnusableSurfaces::default(),
            displays: BTreeMap::new(),
            kitties: Kitties::default(),
            going: Vec::new(),
            answered: BTreeMap::new(),
            marks: KittyMarks::default(),
        }
    }

    /// Goes on until the process ends. `begin` is called before a surface is looked at.
    pub(crate) fn run(mut self, polled: &UnixStream, wakeups: &Receiver<Wakeup>, begin: impl Fn(&SurfaceId)) {
        loop {
            for wakeup in wakeups.try_iter() {
                match wakeup {
                    Wakeup::Heard(surface) => {
                        begin(&surface);
                        self.heard(surface);
                    }
                    Wakeup::Order(Order::Focus { surface_id }) => self.go(surface_id),
                    Wakeup::Order(Order::Ring { surface_id, lit }) => self.marks.ring(&surface_id, lit),
                    Wakeup::TitleMarks(are_on) => self.marks.switch(are_on),
                    Wakeup::HubGone(connection) => self.hub.lost(connection),
                    Wakeup::Kitty(kitty, news) => self.kitty_said(&kitty, news),
                }
            }
            // An answer to a request may have brought events with it.
            while self.read_displays() {}
            self.give_up_late();
            self.tell_hub();
            self.wait(polled);
        }
    }

    fn looks(&self) -> Looks {
        let active =
            |name: &DisplayName| self.displays.get(name).map_or(ActiveWindow::Unknown, Display::active);
        let surfaces = self.surfaces.iter().map(|(id, surface)| (id, &surface.seen_in));
        looks(surfaces, active, self.kitties.states())
    }

    fn tell_hub(&mut self) {
        let looks = self.looks();
        let seen_in = self.surfaces.iter().map(|(id, surface)| (id, &surface.seen_in));
        self.marks.show(seen_in, &self.kitties, |kitty| self.answered.contains_key(kitty));
        self.hub.tell(self.surfaces.iter().map(|(id, surface)| (id, surface.tty.as_str())), &looks);
        let answered = std::mem::take(&mut self.answered);
        for surface in &looks.glanced_at {
            if let Some(SeenIn::Kitty { kitty, .. }) = self.surfaces.get(surface).map(|own| &own.seen_in)
                && let Some(asked_ms) = answered.get(kitty)
            {
                self.hub.tell_glance(surface, *asked_ms);
            }
        }
        let surfaces = &self.surfaces;
        let seen_in = || surfaces.values().map(|surface| &surface.seen_in);
        self.kitties.retain(|own| {
            seen_in().any(|seen_in| matches!(seen_in, SeenIn::Kitty { kitty, .. } if kitty == own))
        });
        self.displays.retain(|name, _| seen_in().any(|seen_in| seen_in.display() == Some(name)));
    }

    /// Waits until something happens.
    fn wait(&mut self, polled: &UnixStream) {
        let deadline = self.going.iter().map(|going| going.deadline).chain(self.hub.next_deadline()).min();
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let ends = self.surfaces.values().map(|surface| surface.end.as_fd());
        let displays = self.displays.values().map(AsFd::as_fd);
        let all = ends.chain(displays).chain([polled.as_fd()]);
        let mut descriptors: Vec<PollFd<'_>> =
            all.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        if poll(&mut descriptors, left.as_ref()).is_err() {
            // It was interrupted.
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

    /// The hub heard from a surface.
    fn heard(&mut self, surface: SurfaceId) {
        if let Some(known) = self.surfaces.get(&surface) {
            if let SeenIn::Kitty { kitty, .. } = &known.seen_in
                && self.looks().unreported.contains(&surface)
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

    /// The person is at a surface that the hub asked for. The hub is told first what they look at, as far as that is known: a kitty
    /// lists its windows a moment later.
    fn arrived(&mut self, surface: &SurfaceId) {
        self.tell_hub();
        self.hub.focused(surface, &Ok(()));
    }

    fn add(&mut self, surface: SurfaceId, terminal: Terminal, seen_in: SeenIn) {
        let pid = i32::try_from(terminal.leader.pid).ok().and_then(Pid::from_raw);
        let end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        // Only now: numbers of processes are used again.
        let started = ProcessStat::of(terminal.leader.pid).map(|stat| stat.started);
        let is_same = started == surface.tty().map(|plain| plain.leader_started);
        match end.filter(|_| is_same) {
            Some(end) => {
                self.unusable.remove(&surface);
                self.surfaces.insert(surface, Surface { tty: terminal.tty, seen_in, end });
            }
            None => self.unusable.add(surface),
        }
    }

    /// Looks for the window of X11 that a terminal names, and uses it if its class is right.
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
        let seen_in = SeenIn::Window { display: name, window: id, is_alone };
        self.add(surface, terminal, seen_in);
    }

    /// Does something on a display, and connects to it first if need be. A display that fails is given up.
    fn on_display<T>(
        &mut self,
        name: &DisplayName,
        ask: impl FnOnce(&mut Display) -> Result<T, DisplayError>,
    ) -> Option<T> {
        let connected = match self.displays.remove(name) {
            Some(display) => Ok(display),
            None => Display::connect(name),
        };
        let asked = connected.and_then(|mut display| ask(&mut display).map(|answer| (answer, display)));
        match asked {
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

    /// A display is gone or hangs: nothing is known of its windows any more.
    fn lose_display(&mut self, name: &DisplayName, error: &DisplayError) {
        self.displays.remove(name);
        let lost =
            |surface: &Surface| matches!(&surface.seen_in, SeenIn::Window { display, .. } if display == name);
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

    /// Reads what happened on the displays. Gives whether anything did.
    fn read_displays(&mut self) -> bool {
        let names: Vec<DisplayName> = self.displays.keys().cloned().collect();
        let mut has_any = false;
        for name in names {
            for event in self.on_display(&name, Display::events).unwrap_or_default() {
                has_any = true;
                self.happened(&name, event);
            }
        }
        has_any
    }

    fn happened(&mut self, name: &DisplayName, event: DisplayEvent) {
        let active = self.displays.get(name).map_or(ActiveWindow::Unknown, Display::active);
        match event {
            DisplayEvent::Active => {
                let ActiveWindow::Known(window) = active else { return };
                if let Some(pid) = self.on_display(name, |display| display.pid(window)).flatten() {
                    self.kitties.activated(pid);
                }
                let is_there = |going: &Going| {
                    going.window.as_ref().is_some_and(|(on, wanted)| on == name && *wanted == window)
                };
                let arrived: Vec<Going> = self.going.extract_if(.., |going| is_there(going)).collect();
                for going in arrived {
                    self.arrived(&going.surface);
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
                self.surfaces.retain(|_, own| own.seen_in.window() != Some((name, window)));
            }
        }
    }

    /// The kitties that have a surface in a window.
    fn kitties_in(&self, name: &DisplayName, window: WindowId) -> BTreeSet<KittyAddress> {
        let of = |surface: &Surface| match &surface.seen_in {
            SeenIn::Kitty { kitty, display, pid } if display.as_ref() == Some(name) => {
                let is_there = self.kitties.window(kitty, *pid)?.os_window == Some(window);
                is_there.then(|| kitty.clone())
            }
            _ => None,
        };
        self.surfaces.values().filter_map(of).collect()
    }

    fn kitty_said(&mut self, address: &KittyAddress, news: KittyNews) {
        let listed = match news {
            KittyNews::Focused { surface, result } => return self.kitty_went(address, surface, result),
            KittyNews::NotMarked(error) => return self.log_once(format!("kitty at {address}: {error}")),
            KittyNews::Listed { asked_ms, listed } => {
                self.answered.insert(address.clone(), asked_ms);
                listed
            }
        };
        if let Err(error) = &listed {
            self.log_once(format!("kitty at {address}: {error}"));
        }
        let is_known = listed.is_ok();
        let candidates = self.kitties.listed(address, listed.ok());
        for (surface, terminal) in candidates {
            let pid = terminal.leader.pid;
            match self.kitties.window(address, pid) {
                Some(_) => {
                    let display = terminal.display.clone();
                    self.add(surface, terminal, SeenIn::Kitty { kitty: address.clone(), display, pid });
                }
                None if is_known => self.find_window(surface, terminal, |_| true),
                // A kitty that did not answer in time is asked again soon, and not taken for a window without tabs.
                None => {
                    self.find_window(surface.clone(), terminal, |class| class != "kitty");
                    self.unusable.ask_again_soon(&surface);
                }
            }
        }
        let mut watched = BTreeSet::new();
        let (mut closed, mut arrived) = (Vec::new(), Vec::new());
        for (id, surface) in &self.surfaces {
            let SeenIn::Kitty { kitty, display, pid } = &surface.seen_in else { continue };
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
                let is_there = |going: &Going| going.surface == *id && going.window.is_none();
                arrived.extend(self.going.extract_if(.., |going| is_there(going)));
            }
        }
        for surface in closed {
            self.surfaces.remove(&surface);
        }
        for (display, window) in watched {
            self.on_display(&display, |display| display.watch(window, true));
        }
        for going in arrived {
            self.arrived(&going.surface);
        }
    }

    /// The hub wants a surface to be in front.
    fn go(&mut self, surface: SurfaceId) {
        let deadline = Instant::now() + GO_WITHIN;
        self.going.retain(|going| going.surface != surface);
        match self.surfaces.get(&surface).map(|own| own.seen_in.clone()) {
            None => self.hub.focused(&surface, &Err("its window was closed".to_owned())),
            Some(SeenIn::Window { display, window, .. }) => self.activate(surface, display, window, deadline),
            Some(SeenIn::Kitty { kitty, pid, .. }) => {
                let window = self.kitties.window(&kitty, pid).map(|window| window.id);
                match (self.kitties.worker(&kitty), window) {
                    (Some(worker), Some(window)) => {
                        worker.focus(surface.clone(), window);
                        self.going.push(Going { surface, window: None, deadline });
                    }
                    _ => self.hub.focused(&surface, &Err("kitty does not answer".to_owned())),
                }
            }
        }
    }

    /// kitty has gone to a tab, or has not. Its window need not be in front.
    fn kitty_went(&mut self, address: &KittyAddress, surface: SurfaceId, result: Result<(), KittyError>) {
        let Some(at) = self.going.iter().position(|going| going.surface == surface) else { return };
        if let Err(error) = result {
            self.going.remove(at);
            return self.hub.focused(&surface, &Err(format!("kitty: {error}")));
        }
        self.kitties.set_outdated(address);
        let display = self.surfaces.get(&surface).and_then(|own| own.seen_in.display().cloned());
        let tells = |name: &DisplayName| {
            self.displays.get(name).is_some_and(|display| display.active() != ActiveWindow::Unknown)
        };
        let pid = self.surfaces.get(&surface).and_then(|own| own.seen_in.leader());
        let window = pid.and_then(|pid| self.kitties.window(address, pid)?.os_window);
        if let (Some(display), Some(window)) = (display.filter(tells), window) {
            let deadline = self.going.remove(at).deadline;
            self.activate(surface, display, window, deadline);
        }
    }

    fn activate(&mut self, surface: SurfaceId, name: DisplayName, window: WindowId, deadline: Instant) {
        let asked = self.on_display(&name, |display| Ok((display.active(), display.activate(window)?)));
        match asked {
            None => self.hub.focused(&surface, &Err(format!("display {name} does not answer"))),
            Some((_, Err(why))) => self.hub.focused(&surface, &Err(why.to_owned())),
            Some((active, Ok(()))) if active == ActiveWindow::Known(window) => self.arrived(&surface),
            Some(_) => self.going.push(Going { surface, window: Some((name, window)), deadline }),
        }
    }

    /// Ends what took too long.
    fn give_up_late(&mut self) {
        let now = Instant::now();
        for going in self.going.extract_if(.., |going| going.deadline <= now) {
            let why = match going.window {
                Some(_) => "the window manager did not bring it to the front",
                None => "kitty went to its tab, but the desktop did not bring the window to the front",
            };
            self.hub.focused(&going.surface, &Err(why.to_owned()));
        }
    }
}

/// How long such a surface is not looked at again.
const UNUSABLE_FOR: Duration = Duration::from_mins(1);
/// The same where the terminal did not answer in time.
const UNANSWERED_FOR: Duration = Duration::from_secs(5);
/// How many are remembered.
const MAX: usize = 1024;

/// Those that are not looked at for a while.
#[derive(Default)]
struct UnusableSurfaces {
    /// Until when each is left alone.
    until: BTreeMap<SurfaceId, Instant>,
}

impl UnusableSurfaces {
    /// Whether a surface is left alone now.
    fn contains(&self, surface: &SurfaceId) -> bool {
        self.until.get(surface).is_some_and(|until| *until > Instant::now())
    }

    /// Leaves a surface alone for a while.
    fn add(&mut self, surface: SurfaceId) {
        if self.until.len() >= MAX {
            self.until.clear();
        }
        self.until.insert(surface, Instant::now() + UNUSABLE_FOR);
    }

    /// The terminal of a surface did not answer in time. If it was added for want of a window, it is looked at again sooner.
    fn ask_again_soon(&mut self, surface: &SurfaceId) {
        if let Some(until) = self.until.get_mut(surface) {
            *until = Instant::now() + UNANSWERED_FOR;
        }
    }

    /// It has a window now.
    fn remove(&mut self, surface: &SurfaceId) {
        self.until.remove(surface);
    }
}
