//! Key bindings after the prefix, and the help page that lists them.

use std::collections::BTreeMap;

use ringer_ui::{KEY_EXAMPLES, KeyPress};
use unicode_width::UnicodeWidthStr;

use crate::layout::Area;

/// An action that a key performs after the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaneAction {
    SplitRight,
    SplitDown,
    NewWorkspace,
    NextUnread,
    Inbox,
    FocusLeft,
    FocusRight,
    FocusUp,
    FocusDown,
    NextPane,
    NextWorkspace,
    PreviousWorkspace,
    Zoom,
    ResizeLeft,
    ResizeRight,
    ResizeUp,
    ResizeDown,
    ScrollBack,
    Search,
    Rename,
    Restart,
    Close,
    Sidebar,
    Detach,
    Help,
    SendPrefix,
}

/// The name of an action in the settings, its text in the help, and its default keys.
pub(crate) struct ActionWords {
    pub(crate) action: PaneAction,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    keys: &'static [&'static str],
}

const fn words(
    action: PaneAction,
    name: &'static str,
    help: &'static str,
    keys: &'static [&'static str],
) -> ActionWords {
    ActionWords { action, name, help, keys }
}

/// All actions in the order of the help.
pub(crate) const ACTIONS: [ActionWords; 26] = [
    words(PaneAction::NextUnread, "pane_next_unread", "next pane that rings", &["n"]),
    words(PaneAction::Inbox, "pane_inbox", "the inbox", &["i"]),
    words(PaneAction::SplitRight, "pane_split_right", "new pane at the right", &["|", "%"]),
    words(PaneAction::SplitDown, "pane_split_down", "new pane below", &["-", "\""]),
    words(PaneAction::NewWorkspace, "pane_new_workspace", "new workspace", &["c"]),
    words(PaneAction::FocusLeft, "pane_focus_left", "go left", &["left", "h"]),
    words(PaneAction::FocusRight, "pane_focus_right", "go right", &["right", "l"]),
    words(PaneAction::FocusUp, "pane_focus_up", "go up", &["up", "k"]),
    words(PaneAction::FocusDown, "pane_focus_down", "go down", &["down", "j"]),
    words(PaneAction::NextPane, "pane_next", "next pane", &["tab", "o"]),
    words(PaneAction::NextWorkspace, "pane_next_workspace", "next workspace", &["pagedown", ")"]),
    words(PaneAction::PreviousWorkspace, "pane_previous_workspace", "workspace before", &["pageup", "("]),
    words(PaneAction::Zoom, "pane_zoom", "one pane alone, and back", &["z"]),
    words(PaneAction::ResizeLeft, "pane_resize_left", "move the border left", &["H", "ctrl-left"]),
    words(PaneAction::ResizeRight, "pane_resize_right", "move the border right", &["L", "ctrl-right"]),
    words(PaneAction::ResizeUp, "pane_resize_up", "move the border up", &["K", "ctrl-up"]),
    words(PaneAction::ResizeDown, "pane_resize_down", "move the border down", &["J", "ctrl-down"]),
    words(PaneAction::ScrollBack, "pane_scroll", "scroll back", &["["]),
    words(PaneAction::Search, "pane_search", "search in the scrollback", &["/"]),
    words(PaneAction::Rename, "pane_rename", "rename the pane", &[","]),
    words(PaneAction::Restart, "pane_restart", "start its program again", &["r"]),
    words(PaneAction::Close, "pane_close", "close the pane", &["x"]),
    words(PaneAction::Sidebar, "pane_sidebar", "show or hide the sidebar", &["b"]),
    words(PaneAction::Detach, "pane_detach", "leave; everything runs on", &["d", "q"]),
    words(PaneAction::Help, "pane_help", "all keys", &["?"]),
    words(PaneAction::SendPrefix, "pane_send_prefix", "send the prefix itself", &["ctrl-g"]),
];

/// The name of the prefix in the settings, and its default key.
const PREFIX: (&str, &str) = ("pane_prefix", "ctrl-g");

/// The prefix and the key bindings after it.
#[derive(Debug, Clone, PartialEq)]
pub struct PaneKeys {
    pub(crate) prefix: KeyPress,
    keys: Vec<(KeyPress, PaneAction)>,
}

impl Default for PaneKeys {
    fn default() -> Self {
        Self::with(&BTreeMap::new()).0
    }
}

impl PaneKeys {
    /// Combines the default keys with the settings. Also returns the errors in the settings.
    pub fn with(settings: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut parse = |name: &str, keys: &str| -> Vec<KeyPress> {
            let parsed: Option<Vec<KeyPress>> = keys.split_whitespace().map(KeyPress::parse).collect();
            parsed.filter(|keys| !keys.is_empty()).unwrap_or_else(|| {
                problems.push(format!("{name}: {keys:?} is no key (examples: {KEY_EXAMPLES})"));
                Vec::new()
            })
        };
        let chosen = settings.get(PREFIX.0).map(|keys| parse(PREFIX.0, keys)).unwrap_or_default();
        let usual = KeyPress::parse(PREFIX.1);
        let prefix = chosen.first().copied().or(usual).unwrap_or_else(KeyPress::ctrl_g);
        let mut keys = Vec::new();
        for words in &ACTIONS {
            let set = settings.get(words.name).map(|keys| parse(words.name, keys)).unwrap_or_default();
            let own = if set.is_empty() {
                words.keys.iter().filter_map(|key| KeyPress::parse(key)).collect()
            } else {
                set
            };
            keys.extend(own.into_iter().map(|key| (key, words.action)));
        }
        // Pressed twice, the prefix is sent to the program, so the binding follows a changed prefix.
        keys.retain(|(key, action)| *action != PaneAction::SendPrefix || *key != usual.unwrap_or(prefix));
        keys.push((prefix, PaneAction::SendPrefix));
        for name in settings.keys().filter(|name| Self::is_own(name)) {
            if !Self::names().any(|known| known == name) {
                let known: Vec<&str> = Self::names().collect();
                problems.push(format!("unknown action {name:?} (known: {})", known.join(", ")));
            }
        }
        (Self { prefix, keys }, problems)
    }

    /// The names of all `[keys]` settings for panes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(PREFIX.0).chain(ACTIONS.iter().map(|words| words.name))
    }

    /// Returns true if a name in `[keys]` is a setting for panes.
    pub fn is_own(name: &str) -> bool {
        name.starts_with("pane_")
    }

    pub(crate) fn action(&self, key: KeyPress) -> Option<PaneAction> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, action)| *action)
    }

    /// The first key of an action with the prefix, in short form: `^g n`.
    pub(crate) fn shown(&self, action: PaneAction) -> String {
        let key = self.keys.iter().find(|(_, own)| *own == action).map(|(key, _)| key.to_string());
        format!("{} {}", short(&self.prefix.to_string()), short(&key.unwrap_or_default()))
    }

    /// All keys of an action in short form.
    pub(crate) fn keys_of(&self, action: PaneAction) -> String {
        let keys = self.keys.iter().filter(|(_, own)| *own == action).map(|(key, _)| short(&key.to_string()));
        keys.collect::<Vec<_>>().join(", ")
    }
}

fn short(key: &str) -> String {
    key.replace("ctrl-", "^")
}

/// The lines of the help page without keys: the title, and empty lines around it and at the end.
pub(crate) const OTHER_LINES: u16 = 4;
/// Empty columns: at each side, between columns of keys, and between a key and its text.
pub(crate) const SIDE: u16 = 2;
pub(crate) const BETWEEN: u16 = 3;
pub(crate) const AFTER_KEY: u16 = 2;

/// The keys that are not configurable. They are listed after the other keys for workspaces.
const NUMBERS: (&str, &str) = ("1 … 9", "that workspace");

/// A page of the help, with as many keys as fit the window.
pub(crate) struct HelpPage {
    pub(crate) columns: Vec<HelpColumn>,
    /// The first key of the next page, if there is one.
    pub(crate) next: Option<usize>,
}

/// A column of keys and their texts.
pub(crate) struct HelpColumn {
    pub(crate) lines: Vec<(String, &'static str)>,
    pub(crate) keys_width: u16,
    pub(crate) width: u16,
}

impl HelpColumn {
    fn new(lines: &[(String, &'static str)]) -> Self {
        let widest =
            |widths: &mut dyn Iterator<Item = usize>| u16::try_from(widths.max().unwrap_or(0)).unwrap_or(0);
        let keys_width = widest(&mut lines.iter().map(|line| line.0.width()));
        let words_width = widest(&mut lines.iter().map(|line| line.1.width()));
        Self { lines: lines.to_vec(), keys_width, width: keys_width + AFTER_KEY + words_width }
    }
}

impl HelpPage {
    /// The page that begins with the key at index `first`.
    pub(crate) fn new(keys: &PaneKeys, room: Area, first: usize) -> Self {
        let lines: Vec<(String, &str)> = all_keys(keys).skip(first).collect();
        let most = usize::from(room.height.saturating_sub(OTHER_LINES).max(1));
        // As many columns as needed, but no more than fit.
        let count = lines.len().div_ceil(most);
        let divided = |count: usize| -> Vec<HelpColumn> {
            let height = lines.len().div_ceil(count.max(1)).clamp(1, most);
            lines.chunks(height).take(count).map(HelpColumn::new).collect()
        };
        let fits = |columns: &Vec<HelpColumn>| width_of(columns) <= room.width;
        let columns = (1..=count).rev().map(divided).find(fits).unwrap_or_else(|| divided(1));
        let shown: usize = columns.iter().map(|column| column.lines.len()).sum();
        Self { columns, next: (0 < shown && shown < lines.len()).then_some(first + shown) }
    }

    pub(crate) fn width(&self) -> u16 {
        width_of(&self.columns)
    }
}

/// All keys and their texts, in the order of the help.
fn all_keys(keys: &PaneKeys) -> impl Iterator<Item = (String, &'static str)> {
    ACTIONS.iter().flat_map(|words| {
        let numbers = words.action == PaneAction::PreviousWorkspace;
        let numbers = numbers.then(|| (NUMBERS.0.to_owned(), NUMBERS.1));
        std::iter::once((keys.keys_of(words.action), words.help)).chain(numbers)
    })
}

fn width_of(columns: &[HelpColumn]) -> u16 {
    let all: u16 = columns.iter().map(|column| column.width + BETWEEN).sum();
    all.saturating_sub(BETWEEN) + 2 * SIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_key_and_no_key_two_actions() {
        let keys = PaneKeys::default();
        for words in &ACTIONS {
            assert!(!keys.keys_of(words.action).is_empty(), "{}", words.name);
        }
        for (key, action) in &keys.keys {
            assert_eq!(keys.action(*key), Some(*action), "{key}");
        }
    }

    #[test]
    fn the_prefix_can_be_another_key() {
        let settings =
            [("pane_prefix", "ctrl-b"), ("pane_zoom", "ctrl-g"), ("pane_nothing", "a"), ("pane_close", "?!")];
        let settings = settings.map(|(name, key)| (name.to_owned(), key.to_owned())).into();
        let (keys, problems) = PaneKeys::with(&settings);
        assert_eq!(keys.prefix.to_string(), "ctrl-b");
        assert_eq!(keys.action(KeyPress::parse("ctrl-b").unwrap()), Some(PaneAction::SendPrefix));
        assert_eq!(keys.action(KeyPress::parse("ctrl-g").unwrap()), Some(PaneAction::Zoom));
        assert_eq!(keys.shown(PaneAction::Zoom), "^b ^g");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn every_key_is_on_one_page_of_a_window_of_any_size() {
        let keys = PaneKeys::default();
        for (width, height) in [(1, 1), (10, 3), (40, 8), (40, 20), (80, 24), (250, 60)] {
            let (mut first, mut shown) = (Some(0), 0);
            while let Some(from) = first {
                assert_eq!(from, shown, "{width}x{height}");
                let page = HelpPage::new(&keys, Area::new(0, 0, width, height), from);
                shown += page.columns.iter().map(|column| column.lines.len()).sum::<usize>();
                first = page.next;
            }
            assert_eq!(shown, ACTIONS.len() + 1, "{width}x{height}");
        }
    }
}
