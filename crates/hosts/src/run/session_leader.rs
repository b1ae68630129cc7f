//! The process between `ringer run` and its program: it leads the session on the PTY, with the program in a separate process
//! group, as a shell would do it.
//!
//! The kernel stops a group on Ctrl-Z only if one of its processes has a parent in the same session but in another group, so the
//! program needs such a parent. It does what its child does: it stops when the child stops, ends like the child, and continues
//! the child when it is continued itself.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use ringer_platform::Ending;
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, getppid, kill_process, kill_process_group, waitpid,
};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The interval of checks whether the process is in the foreground, which takes a fraction of a millisecond.
const FOREGROUND_CHECK: Duration = Duration::from_micros(200);

/// Runs a program in the foreground of this process's terminal, and waits until it has ended. The program must call
/// [`exec_in_foreground`].
pub fn lead_session(program: &OsString, arguments: &[OsString]) -> io::Result<Ending> {
    let terminal = terminal()?;
    let child = Command::new(program).args(arguments).process_group(0).spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    tcsetpgrp(&terminal, child)?;
    loop {
        let Some((_, status)) = waitpid(Some(child), WaitOptions::UNTRACED)? else { continue };
        if let Some(ending) = Ending::of(status) {
            return Ok(ending);
        }
        kill_process(getpid(), Signal::STOP)?;
        // The child may have ended meanwhile.
        let _ = kill_process_group(child, Signal::CONT);
    }
}

/// Executes the program once this process is in the foreground. Before that, the program would be stopped when it uses the
/// terminal, and miss the signals of keys. Returns only if it fails.
pub fn exec_in_foreground(program: &OsString, arguments: &[OsString]) -> io::Error {
    let terminal = match terminal() {
        Ok(terminal) => terminal,
        Err(error) => return error,
    };
    let leader = getppid();
    while tcgetpgrp(&terminal).is_ok_and(|group| group != getpgrp()) {
        if getppid() != leader {
            return io::Error::other("the process that leads the session has gone");
        }
        thread::sleep(FOREGROUND_CHECK);
    }
    drop(terminal);
    Command::new(program).args(arguments).exec()
}

fn terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}
