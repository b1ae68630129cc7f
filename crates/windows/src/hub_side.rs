//! What the hub knows of the windows: told when something changes, and attached only while there is something to tell.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::{HostConnection, HubClientError};
use ringer_journal::Home;
use serde_json::json;

use crate::looks::Looks;
use crate::wakeup::{Order, Waker};

/// How long after a connection that was cut off the next one is tried.
const ATTACH_AGAIN: Duration = Duration::from_secs(1);
/// The name of this host, for people.
pub(crate) const HOST: &str = "window";

/// What the hub is told of a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    tty: String,
    reports_looks: bool,
}

/// The way to the hub, and what it was told.
#[derive(Debug)]
pub(crate) struct HubSide {
    home: Home,
    waker: Waker,
    connection: Option<HostConnection>,
    /// Counts the connections: the end of an earlier one is not that of this one.
    attached: u64,
    attach_at: Option<Instant>,
    surfaces: BTreeMap<SurfaceId, Told>,
    looked_at: Option<BTreeSet<SurfaceId>>,
}

impl HubSide {
    pub(crate) fn new(home: Home, waker: Waker) -> Self {
        Self {
            home,
            waker,
            connection: None,
            attached: 0,
            attach_at: None,
            surfaces: BTreeMap::new(),
            looked_at: None,
        }
    }

    /// When to call [`Self::tell`] again although nothing changed.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.attach_at
    }

    /// These surfaces are there, with their devices, and no others.
    pub(crate) fn tell<'a>(
        &mut self,
        surfaces: impl Iterator<Item = (&'a SurfaceId, &'a str)>,
        looks: &Looks,
    ) {
        let told = |(surface, tty): (&SurfaceId, &str)| {
            let reports_looks = !looks.unreported.contains(surface);
            (surface.clone(), Told { tty: tty.to_owned(), reports_looks })
        };
        let surfaces: BTreeMap<SurfaceId, Told> = surfaces.map(told).collect();
        if surfaces.is_empty() {
            // The hub ends when it is idle and no host is attached.
            self.forget();
            self.attach_at = None;
            return;
        }
        if self.connection.is_none() && self.attach_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        if self.attach().and_then(|()| self.tell_changes(surfaces, &looks.looked_at)).is_err() {
            self.try_again();
        }
    }

    /// The person saw a surface, of which it would not be noticed when they go. What came after this moment, in milliseconds since
    /// 1970, they need not have seen.
    pub(crate) fn tell_glance(&mut self, surface: &SurfaceId, at_ms: i64) {
        if self.send("surface.glanced", &json!({ "surface_id": surface, "at_ms": at_ms })).is_err() {
            self.try_again();
        }
    }

    /// Answers the order to go to a surface.
    pub(crate) fn focused(&mut self, surface: &SurfaceId, result: &Result<(), String>) {
        let why = result.as_ref().err();
        if self.send("surface.focused", &json!({ "surface_id": surface, "why": why })).is_err() {
            self.try_again();
        }
    }

    /// A connection has ended.
    pub(crate) fn lost(&mut self, connection: u64) {
        if self.connection.is_some() && connection == self.attached {
            self.try_again();
        }
    }

    fn try_again(&mut self) {
        self.forget();
        self.attach_at = Some(Instant::now() + ATTACH_AGAIN);
    }

    fn forget(&mut self) {
        self.connection = None;
        self.surfaces.clear();
        self.looked_at = None;
    }

    fn attach(&mut self) -> Result<(), HubClientError> {
        if self.connection.is_none() {
            self.attached += 1;
            let (waker, number) = (self.waker.clone(), self.attached);
            let host = json!({ "name": HOST, "can_focus": true, "draws_rings": false });
            let attached = HostConnection::attach(&self.home, &host, move |order: Option<Order>| {
                waker.hub(number, order);
            })?;
            self.connection = Some(attached);
            self.attach_at = None;
        }
        Ok(())
    }

    fn tell_changes(
        &mut self,
        surfaces: BTreeMap<SurfaceId, Told>,
        looked_at: &BTreeSet<SurfaceId>,
    ) -> Result<(), HubClientError> {
        let before = std::mem::replace(&mut self.surfaces, surfaces);
        let changed = self.surfaces.iter().filter(|(surface, told)| before.get(*surface) != Some(told));
        let changed: Vec<_> = changed
            .map(|(surface, told)| {
                json!({ "surface_id": surface, "tty": told.tty, "reports_looks": told.reports_looks })
            })
            .collect();
        if !changed.is_empty() {
            self.send("surface.opened", &json!({ "surfaces": changed }))?;
        }
        // What is closed is not looked at either, so the views come first.
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

    /// Each surface has a window of its own that shows it.
    fn send_looks(&mut self, looked_at: &BTreeSet<SurfaceId>) -> Result<(), HubClientError> {
        let views: Vec<_> =
            looked_at.iter().map(|surface| json!({ "client": surface, "surface_id": surface })).collect();
        self.send("surface.looks", &json!({ "views": views }))
    }

    fn send(&mut self, method: &str, params: &serde_json::Value) -> Result<(), HubClientError> {
        self.connection.as_mut().map_or(Ok(()), |connection| connection.send(method, params))
    }
}
