//! Handles the output of programs.

use std::time::Instant;

use ringer_ui::ProgramQuestion;

use super::{State, terminal_report};
use crate::effect::{Effect, QuestionNumber, QuestionOutcome};
use crate::layout::PaneId;
use crate::open_notifications::NewQuestion;
use crate::pane::{Pane, PaneEvent, surface_of};
use crate::unread_output::UnreadOutput;

impl State {
    /// Handles new output of a pane's program.
    pub(crate) fn output(&mut self, pane: &PaneId, bytes: &[u8], now: Instant) -> Vec<Effect> {
        let Some(own) = self.panes.get_mut(pane) else { return Vec::new() };
        let scrolled = own.emulator.scrolled();
        let events = own.feed(bytes, now);
        self.is_description_changed |= scrolled != own.emulator.scrolled();
        self.pane_events(pane, events)
    }

    /// Handles output from the time when no server read it. Queries in it are not answered, because another program may read
    /// the terminal by now, and clipboard texts are dropped, because the person may have copied something since. Notifications
    /// are reported even if the screen already shows the output: the server that showed it may have been killed before it
    /// reported them.
    pub(crate) fn unread_output(
        &mut self,
        pane: &PaneId,
        unread: UnreadOutput<'_>,
        now: Instant,
    ) -> Vec<Effect> {
        let Some(own) = self.panes.get_mut(pane) else { return Vec::new() };
        own.not_kept += unread.lost;
        let mut events = own.replay(unread.shown, now);
        events.extend(own.feed(unread.new, now));
        let events = events.into_iter().flat_map(|event| own.unread_event(event)).collect();
        self.is_description_changed = true;
        self.pane_events(pane, events)
    }

    /// Returns true if the description of a pane has changed since the last call, because of its program's output: its title,
    /// progress, directory or scroll position.
    pub(crate) fn take_description_change(&mut self) -> bool {
        std::mem::take(&mut self.is_description_changed)
    }

    /// The lines of a pane that may have changed since the last call.
    pub(crate) fn take_changed_lines(&mut self, pane: &PaneId) -> Vec<u16> {
        self.panes.get_mut(pane).map(|pane| pane.emulator.take_changed_lines()).unwrap_or_default()
    }

    /// Ends synchronized updates that take too long. Returns their panes and the effects.
    pub(crate) fn end_updates(&mut self, now: Instant) -> (Vec<PaneId>, Vec<Effect>) {
        self.end_updates_of(now, |deadline| deadline <= now)
    }

    /// Ends all synchronized updates.
    pub(crate) fn end_all_updates(&mut self) -> (Vec<PaneId>, Vec<Effect>) {
        self.end_updates_of(Instant::now(), |_| true)
    }

    fn end_updates_of(
        &mut self,
        now: Instant,
        is_over: impl Fn(Instant) -> bool,
    ) -> (Vec<PaneId>, Vec<Effect>) {
        let is_due = |pane: &&Pane| pane.emulator.sync_deadline().is_some_and(&is_over);
        let due: Vec<PaneId> = self.panes.values().filter(is_due).map(|pane| pane.id.clone()).collect();
        let mut effects = Vec::new();
        for pane in &due {
            let events = self.panes.get_mut(pane).map(|own| own.end_sync(now)).unwrap_or_default();
            effects.extend(self.pane_events(pane, events));
        }
        (due, effects)
    }

    pub(super) fn pane_events(&mut self, pane: &PaneId, events: Vec<PaneEvent>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut has_title = false;
        for event in events {
            match event {
                // The output of an ended program may still be read. `send` drops the reply then.
                PaneEvent::Reply(bytes) => effects.extend(self.send(pane, bytes)),
                PaneEvent::Report(params) => effects.push(terminal_report(pane, params)),
                PaneEvent::Ask(asked) => effects.push(self.ask(pane, asked)),
                PaneEvent::CloseQuestion(number) => {
                    effects.push(Effect::CloseQuestion { pane: pane.clone(), number });
                }
                PaneEvent::Title => has_title = true,
                PaneEvent::Description => self.is_description_changed = true,
                PaneEvent::Copy(text) => {
                    // Only a focused program may set the clipboard.
                    let windows = self.views.keys().filter(|client| self.has_keys_of(**client, pane));
                    effects
                        .extend(windows.map(|client| Effect::Copy { client: *client, text: text.clone() }));
                }
            }
        }
        self.is_description_changed |= has_title;
        if has_title { self.finish(effects) } else { effects }
    }

    /// Asks the person a question, as `ringer ask` in the pane would.
    fn ask(&self, pane: &PaneId, asked: NewQuestion) -> Effect {
        let own = self.panes.get(pane);
        let question = ProgramQuestion {
            text: asked.text,
            options: asked.options,
            surface: surface_of(pane),
            workspace: self.workspace_of(pane).map(|workspace| workspace.id.clone()),
            tty: own.and_then(|own| own.tty.clone()),
            pid: own.and_then(|own| own.pid),
            directory: own.map(|own| own.directory.clone()).unwrap_or_default(),
        };
        let (number, replaces) = (asked.number, asked.replaces);
        Effect::Ask { pane: pane.clone(), number, question: Box::new(question), replaces }
    }

    /// Handles the outcome of a program's question.
    pub(crate) fn question_outcome(
        &mut self,
        pane: &PaneId,
        number: QuestionNumber,
        outcome: &QuestionOutcome,
    ) -> Vec<Effect> {
        let Some(own) = self.panes.get_mut(pane) else { return Vec::new() };
        let events = own.question_outcome(number, outcome).into_iter().collect();
        self.pane_events(pane, events)
    }
}
