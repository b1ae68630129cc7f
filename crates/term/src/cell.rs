//! Which characters a cell of a terminal inside another one may show.
//!
//! A program in a pane writes whole texts, in every script, so less is taken out than of a notification: what turns the reading
//! direction or cannot be seen goes, and joiners stay where letters or emoji need them.

use crate::hidden::{JOINER, NON_JOINER, is_hidden, joins_letters};
use crate::sanitise::{ends_emoji, takes_presentation};

/// Returns true if a character may be shown. `before` is the one before it in the same cell, or, for the first of a cell, anything.
///
/// Not shown are controls, bidirectional controls, zero-width spaces and fillers, tags, variation selectors other than those of
/// emoji, noncharacters, and plane 16, where kitty has its placeholders for images. The joiner U+200D may stand after an
/// emoji, and both joiners after a letter of a script that joins its letters, such as Arabic and those of India. Icons of
/// the private-use plane 15 are text to people.
///
/// ```
/// use ringer_term::is_shown_in_cell;
///
/// assert!(is_shown_in_cell('\u{200c}', Some('ی')) && !is_shown_in_cell('\u{200c}', Some('a')));
/// assert!(is_shown_in_cell('\u{fe0f}', Some('❤')) && !is_shown_in_cell('\u{202e}', Some('a')));
/// ```
pub fn is_shown_in_cell(character: char, before: Option<char>) -> bool {
    match character {
        JOINER => before.is_some_and(|before| ends_emoji(before) || joins_letters(before)),
        NON_JOINER => before.is_some_and(joins_letters),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(takes_presentation),
        '\u{f0000}'..='\u{ffffd}' => true,
        _ => !is_hidden(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is left of a text if each character is asked for.
    fn shown(text: &str) -> String {
        let mut before = None;
        let keep = |character: &char| {
            let is_shown = is_shown_in_cell(*character, before);
            before = if is_shown { Some(*character) } else { before };
            is_shown
        };
        text.chars().filter(keep).collect()
    }

    #[test]
    fn what_is_seen_stays_and_what_deceives_goes() {
        let check = |text: &str, expected: &str| assert_eq!(shown(text), expected, "{text:?}");
        for text in [
            "plain é 漢字 ●",
            "👩\u{200d}🚀 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 👩🏽\u{200d}🚀 1\u{fe0f}\u{20e3} ©\u{fe0f}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष क\u{94d}\u{200c}ष",
            "ශ\u{dca}\u{200d}රී",
            "\u{e0b0} \u{f0001}",
        ] {
            check(text, text);
        }
        check("user\u{202e}txt.exe\u{2066}x\u{2069}\u{200f}", "usertxt.exex");
        check("in\u{200b}vi\u{2060}si\u{feff}b\u{ad}le\u{e0041}\u{fe01}\u{e0101}", "invisible");
        check("a\u{200d}b\u{200c}c\u{fe0f}d", "abcd");
        check("👩\u{200d}\u{200d}\u{200d}🚀❤\u{fe0f}\u{fe0f}", "👩\u{200d}🚀❤\u{fe0f}");
        check("ی\u{200c}\u{200c}\u{200d}ی", "ی\u{200c}ی");
        check("\u{10eeee}\u{3164}\u{115f}x", "x");
    }

    proptest! {
        #[test]
        fn nothing_that_turns_text_around_is_shown(text in ".{0,40}", before in any::<char>()) {
            for character in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{200e}', '\u{200b}', '\u{61c}'] {
                prop_assert!(!is_shown_in_cell(character, Some(before)));
            }
            let once = shown(&text);
            prop_assert_eq!(shown(&once), once.clone());
        }

        #[test]
        fn letters_and_symbols_are_shown(
            text in r"[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}--\p{Default_Ignorable_Code_Point}]{1,20}",
        ) {
            prop_assert_eq!(shown(&text), text);
        }
    }
}
