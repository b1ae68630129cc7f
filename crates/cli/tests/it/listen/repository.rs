//! Messages belong to the repository they are sent in: all its worktrees together, and no other.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::check;

/// A command of the binary in another directory.
fn within(environment: &TestEnvironment, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = environment.ringer(arguments);
    command.current_dir(directory);
    command
}

#[track_caller]
fn drain(environment: &TestEnvironment, directory: &Path) -> Vec<String> {
    texts(&lines(&check(&mut within(environment, directory, &["listen", "--timeout", "0"]), 0).0))
}

/// A repository made by git, with a commit, so that it can have worktrees.
pub(crate) fn committed(environment: &TestEnvironment) -> PathBuf {
    let path = environment.path().join("project");
    git(environment, &["init", "--quiet", path.to_str().expect("text")]);
    let in_project = ["-C", path.to_str().expect("text"), "-c", "user.name=t", "-c", "user.email=t@t"];
    git(environment, &[&in_project[..], &["commit", "--quiet", "--allow-empty", "-m", "first"]].concat());
    path
}

#[track_caller]
pub(crate) fn git(environment: &TestEnvironment, arguments: &[&str]) {
    let mut command = environment.program("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").args(arguments);
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn worktrees_of_one_repository_share_the_messages() {
    let environment = TestEnvironment::new();
    let project = committed(&environment);
    let worktree = environment.path().join("worktree");
    let (from, to) = (project.to_str().unwrap(), worktree.to_str().unwrap());
    git(&environment, &["-C", from, "worktree", "add", "--quiet", "-b", "side", to]);
    std::fs::create_dir(worktree.join("deep")).unwrap();
    let listener = environment.start(within(&environment, &project, &["listen"]));
    check(&mut within(&environment, &worktree.join("deep"), &["notify", "from the side"]), 0);
    assert_eq!(texts(&listener.messages()), ["from the side"]);
    check(&mut within(&environment, &project, &["notify", "from the main"]), 0);
    assert_eq!(drain(&environment, &worktree), ["from the main"]);
}

#[test]
fn two_clones_are_two() {
    let environment = TestEnvironment::new();
    let project = committed(&environment);
    check(&mut within(&environment, &project, &["notify", "here"]), 0);
    let clone = environment.path().join("clone");
    git(&environment, &["clone", "--quiet", project.to_str().unwrap(), clone.to_str().unwrap()]);
    check(&mut within(&environment, &clone, &["notify", "there"]), 0);
    assert_eq!(drain(&environment, &project), ["here"]);
    assert_eq!(drain(&environment, &clone), ["there"]);
}

#[test]
fn a_listener_in_another_repository_sleeps_on() {
    let environment = TestEnvironment::new();
    let other = environment.make_repository("other");
    let elsewhere = environment.start(within(&environment, &other, &["listen"]));
    let here = environment.listen(&[]);
    environment.notify("here");
    assert_eq!(texts(&here.messages()), ["here"]);
    check(&mut within(&environment, &other, &["notify", "there"]), 0);
    assert_eq!(texts(&elsewhere.messages()), ["there"]);
}

#[test]
fn outside_any_repository_everything_is_one() {
    let environment = TestEnvironment::new();
    let (one, two) = (environment.path().join("one"), environment.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    check(&mut within(&environment, &one, &["notify", "global"]), 0);
    assert!(environment.drain().is_empty());
    assert_eq!(drain(&environment, &two), ["global"]);
}
