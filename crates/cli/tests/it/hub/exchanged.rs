//! The journal is exchanged under a hub that runs: what is sent afterwards is shown, and what was sent before is not shown
//! again.

use std::fs;
use std::path::Path;

use test_support::until;

use super::environment::HubEnvironment;

/// What became of the journal. The paths are the database and a copy of it that was made earlier.
type Exchange = fn(database: &Path, copy: &Path);

fn remove_with_log(database: &Path) {
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{ending}", database.display())).expect("removed");
    }
}

/// Writes into the very file that the hub has open.
fn overwrite(database: &Path, byte: u8) {
    let length = fs::metadata(database).expect("a file").len();
    let file = fs::OpenOptions::new().write(true).open(database).expect("a file");
    let bytes = vec![byte; length.try_into().expect("small")];
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("written");
}

#[track_caller]
fn check(what: &str, exchange: Exchange) {
    let environment = HubEnvironment::new();
    let send = |name: &str, count: u32| -> Vec<String> {
        (1..=count).map(|number| environment.notify(&[&format!("{name} {number}")])).collect()
    };
    send("before", 3);
    environment.settled_hub();
    let (database, copy) = (environment.base.database(), environment.base.path().join("copy.db"));
    rusqlite::Connection::open(&database)
        .and_then(|connection| connection.execute("VACUUM INTO ?1", [copy.to_str()]))
        .expect("copied");
    send("between", 3);
    assert_eq!(environment.bodies(&[]).len(), 6, "{what}");
    environment.run(&["read", "--all"]);
    exchange(&database, &copy);
    // The hub's own look at what was removed must not be what brings it back.
    let ids = send("after", 3);
    let unread: Vec<String> =
        environment.bodies(&["--unread"]).into_iter().filter(|body| !body.contains("damaged")).collect();
    assert_eq!(unread, ["after 3", "after 2", "after 1"], "{what}");
    let listed = environment.bodies(&[]);
    for body in ["before 1", "between 3"] {
        assert_eq!(listed.iter().filter(|listed| *listed == body).count(), 1, "{what}: {listed:?}");
    }
    for id in ids {
        let why = environment.run(&["why", &id]);
        assert!(why.contains("channels: ") && !why.contains("not processed"), "{what}: {why}");
    }
}

#[test]
fn removed() {
    check("removed", |database, _| remove_with_log(database));
    check("removed without its log", |database, _| fs::remove_file(database).expect("removed"));
}

#[test]
fn overwritten() {
    check("overwritten", |database, _| overwrite(database, 0xa5));
    check("zeroed", |database, _| overwrite(database, 0));
    check("emptied", |database, _| fs::write(database, "").expect("written"));
    check("emptied, and its log", |database, _| {
        fs::write(database, "").expect("written");
        fs::write(format!("{}-wal", database.display()), "").expect("written");
    });
}

#[test]
fn an_older_copy_was_put_back() {
    check("copied over it", |database, copy| {
        fs::copy(copy, database).expect("copied");
    });
    check("copied over it, and its log emptied", |database, copy| {
        fs::copy(copy, database).expect("copied");
        fs::write(format!("{}-wal", database.display()), "").expect("written");
    });
    check("moved over it", |database, copy| fs::rename(copy, database).expect("moved"));
    check("in the place of all its files", |database, copy| {
        remove_with_log(database);
        fs::rename(copy, database).expect("moved");
    });
}

/// Only the messages were lost that the damaged file alone had: the hub's list is in another one.
#[test]
fn what_the_journal_lost_stays_on_the_list() {
    let environment = HubEnvironment::new();
    for number in 1..=3 {
        environment.notify(&[&format!("before {number}")]);
    }
    environment.settled_hub();
    environment.run(&["read", "--all"]);
    environment.run(&["hub", "stop"]);
    overwrite(&environment.base.database(), 0xa5);
    fs::write(format!("{}-wal", environment.base.database().display()), "").expect("written");
    for _ in 0..2 {
        environment.notify(&["after"]);
        environment.settled_hub();
        let listed = environment.bodies(&[]);
        for number in 1..=3 {
            assert!(listed.contains(&format!("before {number}")), "{listed:?}");
        }
        environment.run(&["hub", "stop"]);
    }
}

#[test]
fn a_hub_whose_file_is_damaged_is_found() {
    for damage in ["", "{", "\0\0\0\0", r#"{"socket":"/nowhere/hub.sock","pid":1,"version":"9.9.9"}"#] {
        let environment = HubEnvironment::new();
        environment.notify(&["before"]);
        let pid = environment.settled_hub();
        fs::write(environment.base.home().join("hub.json"), damage).expect("written");
        environment.notify(&["after"]);
        assert_eq!(environment.bodies(&[]), ["after", "before"], "{damage}");
        assert_eq!(environment.hub(), pid, "{damage}");
        environment.run(&["hub", "stop"]);
        until("it is gone", || environment.hubs().is_empty());
    }
}
