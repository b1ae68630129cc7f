//! The hub as the server sees it: the link of its panes, and the states of the agents in them. Both have threads of their own, so
//! that no pane waits for the hub.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use ringer_ipc::{Connect, HostLink, HostOptions, LinkEvent};
use ringer_platform::{clear_wakes, wake, wake_pair};
use ringer_ui::{Agent, Backend};
use serde_json::json;

use crate::effect::HubOrder;

/// The shortest and the longest pause before the agents are followed again.
const FOLLOW_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// The shortest time between two reads of the agents' states.
const LOAD_EVERY: Duration = Duration::from_millis(100);

/// An event of the hub.
#[derive(Debug)]
pub(crate) enum HubEvent {
    Link(LinkEvent<HubOrder>),
    Agents(Vec<Agent>),
}

/// Carries events from the threads to the loop.
#[derive(Debug, Clone)]
struct Mailbox {
    events: Arc<Mutex<VecDeque<HubEvent>>>,
    wakes: Arc<UnixStream>,
}

impl Mailbox {
    fn put(&self, event: HubEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // Newer states replace older ones.
        if matches!(event, HubEvent::Agents(_)) {
            events.retain(|waiting| discriminant(waiting) != discriminant(&event));
        }
        events.push_back(event);
        drop(events);
        wake(&self.wakes);
    }
}

/// The loop's end.
#[derive(Debug)]
pub(crate) struct HubHost {
    pub(crate) link: HostLink,
    mailbox: Mailbox,
    woken: UnixStream,
}

impl HubHost {
    pub(crate) fn start(
        connect: Connect,
        socket: Option<PathBuf>,
        backend: Arc<dyn Backend>,
    ) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        let mailbox = Mailbox { events: Arc::default(), wakes: Arc::new(wakes) };
        let options = HostOptions {
            attach: json!({ "name": "panes", "can_focus": true, "emulates": true }),
            connect,
            socket,
            // Without a hub there are no rings.
            restarts_hub: true,
            is_detached_when_empty: false,
        };
        let (found, finds) = sync_channel(1);
        let (is_connected, events) = (Arc::new(AtomicBool::new(false)), mailbox.clone());
        start_reading_agents(backend, mailbox.clone(), finds, Arc::clone(&is_connected));
        let link = HostLink::start(options, move |event| {
            match event {
                LinkEvent::Connected => {
                    is_connected.store(true, Ordering::Relaxed);
                    // A full channel means that the thread is woken already.
                    let _ = found.try_send(());
                }
                LinkEvent::Lost => is_connected.store(false, Ordering::Relaxed),
                LinkEvent::Order(_) | LinkEvent::Answered => {}
            }
            events.put(HubEvent::Link(event));
        });
        Ok(Self { link, mailbox, woken })
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Returns the events since the last call.
    pub(crate) fn events(&self) -> VecDeque<HubEvent> {
        clear_wakes(&self.woken);
        std::mem::take(&mut *self.mailbox.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn start_reading_agents(
    backend: Arc<dyn Backend>,
    mailbox: Mailbox,
    finds: Receiver<()>,
    is_connected: Arc<AtomicBool>,
) {
    let (stale, readings) = sync_channel(1);
    let own = Arc::clone(&backend);
    thread::spawn(move || {
        while readings.recv().is_ok() {
            mailbox.put(HubEvent::Agents(own.load().agents));
            thread::sleep(LOAD_EVERY);
        }
    });
    thread::spawn(move || {
        let (shortest, longest) = FOLLOW_AGAIN;
        let mut pause = shortest;
        loop {
            let begun = Instant::now();
            // A full channel means that a read is due already.
            backend.follow(&|| _ = stale.try_send(()));
            pause = if begun.elapsed() > longest { shortest } else { (pause * 2).min(longest) };
            // Without a connection, this waits until the link finds the next hub.
            let found = if is_connected.load(Ordering::Relaxed) {
                finds.recv_timeout(pause)
            } else {
                finds.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            if found == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    });
}
