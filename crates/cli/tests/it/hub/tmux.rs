//! A real tmux.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use test_support::started;

use super::environment::HubEnvironment;

/// A tmux server in an environment. It ends with the test.
pub(crate) struct Tmux<'a> {
    environment: &'a HubEnvironment,
    name: &'static str,
    configuration: &'static str,
}

impl<'a> Tmux<'a> {
    pub(crate) fn start(environment: &'a HubEnvironment, configuration: &str) -> Self {
        fs::write(environment.base.path().join("tmux.conf"), configuration).expect("a file");
        Self::named(environment, "ringer", "tmux.conf")
    }

    /// With a name of its own, and the file of the environment that it reads.
    pub(crate) fn named(
        environment: &'a HubEnvironment,
        name: &'static str,
        configuration: &'static str,
    ) -> Self {
        let tmux = Self { environment, name, configuration };
        tmux.tell(&["new-session", "-d", "-s", "main", "sleep 1000"]);
        tmux
    }

    /// What a process in one of its panes has in its environment.
    pub(crate) fn variable(&self) -> String {
        self.tell(&["display-message", "-p", "#{socket_path},#{pid},0"])
    }

    #[track_caller]
    pub(crate) fn tell(&self, arguments: &[&str]) -> String {
        let output = started("tmux", self.command(arguments).output());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn socket(&self) -> String {
        self.tell(&["display-message", "-p", "#{socket_path}"])
    }

    /// Stops the server's process. It answers nothing until it goes on at the end of what this gives.
    pub(crate) fn stop(&self) -> Stopped {
        let server = self.tell(&["display-message", "-p", "#{pid}"]);
        let server = Pid::from_raw(server.parse().expect("a number")).expect("a pid");
        kill_process(server, Signal::STOP).expect("it runs");
        Stopped(server)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.environment.program("tmux");
        let directory = self.environment.base.path();
        command.args(["-u", "-L", self.name, "-f"]).arg(directory.join(self.configuration)).args(arguments);
        command.env("TMUX_TMPDIR", directory).env("HOME", directory).env("SHELL", "/bin/sh");
        command
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.command(&["kill-server"]).output();
    }
}

/// A server that was stopped.
pub(crate) struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}
