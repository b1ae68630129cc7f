//! A GNU screen session that belongs to one test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::sender_script::{SenderScript, output_of};

/// Ends when dropped, whatever the state of its clients.
pub(crate) struct Session {
    /// The directory of its socket. It has no other socket, so the name need not be unique.
    directory: PathBuf,
}

/// A bell in the visible window is forwarded, and one in a hidden window prints a message. No login records: where the
/// system has none, screen complains in the middle of its output.
const CONFIGURATION: &str = "startup_message off\ndeflogin off\nvbell off\nbell_msg 'bell in window %n'\n\
    msgwait 0\ndefutf8 on\n";

/// Returns the command of a client that starts the session with this command in its first window.
pub(crate) fn argv<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [&["screen", "-U", "-S", "ringer", "-c", "screenrc"], command].concat()
}

impl Session {
    /// Prepares the session that [`argv`] starts.
    pub(crate) fn prepare(script: &SenderScript) -> Self {
        script.prepare("screenrc", CONFIGURATION.as_bytes());
        let directory = script.path().join("sessions");
        fs::create_dir(&directory).unwrap();
        // screen refuses a directory that others can enter.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        Self { directory }
    }

    /// The variable with which [`argv`] starts this session and no other.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        ("SCREENDIR", &self.directory)
    }

    pub(crate) fn run(&self, command: &[&str]) -> Output {
        output_of(self.command(command))
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut screen = Command::new("screen");
        screen.args(["-S", "ringer"]).args(command).env_remove("STY").env("SCREENDIR", &self.directory);
        screen
    }

    /// Returns the windows, with their numbers and flags.
    pub(crate) fn windows(&self) -> String {
        String::from_utf8(self.run(&["-Q", "windows"]).stdout).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Fails if it has already ended, or if screen is not installed.
        let _ = self.command(&["-X", "quit"]).output();
    }
}
