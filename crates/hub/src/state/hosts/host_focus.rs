//! Focus requests that an attached host has not answered yet.

use std::time::Duration;

use ringer_core::message::SurfaceId;

use crate::hosts::protocol::ConnectionId;
use crate::message::FocusWaiter;

/// Deadline of a host. Clients give up after 5 s.
const WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Waiting {
    host: ConnectionId,
    surface: SurfaceId,
    waiter: FocusWaiter,
    deadline: Duration,
}

/// The pending focus requests. Each connection waits for one request at a time, so there are few.
#[derive(Debug, Default)]
pub(in crate::state) struct HostFocus {
    waiting: Vec<Waiting>,
}

impl HostFocus {
    /// Adds a request that was sent to a host.
    pub(in crate::state) fn add(
        &mut self,
        host: ConnectionId,
        surface: SurfaceId,
        waiter: FocusWaiter,
        now: Duration,
    ) {
        self.waiting.push(Waiting { host, surface, waiter, deadline: now + WITHIN });
    }

    /// Takes the requests that a host has answered.
    pub(in crate::state) fn answered(&mut self, host: ConnectionId, surface: &SurfaceId) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.host == host && waiting.surface == *surface)
    }

    /// Takes the requests of a host that is gone.
    pub(in crate::state) fn gone(&mut self, host: ConnectionId) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.host == host)
    }

    /// Takes the requests whose deadline has passed.
    pub(in crate::state) fn expired(&mut self, now: Duration) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.deadline <= now)
    }

    pub(in crate::state) fn next_deadline(&self) -> Option<Duration> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    fn take(&mut self, is_wanted: impl Fn(&Waiting) -> bool) -> Vec<FocusWaiter> {
        self.waiting.extract_if(.., |waiting| is_wanted(waiting)).map(|waiting| waiting.waiter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::MessageId;

    #[test]
    fn a_host_answers_for_its_own_surfaces_only() {
        let (one, two) = (ConnectionId(1), ConnectionId(2));
        let (surface, other) = (SurfaceId::new("a"), SurfaceId::new("b"));
        let popup = |number: u64| FocusWaiter::Popup(MessageId::new(number, [0; 10]));
        let mut focus = HostFocus::default();
        assert_eq!(focus.next_deadline(), None);
        focus.add(one, surface.clone(), popup(1), Duration::ZERO);
        focus.add(one, surface.clone(), popup(2), Duration::from_secs(1));
        focus.add(two, surface.clone(), popup(3), Duration::from_secs(1));
        assert_eq!(focus.next_deadline(), Some(WITHIN));
        assert_eq!(focus.answered(two, &other), []);
        assert_eq!(focus.expired(WITHIN), [popup(1)]);
        assert_eq!(focus.answered(one, &surface), [popup(2)]);
        assert_eq!(focus.gone(two), [popup(3)]);
        assert_eq!(focus.next_deadline(), None);
    }
}
