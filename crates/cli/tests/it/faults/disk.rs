//! No room, or no right to write.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use test_support::until;

use super::mounts::Mounts;
use crate::background::Background;
use crate::home::{SCRIPTS, TestEnvironment, lines, texts};
use crate::ringer::{check, json as parsed};

/// Sends until the disk is full, makes room, and checks that what was acknowledged is there, and nothing else.
#[track_caller]
fn check_full(kilobytes: u32) {
    let environment = TestEnvironment::new();
    let mount =
        format!("mkdir \"$RINGER_HOME\"; mount -t tmpfs -o size={kilobytes}k,mode=700 none \"$RINGER_HOME\"");
    let Some(mounts) = Mounts::new(&environment, &mount) else { return };
    let body = |number: usize| format!("{number} {}", "x".repeat(2_000));
    let mut acknowledged = Vec::new();
    let refused = loop {
        let body = body(acknowledged.len());
        let output = mounts.ringer(&["notify", &body]).output().expect("it runs");
        match output.status.code() {
            Some(0) => acknowledged.push(body),
            code => break (code, String::from_utf8(output.stderr).expect("text")),
        }
        assert!(acknowledged.len() < 1_000, "{kilobytes} KiB are never full");
    };
    assert_eq!(refused.0, Some(73), "at {kilobytes} KiB: {}", refused.1);
    let home = environment.home().display().to_string();
    assert!(refused.1.contains(&format!("no space left in {home}")), "{}", refused.1);
    assert!(refused.1.contains("it was not stored"), "{}", refused.1);
    // Reading on a full disk may fail as well, but loses nothing, and does not say that something was not stored.
    let read = mounts.ringer(&["listen", "--timeout", "0", "--as", "other"]).output().expect("it runs");
    assert!(matches!(read.status.code(), Some(0 | 73)), "{read:?}");
    assert!(!String::from_utf8_lossy(&read.stderr).contains("stored"), "{read:?}");
    check_doctor(&mounts);
    mounts.sh("mount -o remount,size=8m \"$RINGER_HOME\"");
    let after = body(acknowledged.len());
    check(&mut mounts.ringer(&["notify", &after]), 0);
    acknowledged.push(after);
    let mut delivered = Vec::new();
    loop {
        let batch = texts(&lines(&check(&mut mounts.ringer(&["listen", "--timeout", "0"]), 0).0));
        if batch.is_empty() {
            break;
        }
        delivered.extend(batch);
    }
    assert!(delivered == acknowledged, "at {kilobytes} KiB");
}

/// A disk that cannot be written is a broken part.
#[track_caller]
fn check_doctor(mounts: &Mounts<'_>) {
    let (out, _) = check(&mut mounts.ringer(&["doctor", "--json"]), 1);
    let report = parsed(&out);
    let rows = report["rows"].as_array().expect("rows");
    let journal = rows.iter().find(|row| row["part"] == "journal").expect("a row");
    assert_eq!(journal["verdict"], "broken", "{journal}");
}

/// Where a hub may be started, and cannot be.
#[track_caller]
fn check_list(mounts: &Mounts<'_>, exit: i32, why: &str) -> String {
    let runtime = tempfile::tempdir().expect("a directory");
    let mut list = mounts.ringer(&["list"]);
    let (out, err) = check(list.env_remove("RINGER_HUB").env("XDG_RUNTIME_DIR", runtime.path()), exit);
    assert!(err.contains("the hub cannot start, continuing without it: ") && err.contains(why), "{err}");
    let mut status = mounts.ringer(&["hub", "status"]);
    let (said, _) = check(status.env("XDG_RUNTIME_DIR", runtime.path()), 0);
    assert!(
        said.contains("the hub could not start (") && said.contains(why),
        "the disk keeps no reason: {said}"
    );
    out
}

#[test]
fn a_list_on_a_full_disk_says_why_there_is_no_hub() {
    let environment = TestEnvironment::new();
    let mount = "mkdir \"$RINGER_HOME\"; mount -t tmpfs -o size=300k,mode=700 none \"$RINGER_HOME\"";
    let Some(mounts) = Mounts::new(&environment, mount) else { return };
    check(&mut mounts.ringer(&["notify", "kept"]), 0);
    mounts.sh("! cat /dev/zero > \"$RINGER_HOME/filler\" 2>/dev/null");
    assert!(check_list(&mounts, 0, "no space left in").contains("kept"));
}

#[test]
fn a_list_in_a_read_only_home_says_why_there_is_no_hub() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let Some(mounts) = Mounts::new(&environment, READ_ONLY) else { return };
    assert!(check_list(&mounts, 0, "Read-only file system").contains("before"));
    check_doctor(&mounts);
}

#[test]
fn a_disk_without_room_for_the_first_byte() {
    check_full(4);
}

#[test]
fn a_disk_without_room_for_an_empty_journal() {
    for kilobytes in [8, 20, 32, 40, 72] {
        check_full(kilobytes);
    }
}

#[test]
fn a_disk_that_becomes_full() {
    for kilobytes in [100, 148, 241, 500] {
        check_full(kilobytes);
    }
}

/// What it decided is in its memory alone until then, and nothing is shown that is not written down.
#[test]
fn what_a_hub_cannot_write_on_a_full_disk_it_writes_when_there_is_room() {
    const MESSAGES: usize = 60;
    let environment = TestEnvironment::new();
    let mount = "mkdir \"$RINGER_HOME\"; mount -t tmpfs -o size=16m,mode=700 none \"$RINGER_HOME\"";
    let Some(mounts) = Mounts::new(&environment, mount) else { return };
    let (runtime, path) = (tempfile::tempdir().expect("a directory"), |name| environment.path().join(name));
    let script = format!("echo \"${{RINGER_NOTIFICATION_BODY%% *}}\" >> '{}'", path("told").display());
    let command = json!(["sh", "-c", script]);
    let settings = format!("{SCRIPTS}[notify]\npopup = \"off\"\nrate_limit = \"off\"\ncommand = {command}\n");
    fs::write(path("config.toml"), settings).expect("a file");
    let ask = |arguments: &[&str]| parsed(&check(&mut mounts.ringer(arguments), 0).0);
    let start = || {
        let mut hub = mounts.ringer(&["hub", "start", "--foreground"]);
        hub.env("XDG_RUNTIME_DIR", runtime.path()).env("RINGER_CONFIG", path("config.toml"));
        let hub = Background::start({
            hub.stderr(Stdio::null());
            hub
        });
        until("it runs", || ask(&["hub", "status", "--json"])["running"] == true);
        hub
    };
    let send = |number: usize| {
        let body = format!("{number:02} {}", "x".repeat(30_000));
        check(&mut mounts.ringer(&["notify", &body]), 0);
    };
    let hub = start();
    hub.stop();
    (0..MESSAGES).for_each(send);
    mounts.sh("! cat /dev/zero > \"$RINGER_HOME/filler\" 2>/dev/null");
    hub.signal(Signal::CONT);
    until("it cannot write", || {
        let log = mounts.program("cat").arg(environment.home().join("hub.log")).output().expect("cat runs");
        String::from_utf8_lossy(&log.stdout).contains("cannot write down what happened: no space left")
    });
    until("it has decided them", || {
        ask(&["list", "--json", "--limit", "1000"]).as_array().map(Vec::len) == Some(MESSAGES)
    });
    assert!(!path("told").exists(), "nothing goes out that is not written down");
    mounts.sh("rm \"$RINGER_HOME/filler\"");
    let told = || {
        let told = fs::read_to_string(path("told")).unwrap_or_default();
        let mut numbers: Vec<usize> = told.lines().map(|line| line.parse().expect("a number")).collect();
        numbers.sort_unstable();
        numbers
    };
    until("all have gone out", || {
        told().len() >= MESSAGES && ask(&["hub", "status", "--json"])["under_way"] == 0
    });
    // The next hub knows of them: they were written down.
    check(&mut mounts.ringer(&["hub", "stop"]), 0);
    assert_eq!(hub.end().1, Some(0));
    let _hub = start();
    send(MESSAGES);
    until("one more has gone out", || {
        ask(&["hub", "status", "--json"])["under_way"] == 0 && told().contains(&MESSAGES)
    });
    assert_eq!(told(), (0..=MESSAGES).collect::<Vec<_>>(), "each once");
}

pub(super) const READ_ONLY: &str =
    "mount --bind \"$RINGER_HOME\" \"$RINGER_HOME\"; mount -o remount,bind,ro \"$RINGER_HOME\"";

#[track_caller]
fn check_remedy(mounts: &Mounts<'_>, environment: &TestEnvironment, arguments: &[&str]) {
    let (out, err) = check(&mut mounts.ringer(arguments), 77);
    let home = environment.home().display().to_string();
    for part in [
        format!("cannot write to {home}"),
        format!("\"allowWrite\": [\"{home}/drop\"]"),
        format!("writable_roots = [\"{home}/drop\"]"),
        format!("SANDBOX_MOUNTS={home}/drop:{home}/drop:rw"),
        "RINGER_HOME=".to_owned(),
        "-o remount,rw".to_owned(),
    ] {
        assert!(out.is_empty() && err.contains(&part), "{part}: {err}");
    }
}

#[test]
fn a_read_only_home_is_77_with_the_remedy() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let Some(mounts) = Mounts::new(&environment, READ_ONLY) else { return };
    for arguments in [&["notify", "lost?"][..], &["listen", "--timeout", "0"], &["ask", "lost?"]] {
        check_remedy(&mounts, &environment, arguments);
    }
    assert_eq!(environment.texts(), ["before"], "nothing is stored, nothing is lost");
}

#[test]
fn a_home_that_cannot_be_made_is_77_with_the_remedy() {
    let environment = TestEnvironment::new();
    let read_only =
        "D=$(dirname \"$RINGER_HOME\"); mount --bind \"$D\" \"$D\"; mount -o remount,bind,ro \"$D\"";
    let Some(mounts) = Mounts::new(&environment, read_only) else { return };
    check_remedy(&mounts, &environment, &["notify", "hello"]);
    assert!(!environment.home().exists());
}

#[test]
fn a_repository_that_cannot_be_written_still_has_a_scope() {
    let environment = TestEnvironment::new();
    let read_only = "mount --bind . .; cd \"$PWD\"; mount -o remount,bind,ro .";
    let Some(mounts) = Mounts::new(&environment, read_only) else { return };
    check(&mut mounts.ringer(&["notify", "hello"]), 0);
    let read = lines(&check(&mut mounts.ringer(&["listen", "--timeout", "0"]), 0).0);
    assert_eq!(texts(&read), ["hello"]);
    assert_ne!(read[0]["scope"], "global");
}
