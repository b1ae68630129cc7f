//! The plain host: terminals that Ringer does not draw. It learns of one when something in it speaks.

use std::collections::HashMap;
use std::path::Path;

use ringer_core::{Event, Place, SurfaceId};

use crate::host::{Focused, Host, SurfaceInfo};

/// Terminals that are remembered. With more, those whose device is gone are forgotten, and if there are none, all are:
/// whoever speaks next is learned again.
const MAX_TERMINALS: usize = 4096;

/// Terminals that nobody draws a ring on. Their ring is the terminal's own notification, and a sign in its title.
#[derive(Debug, Default)]
pub struct PlainHost {
    terminals: HashMap<SurfaceId, SurfaceInfo>,
    gone: Vec<SurfaceId>,
}

impl PlainHost {
    fn forget_the_gone(&mut self) {
        let is_there = |info: &SurfaceInfo| info.tty.as_deref().is_some_and(|tty| Path::new(tty).exists());
        let gone: Vec<SurfaceId> =
            self.terminals.values().filter(|info| !is_there(info)).map(|info| info.surface.clone()).collect();
        let gone = if gone.is_empty() { self.terminals.keys().cloned().collect() } else { gone };
        for surface in gone {
            self.terminals.remove(&surface);
            self.gone.push(surface);
        }
    }
}

impl Host for PlainHost {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn surfaces(&self) -> Vec<SurfaceInfo> {
        self.terminals.values().cloned().collect()
    }

    fn owns(&self, surface: &SurfaceId) -> bool {
        ["tty:", "tmux:"].iter().any(|ours| surface.as_str().starts_with(ours))
    }

    fn adopt(&mut self, surface: &SurfaceId, tty: Option<&str>, scope: &str) -> Option<Event> {
        let workspace = Place::own_workspace(scope).workspace;
        let known = self.terminals.get(surface);
        if known.is_some_and(|info| info.workspace == workspace && info.tty.as_deref() == tty) {
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
            host: self.name(),
        };
        self.terminals.insert(surface.clone(), info);
        Some(Event::Surface { surface: surface.clone(), workspace, tty })
    }

    fn focus(&mut self, place: &Place) -> Focused {
        let Some(info) = place.surface.as_ref().and_then(|surface| self.terminals.get(surface)) else {
            return Focused::NotMine;
        };
        if let Some(argv) = tmux_pane(&info.surface) {
            return Focused::By(argv);
        }
        let tty = info.tty.as_deref().unwrap_or("a terminal");
        Focused::Cannot(format!("it is {tty}, and no terminal can be told to come to the front"))
    }

    fn rings_by_title(&self) -> bool {
        true
    }

    fn gone(&mut self) -> Vec<SurfaceId> {
        std::mem::take(&mut self.gone)
    }
}

/// What brings a pane of tmux to the front, in the client that was used last. Pane numbers are those of one server, so it
/// is left alone if another one has its socket now.
fn tmux_pane(surface: &SurfaceId) -> Option<Vec<String>> {
    let mut fields = surface.as_str().strip_prefix("tmux:")?.rsplitn(3, ':');
    let (pane, server, socket) = (fields.next()?, fields.next()?, fields.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(server) || !pane.strip_prefix('%').is_some_and(is_number) {
        return None;
    }
    let same = format!("#{{==:#{{pid}},{server}}}");
    let go = format!("select-window -t '{pane}' ; select-pane -t '{pane}' ; switch-client -t '{pane}'");
    let gone = "display-message -p 'that tmux server is gone'";
    Some(["tmux", "-S", socket, "if-shell", "-F", &same, &go, gone].map(str::to_owned).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::WorkspaceId;

    #[test]
    fn a_terminal_is_learned_once_and_again_when_it_moves() {
        let mut host = PlainHost::default();
        let surface = SurfaceId::new("tty:/dev/pts/1@5");
        assert!(host.adopt(&surface, Some("/dev/pts/1"), "a").is_some());
        assert!(host.adopt(&surface, Some("/dev/pts/1"), "a").is_none());
        assert!(host.adopt(&surface, Some("/dev/pts/1"), "b").is_some(), "another repository");
        assert_eq!(host.surfaces().len(), 1);
        let place = Place::surface(WorkspaceId::new("repo:b"), surface);
        assert!(matches!(host.focus(&place), Focused::Cannot(why) if why.contains("/dev/pts/1")));
        assert_eq!(host.focus(&Place::workspace(WorkspaceId::new("repo:b"))), Focused::NotMine);
    }

    #[test]
    fn a_pane_of_tmux_is_brought_to_the_front_by_tmux() {
        let argv = tmux_pane(&SurfaceId::new("tmux:/tmp/a:b/default:77:%3")).unwrap();
        assert_eq!(argv[..5], ["tmux", "-S", "/tmp/a:b/default", "if-shell", "-F"]);
        assert!(argv[5].contains("77") && argv[6].contains("switch-client -t '%3'"), "{argv:?}");
        for not_one in
            ["tty:/dev/pts/1@5", "tmux:x", "tmux:s:77:%3' ; kill-server", "tmux:s:7x:%3", "tmux:s::%"]
        {
            assert_eq!(tmux_pane(&SurfaceId::new(not_one)), None, "{not_one}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_gone_are_told() {
        let mut host = PlainHost::default();
        for number in 0..10_000 {
            host.adopt(&SurfaceId::new(&format!("tty:{number}")), Some("/nowhere"), "a");
        }
        assert!(host.surfaces().len() <= MAX_TERMINALS);
        assert!(!host.gone().is_empty() && host.gone().is_empty());
    }
}
