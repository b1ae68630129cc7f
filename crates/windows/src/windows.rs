//! The part of the hub: tells the host thread which surfaces are active.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ringer_config::TitleMark;
use ringer_core::message::SurfaceId;
use ringer_ipc::listed_surfaces;
use ringer_ipc::part::{Part, PartEvent};
use ringer_journal::Home;
use ringer_platform::wake_pair;

use crate::host::Host;
use crate::wakeup::{Waker, Wakeup};

/// The most surfaces in the queue to the thread. A further one is ignored until its next activity.
const MAX_QUEUED: usize = 256;

/// Starts the host thread and tells it about surfaces.
#[derive(Debug)]
pub struct Windows {
    /// `None` if the system has no descriptors left. Then there is no host.
    waker: Option<Waker>,
    /// Surfaces in the queue. Thousands of notifications from one surface are queued once.
    queued: Arc<Mutex<BTreeSet<SurfaceId>>>,
}

impl Windows {
    /// Starts the thread. `log` gets errors, each once.
    pub fn start(home: Home, log: impl Fn(String) + Send + 'static) -> Self {
        let queued: Arc<Mutex<BTreeSet<SurfaceId>>> = Arc::default();
        let (polled, other_end) = match wake_pair() {
            Ok(pair) => pair,
            Err(error) => {
                log(format!("windows: {error}"));
                return Self { waker: None, queued };
            }
        };
        let (sender, wakeups) = channel();
        let waker = Waker::new(sender, other_end);
        let (own, done) = (waker.clone(), Arc::clone(&queued));
        thread::spawn(move || {
            for surface in listed_surfaces(&home) {
                if surface.tty().is_some() {
                    own.wake(Wakeup::SurfaceActive(surface));
                }
            }
            let begin = move |surface: &SurfaceId| {
                done.lock().unwrap_or_else(PoisonError::into_inner).remove(surface);
            };
            Host::new(home, own, Box::new(log)).run(&polled, &wakeups, begin);
        });
        Self { waker: Some(waker), queued }
    }

    fn surface_active(&self, surface: &SurfaceId) {
        let Some(waker) = self.waker.as_ref().filter(|_| surface.tty().is_some()) else { return };
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        if queued.len() < MAX_QUEUED && queued.insert(surface.clone()) {
            waker.wake(Wakeup::SurfaceActive(surface.clone()));
        }
    }
}

impl Part for Windows {
    fn on_event(&mut self, event: &PartEvent<'_>) {
        match event {
            PartEvent::SurfaceActive(surface) => self.surface_active(surface),
            PartEvent::Settings(config) => {
                // With `always`, the hub marks the titles of all terminals itself. A window has a mark only if its title can be
                // read back.
                let are_on = config.title_mark() == TitleMark::Auto;
                self.waker.iter().for_each(|waker| waker.wake(Wakeup::TitleMarks(are_on)));
            }
            _ => {}
        }
    }
}
