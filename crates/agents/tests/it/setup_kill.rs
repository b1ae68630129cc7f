//! A setup that is killed with `SIGKILL` at each of its steps.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use ringer_agents::setup::{
    BackupTime, Client, ClientPaths, Entries, SetupAction, SetupRecords, SetupScope, Step,
    apply_with_observer, plan, read_files,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::setup_apply::{Home, setup};

/// The child's directory, its action, and the step at which it dies.
const VARIABLE: &str = "RINGER_TEST_KILL";

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn child() {
    let order = env::var(VARIABLE).unwrap();
    let [home, state, what, step] = order.split('\n').collect::<Vec<_>>()[..] else { panic!("{order}") };
    let (places, state) = (ClientPaths::new(home), PathBuf::from(state));
    let action = if what == "setup" { setup("ringer") } else { SetupAction::Remove(Entries::All) };
    let files =
        read_files(Client::Claude, &action, SetupScope::User, &places, &SetupRecords::load(&state).unwrap())
            .unwrap();
    let plan = plan(Client::Claude, &action, files).unwrap();
    let time = BackupTime::new("20261115-060000").unwrap();
    let mut watch = |at: Step| {
        if format!("{at:?}") == step {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    };
    apply_with_observer(&plan, &state, &time, &mut watch).unwrap();
}

/// Runs the child. Returns true if it was killed.
fn killed(home: &Home, what: &str, step: Step) -> bool {
    let (root, state) = (home.places.home.display(), home.state());
    let order = format!("{root}\n{}\n{what}\n{step:?}", state.display());
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "setup_kill::child", "--ignored"])
        .env(VARIABLE, order)
        .output()
        .unwrap()
        .status;
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

#[test]
fn killed_half_way_it_is_the_old_file_or_the_new_one() {
    for step in Step::ALL {
        let home = Home::new();
        let path = home.places.home.join(".claude/settings.json");
        let old = "{\r\n  \"mine\": 1 // é\r\n}";
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, old).unwrap();
        let new = home.plan(Client::Claude, &setup("ringer")).unwrap().changes.remove(0).after.unwrap();
        let new = String::from_utf8(new).unwrap();

        assert_eq!(killed(&home, "setup", step), step != Step::RemoveRecord);
        let now = fs::read_to_string(&path).unwrap();
        assert!(now == old || now == new, "{step:?}: {now}");
        home.run(Client::Claude, &setup("ringer"), "20261115-060000").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), new, "{step:?}: the next run completes it");

        let is_taken = !matches!(step, Step::MakeDirectory | Step::WriteBackup | Step::WriteRecord);
        assert_eq!(killed(&home, "remove", step), is_taken);
        let now = fs::read_to_string(&path).unwrap();
        assert!(now == old || now == new, "{step:?}: {now}");
        home.run(Client::Claude, &SetupAction::Remove(Entries::All), "20261115-060001").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old, "{step:?}: and removal restores the bytes");
    }
}
