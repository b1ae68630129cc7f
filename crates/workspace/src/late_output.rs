//! What a program wrote while no server read it, and how much of that is on its saved screen already.

use std::fmt::Write;

use memchr::memmem::rfind;

/// Begins and ends the position after a saved screen. Terminals, and so older versions, leave such a string out.
const BEGIN: &str = "\x1b_ringer:kept=";
const END: &str = "\x1b\\";

/// How much of what the keeper kept was on a screen when it was saved.
///
/// A server saves the screens, and lets the keeper drop what it kept after that. If it is killed in between, the next one gets the
/// same output again, and finds with this that it is on the screen already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptPosition {
    /// The number of the server that saved it. Later servers have higher numbers.
    pub(crate) server: u64,
    /// How many bytes, counted from the moment in which the keeper began to keep.
    pub(crate) end: u64,
    /// How many of these were lost, because the keeper keeps only the last ones.
    pub(crate) lost: u64,
}

impl KeptPosition {
    /// Puts it behind a saved screen.
    pub(crate) fn write(self, out: &mut String) {
        let Self { server, end, lost } = self;
        let _ = write!(out, "{BEGIN}{server};{end};{lost}{END}");
    }

    /// A saved screen, and the position behind it.
    pub(crate) fn split(saved: &[u8]) -> (&[u8], Option<Self>) {
        let read = || {
            let at = rfind(saved, BEGIN.as_bytes())?;
            let text = saved[at + BEGIN.len()..].strip_suffix(END.as_bytes())?;
            let mut numbers = str::from_utf8(text).ok()?.split(';').map(|number| number.parse().ok());
            let position = Self { server: numbers.next()??, end: numbers.next()??, lost: numbers.next()?? };
            numbers.next().is_none().then_some((&saved[..at], position))
        };
        read().map_or((saved, None), |(screen, position)| (screen, Some(position)))
    }
}

/// What a program wrote while no server read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LateOutput<'a> {
    /// What is on the screen already.
    pub(crate) shown: &'a [u8],
    /// What is not.
    pub(crate) new: &'a [u8],
    /// How many bytes before that are lost.
    pub(crate) lost: u64,
}

impl<'a> LateOutput<'a> {
    /// The output that the keeper has, after so many bytes that it dropped. The position is that of the screen, if it was saved since
    /// the keeper began to keep.
    pub(crate) fn of(output: &'a [u8], dropped: u64, position: Option<KeptPosition>) -> Self {
        let kept = dropped + output.len() as u64;
        // The keeper has less if it began anew.
        let Some(KeptPosition { end, lost, .. }) = position.filter(|own| own.end <= kept) else {
            return Self { shown: &[], new: output, lost: dropped };
        };
        let shown = usize::try_from(end.saturating_sub(dropped)).unwrap_or(0);
        let (shown, new) = output.split_at(shown.min(output.len()));
        Self { shown, new, lost: lost + dropped.saturating_sub(end) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::emulator::{Emulator, Size};

    #[test]
    fn a_position_is_read_as_it_was_written_and_is_not_shown() {
        let position = KeptPosition { server: 3, end: 1 << 40, lost: 7 };
        let mut saved = "text".to_owned();
        position.write(&mut saved);
        assert_eq!(KeptPosition::split(saved.as_bytes()), (&b"text"[..], Some(position)));
        let mut emulator = Emulator::new(Size::at_least(20, 2), 0);
        emulator.feed(saved.as_bytes());
        emulator.feed(b"!");
        let shown: String = emulator.row(0).filter_map(|cell| cell.character).collect();
        assert_eq!(shown.trim_end(), "text!");
        for other in [
            "",
            "text",
            "\x1b_ringer:kept=1;2\x1b\\",
            "\x1b_ringer:kept=1;2;3;4\x1b\\",
            "\x1b_ringer:kept=1;2;3",
        ] {
            assert_eq!(KeptPosition::split(other.as_bytes()), (other.as_bytes(), None), "{other:?}");
        }
    }

    #[test]
    fn what_is_on_the_screen_is_not_new() {
        let check = |output: &str, dropped, position: Option<(u64, u64)>, expected: (&str, &str, u64)| {
            let position = position.map(|(end, lost)| KeptPosition { server: 1, end, lost });
            let late = LateOutput::of(output.as_bytes(), dropped, position);
            assert_eq!(
                (late.shown, late.new, late.lost),
                (expected.0.as_bytes(), expected.1.as_bytes(), expected.2)
            );
        };
        check("abcdef", 0, None, ("", "abcdef", 0));
        check("abcdef", 5, None, ("", "abcdef", 5));
        check("abcdef", 0, Some((4, 0)), ("abcd", "ef", 0));
        check("abcdef", 0, Some((6, 0)), ("abcdef", "", 0));
        // The keeper dropped some of it meanwhile: of what the screen has, and more.
        check("abcdef", 2, Some((4, 1)), ("ab", "cdef", 1));
        check("abcdef", 7, Some((4, 1)), ("", "abcdef", 4));
        // It dropped everything, and began anew.
        check("abcdef", 0, Some((7, 0)), ("", "abcdef", 0));
    }

    proptest! {
        #[test]
        fn garbage_is_no_reason_to_panic(bytes in "(ringer:kept=|\x1b_|\x1b\\\\|[0-9;]|x){0,20}", dropped in 0_u64..9) {
            let (screen, position) = KeptPosition::split(bytes.as_bytes());
            let late = LateOutput::of(screen, dropped, position);
            prop_assert_eq!([late.shown, late.new].concat(), screen);
        }
    }
}
