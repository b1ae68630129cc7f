//! A keeper in a process of its own, and what a server does with it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ringer_panes::keeper::{KeeperClient, KeeperEvent, KeptPane, StartPane, serve};
use ringer_platform::Ending;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use test_support::DEADLINE;

const SOCKET: &str = "RINGER_TEST_KEEPER_SOCKET";

/// Not a test of its own: the process that the others start.
#[test]
#[ignore = "a helper process of other tests"]
fn a_keeper_until_it_ends() {
    let socket = std::env::var_os(SOCKET).expect("another test says where");
    let listener = UnixListener::bind(socket).expect("a new directory");
    println!("\nready");
    serve(listener).expect("it keeps");
}

/// A keeper that is killed at the end of a test.
pub(crate) struct TestKeeper {
    process: Child,
    directory: TempDir,
}

impl TestKeeper {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // As `nohup` and a shell's background jobs do it: the programs in the panes must not inherit this.
        let ignoring = "trap '' HUP INT QUIT TERM PIPE USR1; exec \"$0\" \"$@\"";
        let mut process = Command::new("sh")
            .args(["-c", ignoring])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "support::a_keeper_until_it_ends", "--ignored", "--nocapture"])
            .env(SOCKET, directory.path().join("keeper.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "it listens");
        Self { process, directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("keeper.sock")
    }

    pub(crate) fn connect(&self) -> (TestServer, Vec<KeptPane>) {
        let (client, panes) = KeeperClient::connect(&self.socket()).expect("it answers");
        (TestServer { client, said: VecDeque::new() }, panes)
    }

    /// A connection that says what the test wants it to say.
    pub(crate) fn connect_raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        stream.set_write_timeout(Some(DEADLINE)).expect("a socket");
        stream
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().expect("a child").is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(process(self.process.id()), signal).expect("it runs");
    }

    /// What starts a shell script in the test's directory.
    pub(crate) fn script(&self, id: &str, script: &str) -> StartPane {
        StartPane {
            id: id.to_owned(),
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            environment: vec![("PATH".into(), std::env::var_os("PATH").expect("a path"))],
            directory: self.directory.path().to_owned(),
            columns: 80,
            lines: 24,
            note: String::new(),
        }
    }
}

impl Drop for TestKeeper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A pane that was started.
pub(crate) struct StartedPane {
    pub(crate) pid: u32,
    pub(crate) tty: String,
    pub(crate) master: OwnedFd,
}

/// A server, with what the keeper said and no test has looked at.
pub(crate) struct TestServer {
    client: KeeperClient,
    said: VecDeque<KeeperEvent>,
}

impl Deref for TestServer {
    type Target = KeeperClient;

    fn deref(&self) -> &KeeperClient {
        &self.client
    }
}

impl DerefMut for TestServer {
    fn deref_mut(&mut self) -> &mut KeeperClient {
        &mut self.client
    }
}

impl TestServer {
    /// The first event that is wanted, of those that come. Those before it are dropped.
    pub(crate) fn wait_for<T>(&mut self, mut wanted: impl FnMut(KeeperEvent) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        loop {
            while let Some(event) = self.said.pop_front() {
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
            wait_until_ready(self.client.as_fd(), PollFlags::IN, end);
            self.said.extend(self.client.events().expect("connected"));
        }
    }

    pub(crate) fn start_pane(&mut self, pane: &StartPane) -> StartedPane {
        self.client.start(pane).expect("connected");
        self.wait_for(|event| match event {
            KeeperEvent::Started { id, pid, tty, master } if id == pane.id => {
                Some(StartedPane { pid, tty, master })
            }
            KeeperEvent::Failed { why, .. } => panic!("{why}"),
            _ => None,
        })
    }

    /// Waits for the answer to a request that cannot be fulfilled: the pane and the reason.
    pub(crate) fn wait_for_failure(&mut self) -> (String, String) {
        self.wait_for(|event| match event {
            KeeperEvent::Failed { id, why } => Some((id, why)),
            _ => None,
        })
    }

    /// Waits until a program has ended.
    pub(crate) fn wait_for_ending(&mut self, pane: &str) -> Ending {
        self.wait_for(|event| match event {
            KeeperEvent::Ended { id, ending } if id == pane => Some(ending),
            _ => None,
        })
    }

    /// Whether the keeper has said nothing more, and is still connected.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.said.is_empty() && self.client.events().expect("connected").is_empty()
    }
}

/// Reads what a program writes, until it ends like this.
pub(crate) fn read_until(master: &OwnedFd, ending: &str) -> String {
    let (end, mut all) = (Instant::now() + DEADLINE, Vec::new());
    while !all.ends_with(ending.as_bytes()) {
        let mut buffer = [0; 4096];
        match rustix::io::read(master, &mut buffer) {
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN) => wait_until_ready(master, PollFlags::IN, end),
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8(all).expect("text")
}

pub(crate) fn process(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process")
}

/// Reads what is left in a terminal that no program has open.
pub(crate) fn read_to_end(master: &OwnedFd) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = rustix::io::read(master, &mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}

pub(crate) fn write(master: &OwnedFd, text: &str) {
    assert_eq!(rustix::io::write(master, text.as_bytes()), Ok(text.len()));
}

fn wait_until_ready(descriptor: impl AsFd, events: PollFlags, end: Instant) {
    let rest = end.saturating_duration_since(Instant::now());
    assert!(!rest.is_zero(), "nothing came in time");
    let rest = Timespec::try_from(rest).expect("a short time");
    match poll(&mut [PollFd::new(&descriptor, events)], Some(&rest)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => panic!("{error}"),
    }
}
