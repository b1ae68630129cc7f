//! Limits the number of open connections. The oldest one that has sent nothing gives way to a new one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The slots. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSlots {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    most: usize,
    taken: usize,
    next: u64,
    /// Connections that have not sent a whole line yet, oldest first. Dropping a sender takes the slot away.
    silent: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: ConnectionSlots,
    number: u64,
    /// Closed when the slot is lost. `None` once it can no longer be lost.
    lost: Option<oneshot::Receiver<()>>,
}

impl ConnectionSlots {
    pub(crate) fn new(most: usize) -> Self {
        let shared = Shared { most, taken: 0, next: 0, silent: BTreeMap::new() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Takes a slot, if necessary from the oldest silent connection. Returns `None` if there is none.
    pub(crate) fn take(&self) -> Option<ConnectionSlot> {
        let mut shared = self.lock();
        if shared.taken >= shared.most {
            shared.silent.pop_first()?;
        } else {
            shared.taken += 1;
        }
        let (sender, lost) = oneshot::channel();
        let number = shared.next;
        shared.next += 1;
        shared.silent.insert(number, sender);
        drop(shared);
        Some(ConnectionSlot { slots: self.clone(), number, lost: Some(lost) })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Waits until the slot is lost. Never returns once it was [kept](Self::keep). Cancel safe.
    pub(crate) async fn lost(&mut self) {
        match &mut self.lost {
            // Completes with an error, because nothing is ever sent.
            Some(lost) => drop(lost.await),
            None => std::future::pending().await,
        }
    }

    /// Makes the slot permanent, after the first line. Returns false if it was already lost.
    pub(crate) fn keep(&mut self) -> bool {
        if self.lost.is_none() {
            return true;
        }
        let had = self.slots.lock().silent.remove(&self.number).is_some();
        if had {
            self.lost = None;
        }
        had
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut shared = self.slots.lock();
        // A lost slot belongs to another connection by now.
        if shared.silent.remove(&self.number).is_some() || self.lost.is_none() {
            shared.taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_lost(slot: &mut ConnectionSlot) -> bool {
        slot.lost.as_mut().is_some_and(|lost| lost.try_recv() == Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn the_oldest_silent_one_gives_way() {
        let slots = ConnectionSlots::new(3);
        let [mut first, mut second, mut third] = [(); 3].map(|()| slots.take().unwrap());
        assert!(first.keep() && first.keep());
        let mut fourth = slots.take().unwrap();
        assert!(!has_lost(&mut first) && has_lost(&mut second) && !has_lost(&mut third));
        assert!(!second.keep(), "it came too late");
        drop(second);
        assert!(third.keep() && fourth.keep());
        assert!(slots.take().is_none(), "all have spoken");
        drop(third);
        let fifth = slots.take().unwrap();
        assert!(!has_lost(&mut fourth));
        drop((first, fourth, fifth));
        assert_eq!(slots.lock().taken, 0);
        assert!(slots.lock().silent.is_empty());
    }

    #[test]
    fn however_many_come_so_many_are_there() {
        let slots = ConnectionSlots::new(4);
        let mut all: Vec<ConnectionSlot> = (0..2000).map(|_| slots.take().unwrap()).collect();
        assert_eq!(all.iter_mut().map(ConnectionSlot::keep).filter(|had| *had).count(), 4);
        assert_eq!(slots.lock().taken, 4);
        drop(all);
        assert_eq!(slots.lock().taken, 0);
    }
}
