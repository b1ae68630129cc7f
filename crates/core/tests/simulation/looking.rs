//! What the person looks at: hosts whose clients show panes, and a person who comes and goes.

use std::collections::HashMap;

use ringer_core::Event;
use ringer_core::engine::View;
use ringer_core::message::{Place, SurfaceId};
use test_support::Random;

const HOSTS: u64 = 2;

/// What each host reported last.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    hosts: HashMap<u64, Vec<SurfaceId>>,
}

impl Looking {
    /// A host reports other panes, that the person went or came back, or that it is gone.
    pub(crate) fn change(&mut self, random: &mut Random, places: &[Place]) -> Event {
        let host = random.below(HOSTS);
        let clients = random.below(3);
        let views: Vec<View> = (0..clients)
            .filter_map(|client| {
                let surface = random.pick(places).surface.clone()?;
                Some(View { client: format!("client {client}"), surface })
            })
            .collect();
        let present = random.below(4) > 0;
        let looked_at = views.iter().map(|view| view.surface.clone()).filter(|_| present).collect();
        self.hosts.insert(host, looked_at);
        Event::Looks { host, views, present, by_person: true }
    }

    pub(crate) fn is_at(&self, place: &Place) -> bool {
        place.surface.as_ref().is_some_and(|surface| self.hosts.values().flatten().any(|at| at == surface))
    }

    /// The hub was restarted: no host has reported anything to it.
    pub(crate) fn restart(&mut self) {
        self.hosts.clear();
    }
}
