//! Computes which surfaces the person looks at. Notifications on such a surface are marked read without a popup, so it counts
//! only if it would also be noticed that the person looks away.

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::message::SurfaceId;

use crate::display::{ActiveWindow, WindowId};
use crate::display_name::DisplayName;
use crate::kitty::KittyAddress;
use crate::kitty_listing::Listing;

/// The window that shows a surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SurfaceWindow {
    /// An X11 window.
    Window {
        display: DisplayName,
        window: WindowId,
        /// The program has one terminal in each window. In a window with tabs another terminal may be visible.
        is_alone: bool,
    },
    /// The kitty window whose session leader is this process.
    Kitty { kitty: KittyAddress, display: Option<DisplayName>, pid: u32 },
}

impl SurfaceWindow {
    pub(crate) fn display(&self) -> Option<&DisplayName> {
        match self {
            Self::Window { display, .. } => Some(display),
            Self::Kitty { display, .. } => display.as_ref(),
        }
    }

    /// The X11 window, unless it is one of kitty.
    pub(crate) fn window(&self) -> Option<(&DisplayName, WindowId)> {
        match self {
            Self::Window { display, window, .. } => Some((display, *window)),
            Self::Kitty { .. } => None,
        }
    }

    /// The session leader, by which kitty identifies the window.
    pub(crate) fn leader(&self) -> Option<u32> {
        match self {
            Self::Window { .. } => None,
            Self::Kitty { pid, .. } => Some(*pid),
        }
    }
}

/// The last known state of a kitty.
#[derive(Debug, Default)]
pub(crate) struct KittyState {
    pub(crate) listing: Option<Listing>,
    /// Since the listing, one of its windows became active or it was told to switch tabs.
    pub(crate) is_outdated: bool,
    /// The titles of its windows never change, so a switch of tabs is not noticed.
    pub(crate) has_fixed_title: bool,
}

/// Which surfaces the person looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visibility {
    /// The person looks at these.
    pub(crate) looked_at: BTreeSet<SurfaceId>,
    /// For these it would not be noticed when the person looks away.
    pub(crate) unreported: BTreeSet<SurfaceId>,
    /// The unreported ones that were visible at the time of the last listing.
    pub(crate) glanced_at: BTreeSet<SurfaceId>,
}

/// Computes the visibility of all surfaces.
pub(crate) fn visibility<'a>(
    surfaces: impl Iterator<Item = (&'a SurfaceId, &'a SurfaceWindow)> + Clone,
    active: impl Fn(&DisplayName) -> ActiveWindow,
    kitties: &BTreeMap<KittyAddress, KittyState>,
) -> Visibility {
    let mut in_window: BTreeMap<(&DisplayName, WindowId), usize> = BTreeMap::new();
    for (_, shown_in) in surfaces.clone() {
        if let SurfaceWindow::Window { display, window, .. } = shown_in {
            *in_window.entry((display, *window)).or_default() += 1;
        }
    }
    let mut visibility = Visibility::default();
    for (surface, shown_in) in surfaces {
        let (is_seen, is_reported) = match shown_in {
            SurfaceWindow::Window { display, window, is_alone } => {
                let is_alone = *is_alone && in_window.get(&(display, *window)) == Some(&1);
                match active(display) {
                    // In a window with tabs it is not known which one is visible.
                    ActiveWindow::Known(active) => (is_alone && active == *window, is_alone),
                    ActiveWindow::Unknown => (false, false),
                }
            }
            SurfaceWindow::Kitty { kitty, display, pid } => {
                let active = display.as_ref().map_or(ActiveWindow::Unknown, &active);
                kitties.get(kitty).map_or((false, false), |kitty| kitty.sees(*pid, active))
            }
        };
        let set = match (is_seen, is_reported) {
            (true, true) => &mut visibility.looked_at,
            (false, true) => continue,
            (true, false) => {
                visibility.unreported.insert(surface.clone());
                &mut visibility.glanced_at
            }
            (false, false) => &mut visibility.unreported,
        };
        set.insert(surface.clone());
    }
    visibility
}

impl KittyState {
    /// Returns whether the window of this session leader is visible, and whether it would be noticed when it no longer is.
    fn sees(&self, pid: u32, active: ActiveWindow) -> (bool, bool) {
        let Some(window) = self.listing.as_ref().and_then(|listing| listing.led_by(pid)) else {
            return (false, false);
        };
        let is_reported = window.has_own_title && !self.has_fixed_title;
        match (active, window.os_window) {
            (ActiveWindow::Known(active), Some(os_window)) => {
                (window.is_active && active == os_window && !self.is_outdated, is_reported)
            }
            // Without X11 nothing tells when the person leaves kitty.
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

    fn in_window(window: WindowId, is_alone: bool) -> SurfaceWindow {
        SurfaceWindow::Window { display: display(0), window, is_alone }
    }

    fn in_kitty(pid: u32, display: Option<DisplayName>) -> SurfaceWindow {
        SurfaceWindow::Kitty { kitty: KittyAddress::parse("unix:@k").unwrap(), display, pid }
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
        shown_in: &[SurfaceWindow],
        active: ActiveWindow,
        kitties: &BTreeMap<KittyAddress, KittyState>,
    ) -> [String; 3] {
        let ids: Vec<SurfaceId> = (0..shown_in.len()).map(|id| SurfaceId::new(&id.to_string())).collect();
        let found = visibility(ids.iter().zip(shown_in), |_| active, kitties);
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
            [in_window(7, true), SurfaceWindow::Window { display: display(1), window: 7, is_alone: true }];
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
