//! What the person looks at.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::message::SurfaceId;

/// A client of a host, and the surface that it shows to the person. Two clients of one host may show two surfaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct View {
    /// The client, by the name that its host has for it.
    pub client: String,
    /// The surface with the keyboard.
    pub surface: SurfaceId,
}

/// What every host reports about the person.
#[derive(Debug, Clone, Default)]
pub(crate) struct Focus {
    /// What the person looks at in each host. A host that says nothing, or that they are away, is not in it.
    hosts: BTreeMap<u64, HashSet<SurfaceId>>,
}

impl Focus {
    /// Replaces what a host reported. What it shows counts only while the person is present. Returns the surfaces that the
    /// person did not look at before.
    pub(crate) fn set(&mut self, host: u64, views: Vec<View>, present: bool) -> Vec<SurfaceId> {
        let shown: HashSet<SurfaceId> =
            views.into_iter().map(|view| view.surface).filter(|_| present).collect();
        let mut new: Vec<SurfaceId> =
            shown.iter().filter(|surface| !self.is_looked_at(surface)).cloned().collect();
        new.sort();
        if shown.is_empty() {
            self.hosts.remove(&host);
        } else {
            self.hosts.insert(host, shown);
        }
        new
    }

    /// Everything that the person looks at.
    pub(crate) fn looked_at(&self) -> Vec<SurfaceId> {
        let mut all: Vec<SurfaceId> = self.hosts.values().flatten().cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Whether the person looks at a surface.
    pub(crate) fn is_looked_at(&self, surface: &SurfaceId) -> bool {
        self.hosts.values().any(|shown| shown.contains(surface))
    }

    /// Whether the person looks at any surface.
    pub(crate) fn is_anywhere(&self) -> bool {
        !self.hosts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(of: &[(&str, &str)]) -> Vec<View> {
        let view = |(client, surface): &(&str, &str)| View {
            client: (*client).to_owned(),
            surface: SurfaceId::new(surface),
        };
        of.iter().map(view).collect()
    }

    fn names(surfaces: &[SurfaceId]) -> Vec<&str> {
        surfaces.iter().map(SurfaceId::as_str).collect()
    }

    #[test]
    fn two_clients_may_show_two_panes_and_two_hosts_the_same() {
        let mut focus = Focus::default();
        assert_eq!(names(&focus.set(1, views(&[("one", "a"), ("two", "b")]), true)), ["a", "b"]);
        assert_eq!(names(&focus.set(2, views(&[("x", "b"), ("y", "c")]), true)), ["c"]);
        assert!(focus.set(1, views(&[("one", "a")]), true).is_empty(), "it is looked at already");
        assert!(focus.is_looked_at(&SurfaceId::new("b")), "the other host shows it");
        assert!(focus.set(2, Vec::new(), true).is_empty());
        assert!(!focus.is_looked_at(&SurfaceId::new("b")) && focus.is_anywhere());
        focus.set(1, Vec::new(), true);
        assert!(!focus.is_anywhere());
    }

    #[test]
    fn looking_counts_only_while_the_person_is_present() {
        let mut focus = Focus::default();
        focus.set(1, views(&[("one", "a")]), true);
        assert!(focus.set(1, views(&[("one", "a")]), false).is_empty());
        assert!(!focus.is_looked_at(&SurfaceId::new("a")) && !focus.is_anywhere());
        assert_eq!(names(&focus.set(1, views(&[("one", "a")]), true)), ["a"], "they look at it again");
    }
}
