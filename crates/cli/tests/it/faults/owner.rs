//! A home that belongs to another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{copy_program, is_root};

use crate::home::{TestEnvironment, lines, texts};
use crate::hook::{feed, recorded, settle};
use crate::ringer::check;

/// The uid and gid of the user `nobody`.
const NOBODY: u32 = 65534;

#[track_caller]
fn check_owner(command: &mut Command) {
    let (out, err) = check(command, 77);
    assert!(out.is_empty() && err.contains("belongs to another user (uid "), "{err}");
    assert!(err.contains("RINGER_HOME=/some/directory"), "{err}");
}

#[test]
fn the_home_of_another_user_is_refused_even_by_root() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let before = fs::read(environment.database()).unwrap();
    chown(environment.home(), Some(NOBODY), None).unwrap();
    for arguments in [
        &["notify", "hello"][..],
        &["listen", "--timeout", "0"],
        &["ask", "hello?"],
        &["log"],
        &["status"],
        &["questions"],
        &["nuke", "--yes"],
    ] {
        check_owner(&mut environment.ringer(arguments));
    }
    assert!(fs::read(environment.database()).unwrap() == before);
}

/// The binary where every user can run it, run as the user `nobody`.
fn as_nobody(environment: &TestEnvironment, arguments: &[&str]) -> Command {
    let copy = environment.path().join("ringer");
    if !copy.exists() {
        copy_program(Path::new(env!("CARGO_BIN_EXE_ringer")), &copy);
        allow(environment.path(), 0o755);
    }
    let mut command = environment.program("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(copy).args(arguments);
    command
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("allowed");
}

/// A directory of the user `nobody`.
fn theirs(environment: &TestEnvironment, name: &str, mode: u32) -> PathBuf {
    let path = environment.path().join(name);
    fs::create_dir(&path).expect("a directory");
    chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may");
    allow(&path, mode);
    path
}

#[test]
fn another_users_home_is_refused() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    environment.notify("private");
    check_owner(&mut as_nobody(&environment, &["notify", "hello"]));
    check_owner(&mut as_nobody(&environment, &["log"]));
    // Even where the permissions would allow it.
    allow(&environment.home(), 0o777);
    check_owner(&mut as_nobody(&environment, &["notify", "hello"]));
    let (_, err) = check(&mut environment.ringer(&["notify", "hello"]), 77);
    assert!(err.contains("can be written by other users") && err.contains("chmod go-w"), "{err}");
    allow(&environment.home(), 0o700);
    assert_eq!(environment.texts(), ["private"]);
}

#[test]
fn a_hook_in_another_users_home_ends_well_and_touches_nothing() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    environment.notify("private");
    chown(environment.home(), Some(NOBODY), None).unwrap();
    let names = || {
        let entries = fs::read_dir(environment.home()).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let before = (names(), fs::read(environment.database()).unwrap());
    let stop = recorded(&environment, "claude_Stop").to_string();
    for input in [stop.as_str(), "not json"] {
        let hook = environment.ringer(&["hook", "claude", "Stop"]);
        assert_eq!(settle(&feed(hook, input.as_bytes())), "");
    }
    assert!((names(), fs::read(environment.database()).unwrap()) == before, "{:?}", names());
}

#[test]
fn what_may_not_be_written_is_77_with_the_remedy() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    let forbidden = theirs(&environment, "forbidden", 0o500);
    let foreign = environment.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    allow(&foreign, 0o700);
    for home in
        [forbidden.clone(), forbidden.join("home"), environment.path().join("new"), foreign.join("home")]
    {
        let (_, err) = check(as_nobody(&environment, &["notify", "hello"]).env("RINGER_HOME", &home), 77);
        assert!(err.contains(&format!("cannot write to {}", home.display())), "{err}");
        assert!(err.contains("allowWrite") && err.contains("RINGER_HOME="), "{err}");
    }
}

#[test]
fn no_other_user_may_look_in() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    let home = theirs(&environment, "parent", 0o755).join("home");
    for arguments in [&["notify", "hello"][..], &["listen", "--timeout", "0"]] {
        let mut shell = environment.program("sh");
        let mut command = as_nobody(&environment, arguments);
        command.env("RINGER_HOME", &home);
        // Whatever the caller's mask is.
        shell.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
        check(shell.env("RINGER_HOME", &home), 0);
    }
    for (path, mode) in [
        (home.clone(), 0o700),
        (home.join("bells"), 0o700),
        (home.join("locks"), 0o700),
        (home.join("ringer.db"), 0o600),
        (home.join("ringer.db-wal"), 0o600),
        (home.join("ringer.db-shm"), 0o600),
        (home.join("write.lock"), 0o600),
    ] {
        let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}: {found:o}", path.display());
    }
}

#[test]
fn a_foreign_repository_still_has_a_scope() {
    if !is_root() {
        return;
    }
    let environment = TestEnvironment::new();
    let home = theirs(&environment, "parent", 0o755).join("home");
    check(as_nobody(&environment, &["notify", "hello"]).env("RINGER_HOME", &home), 0);
    assert!(!environment.repository().join(".git/ringer").exists());
    let mut listen = as_nobody(&environment, &["listen", "--timeout", "0"]);
    let read = lines(&check(listen.env("RINGER_HOME", &home), 0).0);
    assert_eq!(texts(&read), ["hello"]);
    assert_ne!(read[0]["scope"], "global");
}
