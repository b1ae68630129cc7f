//! Asks the person the questions of programs, each on its own thread, so that no pane waits for the journal.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use ringer_platform::{clear_wakes, wake, wake_pair};
use ringer_ui::{Backend, ProgramAnswer, ProgramQuestion};

use crate::effect::{QuestionNumber, QuestionOutcome};
use crate::layout::PaneId;

/// The most open questions of all panes. Each has a thread, a connection to the journal and a doorbell.
const MAX_ASKED: usize = 16;
/// Timeout for closing all questions when the server ends. The next server closes those that are left.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// A question of a program: the pane, and its number there.
pub(super) type QuestionKey = (PaneId, QuestionNumber);

/// A report of a question's thread. The first one may be [`QuestionOutcome::Asked`]; the last one is another outcome.
pub(super) type Report = (QuestionKey, QuestionOutcome);

/// The open questions.
pub(super) struct ProgramQuestions {
    backend: Arc<dyn Backend>,
    /// Closes the questions that an earlier server left open, before the first question is asked.
    left_open: Arc<Once>,
    /// Dropping the stream closes the question.
    open: BTreeMap<QuestionKey, UnixStream>,
    /// The number of threads that have not reported a final outcome.
    threads: usize,
    reports: Receiver<Report>,
    mailbox: Mailbox,
    woken: UnixStream,
}

/// Carries reports from the threads to the loop.
#[derive(Clone)]
struct Mailbox {
    reports: SyncSender<Report>,
    wakes: Arc<UnixStream>,
}

impl Mailbox {
    fn put(&self, report: Report) {
        // This fails only if the server has ended.
        let _ = self.reports.send(report);
        wake(&self.wakes);
    }
}

impl ProgramQuestions {
    pub(super) fn start(backend: Arc<dyn Backend>) -> io::Result<Self> {
        let (woken, wakes) = wake_pair()?;
        // Each thread sends at most two reports, so none blocks.
        let (sender, reports) = sync_channel(2 * MAX_ASKED);
        let left_open = Arc::new(Once::new());
        let (own, closer) = (Arc::clone(&left_open), Arc::clone(&backend));
        thread::Builder::new().spawn(move || own.call_once(|| closer.close_program_questions()))?;
        let mailbox = Mailbox { reports: sender, wakes: Arc::new(wakes) };
        Ok(Self { backend, left_open, open: BTreeMap::new(), threads: 0, reports, mailbox, woken })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Starts to ask a question. The question that it replaces is closed even if this fails.
    pub(super) fn ask(
        &mut self,
        key: QuestionKey,
        question: ProgramQuestion,
        replaces: Option<QuestionNumber>,
    ) -> io::Result<()> {
        let mut before = replaces.and_then(|number| self.open.remove(&(key.0.clone(), number)));
        if self.threads >= MAX_ASKED {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let (stop, stopped) = UnixStream::pair()?;
        let (backend, left_open, mailbox) =
            (Arc::clone(&self.backend), Arc::clone(&self.left_open), self.mailbox.clone());
        let own = key.clone();
        thread::Builder::new().spawn(move || {
            left_open.call_once(|| backend.close_program_questions());
            let mut asked = || {
                mailbox.put((own.clone(), QuestionOutcome::Asked));
                drop(before.take());
            };
            let outcome = match backend.ask(&question, &mut asked, stopped.as_fd()) {
                ProgramAnswer::Chosen(label) => QuestionOutcome::Chosen(label),
                ProgramAnswer::Closed => QuestionOutcome::Closed,
                ProgramAnswer::NotAsked => QuestionOutcome::NotAsked,
            };
            mailbox.put((own, outcome));
        })?;
        self.threads += 1;
        self.open.insert(key, stop);
        Ok(())
    }

    pub(super) fn close(&mut self, pane: PaneId, number: QuestionNumber) {
        self.open.remove(&(pane, number));
    }

    /// Closes the questions of a pane.
    pub(super) fn close_all_of(&mut self, pane: &PaneId) {
        self.open.retain(|(own, _), _| own != pane);
    }

    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Returns the reports since the last call.
    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        clear_wakes(&self.woken);
        let reports: Vec<Report> = self.reports.try_iter().collect();
        for (key, outcome) in &reports {
            if *outcome != QuestionOutcome::Asked {
                self.threads -= 1;
                self.open.remove(key);
            }
        }
        reports
    }

    /// Waits a short time until the closed questions are closed in the journal, too.
    pub(super) fn wait_until_closed(&mut self) {
        let until = Instant::now() + CLOSED_WITHIN;
        while self.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((_, outcome)) = self.reports.recv_timeout(left) else { return };
            self.threads -= usize::from(outcome != QuestionOutcome::Asked);
        }
    }
}
