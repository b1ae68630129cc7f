//! Programs that misbehave in every way we have seen.

use std::path::Path;
use std::time::Duration;

use ringer_deliver::{MAX_STDERR, Output, Program, ProgramOutcome};
use tempfile::tempdir;
use test_support::{DEADLINE, HangingDirectory, in_time};

use crate::wait::{pid_in, runs, until};

/// Long enough for a shell to start and say something, however busy the machine.
const SHORT: Duration = Duration::from_secs(5);

fn shell(script: &str, directory: &Path) -> Program {
    Program {
        argv: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
        directory: directory.to_owned(),
        environment: Vec::new(),
        input: Vec::new(),
        output: Output::Captured { limit: 1024 * 1024 },
        timeout: DEADLINE,
    }
}

async fn run(program: Program) -> ProgramOutcome {
    in_time("the end of a program", program.run()).await
}

#[tokio::test]
async fn streams_directory_environment_and_status() {
    let home = tempdir().expect("a directory");
    let program = Program {
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
        input: b"from stdin".to_vec(),
        ..shell("pwd; echo $GREETING; cat; echo oops >&2; exit 3", home.path())
    };
    let ProgramOutcome::Exited { status, stdout, stderr } = run(program).await else { panic!("it exits") };
    assert_eq!(status.code(), Some(3));
    let real = home.path().canonicalize().expect("a path");
    assert_eq!(String::from_utf8_lossy(&stdout), format!("{}\nhello\nfrom stdin", real.display()));
    assert_eq!(stderr, b"oops\n");
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_its_children() {
    let home = tempdir().expect("a directory");
    let script = "sleep 600 & echo $! > child; echo $$ > self; wait";
    let ended = run(Program { timeout: SHORT, ..shell(script, home.path()) }).await;
    assert!(matches!(ended, ProgramOutcome::TimedOut { .. }), "{ended:?}");
    for file in ["self", "child"] {
        let pid = pid_in(&home.path().join(file)).await;
        until("the group is gone", async || !runs(pid)).await;
    }
}

#[tokio::test]
async fn one_that_ignores_the_request_is_killed() {
    let home = tempdir().expect("a directory");
    let script = "trap '' TERM; echo $$ > self; echo deaf >&2; while :; do sleep 600; done";
    let ended = run(Program { timeout: SHORT, ..shell(script, home.path()) }).await;
    assert!(matches!(&ended, ProgramOutcome::TimedOut { stderr } if stderr == b"deaf\n"), "{ended:?}");
    let pid = pid_in(&home.path().join("self")).await;
    until("it is gone", async || !runs(pid)).await;
}

#[tokio::test]
async fn a_child_that_ignores_the_request_is_killed_after_its_parent_has_gone() {
    let home = tempdir().expect("a directory");
    let script = "(trap '' TERM; exec sh -c 'echo $$ > child; exec sleep 600') & wait";
    let ended = run(Program { timeout: SHORT, ..shell(script, home.path()) }).await;
    assert!(matches!(ended, ProgramOutcome::TimedOut { .. }), "{ended:?}");
    let pid = pid_in(&home.path().join("child")).await;
    until("it is gone", async || !runs(pid)).await;
}

#[tokio::test]
async fn one_that_ends_when_asked_may_clean_up() {
    let home = tempdir().expect("a directory");
    let script = "trap 'echo bye > bye; exit 0' TERM; echo $$ > self; while :; do sleep 0.05; done";
    let program = Program { timeout: SHORT, ..shell(script, home.path()) };
    let ended = run(program).await;
    assert!(matches!(ended, ProgramOutcome::TimedOut { .. }), "{ended:?}");
    assert!(home.path().join("bye").exists());
}

#[tokio::test]
async fn a_grandchild_that_escapes_and_holds_the_output_is_not_waited_for() {
    let home = tempdir().expect("a directory");
    let script = "setsid sh -c 'echo $$ > escaped; exec sleep 600' & \
                  while ! [ -s escaped ]; do sleep 0.01; done; echo said";
    let ended = run(shell(script, home.path())).await;
    let pid = pid_in(&home.path().join("escaped")).await;
    assert!(runs(pid), "it still holds the output");
    let ProgramOutcome::Exited { status, stdout, .. } = ended else { panic!("{ended:?}") };
    assert!(status.success());
    assert_eq!(stdout, b"said\n");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours to kill");
}

#[tokio::test]
async fn a_flood_is_stopped_and_a_flood_of_complaints_is_cut() {
    let home = tempdir().expect("a directory");
    let flood = run(shell("echo $$ > self; exec yes", home.path())).await;
    assert!(matches!(flood, ProgramOutcome::OutputTooLong { .. }), "{flood:?}");
    let pid = pid_in(&home.path().join("self")).await;
    until("it is gone", async || !runs(pid)).await;

    let complaints = run(shell("head -c 3000000 /dev/zero >&2; echo done", home.path())).await;
    let ProgramOutcome::Exited { stdout, stderr, .. } = complaints else { panic!("it exits") };
    assert_eq!((stdout.as_slice(), stderr.len()), (&b"done\n"[..], MAX_STDERR));

    let most = run(shell("head -c 1048576 /dev/zero", home.path())).await;
    assert!(matches!(&most, ProgramOutcome::Exited { stdout, .. } if stdout.len() == 1024 * 1024));
}

#[tokio::test]
async fn input_that_is_not_read_holds_up_no_program() {
    let home = tempdir().expect("a directory");
    for script in ["echo done", "exec 0<&-; echo done", "head -c 1 >/dev/null; echo done"] {
        let program = Program { input: vec![b'x'; 4 * 1024 * 1024], ..shell(script, home.path()) };
        let ended = run(program).await;
        assert!(
            matches!(&ended, ProgramOutcome::Exited { status, stdout, .. } if status.success() && stdout == b"done\n")
        );
    }
    let deaf =
        Program { input: vec![b'x'; 1024 * 1024], timeout: SHORT, ..shell("exec sleep 600", home.path()) };
    assert!(matches!(run(deaf).await, ProgramOutcome::TimedOut { .. }));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let home = tempdir().expect("a directory");
    let why = |ended| match ended {
        ProgramOutcome::NotStarted(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let missing = Program { argv: vec!["/nowhere/hook".to_owned()], ..shell("", home.path()) };
    assert!(why(run(missing).await).contains("No such file"));
    let nothing = Program { argv: Vec::new(), ..shell("", home.path()) };
    assert!(why(run(nothing).await).contains("no program"));
    let lost = shell("true", &home.path().join("gone"));
    assert!(why(run(lost).await).contains("its directory"));
    let huge = Program {
        environment: vec![("X".to_owned(), "x".repeat(3 * 1024 * 1024))],
        ..shell("true", home.path())
    };
    assert!(why(run(huge).await).contains("too long"));
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let home = tempdir().expect("a directory");
    let script = "trap '' TERM; sleep 600 & echo $! > child; echo $$ > self; wait";
    let program = shell(script, home.path());
    let (own, child) = (home.path().join("self"), home.path().join("child"));
    let pids = tokio::select! {
        ended = program.run() => panic!("{ended:?}"),
        pids = async { [pid_in(&child).await, pid_in(&own).await] } => pids,
    };
    for pid in pids {
        until("the group is gone", async || !runs(pid)).await;
    }
}

/// A program whose directory or file lies on a disk that hangs.
fn on_hanging_disk(hanging: &HangingDirectory) -> [Program; 2] {
    let home = Path::new("/");
    [
        Program { timeout: SHORT, ..shell("true", &hanging.path()) },
        Program {
            argv: vec![hanging.path().join("program").to_str().expect("text").to_owned()],
            timeout: SHORT,
            ..shell("", home)
        },
    ]
}

#[tokio::test]
async fn a_start_that_hangs_is_given_up_in_time_and_not_tried_again_while_it_does() {
    let Some(hanging) = HangingDirectory::new() else { return };
    let why = |ended| match ended {
        ProgramOutcome::NotStarted(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for program in on_hanging_disk(&hanging) {
        let first = why(run(program.clone()).await);
        assert!(first.starts_with("no answer from the disk of "), "{first}");
        // Without a thread that waits with it, however long it may take.
        let threads = threads();
        let patient = Program { timeout: DEADLINE * 2, ..program };
        assert_eq!(why(run(patient).await), first);
        assert!(self::threads() <= threads);
    }
    // All others start as ever.
    let home = tempdir().expect("a directory");
    assert!(matches!(run(shell("true", home.path())).await, ProgramOutcome::Exited { .. }));
    hanging.release();
    for program in on_hanging_disk(&hanging) {
        until("the place is tried again", async || {
            !why(program.clone().run().await).starts_with("no answer")
        })
        .await;
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("threads").count()
}
