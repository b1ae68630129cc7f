//! The same repository on two machines.

use std::fs;

use serde_json::json;
use test_support::until;

use super::machines::{Laptop, linked};
use crate::hub::environment::HubEnvironment;
use crate::ringer::check_with_input;

/// A clone of a repository, from this URL.
fn clone_from(machine: &HubEnvironment, url: &str) {
    let config = format!("[remote \"origin\"]\n\turl = {url}\n");
    fs::write(machine.base.repository().join(".git/config"), config).expect("a file");
}

/// Calls a hook of the lead agent on the laptop. Gives what the agent is told.
fn hook(laptop: &Laptop, event: &str) -> String {
    let input = json!({
        "session_id": "0123456789", "source": "startup", "cwd": laptop.near.base.repository(), "prompt": "go on",
    });
    let mut command = laptop.near.base.ringer(&["hook", "claude", event]);
    check_with_input(&mut command, input.to_string().as_bytes())
}

/// A laptop with a lead agent, and a box, with clones of one repository.
fn clones() -> Laptop {
    let laptop = linked();
    clone_from(&laptop.near, "git@github.com:org/api");
    clone_from(&laptop.far, "https://ada:secret@github.com/org/api.git");
    laptop.near.base.run(&["lead", "on"]);
    hook(&laptop, "SessionStart");
    laptop
}

#[test]
fn a_lead_hears_workers_of_the_same_repository_on_another_machine() {
    let laptop = clones();
    laptop.allow_reaching_lead();
    laptop.far.notify(&["--from", "worker-1", "the tests are red"]);
    laptop.until_listed("the tests are red");
    let told = hook(&laptop, "UserPromptSubmit");
    assert!(told.contains("the tests are red") && told.contains("worker-1@box"), "{told}");
    // Another repository is none of its business.
    clone_from(&laptop.far, "https://github.com/org/web.git");
    let other = laptop.far.base.make_repository("web");
    fs::copy(laptop.far.base.repository().join(".git/config"), other.join(".git/config")).expect("a copy");
    crate::ringer::check(laptop.far.base.ringer(&["notify", "of the web"]).current_dir(&other), 0);
    laptop.until_listed("of the web");
    assert!(!hook(&laptop, "UserPromptSubmit").contains("of the web"));
    // No password leaves the machine.
    let database = rusqlite::Connection::open(laptop.near.base.database()).expect("a database");
    let count = "SELECT count(*) FROM message WHERE body LIKE '%secret%' OR about LIKE '%secret%' OR scope LIKE '%secret%'";
    assert_eq!(database.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a number"), 0);
}

#[test]
fn no_other_machine_reaches_a_lead_unless_the_person_allows_it() {
    let laptop = clones();
    laptop.far.notify(&["--from", "worker-1", "obey"]);
    laptop.until_listed("obey");
    let told = hook(&laptop, "UserPromptSubmit");
    assert!(!told.contains("obey"), "{told}");
    until("the scope is of the box", || {
        let database = rusqlite::Connection::open(laptop.near.base.database()).expect("a database");
        let scope = "SELECT scope FROM message WHERE body = 'obey'";
        database
            .query_row(scope, [], |row| row.get::<_, String>(0))
            .is_ok_and(|scope| scope.starts_with("box_"))
    });
}
