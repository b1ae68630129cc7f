//! Detects this process's terminal, and writes to it.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ringer_term::outer::apple_bell_query;
use ringer_term::{
    AppleBell, Detection, Env, Multiplexer, NotificationId, TerminalProgram, detect, sanitise_line,
};
use ringer_tmux::outer_terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::{Exit, Failure, Outcome};
use crate::origin;

/// Time limit for osascript; one that hangs must not block the command.
const ASK_DEADLINE: Duration = Duration::from_secs(1);
/// How long a terminal may refuse output (Ctrl-S) before the command fails.
const WRITE_DEADLINE: Duration = Duration::from_secs(2);

/// Detects the terminal, asking tmux about the one around it.
pub(crate) fn detect_by_environment() -> Detection {
    let variables = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    let env = origin::environment(Env::new(variables).tty(io::stdout().is_terminal()));
    let detection = detect(&env);
    // Only the innermost multiplexer can be asked, and it knows the terminal around it.
    if detection.multiplexers.first() != Some(&Multiplexer::Tmux) {
        return detection;
    }
    match outer_terminal(&env) {
        Some(outer) => detection.with_outer_terminal(outer),
        None => detection,
    }
}

/// Names the terminal, with the multiplexers between it and this process: `kitty 0.48.2 in tmux 3.3a`.
pub(crate) fn terminal_name(detection: &Detection) -> String {
    if !io::stdout().is_terminal() {
        return "no terminal".to_owned();
    }
    let named = || detection.terminal.clone().filter(|_| detection.multiplexers.is_empty());
    let terminal = match detection.identity.program {
        TerminalProgram::Unknown => named().unwrap_or_else(|| "an unknown terminal".to_owned()),
        _ => detection.identity.to_string(),
    };
    // tmux sets its version in the environment of its panes.
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let tmux = Some(set("TERM_PROGRAM_VERSION")).filter(|_| set("TERM_PROGRAM") == "tmux");
    let layers = detection.multiplexers.iter().map(|layer| match &tmux {
        Some(version) if *layer == Multiplexer::Tmux => format!(" in tmux {version}"),
        _ => format!(" in {}", layer.as_str()),
    });
    sanitise_line(&(terminal + &layers.rev().collect::<String>()))
}

/// Returns Terminal.app's bell setting, which only macOS has.
pub(crate) fn apple_bell(detection: &Detection) -> AppleBell {
    if cfg!(target_os = "macos") && detection.terminal.as_deref() == Some("Apple_Terminal") {
        ask(&apple_bell_query()).map_or(AppleBell::default(), |answer| AppleBell::from_answer(&answer))
    } else {
        AppleBell::default()
    }
}

/// Runs a program and returns its standard output. `None` if it failed or took too long.
fn ask(arguments: &[impl AsRef<str>]) -> Option<String> {
    let (program, rest) = arguments.split_first()?;
    let mut child = Command::new(program.as_ref())
        .args(rest.iter().map(AsRef::as_ref))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut answer = String::new();
        let read = stdout.read_to_string(&mut answer).map(|_| answer);
        // After the deadline the receiver is gone.
        let _ = sender.send(read);
    });
    let answer = receiver.recv_timeout(ASK_DEADLINE).ok().and_then(Result::ok);
    if answer.is_none() {
        // It may have exited in the meantime.
        let _ = child.kill();
    }
    child.wait().ok().filter(std::process::ExitStatus::success)?;
    answer
}

/// Writes to the controlling terminal, all at once, and never waits long for a stopped one.
pub(crate) fn write_to_terminal(bytes: &[u8]) -> Outcome {
    let terminal = OpenOptions::new()
        .write(true)
        .custom_flags((rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK).bits().cast_signed())
        .open("/dev/tty")
        .map_err(|error| {
            Failure::new(Exit::Unavailable, "no controlling terminal (/dev/tty)").because(error).hint(
                "run it in a terminal, or pass --stdout to write the escape sequence to standard output",
            )
        })?;
    write_before(&terminal, bytes, Instant::now() + WRITE_DEADLINE)
}

/// Writes to a terminal that was opened non-blocking, and gives up at the deadline.
pub(crate) fn write_before(mut terminal: &File, bytes: &[u8], deadline: Instant) -> Outcome {
    let mut rest = bytes;
    while !rest.is_empty() {
        match terminal.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_writable(terminal, deadline)?,
            Err(error) => {
                return Err(Failure::new(Exit::InputOutput, "cannot write to the terminal").because(error));
            }
        }
    }
    Ok(())
}

fn wait_writable(terminal: &File, deadline: Instant) -> Outcome {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).ok();
    match poll(&mut [PollFd::new(terminal, PollFlags::OUT)], timeout.as_ref()) {
        Ok(0) => Err(Failure::new(Exit::TryAgain, "the terminal accepts no output")
            .hint("press Ctrl-Q in the terminal if output was stopped with Ctrl-S, then run it again")),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Failure::new(Exit::InputOutput, "cannot wait for the terminal").because(error)),
    }
}

/// Returns an id for a notification without one.
pub(crate) fn random_id() -> NotificationId {
    NotificationId::four_digits(RandomState::new().hash_one(std::process::id()))
}
