//! Plain terminals, which no host on the socket need have. The hub learns of one when a message comes from it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use ringer_core::message::{Place, SurfaceId, WorkspaceId};

use crate::hosts::protocol::SurfaceInfo;

/// The most terminals that are remembered. Beyond that, terminals whose device is gone are forgotten, or all if there are none: a
/// terminal is learned again with its next message.
const MAX_TERMINALS: usize = 4096;

/// The name under which terminals without a host are listed.
const HOST: &str = "terminal";

/// The terminals from which messages came. They ring by the terminal's own notification and a mark in the title.
#[derive(Debug, Default)]
pub(in crate::state) struct PlainTerminals {
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

impl PlainTerminals {
    /// Returns true if the id is that of a terminal or of a tmux pane.
    pub(in crate::state) fn owns(surface: &SurfaceId) -> bool {
        ["tty:", "tmux:"].iter().any(|ours| surface.as_str().starts_with(ours))
    }

    /// Returns the terminals, the one with the latest message first.
    pub(in crate::state) fn list(&self) -> Vec<SurfaceInfo> {
        let mut terminals: Vec<&KnownTerminal> = self.terminals.values().collect();
        terminals.sort_unstable_by_key(|terminal| Reverse(terminal.last));
        terminals.into_iter().map(|terminal| terminal.info.clone()).collect()
    }

    pub(in crate::state) fn info(&self, surface: &SurfaceId) -> Option<SurfaceInfo> {
        self.terminals.get(surface).map(|terminal| terminal.info.clone())
    }

    /// Registers a terminal that sent a message. Returns its workspace if the terminal is new or changed.
    pub(in crate::state) fn register(
        &mut self,
        surface: &SurfaceId,
        tty: Option<&str>,
        scope: &str,
    ) -> Option<WorkspaceId> {
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
            self.forget_gone();
        }
        let info = SurfaceInfo {
            surface: surface.clone(),
            workspace: workspace.clone(),
            tty: tty.map(str::to_owned),
            host: HOST.to_owned(),
            title: None,
            place: None,
            parent: None,
        };
        self.terminals.insert(surface.clone(), KnownTerminal { info, last: self.latest });
        Some(workspace)
    }

    /// Removes a terminal that turned out to be closed.
    pub(in crate::state) fn forget(&mut self, surface: &SurfaceId) {
        if self.terminals.remove(surface).is_some() {
            self.gone.push(surface.clone());
        }
    }

    /// Returns the terminals that were removed since the last call.
    pub(in crate::state) fn take_gone(&mut self) -> Vec<SurfaceId> {
        std::mem::take(&mut self.gone)
    }

    fn forget_gone(&mut self) {
        let exists = |info: &SurfaceInfo| info.tty.as_deref().is_some_and(|tty| Path::new(tty).exists());
        let known = self.terminals.values().map(|terminal| &terminal.info);
        let gone: Vec<SurfaceId> =
            known.filter(|info| !exists(info)).map(|info| info.surface.clone()).collect();
        let gone = if gone.is_empty() { self.terminals.keys().cloned().collect() } else { gone };
        for surface in &gone {
            self.forget(surface);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_learned_once_and_again_when_it_moves() {
        let mut terminals = PlainTerminals::default();
        let surface = SurfaceId::new("tty:/dev/pts/1@5");
        assert!(terminals.register(&surface, Some("/dev/pts/1"), "a").is_some());
        assert!(terminals.register(&surface, Some("/dev/pts/1"), "a").is_none());
        assert!(terminals.register(&surface, Some("/dev/pts/1"), "b").is_some(), "another repository");
        assert_eq!(terminals.list().len(), 1);
    }

    #[test]
    fn the_one_that_spoke_last_comes_first_and_the_gone_are_forgotten() {
        let mut terminals = PlainTerminals::default();
        let speak = |terminals: &mut PlainTerminals, name: &str| {
            terminals.register(&SurfaceId::new(&format!("tty:{name}@1")), Some(name), "a");
        };
        let names = |terminals: &PlainTerminals| -> Vec<String> {
            terminals.list().into_iter().filter_map(|info| info.tty).collect()
        };
        for name in ["z", "b", "c"] {
            speak(&mut terminals, name);
        }
        assert_eq!(names(&terminals), ["c", "b", "z"]);
        speak(&mut terminals, "b");
        assert_eq!(names(&terminals), ["b", "c", "z"]);
        let surface = SurfaceId::new("tty:b@1");
        terminals.forget(&surface);
        terminals.forget(&surface);
        assert_eq!(
            (names(&terminals), terminals.take_gone()),
            (vec!["c".to_owned(), "z".to_owned()], vec![surface])
        );
    }

    #[test]
    fn memory_is_bounded_and_the_gone_are_told() {
        let mut terminals = PlainTerminals::default();
        for number in 0..10_000 {
            terminals.register(&SurfaceId::new(&format!("tty:{number}")), Some("/nowhere"), "a");
        }
        assert!(terminals.list().len() <= MAX_TERMINALS);
        assert!(!terminals.take_gone().is_empty() && terminals.take_gone().is_empty());
    }
}
