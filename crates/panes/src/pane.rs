//! A pane: its program, its screen, and its ring.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_core::message::ShownKind;
use ringer_ipc::ProgramReports;
use ringer_platform::Ending;
use ringer_term::{
    Progress, Query, TerminalEventKind, Terminator, alive99_reply, parse_title, sanitise_line, window_title,
};
use serde_json::{Value, json};
use signal_hook::consts::SIGHUP;

use crate::effect::{QuestionNumber, QuestionOutcome};
use crate::emulator::{Emulator, EmulatorEvent, Size};
use crate::layout::PaneId;
use crate::link_rule::reported_directory;
use crate::open_notifications::{NewQuestion, NotificationReply, OpenNotifications, WithdrawnNotification};

/// The lines of scrollback.
const HISTORY: usize = 5000;
/// The longest title that a host may report, in bytes.
const MAX_TITLE: usize = 256;
/// A flash has five steps: off, on, off, on, off.
const FLASH_STEP: Duration = Duration::from_millis(180);
const FLASH_STEPS: u32 = 5;
/// A shell that ends with an error within this time failed to start: few people type `exit` that quickly.
const SHELL_BEGINS: Duration = Duration::from_secs(1);

/// The ring of a pane and its reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    pub(crate) is_lit: bool,
    pub(crate) unread: usize,
    pub(crate) kind: Option<ShownKind>,
}

/// The agent in a pane, as the hub knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaneAgent {
    pub(crate) label: String,
    pub(crate) client: String,
    pub(crate) state: String,
}

pub(crate) struct Pane {
    pub(crate) id: PaneId,
    /// The name that the person chose.
    pub(crate) name: Option<String>,
    /// The command of its program; a shell if empty.
    pub(crate) command: Vec<String>,
    pub(crate) directory: PathBuf,
    pub(crate) emulator: Emulator,
    pub(crate) ending: Option<Ending>,
    pub(crate) ring: Ring,
    /// It rang when the hub was lost. This is saved with the session, because the hub may be stopped before the server.
    was_unread: bool,
    pub(crate) agent: Option<PaneAgent>,
    pub(crate) tty: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The number of output bytes that were lost while no server was connected. Reset when the person types into the pane.
    pub(crate) not_kept: u64,
    /// The reason its program could not be started.
    pub(crate) failure: Option<String>,
    progress: Option<Progress>,
    title: String,
    flash_since: Option<Instant>,
    reports: ProgramReports,
    notifications: OpenNotifications,
    /// When this server began to read its program's reports.
    reports_since: Instant,
    /// When its program started, if this server started it.
    program_started: Option<Instant>,
}

/// An event in a pane, for the hub or the server.
#[derive(Debug)]
pub(crate) enum PaneEvent {
    /// Write these bytes to the program.
    Reply(Vec<u8>),
    /// Report this to the hub as `surface.heard`.
    Report(Value),
    /// Ask the person, instead of a report to the hub.
    Ask(NewQuestion),
    /// Close a question without an answer.
    CloseQuestion(QuestionNumber),
    /// The title has changed.
    Title,
    /// Another part of the description has changed.
    Description,
    /// Copy this text to the clipboard.
    Copy(String),
}

impl Pane {
    pub(crate) fn new(id: PaneId, directory: PathBuf, size: Size, now: Instant) -> Self {
        Self {
            id,
            name: None,
            command: Vec::new(),
            directory,
            emulator: Emulator::new(size, HISTORY),
            ending: None,
            ring: Ring::default(),
            was_unread: false,
            agent: None,
            tty: None,
            pid: None,
            not_kept: 0,
            failure: None,
            progress: None,
            title: String::new(),
            flash_since: None,
            reports: ProgramReports::default(),
            notifications: OpenNotifications::default(),
            reports_since: now,
            program_started: None,
        }
    }

    pub(crate) fn surface(&self) -> String {
        surface_of(&self.id)
    }

    /// The displayed name: chosen by the person, or the agent's label, or the command, or the directory.
    pub(crate) fn label(&self) -> String {
        let own = self.name.clone().or_else(|| self.agent.as_ref().map(|agent| agent.label.clone()));
        let program = || self.command.first().map(|program| file_name(program));
        let directory = || self.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        sanitise_line(&own.or_else(program).or_else(directory).unwrap_or_else(|| "/".to_owned()))
    }

    /// The title that its program has set, without the part that the label contains.
    pub(crate) fn title(&self) -> String {
        sanitise_line(parse_title(&self.title).task)
    }

    /// The progress of its program as text.
    pub(crate) fn progress(&self) -> Option<String> {
        let percent = |progress: Progress| progress.value().map(|value| format!("{} %", value.get()));
        match self.progress? {
            Progress::Clear => None,
            Progress::Indeterminate => Some("…".to_owned()),
            Progress::Error(_) => Some("failed".to_owned()),
            Progress::Paused(_) => Some("paused".to_owned()),
            progress @ Progress::Set(_) => percent(progress),
        }
    }

    /// Returns bytes that restore the title and the progress in another pane.
    pub(crate) fn saved_description(&self) -> String {
        let title = (!self.title.is_empty()).then(|| window_title(&self.title, Terminator::St));
        let progress = self.progress.map(|progress| progress.encode(Terminator::St));
        title.into_iter().chain(progress).collect()
    }

    /// Handles output of its program.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: Instant) -> Vec<PaneEvent> {
        let emulated = self.emulator.feed(bytes);
        self.events(emulated, now)
    }

    /// Handles the reports in output that the screen already shows.
    pub(crate) fn replay(&mut self, bytes: &[u8], now: Instant) -> Vec<PaneEvent> {
        let emulated = Emulator::new(self.emulator.size(), 0).feed(bytes);
        self.events(emulated, now)
    }

    /// Ends a synchronized update, and shows its output.
    pub(crate) fn end_sync(&mut self, now: Instant) -> Vec<PaneEvent> {
        let emulated = self.emulator.end_sync();
        self.events(emulated, now)
    }

    fn events(&mut self, emulated: Vec<EmulatorEvent>, now: Instant) -> Vec<PaneEvent> {
        let mut events = Vec::new();
        let mut has_bell = false;
        for event in emulated {
            match event {
                // Several bells in one read count as one.
                EmulatorEvent::Event(event)
                    if *event == TerminalEventKind::Bell && std::mem::replace(&mut has_bell, true) => {}
                EmulatorEvent::Reply(bytes) => events.push(PaneEvent::Reply(bytes)),
                EmulatorEvent::Copy(text) => events.push(PaneEvent::Copy(text)),
                EmulatorEvent::Event(event) => self.event(&event, now, &mut events),
            }
        }
        events
    }

    fn event(&mut self, event: &TerminalEventKind, now: Instant, events: &mut Vec<PaneEvent>) {
        let report = self.reports.report(now.saturating_duration_since(self.reports_since), event);
        match (event, report) {
            (TerminalEventKind::Notification(notification), Some(mut report)) => {
                if let Some(id) = &notification.id {
                    report["id"] = json!(id.as_str());
                }
                if let Some(ttl_ms) = notification.metadata.expires_ms.filter(|ttl_ms| *ttl_ms > 0) {
                    report["ttl_ms"] = json!(ttl_ms);
                }
                // The output of an ended program may still be read. Its questions are not asked.
                let added = self.notifications.add(notification, report, self.ending.is_none());
                events.extend(added.report.map(PaneEvent::Report));
                events.extend(added.question.map(PaneEvent::Ask));
                events.extend(added.closes.map(PaneEvent::CloseQuestion));
            }
            (_, report) => events.extend(report.map(PaneEvent::Report)),
        }
        match event {
            TerminalEventKind::Close { id } => {
                events.extend(self.notifications.remove(id).map(|removed| match removed {
                    WithdrawnNotification::Question(number) => PaneEvent::CloseQuestion(number),
                    WithdrawnNotification::Notification => {
                        PaneEvent::Report(json!({ "id": id.as_str(), "withdrawn": true }))
                    }
                }));
            }
            TerminalEventKind::Query(Query::Alive { id: Some(id) }) => {
                let reply = alive99_reply(id, &self.notifications.ids(), Terminator::St);
                events.push(PaneEvent::Reply(reply.into_bytes()));
            }
            TerminalEventKind::Title(title) if *title != self.title => {
                title[..title.floor_char_boundary(MAX_TITLE)].clone_into(&mut self.title);
                events.push(PaneEvent::Title);
            }
            TerminalEventKind::Progress(progress) if self.progress != Some(*progress) => {
                self.progress = Some(*progress);
                events.push(PaneEvent::Description);
            }
            TerminalEventKind::Cwd(directory) => {
                if let Some(path) = reported_directory(directory).filter(|path| *path != self.directory) {
                    self.directory = path;
                    events.push(PaneEvent::Description);
                }
            }
            _ => {}
        }
    }

    /// Records that its program has started.
    pub(crate) fn start(&mut self, pid: u32, tty: String, now: Instant) {
        (self.pid, self.tty, self.program_started) = (Some(pid), Some(tty), Some(now));
        (self.ending, self.failure) = (None, None);
    }

    /// Returns true if the pane should close because its program ended and left nothing to see. A shell ends with the status of
    /// its last command, which is not its own failure, unless it ends at once: then its configuration is wrong. SIGHUP is a
    /// request to end.
    pub(crate) fn closes_with(&self, ending: Ending, now: Instant) -> bool {
        let since = self.program_started.map(|started| now.saturating_duration_since(started));
        let is_new = since.is_some_and(|since| since < SHELL_BEGINS);
        self.command.is_empty()
            && match ending {
                Ending::Exit(code) => code == 0 || !is_new,
                Ending::Signal(signal) => signal == SIGHUP,
            }
    }

    /// Records the end of its program. Returns the events.
    pub(crate) fn end(&mut self, ending: Ending) -> Vec<PaneEvent> {
        self.ending = Some(ending);
        self.progress = None;
        let closed = self.notifications.remove_all().into_iter().map(PaneEvent::CloseQuestion);
        self.reports.ended().map(PaneEvent::Report).into_iter().chain(closed).collect()
    }

    /// Resets the pane for a new start of its program. [`Effect::Forget`](crate::effect::Effect::Forget) closes the questions
    /// of the previous one.
    pub(crate) fn restart(&mut self, now: Instant) {
        let size = self.emulator.size();
        self.notifications.remove_all();
        *self = Self {
            name: self.name.take(),
            command: std::mem::take(&mut self.command),
            notifications: std::mem::take(&mut self.notifications),
            ..Self::new(self.id.clone(), self.directory.clone(), size, now)
        };
    }

    /// Returns true if a key for its program changes nothing else: it is not scrolled back, and no message disappears.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.emulator.is_at_rest() && self.not_kept == 0
    }

    /// Sets the ring. If the person has seen the reason, returns the events for the program's notifications.
    pub(crate) fn set_ring(&mut self, ring: Ring) -> Vec<PaneEvent> {
        let was_lit = std::mem::replace(&mut self.ring, ring).is_lit;
        if !was_lit || ring.is_lit {
            return Vec::new();
        }
        let (reply, closed) = self.notifications.see_all();
        let reply = reply.map(|text| PaneEvent::Reply(text.into_bytes()));
        reply.into_iter().chain(closed.into_iter().map(PaneEvent::CloseQuestion)).collect()
    }

    /// Handles the outcome of its program's question. Returns an event.
    pub(crate) fn question_outcome(
        &mut self,
        number: QuestionNumber,
        outcome: &QuestionOutcome,
    ) -> Option<PaneEvent> {
        Some(match self.notifications.handle_outcome(number, outcome)? {
            NotificationReply::Program(text) => PaneEvent::Reply(text.into_bytes()),
            NotificationReply::Hub(report) => PaneEvent::Report(report),
        })
    }

    /// Filters an event from output that was not read in time. Another program may read the terminal by now, so nothing is
    /// answered or asked.
    pub(crate) fn unread_event(&mut self, event: PaneEvent) -> Vec<PaneEvent> {
        match event {
            PaneEvent::Report(_) | PaneEvent::CloseQuestion(_) => vec![event],
            PaneEvent::Ask(question) => {
                let events = self.question_outcome(question.number, &QuestionOutcome::NotAsked);
                events.into_iter().chain(question.replaces.map(PaneEvent::CloseQuestion)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Records that the person followed a notification to the pane. Returns an event.
    pub(crate) fn click(&mut self) -> Option<PaneEvent> {
        self.notifications.click().map(|text| PaneEvent::Reply(text.into_bytes()))
    }

    /// Removes the ring, because there is no hub.
    pub(crate) fn lose_hub(&mut self) {
        self.was_unread |= self.ring.is_lit;
        self.ring = Ring::default();
    }

    /// Forgets the saved unread state, because a hub is connected and knows it.
    pub(crate) fn find_hub(&mut self) {
        self.was_unread = false;
    }

    /// Returns true if the pane is unread, as far as known.
    pub(crate) fn is_unread(&self) -> bool {
        self.ring.is_lit || self.was_unread
    }

    pub(crate) fn flash(&mut self, now: Instant) {
        self.flash_since = Some(now);
    }

    /// Returns true if a flash lights its border now.
    pub(crate) fn is_flashing(&self, now: Instant) -> bool {
        self.flash_step(now).is_some_and(|step| step % 2 == 1)
    }

    /// When the next step of a flash changes its border.
    pub(crate) fn next_flash(&self, now: Instant) -> Option<Instant> {
        let step = self.flash_step(now)?;
        self.flash_since.map(|since| since + FLASH_STEP * (step + 1))
    }

    fn flash_step(&self, now: Instant) -> Option<u32> {
        let since = now.saturating_duration_since(self.flash_since?);
        let step = u32::try_from(since.as_millis() / FLASH_STEP.as_millis()).ok()?;
        (step < FLASH_STEPS).then_some(step)
    }

    /// Returns the description of the pane for the hub.
    pub(crate) fn described(&self, workspace: &str, place: &str, parent: Option<&str>) -> Value {
        let mut surface = json!({
            "surface_id": self.surface(), "workspace_id": workspace, "tty": self.tty, "place": place,
        });
        let title = self.title();
        if !title.is_empty() {
            surface["title"] = json!(title);
        }
        if let Some(parent) = parent {
            surface["parent"] = json!(parent);
        }
        surface
    }
}

/// The id of a pane's surface.
pub(crate) fn surface_of(pane: &PaneId) -> String {
    format!("pane:{pane}")
}

fn file_name(program: &str) -> String {
    Path::new(program).file_name().map_or(program.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane() -> Pane {
        Pane::new(PaneId::new("x"), PathBuf::from("/src/api"), Size::at_least(40, 10), Instant::now())
    }

    #[test]
    fn a_notification_is_told_to_the_hub_and_a_question_is_answered() {
        let (mut pane, now) = (pane(), Instant::now());
        let events = pane.feed(b"\x1b]777;notify;Build;done\x07\x1b]2;hello\x07\x1b[c\x1b]7501;?\x1b\\", now);
        let told: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
        assert!(told.iter().any(|event| event.contains("\"body\": String(\"done\")")), "{told:?}");
        assert!(told.iter().any(|event| event == "Title"), "{told:?}");
        assert_eq!(told.iter().filter(|event| event.starts_with("Reply")).count(), 2, "{told:?}");
        assert_eq!((pane.label().as_str(), pane.title().as_str()), ("api", "hello"));
    }

    #[test]
    fn what_is_said_about_a_program_comes_back_until_it_ends() {
        let (mut before, now) = (pane(), Instant::now());
        drop(before.feed("\x1b]2;\u{2802} fix the login\x07\x1b]9;4;1;42\x07".as_bytes(), now));
        let mut again = pane();
        drop(again.feed(before.saved_description().as_bytes(), now));
        assert_eq!((again.title(), again.progress()), (before.title(), Some("42 %".to_owned())));
        // The title belonged to a working agent, which ends its turn.
        let later = now + Duration::from_mins(1);
        let events = again.feed("\x1b]2;\u{2733} fix the login\x07".as_bytes(), later);
        assert!(events.iter().any(|event| matches!(event, PaneEvent::Report(_))), "{events:?}");
        before.end(Ending::Exit(0));
        assert!(!before.saved_description().contains("9;4"), "{:?}", before.saved_description());
    }

    #[test]
    fn a_flash_is_twice_on() {
        let (mut pane, now) = (pane(), Instant::now());
        pane.flash(now);
        let lit: Vec<bool> =
            (0..6).map(|step| pane.is_flashing(now + FLASH_STEP * step + Duration::from_millis(1))).collect();
        assert_eq!(lit, [false, true, false, true, false, false]);
        assert_eq!(pane.next_flash(now + Duration::from_secs(1)), None);
    }
}
