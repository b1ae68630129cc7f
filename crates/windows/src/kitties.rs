//! The kitties that show surfaces, each with its last listing and its worker.

use std::collections::BTreeMap;
use std::fs;

use ringer_core::message::SurfaceId;

use crate::kitty::KittyAddress;
use crate::kitty_listing::{KittyWindow, Listing};
use crate::kitty_worker::KittyWorker;
use crate::terminal::Terminal;
use crate::visibility::KittyState;
use crate::wakeup::{Waker, Wakeup};

/// A terminal that claims to be in kitty, until kitty has listed it.
type Candidate = (SurfaceId, Terminal);

#[derive(Debug)]
struct Kitty {
    worker: KittyWorker,
    /// The pid of kitty, once one of its windows is known. A terminal that was started from a kitty window inherits the variables
    /// of kitty, so they prove nothing.
    pid: Option<u32>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Default)]
pub(crate) struct Kitties {
    kitties: BTreeMap<KittyAddress, Kitty>,
    states: BTreeMap<KittyAddress, KittyState>,
}

impl Kitties {
    pub(crate) fn states(&self) -> &BTreeMap<KittyAddress, KittyState> {
        &self.states
    }

    /// Lists a kitty to find out whether a terminal is one of its windows.
    pub(crate) fn add(&mut self, address: &KittyAddress, candidate: Candidate, waker: &Waker) {
        let kitty = self.kitties.entry(address.clone()).or_insert_with(|| {
            let (waker, own) = (waker.clone(), address.clone());
            let report = move |event| waker.wake(Wakeup::Kitty(own.clone(), event));
            Kitty { worker: KittyWorker::start(address.clone(), report), pid: None, candidates: Vec::new() }
        });
        self.states.entry(address.clone()).or_default();
        if kitty.candidates.iter().all(|(surface, _)| *surface != candidate.0) {
            kitty.candidates.push(candidate);
        }
        kitty.worker.list();
    }

    /// Stores the listing of a kitty; `None` if it did not answer. Returns the candidates that were waiting for it.
    pub(crate) fn set_listing(&mut self, address: &KittyAddress, listing: Option<Listing>) -> Vec<Candidate> {
        let (Some(kitty), Some(state)) = (self.kitties.get_mut(address), self.states.get_mut(address)) else {
            return Vec::new();
        };
        state.is_outdated = false;
        let mut own = kitty.candidates.iter().map(|(_, terminal)| terminal.leader);
        let first =
            own.find(|leader| listing.as_ref().is_some_and(|listing| listing.led_by(leader.pid).is_some()));
        if let (None, Some(leader)) = (kitty.pid, first) {
            kitty.pid = Some(leader.parent);
            state.has_fixed_title = has_fixed_title(leader.parent);
        }
        state.listing = listing;
        std::mem::take(&mut kitty.candidates)
    }

    /// The window of a session leader.
    pub(crate) fn window(&self, address: &KittyAddress, pid: u32) -> Option<&KittyWindow> {
        self.states.get(address)?.listing.as_ref()?.led_by(pid)
    }

    /// The title of the window of a session leader.
    pub(crate) fn title(&self, address: &KittyAddress, pid: u32) -> Option<&str> {
        let listing = self.states.get(address)?.listing.as_ref()?;
        listing.title(listing.led_by(pid)?.id)
    }

    pub(crate) fn worker(&self, address: &KittyAddress) -> Option<&KittyWorker> {
        self.kitties.get(address).map(|kitty| &kitty.worker)
    }

    /// A window of this process became active, perhaps with another tab.
    pub(crate) fn activated(&mut self, pid: u32) {
        for (address, kitty) in self.kitties.iter().filter(|(_, kitty)| kitty.pid == Some(pid)) {
            self.states.get_mut(address).into_iter().for_each(|state| state.is_outdated = true);
            kitty.worker.list();
        }
    }

    /// A kitty was told to switch tabs, and will be listed again soon.
    pub(crate) fn set_outdated(&mut self, address: &KittyAddress) {
        self.states.get_mut(address).into_iter().for_each(|state| state.is_outdated = true);
    }

    /// Forgets kitties without a surface.
    pub(crate) fn retain(&mut self, has_surface: impl Fn(&KittyAddress) -> bool) {
        self.kitties.retain(|address, kitty| !kitty.candidates.is_empty() || has_surface(address));
        self.states.retain(|address, _| self.kitties.contains_key(address));
    }
}

/// Returns true if a kitty was started with a fixed title for all its windows.
fn has_fixed_title(pid: u32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    fixes_title(&arguments)
}

fn fixes_title(arguments: &[u8]) -> bool {
    arguments
        .split(|byte| *byte == 0)
        .any(|argument| [&b"-T"[..], b"--title"].contains(&argument) || argument.starts_with(b"--title="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_kitty_is_known_by_its_own_windows() {
        use ringer_journal::SessionLeader;
        let terminal = |pid, parent| Terminal {
            tty: "/dev/pts/1".to_owned(),
            leader: SessionLeader { pid, parent },
            display: None,
            window: None,
            kitty: None,
            is_kitty: true,
            is_wayland: false,
        };
        let address = KittyAddress::parse("unix:/nowhere/kitty").unwrap();
        let (sender, _wakeups) = std::sync::mpsc::channel();
        let waker = Waker::new(sender, ringer_platform::wake_pair().unwrap().1);
        let mut kitties = Kitties::default();
        // An xterm that was started in a window of kitty, and the window.
        kitties.add(&address, (SurfaceId::new("xterm"), terminal(8, 7)), &waker);
        kitties.add(&address, (SurfaceId::new("window"), terminal(10, 9)), &waker);
        let listed = r#"[{"id": 1, "is_focused": true, "platform_window_id": 77, "tabs": [{"is_active_tab": true, "is_focused": true, "title": "a", "windows":
            [{"id": 1, "pid": 10, "is_active_window": true, "is_focused": true, "title": "a"}]}]}]"#;
        let candidates = kitties.set_listing(&address, Some(Listing::parse(listed).unwrap()));
        assert_eq!(candidates.len(), 2);
        assert_eq!(kitties.kitties[&address].pid, Some(9));
    }

    #[test]
    fn a_title_is_fixed_by_an_option() {
        for (arguments, expected) in
            [("kitty\0-T\0x\0", true), ("kitty\0--title=x\0", true), ("kitty\0sh\0", false), ("", false)]
        {
            assert_eq!(fixes_title(arguments.as_bytes()), expected, "{arguments:?}");
        }
    }
}
