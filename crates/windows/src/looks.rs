//! What the person looks at, by what is known of windows. What is looked at is read without a popup, so a surface counts only
//! if it would also be noticed that the person went elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::message::SurfaceId;

use crate::display::{ActiveWindow, WindowId};
use crate::display_name::DisplayName;
use crate::kitty::KittyAddress;
use crate::kitty_listing::Listing;

/// Where a surface is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SeenIn {
    /// In a window of X11.
    Window {
        display: DisplayName,
        window: WindowId,
        /// Whether its program has one terminal in each window. In one with tabs another terminal may be seen.
        is_alone: bool,
    },
    /// In the window of kitty whose session this process leads.
    Kitty { kitty: KittyAddress, display: Option<DisplayName>, pid: u32 },
}

impl SeenIn {
    /// The display that it is on.
    pub(crate) fn display(&self) -> Option<&DisplayName> {
        match self {
            Self::Window { display, .. } => Some(display),
            Self::Kitty { display, .. } => display.as_ref(),
        }
    }

    /// Its window on a display, if it has one that is not kitty's.
    pub(crate) fn window(&self) -> Option<(&DisplayName, WindowId)> {
        match self {
            Self::Window { display, window, .. } => Some((display, *window)),
            Self::Kitty { .. } => None,
        }
    }

    /// The process by which kitty knows it.
    pub(crate) fn leader(&self) -> Option<u32> {
        match self {
            Self::Window { .. } => None,
            Self::Kitty { pid, .. } => Some(*pid),
        }
    }
}

/// What is known of a kitty.
#[derive(Debug, Default)]
pub(crate) struct KittyState {
    pub(crate) listing: Option<Listing>,
    /// Whether a window of it became active, or it was told to go to another tab, since it was listed.
    pub(crate) is_outdated: bool,
    /// Whether the titles of its windows never change, so that a change of the tab is not noticed.
    pub(crate) has_fixed_title: bool,
}

/// What the person looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    /// The surfaces that they look at.
    pub(crate) looked_at: BTreeSet<SurfaceId>,
    /// Those of which it would not be noticed.
    pub(crate) unreported: BTreeSet<SurfaceId>,
    /// Those of the unreported that were seen at the moment of the last answer.
    pub(crate) glanced_at: BTreeSet<SurfaceId>,
}

/// Finds out what the person looks at.
pub(crate) fn looks<'a>(
    surfaces: impl Iterator<Item = (&'a SurfaceId, &'a SeenIn)> + Clone,
    active: impl Fn(&DisplayName) -> ActiveWindow,
    kitties: &BTreeMap<KittyAddress, KittyState>,
) -> Looks {
    let mut in_window: BTreeMap<(&DisplayName, WindowId), usize> = BTreeMap::new();
    for (_, seen_in) in surfaces.clone() {
        if let SeenIn::Window { display, window, .. } = seen_in {
            *in_window.entry((display, *window)).or_default() += 1;
        }
    }
    let mut looks = Looks::default();
    for (surface, seen_in) in surfaces {
        let (is_seen, is_reported) = match seen_in {
            SeenIn::Window { display, window, is_alone } => {
                let is_alone = *is_alone && in_window.get(&(display, *window)) == Some(&1);
                match active(display) {
                    // Of a window with tabs it is not known which one is seen.
                    ActiveWindow::Known(active) => (is_alone && active == *window, is_alone),
                    ActiveWindow::Unknown => (false, false),
                }
            }
            SeenIn::Kitty { kitty, display, pid } => {
                let active = display.as_ref().map_or(ActiveWindow::Unknown, &active);
                kitties.get(kitty).map_or((false, false), |kitty| kitty.sees(*pid, active))
            }
        };
        let set = match (is_seen, is_reported) {
            (true, true) => &mut looks.looked_at,
            (false, true) => continue,
            (true, false) => {
                looks.unreported.insert(surface.clone());
                &mut looks.glanced_at
            }
            (false, false) => &mut looks.unreported,
        };
        set.insert(surface.clone());
    }
    looks
}

impl KittyState {
    /// Whether the person sees the window whose session this process leads, and whether it would be noticed.
    fn sees(&self, pid: u32, active: ActiveWindow) -> (bool, bool) {
        let Some(window) = self.listing.as_ref().and_then(|listing| listing.led_by(pid)) else {
            return (false, false);
        };
        let is_reported = window.has_own_title && !self.has_fixed_title;
        match (active, window.os_window) {
            (ActiveWindow::Known(active), Some(os_window)) => {
                (window.is_active && active == os_window && !self.is_outdated, is_reported)
            }
            // No display tells when the person leaves kitty.
            _ => (window.is_focused, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn display(number: u32) -> DisplayName {
        DisplayName::parse(&format!(":{number}"), None).unwrap()
    }

    fn in_window(window: WindowId, is_alone: bool) -> SeenIn {
        SeenIn::Window { display: display(0), window, is_alone }
    }

    fn in_kitty(pid: u32, display: Option<DisplayName>) -> SeenIn {
        SeenIn::Kitty { kitty: KittyAddress::parse("unix:@k").unwrap(), display, pid }
    }

    /// Two tabs in window 70, the second one active, and one in window 80.
    fn kitties(titles: [&str; 3]) -> BTreeMap<KittyAddress, KittyState> {
        let tab = |pid: u32, active: bool, title: &str| {
            json!({ "is_active_tab": active, "is_focused": active, "title": title, "windows": [
                { "id": pid, "pid": pid, "is_active_window": true, "is_focused": true, "title": title } ] })
        };
        let list = json!([
            { "is_focused": true, "platform_window_id": 70,
              "tabs": [tab(1, false, titles[0]), tab(2, true, titles[1])] },
            { "is_focused": false, "platform_window_id": 80, "tabs": [tab(3, true, titles[2])] },
        ]);
        let listing = Some(Listing::parse(&list.to_string()).unwrap());
        let state = KittyState { listing, ..KittyState::default() };
        BTreeMap::from([(KittyAddress::parse("unix:@k").unwrap(), state)])
    }

    /// The numbers of the surfaces that are looked at, not reported, and glanced at.
    fn check(
        seen_in: &[SeenIn],
        active: ActiveWindow,
        kitties: &BTreeMap<KittyAddress, KittyState>,
    ) -> [String; 3] {
        let ids: Vec<SurfaceId> = (0..seen_in.len()).map(|id| SurfaceId::new(&id.to_string())).collect();
        let found = looks(ids.iter().zip(seen_in), |_| active, kitties);
        [found.looked_at, found.unreported, found.glanced_at]
            .map(|set| set.iter().map(SurfaceId::as_str).collect())
    }

    #[test]
    fn the_only_terminal_of_the_active_window_is_looked_at() {
        let none = BTreeMap::new();
        let terminals = [in_window(7, true), in_window(8, true)];
        assert_eq!(check(&terminals, ActiveWindow::Known(7), &none), ["0", "", ""]);
        assert_eq!(check(&terminals, ActiveWindow::Known(9), &none), ["", "", ""]);
        assert_eq!(check(&terminals, ActiveWindow::Unknown, &none), ["", "01", ""]);
    }

    #[test]
    fn of_a_window_with_several_terminals_it_is_not_known_which_one_is_seen() {
        let none = BTreeMap::new();
        let shared = [in_window(7, true), in_window(7, true), in_window(8, false), in_window(9, true)];
        assert_eq!(check(&shared, ActiveWindow::Known(7), &none), ["", "012", ""]);
        assert_eq!(check(&shared, ActiveWindow::Known(8), &none), ["", "012", ""]);
        let elsewhere =
            [in_window(7, true), SeenIn::Window { display: display(1), window: 7, is_alone: true }];
        assert_eq!(check(&elsewhere, ActiveWindow::Known(7), &none), ["01", "", ""], "the same number");
    }

    #[test]
    fn the_active_tab_of_kittys_active_window_is_looked_at() {
        let terminals = [1, 2, 3].map(|pid| in_kitty(pid, Some(display(0))));
        let mut own = kitties(["a", "b", "c"]);
        assert_eq!(check(&terminals, ActiveWindow::Known(70), &own), ["1", "", ""]);
        assert_eq!(check(&terminals, ActiveWindow::Known(80), &own), ["2", "", ""]);
        assert_eq!(check(&terminals, ActiveWindow::Known(9), &own), ["", "", ""]);
        for kitty in own.values_mut() {
            kitty.is_outdated = true;
        }
        assert_eq!(check(&terminals, ActiveWindow::Known(70), &own), ["", "", ""], "another tab, perhaps");
    }

    #[test]
    fn tabs_that_look_alike_and_windows_that_no_display_tells_of_are_only_glanced_at() {
        let terminals = [1, 2, 3].map(|pid| in_kitty(pid, Some(display(0))));
        let alike = kitties(["sh", "sh", "sh"]);
        assert_eq!(check(&terminals, ActiveWindow::Known(70), &alike), ["", "01", "1"]);
        assert_eq!(check(&terminals, ActiveWindow::Known(80), &alike), ["2", "01", ""]);
        let own = kitties(["a", "b", "c"]);
        assert_eq!(check(&terminals, ActiveWindow::Unknown, &own), ["", "012", "1"]);
        let wayland = [1, 2, 4].map(|pid| in_kitty(pid, None));
        assert_eq!(check(&wayland, ActiveWindow::Known(70), &own), ["", "012", "1"]);
        assert_eq!(check(&wayland, ActiveWindow::Known(70), &BTreeMap::new()), ["", "012", ""]);
    }
}
