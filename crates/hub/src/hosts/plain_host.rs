//! The plain host, for terminals that Ringer does not draw. It learns of a terminal when a message comes from it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use ringer_core::Event;
use ringer_core::message::{Place, SurfaceId};

use crate::hosts::tmux::TmuxPane;
use ringer_ipc::host::{FocusResult, Host, SurfaceInfo};

/// The most terminals that are remembered. Beyond that, terminals whose device is gone are forgotten, or all if there are none: a
/// terminal is learned again with its next message.
const MAX_TERMINALS: usize = 4096;

/// Terminals on which no host draws a ring. They ring by the terminal's own notification and a mark in the title.
#[derive(Debug, Default)]
pub struct PlainHost {
    terminals: HashMap<SurfaceId, KnownTerminal>,
    /// A counter that orders terminals by their latest message.
    latest: u64,
    gone: Vec<SurfaceId>,
}

/// A terminal from which a message came.
#[derive(Debug)]
struct KnownTerminal {
    info: SurfaceInfo,
    /// The counter at its latest message.
    last: u64,
}

impl PlainHost {
    fn forget_the_gone(&mut self) {
        let is_there = |info: &SurfaceInfo| info.tty.as_deref().is_some_and(|tty| Path::new(tty).exists());
        let known = self.terminals.values().map(|terminal| &terminal.info);
        let gone: Vec<SurfaceId> =
            known.filter(|info| !is_there(info)).map(|info| info.surface.clone()).collect();
        let gone = if gone.is_empty() { self.terminals.keys().cloned().collect() } else { gone };
        for surface in &gone {
            self.forget(surface);
        }
    }
}

impl Host for PlainHost {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn surfaces(&self) -> Vec<SurfaceInfo> {
        let mut terminals: Vec<&KnownTerminal> = self.terminals.values().collect();
        terminals.sort_unstable_by_key(|terminal| Reverse(terminal.last));
        terminals.into_iter().map(|terminal| terminal.info.clone()).collect()
    }

    fn surface(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        self.terminals.get(surface).map(|terminal| terminal.info.clone())
    }

    fn owns(&self, surface: &SurfaceId) -> bool {
        ["tty:", "tmux:"].iter().any(|ours| surface.as_str().starts_with(ours))
    }

    fn register(&mut self, surface: &SurfaceId, tty: Option<&str>, scope: &str) -> Option<Event> {
        let workspace = Place::own_workspace(scope).workspace;
        self.latest += 1;
        if let Some(KnownTerminal { info, last }) = self.terminals.get_mut(surface)
            && info.workspace == workspace
            && info.tty.as_deref() == tty
        {
            *last = self.latest;
            return None;
        }
        if self.terminals.len() >= MAX_TERMINALS {
            self.forget_the_gone();
        }
        let tty = tty.map(str::to_owned);
        let info = SurfaceInfo {
            surface: surface.clone(),
            workspace: workspace.clone(),
            tty: tty.clone(),
            host: self.name().to_owned(),
            title: None,
            place: None,
            parent: None,
        };
        self.terminals.insert(surface.clone(), KnownTerminal { info, last: self.latest });
        Some(Event::Surface { surface: surface.clone(), workspace, tty, reports_focus: false })
    }

    fn focus(&mut self, place: &Place) -> FocusResult {
        let Some(surface) = place.surface.as_ref().filter(|surface| self.owns(surface)) else {
            return FocusResult::NotOwned;
        };
        if TmuxPane::of(surface).is_some() {
            return FocusResult::AskTmux;
        }
        let tty = surface.tty().map_or(surface.as_str(), |plain| plain.tty);
        // Attached hosts are asked first, so none of them knows the window.
        FocusResult::Cannot(format!(
            "it came from {tty}, and Ringer does not know the window of that terminal (`ringer doctor` there says why)"
        ))
    }

    fn rings_by_title(&self) -> bool {
        true
    }

    fn forget(&mut self, surface: &SurfaceId) {
        if self.terminals.remove(surface).is_some() {
            self.gone.push(surface.clone());
        }
    }

    fn gone(&mut self) -> Vec<SurfaceId> {
        std::mem::take(&mut self.gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::message::WorkspaceId;

    #[test]
    fn a_terminal_is_learned_once_and_again_when_it_moves() {
        let mut host = PlainHost::default();
        let surface = SurfaceId::new("tty:/dev/pts/1@5");
        assert!(host.register(&surface, Some("/dev/pts/1"), "a").is_some());
        assert!(host.register(&surface, Some("/dev/pts/1"), "a").is_none());
        assert!(host.register(&surface, Some("/dev/pts/1"), "b").is_some(), "another repository");
        assert_eq!(host.surfaces().len(), 1);
        let place = Place::surface(WorkspaceId::new("repo:b"), surface);
        assert!(matches!(host.focus(&place), FocusResult::Cannot(why) if why.contains("/dev/pts/1")));
        assert_eq!(host.focus(&Place::workspace(WorkspaceId::new("repo:b"))), FocusResult::NotOwned);
    }

    /// After a restart, a terminal that an earlier hub knew is found by its id.
    #[test]
    fn a_terminal_that_was_never_heard_of_is_found_by_its_id() {
        let mut host = PlainHost::default();
        let mut focus =
            |surface: &str| host.focus(&Place::surface(WorkspaceId::new("w"), SurfaceId::new(surface)));
        assert_eq!(focus("tmux:/tmp/s:77:%3"), FocusResult::AskTmux);
        assert!(matches!(focus("tty:/dev/pts/7@5"), FocusResult::Cannot(why) if why.contains("/dev/pts/7,")));
        assert!(matches!(focus("tmux:nonsense"), FocusResult::Cannot(_)));
        assert_eq!(focus("ws:1"), FocusResult::NotOwned);
    }

    #[test]
    fn the_one_that_spoke_last_comes_first_and_the_gone_are_forgotten() {
        let mut host = PlainHost::default();
        let speak = |host: &mut PlainHost, name: &str| {
            host.register(&SurfaceId::new(&format!("tty:{name}@1")), Some(name), "a");
        };
        let names = |host: &PlainHost| -> Vec<String> {
            host.surfaces().into_iter().filter_map(|info| info.tty).collect()
        };
        for name in ["z", "b", "c"] {
            speak(&mut host, name);
        }
        assert_eq!(names(&host), ["c", "b", "z"]);
        speak(&mut host, "b");
        assert_eq!(names(&host), ["b", "c", "z"]);
        let surface = SurfaceId::new("tty:b@1");
        host.forget(&surface);
        host.forget(&surface);
        assert_eq!((names(&host), host.gone()), (vec!["c".to_owned(), "z".to_owned()], vec![surface]));
    }

    #[test]
    fn memory_is_bounded_and_the_gone_are_told() {
        let mut host = PlainHost::default();
        for number in 0..10_000 {
            host.register(&SurfaceId::new(&format!("tty:{number}")), Some("/nowhere"), "a");
        }
        assert!(host.surfaces().len() <= MAX_TERMINALS);
        assert!(!host.gone().is_empty() && host.gone().is_empty());
    }
}
