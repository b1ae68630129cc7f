//! Runs the commands of one place one after the other, in the order of their notifications.

use std::collections::HashMap;

use ringer_core::message::Place;
use tokio::sync::oneshot;

/// The places that are remembered before those with nothing running are removed.
const MAX_REMEMBERED: usize = 256;

/// The queue of each place.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Closed when the last turn of the place ends.
    last: HashMap<Place, oneshot::Receiver<()>>,
}

/// A place in the queue, which is free for the next when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _end: oneshot::Sender<()>,
}

impl Turns {
    /// Returns the turn after all earlier ones of the place.
    pub(super) fn next(&mut self, place: &Place) -> Turn {
        if self.last.len() >= MAX_REMEMBERED {
            self.last.retain(|_, end| end.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        }
        let (sender, end) = oneshot::channel();
        Turn { before: self.last.insert(place.clone(), end), _end: sender }
    }
}

impl Turn {
    /// Waits for the turn before this one.
    pub(super) async fn begin(&mut self) {
        if let Some(before) = self.before.take() {
            // It is only ever closed.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ringer_core::message::WorkspaceId;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn turns_of_a_place_follow_each_other_whatever_is_polled_first() {
        let places = ["a", "b"].map(|id| Place::workspace(WorkspaceId::new(id)));
        let (mut turns, said) = (Turns::default(), Arc::new(Mutex::new(Vec::new())));
        let mut tasks = JoinSet::new();
        let mut given: Vec<_> = (0..20).map(|number| (number, turns.next(&places[number % 2]))).collect();
        given.reverse();
        for (number, mut turn) in given {
            let said = Arc::clone(&said);
            tasks.spawn(async move {
                turn.begin().await;
                tokio::task::yield_now().await;
                said.lock().unwrap().push(number);
            });
        }
        tasks.join_all().await;
        let said = said.lock().unwrap();
        for parity in 0..2 {
            let own: Vec<usize> = said.iter().copied().filter(|number| number % 2 == parity).collect();
            assert!(own.is_sorted() && own.len() == 10, "{own:?}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut turns = Turns::default();
        for number in 0..10_000 {
            drop(turns.next(&Place::workspace(WorkspaceId::new(&number.to_string()))));
        }
        assert!(turns.last.len() <= MAX_REMEMBERED);
    }
}
