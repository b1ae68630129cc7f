//! Indexes surfaces by their reported parents and by their devices.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use ringer_core::message::SurfaceId;

use crate::hosts::protocol::ConnectionId;

/// A surface of a host. Several hosts may have the same surface.
pub(super) type Key = (SurfaceId, ConnectionId);

/// Finds the surfaces inside another one, and the surface of a device, without a scan of all surfaces.
#[derive(Debug, Default)]
pub(super) struct NestingIndex {
    inside: BTreeMap<SurfaceId, BTreeSet<Key>>,
    devices: BTreeMap<String, BTreeSet<Key>>,
}

impl NestingIndex {
    /// Adds a surface with its parent and device.
    pub(super) fn add(&mut self, key: Key, parent: Option<&SurfaceId>, device: Option<&str>) {
        if let Some(parent) = parent {
            self.inside.entry(parent.clone()).or_default().insert(key.clone());
        }
        if let Some(device) = device {
            self.devices.entry(device.to_owned()).or_default().insert(key);
        }
    }

    /// Removes a surface with its parent and device.
    pub(super) fn remove(&mut self, key: &Key, parent: Option<&SurfaceId>, device: Option<&str>) {
        if let Some(parent) = parent {
            remove_from(&mut self.inside, parent, key);
        }
        if let Some(device) = device {
            remove_from(&mut self.devices, device, key);
        }
    }

    /// Returns the surfaces that name this one as their parent.
    pub(super) fn named_inside(&self, surface: &SurfaceId) -> impl Iterator<Item = &SurfaceId> {
        self.inside.get(surface).into_iter().flatten().map(|(inner, _)| inner)
    }

    /// Returns the parents that are terminals with this device.
    pub(super) fn terminals_at(&self, device: &str) -> impl Iterator<Item = &SurfaceId> {
        let first = SurfaceId::new(&format!("tty:{device}@"));
        let later = self.inside.range(first.clone()..).map(|(outer, _)| outer);
        later.take_while(move |outer| outer.as_str().starts_with(first.as_str()))
    }

    /// Returns the surface with a device.
    pub(super) fn surface_at(&self, device: &str) -> Option<&SurfaceId> {
        self.devices.get(device)?.first().map(|(surface, _)| surface)
    }
}

fn remove_from<N: Ord + Borrow<Q>, Q: Ord + ?Sized>(
    map: &mut BTreeMap<N, BTreeSet<Key>>,
    name: &Q,
    key: &Key,
) {
    if let Some(keys) = map.get_mut(name) {
        keys.remove(key);
        if keys.is_empty() {
            map.remove(name);
        }
    }
}
