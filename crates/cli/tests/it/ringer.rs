//! Runs the real binary with an environment of the test's own.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The binary, with an empty environment and no controlling terminal.
pub(crate) fn ringer(arguments: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(env!("CARGO_BIN_EXE_ringer")).args(arguments);
    // Tests that want a hub start one of their own.
    command.env_clear().env("RINGER_HUB", "off").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Runs what follows as a process that nothing but the first process is above, and ends as that did. A test that calls a hook is
/// registered as its agent, and an agent must not decide.
const BESIDE_THIS_TEST: &str = r#"
    directory=$(command -p mktemp -d) && command -p mkfifo "$directory/exit" || exit 1
    command -p setsid --fork /bin/sh -c '"$@"; echo $? > "$0/exit"' "$directory" "$@"
    read -r code < "$directory/exit"
    command -p rm -r "$directory"
    exit "$code"
"#;

/// Returns true if a command is for the person alone.
fn is_reserved(arguments: &[&str]) -> bool {
    match arguments {
        ["hub", second, ..] => *second == "stop",
        ["mcp", second, ..] => ["pair", "unpair"].contains(second),
        ["relay", second, ..] => ["add", "remove"].contains(second),
        [first, ..] => RESERVED.contains(first),
        [] => false,
    }
}

const RESERVED: [&str; 16] = [
    "ack",
    "acknowledge",
    "answer",
    "attach",
    "clear",
    "dnd",
    "lead",
    "mute",
    "pane",
    "read",
    "snooze",
    "trust",
    "undo",
    "uninstall",
    "unmute",
    "unread",
];

/// The binary as a script of the person calls it: not below this test if the command is for the person alone.
pub(crate) fn ringer_of_person(arguments: &[&str]) -> Command {
    if !is_reserved(arguments) {
        return ringer(arguments);
    }
    let mut beside = beside(arguments);
    let own = ringer(&[]);
    beside.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    beside
}

/// The binary as a process that is not below this test, in the environment of this test.
pub(crate) fn beside(arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", BESIDE_THIS_TEST, "sh", env!("CARGO_BIN_EXE_ringer")]).args(arguments);
    command.stdin(Stdio::null());
    command
}

/// Runs it and checks the exit code. Gives standard output and standard error.
#[track_caller]
pub(crate) fn check(command: &mut Command, exit: i32) -> (String, String) {
    let output = command.output().expect("the binary runs");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(exit), "stdout: {out}\nstderr: {err}");
    (out, err)
}

/// Runs it with this on standard input, and checks that it succeeds. Gives standard output.
#[track_caller]
pub(crate) fn check_with_input(command: &mut Command, input: &[u8]) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    leave_unread_if_it_waits(command);
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("piped").write_all(input).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    texts(&output).0
}

/// A hook that waits beside its client's dialog ends at once if no client reads what it prints.
pub(crate) fn leave_unread_if_it_waits(command: &mut Command) {
    if command.get_args().any(|word| word == "PermissionRequest") {
        let (_, unread) = std::io::pipe().expect("a pipe");
        command.stdout(unread);
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// One line of JSON.
#[track_caller]
pub(crate) fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line.trim()).unwrap_or_else(|error| panic!("{error}: {line}"))
}
