//! Hooks that wait: one beside an open dialog, for an answer that the person gives elsewhere; one in an idle session, for
//! messages.
//!
//! Each sleeps on its own doorbell and needs no hub. The hook beside a dialog exits without output, which leaves the dialog to
//! the person, once the prompt is over or can no longer be answered through it.

use std::io::Write;
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, AgentTimeouts, Authority, PromptContent, Signal};
use ringer_core::message::Agent;
use ringer_journal::{
    AgentUpdate, Error as JournalError, HookWake, IdSource, Journal, LockTimeout, PromptWaiter,
};
use ringer_platform::owned;
use serde_json::Value;

use crate::client::{Client, ClientPaths, HookReply, PromptHooks, ReadSession, SessionActivity, answer};
use crate::hook_context::{HookContext, HookError};
use crate::push;
use crate::sessions::{MAX_BYTES, find_status_file};

/// How often to read the session file on systems without file notifications.
#[cfg(not(target_os = "linux"))]
const LOOK_EVERY: Option<Duration> = Some(Duration::from_millis(500));
#[cfg(target_os = "linux")]
const LOOK_EVERY: Option<Duration> = None;

/// A hook call that waits for the answer to a dialog.
pub(crate) struct WaitingHook<'a> {
    pub(crate) client: Client,
    pub(crate) event: &'a str,
    pub(crate) hooks: &'a PromptHooks,
    /// The hook input. The answer repeats parts of it.
    pub(crate) input: &'a Value,
    pub(crate) agent: &'a Agent,
    pub(crate) session_id: &'a str,
    /// The tool call that the dialog is about.
    pub(crate) call: &'a str,
    /// What the dialog asks. Two calls that look alike differ in it.
    pub(crate) content: Option<&'a PromptContent>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) context: &'a HookContext<'a>,
}

impl WaitingHook<'_> {
    /// Waits for the answer and writes it. The journal is closed while it waits.
    pub(crate) fn run(&self, mut journal: Journal, out: &mut impl Write) -> Result<(), HookError> {
        // The event that reported the dialog may still be spooled.
        let _ = journal.settle_spool_within(LockTimeout::COMMAND.0);
        let waiter = journal.with_lock_timeout(LockTimeout::COMMAND, |journal| {
            journal.wait_at_prompt(self.agent, self.call)
        })?;
        drop(journal);
        let Some(mut waiter) = waiter else { return Ok(()) };
        let mut dialog = DialogWatch::begin(self.client, &(self.context.paths)(), self.session_id);
        loop {
            let Some(prompt) = waiter.look()?.filter(|prompt| prompt.ended_ms.is_none()) else {
                return Ok(());
            };
            // The person is shown the first of two calls that look alike. Its answer does not apply to the second.
            if self.content.is_some_and(|content| *content != prompt.prompt.content) {
                return Ok(());
            }
            match dialog.as_mut().map_or(DialogState::Open, DialogWatch::poll) {
                DialogState::Open => {}
                DialogState::Answered => return Ok(self.record_answered_in_dialog()?),
                DialogState::Closed => return Ok(()),
            }
            if let Some(decision) = prompt.decision {
                let output = (self.hooks.output)(self.event, self.input, &decision.answer);
                let Some(output) = output else { return Ok(()) };
                out.write_all(output.as_bytes()).and_then(|()| out.flush()).map_err(HookError::Output)?;
                Journal::open(&self.context.home)?
                    .note_answer_handed(waiter.key(), IdSource::now().unix_ms)?;
                return Ok(());
            }
            if !self.sleep(&mut waiter, dialog.as_ref())? {
                return Ok(());
            }
        }
    }

    /// Sleeps until something may have changed. Returns false if the hook should exit.
    fn sleep(&self, waiter: &mut PromptWaiter, dialog: Option<&DialogWatch>) -> Result<bool, HookError> {
        let next_look = dialog.and(LOOK_EVERY).map(|every| Instant::now() + every);
        let until = [next_look, self.deadline].into_iter().flatten().min();
        let changes = dialog.and_then(DialogWatch::changes);
        ringer_platform::release_clean_pages();
        let woken = waiter.sleep(changes.as_slice(), self.context.stdout, until)?;
        Ok(match woken {
            HookWake::ClientEnded => false,
            HookWake::TimedOut => self.deadline.is_none_or(|deadline| Instant::now() < deadline),
            HookWake::Other => !self.context.is_hung_up(),
            _ => true,
        })
    }

    /// The person answered in the dialog. The session now works on the call, and no hook reports that before the call ends.
    fn record_answered_in_dialog(&self) -> Result<(), JournalError> {
        let mut journal = Journal::open(&self.context.home)?;
        record_resumed(&mut journal, self.agent, self.call, (self.context.clock)())
    }
}

/// Records that an agent has resumed work on a call whose prompt was answered.
pub(crate) fn record_resumed(
    journal: &mut Journal,
    agent: &Agent,
    call: &str,
    mono: Duration,
) -> Result<(), JournalError> {
    let Some(info) = journal.agent_info(agent)? else { return Ok(()) };
    let signals = [Signal::state(Authority::Hook, AgentState::Working).call(call)];
    let timeouts = AgentTimeouts::default();
    let update = AgentUpdate { agent: &info, signals: &signals, mono, timeouts, notify: true };
    journal.update_agent(&update, None, &IdSource::now()).map(drop)
}

/// Waits in an idle session and gives incoming messages to the client as its next prompt. The journal is closed while it waits.
/// It exits without output once the agent is no longer idle: then other hooks deliver the messages.
pub(crate) fn wait_while_idle(
    (client, event): (Client, &str),
    agent: &Agent,
    mut journal: Journal,
    out: &mut impl Write,
    context: &HookContext<'_>,
) -> Result<(), HookError> {
    // The end of the turn may still be spooled.
    let _ = journal.settle_spool_within(LockTimeout::COMMAND.0);
    let waiter =
        journal.with_lock_timeout(LockTimeout::COMMAND, |journal| journal.wait_for_messages(agent))?;
    drop(journal);
    let Some(mut waiter) = waiter else { return Ok(()) };
    loop {
        let Some(mut journal) = waiter.journal()? else { return Ok(()) };
        let Some(info) = journal.agent_info(agent)? else { return Ok(()) };
        if !journal.agent_state(agent)?.is_some_and(push::is_idle) {
            return Ok(());
        }
        push::move_lead_messages(&mut journal, &info)?;
        if let Some(claimed) = push::claim_all(&mut journal, agent, "idle-")? {
            let message = push::render_claimed(&claimed, agent, &mut journal)?;
            let reply = HookReply { stop_reason: Some(message), ..HookReply::default() };
            let text = answer(client, event, &reply).unwrap_or_default();
            if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                journal.release(agent, &claimed)?;
                return Err(HookError::Output(error));
            }
            journal.mark_delivered(agent, &claimed, IdSource::now().unix_ms)?;
            return Ok(());
        }
        drop(journal);
        ringer_platform::release_clean_pages();
        match waiter.sleep(&[], context.stdout, None)? {
            HookWake::ClientEnded => return Ok(()),
            HookWake::Other if context.is_hung_up() => return Ok(()),
            _ => {}
        }
    }
}

/// Between two dialogs of one session, the client shows none for a moment.
const SETTLED_AFTER: Duration = Duration::from_millis(150);

/// Watches the status file of one session. Files of other sessions do not wake the reader.
#[derive(Debug)]
struct DialogWatch {
    path: PathBuf,
    read: ReadSession,
    was_shown: bool,
    #[cfg(target_os = "linux")]
    changes: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogState {
    /// The dialog is open, or nothing else is known.
    Open,
    /// The dialog was answered, and the session is working.
    Answered,
    /// The session waits for its next prompt, or has ended.
    Closed,
}

impl DialogWatch {
    /// Starts to watch. `None` for a client that does not publish what its sessions do.
    pub(crate) fn begin(client: Client, paths: &ClientPaths, session_id: &str) -> Option<Self> {
        let (path, read) = find_status_file(client, paths, session_id)?;
        let mut watch = Self {
            path,
            read,
            was_shown: false,
            #[cfg(target_os = "linux")]
            changes: None,
        };
        watch.renew_watch();
        watch.poll();
        Some(watch)
    }

    /// A descriptor that is readable when the file may have changed. `None` on systems without file notifications.
    #[cfg(target_os = "linux")]
    pub(crate) fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux tells")]
    pub(crate) fn changes(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Reads the file. A change counts only if it lasts.
    pub(crate) fn poll(&mut self) -> DialogState {
        let state = self.read_state();
        if state == DialogState::Open {
            return state;
        }
        sleep(SETTLED_AFTER);
        self.read_state()
    }

    fn read_state(&mut self) -> DialogState {
        self.drain_changes();
        let bytes = match owned::read(&self.path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return DialogState::Closed,
            Err(_) => return DialogState::Open,
        };
        let status = (self.read)(&bytes).and_then(|session| session.status);
        match status.map(|status| status.activity) {
            Some(SessionActivity::Waiting(_)) => {
                self.was_shown = true;
                DialogState::Open
            }
            Some(SessionActivity::Busy) if self.was_shown => DialogState::Answered,
            Some(SessionActivity::Idle) if self.was_shown => DialogState::Closed,
            _ => DialogState::Open,
        }
    }

    /// Drains the notification queue. A file that was replaced needs a new watch.
    #[cfg(target_os = "linux")]
    fn drain_changes(&mut self) {
        use rustix::fs::inotify::{ReadFlags, Reader};
        let Some(queue) = &self.changes else { return };
        let mut room = [std::mem::MaybeUninit::uninit(); 1024];
        let mut reader = Reader::new(queue, &mut room);
        let mut is_replaced = false;
        while let Ok(event) = reader.next() {
            is_replaced |= event.events().intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF);
        }
        if is_replaced {
            self.renew_watch();
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux has a queue")]
    fn drain_changes(&mut self) {}

    #[cfg(target_os = "linux")]
    fn renew_watch(&mut self) {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let flags =
            WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        // A replaced file changes its link count. Its watch would otherwise last as long as another process has the file open.
        let flags = flags | WatchFlags::ATTRIB;
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        self.changes = queue.ok().filter(|queue| add_watch(queue, &self.path, flags).is_ok());
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux has a queue")]
    fn renew_watch(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const SESSION: &str = "6be1e699-d2b2";

    fn write(directory: &Path, status: &str, in_place: bool) {
        let session = serde_json::json!({ "sessionId": SESSION, "status": status, "statusUpdatedAt": 1 });
        let path = directory.join("1.json");
        if in_place {
            return fs::write(path, session.to_string()).unwrap();
        }
        let temporary = directory.join("1.tmp");
        fs::write(&temporary, session.to_string()).unwrap();
        fs::rename(temporary, path).unwrap();
    }

    #[cfg(target_os = "linux")]
    fn is_notified(watch: &DialogWatch) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let changes = watch.changes().unwrap();
        poll(&mut [PollFd::from_borrowed_fd(changes, PollFlags::IN)], Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_dialog_that_goes_away_is_noticed_however_the_file_is_written() {
        let home = tempfile::tempdir().unwrap();
        let (paths, directory) = (ClientPaths::new(home.path()), home.path().join(".claude/sessions"));
        fs::create_dir_all(&directory).unwrap();
        assert!(DialogWatch::begin(Client::Claude, &paths, SESSION).is_none());
        for in_place in [true, false] {
            write(&directory, "waiting", in_place);
            let mut watch = DialogWatch::begin(Client::Claude, &paths, SESSION).unwrap();
            assert!(!is_notified(&watch), "in place: {in_place}");
            for _ in 0..3 {
                write(&directory, "waiting", in_place);
                assert!(is_notified(&watch), "in place: {in_place}");
                assert_eq!(watch.poll(), DialogState::Open);
                assert!(!is_notified(&watch), "in place: {in_place}");
            }
            write(&directory, "busy", in_place);
            assert!(is_notified(&watch));
            assert_eq!(watch.poll(), DialogState::Answered);
            write(&directory, "idle", in_place);
            assert_eq!(watch.poll(), DialogState::Closed);
            fs::remove_file(directory.join("1.json")).unwrap();
            assert!(is_notified(&watch));
            assert_eq!(watch.poll(), DialogState::Closed);
        }
    }

    #[test]
    fn a_dialog_that_was_never_seen_has_not_gone() {
        let home = tempfile::tempdir().unwrap();
        let (paths, directory) = (ClientPaths::new(home.path()), home.path().join(".claude/sessions"));
        fs::create_dir_all(&directory).unwrap();
        write(&directory, "busy", true);
        let mut watch = DialogWatch::begin(Client::Claude, &paths, SESSION).unwrap();
        assert_eq!(watch.poll(), DialogState::Open);
    }
}
