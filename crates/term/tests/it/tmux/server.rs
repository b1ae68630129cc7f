//! A tmux server that belongs to one test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::sender_script::{SenderScript, output_of};

/// Ends when dropped, whatever the state of its clients.
pub(crate) struct Server {
    /// The directory of its socket. It has no other socket, so the name need not be unique.
    directory: PathBuf,
}

/// No periodic redraws, the shell that every system has, and a wait channel each for bells and clients.
const CONFIGURATION: &str = "set -g default-shell /bin/sh\nset -g status off\nset -g automatic-rename off\n\
    set-hook -g alert-bell 'wait-for -S bell'\nset-hook -g client-resized 'wait-for -S client'\n";

/// Returns the command of a client that starts the server with this command in its first window.
pub(crate) fn argv<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [&["tmux", "-L", "ringer", "-f", "tmux.conf", "new-session"], command].concat()
}

impl Server {
    /// Prepares the server that [`argv`] starts.
    pub(crate) fn prepare(script: &SenderScript, options: &str) -> Self {
        script.prepare("tmux.conf", format!("{CONFIGURATION}{options}\n").as_bytes());
        Self { directory: script.path().to_owned() }
    }

    /// The variable with which [`argv`] starts this server and no other.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        ("TMUX_TMPDIR", &self.directory)
    }

    /// Waits until the client has sent its size, the last step of attaching, which causes a full redraw. On a busy machine
    /// this happens long after its first window has started.
    pub(crate) fn wait_for_client(&self) {
        self.wait_for("client");
    }

    /// Waits for a channel. A signal before the wait is not lost.
    pub(crate) fn wait_for(&self, channel: &str) {
        self.answer(&["wait-for", channel]);
    }

    /// Returns the output of a tmux command.
    pub(crate) fn answer(&self, command: &[&str]) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn run(&self, command: &[&str]) -> Output {
        output_of(self.command(command))
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        // Without a locale it would print an underscore for every character that is not ASCII.
        tmux.arg("-u");
        tmux.args(["-L", "ringer"]).args(command).current_dir(&self.directory);
        tmux.env_remove("TMUX").env("TMUX_TMPDIR", &self.directory);
        tmux
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has already ended, or if tmux is not installed.
        let _ = self.command(&["kill-server"]).output();
    }
}
