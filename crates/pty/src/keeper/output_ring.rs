//! The last output of a pane that no server reads.

use std::collections::VecDeque;

/// The most that is kept of one pane: more than the scrollback of a terminal usually holds.
pub(super) const RING_LIMIT: usize = 1024 * 1024;

/// The last bytes, and how many were dropped before them. It takes no memory while it is empty.
#[derive(Debug, Default)]
pub(super) struct OutputRing {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl OutputRing {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Of a piece that is longer than the ring only the end stays.
        let skipped = bytes.len().saturating_sub(RING_LIMIT);
        let kept = bytes.get(skipped..).unwrap_or_default();
        let oldest = (self.bytes.len() + kept.len()).saturating_sub(RING_LIMIT);
        self.bytes.drain(..oldest);
        self.bytes.extend(kept);
        self.dropped += (skipped + oldest) as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A copy of what is kept, oldest first.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (first, second) = self.bytes.as_slices();
        [first, second].concat()
    }

    /// Gives its memory back, too.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where a piece begins in a sequence of bytes that differ from their neighbours, and its size around the limit.
    fn pieces() -> impl Strategy<Value = Vec<(usize, usize)>> {
        let size = prop_oneof![
            4 => 0..5000_usize,
            2 => 0..RING_LIMIT,
            1 => RING_LIMIT - 2..RING_LIMIT + 3,
            1 => RING_LIMIT..2 * RING_LIMIT,
        ];
        prop::collection::vec((0..1000_usize, size), 0..12)
    }

    #[test]
    fn it_is_the_end_of_all_that_was_pushed() {
        let sequence: Vec<u8> = (0..=250).cycle().take(2 * RING_LIMIT + 1000).collect();
        proptest!(ProptestConfig::with_cases(64), |(pieces in pieces())| {
            let (mut ring, mut all) = (OutputRing::default(), Vec::new());
            for (first, size) in pieces {
                let piece = &sequence[first..first + size];
                ring.push(piece);
                all.extend_from_slice(piece);
                let dropped = all.len().saturating_sub(RING_LIMIT);
                prop_assert_eq!(ring.dropped(), dropped as u64);
                prop_assert!(ring.to_bytes() == all[dropped..]);
                prop_assert!(ring.bytes.capacity() <= 2 * RING_LIMIT);
            }
        });
    }

    #[test]
    fn it_takes_no_memory_while_it_is_empty() {
        let mut ring = OutputRing::default();
        assert_eq!(ring.bytes.capacity(), 0);
        ring.push(&vec![b'x'; 3 * RING_LIMIT]);
        assert_eq!((ring.bytes.len(), ring.dropped()), (RING_LIMIT, 2 * RING_LIMIT as u64));
        ring.clear();
        assert_eq!((ring.bytes.capacity(), ring.dropped()), (0, 0));
    }
}
