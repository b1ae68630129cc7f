//! How a popup reads for a notification server: safe text, and only what that server can do.

use ringer_core::Kind;
use ringer_term::{sanitise_block, sanitise_line};

use super::Popup;

impl Popup {
    /// How the server is told, by what it can do.
    pub(super) fn wording(&self, able: Abilities) -> Wording {
        let mut summary = self.heading();
        let parts = [self.subtitle.trim(), self.body.trim()];
        let text: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut body = sanitise_block(&text.join("\n"));
        if !able.body && !body.is_empty() {
            summary = sanitise_line(&format!("{summary}: {body}"));
            body.clear();
        } else if able.markup {
            body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        }
        Wording {
            summary,
            body,
            urgency: match self.kind {
                Kind::Error => 2,
                Kind::Question | Kind::Waiting | Kind::Stuck | Kind::Complete => 1,
                Kind::Status => 0,
            },
            category: format!("x-ringer.{}", self.kind),
            tag: sanitise_line(&self.key),
            actions: if able.actions { vec!["default", "Show"] } else { Vec::new() },
            // A question stays until somebody has seen it; all else as long as the server likes.
            expire: if self.kind == Kind::Question { 0 } else { -1 },
        }
    }
}

/// What a notification server can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// It can show a text below the heading.
    pub(super) body: bool,
    /// It reads `<b>` and the like in that text, so those characters have to be escaped.
    pub(super) markup: bool,
    /// It tells when somebody clicks.
    pub(super) actions: bool,
}

impl Abilities {
    /// From what the server lists.
    pub(super) fn of(listed: &[String]) -> Self {
        let has = |name: &str| listed.iter().any(|listed| listed == name);
        Self { body: has("body"), markup: has("body-markup"), actions: has("actions") }
    }
}

/// What the server is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wording {
    /// The heading, never empty. Plain text for every server.
    pub(super) summary: String,
    /// The text below it.
    pub(super) body: String,
    /// 0 low, 1 normal, 2 critical.
    pub(super) urgency: u8,
    /// Of our own making, as the standard asks of those it does not list.
    pub(super) category: String,
    /// For servers that replace by a name: it works even if we have lost their number.
    pub(super) tag: String,
    /// Names and labels, in turn.
    pub(super) actions: Vec<&'static str>,
    /// Milliseconds; -1 as the server likes, 0 never.
    pub(super) expire: i32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;

    const ALL: Abilities = Abilities { body: true, markup: true, actions: true };

    fn popup(title: &str, subtitle: &str, body: &str) -> Popup {
        let (title, subtitle, body) = (title.to_owned(), subtitle.to_owned(), body.to_owned());
        Popup { title, subtitle, body, ..Popup::of(&example()) }
    }

    #[test]
    fn hostile_text_is_plain_text() {
        let wording = popup("a\x1b[31m\nb & <c>", "sub", "<b>1 & 2</b>\x07\nnext").wording(ALL);
        assert_eq!(wording.summary, "a[31m b & <c>", "a heading is never markup");
        assert_eq!(wording.body, "sub\n&lt;b&gt;1 &amp; 2&lt;/b&gt;\nnext");
        let plain = popup("t", "", "<b>").wording(Abilities { markup: false, ..ALL });
        assert_eq!(plain.body, "<b>");
    }

    #[test]
    fn only_what_the_server_can_do() {
        let able = Abilities::of(&["body".to_owned(), "persistence".to_owned()]);
        assert_eq!(able, Abilities { body: true, markup: false, actions: false });
        assert!(popup("t", "", "b").wording(able).actions.is_empty());
        let headings_only = popup("t", "s", "b").wording(Abilities::default());
        assert_eq!((headings_only.summary.as_str(), headings_only.body.as_str()), ("t: s b", ""));
        assert_eq!(popup("\x07", "", "").wording(ALL).summary, "Ringer");
    }

    #[test]
    fn urgency_and_time_by_kind() {
        let check = |kind, urgency, expire| {
            let wording = Popup { kind, ..popup("t", "", "b") }.wording(ALL);
            assert_eq!((wording.urgency, wording.expire), (urgency, expire), "{kind}");
        };
        check(Kind::Error, 2, -1);
        check(Kind::Question, 1, 0);
        check(Kind::Waiting, 1, -1);
        check(Kind::Stuck, 1, -1);
        check(Kind::Complete, 1, -1);
        check(Kind::Status, 0, -1);
    }
}
