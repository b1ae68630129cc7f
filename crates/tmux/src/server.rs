//! A tmux server, by its socket: commands with a deadline.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ringer_platform::{find_own_program, owned};

/// How long tmux may take for one command. It answers within milliseconds unless its server hangs.
const DEADLINE: Duration = Duration::from_secs(2);
/// The most that is read: a row of 300 bytes for each of thousands of panes.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;
/// What rings: the channel of `wait-for`.
pub(crate) const DOORBELL: &str = "ringer-look";

/// Why tmux did not do it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TmuxError {
    /// It cannot be started.
    #[error("cannot run tmux: {0}")]
    Start(io::Error),
    /// There is no socket, or another user could have put it there: tmux runs what a server behind a socket asks of it.
    #[error("the socket {} cannot be used: {why}", socket.display())]
    Socket {
        /// Its path.
        socket: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
    /// It takes too long.
    #[error("tmux did not answer within {} s", DEADLINE.as_secs())]
    Late,
    /// It refused.
    #[error("tmux: {0}")]
    Refused(String),
    /// It lacks what Ringer needs: formats in border styles came with 3.2.
    #[error("tmux {0} is too old: 3.2 or newer is needed")]
    TooOld(String),
}

impl TmuxError {
    /// Why its socket or its program is not used although it is there: another user could have put it there.
    pub fn refusal(&self) -> Option<&io::Error> {
        match self {
            Self::Start(why) | Self::Socket { why, .. } => {
                // The system's own refusals have a number.
                (why.kind() == io::ErrorKind::PermissionDenied && why.raw_os_error().is_none()).then_some(why)
            }
            _ => None,
        }
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TmuxServer {
    socket: PathBuf,
}

impl TmuxServer {
    /// The server at a socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The server that the variable `TMUX` of one of its processes names: `SOCKET,PID,SESSION`.
    pub fn of_variable(tmux: &str) -> Option<Self> {
        let socket = tmux.rsplitn(3, ',').nth(2)?;
        (!socket.is_empty()).then(|| Self::at(socket))
    }

    /// The sockets of this user's servers in the directory where tmux makes them. Some may have no server any more.
    pub fn in_directory(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let sockets = entries.map(|entry| entry.path()).filter(|path| owned::check_socket(path).is_ok());
        let mut servers: Vec<Self> = sockets.map(Self::at).collect();
        servers.sort();
        servers
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A tmux that talks to this server. With `-S` it does not check whose socket that is, so it is checked here, each time.
    fn command(&self) -> Result<Command, TmuxError> {
        owned::check_socket(&self.socket)
            .map_err(|why| TmuxError::Socket { socket: self.socket.clone(), why })?;
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let tmux = find_own_program(&search_path, "tmux").map_err(TmuxError::Start)?;
        let mut command = Command::new(tmux);
        // With -u names come as they are, whatever the locale of this process.
        command.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX").current_dir("/");
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs commands, each word an argument, separated by `;`. Returns their standard output.
    pub fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<String, TmuxError> {
        let mut child =
            self.command()?.args(words).stdout(Stdio::piped()).spawn().map_err(TmuxError::Start)?;
        let (send, receive) = channel();
        let output = child.stdout.take();
        thread::spawn(move || {
            let mut text = Vec::new();
            // What cannot be read is as if it were not there.
            let _ = output.map(|output| output.take(MAX_OUTPUT).read_to_end(&mut text));
            let _ = send.send(text);
        });
        let Ok(text) = receive.recv_timeout(DEADLINE) else {
            // It may end just now.
            let _ = child.kill();
            let _ = child.wait();
            return Err(TmuxError::Late);
        };
        check(child)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The version of the server, in tmux's words: `3.3a`.
    pub(crate) fn version(&self) -> Result<String, TmuxError> {
        Ok(self.run(&["display-message", "-p", "#{version}"])?.trim().to_owned())
    }

    /// Waits, for as long as it takes, until something rings.
    pub(crate) fn wait(&self) -> Result<(), TmuxError> {
        let mut command = self.command()?;
        let child = command.args(["wait-for", DOORBELL]).stdout(Stdio::null()).spawn();
        check(child.map_err(TmuxError::Start)?)
    }
}

/// Whether a version is older than 3.2. One that begins with no number, such as `next-3.6` or `master`, is new.
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
        let socket = |tmux: &str| TmuxServer::of_variable(tmux).map(|server| server.socket);
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
