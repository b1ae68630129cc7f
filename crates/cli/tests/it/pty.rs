//! Programs in a real PTY, as in a terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use test_support::DEADLINE;

/// A terminal with a program in it, which a test reads and types into.
pub(crate) struct Pane {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    written: Arc<Mutex<Vec<u8>>>,
    /// Nothing is read from the terminal before this is dropped.
    unread: Option<Sender<()>>,
    reader: Option<thread::JoinHandle<()>>,
}

pub(crate) fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, ..PtySize::default() }
}

impl Pane {
    /// Starts a program in a terminal, with only these variables beside `PATH`.
    pub(crate) fn start<S: AsRef<str>>(
        argv: &[&str],
        variables: &[(S, S)],
        directory: Option<&Path>,
    ) -> Self {
        Self::start_sized(argv, variables, directory, size(24, 80))
    }

    /// The same in a terminal of another size.
    pub(crate) fn start_sized<S: AsRef<str>>(
        argv: &[&str],
        variables: &[(S, S)],
        directory: Option<&Path>,
        size: PtySize,
    ) -> Self {
        let mut pane = Self::start_unread(argv, variables, directory, size);
        pane.begin_reading();
        pane
    }

    /// The same, in a terminal from which nothing is read yet: it takes what fits into the kernel's buffer, and no more.
    pub(crate) fn start_unread<S: AsRef<str>>(
        argv: &[&str],
        variables: &[(S, S)],
        directory: Option<&Path>,
        size: PtySize,
    ) -> Self {
        let mut command = CommandBuilder::new(argv[0]);
        command.args(&argv[1..]);
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in variables {
            command.env(name.as_ref(), value.as_ref());
        }
        command.cwd(directory.unwrap_or(Path::new("/")));
        let pty = native_pty_system().openpty(size).expect("a PTY");
        let child = pty.slave.spawn_command(command).expect("the program starts");
        drop(pty.slave);
        let mut output = pty.master.try_clone_reader().expect("a reader");
        let written = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&written);
        let (unread, begins) = channel::<()>();
        let reader = thread::spawn(move || {
            // Nothing is sent: it ends.
            let _ = begins.recv();
            let mut room = vec![0; 64 * 1024];
            // On Linux a PTY without a process at its other end reads as an error, after all its bytes.
            while let Ok(read) = output.read(&mut room) {
                if read == 0 {
                    return;
                }
                shared.lock().expect("not poisoned").extend_from_slice(&room[..read]);
            }
        });
        let keyboard = pty.master.take_writer().expect("a writer");
        Self { master: pty.master, keyboard, child, written, unread: Some(unread), reader: Some(reader) }
    }

    pub(crate) fn begin_reading(&mut self) {
        self.unread = None;
    }

    pub(crate) fn written(&self) -> Vec<u8> {
        self.written.lock().expect("not poisoned").clone()
    }

    /// What the program has written after so many bytes.
    pub(crate) fn written_after(&self, read: usize) -> Vec<u8> {
        self.written.lock().expect("not poisoned")[read..].to_vec()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written()).into_owned()
    }

    /// Waits until the program has written this, so often.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, text: &str, times: usize) {
        let end = std::time::Instant::now() + DEADLINE;
        while self.text().matches(text).count() < times {
            assert!(std::time::Instant::now() < end, "no {text:?} in the terminal: {:?}", self.text());
            thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_times(text, 1);
    }

    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).expect("the terminal takes it");
    }

    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        self.master.resize(size(rows, cols)).expect("another size");
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().expect("it runs")).expect("a pid")
    }

    /// Waits for the end. Gives all that was written.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Vec<u8>, ExitStatus) {
        let status = self.wait();
        (self.written(), status)
    }

    /// Waits for the end, and for all that was written.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = std::time::Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(std::time::Instant::now() < end, "the program goes on: {:?}", self.text());
            thread::park_timeout(std::time::Duration::from_millis(5));
        };
        if let Some(reader) = self.reader.take() {
            reader.join().expect("it reads to the end");
        }
        status
    }
}

fn run(
    (program, arguments): (&str, &[&str]),
    variables: &[(&str, &str)],
    directory: Option<&Path>,
    typed: &str,
) -> (Vec<u8>, u32) {
    let argv = [&[program], arguments].concat();
    let mut pane = Pane::start(&argv, variables, directory);
    // It waits in the terminal until the program reads.
    pane.type_bytes(typed.as_bytes());
    let (written, status) = pane.end();
    (written, status.exit_code())
}

/// What a program wrote to its terminal until it ended, and its exit code.
pub(crate) fn in_terminal(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (Vec<u8>, u32) {
    run((program, arguments), variables, None, "")
}

/// The binary in a PTY.
pub(crate) fn ringer_in_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> (String, u32) {
    let (written, exit) = in_terminal(env!("CARGO_BIN_EXE_ringer"), arguments, variables);
    (String::from_utf8_lossy(&written).into_owned(), exit)
}

/// The binary in a PTY in some directory, with this typed ahead.
pub(crate) fn typed_in_terminal(
    arguments: &[&str],
    variables: &[(&str, &str)],
    directory: &Path,
    typed: &str,
) -> (String, u32) {
    program_typed_in_terminal(env!("CARGO_BIN_EXE_ringer"), arguments, variables, directory, typed)
}

/// A program in a PTY in some directory, with this typed ahead.
pub(crate) fn program_typed_in_terminal(
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    directory: &Path,
    typed: &str,
) -> (String, u32) {
    let (written, exit) = run((program, arguments), variables, Some(directory), typed);
    (String::from_utf8_lossy(&written).into_owned(), exit)
}
