//! Runs tmux commands on the server at a socket, with a deadline.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ringer_platform::{find_own_program, owned};

/// The timeout of a command. tmux answers within milliseconds unless its server hangs.
const DEADLINE: Duration = Duration::from_secs(2);
/// How much output is read: enough for 300 bytes for each of thousands of panes.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;
/// The `wait-for` channel that hooks signal.
pub(crate) const DOORBELL: &str = "ringer-look";

/// Why a tmux command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TmuxError {
    /// tmux cannot be started.
    #[error("cannot run tmux: {0}")]
    Start(io::Error),
    /// There is no socket, or another user could have put it there. The tmux client executes what the server sends.
    #[error("the socket {} cannot be used: {why}", socket.display())]
    Socket {
        /// The path.
        socket: PathBuf,
        /// The reason.
        why: io::Error,
    },
    /// The command exceeded its timeout.
    #[error("tmux did not answer within {} s", DEADLINE.as_secs())]
    TimedOut,
    /// tmux reported an error.
    #[error("tmux: {0}")]
    Refused(String),
    /// The version is too old: formats in border styles came with 3.2.
    #[error("tmux {0} is too old: 3.2 or newer is needed")]
    TooOld(String),
}

impl TmuxError {
    /// The reason why an existing socket or program is not trusted: another user could have put it there.
    pub fn refusal(&self) -> Option<&io::Error> {
        match self {
            Self::Start(why) | Self::Socket { why, .. } => {
                // Errors of the system have a number; those of `ringer_platform::owned` have none.
                (why.kind() == io::ErrorKind::PermissionDenied && why.raw_os_error().is_none()).then_some(why)
            }
            _ => None,
        }
    }
}

/// A tmux server, identified by its socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TmuxServer {
    socket: PathBuf,
}

impl TmuxServer {
    /// The server at a socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// Parses the variable `TMUX` of a process in a pane: `SOCKET,PID,SESSION`.
    pub fn from_variable(tmux: &str) -> Option<Self> {
        let socket = tmux.rsplitn(3, ',').nth(2)?;
        (!socket.is_empty()).then(|| Self::at(socket))
    }

    /// The sockets of this user in a directory where tmux creates them. Some may have no running server.
    pub fn in_directory(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let sockets = entries.map(|entry| entry.path()).filter(|path| owned::check_socket(path).is_ok());
        let mut servers: Vec<Self> = sockets.map(Self::at).collect();
        servers.sort();
        servers
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A tmux command for this server. With `-S` tmux does not check who owns the socket, so it is checked here, each time.
    fn command(&self) -> Result<Command, TmuxError> {
        owned::check_socket(&self.socket)
            .map_err(|why| TmuxError::Socket { socket: self.socket.clone(), why })?;
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let tmux = find_own_program(&search_path, "tmux").map_err(TmuxError::Start)?;
        let mut command = Command::new(tmux);
        // -u: UTF-8, whatever the locale of this process.
        command.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX").current_dir("/");
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs commands and returns their standard output. Each word is an argument; commands are separated by `;`.
    pub fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<String, TmuxError> {
        let mut child =
            self.command()?.args(words).stdout(Stdio::piped()).spawn().map_err(TmuxError::Start)?;
        let (send, receive) = channel();
        let output = child.stdout.take();
        thread::spawn(move || {
            let mut text = Vec::new();
            // After an error the output ends early.
            let _ = output.map(|output| output.take(MAX_OUTPUT).read_to_end(&mut text));
            let _ = send.send(text);
        });
        let Ok(text) = receive.recv_timeout(DEADLINE) else {
            // It fails if tmux has just exited.
            let _ = child.kill();
            let _ = child.wait();
            return Err(TmuxError::TimedOut);
        };
        check(child)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The version of the server, such as `3.3a`.
    pub(crate) fn version(&self) -> Result<String, TmuxError> {
        Ok(self.run(&["display-message", "-p", "#{version}"])?.trim().to_owned())
    }

    /// Waits for the doorbell, without a timeout.
    pub(crate) fn wait(&self) -> Result<(), TmuxError> {
        let mut command = self.command()?;
        let child = command.args(["wait-for", DOORBELL]).stdout(Stdio::null()).spawn();
        check(child.map_err(TmuxError::Start)?)
    }
}

/// Returns true for versions before 3.2. A version that begins with no number, such as `next-3.6` or `master`, is new.
pub(crate) fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (3, 2),
        _ => false,
    }
}

fn check(mut child: Child) -> Result<(), TmuxError> {
    let status = child.wait().map_err(TmuxError::Start)?;
    if status.success() {
        return Ok(());
    }
    let mut why = String::new();
    let _ = child.stderr.take().map(|error| error.take(4096).read_to_string(&mut why));
    let why = why.trim();
    Err(TmuxError::Refused(if why.is_empty() { status.to_string() } else { why.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_a_process_names_its_server() {
        let socket = |tmux: &str| TmuxServer::from_variable(tmux).map(|server| server.socket);
        assert_eq!(socket("/tmp/tmux-0/default,77,0"), Some("/tmp/tmux-0/default".into()));
        assert_eq!(socket("/tmp/a,b/s,77,0"), Some("/tmp/a,b/s".into()));
        assert_eq!(socket("x"), None);
        assert_eq!(socket(",1,2"), None);
    }

    #[test]
    fn only_versions_before_3_2_are_too_old() {
        for (version, is_old) in [
            ("2.9a", true),
            ("3.1c", true),
            ("3.2", false),
            ("3.3a", false),
            ("next-3.6", false),
            ("4.0", false),
        ] {
            assert_eq!(is_too_old(version), is_old, "{version}");
        }
    }

    #[test]
    fn a_socket_that_is_not_there_or_not_a_socket_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for (socket, expected) in [
            (PathBuf::from("/nowhere/at/all"), "the socket /nowhere/at/all cannot be used: No such file"),
            (file, "is not a socket"),
            (PathBuf::from("relative"), "is not an absolute path"),
        ] {
            let error = TmuxServer::at(socket).run(&["list-panes"]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
