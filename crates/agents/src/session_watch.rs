//! Notices that a client no longer shows its dialog, by the file in which it says what its session does.

use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use ringer_platform::owned;

use crate::client::{Client, ClientPaths, ReadSession, SessionActivity};
use crate::sessions::{MAX_BYTES, find_state_file};

/// Between two dialogs of one session the client shows none for a moment.
const SETTLED_AFTER: Duration = Duration::from_millis(150);

/// The file of one session. Only this file wakes its reader, not those of other sessions.
#[derive(Debug)]
pub(crate) struct DialogWatch {
    path: PathBuf,
    read: ReadSession,
    was_shown: bool,
    #[cfg(target_os = "linux")]
    changes: Option<OwnedFd>,
}

/// What became of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialogState {
    /// It is shown, or nothing else is known.
    Shown,
    /// The session works: the dialog was answered.
    WentOn,
    /// The session waits for its next prompt, or has ended.
    Gone,
}

impl DialogWatch {
    /// Begins. `None` for a client that does not say what its sessions do.
    pub(crate) fn begin(client: Client, paths: &ClientPaths, session_id: &str) -> Option<Self> {
        let (path, read) = find_state_file(client, paths, session_id)?;
        let mut watch = Self {
            path,
            read,
            was_shown: false,
            #[cfg(target_os = "linux")]
            changes: None,
        };
        watch.watch_again();
        watch.look();
        Some(watch)
    }

    /// What to wait for: readable when the file may have changed. `None` where the system does not tell of changes.
    #[cfg(target_os = "linux")]
    pub(crate) fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(AsFd::as_fd)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux tells")]
    pub(crate) fn changes(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Looks at the file.
    pub(crate) fn look(&mut self) -> DialogState {
        let state = self.state_now();
        if state == DialogState::Shown {
            return state;
        }
        sleep(SETTLED_AFTER);
        self.state_now()
    }

    fn state_now(&mut self) -> DialogState {
        self.forget_changes();
        let bytes = match owned::read(&self.path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return DialogState::Gone,
            Err(_) => return DialogState::Shown,
        };
        let status = (self.read)(&bytes).and_then(|session| session.status);
        match status.map(|status| status.activity) {
            Some(SessionActivity::Waiting(_)) => {
                self.was_shown = true;
                DialogState::Shown
            }
            Some(SessionActivity::Busy) if self.was_shown => DialogState::WentOn,
            Some(SessionActivity::Idle) if self.was_shown => DialogState::Gone,
            _ => DialogState::Shown,
        }
    }

    /// Reads the queue of changes empty, before the file is read. A file that was replaced is watched anew.
    #[cfg(target_os = "linux")]
    fn forget_changes(&mut self) {
        use rustix::fs::inotify::{ReadFlags, Reader};
        let Some(queue) = &self.changes else { return };
        let mut room = [std::mem::MaybeUninit::uninit(); 1024];
        let mut reader = Reader::new(queue, &mut room);
        let mut is_replaced = false;
        while let Ok(event) = reader.next() {
            is_replaced |= event.events().intersects(ReadFlags::IGNORED | ReadFlags::MOVE_SELF);
        }
        if is_replaced {
            self.watch_again();
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux has a queue")]
    fn forget_changes(&mut self) {}

    #[cfg(target_os = "linux")]
    fn watch_again(&mut self) {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let flags =
            WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        // The link count of a file that is replaced changes, and its watch stays as long as another process has it open.
        let flags = flags | WatchFlags::ATTRIB;
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        self.changes = queue.ok().filter(|queue| add_watch(queue, &self.path, flags).is_ok());
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux has a queue")]
    fn watch_again(&mut self) {}
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
    fn is_told(watch: &DialogWatch) -> bool {
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
            assert!(!is_told(&watch), "in place: {in_place}");
            for _ in 0..3 {
                write(&directory, "waiting", in_place);
                assert!(is_told(&watch), "in place: {in_place}");
                assert_eq!(watch.look(), DialogState::Shown);
                assert!(!is_told(&watch), "in place: {in_place}");
            }
            write(&directory, "busy", in_place);
            assert!(is_told(&watch));
            assert_eq!(watch.look(), DialogState::WentOn);
            write(&directory, "idle", in_place);
            assert_eq!(watch.look(), DialogState::Gone);
            fs::remove_file(directory.join("1.json")).unwrap();
            assert!(is_told(&watch));
            assert_eq!(watch.look(), DialogState::Gone);
        }
    }

    #[test]
    fn a_dialog_that_was_never_seen_has_not_gone() {
        let home = tempfile::tempdir().unwrap();
        let (paths, directory) = (ClientPaths::new(home.path()), home.path().join(".claude/sessions"));
        fs::create_dir_all(&directory).unwrap();
        write(&directory, "busy", true);
        let mut watch = DialogWatch::begin(Client::Claude, &paths, SESSION).unwrap();
        assert_eq!(watch.look(), DialogState::Shown);
    }
}
