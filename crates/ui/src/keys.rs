//! Key bindings: actions, the names of keys in the settings, and the map between them.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// An action in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Goes to the terminal of the selected row.
    GoThere,
    /// Answers the selected row in place.
    Answer,
    /// Snoozes the selected notification.
    Snooze,
    /// Mutes the agent of the selected row.
    Mute,
    /// Marks the selected notification read.
    Read,
    /// Marks the selected notification unread.
    Unread,
    /// Removes the selected notification from the list.
    Remove,
    /// Removes all notifications from the list.
    ClearAll,
    /// Undoes the last read, clear or mute.
    Undo,
    /// Filters the rows.
    Filter,
    /// Shows how the selected notification was delivered.
    Why,
    /// Shows the page of the selected row's agent.
    Show,
    /// Selects the next unread row.
    NextUnread,
    /// Selects the row below.
    Down,
    /// Selects the row above.
    Up,
    /// Selects the first row of the next section.
    NextSection,
    /// Selects the first row of the section above.
    PreviousSection,
    /// Selects the first row.
    Top,
    /// Selects the last row.
    Bottom,
    /// Runs the setup, in which the person connects their agents.
    Setup,
    /// Shows all keys.
    Help,
    /// Quits the UI.
    Quit,
}

/// The name of an action in the settings, its text in the help, and its default keys.
pub(crate) struct ActionInfo {
    pub(crate) action: Action,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    keys: &'static [&'static str],
}

const fn action(
    action: Action,
    name: &'static str,
    help: &'static str,
    keys: &'static [&'static str],
) -> ActionInfo {
    ActionInfo { action, name, help, keys }
}

/// All actions, in the order of the help page.
pub(crate) const ACTIONS: [ActionInfo; 22] = [
    action(Action::GoThere, "go_there", "go there", &["enter"]),
    action(Action::Answer, "answer", "answer in place", &["a"]),
    action(Action::Snooze, "snooze", "put off; it comes back", &["s"]),
    action(Action::Mute, "mute", "mute its agent", &["m"]),
    action(Action::Read, "read", "mark read", &["r"]),
    action(Action::Unread, "unread", "mark unread", &["u"]),
    action(Action::Remove, "remove", "remove from the list", &["x", "delete"]),
    action(Action::ClearAll, "clear_all", "remove all", &["A"]),
    action(Action::Undo, "undo", "undo read, remove or mute", &["U"]),
    action(Action::Filter, "filter", "filter by words", &["/"]),
    action(Action::Why, "why", "why it was shown, or not", &["w"]),
    action(Action::Show, "show", "the page of its agent", &["o"]),
    action(Action::NextUnread, "next_unread", "next unread", &["n"]),
    action(Action::Down, "down", "down", &["j", "down"]),
    action(Action::Up, "up", "up", &["k", "up"]),
    action(Action::NextSection, "next_section", "next section", &["tab", "pagedown"]),
    action(Action::PreviousSection, "previous_section", "section above", &["shift-tab", "pageup"]),
    action(Action::Top, "top", "first row", &["g", "home"]),
    action(Action::Bottom, "bottom", "last row", &["G", "end"]),
    action(Action::Setup, "setup", "connect your agents", &["S"]),
    action(Action::Help, "help", "all keys", &["?"]),
    action(Action::Quit, "quit", "leave", &["q", "ctrl-c"]),
];

/// Examples of key names in the settings, for error messages.
pub const KEY_EXAMPLES: &str = "a, A, enter, ctrl-g, alt-x, f5";

/// A key with its modifiers, in the notation of the settings: `a`, `A`, `ctrl-g`, `enter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub struct KeyPress {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

const NAMED_KEYS: [(&str, KeyCode); 16] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("backtab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

impl KeyPress {
    /// Returns the key of a character without modifiers.
    pub(crate) const fn plain(char: char) -> Self {
        Self { code: KeyCode::Char(char), ctrl: false, alt: false }
    }

    /// Returns `ctrl-g`.
    pub const fn ctrl_g() -> Self {
        Self::with_control('g')
    }

    /// Returns the key of a character with Ctrl.
    pub(crate) const fn with_control(char: char) -> Self {
        Self { code: KeyCode::Char(char), ctrl: true, alt: false }
    }

    /// Returns the key of an event.
    pub fn of(event: &KeyEvent) -> Self {
        let has = |modifier| event.modifiers.contains(modifier);
        Self { code: event.code, ctrl: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) }
    }

    /// Parses the name of a key in the settings.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let (mut ctrl, mut alt) = (false, false);
        loop {
            if let Some(after) = rest.strip_prefix("ctrl-") {
                (rest, ctrl) = (after, true);
            } else if let Some(after) = rest.strip_prefix("alt-") {
                (rest, alt) = (after, true);
            } else {
                break;
            }
        }
        let named = NAMED_KEYS.iter().find(|(name, _)| *name == rest).map(|(_, code)| *code);
        let function = || rest.strip_prefix('f')?.parse().ok().filter(|number| (1..=24).contains(number));
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(char), None) if !char.is_control() => KeyCode::Char(char),
            _ => named.or_else(|| function().map(KeyCode::F))?,
        };
        Some(Self { code, ctrl, alt })
    }
}

impl fmt::Display for KeyPress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            out.write_str("ctrl-")?;
        }
        if self.alt {
            out.write_str("alt-")?;
        }
        match (NAMED_KEYS.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => out.write_str(name),
            (None, KeyCode::Char(char)) => write!(out, "{char}"),
            (None, KeyCode::F(number)) => write!(out, "f{number}"),
            (None, other) => write!(out, "{other}"),
        }
    }
}

/// An invalid line of `[keys]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidKey(String);

impl fmt::Display for InvalidKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InvalidKey {}

/// A map from keys to actions.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyMap {
    keys: Vec<(KeyPress, Action)>,
}

impl Default for KeyMap {
    fn default() -> Self {
        let of = |words: &ActionInfo| {
            let action = words.action;
            words.keys.iter().filter_map(|key| KeyPress::parse(key)).map(move |key| (key, action)).collect()
        };
        Self { keys: ACTIONS.iter().flat_map(|words| -> Vec<(KeyPress, Action)> { of(words) }).collect() }
    }
}

impl KeyMap {
    /// Overrides the default keys with the settings: an action, and one or more keys separated by spaces. Returns invalid lines
    /// separately.
    pub fn with(settings: &BTreeMap<String, String>) -> (Self, Vec<InvalidKey>) {
        let mut map = Self::default();
        let mut invalid = Vec::new();
        for (name, keys) in settings {
            let Some(words) = ACTIONS.iter().find(|words| words.name == name) else {
                let known = Self::action_names().join(", ");
                invalid.push(InvalidKey(format!("unknown action {name:?} (known: {known})")));
                continue;
            };
            match parse_keys(keys) {
                Some(keys) => map.bind(words.action, &keys),
                None => invalid.push(InvalidKey(format!("{keys:?} is no key (examples: {KEY_EXAMPLES})"))),
            }
        }
        (map, invalid)
    }

    /// Returns the names of all actions in the settings.
    pub fn action_names() -> Vec<&'static str> {
        ACTIONS.iter().map(|words| words.name).collect()
    }

    /// Returns true if a text is one or more valid keys, separated by spaces.
    pub fn are_keys(text: &str) -> bool {
        parse_keys(text).is_some()
    }

    fn bind(&mut self, action: Action, keys: &[KeyPress]) {
        self.keys.retain(|(key, own)| *own != action && !keys.contains(key));
        self.keys.extend(keys.iter().map(|key| (*key, action)));
    }

    pub(crate) fn action(&self, key: KeyPress) -> Option<Action> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
    }

    /// Returns the first key of an action, for display.
    pub(crate) fn first_key(&self, action: Action) -> Option<String> {
        self.keys.iter().find(|(_, own)| *own == action).map(|(key, _)| key.to_string())
    }

    /// Returns all keys of an action, for display.
    pub(crate) fn keys_of(&self, action: Action) -> String {
        let keys = self.keys.iter().filter(|(_, own)| *own == action).map(|(key, _)| key.to_string());
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// Parses keys separated by spaces. `None` if one of them is invalid, or there is none.
fn parse_keys(text: &str) -> Option<Vec<KeyPress>> {
    let keys: Option<Vec<KeyPress>> = text.split_whitespace().map(KeyPress::parse).collect();
    keys.filter(|keys| !keys.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_key_and_no_key_two_actions() {
        let map = KeyMap::default();
        for words in &ACTIONS {
            assert!(map.first_key(words.action).is_some(), "{}", words.name);
        }
        for (key, action) in &map.keys {
            assert_eq!(map.action(*key), Some(*action), "{key}");
            assert_eq!(KeyPress::parse(&key.to_string()), Some(*key));
        }
    }

    #[test]
    fn a_configured_key_replaces_the_default() {
        let settings = [("answer", "ctrl-y f5"), ("reed", "r"), ("why", "hyper-w"), ("quit", "a")];
        let settings = settings.map(|(name, key)| (name.to_owned(), key.to_owned())).into();
        let (map, invalid) = KeyMap::with(&settings);
        let action = |key: &str| map.action(KeyPress::parse(key).unwrap());
        assert_eq!(action("ctrl-y"), Some(Action::Answer));
        assert_eq!(action("f5"), Some(Action::Answer));
        assert_eq!(action("a"), Some(Action::Quit));
        assert_eq!(action("w"), Some(Action::Why));
        let invalid: Vec<String> = invalid.iter().map(ToString::to_string).collect();
        assert!(invalid[0].starts_with("unknown action \"reed\" (known: go_there, answer"), "{invalid:?}");
        assert_eq!(invalid[1], "\"hyper-w\" is no key (examples: a, A, enter, ctrl-g, alt-x, f5)");
    }
}
