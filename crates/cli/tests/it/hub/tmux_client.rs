//! A terminal that shows a server of tmux, and programs in its panes.

use std::io::{Read, Write};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::environment::HubEnvironment;
use super::tmux::Tmux;

/// A terminal that shows the server, and reports whether it has the focus.
pub(crate) struct TmuxClient {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
}

impl TmuxClient {
    pub(crate) fn attach(tmux: &Tmux<'_>) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new("tmux");
        command.args(["-u", "-S", &tmux.socket(), "attach", "-t", "main"]);
        command.env("TERM", "xterm-256color");
        command.env_remove("TMUX");
        let child = pair.slave.spawn_command(command).expect("a client");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        // What it draws has to be read, or it stops.
        thread::spawn(move || while matches!(reader.read(&mut [0; 4096]), Ok(1..)) {});
        let writer = pair.master.take_writer().expect("a writer");
        Self { child, writer, _master: pair.master }
    }

    pub(crate) fn set_focus(&mut self, focused: bool) {
        let report: &[u8] = if focused { b"\x1b[I" } else { b"\x1b[O" };
        self.writer.write_all(report).and_then(|()| self.writer.flush()).expect("it is typed");
    }
}

impl Drop for TmuxClient {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn setup(environment: &HubEnvironment, arguments: &[&str]) {
    let mut command = environment.ringer(&[&["setup", "tmux", "--yes"], arguments].concat());
    command.env("TMUX_TMPDIR", environment.base.path()).env("HOME", environment.base.path());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program in a pane tells something.
pub(crate) fn tell_from(environment: &HubEnvironment, tmux: &Tmux<'_>, pane: &str, text: &str) {
    let mut command = environment.ringer(&["notify", "--kind", "complete", text]);
    let status = command.env("TMUX", tmux.variable()).env("TMUX_PANE", pane).status().expect("it runs");
    assert!(status.success());
}
