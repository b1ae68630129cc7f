//! Runs a program in a real PTY, as a terminal would.

use std::io::{Read, Write};
use std::path::Path;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What a program wrote to its terminal until it ended, and its exit code.
pub(crate) fn in_terminal(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (Vec<u8>, u32) {
    run(command(program, arguments, variables), "")
}

fn command(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.args(arguments);
    command.env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in variables {
        command.env(name, value);
    }
    command
}

fn run(command: CommandBuilder, typed: &str) -> (Vec<u8>, u32) {
    let pty = native_pty_system().openpty(PtySize::default()).expect("a PTY");
    let mut child = pty.slave.spawn_command(command).expect("the program starts");
    drop(pty.slave);
    let mut reader = pty.master.try_clone_reader().expect("a reader");
    // It waits in the terminal until the program reads; held until the end, because closing it types an end of file.
    let mut keyboard = pty.master.take_writer().expect("a writer");
    keyboard.write_all(typed.as_bytes()).expect("the terminal takes it");
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
    let mut command = command(program, arguments, variables);
    command.cwd(directory);
    let (written, exit) = run(command, typed);
    (String::from_utf8_lossy(&written).into_owned(), exit)
}
