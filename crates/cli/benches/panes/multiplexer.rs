//! The two programs that are compared.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use super::processes;
use super::terminal::{Reader, Terminal};

/// How long a process may take to start.
const START_WITHIN: Duration = Duration::from_mins(1);
/// The arguments of the shell that runs in panes.
const SHELL_ARGUMENTS: [&str; 1] = ["-i"];

/// What a shell is told so that it floods its pane later: nothing can be found by the cursor while it does.
pub(crate) const WAIT_FOR_FLOOD: &str = "mkfifo ~/go; read line < ~/go; yes";

/// One of the programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ringer,
    Tmux,
}

/// Both of them, as the tables name them. The last one is the baseline.
pub(crate) const ALL: [(&str, Kind); 2] = [("Ringer", Kind::Ringer), ("tmux", Kind::Tmux)];

/// A server with its panes. All of it has ended when this is dropped.
pub(crate) struct Multiplexer {
    kind: Kind,
    program: PathBuf,
    directory: PathBuf,
    opened: Cell<usize>,
}

impl Multiplexer {
    pub(crate) fn new(kind: Kind, ringer: &Path, parent: &Path) -> Self {
        let name = if kind == Kind::Ringer { "ringer" } else { "tmux" };
        let directory = tempfile::Builder::new().prefix(name).tempdir_in(parent).expect("a directory").keep();
        let program = if kind == Kind::Ringer { ringer.to_owned() } else { "tmux".into() };
        // A shell with its process id as the prompt, so that the screen tells which pane has the cursor.
        let shell = directory.join("shell");
        fs::write(&shell, "#!/bin/sh\nPS1='$$> ' exec sh -i\n").expect("a file");
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o700)).expect("a mode");
        Self { kind, program, directory, opened: Cell::default() }
    }

    /// The key before all others.
    pub(crate) fn prefix(&self) -> &'static str {
        match self.kind {
            Kind::Ringer => "\x07",
            Kind::Tmux => "\x02",
        }
    }

    /// Opens the first pane, and a window that shows it. A shell runs there if there is no command.
    pub(crate) fn open(&self, command: &[&str], reader: Reader) -> Terminal {
        let own: &[&str] = match self.kind {
            Kind::Ringer => &["open", "--"],
            Kind::Tmux => &["new-session"],
        };
        Terminal::of(self.in_terminal(&[own, command].concat()), reader)
    }

    /// Shows the panes in one more window.
    pub(crate) fn attach(&self) -> Terminal {
        Terminal::of(self.in_terminal(&["attach"]), Reader::Emulator)
    }

    /// Opens one more pane with a shell, which is not shown: four in a workspace, or in a window of tmux.
    pub(crate) fn open_quietly(&self) {
        let number = self.opened.replace(self.opened.get() + 1);
        let (place, at) = ((number / 4).to_string(), number % 4);
        let (workspace, window) = (format!("quiet-{place}"), format!(":quiet-{place}"));
        match self.kind {
            Kind::Ringer => {
                let split = if at % 2 == 1 { "right" } else { "down" };
                self.run(&["open", "--detached", "--workspace", &workspace, "--split", split]);
            }
            Kind::Tmux if at == 0 => self.run(&["new-window", "-d", "-n", &workspace]),
            Kind::Tmux => {
                let split = if at % 2 == 1 { "-h" } else { "-v" };
                self.run(&["split-window", "-d", split, "-t", &window]);
            }
        }
    }

    /// The processes of all shells in panes.
    pub(crate) fn shells(&self) -> Vec<u32> {
        processes::with_arguments(&self.directory, &SHELL_ARGUMENTS)
    }

    /// The processes that run this command.
    pub(crate) fn running(&self, program: &str) -> Vec<u32> {
        let is_it = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == program)
        };
        processes::started_in(&self.directory).into_iter().filter(is_it).collect()
    }

    /// Lets the shell that waits for it flood its pane.
    pub(crate) fn begin_flood(&self) {
        let (over, pipe) = (Instant::now() + START_WITHIN, self.directory.join("go"));
        while !pipe.exists() {
            assert!(Instant::now() < over, "no shell waits for the flood");
            thread::sleep(Duration::from_millis(5));
        }
        fs::write(pipe, "\n").expect("the flood begins");
        self.wait_for_running("yes");
    }

    /// Waits until a process runs this command.
    pub(crate) fn wait_for_running(&self, program: &str) {
        let over = Instant::now() + START_WITHIN;
        while self.running(program).is_empty() {
            assert!(Instant::now() < over, "{program} does not run");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The process of the server.
    pub(crate) fn server(&self) -> u32 {
        match self.kind {
            Kind::Ringer => self.one(&["pane-server", "serve"]),
            Kind::Tmux => {
                let output = self.command(&["display-message", "-p", "#{pid}"]).output().expect("tmux");
                String::from_utf8_lossy(&output.stdout).trim().parse().expect("the process of tmux's server")
            }
        }
    }

    /// The process that holds the programs, if it is not the server.
    pub(crate) fn keeper(&self) -> Option<u32> {
        (self.kind == Kind::Ringer).then(|| self.one(&["pane-server", "keep"]))
    }

    fn one(&self, arguments: &[&str]) -> u32 {
        let over = Instant::now() + START_WITHIN;
        loop {
            if let [pid, ..] = processes::with_arguments(&self.directory, arguments)[..] {
                return pid;
            }
            assert!(Instant::now() < over, "{arguments:?} does not run");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.own_arguments()).args(arguments).stdin(Stdio::null()).env_clear();
        command.envs(self.environment()).current_dir(&self.directory);
        command
    }

    fn in_terminal(&self, arguments: &[&str]) -> CommandBuilder {
        let mut builder = CommandBuilder::new(&self.program);
        builder.args(self.own_arguments());
        builder.args(arguments);
        builder.env_clear();
        for (name, value) in self.environment() {
            builder.env(name, value);
        }
        builder.cwd(&self.directory);
        builder
    }

    fn own_arguments(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Ringer => &[],
            Kind::Tmux => &["-L", "panes", "-f", "/dev/null"],
        }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        vec![
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", "xterm-256color".to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("SHELL", path("shell")),
            (processes::MARK, path("")),
            ("XDG_RUNTIME_DIR", path("")),
            ("TMUX_TMPDIR", path("")),
            ("RINGER_HOME", path("home")),
            ("RINGER_CONFIG", path("config.toml")),
            ("RINGER_HUB", "off".to_owned()),
        ]
    }
}

impl Drop for Multiplexer {
    fn drop(&mut self) {
        processes::end_all(&self.directory);
    }
}
