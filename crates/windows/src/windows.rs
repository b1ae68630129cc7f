//! What is plugged into a hub: tells the host's thread of which surfaces the hub has heard.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ringer_core::message::SurfaceId;
use ringer_ipc::host::Extension;
use ringer_ipc::listed_surfaces;
use ringer_journal::Home;
use ringer_platform::wake_pair;

use crate::host::Host;
use crate::wakeup::{Waker, Wakeup};

/// Surfaces that wait for the thread. More are not heard of until they say something again.
const MAX_WAITING: usize = 256;

/// The windows of the terminals of which a hub has heard.
#[derive(Debug)]
pub struct Windows {
    /// None if the system has no descriptors left: there is no host then.
    waker: Option<Waker>,
    /// The surfaces that the thread has been told of and has not looked at yet: thousands of notifications are one look.
    waiting: Arc<Mutex<BTreeSet<SurfaceId>>>,
}

impl Windows {
    /// Starts the thread. `log` gets what goes wrong, each thing once.
    pub fn start(home: Home, log: impl Fn(String) + Send + 'static) -> Self {
        let waiting: Arc<Mutex<BTreeSet<SurfaceId>>> = Arc::default();
        let (polled, other_end) = match wake_pair() {
            Ok(pair) => pair,
            Err(error) => {
                log(format!("windows: {error}"));
                return Self { waker: None, waiting };
            }
        };
        let (sender, wakeups) = channel();
        let waker = Waker::new(sender, other_end);
        let (own, heard) = (waker.clone(), Arc::clone(&waiting));
        thread::spawn(move || {
            for surface in listed_surfaces(&home) {
                if surface.tty().is_some() {
                    own.wake(Wakeup::Heard(surface));
                }
            }
            let begin = move |surface: &SurfaceId| {
                heard.lock().unwrap_or_else(PoisonError::into_inner).remove(surface);
            };
            Host::new(home, own, Box::new(log)).run(&polled, &wakeups, begin);
        });
        Self { waker: Some(waker), waiting }
    }
}

impl Extension for Windows {
    fn set_title_marks(&mut self, are_on: bool) {
        self.waker.iter().for_each(|waker| waker.wake(Wakeup::TitleMarks(are_on)));
    }

    fn heard_from(&mut self, surface: &SurfaceId) {
        let Some(waker) = self.waker.as_ref().filter(|_| surface.tty().is_some()) else { return };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MAX_WAITING && waiting.insert(surface.clone()) {
            waker.wake(Wakeup::Heard(surface.clone()));
        }
    }
}
