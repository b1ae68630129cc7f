//! Hostile repositories: a directory that came out of an archive may hold anything under the name `.git`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::background::Background;
use crate::home::{TestEnvironment, lines};
use crate::ringer::check;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
}

/// A file without an end that takes no room on disk.
fn huge(path: &Path) {
    fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
}

/// The binary in another directory. Where it reads without bounds it fails, instead of taking the machine along.
fn within(environment: &TestEnvironment, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = environment.program("prlimit");
    command.args(["--as=1073741824", "--", env!("CARGO_BIN_EXE_ringer")]).args(arguments);
    command.current_dir(directory);
    command
}

/// Waits for a program that must not hang.
#[track_caller]
fn ends(command: Command) {
    let what = format!("{command:?}");
    assert_eq!(Background::start(command).end().1, Some(0), "{what}");
}

/// Every way of making a `.git` that never ends or never answers.
fn hostile(root: &Path) -> Vec<PathBuf> {
    let mut trees = Vec::new();
    let mut tree = |name: &str, make: &dyn Fn(&Path)| {
        let directory = root.join(name);
        fs::create_dir_all(&directory).expect("a directory");
        make(&directory.join(".git"));
        trees.push(directory);
    };
    let real = |git: &Path| {
        for part in ["objects", "refs"] {
            fs::create_dir_all(git.join(part)).expect("a directory");
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    };
    let zero = |path: &Path| symlink("/dev/zero", path).expect("a link");
    tree("fifo", &fifo);
    tree("zero", &zero);
    tree("huge", &huge);
    tree("loop", &|git| symlink(".git", git).expect("a link"));
    tree("head-fifo", &|git| {
        real(git);
        fs::remove_file(git.join("HEAD")).expect("removed");
        fifo(&git.join("HEAD"));
    });
    for (name, make) in [("fifo", &fifo as &dyn Fn(&Path)), ("zero", &zero), ("huge", &huge)] {
        for file in ["commondir", "ringer/id", "gitdir", "config"] {
            let name = format!("{}-{name}", file.replace('/', "-"));
            tree(&name, &|git| {
                real(git);
                fs::create_dir_all(git.join("ringer")).expect("a directory");
                let _ = fs::remove_file(git.join(file));
                make(&git.join(file));
            });
            tree(&format!("named-{name}"), &|git| {
                let directory = git.with_file_name("gitdir");
                real(&directory);
                fs::create_dir_all(directory.join("ringer")).expect("a directory");
                make(&directory.join(file));
                fs::write(git, "gitdir: gitdir\n").expect("a file");
            });
        }
    }
    tree("ringer-is-a-fifo", &|git| {
        real(git);
        fifo(&git.join("ringer"));
    });
    trees
}

#[test]
fn a_hostile_git_directory_hangs_nothing() {
    let environment = TestEnvironment::new();
    for directory in hostile(environment.path()) {
        let name = directory.file_name().and_then(|name| name.to_str()).expect("a name");
        ends(within(&environment, &directory, &["notify", name]));
        let input = environment.path().join("stop.json");
        let stop =
            json!({ "hook_event_name": "Stop", "session_id": format!("session-{name}"), "cwd": directory });
        fs::write(&input, stop.to_string()).expect("a file");
        let mut hook = within(&environment, &directory, &["hook", "claude", "Stop"]);
        hook.stdin(fs::File::open(&input).expect("a file"));
        ends(hook);
        let logged = lines(&environment.run(&["log", "--json", "--everywhere"]));
        assert!(logged.iter().any(|message| message["msg"] == name), "{name} was stored");
    }
}

/// A directory with sources in it, which a `.git` file beside it names as its git directory.
fn victim(environment: &TestEnvironment) -> (PathBuf, PathBuf) {
    let (victim, hostile) = (environment.path().join("victim"), environment.path().join("hostile"));
    fs::create_dir_all(victim.join("ringer/src")).expect("a directory");
    fs::create_dir(&hostile).expect("a directory");
    fs::write(victim.join("ringer/src/main.rs"), "fn main() {}\n").expect("a file");
    fs::write(hostile.join(".git"), "gitdir: ../victim\n").expect("a file");
    (victim, hostile)
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(self::names(&entry.path()));
        }
        names.push(entry.path());
    }
    names.sort();
    names
}

#[test]
fn nothing_is_written_to_or_removed_from_a_directory_that_a_git_file_names() {
    let environment = TestEnvironment::new();
    let (victim, hostile) = victim(&environment);
    let before = names(&victim);
    let touch = |what: &str| {
        check(&mut within(&environment, &hostile, &["notify", "hello"]), 0);
        // Where it is no repository at all, nuke refuses.
        let nuked = within(&environment, &hostile, &["nuke", "--yes"]).output().expect("it runs");
        assert!(matches!(nuked.status.code(), Some(0 | 64)), "{nuked:?}");
        assert_eq!(names(&victim), before, "{what}");
    };
    touch("a directory that is no git directory");
    // Another person's repository, and one that has worktrees.
    let victim = environment.make_repository("victim");
    let before = names(&victim);
    fs::write(hostile.join(".git"), "gitdir: ../victim/.git\n").expect("a file");
    check(&mut within(&environment, &hostile, &["notify", "hello"]), 0);
    check(&mut within(&environment, &hostile, &["nuke", "--yes"]), 0);
    assert_eq!(names(&victim), before, "another repository");
}

#[test]
fn a_git_file_that_names_another_repository_does_not_join_it() {
    let environment = TestEnvironment::new();
    environment.notify("private");
    let hostile = environment.path().join("hostile");
    fs::create_dir(&hostile).expect("a directory");
    for named in ["../repository/.git", "../repository/.git/worktrees/x"] {
        fs::write(hostile.join(".git"), format!("gitdir: {named}\n")).expect("a file");
        let heard = check(&mut within(&environment, &hostile, &["listen", "--timeout", "0"]), 0).0;
        assert!(heard.is_empty(), "{named}: {heard}");
        let _ = within(&environment, &hostile, &["nuke", "--yes"]).output().expect("it runs");
    }
    assert_eq!(environment.texts(), ["private"]);
    fs::write(hostile.join(".git"), "gitdir: ../repository/.git\n").expect("a file");
    let (doctor, _) = check(&mut within(&environment, &hostile, &["doctor"]), 0);
    assert!(
        doctor.contains("does not name this worktree") && doctor.contains("git worktree repair"),
        "{doctor}"
    );
    let (doctor, _) = check(&mut environment.ringer(&["doctor"]), 0);
    assert!(!doctor.contains("git worktree repair"), "{doctor}");
}

#[test]
fn nuke_removes_only_the_files_that_ringer_made() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let ringer = environment.repository().join(".git/ringer");
    fs::write(ringer.join("notes.txt"), "mine\n").expect("a file");
    fs::create_dir(ringer.join("id.00000000.1")).expect("a directory");
    fs::write(ringer.join("id.0badf00d.77"), "left by one that was killed\n").expect("a file");
    let (_, err) = check(&mut environment.ringer(&["nuke", "--yes"]), 0);
    assert_eq!(names(&ringer), [ringer.join("id.00000000.1"), ringer.join("notes.txt")]);
    assert!(err.contains(&format!("{} stays", ringer.display())), "{err}");
}

#[test]
fn a_folder_that_is_a_link_is_not_followed() {
    let environment = TestEnvironment::new();
    let elsewhere = environment.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    symlink(&elsewhere, environment.repository().join(".git/ringer")).expect("a link");
    environment.notify("hello");
    assert!(names(&elsewhere).is_empty());
    fs::write(elsewhere.join("id"), "00c0ffee\n").expect("a file");
    assert_ne!(environment.status()["scope"], "00c0ffee");
    environment.run(&["nuke", "--yes"]);
    assert_eq!(names(&elsewhere), [elsewhere.join("id")]);
}
