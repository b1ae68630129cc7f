//! Surfaces without a window that can be used.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;

/// How long such a surface is not looked at again.
const UNUSABLE_FOR: Duration = Duration::from_mins(1);
/// The same where the terminal did not answer in time.
const UNANSWERED_FOR: Duration = Duration::from_secs(5);
/// How many are remembered.
const MAX: usize = 1024;

/// Those that are not looked at for a while.
#[derive(Default)]
pub(crate) struct UnusableSurfaces {
    /// Until when each is left alone.
    until: BTreeMap<SurfaceId, Instant>,
}

impl UnusableSurfaces {
    /// Whether a surface is left alone now.
    pub(crate) fn contains(&self, surface: &SurfaceId) -> bool {
        self.until.get(surface).is_some_and(|until| *until > Instant::now())
    }

    /// Leaves a surface alone for a while.
    pub(crate) fn add(&mut self, surface: SurfaceId) {
        if self.until.len() >= MAX {
            self.until.clear();
        }
        self.until.insert(surface, Instant::now() + UNUSABLE_FOR);
    }

    /// The terminal of a surface did not answer in time. If it was added for want of a window, it is looked at again sooner.
    pub(crate) fn ask_again_soon(&mut self, surface: &SurfaceId) {
        if let Some(until) = self.until.get_mut(surface) {
            *until = Instant::now() + UNANSWERED_FOR;
        }
    }

    /// It has a window now.
    pub(crate) fn remove(&mut self, surface: &SurfaceId) {
        self.until.remove(surface);
    }
}
