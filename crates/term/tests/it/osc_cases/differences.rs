//! Where we differ from the terminal of the cases, and why. All of it is chosen.

use ringer_term::EventKind;

/// An input of which we make something else.
pub(super) struct Difference {
    start: &'static str,
    /// How many `a` follow the start: the cases of the longest titles are made of them.
    filled: usize,
    ours: Ours,
    pub(super) why: &'static str,
}

/// What we make of it instead.
#[derive(Debug, Clone, Copy)]
enum Ours {
    Nothing,
    /// A notification of this text.
    Text(&'static str),
    /// A title of everything that was filled in.
    Title,
}

impl Difference {
    pub(super) fn input(&self) -> String {
        format!("{}{}", self.start, "a".repeat(self.filled))
    }

    /// A difference is no free pass: it says what we make of the input instead.
    pub(super) fn check(&self, events: &[EventKind]) {
        let holds = match (self.ours, events) {
            (Ours::Nothing, []) => true,
            (Ours::Text(text), [EventKind::Notification(notification)]) => {
                notification.title.is_empty() && notification.body == text
            }
            (Ours::Title, [EventKind::Title(title)]) => *title == "a".repeat(self.filled),
            _ => false,
        };
        assert!(holds, "{}: {:?} is listed, not {events:?}", self.start, self.ours);
    }
}

const fn differs(start: &'static str, ours: Ours, why: &'static str) -> Difference {
    Difference { start, filled: 0, ours, why }
}

const BARE_NUMBER: &str = "a number without a `;` is text: only `N;` is one of ConEmu's commands";
const CONEMUS: &str =
    "`N;` with N from 1 to 12 is ConEmu's, whatever follows: nobody wants \"4;5\" to pop up";
const LONG: &str = "our bound is 8 KiB, not 2 KiB";
const WITHOUT_TEXT: &str = "nothing to show: a notification needs a title or a body";
const NOT_DONE: &str = "the rest is still to come, and it is reported whole";
const CLOSE_WHICH: &str = "a close without an id does not say what to close";

pub(super) const DIFFERENCES: &[Difference] = &[
    differs("9;5", Ours::Text("5"), BARE_NUMBER),
    differs("9;10", Ours::Text("10"), BARE_NUMBER),
    differs("9;12", Ours::Text("12"), BARE_NUMBER),
    differs("9;4;", Ours::Nothing, CONEMUS),
    differs("9;4;5", Ours::Nothing, CONEMUS),
    differs("9;4;5a", Ours::Nothing, CONEMUS),
    differs("9;10;4", Ours::Nothing, CONEMUS),
    differs("9;10;", Ours::Nothing, CONEMUS),
    differs("9;10;abc", Ours::Nothing, CONEMUS),
    Difference { start: "0;", filled: 2048, ours: Ours::Title, why: LONG },
    Difference { start: "0;", filled: 2050, ours: Ours::Title, why: LONG },
    differs("99;;", Ours::Nothing, WITHOUT_TEXT),
    differs("99;p=buttons;foobar", Ours::Nothing, WITHOUT_TEXT),
    differs("99;p=icon;foobar", Ours::Nothing, WITHOUT_TEXT),
    differs("99;d=0;foobar", Ours::Nothing, NOT_DONE),
    differs("99;p=close;foobar", Ours::Nothing, CLOSE_WHICH),
];

const OF_THE_SHELL: &str = "an option of a prompt mark; only the exit code concerns us";
const OF_THE_FRAME: &str = "how the sequence was written, not what it says";

/// Fields of an expectation that no event of ours has: command, field, why.
pub(super) const NOT_REPORTED: &[(&str, &str, &str)] = &[
    ("semantic_prompt", "aid", OF_THE_SHELL),
    ("semantic_prompt", "cl", OF_THE_SHELL),
    ("semantic_prompt", "command_line", OF_THE_SHELL),
    ("semantic_prompt", "err", OF_THE_SHELL),
    ("semantic_prompt", "prompt_kind", OF_THE_SHELL),
    ("semantic_prompt", "redraw", OF_THE_SHELL),
    ("kitty_desktop_notification", "e", OF_THE_FRAME),
    ("kitty_desktop_notification", "metadata", OF_THE_FRAME),
    ("kitty_desktop_notification", "terminator", OF_THE_FRAME),
];
