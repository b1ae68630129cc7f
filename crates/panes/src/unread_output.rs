//! Output of programs that the keeper buffered while no server was connected.
//!
//! A server saves the screens with this output, and only then sends the request with which the keeper drops it. If the server is
//! killed in between, the next one gets the same output again. A position in each saved screen says how much of it the screen shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use memchr::memmem::rfind;
use ringer_core::hash::fnv1a_64;

use crate::layout::PaneId;

/// The beginning and the end of the position after a saved screen. It is an APC string, which terminals and older versions
/// ignore.
const BEGIN: &str = "\x1b_ringer:kept=";
const END: &str = "\x1b\\";
/// The number of last bytes that are compared: the most that one read from a PTY returns.
const TAIL: usize = 4096;

/// The end of the keeper's output of a pane when a server connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferEnd {
    /// The number of bytes since the keeper began to keep output.
    bytes: u64,
    /// The hash of the last bytes. A keeper that starts to keep output again does not report that, but has other bytes in their
    /// place, unless the program wrote the same once more.
    tail: u64,
}

impl BufferEnd {
    /// The end of the keeper's output, after `dropped` bytes that it no longer has. `None` if there was no output.
    pub(crate) fn of(output: &[u8], dropped: u64) -> Option<Self> {
        let bytes = dropped + output.len() as u64;
        (bytes > 0).then(|| Self { bytes, tail: hash_tail(output) })
    }

    /// Splits the keeper's output at this end. Returns `None` if the keeper started to keep output again, or has dropped some
    /// of the bytes that are compared.
    fn split(self, output: &[u8], dropped: u64) -> Option<(&[u8], &[u8])> {
        let before = usize::try_from(self.bytes.checked_sub(dropped)?).ok()?;
        let parts = output.split_at_checked(before)?;
        (hash_tail(parts.0) == self.tail).then_some(parts)
    }
}

fn hash_tail(output: &[u8]) -> u64 {
    fnv1a_64(output[output.len().saturating_sub(TAIL)..].iter().copied())
}

/// The part of the keeper's output that a screen showed when it was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferPosition {
    /// The number of the server that saved it. Later servers have higher numbers.
    pub(crate) server: u64,
    pub(crate) end: BufferEnd,
    /// The number of bytes that were lost before that, because the keeper only keeps the last ones.
    pub(crate) lost: u64,
}

impl BufferPosition {
    /// Appends the position to a saved screen.
    pub(crate) fn write(self, out: &mut String) {
        let Self { server, end: BufferEnd { bytes, tail }, lost } = self;
        let _ = write!(out, "{BEGIN}{server};{bytes};{tail};{lost}{END}");
    }

    /// Splits a file into the screen and the position.
    pub(crate) fn split(saved: &[u8]) -> (&[u8], Option<Self>) {
        let read = || {
            let at = rfind(saved, BEGIN.as_bytes())?;
            let text = saved[at + BEGIN.len()..].strip_suffix(END.as_bytes())?;
            let mut numbers = str::from_utf8(text).ok()?.split(';').map(|number| number.parse().ok());
            let server = numbers.next()??;
            let end = BufferEnd { bytes: numbers.next()??, tail: numbers.next()?? };
            let position = Self { server, end, lost: numbers.next()?? };
            numbers.next().is_none().then_some((&saved[..at], position))
        };
        read().map_or((saved, None), |(screen, position)| (screen, Some(position)))
    }
}

/// Output of a program from the time when no server read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnreadOutput<'a> {
    /// The part that the screen already shows.
    pub(crate) shown: &'a [u8],
    /// The part that the screen does not show.
    pub(crate) new: &'a [u8],
    /// The number of bytes that were lost before that.
    pub(crate) lost: u64,
}

impl<'a> UnreadOutput<'a> {
    /// Splits the keeper's output, before which it dropped `dropped` bytes, with the position of the saved screen. In case of
    /// doubt, all output is new: it is better shown twice than not at all.
    pub(crate) fn of(output: &'a [u8], dropped: u64, position: Option<BufferPosition>) -> Self {
        let shown = |own: BufferPosition| own.end.split(output, dropped).map(|parts| (parts, own.lost));
        let ((shown, new), lost) = position.and_then(shown).unwrap_or(((&[], output), dropped));
        Self { shown, new, lost }
    }
}

/// The output that this server received when it connected, and the keeper still has. The keeper drops all of it with the first
/// request, so requests that can wait do so until the screens with this output are saved.
#[derive(Debug, Default)]
pub(crate) struct KeeperBuffers {
    /// The number of this server, which is higher than the number of any earlier server.
    server: u64,
    panes: BTreeMap<PaneId, PaneBuffer>,
    /// Closed panes whose programs have ended. The keeper need not be told at once.
    closed: Vec<PaneId>,
}

#[derive(Debug)]
struct PaneBuffer {
    position: BufferPosition,
    is_saved: bool,
}

impl KeeperBuffers {
    pub(crate) fn new(server: u64) -> Self {
        Self { server, ..Self::default() }
    }

    pub(crate) fn server(&self) -> u64 {
        self.server
    }

    /// Records the position up to which a pane shows the kept output, and how many bytes were lost before.
    pub(crate) fn take(&mut self, pane: PaneId, end: BufferEnd, lost: u64) {
        let position = BufferPosition { server: self.server, end, lost };
        self.panes.insert(pane, PaneBuffer { position, is_saved: false });
    }

    /// The position to save with the screen of a pane, if the keeper still has output of it.
    pub(crate) fn position(&self, pane: &PaneId) -> Option<BufferPosition> {
        self.panes.get(pane).map(|taken| taken.position)
    }

    /// Records that the screen of a pane is saved.
    pub(crate) fn set_saved(&mut self, pane: &PaneId) {
        self.panes.get_mut(pane).into_iter().for_each(|taken| taken.is_saved = true);
    }

    /// Returns true if some of the output is not saved in a screen yet.
    pub(crate) fn is_needed(&self) -> bool {
        self.panes.values().any(|taken| !taken.is_saved)
    }

    /// Returns true if the keeper still has output, or has not been told about a closed pane.
    pub(crate) fn is_held(&self) -> bool {
        !self.panes.is_empty() || !self.closed.is_empty()
    }

    /// Postpones telling the keeper that a pane was closed. Its program has ended.
    pub(crate) fn close_later(&mut self, pane: PaneId) {
        self.panes.remove(&pane);
        self.closed.push(pane);
    }

    /// Returns the closed panes that the keeper has to forget.
    pub(crate) fn take_closed(&mut self) -> Vec<PaneId> {
        std::mem::take(&mut self.closed)
    }

    /// Records that the keeper received a request, and has dropped the output.
    pub(crate) fn drop_all(&mut self) {
        self.panes.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::emulator::{Emulator, Size};

    #[test]
    fn a_position_is_read_as_it_was_written_and_is_not_shown() {
        let position =
            BufferPosition { server: 3, end: BufferEnd { bytes: 1 << 40, tail: u64::MAX }, lost: 7 };
        let mut saved = "text".to_owned();
        position.write(&mut saved);
        assert_eq!(BufferPosition::split(saved.as_bytes()), (&b"text"[..], Some(position)));
        let mut emulator = Emulator::new(Size::at_least(20, 2), 0);
        emulator.feed(saved.as_bytes());
        emulator.feed(b"!");
        let shown: String = emulator.row(0).filter_map(|cell| cell.character).collect();
        assert_eq!(shown.trim_end(), "text!");
        for other in [
            "",
            "text",
            "\x1b_ringer:kept=1;2;3\x1b\\",
            "\x1b_ringer:kept=1;2;3;4;5\x1b\\",
            "\x1b_ringer:kept=1;2;3;4",
        ] {
            assert_eq!(BufferPosition::split(other.as_bytes()), (other.as_bytes(), None), "{other:?}");
        }
    }

    /// The unread part of the keeper's output, for a screen that was saved when the keeper had `before`.
    #[track_caller]
    fn check(before: Option<(&str, u64)>, now: (&str, u64), expected: (&str, &str, u64)) {
        let position = before.and_then(|(output, lost)| {
            let end = BufferEnd::of(output.as_bytes(), 0)?;
            Some(BufferPosition { server: 1, end, lost })
        });
        let unread = UnreadOutput::of(now.0.as_bytes(), now.1, position);
        let (shown, new, lost) = expected;
        assert_eq!(unread, UnreadOutput { shown: shown.as_bytes(), new: new.as_bytes(), lost });
    }

    #[test]
    fn output_on_the_screen_is_not_new() {
        check(None, ("abcdef", 0), ("", "abcdef", 0));
        check(None, ("abcdef", 5), ("", "abcdef", 5));
        check(Some(("", 0)), ("abcdef", 0), ("", "abcdef", 0));
        check(Some(("abcd", 0)), ("abcdef", 0), ("abcd", "ef", 0));
        check(Some(("abcd", 2)), ("abcdef", 0), ("abcd", "ef", 2));
        check(Some(("abcdef", 0)), ("abcdef", 0), ("abcdef", "", 0));
        // The keeper has dropped the beginning, which is not compared.
        let (long, tail) = ("a".repeat(5) + &"b".repeat(4096), "b".repeat(4096));
        check(Some((&long, 1)), (&(tail.clone() + "c"), 5), (&tail, "c", 1));
    }

    #[test]
    fn output_that_may_not_be_on_the_screen_is_new() {
        // The keeper dropped everything and started again: it has less, as much, or more.
        check(Some(("abcd", 0)), ("efg", 0), ("", "efg", 0));
        check(Some(("abcd", 0)), ("efgh", 0), ("", "efgh", 0));
        check(Some(("abcd", 0)), ("efghijkl", 0), ("", "efghijkl", 0));
        check(Some(("abcd", 1)), ("efghijkl", 2), ("", "efghijkl", 2));
        // The keeper has dropped some or all of the compared bytes.
        check(Some(("abcd", 0)), ("cdef", 2), ("", "cdef", 2));
        check(Some(("abcd", 0)), ("ghij", 6), ("", "ghij", 6));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_split(bytes in "(ringer:kept=|\x1b_|\x1b\\\\|[0-9;]|x){0,20}", dropped in 0_u64..9) {
            let (screen, position) = BufferPosition::split(bytes.as_bytes());
            let unread = UnreadOutput::of(screen, dropped, position);
            prop_assert_eq!([unread.shown, unread.new].concat(), screen);
        }
    }

    #[test]
    fn buffers_are_needed_until_all_screens_are_saved_or_closed() {
        let mut kept = KeeperBuffers::new(4);
        let [one, other, quiet] = ["one", "other", "quiet"].map(PaneId::new);
        let end = BufferEnd::of(b"output", 0).expect("an end");
        kept.take(one.clone(), end, 2);
        kept.take(other.clone(), end, 0);
        assert_eq!(kept.position(&one), Some(BufferPosition { server: 4, end, lost: 2 }));
        assert_eq!(kept.position(&quiet), None);
        kept.set_saved(&one);
        assert!(kept.is_needed());
        kept.close_later(other.clone());
        assert!(!kept.is_needed() && kept.is_held());
        assert_eq!(kept.take_closed(), [other]);
        assert!(kept.take_closed().is_empty() && kept.is_held());
        kept.drop_all();
        assert_eq!(kept.position(&one), None);
        assert!(!kept.is_held());
    }
}
