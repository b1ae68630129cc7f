//! The windows that kitty lists, and for which of them a switch to another window can be noticed.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::display::WindowId;

/// A window of kitty: one terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KittyWindow {
    /// The id in kitty.
    pub id: u64,
    /// The session leader.
    pub pid: u32,
    /// The X11 window around it; `None` without X11.
    pub os_window: Option<u32>,
    /// It is the visible window with the keyboard when its OS window is active.
    pub is_active: bool,
    /// kitty says that it has the focus.
    pub is_focused: bool,
    /// The title of the OS window changes when another window in it becomes active.
    pub has_own_title: bool,
}

/// All windows of one kitty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    windows: Vec<KittyWindow>,
    /// The titles, by window id. They change all the time, so they are apart from `windows`.
    titles: BTreeMap<u64, String>,
}

#[derive(Debug, Deserialize)]
struct OsWindow {
    #[serde(default)]
    is_focused: bool,
    #[serde(default)]
    platform_window_id: Option<u64>,
    tabs: Vec<Tab>,
}

#[derive(Debug, Deserialize)]
struct Tab {
    /// Older versions have only `is_focused`, with the same meaning.
    #[serde(default, rename = "is_active_tab")]
    is_active: Option<bool>,
    is_focused: bool,
    #[serde(default)]
    title: String,
    windows: Vec<Window>,
}

#[derive(Debug, Deserialize)]
struct Window {
    id: u64,
    pid: Option<u32>,
    #[serde(default, rename = "is_active_window")]
    is_active: Option<bool>,
    is_focused: bool,
    #[serde(default)]
    title: String,
}

impl Window {
    fn is_active(&self) -> bool {
        self.is_active.unwrap_or(self.is_focused)
    }
}

impl Tab {
    /// The title of the OS window while that window of the tab is active, without the mark. A tab may have a name that hides the
    /// titles of its windows. Marks change without a new listing, so titles are compared without them.
    fn title_with<'a>(&'a self, window: &'a Window) -> &'a str {
        let active = self.windows.iter().find(|window| window.is_active());
        let has_name = active.is_some_and(|active| active.title != self.title);
        plain_title(if has_name { &self.title } else { &window.title })
    }
}

impl Listing {
    /// Parses the answer to `ls`.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let os_windows: Vec<OsWindow> = serde_json::from_str(text)?;
        let (mut windows, mut all_titles) = (Vec::new(), BTreeMap::new());
        for os_window in &os_windows {
            let titles: Vec<&str> = os_window
                .tabs
                .iter()
                .flat_map(|tab| tab.windows.iter().map(|window| tab.title_with(window)))
                .collect();
            for tab in &os_window.tabs {
                let is_active_tab = tab.is_active.unwrap_or(tab.is_focused);
                for window in &tab.windows {
                    let Some(pid) = window.pid else { continue };
                    let is_active = is_active_tab && window.is_active();
                    let title = tab.title_with(window);
                    all_titles.insert(window.id, window.title.clone());
                    windows.push(KittyWindow {
                        id: window.id,
                        pid,
                        os_window: os_window
                            .platform_window_id
                            .and_then(|id| WindowId::try_from(id).ok())
                            .filter(|id| *id != 0),
                        is_active,
                        is_focused: is_active && os_window.is_focused,
                        has_own_title: titles.iter().filter(|other| **other == title).count() == 1,
                    });
                }
            }
        }
        Ok(Self { windows, titles: all_titles })
    }

    /// Returns true if another listing differs only in titles.
    pub(crate) fn has_same_windows(&self, other: &Self) -> bool {
        self.windows == other.windows
    }

    /// All windows whose pid is known.
    pub fn windows(&self) -> &[KittyWindow] {
        &self.windows
    }

    /// The title of a window, by id.
    pub fn title(&self, window: u64) -> Option<&str> {
        self.titles.get(&window).map(String::as_str)
    }

    /// The window of a session leader.
    pub(crate) fn led_by(&self, pid: u32) -> Option<&KittyWindow> {
        self.windows.iter().find(|window| window.pid == pid)
    }
}

/// The prefix of a marked title.
const MARK: &str = "● ";

/// The title to set; `None` if it is already right.
pub fn wanted_title(title: &str, is_marked: bool) -> Option<String> {
    match (title.strip_prefix(MARK), is_marked) {
        (None, true) => Some(format!("{MARK}{title}")),
        (Some(plain), false) => Some(plain.to_owned()),
        _ => None,
    }
}

pub(crate) fn plain_title(title: &str) -> &str {
    title.strip_prefix(MARK).unwrap_or(title)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn window(id: u64, active: bool, title: &str) -> Value {
        json!({ "id": id, "pid": 100 + id, "is_active_window": active, "is_focused": active, "title": title,
                "env": {}, "cmdline": ["sh"] })
    }

    fn tab(active: bool, title: &str, windows: &[Value]) -> Value {
        json!({ "id": 1, "is_active_tab": active, "is_focused": active, "title": title, "windows": windows })
    }

    fn listing(tabs: &[Value]) -> Listing {
        let os_window = json!({ "id": 1, "is_focused": true, "platform_window_id": 77, "tabs": tabs });
        Listing::parse(&json!([os_window]).to_string()).unwrap()
    }

    #[test]
    fn the_active_window_of_the_active_tab_is_seen() {
        let listing = listing(&[
            tab(true, "b", &[window(1, false, "a"), window(2, true, "b")]),
            tab(false, "c", &[window(3, true, "c")]),
        ]);
        let seen = [101, 102, 103].map(|pid| listing.led_by(pid).unwrap().is_active);
        assert_eq!(seen, [false, true, false]);
        assert_eq!(listing.led_by(102).unwrap().os_window, Some(77));
        assert!([101, 102, 103].iter().all(|pid| listing.led_by(*pid).unwrap().has_own_title));
        assert_eq!(listing.led_by(1), None);
    }

    #[test]
    fn windows_with_the_same_title_are_not_told_apart() {
        let own = |listing: &Listing, pids: &[u32]| -> Vec<bool> {
            pids.iter().map(|pid| listing.led_by(*pid).unwrap().has_own_title).collect()
        };
        let same = listing(&[
            tab(true, "sh", &[window(1, true, "sh")]),
            tab(false, "sh", &[window(2, true, "sh")]),
            tab(false, "vim", &[window(3, true, "vim")]),
        ]);
        assert_eq!(own(&same, &[101, 102, 103]), [false, false, true]);
        let marked = listing(&[
            tab(true, "sh", &[window(1, true, "sh")]),
            tab(false, "● sh", &[window(2, true, "● sh")]),
            tab(false, "● vim", &[window(3, true, "● vim")]),
        ]);
        assert_eq!(own(&marked, &[101, 102, 103]), [false, false, true], "the mark goes");
        let named = listing(&[
            tab(true, "build", &[window(1, true, "a"), window(2, false, "b")]),
            tab(false, "c", &[window(3, true, "c")]),
        ]);
        assert_eq!(own(&named, &[101, 102, 103]), [false, false, true], "the tab has a name");
    }

    #[test]
    fn what_is_no_list_of_windows_is_an_error() {
        for text in ["", "{}", "[1]", r#"[{"tabs": 1}]"#] {
            assert!(Listing::parse(text).is_err(), "{text}");
        }
        assert_eq!(Listing::parse("[]").unwrap(), Listing::default());
    }

    #[test]
    fn a_title_is_marked_once_and_comes_back_as_it_was() {
        let marked = wanted_title("✳ fix it", true).unwrap();
        assert_eq!(marked, "● ✳ fix it");
        assert_eq!(wanted_title(&marked, true), None);
        assert_eq!(wanted_title(&marked, false).as_deref(), Some("✳ fix it"));
        assert_eq!(wanted_title("✳ fix it", false), None);
    }
}
