//! How a popup reads for a notification server: safe text, and only what that server can do.

use ringer_core::message::Urgency;
use ringer_term::{sanitise_block, sanitise_line};

use super::popup::Popup;

impl Popup {
    /// The content for a server with these capabilities.
    pub(super) fn content(&self, server: ServerCapabilities) -> PopupContent {
        let mut summary = self.heading();
        let parts = [self.subtitle.trim(), self.body.trim()];
        let text: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut body = sanitise_block(&text.join("\n"));
        if !server.body && !body.is_empty() {
            summary = sanitise_line(&format!("{summary}: {body}"));
            body.clear();
        } else {
            body = server.markup.neutralise(body);
        }
        PopupContent {
            summary,
            body,
            urgency: match self.kind.popup_urgency() {
                Urgency::High => 2,
                Urgency::Normal => 1,
                Urgency::Low => 0,
            },
            category: format!("x-ringer.{}", self.kind),
            tag: sanitise_line(&self.key),
            actions: if server.actions { vec!["default", "Show"] } else { Vec::new() },
            // What the person must answer stays; all else is shown as long as the server likes.
            expire: if self.kind.stays() { 0 } else { -1 },
        }
    }
}

/// What a notification server can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    /// It can show a text below the heading.
    pub(super) body: bool,
    /// Whether it reads `<b>` and the like in that text.
    pub(super) markup: Markup,
    /// It reports clicks.
    pub(super) actions: bool,
}

impl ServerCapabilities {
    /// From what the server lists.
    pub(super) fn of(listed: &[String]) -> Self {
        let has = |name: &str| listed.iter().any(|listed| listed == name);
        let markup = if has("body-markup") {
            Markup::Rendered
        } else if has("body-hyperlinks") || has("body-images") {
            Markup::Unclear
        } else {
            Markup::Plain
        };
        Self { body: has("body"), markup, actions: has("actions") }
    }
}

/// What a server makes of markup in the text below the heading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Markup {
    /// It shows every character as it is.
    #[default]
    Plain,
    /// It renders markup, so `&`, `<` and `>` are escaped.
    Rendered,
    /// It does not say. dunst lists `body-hyperlinks` and no `body-markup` both where its configuration has `markup = no`
    /// and where that line is missing, and renders markup in the second case only. An escape would be visible in the first
    /// case, so other characters stand for those of markup.
    Unclear,
}

impl Markup {
    /// The text with nothing in it that the server could take for markup.
    fn neutralise(self, text: String) -> String {
        match self {
            Self::Plain => text,
            Self::Rendered => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            Self::Unclear => text.replace('&', "＆").replace('<', "‹").replace('>', "›"),
        }
    }
}

/// What is sent to the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PopupContent {
    /// The heading, never empty. Plain text for every server.
    pub(super) summary: String,
    /// The text below it.
    pub(super) body: String,
    /// 0 low, 1 normal, 2 critical.
    pub(super) urgency: u8,
    /// `x-ringer…`: the standard asks for a vendor prefix where it lists no category.
    pub(super) category: String,
    /// For servers that replace by a tag: it works also when the popup's number is not known any more.
    pub(super) tag: String,
    /// Names and labels, alternating.
    pub(super) actions: Vec<&'static str>,
    /// Milliseconds; -1 as the server likes, 0 never.
    pub(super) expire: i32,
}

#[cfg(test)]
mod tests {
    use ringer_core::message::ShownKind;

    use super::*;
    use crate::note::example;
    use proptest::prelude::*;

    const ALL: ServerCapabilities =
        ServerCapabilities { body: true, markup: Markup::Rendered, actions: true };

    fn popup(title: &str, subtitle: &str, body: &str) -> Popup {
        let (title, subtitle, body) = (title.to_owned(), subtitle.to_owned(), body.to_owned());
        Popup { title, subtitle, body, ..Popup::of(&example()) }
    }

    #[test]
    fn hostile_text_is_plain_text() {
        let content = popup("a\x1b[31m\nb & <c>", "sub", "<b>1 & 2</b>\x07\nnext").content(ALL);
        assert_eq!(content.summary, "a[31m b & <c>", "a heading is never markup");
        assert_eq!(content.body, "sub\n&lt;b&gt;1 &amp; 2&lt;/b&gt;\nnext");
        let body = |markup| popup("t", "", "<b>&amp;").content(ServerCapabilities { markup, ..ALL }).body;
        assert_eq!(body(Markup::Plain), "<b>&amp;");
        assert_eq!(body(Markup::Unclear), "‹b›＆amp;");
    }

    #[test]
    fn only_what_the_server_can_do() {
        let able = ServerCapabilities::of(&["body".to_owned(), "persistence".to_owned()]);
        assert_eq!(able, ServerCapabilities { body: true, markup: Markup::Plain, actions: false });
        let markup = |names: &[&str]| {
            ServerCapabilities::of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).markup
        };
        assert_eq!(markup(&["body", "body-hyperlinks", "actions"]), Markup::Unclear, "dunst");
        assert_eq!(markup(&["body", "body-images"]), Markup::Unclear);
        assert_eq!(markup(&["body", "body-hyperlinks", "body-markup"]), Markup::Rendered);
        assert!(popup("t", "", "b").content(able).actions.is_empty());
        let headings_only = popup("t", "s", "b").content(ServerCapabilities::default());
        assert_eq!((headings_only.summary.as_str(), headings_only.body.as_str()), ("t: s b", ""));
        assert_eq!(popup("\x07", "", "").content(ALL).summary, "Ringer");
    }

    #[test]
    fn urgency_and_time_by_kind() {
        let check = |kind, urgency, expire| {
            let content = Popup { kind, ..popup("t", "", "b") }.content(ALL);
            assert_eq!((content.urgency, content.expire), (urgency, expire), "{kind}");
        };
        check(ShownKind::Error, 1, -1);
        check(ShownKind::Question, 2, 0);
        check(ShownKind::Permission, 2, 0);
        check(ShownKind::Waiting, 1, -1);
        check(ShownKind::Stuck, 1, -1);
        check(ShownKind::Complete, 1, -1);
        check(ShownKind::Idle, 0, -1);
        check(ShownKind::Status, 0, -1);
    }

    proptest! {
        /// Control, format, separator and private characters, markup and letters in every field.
        #[test]
        fn no_field_holds_what_is_no_text_or_markup(
            text in proptest::collection::vec(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}a-z<>&;👩]{0,30}", 4),
            unclear in any::<bool>(),
        ) {
            let markup = if unclear { Markup::Unclear } else { Markup::Rendered };
            let popup = Popup { key: text[3].clone(), ..popup(&text[0], &text[1], &text[2]) };
            let content = popup.content(ServerCapabilities { markup, ..ALL });
            for field in [&content.summary, &content.body, &content.tag, &content.category] {
                prop_assert_eq!(&sanitise_block(field), field);
            }
            prop_assert!(!content.summary.is_empty() && !content.body.contains(['<', '>']), "{content:?}");
            let entities = content.body.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
            prop_assert!(!entities.contains('&'), "{}", content.body);
            prop_assert_eq!(content.actions, ["default", "Show"]);
        }
    }
}
