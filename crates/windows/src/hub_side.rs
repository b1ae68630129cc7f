//! The connection to the hub: sends changes, and is attached only while there is a surface to report.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::{HostConnection, HubClientError};
use ringer_journal::Home;
use serde_json::json;

use crate::visibility::Visibility;
use crate::wakeup::{HostCommand, Waker};

/// Pause before a new connection after the hub closed one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The display name of this host.
pub(crate) const HOST: &str = "window";

/// A surface as reported to the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SurfaceReport {
    tty: String,
    reports_looks: bool,
}

/// The connection to the hub, and what has been reported on it.
#[derive(Debug)]
pub(crate) struct HubSide {
    home: Home,
    waker: Waker,
    connection: Option<HostConnection>,
    /// Numbers the connections, so that the end of an earlier one is not taken for the end of this one.
    connection_number: u64,
    attach_at: Option<Instant>,
    surfaces: BTreeMap<SurfaceId, SurfaceReport>,
    looked_at: Option<BTreeSet<SurfaceId>>,
}

impl HubSide {
    pub(crate) fn new(home: Home, waker: Waker) -> Self {
        Self {
            home,
            waker,
            connection: None,
            connection_number: 0,
            attach_at: None,
            surfaces: BTreeMap::new(),
            looked_at: None,
        }
    }

    /// When to call [`Self::report`] again although nothing has changed.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.attach_at
    }

    /// Reports these surfaces, given with their ttys; all others are closed.
    pub(crate) fn report<'a>(
        &mut self,
        surfaces: impl Iterator<Item = (&'a SurfaceId, &'a str)>,
        visibility: &Visibility,
    ) {
        let report = |(surface, tty): (&SurfaceId, &str)| {
            let reports_looks = !visibility.unreported.contains(surface);
            (surface.clone(), SurfaceReport { tty: tty.to_owned(), reports_looks })
        };
        let surfaces: BTreeMap<SurfaceId, SurfaceReport> = surfaces.map(report).collect();
        if surfaces.is_empty() {
            // An idle hub exits only when no host is attached.
            self.forget();
            self.attach_at = None;
            return;
        }
        if self.connection.is_none() && self.attach_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        if self.attach().and_then(|()| self.report_changes(surfaces, &visibility.looked_at)).is_err() {
            self.retry_later();
        }
    }

    /// Reports that the person saw a surface at a time, in milliseconds since 1970. It would not be noticed when they look away,
    /// so this says nothing about later notifications.
    pub(crate) fn report_glance(&mut self, surface: &SurfaceId, at_ms: i64) {
        if self.send("surface.glanced", &json!({ "surface_id": surface, "at_ms": at_ms })).is_err() {
            self.retry_later();
        }
    }

    /// Answers a focus command.
    pub(crate) fn answer_focus(&mut self, surface: &SurfaceId, result: &Result<(), String>) {
        let why = result.as_ref().err();
        if self.send("surface.focused", &json!({ "surface_id": surface, "why": why })).is_err() {
            self.retry_later();
        }
    }

    /// Handles the end of a connection.
    pub(crate) fn connection_lost(&mut self, connection: u64) {
        if self.connection.is_some() && connection == self.connection_number {
            self.retry_later();
        }
    }

    fn retry_later(&mut self) {
        self.forget();
        self.attach_at = Some(Instant::now() + RETRY_AFTER);
    }

    fn forget(&mut self) {
        self.connection = None;
        self.surfaces.clear();
        self.looked_at = None;
    }

    fn attach(&mut self) -> Result<(), HubClientError> {
        if self.connection.is_none() {
            self.connection_number += 1;
            let (waker, number) = (self.waker.clone(), self.connection_number);
            let host = json!({ "name": HOST, "can_focus": true, "draws_rings": false });
            let attached = HostConnection::attach(&self.home, &host, move |command: Option<HostCommand>| {
                waker.hub(number, command);
            })?;
            self.connection = Some(attached);
            self.attach_at = None;
        }
        Ok(())
    }

    fn report_changes(
        &mut self,
        surfaces: BTreeMap<SurfaceId, SurfaceReport>,
        looked_at: &BTreeSet<SurfaceId>,
    ) -> Result<(), HubClientError> {
        let before = std::mem::replace(&mut self.surfaces, surfaces);
        let changed = self.surfaces.iter().filter(|(surface, report)| before.get(*surface) != Some(report));
        let changed: Vec<_> = changed
            .map(|(surface, report)| {
                json!({ "surface_id": surface, "tty": report.tty, "reports_looks": report.reports_looks })
            })
            .collect();
        if !changed.is_empty() {
            self.send("surface.opened", &json!({ "surfaces": changed }))?;
        }
        // A closed surface is no longer looked at, so the views come first.
        if self.looked_at.as_ref() != Some(looked_at) {
            self.send_looks(looked_at)?;
            self.looked_at = Some(looked_at.clone());
        }
        for surface in before.keys() {
            if !self.surfaces.contains_key(surface) {
                self.send("surface.closed", &json!({ "surface_id": surface }))?;
            }
        }
        Ok(())
    }

    /// Each surface is its own client: it has its own window.
    fn send_looks(&mut self, looked_at: &BTreeSet<SurfaceId>) -> Result<(), HubClientError> {
        let views: Vec<_> =
            looked_at.iter().map(|surface| json!({ "client": surface, "surface_id": surface })).collect();
        self.send("surface.looks", &json!({ "views": views }))
    }

    fn send(&mut self, method: &str, params: &serde_json::Value) -> Result<(), HubClientError> {
        self.connection.as_mut().map_or(Ok(()), |connection| connection.send(method, params))
    }
}
