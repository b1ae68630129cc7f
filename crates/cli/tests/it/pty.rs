//! Runs a program in a real PTY, as a terminal would.

use std::io::Read;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What a program wrote to its terminal until it ended, and its exit code.
pub(crate) fn in_terminal(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (Vec<u8>, u32) {
    let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
    let mut command = CommandBuilder::new(program);
    command.args(arguments);
    command.env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in variables {
        command.env(name, value);
    }
    let mut child = pty.slave.spawn_command(command).expect("the program starts");
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().expect("a reader");
    let mut written = Vec::new();
    // On Linux a PTY without a process at its other end reads as an error, after all its bytes.
    let _ = reader.read_to_end(&mut written);
    (written, child.wait().expect("it ends").exit_code())
}

/// The binary in a PTY.
pub(crate) fn ringer_in_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> (String, u32) {
    let (written, exit) = in_terminal(env!("CARGO_BIN_EXE_ringer"), arguments, variables);
    (String::from_utf8_lossy(&written).into_owned(), exit)
}
