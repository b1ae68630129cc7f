//! The journal is damaged: a hub that runs ends, the next one repairs it, and commands wait for that.

use std::fs;
use std::os::unix::fs::FileExt;

use test_support::until;

use super::environment::HubEnvironment;

/// Puts something else in place of the database, without a hub.
fn ruin(environment: &HubEnvironment) {
    // One that is only being started would not be stopped.
    environment.settled_hub();
    environment.run(&["hub", "stop"]);
    until("it is gone", || environment.hubs().is_empty());
    fs::write(environment.base.database(), b"this is no database. ".repeat(500)).expect("written");
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", environment.base.database().display()));
    }
}

#[test]
fn of_many_who_find_it_at_once_all_are_acknowledged_and_one_hub_repairs_it() {
    let environment = HubEnvironment::new();
    environment.notify(&["before"]);
    ruin(&environment);
    let mut writers: Vec<_> = (0..6)
        .map(|number| environment.ringer(&["notify", &format!("after {number}")]).spawn().expect("it starts"))
        .collect();
    for writer in &mut writers {
        assert_eq!(writer.wait().expect("it ran").code(), Some(0));
    }
    let listed = environment.bodies(&[]);
    for number in 0..6 {
        assert!(listed.contains(&format!("after {number}")), "{listed:?}");
    }
    let aside = |number: u32| environment.base.home().join(format!("ringer.db.damaged-{number}"));
    assert!(aside(1).exists() && !aside(2).exists());
}

/// SQLite does not look at checksums of a log that is open. A hub went on behind the damaged frame, and what it acknowledged
/// was lost when another process repaired the journal.
#[test]
fn what_is_acknowledged_after_the_log_was_damaged_under_a_hub_is_heard() {
    let environment = HubEnvironment::new();
    for number in 0..4 {
        environment.notify(&[&format!("before {number}")]);
    }
    let hub = environment.settled_hub();
    let log =
        fs::OpenOptions::new().read(true).write(true).open(environment.base.home().join("ringer.db-wal"));
    let log = log.expect("a log");
    // The pages of every frame but the last, whichever tables they are of.
    let frames = (log.metadata().expect("a length").len() - 32) / 4120;
    for frame in 0..frames - 1 {
        log.write_all_at(&[0xa5; 16], 32 + frame * 4120 + 24).expect("written");
    }
    environment.notify(&["acknowledged"]);
    environment.run(&["hub", "stop"]);
    until("it is gone", || !environment.hubs().contains(&hub));
    environment.notify(&["after"]);
    until("both are listed", || {
        let listed = environment.bodies(&[]);
        ["acknowledged", "after"].iter().all(|text| listed.iter().any(|body| body == text))
    });
    until("it is told", || environment.bodies(&[]).iter().any(|body| body.contains("ringer.db.damaged-1")));
}

/// The hub is killed when it looks at what is not there any more, with requests that it has not answered.
#[test]
fn a_hub_whose_index_was_cut_is_replaced_and_the_command_gets_its_answer() {
    for (name, length) in
        [("ringer.db-shm", 0), ("ringer.db-shm", 4096), ("hub.db-shm", 0), ("hub.db-shm", 100)]
    {
        let environment = HubEnvironment::new();
        for number in 0..4 {
            environment.notify(&[&format!("before {number}")]);
        }
        environment.settled_hub();
        let index =
            fs::OpenOptions::new().write(true).open(environment.base.home().join(name)).expect("an index");
        index.set_len(length).expect("cut");
        let listed = environment.bodies(&[]);
        assert_eq!(listed.len(), 4, "{name} cut at {length}: {listed:?}");
        environment.notify(&["after"]);
        assert!(environment.bodies(&[]).contains(&"after".to_owned()), "{name} cut at {length}");
    }
}
