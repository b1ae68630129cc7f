//! Focus requests that a host or a part has not answered yet.

use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::message::SurfaceId;
use serde_json::Value;

use crate::hosts::protocol::ConnectionId;
use crate::message::RequestId;

/// Deadline of a host. Clients give up after 5 s.
const WITHIN: Duration = Duration::from_secs(2);

/// What brings a surface to the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::state) enum FocusTarget {
    /// An attached host.
    Host(ConnectionId),
    /// The part that controls panes, off the loop.
    PaneControl,
}

/// A request or click that waits for the result.
#[derive(Debug, PartialEq)]
pub(in crate::state) enum FocusWaiter {
    /// A request of a client. `opening` is the notification that the client asked to open.
    Request { id: RequestId, up_to: i64, opening: Option<(MessageId, Value)> },
    /// A click on the popup of a notification.
    Popup(MessageId),
}

#[derive(Debug)]
struct Waiting {
    target: FocusTarget,
    surface: SurfaceId,
    waiter: FocusWaiter,
    /// `None` for a part, which always answers.
    deadline: Option<Duration>,
}

/// The pending focus requests. Each connection waits for one request at a time, so there are few.
#[derive(Debug, Default)]
pub(in crate::state) struct PendingFocus {
    waiting: Vec<Waiting>,
}

impl PendingFocus {
    /// Adds a request that was passed on.
    pub(in crate::state) fn add(
        &mut self,
        target: FocusTarget,
        surface: SurfaceId,
        waiter: FocusWaiter,
        now: Duration,
    ) {
        let deadline = matches!(target, FocusTarget::Host(_)).then_some(now + WITHIN);
        self.waiting.push(Waiting { target, surface, waiter, deadline });
    }

    /// Takes the requests that have been answered.
    pub(in crate::state) fn answered(
        &mut self,
        target: FocusTarget,
        surface: &SurfaceId,
    ) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.target == target && waiting.surface == *surface)
    }

    /// Takes the requests of a host that is gone.
    pub(in crate::state) fn gone(&mut self, host: ConnectionId) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.target == FocusTarget::Host(host))
    }

    /// Takes the requests whose deadline has passed.
    pub(in crate::state) fn expired(&mut self, now: Duration) -> Vec<FocusWaiter> {
        self.take(|waiting| waiting.deadline.is_some_and(|deadline| deadline <= now))
    }

    pub(in crate::state) fn next_deadline(&self) -> Option<Duration> {
        self.waiting.iter().filter_map(|waiting| waiting.deadline).min()
    }

    fn take(&mut self, is_wanted: impl Fn(&Waiting) -> bool) -> Vec<FocusWaiter> {
        self.waiting.extract_if(.., |waiting| is_wanted(waiting)).map(|waiting| waiting.waiter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnectionId = ConnectionId(1);
    const TWO: ConnectionId = ConnectionId(2);

    fn popup(number: u64) -> FocusWaiter {
        FocusWaiter::Popup(MessageId::new(number, [0; 10]))
    }

    #[test]
    fn a_host_answers_for_its_own_surfaces_only() {
        let (one, two) = (FocusTarget::Host(ONE), FocusTarget::Host(TWO));
        let (surface, other) = (SurfaceId::new("a"), SurfaceId::new("b"));
        let mut focus = PendingFocus::default();
        assert_eq!(focus.next_deadline(), None);
        focus.add(one, surface.clone(), popup(1), Duration::ZERO);
        focus.add(one, surface.clone(), popup(2), Duration::from_secs(1));
        focus.add(two, surface.clone(), popup(3), Duration::from_secs(1));
        assert_eq!(focus.next_deadline(), Some(WITHIN));
        assert_eq!(focus.answered(two, &other), []);
        assert_eq!(focus.expired(WITHIN), [popup(1)]);
        assert_eq!(focus.answered(one, &surface), [popup(2)]);
        assert_eq!(focus.gone(TWO), [popup(3)]);
        assert_eq!(focus.next_deadline(), None);
    }

    #[test]
    fn a_part_has_no_deadline() {
        let surface = SurfaceId::new("a");
        let mut focus = PendingFocus::default();
        focus.add(FocusTarget::PaneControl, surface.clone(), popup(1), Duration::ZERO);
        assert_eq!((focus.next_deadline(), focus.expired(Duration::MAX)), (None, vec![]));
        assert_eq!(focus.answered(FocusTarget::PaneControl, &surface), [popup(1)]);
    }
}
