//! Detects that a client has closed its dialog, from the status file of the session.

use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use ringer_platform::owned;

use crate::client::{Client, ClientPaths, ReadSession, SessionActivity};
use crate::sessions::{MAX_BYTES, find_status_file};

/// Between two dialogs of one session, the client shows none for a moment.
const SETTLED_AFTER: Duration = Duration::from_millis(150);

/// Watches the status file of one session. Files of other sessions do not wake the reader.
#[derive(Debug)]
pub(crate) struct DialogWatch {
    path: PathBuf,
    read: ReadSession,
    was_shown: bool,
    #[cfg(target_os = "linux")]
    changes: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialogState {
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
    use super::*;
    use std::fs;
    use std::path::Path;

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
