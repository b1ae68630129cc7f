//! Appends messages for other processes: a thread with a socket and a connection to the journal of its own, beside the loop.
//!
//! A command that opens the journal for one message spends more time on that than on the message. What this thread cannot append
//! at once, the command appends itself; so nothing here waits for long, and nothing here repairs a file.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_ipc::deadline_io::{read_line_until, write_until};
use ringer_ipc::{MAX_LINE, STORED, append_socket, read_append_request};
use ringer_journal::{Error, Home, Journal, LockTimeout};
use ringer_platform::{peer_pid, peer_uid, wake_pair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a client may take to send its request and to take the answer. It has the request when it connects.
const CLIENT_WITHIN: Duration = Duration::from_millis(20);
/// How long the write lock is waited for: less than a client waits for the answer.
const LOCK_WITHIN: LockTimeout = LockTimeout(Duration::from_millis(20));
/// How long the write lock is only tried after it was not free in time.
const LOCK_PAUSE: Duration = Duration::from_secs(1);
/// How long the journal stays open after a message. The file may be replaced meanwhile, and would keep its place on the disk.
const OPEN_FOR: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// How long nothing is accepted after that failed: most likely no descriptors are left.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The thread, as long as the hub runs.
#[derive(Debug)]
pub(crate) struct AppendService {
    socket: OwnSocket,
    /// Dropped to end the thread.
    running: UnixStream,
    ended: Receiver<()>,
}

impl AppendService {
    /// Starts it. It is an error where there can be no such socket: the path is too long for one, or the file system has none.
    pub(crate) fn start(home: &Home) -> io::Result<Self> {
        let (listener, socket) = OwnSocket::bind(append_socket(home))?;
        let (ending, running) = wake_pair()?;
        let (done, ended) = channel();
        let mut server = Server { home: home.clone(), socket: socket.clone(), journal: None };
        thread::Builder::new().name("append".to_owned()).spawn(move || {
            // Dropped when the thread ends.
            let _done = done;
            server.run(&listener, &ending);
        })?;
        Ok(Self { socket, running, ended })
    }

    /// Ends it: once this returns, it appends nothing more, unless the disk hangs for longer than `within`.
    pub(crate) fn end(self, within: Duration) {
        drop(self.running);
        let _ = self.ended.recv_timeout(within);
        if self.socket.is_at_its_path() {
            let _ = fs::remove_file(&self.socket.path);
        }
    }
}

/// The socket of this process, and how it is told from another one at the same path.
#[derive(Debug, Clone)]
struct OwnSocket {
    path: PathBuf,
    /// Its device and its number there.
    file: (u64, u64),
}

impl OwnSocket {
    fn bind(path: PathBuf) -> io::Result<(UnixListener, Self)> {
        // This process holds the hub's lock, so the hub that made this socket is dead.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let file = file_of(&fs::symlink_metadata(&path)?);
        Ok((listener, Self { path, file }))
    }

    /// Whether it is still the one at its path. It is not after the home was moved: the clients are those of another home then.
    fn is_at_its_path(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|metadata| file_of(&metadata) == self.file)
    }
}

fn file_of(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// What the thread has.
struct Server {
    home: Home,
    socket: OwnSocket,
    /// Open since the last message.
    journal: Option<Journal>,
}

impl Server {
    /// Serves one client after the other, until the other end of `ending` is gone.
    fn run(&mut self, listener: &UnixListener, ending: &UnixStream) {
        let own = rustix::process::geteuid().as_raw();
        loop {
            let mut polled = [PollFd::new(listener, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
            let ready = poll(&mut polled, self.journal.as_ref().map(|_| &OPEN_FOR));
            if !polled[1].revents().is_empty() {
                return;
            }
            if ready == Ok(0) {
                self.journal = None;
            }
            match listener.accept() {
                Ok((stream, _)) if peer_uid(&stream).is_ok_and(|uid| uid == own) => {
                    // Where this fails, the client appends its message itself.
                    let _ = self.answer(&stream);
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => thread::sleep(AFTER_FAILURE),
            }
        }
    }

    fn answer(&mut self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let line = read_line_until(stream, MAX_LINE, Instant::now() + CLIENT_WITHIN)?;
        let request = read_append_request(&line).ok_or(ErrorKind::InvalidData)?;
        if has_given_up(stream) || !self.socket.is_at_its_path() {
            return Ok(());
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(open(&self.home).map_err(io::Error::other)?),
        };
        // The process that is there says who sends it. Of one in another process namespace that is not known.
        let pid = peer_pid(stream)?.ok_or(ErrorKind::NotFound)?;
        match journal.append_in_hub(&request, pid) {
            Ok(true) => write_until(stream, &[STORED, b"\n"].concat(), Instant::now() + CLIENT_WITHIN),
            // The loop hears of no message: the client appends it too, and starts another hub. If the lock was not free, the
            // open journal remembers that.
            // A sender that is refused is refused by the client, which can say why.
            Ok(false) | Err(Error::Busy { .. } | Error::Sender(_)) => Ok(()),
            Err(error) => {
                // Whatever is wrong with the file, it is opened anew for the next message.
                self.journal = None;
                Err(io::Error::other(error))
            }
        }
    }
}

/// Opens the journal for messages that are appended at once or not at all.
fn open(home: &Home) -> Result<Journal, Error> {
    let mut journal = Journal::open_without_repair(home, LOCK_WITHIN)?;
    journal.wait_as_loop(LOCK_WITHIN, LOCK_PAUSE);
    Ok(journal)
}

/// Whether the client has closed the connection: it has waited long enough, and appends the message itself.
fn has_given_up(stream: &UnixStream) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(stream, PollFlags::IN)];
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use ringer_core::message::{Mark, MessageOrigin, QuestionId, Tag};
    use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
    use ringer_ipc::append_through_hub;
    use ringer_journal::{AppendRequest, HubLock, IdSource, SenderClaim};

    struct Started {
        directory: tempfile::TempDir,
        home: Home,
        service: AppendService,
        /// With the doorbell of the loop.
        _lock: HubLock,
    }

    fn started() -> Started {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        drop(Journal::open(&home).unwrap());
        let lock = HubLock::acquire(&home).unwrap().unwrap();
        let service = AppendService::start(&home).unwrap();
        Started { directory, home, service, _lock: lock }
    }

    fn request(body: &str) -> AppendRequest {
        let ids = IdSource::now();
        let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, body).unwrap();
        AppendRequest { id: ids.message_id(), unix_ms: ids.unix_ms, draft, claim: SenderClaim::default() }
    }

    /// Appends it through the service, however loaded the machine is.
    fn append(home: &Home, request: &AppendRequest) {
        test_support::until("the service appends", || append_through_hub(home, request));
    }

    fn bodies(home: &Home) -> Vec<String> {
        let messages = Journal::open(home).unwrap().messages_after(0, usize::MAX).unwrap();
        messages.into_iter().map(|message| message.draft.body).collect()
    }

    #[test]
    fn what_is_acknowledged_is_in_the_journal_once() {
        let Started { directory: _directory, home, service, _lock } = started();
        let one = request("one");
        append(&home, &one);
        append(&home, &one);
        Journal::open(&home).unwrap().append_request(&one).unwrap();
        append(&home, &request("two\nlines and \"quotes\""));
        append(&home, &request(&"long ".repeat(13_000)));
        let stored = bodies(&home);
        assert_eq!(stored[..2], ["one", "two\nlines and \"quotes\""]);
        assert_eq!(stored[2].len(), 65_000);
        assert_eq!(stored.len(), 3);
        service.end(Duration::from_secs(10));
        assert!(!append_through_hub(&home, &request("late")), "it has ended");
        assert_eq!(bodies(&home).len(), 3);
        assert!(!append_socket(&home).exists());
    }

    /// Every field that a command can set.
    #[test]
    fn a_message_is_the_same_whichever_process_appends_it() {
        let Started { directory: _directory, home, service, _lock } = started();
        let mut one = request("whole");
        one.draft.recipient = Recipient::parse("agent:worker-1").unwrap();
        one.draft.title = Some("title".into());
        one.draft.subtitle = Some("subtitle".into());
        one.draft.category = Some("idle_prompt".into());
        one.draft.question_id = Some(QuestionId::new(1, 2));
        one.draft.key = Some("key".into());
        one.draft.ttl = Some(Duration::from_millis(90_500));
        one.draft.origin = MessageOrigin {
            pid: Some(7),
            tty: Some("/dev/pts/1".into()),
            cwd: Some("/src/\u{1b}[31mapi".into()),
            surface: Some("pane:1".into()),
            ..MessageOrigin::default()
        };
        append(&home, &one);
        let other = AppendRequest { id: IdSource::now().message_id(), ..one.clone() };
        let mut journal = Journal::open(&home).unwrap();
        journal.append_request(&other).unwrap();
        let stored = journal.messages_after(0, usize::MAX).unwrap();
        assert_eq!(stored[0].draft, one.draft);
        assert_eq!((&stored[0].draft, stored[0].unix_ms), (&stored[1].draft, stored[1].unix_ms));
        service.end(Duration::from_secs(10));
    }

    #[test]
    fn what_it_cannot_append_at_once_it_does_not_acknowledge() {
        let Started { directory: _directory, home, service, _lock } = started();
        append(&home, &request("before"));
        let lock = fs::File::options().write(true).open(home.path().join("write.lock")).unwrap();
        lock.lock().unwrap();
        let held = request("while the lock is held");
        assert!(!append_through_hub(&home, &held));
        lock.unlock().unwrap();
        append(&home, &held);
        assert_eq!(bodies(&home), ["before", "while the lock is held"]);
        // A damaged journal is left to a process that has the time to repair it.
        fs::remove_file(home.database()).unwrap();
        fs::write(home.database(), "no database at all").unwrap();
        assert!(!append_through_hub(&home, &request("damaged")));
        assert!(fs::read_to_string(home.database()).is_ok_and(|text| text == "no database at all"));
        service.end(Duration::from_secs(10));
    }

    fn line_of(version: &str, request: &AppendRequest) -> Vec<u8> {
        let line = serde_json::json!({ "version": version, "request": request });
        format!(
            "{line}
"
        )
        .into_bytes()
    }

    #[test]
    fn what_is_no_request_is_closed_and_the_next_one_is_served() {
        let Started { directory: _directory, home, service, _lock } = started();
        let connect = || UnixStream::connect(append_socket(&home)).unwrap();
        let (_silent, mut half) = (connect(), connect());
        half.write_all(b"{\"id\":").unwrap();
        let newer = line_of("999.0.0", &request("newer"));
        let mut mark = request("not allowed");
        mark.draft.tag = Tag::Mark(Mark::Read);
        let mark = line_of(env!("CARGO_PKG_VERSION"), &mark);
        let mut reserved = request("not allowed");
        reserved.draft.key = Some("episode:1".into());
        let reserved = line_of(env!("CARGO_PKG_VERSION"), &reserved);
        for sent in [&b"no request\n"[..], b"\n", b"{}\n", b"\xff\xfe\n", &newer, &mark, &reserved] {
            let mut stream = connect();
            stream.write_all(sent).unwrap();
            let mut answer = Vec::new();
            // It may be closed before all of it was read.
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty(), "{sent:?}");
        }
        let mut endless = connect();
        while endless.write_all(&[b'a'; 8 * 1024]).is_ok() {}
        append(&home, &request("after all that"));
        assert_eq!(bodies(&home), ["after all that"]);
        service.end(Duration::from_secs(10));
    }

    /// The clients at the socket are those of another home then.
    #[test]
    fn a_home_that_was_moved_gets_none_of_its_messages_elsewhere() {
        let Started { directory, home, service, _lock } = started();
        append(&home, &request("before"));
        let moved = Home::new(directory.path().join("moved"));
        fs::rename(home.path(), moved.path()).unwrap();
        for _ in 0..2 {
            assert!(!append_through_hub(&moved, &request("in the moved one")));
        }
        assert!(!home.path().exists(), "nothing is made in the old place");
        drop(Journal::open(&home).unwrap());
        assert!(!append_through_hub(&moved, &request("in the moved one")));
        assert!(!append_through_hub(&home, &request("in the new one")), "there is no socket");
        assert_eq!((bodies(&home).len(), bodies(&moved).len()), (0, 1));
        // Another hub has its own socket there.
        let other = AppendService::start(&home).unwrap();
        service.end(Duration::from_secs(10));
        assert!(append_socket(&home).exists(), "it belongs to the other one");
        other.end(Duration::from_secs(10));
        assert!(!append_socket(&home).exists());
    }

    /// The client finds that no hub hears of its message, and starts one.
    #[test]
    fn a_message_that_the_loop_does_not_hear_of_is_not_acknowledged() {
        let Started { directory: _directory, home, service, _lock } = started();
        append(&home, &request("heard"));
        fs::remove_file(home.path().join("bells/hub.fifo")).unwrap();
        let unheard = request("unheard");
        assert!(!append_through_hub(&home, &unheard));
        Journal::open(&home).unwrap().append_request(&unheard).unwrap();
        assert_eq!(bodies(&home), ["heard", "unheard"]);
        service.end(Duration::from_secs(10));
    }

    /// A hub that was killed leaves its socket, and one that is stopped takes no connection.
    #[test]
    fn a_socket_without_a_service_costs_nothing_but_a_moment() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        assert!(!append_through_hub(&home, &request("no socket")));
        let stopped = UnixListener::bind(append_socket(&home)).unwrap();
        assert!(!append_through_hub(&home, &request("stopped")));
        drop(stopped);
        assert!(!append_through_hub(&home, &request("killed")));
        let service = AppendService::start(&home).unwrap();
        service.end(Duration::from_secs(10));
    }
}
