//! Reports to the hub about the program and the person in front of it.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::ProgramReports;
use ringer_term::{TerminalEventKind, parse_title};
use serde_json::{Value, json};

use crate::focus_input::Input;
use crate::hub_link::{HEARD, HubLink};

/// How long after a key the person counts as present, and the shortest time between two reports of that.
const TYPED_FOR: Duration = Duration::from_secs(10);
/// The shortest time between two attempts to find a hub that is gone. They are only made when there is input or output.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest title that a host may report, in bytes.
const MAX_TITLE: usize = 256;

/// Tracks the program and the person, and reports to the hub.
#[derive(Debug)]
pub(crate) struct Reporter {
    link: HubLink,
    surface: SurfaceId,
    /// This process is the host of the surface.
    is_own: bool,
    reports: ProgramReports,
    /// The last title, without a spinner.
    title: String,
    started: Instant,
    has_focus: Option<bool>,
    typed: Option<Instant>,
    typed_told: Option<Instant>,
    looked_for_hub: Option<Instant>,
}

impl Reporter {
    pub(crate) fn new(link: HubLink, surface: SurfaceId, is_own: bool) -> Self {
        Self {
            link,
            surface,
            is_own,
            reports: ProgramReports::default(),
            title: String::new(),
            started: Instant::now(),
            has_focus: None,
            typed: None,
            typed_told: None,
            looked_for_hub: None,
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    pub(crate) fn clear_wakes(&self) {
        self.link.clear_wakes();
    }

    /// Returns true if a hub is connected, which shows the program's notifications.
    pub(crate) fn is_attached(&self) -> bool {
        self.link.is_attached()
    }

    pub(crate) fn is_lit(&self) -> bool {
        self.link.is_lit()
    }

    /// Looks for a hub if there is none. It is called on input and output, so that an idle program causes no attempts.
    pub(crate) fn is_active(&mut self) {
        if self.link.is_attached() {
            return;
        }
        if self.looked_for_hub.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            self.looked_for_hub = Some(Instant::now());
            self.link.attach(false);
        }
    }

    /// Handles a report of the program to its terminal.
    pub(crate) fn event(&mut self, event: &TerminalEventKind) {
        // A person in front of the terminal hears the bell.
        if *event == TerminalEventKind::Bell && self.is_looked_at() {
            return;
        }
        if let Some(report) = self.reports.report(self.started.elapsed(), event) {
            self.heard(report);
        }
        if let TerminalEventKind::Title(title) = event
            && self.is_own
        {
            self.tell_title(parse_title(title).task);
        }
    }

    fn tell_title(&mut self, title: &str) {
        if title != self.title && !title.is_empty() {
            title.clone_into(&mut self.title);
            let cut = &title[..title.floor_char_boundary(MAX_TITLE)];
            self.link.send("surface.changed", json!({ "title": cut }));
        }
    }

    fn heard(&self, mut params: Value) {
        params["surface_id"] = json!(self.surface);
        self.link.send(HEARD, params);
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
        let is_due = self.typed_told.is_none_or(|at| at.elapsed() >= TYPED_FOR);
        if is_news || input.is_typed && is_due {
            if input.is_typed {
                self.typed_told = self.typed;
            }
            self.tell_looks(input.is_typed);
        }
    }

    /// Reports the views. It does not use `surface.typed`, which would report the person as away as soon as they type nothing
    /// here, although they may work in another window.
    fn tell_looks(&self, is_typed: bool) {
        let view = json!({ "client": "terminal", "surface_id": self.surface });
        let views: Vec<Value> = (self.has_focus == Some(true)).then_some(view).into_iter().collect();
        let mut params = json!({ "views": views, "is_complete": self.has_focus.is_some() });
        if is_typed {
            params["present"] = json!(true);
        }
        self.link.send("surface.looks", params);
    }

    /// Returns true if the person looks at the program, as far as known.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.has_focus.unwrap_or_else(|| self.typed.is_some_and(|at| at.elapsed() < TYPED_FOR))
    }

    /// Reports the end of the program.
    pub(crate) fn finish(self) {
        if let Some(report) = self.reports.ended() {
            self.heard(report);
        }
        self.link.finish();
    }
}
