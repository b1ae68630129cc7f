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
    let world = HubEnvironment::new();
    let send = |name: &str, count: u32| -> Vec<String> {
        (1..=count).map(|number| world.notify(&[&format!("{name} {number}")])).collect()
    };
    send("before", 3);
    world.settled_hub();
    let (database, copy) = (world.environment.database(), world.environment.path().join("copy.db"));
    rusqlite::Connection::open(&database)
        .and_then(|connection| connection.execute("VACUUM INTO ?1", [copy.to_str()]))
        .expect("copied");
    send("between", 3);
    assert_eq!(world.bodies(&[]).len(), 6, "{what}");
    world.run(&["read", "--all"]);
    exchange(&database, &copy);
    // The hub's own look at what was removed must not be what brings it back.
    let ids = send("after", 3);
    let unread: Vec<String> =
        world.bodies(&["--unread"]).into_iter().filter(|body| !body.contains("damaged")).collect();
    assert_eq!(unread, ["after 3", "after 2", "after 1"], "{what}");
    let listed = world.bodies(&[]);
    for body in ["before 1", "between 3"] {
        assert_eq!(listed.iter().filter(|listed| *listed == body).count(), 1, "{what}: {listed:?}");
    }
    for id in ids {
        let why = world.run(&["why", &id]);
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
    let world = HubEnvironment::new();
    for number in 1..=3 {
        world.notify(&[&format!("before {number}")]);
    }
    world.settled_hub();
    world.run(&["read", "--all"]);
    world.run(&["hub", "stop"]);
    overwrite(&world.environment.database(), 0xa5);
    fs::write(format!("{}-wal", world.environment.database().display()), "").expect("written");
    for _ in 0..2 {
        world.notify(&["after"]);
        world.settled_hub();
        let listed = world.bodies(&[]);
        for number in 1..=3 {
            assert!(listed.contains(&format!("before {number}")), "{listed:?}");
        }
        world.run(&["hub", "stop"]);
    }
}

#[test]
fn a_hub_whose_file_is_damaged_is_found() {
    for damage in ["", "{", "\0\0\0\0", r#"{"socket":"/nowhere/hub.sock","pid":1,"version":"9.9.9"}"#] {
        let world = HubEnvironment::new();
        world.notify(&["before"]);
        let pid = world.settled_hub();
        fs::write(world.environment.home().join("hub.json"), damage).expect("written");
        world.notify(&["after"]);
        assert_eq!(world.bodies(&[]), ["after", "before"], "{damage}");
        assert_eq!(world.hub(), pid, "{damage}");
        world.run(&["hub", "stop"]);
        until("it is gone", || world.hubs().is_empty());
    }
}
