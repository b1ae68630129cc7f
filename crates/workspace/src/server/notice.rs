//! What the person is told when the server begins.

use std::time::{Duration, Instant};

/// For so long, each window that comes is told: after a crash all of them come back at once, and the person looks at one.
const TOLD_FOR: Duration = Duration::from_secs(10);

/// A sentence for the windows that come first. The first one is told in any case.
#[derive(Debug)]
pub(super) struct Notice {
    text: String,
    until: Instant,
    is_told: bool,
}

impl Notice {
    pub(super) fn new(text: String, now: Instant) -> Self {
        Self { text, until: now + TOLD_FOR, is_told: false }
    }

    /// What a window is told that comes now.
    pub(super) fn tell(&mut self, now: Instant) -> Option<String> {
        let is_over = self.is_told && now >= self.until;
        self.is_told = true;
        (!is_over).then(|| self.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_of_the_first_seconds_is_told_and_the_first_one_in_any_case() {
        let now = Instant::now();
        let mut notice = Notice::new("text".to_owned(), now);
        for at in [now, now, now + TOLD_FOR / 2] {
            assert_eq!(notice.tell(at).as_deref(), Some("text"));
        }
        assert_eq!(notice.tell(now + TOLD_FOR), None);
        let mut notice = Notice::new("text".to_owned(), now);
        assert_eq!(notice.tell(now + 2 * TOLD_FOR).as_deref(), Some("text"));
        assert_eq!(notice.tell(now + 2 * TOLD_FOR), None);
    }
}
