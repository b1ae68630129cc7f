//! The state of all workspaces, panes and views: events go in, [`Effect`]s come out. It has no descriptors and no clock.

mod hub;
mod keyboard;
mod opening;
mod output;
mod pointer;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_ipc::{HostFacts, ReportMethod};
use ringer_platform::Ending;
use serde_json::{Value, json};

use crate::actions::PaneKeys;
use crate::effect::Effect;
use crate::emulator::{InputModes, MouseMode, Size};
use crate::layout::Area;
use crate::layout::{PaneId, SplitDirection};
use crate::pane::{Pane, surface_of};
use crate::snapshot::snapshot;
use crate::view::{ClientFacts, ClientId, Mode, View};
use crate::workspace::Workspace;

/// The size of a pane that no window has shown yet.
const UNSEEN: Size = Size { columns: 80, lines: 24 };
/// The shortest time between two reports to the hub that the person types.
const TYPED_AGAIN: Duration = Duration::from_secs(10);

fn terminal_report(pane: &PaneId, mut params: Value) -> Effect {
    params["surface_id"] = json!(surface_of(pane));
    Effect::Report { method: ReportMethod::Terminal, params }
}

/// Reports to the hub that a program ended with an error, or could not be started.
fn error_report(pane: &PaneId, label: &str, text: &str) -> Effect {
    terminal_report(pane, json!({ "title": label, "body": text, "kind": "error" }))
}

pub(crate) struct State {
    workspaces: Vec<Workspace>,
    panes: BTreeMap<PaneId, Pane>,
    views: BTreeMap<ClientId, View>,
    keys: PaneKeys,
    /// Returns an id that no pane or workspace had before.
    new_id: Box<dyn FnMut() -> String>,
    toast: Option<String>,
    indicators: BTreeMap<String, String>,
    /// The facts that the hub is to know.
    facts: HostFacts,
    /// The time of the last event.
    now: Instant,
    /// The workspace for the next window, if no window is open.
    last_shown: Option<String>,
    presence_reported: Option<Instant>,
    /// The panes whose programs were last told that they have the focus.
    in_focus: BTreeSet<PaneId>,
    /// Output has changed a pane's description: its title, progress, directory or scroll position.
    is_description_changed: bool,
}

impl State {
    pub(crate) fn new(keys: PaneKeys, new_id: Box<dyn FnMut() -> String>, now: Instant) -> Self {
        Self {
            workspaces: Vec::new(),
            panes: BTreeMap::new(),
            views: BTreeMap::new(),
            keys,
            new_id,
            toast: None,
            indicators: BTreeMap::new(),
            facts: HostFacts::default(),
            now,
            last_shown: None,
            presence_reported: None,
            in_focus: BTreeSet::new(),
            is_description_changed: false,
        }
    }

    pub(crate) fn keys(&self) -> &PaneKeys {
        &self.keys
    }

    pub(crate) fn workspaces(&self) -> &[Workspace] {
        &self.workspaces
    }

    pub(crate) fn pane(&self, pane: &PaneId) -> Option<&Pane> {
        self.panes.get(pane)
    }

    /// Returns bytes that restore the screen, title and progress of a pane in another one.
    pub(crate) fn snapshot(&mut self, pane: &PaneId) -> Option<String> {
        let pane = self.panes.get_mut(pane)?;
        Some(snapshot(&mut pane.emulator) + &pane.saved_description())
    }

    pub(crate) fn panes(&self) -> impl Iterator<Item = &Pane> {
        self.panes.values()
    }

    pub(crate) fn view(&self, client: ClientId) -> Option<&View> {
        self.views.get(&client)
    }

    pub(crate) fn toast(&self) -> Option<&str> {
        self.toast.as_deref()
    }

    pub(crate) fn indicators(&self) -> impl Iterator<Item = &str> {
        self.indicators.values().map(String::as_str)
    }

    pub(crate) fn shown_workspace(&self, client: ClientId) -> Option<&Workspace> {
        let view = self.views.get(&client)?;
        self.workspaces.iter().find(|workspace| workspace.id == view.workspace)
    }

    fn workspace_mut(&mut self, id: &str) -> Option<&mut Workspace> {
        self.workspaces.iter_mut().find(|workspace| workspace.id == id)
    }

    pub(crate) fn workspace_of(&self, pane: &PaneId) -> Option<&Workspace> {
        self.workspaces.iter().find(|workspace| workspace.contains(pane))
    }

    /// The focused pane of a client.
    pub(crate) fn focused(&self, client: ClientId) -> Option<&Pane> {
        self.shown_workspace(client).and_then(Workspace::focused).and_then(|pane| self.panes.get(pane))
    }

    fn has_keys_of(&self, client: ClientId, pane: &PaneId) -> bool {
        let is_in_inbox = self.view(client).is_some_and(|view| view.is_in_inbox);
        !is_in_inbox && self.focused(client).is_some_and(|focused| focused.id == *pane)
    }

    /// The client that the person used last.
    pub(crate) fn latest_client(&self) -> Option<ClientId> {
        self.views.iter().max_by_key(|(_, view)| view.active).map(|(client, _)| *client)
    }

    /// The modes for a client's terminal, as the focused program expects them.
    pub(crate) fn wanted_modes(&self, client: ClientId) -> (InputModes, MouseMode) {
        // A key after the prefix must come in its usual form: in kitty's protocol, `|` may come as `\\` with Shift.
        let view = self.views.get(&client).filter(|view| view.mode == Mode::Program);
        let pane = view.and_then(|_| self.focused(client)).filter(|pane| pane.ending.is_none());
        pane.map_or_else(Default::default, |pane| (pane.emulator.input_modes(), pane.emulator.mouse_mode()))
    }

    /// Replaces the key bindings after a change of the settings.
    pub(crate) fn set_keys(&mut self, keys: PaneKeys) {
        self.keys = keys;
    }

    /// Sets the working directory of a pane's program.
    pub(crate) fn set_directory(&mut self, pane: &PaneId, directory: PathBuf) {
        if let Some(pane) = self.panes.get_mut(pane) {
            self.is_description_changed |= pane.directory != directory;
            pane.directory = directory;
        }
    }

    /// Adds a client with a window. If there are no workspaces, it opens a shell.
    pub(crate) fn attach(&mut self, client: ClientId, facts: ClientFacts, now: Instant) -> Vec<Effect> {
        let shown = facts.shown.as_ref().map(|shown| shown.workspace.as_str());
        let is_open = |id: &&str| self.workspaces.iter().any(|workspace| workspace.id == **id);
        let shown = shown.filter(is_open).map(str::to_owned);
        let workspace = shown.or_else(|| self.usual_workspace()).unwrap_or_default();
        self.now = now;
        self.views.insert(client, View::new(facts, workspace, now));
        let mut effects = Vec::new();
        if self.workspaces.is_empty() {
            let facts = self.views.get(&client).map(|view| view.facts.clone()).unwrap_or_default();
            let request = OpenRequest { facts, takes_keys: TakesKeys::Always, ..OpenRequest::default() };
            effects = self.open(request, Some(client), now).1;
        }
        self.finish(effects)
    }

    /// Removes a client.
    pub(crate) fn detach(&mut self, client: ClientId) -> Vec<Effect> {
        self.last_shown = self.last_shown().map(str::to_owned);
        self.views.remove(&client);
        self.finish(Vec::new())
    }

    /// Sets the size of a client's terminal.
    pub(crate) fn resize(&mut self, client: ClientId, columns: u16, lines: u16, now: Instant) -> Vec<Effect> {
        if let Some(view) = self.views.get_mut(&client) {
            (view.facts.columns, view.facts.lines, view.active) = (columns, lines, now);
        }
        self.finish(Vec::new())
    }

    /// Shows panes again after the inbox or the shell had the client's terminal.
    pub(crate) fn terminal_back(&mut self, client: ClientId, now: Instant) -> Vec<Effect> {
        if let Some(view) = self.views.get_mut(&client) {
            (view.is_in_inbox, view.active) = (false, now);
        }
        self.finish(Vec::new())
    }

    /// The workspace that is shown, or was shown last, or the first one.
    fn usual_workspace(&self) -> Option<String> {
        let is_open = |id: &&str| self.workspaces.iter().any(|workspace| workspace.id == **id);
        let shown = [self.last_shown(), self.last_shown.as_deref()].into_iter().flatten().find(is_open);
        let first = || self.workspaces.first().map(|workspace| workspace.id.as_str());
        shown.or_else(first).map(str::to_owned)
    }

    /// Records that the program of a pane has started.
    pub(crate) fn started(&mut self, pane: &PaneId, pid: u32, tty: String, now: Instant) -> Vec<Effect> {
        if let Some(pane) = self.panes.get_mut(pane) {
            pane.start(pid, tty, now);
        }
        self.finish(Vec::new())
    }

    /// Records that the program of a pane cannot be started.
    pub(crate) fn start_failed(&mut self, pane: &PaneId, why: &str) -> Vec<Effect> {
        let Some(own) = self.panes.get_mut(pane) else { return Vec::new() };
        own.failure = Some(why.to_owned());
        let report = error_report(pane, &own.label(), why);
        // The hub has to know the pane before the report.
        let mut effects = self.finish(Vec::new());
        effects.push(report);
        effects
    }

    /// Records the end of a pane's program, and closes the pane if nothing is left to see.
    pub(crate) fn ended(&mut self, pane: &PaneId, ending: Ending, now: Instant) -> Vec<Effect> {
        let Some(own) = self.panes.get_mut(pane) else { return Vec::new() };
        if own.closes_with(ending, now) {
            return self.close(pane);
        }
        let events = own.end(ending);
        let label = own.label();
        let mut effects = self.pane_events(pane, events);
        effects.push(if ending.is_success() {
            let params = json!({ "surface_id": surface_of(pane) });
            Effect::Report { method: ReportMethod::Unread, params }
        } else {
            error_report(pane, &label, &ending.text())
        });
        self.finish(effects)
    }

    /// Closes a pane, its workspace if that becomes empty, and the windows if no workspace is left.
    pub(crate) fn close(&mut self, pane: &PaneId) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.panes.remove(pane).is_some() {
            effects.push(Effect::Forget { pane: pane.clone() });
        }
        for workspace in &mut self.workspaces {
            workspace.remove(pane);
        }
        self.workspaces.retain(|workspace| !workspace.is_empty());
        let first = self.workspaces.first().map(|workspace| workspace.id.clone());
        let ids: Vec<String> = self.workspaces.iter().map(|workspace| workspace.id.clone()).collect();
        for (client, view) in &mut self.views {
            if !ids.contains(&view.workspace) {
                match &first {
                    Some(first) => view.workspace.clone_from(first),
                    None => effects.push(Effect::Leave { client: *client, why: None }),
                }
            }
        }
        self.finish(effects)
    }

    /// Writes to the program of a pane.
    pub(crate) fn send(&self, pane: &PaneId, bytes: Vec<u8>) -> Option<Effect> {
        let runs = |pane: &Pane| pane.ending.is_none() && pane.failure.is_none();
        let is_open = self.panes.get(pane).is_some_and(runs);
        is_open.then(|| Effect::Write { pane: pane.clone(), bytes })
    }

    /// The sizes of the panes' terminals. In each workspace, the window that was used last determines them.
    fn sizes(&self) -> impl Iterator<Item = (PaneId, Size)> {
        let areas = self.workspaces.iter().flat_map(|workspace| {
            let views = self.views.values().filter(|view| view.workspace == workspace.id);
            let view = views.max_by_key(|view| view.active);
            view.map(|view| workspace.all_areas(view.room())).unwrap_or_default()
        });
        areas
            .map(|(pane, area)| (pane, area.inside()))
            .filter(|(_, area)| !area.is_empty())
            .map(|(pane, area)| (pane, Size::at_least(area.width, area.height)))
    }

    fn size_of(&self, pane: &PaneId) -> Option<Size> {
        self.sizes().find(|(own, _)| own == pane).map(|(_, size)| size)
    }

    /// Adds the effects of all changes: new sizes, and reports to programs and the hub.
    fn finish(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let sizes: Vec<(PaneId, Size)> = self.sizes().collect();
        for (pane, size) in sizes {
            if let Some(own) = self.panes.get_mut(&pane)
                && own.emulator.size() != size
            {
                own.emulator.resize(size);
                effects.push(Effect::Resize { pane, size });
            }
        }
        let has_kitty_keyboard = self.has_kitty_keyboard();
        for pane in self.panes.values_mut() {
            pane.emulator.set_kitty_keyboard(has_kitty_keyboard);
        }
        self.end_stale_modes();
        self.keep_sidebars();
        effects.extend(self.report_focus());
        effects.extend(self.update_facts());
        effects
    }

    /// When the picture next changes by itself.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let flashes = self.panes.values().filter_map(|pane| pane.next_flash(now));
        let updates = self.panes.values().filter_map(|pane| pane.emulator.sync_deadline());
        let looks = self.views.values().filter_map(View::looks_until).filter(|until| *until > self.now);
        let notes = self.views.values().filter_map(|view| view.shown_note(now).map(|(_, until)| until));
        flashes.chain(updates).chain(notes).chain(looks).min()
    }

    fn room_of(&self, client: ClientId) -> Area {
        self.views.get(&client).map(View::room).unwrap_or_default()
    }

    fn directory_for(&self, client: ClientId) -> PathBuf {
        let own = || self.views.get(&client).map(|view| view.facts.directory.clone());
        self.focused(client)
            .map(|pane| pane.directory.clone())
            .or_else(own)
            .unwrap_or_else(|| PathBuf::from("/"))
    }
}

/// Decides whether a new pane is shown and focused. If not, the person's input continues to go to the old pane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TakesKeys {
    #[default]
    Never,
    /// Only if the pane in which the command was run has the focus of the window that was used last: the person typed it there.
    FromCaller,
    Always,
}

/// A request to open a pane.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequest {
    /// A shell if empty.
    pub(crate) command: Vec<String>,
    pub(crate) name: Option<String>,
    /// The name of the workspace. Without one, the caller's workspace is used, or the one that is shown.
    pub(crate) workspace: Option<String>,
    /// The direction of the split, if one was chosen.
    pub(crate) split: Option<SplitDirection>,
    pub(crate) takes_keys: TakesKeys,
    /// The pane in which the command was run.
    pub(crate) caller: Option<PaneId>,
    pub(crate) facts: ClientFacts,
}
