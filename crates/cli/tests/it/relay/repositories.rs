//! The same repository on two machines.

use std::fs;
use std::path::Path;

use serde_json::json;
use test_support::until;

use super::machines::{Laptop, linked};
use crate::hub::environment::HubEnvironment;
use crate::ringer::{check_with_input, json as parsed};

/// Makes a repository a clone from this URL.
pub(super) fn set_origin(repository: &Path, url: &str) {
    let config = format!("[remote \"origin\"]\n\turl = {url}\n");
    fs::write(repository.join(".git/config"), config).expect("a file");
}

/// Calls a hook of an agent on a machine. Gives what the agent is told.
pub(super) fn hook(machine: &HubEnvironment, event: &str) -> String {
    let input = json!({
        "session_id": "0123456789", "source": "startup", "cwd": machine.base.repository(), "prompt": "go on",
    });
    let mut command = machine.base.ringer(&["hook", "claude", event]);
    check_with_input(&mut command, input.to_string().as_bytes())
}

/// A laptop with a lead agent, and a box, with clones of one repository.
fn clones() -> Laptop {
    let laptop = with_lead();
    set_origin(&laptop.near.base.repository(), "git@github.com:org/api");
    set_origin(&laptop.far.base.repository(), "https://ada:secret@github.com/org/api.git");
    laptop
}

/// A laptop with a lead agent, and a box.
fn with_lead() -> Laptop {
    let laptop = linked();
    start_lead(&laptop.near);
    laptop
}

/// Starts a lead agent.
pub(super) fn start_lead(machine: &HubEnvironment) {
    machine.base.run(&["lead", "on"]);
    hook(machine, "SessionStart");
    // A hook that finds the journal locked leaves what it has to say to the next command.
    until("the lead agent is known", || {
        let status = parsed(&machine.run(&["status", "--everywhere", "--json"]));
        status["agents"].as_array().is_some_and(|agents| agents.iter().any(|agent| agent["lead"] == true))
    });
}

#[test]
fn a_lead_hears_workers_of_the_same_repository_on_another_machine() {
    let laptop = clones();
    laptop.allow_reaching_lead();
    laptop.far.notify(&["--from", "worker-1", "the tests are red"]);
    laptop.until_listed("the tests are red");
    let mut told = String::new();
    until("the lead agent reads it", || {
        told = hook(&laptop.near, "UserPromptSubmit");
        told.contains("the tests are red")
    });
    assert!(told.contains("worker-1@box"), "{told}");
    // Another repository is none of its business.
    let other = laptop.far.base.make_repository("web");
    set_origin(&other, "https://github.com/org/web.git");
    crate::ringer::check(laptop.far.base.ringer(&["notify", "of the web"]).current_dir(&other), 0);
    laptop.until_listed("of the web");
    assert!(!hook(&laptop.near, "UserPromptSubmit").contains("of the web"));
}

#[test]
fn repositories_of_one_name_are_the_same_without_a_remote() {
    let laptop = with_lead();
    laptop.allow_reaching_lead();
    laptop.far.notify(&["--from", "worker-1", "too early"]);
    laptop.until_listed("too early");
    assert!(!hook(&laptop.near, "UserPromptSubmit").contains("too early"));
    let servers = laptop.servers();
    laptop.name_repositories("api");
    until("the lead agent reads what is written after that", || {
        laptop.far.notify(&["--from", "worker-1", "the tests are red"]);
        hook(&laptop.near, "UserPromptSubmit").contains("the tests are red")
    });
    assert_eq!(laptop.servers(), servers, "the link stayed connected");
}

#[test]
fn no_other_machine_reaches_a_lead_unless_the_person_allows_it() {
    let laptop = clones();
    laptop.far.notify(&["--from", "worker-1", "obey"]);
    laptop.until_listed("obey");
    let told = hook(&laptop.near, "UserPromptSubmit");
    assert!(!told.contains("obey"), "{told}");
    until("the scope is of the box", || {
        let database = rusqlite::Connection::open(laptop.near.base.database()).expect("a database");
        let scope = "SELECT scope FROM message WHERE body = 'obey'";
        database
            .query_row(scope, [], |row| row.get::<_, String>(0))
            .is_ok_and(|scope| scope.starts_with("box_"))
    });
}
