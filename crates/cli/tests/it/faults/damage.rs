//! A damaged database, where no hub can be started: commands end and say what to type; `ringer doctor --repair` sets the
//! damaged file aside, never deletes it, and tells its name; then everything goes on. With a hub: `hub::repaired`.

use std::fs;
use std::path::PathBuf;

use crate::home::{TestEnvironment, texts};
use crate::ringer::check;

/// Puts something else in place of the database. Gives what it is.
fn ruin(environment: &TestEnvironment) -> Vec<u8> {
    let garbage = b"this is no database. ".repeat(500);
    fs::write(environment.database(), &garbage).expect("written");
    for ending in ["ringer.db-wal", "ringer.db-shm"] {
        let _ = fs::remove_file(environment.home().join(ending));
    }
    garbage
}

fn aside(environment: &TestEnvironment, number: u32) -> PathBuf {
    environment.home().join(format!("ringer.db.damaged-{number}"))
}

/// Repairs it as a person does. Gives what is said.
fn repair(environment: &TestEnvironment) -> String {
    environment.run(&["doctor", "--repair"])
}

#[track_caller]
fn check_told(arguments: &[&str], exit: i32) {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let garbage = ruin(&environment);
    let (_, err) = check(&mut environment.ringer(arguments), 75);
    assert!(err.contains("is damaged") && err.contains("ringer doctor --repair"), "{arguments:?}: {err}");
    let said = repair(&environment);
    let aside = aside(&environment, 1);
    assert!(said.contains(&aside.display().to_string()), "its name was not told: {said}");
    assert!(fs::read(aside).expect("a file") == garbage, "it was set aside as it was");
    check(&mut environment.ringer(arguments), exit);
    environment.run(&["notify", "--from", "a1", "after"]);
    assert!(environment.texts().contains(&"after".to_owned()));
}

#[test]
fn writing_commands_tell_its_name() {
    check_told(&["notify", "hello"], 0);
    check_told(&["listen", "--timeout", "0"], 0);
    check_told(&["ask", "hello?"], 0);
    check_told(&["acknowledge", "q-1-000000"], 65);
}

#[test]
fn reading_commands_tell_its_name() {
    check_told(&["status"], 0);
    check_told(&["log"], 0);
    check_told(&["questions"], 0);
    check_told(&["nuke", "--yes"], 0);
    check_told(&[], 0);
}

#[test]
fn one_after_the_other_gets_a_name_of_its_own() {
    let environment = TestEnvironment::new();
    for number in 1..=3 {
        environment.notify("hello");
        let garbage = ruin(&environment);
        repair(&environment);
        environment.notify("after");
        assert!(fs::read(aside(&environment, number)).unwrap() == garbage);
    }
}

#[test]
fn an_emptied_journal_is_set_aside_like_any_other() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    fs::write(environment.database(), "").unwrap();
    check(&mut environment.ringer(&["notify", "lost"]), 75);
    assert!(repair(&environment).contains("ringer.db.damaged-1"));
    environment.notify("after");
    assert_eq!(environment.texts(), ["after"]);
}

/// Until its damaged copy is removed, whichever command found it.
#[test]
fn status_and_doctor_show_what_was_damaged() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    assert_eq!(environment.status()["repairs"], serde_json::Value::Null);
    ruin(&environment);
    repair(&environment);
    assert_eq!(repair(&environment), "Nothing is damaged.\n");
    environment.run(&["notify", "after"]);
    let aside = aside(&environment, 1);
    let repairs = environment.status()["repairs"].clone();
    assert_eq!((repairs[0]["file"].as_str(), repairs[0]["count"].as_u64()), (Some("ringer.db"), Some(0)));
    assert_eq!(repairs[0]["aside"].as_str(), aside.to_str());
    assert!(environment.run(&["status"]).contains(&format!("the damaged copy is {}", aside.display())));
    // Whether it finds other parts broken depends on the machine.
    let doctor = || {
        let output = environment.ringer(&["doctor"]).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let said = doctor();
    assert!(
        said.contains("ringer.db was damaged") && said.contains(&format!("rm {}*", aside.display())),
        "{said}"
    );
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", aside.display()));
    }
    assert_eq!(environment.status()["repairs"], serde_json::Value::Null);
    assert!(!doctor().contains("was damaged"));
}

#[test]
fn those_who_sleep_meanwhile_wake_with_the_fresh_one() {
    let environment = TestEnvironment::new();
    let (lead, other) = (environment.listen(&[]), environment.listen(&["--as", "other"]));
    let log = environment.start(environment.ringer(&["log", "--follow", "--json"]));
    // In place: the sleepers have these very files open.
    for name in ["ringer.db", "ringer.db-wal"] {
        let path = environment.home().join(name);
        let length = fs::metadata(&path).unwrap().len();
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xa5; length.try_into().unwrap()], 0).unwrap();
    }
    check(&mut environment.ringer(&["notify", "lost"]), 75);
    assert!(repair(&environment).contains("ringer.db.damaged-1"));
    environment.notify("hello");
    assert_eq!(texts(&lead.messages()), ["hello"]);
    assert_eq!(texts(&other.messages()), ["hello"]);
    assert_eq!(log.message()["msg"], "hello");
    environment.notify("again");
    assert_eq!(log.message()["msg"], "again", "its doorbell is registered in the fresh one");
}

/// An empty database with a version of its own: 100 bytes of header, and a page without rows.
fn database_of_version(version: u32) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    page[16..24].copy_from_slice(&[0x10, 0, 1, 1, 0, 64, 32, 32]);
    for (at, value) in [(24, 1), (28, 1), (40, 1), (44, 4), (56, 1), (60, version), (92, 1), (96, 3_045_000)]
    {
        page[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
    }
    page[100..108].copy_from_slice(&[0x0d, 0, 0, 0, 0, 0x10, 0, 0]);
    page
}

#[test]
fn a_journal_of_another_version_is_69_and_not_touched() {
    let environment = TestEnvironment::new();
    fs::create_dir(environment.home()).unwrap();
    let other = database_of_version(99);
    fs::write(environment.database(), &other).unwrap();
    for arguments in
        [&["notify", "hello"][..], &["listen", "--timeout", "0"], &["status"], &["log"], &["ask", "x?"]]
    {
        let (out, err) = check(&mut environment.ringer(arguments), 69);
        assert!(out.is_empty() && err.contains("schema 99"), "{err}");
        assert!(err.contains("hint: use the version of ringer that wrote it"), "{err}");
    }
    assert!(fs::read(environment.database()).unwrap() == other);
    assert!(!aside(&environment, 1).exists());
}
