//! Handles requests of the command line.

use std::time::Instant;

use ringer_platform::peer_pid;

use super::Server;
use crate::effect::Effect;
use crate::layout::PaneId;
use crate::pane::surface_of;
use crate::protocol::{Answer, PaneEntry, Request, check_name};
use crate::server::Typist;
use crate::state::{OpenRequest, TakesKeys};
use crate::view::{ClientFacts, ClientId};

/// The size for panes that are opened without a terminal.
const USUAL: (u16, u16) = (80, 24);

impl Server {
    /// Handles a request. The caller performs the effects.
    pub(super) fn request(
        &mut self,
        client: ClientId,
        request: Request,
        now: Instant,
    ) -> (Answer, Vec<Effect>) {
        if let Request::Send { .. } = request
            && let Err(why) = self.check_typist(client, "type into a pane")
        {
            return (Answer::Failed { why }, Vec::new());
        }
        match request {
            Request::Open { command, name, workspace, split, takes_keys, caller, goes_anyway } => {
                let named = [("the name of the pane", &name), ("the name of the workspace", &workspace)];
                let why = named.into_iter().find_map(|(what, name)| {
                    let error = check_name(name.as_ref()?).err()?;
                    Some(format!("{what} {error}"))
                });
                if let Some(why) = why {
                    return (Answer::Failed { why }, Vec::new());
                }
                let facts = self.facts_of(client);
                self.restore(&facts, now);
                let takes_keys = match caller {
                    _ if !takes_keys => TakesKeys::Never,
                    Some(_) if !goes_anyway => TakesKeys::FromCaller,
                    _ => TakesKeys::Always,
                };
                let caller = caller.and_then(|surface| self.state.pane_of_surface(&surface));
                let request = OpenRequest { command, name, workspace, split, takes_keys, caller, facts };
                let (pane, effects) = self.state.open(request, None, now);
                let mut shown = self.clients.keys().filter_map(|client| self.state.shown_workspace(*client));
                let is_shown = shown.any(|workspace| workspace.contains(&pane));
                (Answer::Opened { surface: surface_of(&pane), is_shown }, effects)
            }
            Request::Send { surface, text } => match self.find(&surface) {
                Ok(pane) if !self.takes_input(&pane) => {
                    let why = "its program has not read what was typed before; nothing was typed".to_owned();
                    (Answer::Busy { why }, Vec::new())
                }
                Ok(pane) => match self.state.send(&pane, text.into_bytes()) {
                    Some(effect) => (Answer::Done, vec![effect]),
                    None => (Answer::Failed { why: "its program has ended".to_owned() }, Vec::new()),
                },
                Err(why) => (Answer::Failed { why }, Vec::new()),
            },
            Request::Focus { surface } => match (self.find(&surface), self.state.latest_client()) {
                (Ok(pane), Some(window)) => (Answer::Done, self.state.go_to(window, &pane, now)),
                (Ok(_), None) => (Answer::Failed { why: "no window shows panes".to_owned() }, Vec::new()),
                (Err(why), _) => (Answer::Failed { why }, Vec::new()),
            },
            Request::Windows => {
                let answer = Answer::Windows { server: std::process::id(), windows: self.windows() };
                (answer, Vec::new())
            }
            Request::List => (Answer::Panes(self.listed()), Vec::new()),
            Request::Detach => {
                let leave = |client: &ClientId| Effect::Leave { client: *client, why: None };
                let windows = self.clients.iter().filter(|(_, link)| link.is_window);
                let effects: Vec<Effect> = windows.map(|(client, _)| leave(client)).collect();
                (Answer::Done, effects)
            }
            Request::Replace => {
                self.is_replaced = true;
                (Answer::Done, Vec::new())
            }
        }
    }

    /// The processes whose windows show panes.
    pub(super) fn windows(&self) -> Vec<u32> {
        let windows = self.clients.values().filter(|link| link.is_window);
        windows.filter_map(|link| peer_pid(link.as_fd()).ok()?).collect()
    }

    /// Checks whether a client may type into panes. On Linux, a process without an id in this PID namespace may not.
    pub(super) fn check_typist(&self, client: ClientId, what: &str) -> Result<(), String> {
        let Some(link) = self.clients.get(&client) else { return Ok(()) };
        match peer_pid(link.as_fd()).ok().flatten() {
            Some(pid) => (self.may_type)(&Typist { pid, windows: self.windows(), what }),
            None if cfg!(target_os = "linux") => Err(format!("only a person may {what}")),
            None => Ok(()),
        }
    }

    fn facts_of(&self, client: ClientId) -> ClientFacts {
        let Some(link) = self.clients.get(&client) else { return ClientFacts::default() };
        let own = |(name, value): &(String, String)| (name.into(), value.into());
        ClientFacts {
            environment: link.environment.iter().map(own).collect(),
            directory: link.directory.clone(),
            columns: USUAL.0,
            lines: USUAL.1,
            ..ClientFacts::default()
        }
    }

    /// Finds a pane by its surface or its name.
    fn find(&self, word: &str) -> Result<PaneId, String> {
        let listed = self.listed();
        let by_surface = listed.iter().find(|pane| pane.surface == word);
        let named: Vec<&PaneEntry> = listed.iter().filter(|pane| pane.name == word).collect();
        let found = match (by_surface, &named[..]) {
            (Some(pane), _) => Some(pane),
            (None, [pane]) => Some(*pane),
            (None, []) => None,
            (None, several) => {
                let ids: Vec<&str> = several.iter().map(|pane| pane.surface.as_str()).collect();
                return Err(format!("{} panes are called {word:?}: {}", several.len(), ids.join(", ")));
            }
        };
        let found = found.and_then(|pane| pane.surface.strip_prefix("pane:")).map(PaneId::new);
        found.ok_or_else(|| format!("no pane is called {word:?}"))
    }

    fn listed(&self) -> Vec<PaneEntry> {
        let focused = self
            .state
            .latest_client()
            .and_then(|client| self.state.focused(client))
            .map(|pane| pane.id.clone());
        let mut listed = Vec::new();
        for workspace in self.state.workspaces() {
            for id in workspace.panes() {
                let Some(pane) = self.state.pane(&id) else { continue };
                listed.push(PaneEntry {
                    surface: pane.surface(),
                    workspace: workspace.name.clone(),
                    workspace_id: workspace.id.clone(),
                    name: pane.label(),
                    title: pane.title(),
                    tty: pane.tty.clone(),
                    pid: pane.pid,
                    is_focused: focused.as_ref() == Some(&id),
                    unread: pane.ring.unread,
                    ending: pane.ending.map(ringer_platform::Ending::text).or_else(|| pane.failure.clone()),
                });
            }
        }
        listed
    }
}
