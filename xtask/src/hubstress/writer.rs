//! Those who send messages all the while, each in a manner of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::stage::Stage;
use crate::failure::Failure;
use crate::service::until;

/// So many are read together.
const READ_AT_ONCE: usize = 4;

/// So many popups of one writer may be open; it waits then. The hub remembers a thousand, and no more.
const MOST_OPEN: usize = 64;

/// Then it looks whether all of this is over.
const A_MOMENT: Duration = Duration::from_millis(100);

/// How one speaks, and what becomes of what was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// Each message from a surface of its own or from none, read when it was shown: every one of them has to be.
    Patient,
    /// All from one surface: what is shown may be the latest only.
    Single,
    /// From a few surfaces in turn, which others use as well.
    Shared,
    /// Like the patient, but read whether it was shown or not: it may be on its way just then.
    Hasty,
}

impl Manner {
    fn of(writer: u32) -> Self {
        match writer % 4 {
            0 => Self::Patient,
            1 => Self::Single,
            2 => Self::Shared,
            _ => Self::Hasty,
        }
    }

    /// Where a message comes from; empty for nowhere.
    fn surface(self, writer: u32, number: u64) -> String {
        match self {
            Self::Patient | Self::Hasty if number.is_multiple_of(2) => String::new(),
            Self::Patient | Self::Hasty => format!("{writer}-{number}"),
            Self::Single => format!("{writer}-all"),
            Self::Shared => format!("shared-{}", number % 3),
        }
    }
}

/// A message that was acknowledged.
pub(super) struct Sent {
    pub(super) body: String,
    /// Nothing but a newer one of its surface may keep it from being shown.
    pub(super) is_patient: bool,
}

/// By their ids.
pub(super) type Acknowledged = Mutex<HashMap<String, Sent>>;

/// Sends one message after the other until it is over. Gives how many were not acknowledged.
pub(super) fn run(
    writer: u32,
    stage: &Stage,
    acknowledged: &Acknowledged,
    over: &AtomicBool,
) -> Result<u64, Failure> {
    let manner = Manner::of(writer);
    let mut missing = 0;
    let mut unread: Vec<(String, String)> = Vec::new();
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let body = format!("{writer}-{number}");
        let Some(id) = stage.notify(&body, &manner.surface(writer, number))? else {
            missing += 1;
            continue;
        };
        let sent = Sent { body: body.clone(), is_patient: manner == Manner::Patient };
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sent);
        if matches!(manner, Manner::Patient | Manner::Hasty) {
            unread.push((id, body));
            if unread.len().is_multiple_of(READ_AT_ONCE) {
                read(manner, stage, &mut unread)?;
            }
            while unread.len() >= MOST_OPEN && !over.load(Ordering::Relaxed) {
                read(manner, stage, &mut unread)?;
            }
        }
    }
    Ok(missing)
}

/// Reads a few of what may be read, or waits a moment for the first of them. What could not be read, because the hub that
/// was asked died, is tried again.
fn read(manner: Manner, stage: &Stage, unread: &mut Vec<(String, String)>) -> Result<(), Failure> {
    let mut ids: Vec<String> = Vec::new();
    until(A_MOMENT, || {
        let recorded = stage.recorded();
        let may_be_read = |(id, body): &&(String, String)| {
            manner == Manner::Hasty || recorded.contains_key(id) && stage.has_shown(body)
        };
        ids = unread.iter().filter(may_be_read).take(READ_AT_ONCE).map(|(id, _)| id.clone()).collect();
        !ids.is_empty() || unread.len() < MOST_OPEN
    });
    let words: Vec<&str> = ids.iter().map(String::as_str).collect();
    if !words.is_empty() && stage.read(&words)? {
        unread.retain(|(id, _)| !ids.contains(id));
    }
    Ok(())
}
