//! The content of a popup for a notification server: sanitised text, and only what that server supports.

use ringer_core::agent::PopupAnswer;
use ringer_core::message::{ShownKind, Urgency};
use ringer_term::{sanitise_block, sanitise_line};
use serde::{Deserialize, Serialize};

use super::popup::Popup;
use crate::note::kind_icon;

impl Popup {
    /// The content for a server with these capabilities.
    pub(super) fn content(&self, server: ServerCapabilities) -> PopupContent {
        let mut summary = self.heading();
        let parts = [self.subtitle.trim(), self.body.trim()];
        let text: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = text.join("\n");
        let mut body = sanitise_block(&text);
        let is_shown = server.body && body == text && server.markup.shows_all(&text);
        let answers = self.answers(server, is_shown);
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
            icon: self.icon.as_deref().and_then(desktop_icon).unwrap_or_else(|| kind_desktop_icon(self.kind)),
            tag: sanitise_line(&self.key),
            actions: if server.actions { actions(&answers) } else { Vec::new() },
            answers,
            // A prompt stays until it is answered; the server decides about everything else.
            expire: if self.kind.stays() { 0 } else { -1 },
        }
    }

    /// The answers to offer. Some are offered only if the whole body is shown, because the person must read it first.
    fn answers(&self, server: ServerCapabilities, is_shown: bool) -> Vec<PopupAnswer> {
        match &self.prompt {
            Some(prompt) if server.actions => prompt.popup_answers(is_shown.then_some(self.body.trim())),
            _ => Vec::new(),
        }
    }
}

/// The icon of a kind, in a desktop's set of icons.
fn kind_desktop_icon(kind: ShownKind) -> String {
    desktop_icon(kind_icon(kind)).unwrap_or_default()
}

/// Returns the desktop's name for an icon of OSC 99. Any other name is taken as the desktop's own, if it is only a name: a path
/// or an address would make the desktop open a file.
fn desktop_icon(name: &str) -> Option<String> {
    let known = match name {
        "error" => "dialog-error",
        "warn" | "warning" => "dialog-warning",
        "info" => "dialog-information",
        "question" => "dialog-question",
        "help" => "help-browser",
        "file-manager" => "system-file-manager",
        "system-monitor" => "utilities-system-monitor",
        other => other,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (known.starts_with(|c: char| c.is_ascii_alphanumeric()) && known.chars().all(is_name))
        .then(|| known.to_owned())
}

/// A click on the popup itself goes to the surface and answers nothing. Where there are buttons, `Show` does the same.
fn actions(answers: &[PopupAnswer]) -> Vec<String> {
    let mut actions = vec![("default".to_owned(), "Show")];
    actions.extend(answers.iter().enumerate().map(|(index, answer)| (action(index, answer), answer.label())));
    if !answers.is_empty() {
        actions.push(("show".to_owned(), "Show"));
    }
    actions.into_iter().flat_map(|(name, label)| [name, label.to_owned()]).collect()
}

/// The action name of the answer at this index.
pub(super) fn action(index: usize, answer: &PopupAnswer) -> String {
    match answer {
        PopupAnswer::Allow => "allow".to_owned(),
        PopupAnswer::Deny => "deny".to_owned(),
        PopupAnswer::Choose(_) => format!("option-{}", index + 1),
    }
}

/// The capabilities of a notification server that matter here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    /// It shows a text below the heading.
    pub(super) body: bool,
    pub(super) markup: Markup,
    /// It reports clicks.
    pub(super) actions: bool,
}

impl ServerCapabilities {
    /// From the reply to `GetCapabilities`.
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

/// How a server treats markup in the body.
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
    /// Returns true if each character of a text is drawn as it is.
    fn shows_all(self, text: &str) -> bool {
        self != Self::Unclear || !text.contains(['&', '<', '>'])
    }

    /// Escapes or replaces all markup.
    fn neutralise(self, text: String) -> String {
        match self {
            Self::Plain => text,
            Self::Rendered => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            Self::Unclear => text.replace('&', "＆").replace('<', "‹").replace('>', "›"),
        }
    }
}

/// The arguments of `Notify`. Serialised in [`DisplayedPopup::offer`](super::DisplayedPopup::offer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PopupContent {
    /// The heading, never empty. Plain text for every server.
    pub(super) summary: String,
    /// The text below it.
    pub(super) body: String,
    /// 0 low, 1 normal, 2 critical.
    pub(super) urgency: u8,
    /// `x-ringer…`: the standard asks for a vendor prefix where it lists no category.
    pub(super) category: String,
    /// A name in the desktop's set of icons.
    pub(super) icon: String,
    /// For servers that replace popups by tag, which works even when the number is no longer known.
    pub(super) tag: String,
    /// Names and labels, alternating.
    pub(super) actions: Vec<String>,
    /// The answers behind these actions.
    pub(super) answers: Vec<PopupAnswer>,
    /// In milliseconds; -1: the server decides, 0: never.
    pub(super) expire: i32,
}

impl PopupContent {
    /// Serialises the content, if it offers answers.
    pub(super) fn offer(&self) -> Option<String> {
        // Plain data: it cannot fail to be written.
        (!self.answers.is_empty()).then(|| serde_json::to_string(self).unwrap_or_default())
    }

    /// Parses the content. `None` if it was written by another version or is damaged.
    pub(super) fn from_offer(offer: &str) -> Option<Self> {
        serde_json::from_str(offer).ok()
    }
}

#[cfg(test)]
mod tests {
    use ringer_core::agent::{PermissionRequest, PromptContent};
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
    fn an_icon_is_a_name_and_never_a_path() {
        let icon = |name: Option<&str>, kind| {
            let icon = name.map(str::to_owned);
            Popup { kind, icon, ..popup("t", "", "b") }.content(ALL).icon
        };
        for (name, expected) in [("warning", "dialog-warning"), ("firefox", "firefox")] {
            assert_eq!(icon(Some(name), ShownKind::Error), expected);
        }
        for hostile in ["/etc/passwd", "file:///etc/passwd", "..", ".hidden", "a b", "", "\x1b[31m"] {
            assert_eq!(icon(Some(hostile), ShownKind::Error), "dialog-error", "{hostile}");
        }
        assert_eq!(icon(None, ShownKind::Permission), "dialog-question");
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

    /// The labels of the buttons on a server, for a command in the popup that is the whole body.
    fn buttons(command: &str, server: ServerCapabilities) -> Vec<String> {
        let (tool, request) = (String::new(), command.to_owned());
        let request = PermissionRequest { tool, request, whole: true, always: vec!["all".to_owned()] };
        let prompt = Some(Box::new(PromptContent::Permission(request)));
        let content = Popup { prompt, ..popup("t", "", command) }.content(server);
        content.actions.into_iter().skip(1).step_by(2).collect()
    }

    #[test]
    fn a_command_is_allowed_only_where_each_of_its_characters_is_shown() {
        let all = ["Show", "Allow", "Deny", "Show"];
        assert_eq!(buttons("a && b > c", ALL), all);
        assert_eq!(buttons("a && b > c", ServerCapabilities { markup: Markup::Plain, ..ALL }), all);
        let unclear = ServerCapabilities { markup: Markup::Unclear, ..ALL };
        assert_eq!(buttons("make deploy", unclear), all);
        for hidden in ["a\u{200b}b", "a\x1b[2Kb", "a\tb", "a\u{202e}b", "a\rb", "\u{7}"] {
            assert_eq!(buttons(hidden, ALL), ["Show", "Deny", "Show"], "{hidden:?}");
        }
        assert_eq!(
            buttons("a && b > c", unclear),
            ["Show", "Deny", "Show"],
            "other characters stand for these"
        );
        assert_eq!(buttons("make", ServerCapabilities { body: false, ..ALL }), ["Show", "Deny", "Show"]);
        assert!(buttons("make", ServerCapabilities { actions: false, ..ALL }).is_empty());
        let long = "x".repeat(201);
        assert_eq!(buttons(&long, ALL), ["Show", "Deny", "Show"]);
    }

    #[test]
    fn a_heading_that_leaves_no_room_for_the_command_leaves_no_way_to_allow_it() {
        let request =
            PermissionRequest { request: "make".to_owned(), whole: true, ..PermissionRequest::default() };
        let prompt = Some(Box::new(PromptContent::Permission(request)));
        let offers = |subtitle: &str| {
            let popup = Popup { prompt: prompt.clone(), ..popup("t", subtitle, "make") };
            popup.content(ALL).answers
        };
        assert_eq!(offers("main"), [PopupAnswer::Allow, PopupAnswer::Deny]);
        assert_eq!(offers(&"x".repeat(2000)), [PopupAnswer::Deny]);
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
