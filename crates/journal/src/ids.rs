//! Time and randomness for ids, and the clocks.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringer_core::MessageId;
use ringer_core::message::QuestionId;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A time and random bytes, from which ids of messages and questions are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdSource {
    /// Milliseconds since 1970.
    pub unix_ms: i64,
    /// Random bytes.
    pub random: [u8; 16],
}

impl IdSource {
    /// The current time and fresh random bytes.
    pub fn now() -> Self {
        let unix_ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Self { unix_ms, random: random_bytes() }
    }

    /// Derives a message id.
    pub fn message_id(&self) -> MessageId {
        let mut random = [0; 10];
        random.copy_from_slice(&self.random[..10]);
        MessageId::new(u64::try_from(self.unix_ms).unwrap_or(0), random)
    }

    /// Derives a question id.
    pub fn question_id(&self) -> QuestionId {
        QuestionId::new(u64::try_from(self.unix_ms / 1000).unwrap_or(0), self.number())
    }

    /// Returns this source and advances it, so that the next call yields other ids with the same time. For several messages at
    /// once.
    pub(crate) fn next(&mut self) -> Self {
        let now = *self;
        // Increments the last bytes of the message id and the number of the question id.
        let bytes = [6, 7, 8, 9].map(|at| self.random[at]);
        self.random[6..10].copy_from_slice(&u32::from_be_bytes(bytes).wrapping_add(1).to_be_bytes());
        self.random[10..14].copy_from_slice(&now.number().wrapping_add(1).to_le_bytes());
        now
    }

    /// A unique file name.
    pub(crate) fn name(&self) -> String {
        self.message_id().to_string()
    }

    /// A number from random bytes that message ids do not use.
    pub fn number(&self) -> u32 {
        u32::from_le_bytes([self.random[10], self.random[11], self.random[12], self.random[13]])
    }
}

/// The monotonic clock, which all processes of the machine share.
pub fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Uptime of the machine and id of its boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uptime {
    /// The kernel's boot id; empty on macOS, where all boots count as one.
    pub boot: String,
    /// Time since boot, including suspend.
    pub since_boot: Duration,
}

impl Uptime {
    /// Reads the current values.
    pub fn now() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        #[cfg(target_os = "linux")]
        let clock = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = ClockId::Monotonic;
        let time = clock_gettime(clock);
        let since_boot = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
        Self { boot: boot.trim_end().to_owned(), since_boot }
    }
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    if !fill(&mut bytes) {
        // Some sandboxes forbid the system call. The standard library seeds its hashers from the same source at startup.
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(
                &RandomState::new().hash_one(std::process::id()).to_le_bytes()[..chunk.len()],
            );
        }
    }
    bytes
}

/// Fills the buffer from the system's random source. Returns true on success.
#[cfg(target_os = "linux")]
fn fill(bytes: &mut [u8]) -> bool {
    let filled = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
    filled == Ok(bytes.len())
}

/// Fills the buffer from the system's random source. Returns true on success.
#[cfg(not(target_os = "linux"))]
fn fill(bytes: &mut [u8]) -> bool {
    use std::io::Read;
    std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(bytes)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_clock_goes_forward() {
        let before = monotonic();
        assert!(monotonic() >= before && before > Duration::ZERO);
    }

    #[test]
    fn stamps_differ() {
        let (one, two) = (IdSource::now(), IdSource::now());
        assert_ne!(one.random, two.random);
        assert_ne!(one.message_id(), two.message_id());
    }

    #[test]
    fn several_of_one_moment_have_ids_of_their_own() {
        let mut stamp = IdSource { unix_ms: 7, random: [0xff; 16] };
        let first = stamp;
        let all: Vec<IdSource> = (0..1000).map(|_| stamp.next()).collect();
        assert_eq!(all[0], first);
        let ids: std::collections::HashSet<_> = all.iter().map(IdSource::message_id).collect();
        let questions: std::collections::HashSet<_> = all.iter().map(IdSource::question_id).collect();
        assert_eq!((ids.len(), questions.len()), (1000, 1000));
    }

    #[test]
    fn a_clock_before_1970_is_no_reason_to_fail() {
        let stamp = IdSource { unix_ms: -5, random: [1; 16] };
        assert!(stamp.question_id().as_str().starts_with("q-0-"));
        assert_eq!(stamp.message_id().as_str().len(), 36);
    }
}
