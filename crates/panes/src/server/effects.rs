//! Performs effects.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::keeper::StartPane;
use ringer_term::{EmulatedTerminal, Env, SpawnLocation, Terminator, copy_to_clipboard, spawn_env};
use ringer_ui::ProgramQuestion;

use super::Server;
use crate::effect::{Effect, QuestionNumber, QuestionOutcome};
use crate::emulator::Size;
use crate::layout::PaneId;
use crate::pane::surface_of;
use crate::protocol::{Bye, Frame, FrameKind};
use crate::view::ClientId;

/// Environment variables that describe the terminal of the process that opened a pane, and are wrong inside the pane.
const FOREIGN: [&str; 2] = ["RINGER_AGENT", "RINGER_TTY"];
/// The most bytes that are kept for a program that has not started. More input is lost.
const MAX_TYPED_EARLY: usize = 64 * 1024;

impl Server {
    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start { pane, workspace, command, directory, environment, size } => {
                    self.start(&pane, &workspace, &command, directory, &environment, size);
                }
                Effect::Write { pane, bytes } => {
                    if let Some(program) = self.programs.get_mut(&pane) {
                        program.write(&bytes);
                    } else {
                        // The program is about to start, and gets the input then.
                        let typed = self.typed_early.entry(pane).or_default();
                        let room = MAX_TYPED_EARLY.saturating_sub(typed.len()).min(bytes.len());
                        typed.extend_from_slice(&bytes[..room]);
                    }
                }
                Effect::Resize { pane, size } => {
                    if let Some(program) = self.programs.get(&pane) {
                        program.resize(size);
                    }
                    self.frames.change();
                }
                Effect::Forget { pane } => {
                    let has_ended = self.programs.remove(&pane).is_some_and(|program| program.has_ended);
                    self.typed_early.remove(&pane);
                    self.questions.close_all_of(&pane);
                    self.saver.remove_screen(&pane);
                    self.forget_with_keeper(pane, has_ended);
                }
                Effect::Copy { client, text } => {
                    let sequence = copy_to_clipboard(&text, Terminator::Bel);
                    if let Some(link) = self.clients.get_mut(&client) {
                        link.copy = Some(sequence);
                    }
                    self.send_copy(client);
                }
                Effect::Inbox { client } => self.send(client, &Frame::new(FrameKind::Inbox, [])),
                Effect::Leave { client, why } => {
                    self.send(client, &Frame::json(FrameKind::Bye, &Bye { why, comes_back: false }));
                    if let Some(link) = self.clients.get_mut(&client) {
                        link.is_leaving = true;
                    }
                    // It shows no panes from now on.
                    let effects = self.state.detach(client);
                    self.perform(effects);
                }
                Effect::Ask { pane, number, question, replaces } => {
                    self.ask(&pane, number, *question, replaces);
                }
                Effect::CloseQuestion { pane, number } => self.questions.close(pane, number),
                Effect::SetFacts(facts) => self.hub.link.set_facts(facts),
                Effect::Report { method, params } => {
                    let kept = self.hub.link.report(method, params);
                    self.saver.save_session_at(kept);
                }
                Effect::ReportPresence => self.hub.link.present(),
                Effect::AnswerFocus(answer) => self.hub.link.moment("surface.focused", answer),
            }
        }
    }

    /// Asks the person a question of a program. If that fails, the question becomes an ordinary notification.
    fn ask(
        &mut self,
        pane: &PaneId,
        number: QuestionNumber,
        question: ProgramQuestion,
        replaces: Option<QuestionNumber>,
    ) {
        if self.questions.ask((pane.clone(), number), question, replaces).is_err() {
            let effects = self.state.question_outcome(pane, number, &QuestionOutcome::NotAsked);
            self.perform(effects);
        }
    }

    /// Handles the outcomes of questions.
    pub(super) fn handle_question_reports(&mut self) {
        for ((pane, number), outcome) in self.questions.take_reports() {
            let effects = self.state.question_outcome(&pane, number, &outcome);
            self.perform(effects);
        }
    }

    fn start(
        &mut self,
        pane: &PaneId,
        workspace: &str,
        command: &[String],
        directory: PathBuf,
        environment: &[(OsString, OsString)],
        size: Size,
    ) {
        let (surface, socket) = (surface_of(pane), self.hub_socket.as_ref().and_then(|path| path.to_str()));
        let known = environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        // These name the agent and the tty of the terminal around.
        let known = known.filter(|(name, _)| !FOREIGN.contains(name));
        let place = SpawnLocation { workspace: Some(workspace), surface: Some(&surface), socket };
        let own = spawn_env(&Env::new(known), EmulatedTerminal::default(), place);
        let shell = own.get("SHELL").unwrap_or("/bin/sh").to_owned();
        let argv = if command.is_empty() { vec![shell] } else { command.to_vec() };
        // Without a note, the next server still finds the pane in the saved session.
        let note = self.note_of(pane).and_then(|note| note.text());
        let start = StartPane {
            id: pane.as_str().to_owned(),
            argv: argv.into_iter().map(Into::into).collect(),
            environment: own.variables().map(|(name, value)| (name.into(), value.into())).collect(),
            directory,
            columns: size.columns,
            lines: size.lines,
            note: note.unwrap_or_default(),
        };
        if let Err(error) = self.start_with_keeper(&start) {
            let effects = self.state.start_failed(pane, &format!("the keeper cannot start it: {error}"));
            self.perform(effects);
        }
    }

    /// Sends clipboard text to a client once its last frame is sent. Of several texts, only the last one is sent.
    pub(super) fn send_copy(&mut self, client: ClientId) {
        let link = self.clients.get_mut(&client).filter(|link| !link.is_busy() && !link.is_leaving);
        if let Some(sequence) = link.and_then(|link| link.copy.take()) {
            self.send_output(client, sequence.as_bytes());
        }
    }
}
