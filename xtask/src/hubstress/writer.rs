//! The threads that send messages during the run. They differ in when they read messages and how they choose surfaces.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::environment::HubEnvironment;
use crate::background::until;
use crate::failure::Failure;

/// The most messages that one command marks as read.
const READ_AT_ONCE: usize = 4;

/// The most open popups of a writer before it waits. The hub remembers 1,024 popups.
const MAX_OPEN: usize = 64;

/// How long it waits for a popup before it checks whether the run has ended.
const READ_WAIT: Duration = Duration::from_millis(100);

/// How a writer chooses surfaces, and when it reads its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriterBehaviour {
    /// Each message comes from its own surface or from none and is read once it is shown. All of them must be shown.
    ReadsWhenShown,
    /// All messages come from one surface, so only the latest has to be shown.
    OneSurface,
    /// Messages come in turn from a few surfaces that other writers use too.
    SharedSurfaces,
    /// Like `ReadsWhenShown`, but messages are read at once: their delivery may be in progress.
    ReadsAtOnce,
}

impl WriterBehaviour {
    fn of(writer: u32) -> Self {
        match writer % 4 {
            0 => Self::ReadsWhenShown,
            1 => Self::OneSurface,
            2 => Self::SharedSurfaces,
            _ => Self::ReadsAtOnce,
        }
    }

    /// Returns the surface of a message, or an empty string for none.
    fn surface(self, writer: u32, number: u64) -> String {
        match self {
            Self::ReadsWhenShown | Self::ReadsAtOnce if number.is_multiple_of(2) => String::new(),
            Self::ReadsWhenShown | Self::ReadsAtOnce => format!("{writer}-{number}"),
            Self::OneSurface => format!("{writer}-all"),
            Self::SharedSurfaces => format!("shared-{}", number % 3),
        }
    }
}

/// An acknowledged message.
pub(super) struct Sent {
    pub(super) body: String,
    /// Only a newer message of its surface is a valid reason for not showing it.
    pub(super) must_be_shown: bool,
}

/// Acknowledged messages by id.
pub(super) type Acknowledged = Mutex<HashMap<String, Sent>>;

/// Sends one message after the other until the run is over. Returns how many were not acknowledged.
pub(super) fn run(
    writer: u32,
    environment: &HubEnvironment,
    acknowledged: &Acknowledged,
    over: &AtomicBool,
) -> Result<u64, Failure> {
    let behaviour = WriterBehaviour::of(writer);
    let mut missing = 0;
    let mut unread: Vec<(String, String)> = Vec::new();
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let body = format!("{writer}-{number}");
        let Some(id) = environment.notify(&body, &behaviour.surface(writer, number))? else {
            missing += 1;
            continue;
        };
        let sent = Sent { body: body.clone(), must_be_shown: behaviour == WriterBehaviour::ReadsWhenShown };
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sent);
        if matches!(behaviour, WriterBehaviour::ReadsWhenShown | WriterBehaviour::ReadsAtOnce) {
            unread.push((id, body));
            if unread.len().is_multiple_of(READ_AT_ONCE) {
                read(behaviour, environment, &mut unread)?;
            }
            while unread.len() >= MAX_OPEN && !over.load(Ordering::Relaxed) {
                read(behaviour, environment, &mut unread)?;
            }
        }
    }
    Ok(missing)
}

/// Marks a few messages as read, or waits briefly for the first one to become readable. If that fails because the hub died,
/// the messages are tried again.
fn read(
    behaviour: WriterBehaviour,
    environment: &HubEnvironment,
    unread: &mut Vec<(String, String)>,
) -> Result<(), Failure> {
    let mut ids: Vec<String> = Vec::new();
    until(READ_WAIT, || {
        let recorded = environment.recorded();
        let may_be_read = |(id, body): &&(String, String)| {
            behaviour == WriterBehaviour::ReadsAtOnce
                || recorded.contains_key(id) && environment.has_shown(body)
        };
        ids = unread.iter().filter(may_be_read).take(READ_AT_ONCE).map(|(id, _)| id.clone()).collect();
        !ids.is_empty() || unread.len() < MAX_OPEN
    });
    let words: Vec<&str> = ids.iter().map(String::as_str).collect();
    if !words.is_empty() && environment.read(&words)? {
        unread.retain(|(id, _)| !ids.contains(id));
    }
    Ok(())
}
