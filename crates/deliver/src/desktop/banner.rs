//! How a popup reads on macOS, which calls it a banner.

use ringer_term::{sanitise_block, sanitise_line};

use super::popup::Popup;

/// What Notification Center gets: plain text, of which it reads nothing as markup.
///
/// It has no urgency. A sound would stand for one, but sound is a separate channel that may be muted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Banner {
    /// The heading, never empty.
    pub(super) title: String,
    /// The line below it.
    pub(super) subtitle: Option<String>,
    /// The text.
    pub(super) message: String,
}

impl Popup {
    /// The popup for Notification Center.
    pub(super) fn banner(&self) -> Banner {
        let subtitle = sanitise_line(self.subtitle.trim());
        Banner {
            title: self.heading(),
            subtitle: Some(subtitle).filter(|subtitle| !subtitle.trim().is_empty()),
            message: sanitise_block(self.body.trim()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;

    #[test]
    fn hostile_text_is_plain_text() {
        let check = |(title, subtitle, body): (&str, &str, &str), expect: (&str, Option<&str>, &str)| {
            let (title, subtitle, body) = (title.to_owned(), subtitle.to_owned(), body.to_owned());
            let banner = Popup { title, subtitle, body, ..Popup::of(&example()) }.banner();
            assert_eq!((banner.title.as_str(), banner.subtitle.as_deref(), banner.message.as_str()), expect);
        };
        check(("Claude", "repo", "done"), ("Claude", Some("repo"), "done"));
        check(
            ("a\x1b[31m\nb", "c\nd\x07", "<b>1 & 2</b>\x07\nnext"),
            ("a[31m b", Some("c d"), "<b>1 & 2</b>\nnext"),
        );
        check(("\x07", "\x1b", " "), ("Ringer", None, ""));
    }
}
