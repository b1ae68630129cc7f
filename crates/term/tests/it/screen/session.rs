//! A session of GNU screen of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::sender_script::{SenderScript, output_of};

/// Ends when it is dropped, whatever became of its clients.
pub(crate) struct Session {
    /// Where its socket is. No other socket is there, so its name need not be unique.
    directory: PathBuf,
}

/// A bell of the window in front is handed on, one of a window behind is told of in words. No record of logins: where
/// the system keeps none, screen complains in the middle of its output.
const CONFIGURATION: &str = "startup_message off\ndeflogin off\nvbell off\nbell_msg 'bell in window %n'\n\
    msgwait 0\ndefutf8 on\n";

/// A client that starts the session, with this command in its first window.
pub(crate) fn argv<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [&["screen", "-U", "-S", "ringer", "-c", "screenrc"], command].concat()
}

impl Session {
    /// Prepares the session that [`argv`] starts.
    pub(crate) fn prepare(script: &SenderScript) -> Self {
        script.prepare("screenrc", CONFIGURATION.as_bytes());
        let directory = script.path().join("sessions");
        fs::create_dir(&directory).unwrap();
        // screen uses no directory that others can enter.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        Self { directory }
    }

    /// What [`argv`] needs, so that it starts this session and no other.
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

    /// The windows, each with its number and its flags.
    pub(crate) fn windows(&self) -> String {
        String::from_utf8(self.run(&["-Q", "windows"]).stdout).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Fails where it has ended by itself, and where there is no screen.
        let _ = self.command(&["-X", "quit"]).output();
    }
}
