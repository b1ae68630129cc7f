//! Which escape sequences Claude Code writes to its terminal for a hook.
//!
//! A hook has no terminal there; what it wants shown goes out through the client, which lets few sequences pass: the
//! title (OSC 0, 1, 2), notifications (OSC 9, 99, 777) and the bell.

/// The longest output of one hook, in bytes.
const MAX_SEQUENCES: usize = 16 * 1024;

const ALLOWED: [&str; 6] = ["0", "1", "2", "9", "99", "777"];

/// Whether a text consists of nothing but sequences that pass. One that does not would lose the whole output.
///
/// ```
/// use ringer_agents::client::is_allowed_sequence;
///
/// assert!(is_allowed_sequence("\x1b]9;build done\x07\x07"));
/// assert!(!is_allowed_sequence("\x1b]52;c;c3RvbGVu\x07"));
/// ```
pub fn is_allowed_sequence(text: &str) -> bool {
    if text.is_empty() || text.len() > MAX_SEQUENCES {
        return false;
    }
    let mut rest = text;
    while !rest.is_empty() {
        match rest.strip_prefix('\x07').or_else(|| after_osc(rest)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// What follows the OSC at the beginning, if that one is allowed.
fn after_osc(text: &str) -> Option<&str> {
    let (number, rest) = text.strip_prefix("\x1b]")?.split_once(';')?;
    if !ALLOWED.contains(&number) {
        return None;
    }
    // The first control character has to be the end: any other could begin a sequence of its own.
    let end = rest.find(char::is_control)?;
    rest[end..].strip_prefix('\x07').or_else(|| rest[end..].strip_prefix("\x1b\\"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_passes() {
        for text in [
            "\x07",
            "\x1b]0;title\x07",
            "\x1b]1;t\x1b\\",
            "\x1b]2;\x07",
            "\x1b]9;text ä\x1b\\\x07",
            "\x1b]99;i=1:d=0:p=title;a\x1b\\\x1b]99;i=1:d=1:a=focus;\x1b\\",
            "\x1b]777;notify;title;body\x07",
        ] {
            assert!(is_allowed_sequence(text), "{text:?}");
        }
    }

    #[test]
    fn what_does_not() {
        for text in [
            "",
            "text",
            "\x1b]9;text\x07text",
            "\x1b]9;text",
            "\x1b]9\x07",
            "\x1b]52;c;x\x07",
            "\x1b]7501;state=done\x1b\\",
            "\x1b]09;x\x07",
            "\x1b]9;a\x1b[2J\x07",
            "\x1b]9;a\nb\x07",
            "\x1b]9;a\u{9b}2J\x07",
            "\x1b[2J",
            "\x1bPtmux;x\x1b\\",
            "\u{9d}9;x\x07",
        ] {
            assert!(!is_allowed_sequence(text), "{text:?}");
        }
        assert!(!is_allowed_sequence(&"\x07".repeat(MAX_SEQUENCES + 1)));
    }

    proptest! {
        #[test]
        fn no_other_control_passes(text in "[\u{1b}\u{7}\\]\\\\;0129a\n\u{9c}]{0,12}") {
            let harmless = !text.contains(['\n', '\u{9c}']) && text.ends_with(['\u{7}', '\\']);
            prop_assert!(harmless || !is_allowed_sequence(&text));
        }
    }
}
