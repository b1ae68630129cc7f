//! Runs calls that wait for a disk on a thread, with a deadline.
//!
//! The server of a network disk may have gone. A thread that then looks into a directory or starts a program there waits
//! until the server is back, perhaps for ever, and no signal helps. The caller here goes on at its deadline. The thread
//! cannot, so while one hangs at a place no other is sent there: threads that hang are as many as the places that do.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// A call that takes longer releases its permit, so that a disk that hangs keeps no others from running. A disk that works
/// answers within milliseconds; one that has to spin up first costs no more than a program above the limit.
const SLOW: Duration = Duration::from_secs(1);

/// A slot among a limited number of deliveries.
pub(crate) type Permit = Option<OwnedSemaphorePermit>;

/// The number of hanging calls per place. One for the whole process, as its threads are.
static HANGING: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);

fn hanging() -> MutexGuard<'static, Option<HashMap<String, usize>>> {
    HANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call. Its flags change only under the lock of [`HANGING`].
#[derive(Debug)]
pub(crate) struct Call {
    place: String,
    given_up: AtomicBool,
    is_over: AtomicBool,
    /// Counted in [`HANGING`].
    is_counted: AtomicBool,
}

impl Call {
    /// Returns true if the caller has stopped waiting. The result will be dropped.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn give_up(&self, hangs: bool) {
        let mut hanging = hanging();
        self.given_up.store(true, Ordering::Relaxed);
        if hangs && !self.is_over.load(Ordering::Relaxed) && !self.is_counted.swap(true, Ordering::Relaxed) {
            *hanging.get_or_insert_default().entry(self.place.clone()).or_default() += 1;
        }
    }

    fn end(&self) {
        let mut hanging = hanging();
        self.is_over.store(true, Ordering::Relaxed);
        if self.is_counted.load(Ordering::Relaxed)
            && let Some(hanging) = hanging.as_mut()
            && let Some(count) = hanging.get_mut(&self.place)
        {
            *count -= 1;
            if *count == 0 {
                hanging.remove(&self.place);
            }
        }
    }
}

/// Gives a call up when its caller goes away.
struct Caller {
    call: Arc<Call>,
    begun: Instant,
}

impl Drop for Caller {
    fn drop(&mut self) {
        // A caller that goes away early is no evidence of a slow disk.
        self.call.give_up(self.begun.elapsed() >= SLOW);
    }
}

/// Runs `work`, which waits for the disk of `place`, and waits for it until a deadline.
pub(crate) async fn call<T: Send + 'static>(
    place: String,
    until: Instant,
    permit: &mut Permit,
    work: impl FnOnce(&Call) -> T + Send + 'static,
) -> io::Result<T> {
    let no_answer = |place: &str| {
        let why = format!("no answer from the disk of {place}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    };
    if hanging().as_ref().is_some_and(|hanging| hanging.contains_key(&place)) {
        return no_answer(&place);
    }
    let flag = || AtomicBool::new(false);
    let call = Arc::new(Call { place, given_up: flag(), is_over: flag(), is_counted: flag() });
    let caller = Caller { call: Arc::clone(&call), begun: Instant::now() };
    let mut working = spawn_blocking(move || {
        let done = work(&call);
        call.end();
        done
    });
    let mut done = timeout_at(until.min(caller.begun + SLOW), &mut working).await;
    if done.is_err() && until > caller.begun + SLOW {
        *permit = None;
        done = timeout_at(until, &mut working).await;
    }
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(io::Error::other(error.to_string())),
        Err(_) => {
            caller.call.give_up(true);
            no_answer(&caller.call.place)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use tokio::sync::Semaphore;

    /// Long enough for a thread to be started, however busy the machine.
    const SHORT: Duration = Duration::from_millis(200);

    async fn quick(place: &str, until: Instant) -> io::Result<u8> {
        call(place.to_owned(), until, &mut None, |_| 7).await
    }

    #[tokio::test]
    async fn while_one_hangs_no_other_is_sent_there() {
        let far = Instant::now() + Duration::from_secs(30);
        assert_eq!(quick("one", far).await.unwrap(), 7);
        let (release, hangs) = channel::<()>();
        let (tell, saw) = channel();
        let work = move |call: &Call| {
            let _ = hangs.recv();
            tell.send(call.is_given_up()).unwrap();
        };
        let hung = call("one".to_owned(), Instant::now() + SHORT, &mut None, work).await;
        assert_eq!(hung.unwrap_err().to_string(), "no answer from the disk of one");
        assert_eq!(quick("one", far).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(quick("another", far).await.unwrap(), 7);
        drop(release);
        assert!(saw.recv().unwrap(), "it learns that it is too late");
        while quick("one", far).await.is_err() {
            assert!(Instant::now() < far, "it is over");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_slow_one_gives_its_turn_back() {
        let turns = Arc::new(Semaphore::new(1));
        let mut permit = turns.clone().try_acquire_owned().ok();
        let far = Instant::now() + Duration::from_secs(30);
        call("quick".to_owned(), far, &mut permit, |_| ()).await.unwrap();
        assert!(permit.is_some());
        let (release, hangs) = channel::<()>();
        let slow = async {
            let work = move |_: &Call| _ = hangs.recv();
            call("slow".to_owned(), far, &mut permit, work).await.unwrap();
        };
        let other = async {
            let _other = turns.acquire().await.unwrap();
            drop(release);
        };
        tokio::join!(slow, other);
    }

    #[tokio::test]
    async fn one_whose_caller_goes_away_at_once_says_nothing_about_the_place() {
        let (release, hangs) = channel::<()>();
        let far = Instant::now() + Duration::from_secs(30);
        let work = move |_: &Call| _ = hangs.recv();
        assert!(tokio::time::timeout(SHORT, call("gone".to_owned(), far, &mut None, work)).await.is_err());
        assert_eq!(quick("gone", far).await.unwrap(), 7);
        drop(release);
    }
}
