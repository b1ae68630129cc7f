//! Teams over a real NATS server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use test_support::{BlockingNotificationServer, NATS_USERS, NatsServer, ServerBehaviour, SessionBus, until};

use super::repositories::{hook, set_origin, start_lead};
use crate::hub::environment::HubEnvironment;
use crate::ringer::check;

const SETTINGS: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";

/// A machine whose file holds its credentials.
fn machine(name: &str) -> (HubEnvironment, String) {
    let machine = HubEnvironment::with_settings(SETTINGS);
    let user = NATS_USERS.into_iter().find(|user| user.machine == name).expect("a user");
    let path = machine.base.path().join("nkey");
    fs::write(&path, user.seed).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a private file");
    let path = path.to_str().expect("a path").to_owned();
    (machine, path)
}

fn add(server: &NatsServer, name: &str, options: &[&str]) -> HubEnvironment {
    let (machine, credentials) = machine(name);
    join(server, name, options, &machine, &credentials);
    machine
}

fn join(server: &NatsServer, name: &str, options: &[&str], machine: &HubEnvironment, credentials: &str) {
    let url = server.url();
    let fixed =
        ["relay", "add", "nats", &url, "--team", "t", "--name", name, "--credentials", credentials, "--yes"];
    let said = machine.run(&[&fixed, options].concat());
    assert!(said.contains("nats-server 2.") && said.contains(&format!("this machine is {name}")), "{said}");
    until("the team is connected", || {
        let status = machine.run(&["relay", "status"]);
        status.contains("t: connected since") && status.contains(", nats-server 2.")
    });
}

#[test]
fn a_team_has_several_addresses() {
    let server = NatsServer::start();
    let laptop = HubEnvironment::with_settings(SETTINGS);
    let urls = format!("nats://127.0.0.1:1,{}", server.url());
    laptop.run(&["relay", "add", "nats", &urls, "--team", "t", "--name", "laptop", "--yes"]);
    let connected = format!(" at {}", server.url());
    until("the team is connected", || laptop.run(&["relay", "status"]).contains(&connected));
    let listed = laptop.run(&["relay", "list"]);
    assert!(listed.contains(&format!("t: team over {urls}")), "{listed}");
}

fn until_listed(machine: &HubEnvironment, body: &str) {
    until(&format!("{body:?} is listed"), || {
        machine.bodies(&["--limit", "1000"]).iter().any(|own| own == body)
    });
}

#[test]
fn two_commands_make_a_team() {
    let mut server = NatsServer::of_team("t");
    let (laptop, other) = (add(&server, "laptop", &[]), add(&server, "box", &[]));
    other.notify(&["--from", "worker-1", "from the box"]);
    until_listed(&laptop, "from the box");
    let row = laptop.list(&[]).remove(0);
    assert_eq!(row["from"], "worker-1@box.t");
    server.kill();
    laptop.notify(&["while the server was gone"]);
    server.run();
    until_listed(&other, "while the server was gone");
    let checked = laptop.ringer(&["doctor", "--send"]).output().expect("it runs");
    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.contains("team t") && checked.contains("answers within"), "{checked}");
    // Without may_answer, no message reaches an agent of another machine.
    laptop.run(&["notify", "--to", "worker-1@box.t", "obey"]);
    laptop.notify(&["a marker"]);
    until_listed(&other, "a marker");
    assert!(!other.base.run(&["log", "--everywhere"]).contains("obey"));
    let listed = laptop.run(&["relay", "list"]);
    assert!(listed.contains("t: team over nats://127.0.0.1") && listed.contains("no answers"), "{listed}");
    laptop.run(&["relay", "remove", "t", "--yes"]);
    assert!(laptop.run(&["relay", "status"]).contains("no machines are set"));
}

#[test]
fn an_answer_is_given_where_the_agent_runs_if_it_may() {
    let server = NatsServer::of_team("t");
    let (laptop, other) = (add(&server, "laptop", &[]), add(&server, "box", &["--may-answer"]));
    other.base.run(&["ask", "--from", "worker-1", "Which branch?"]);
    laptop.base.run(&["ask", "--from", "worker-2", "Which colour?"]);
    until_listed(&laptop, "Which branch?");
    until_listed(&other, "Which colour?");
    let id_of = |machine: &HubEnvironment, body: &str| {
        let row = machine.list(&[]).into_iter().find(|row| row["body"] == body).expect("a row");
        row["id"].as_str().expect("an id").to_owned()
    };
    let id = id_of(&laptop, "Which branch?");
    let shown = check(&mut laptop.ringer(&["answer", &id]), 64).0;
    assert!(shown.contains("Which branch?"), "{shown}");
    laptop.run(&["answer", &id, "main"]);
    let answered = other.base.run(&["questions", "--all", "--json"]);
    assert!(answered.contains("\"answer\":\"main\""), "{answered}");
    until("it is over here, too", || {
        laptop.list(&[]).iter().any(|row| row["id"] == id.as_str() && row["is_open"] == false)
    });
    // The laptop does not allow it.
    let refused = other.fails(&["answer", &id_of(&other, "Which colour?"), "blue"], 69);
    assert!(refused.contains("does not allow answers"), "{refused}");
    assert!(!laptop.base.run(&["questions", "--all", "--json"]).contains("blue"));
}

#[test]
fn a_machine_that_allows_it_takes_messages_for_its_agents() {
    let server = NatsServer::of_team("t");
    let (laptop, other) = (add(&server, "laptop", &[]), add(&server, "box", &["--may-answer"]));
    laptop.run(&["notify", "--to", "worker-1@box.t", "look at the tests"]);
    until("it is there", || {
        other.base.run(&["log", "--everywhere", "--json"]).contains("\"to\":\"agent:worker-1\"")
    });
}

#[test]
fn a_lead_hears_workers_of_the_same_repository_in_its_team() {
    let server = NatsServer::of_team("t");
    let laptop = add(&server, "laptop", &["--may-reach-lead"]);
    let [other, vm] = ["box", "vm"].map(|name| add(&server, name, &[]));
    set_origin(&laptop.base.repository(), "git@github.com:org/api");
    for machine in [&other, &vm] {
        set_origin(&machine.base.repository(), "https://ada:secret@github.com/org/api.git");
    }
    for machine in [&laptop, &vm] {
        start_lead(machine);
    }
    other.notify(&["--from", "worker-1", "the tests are red"]);
    let mut told = String::new();
    until("the lead agent reads it", || {
        told = hook(&laptop, "UserPromptSubmit");
        told.contains("the tests are red")
    });
    assert!(told.contains("worker-1@box.t"), "{told}");
    // The person there has not allowed it.
    until_listed(&vm, "the tests are red");
    assert!(!hook(&vm, "UserPromptSubmit").contains("the tests are red"));
    let web = other.base.make_repository("web");
    set_origin(&web, "https://github.com/org/web.git");
    check(other.base.ringer(&["notify", "of the web"]).current_dir(&web), 0);
    until_listed(&laptop, "of the web");
    assert!(!hook(&laptop, "UserPromptSubmit").contains("of the web"));
}

#[test]
fn agents_of_the_team_are_listed_and_offered() {
    let server = NatsServer::of_team("t");
    let (laptop, other) = (add(&server, "laptop", &[]), add(&server, "box", &["--may-answer"]));
    for event in ["SessionStart", "UserPromptSubmit"] {
        hook(&other, event);
    }
    let agent = || {
        let agents = laptop.json(&["status", "--json"])["agents"].as_array().cloned().unwrap_or_default();
        agents.into_iter().find(|agent| agent["id"] == "claude-01234567@box.t")
    };
    until("it works", || agent().is_some_and(|agent| agent["state"] == "working"));
    let found = agent().expect("an agent");
    assert_eq!((&found["machine"], &found["cwd"]), (&json!("box.t"), &json!("box.t:repository")));
    let offered = laptop.run(&["complete", "--", "notify", "--to", ""]);
    assert!(offered.contains("claude-01234567@box.t"), "{offered}");
    laptop.run(&["notify", "--to", "claude-01234567@box.t", "look at the tests"]);
    until("it is there", || {
        other.base.run(&["log", "--everywhere", "--json"]).contains("\"to\":\"agent:claude-01234567\"")
    });
    // The other machine says that it leaves.
    other.run(&["hub", "stop"]);
    until("it is not known what it does", || agent().is_some_and(|agent| agent["state"].is_null()));
    assert!(!laptop.run(&["complete", "--", "notify", "--to", ""]).contains("@box.t"));
    laptop.run(&["relay", "remove", "t", "--yes"]);
    assert!(agent().is_none());
}

#[test]
fn a_server_that_does_not_allow_lists_is_told_of() {
    let server = NatsServer::of_team_without_lists("t");
    let laptop = add(&server, "laptop", &[]);
    until("it is told", || {
        let status = laptop.run(&["relay", "status"]);
        status.contains("agents are not listed (") && status.contains("ringer-agents.t")
    });
}

#[test]
fn reading_everything_counts_on_machines_that_share_marks() {
    let server = NatsServer::of_team("t");
    let [laptop, other] = ["laptop", "box"].map(|name| add(&server, name, &["--share-marks"]));
    let vm = add(&server, "vm", &[]);
    for text in ["one", "two"] {
        other.notify(&[text]);
        until_listed(&laptop, text);
    }
    vm.notify(&["of a machine that keeps its marks"]);
    until_listed(&laptop, "of a machine that keeps its marks");
    laptop.run(&["read", "--all"]);
    let own = |row: &serde_json::Value| ["one", "two"].iter().any(|body| row["body"] == *body);
    until("both are read there", || {
        other.list(&[]).iter().filter(|row| own(row)).all(|row| row["is_read"] == true)
    });
    laptop.notify(&["a marker"]);
    until_listed(&vm, "a marker");
    let unread = |row: &serde_json::Value| row["body"] == "of a machine that keeps its marks";
    assert!(vm.list(&[]).iter().filter(|row| unread(row)).all(|row| row["is_read"] == false));
}

#[test]
fn a_question_of_a_machine_that_takes_answers_is_answered_with_its_popup() {
    let server = NatsServer::of_team("t");
    let bus = SessionBus::start();
    let desktop = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let (laptop, credentials) = machine("laptop");
    laptop.set(&SETTINGS.replace("popup = \"off\"", "popup = \"desktop\""));
    let mut start = laptop.ringer(&["hub", "start"]);
    check(start.env("DBUS_SESSION_BUS_ADDRESS", bus.address()), 0);
    join(&server, "laptop", &[], &laptop, &credentials);
    let other = add(&server, "box", &["--may-answer"]);
    let silent = add(&server, "vm", &[]);
    let ask = ["ask", "--from", "worker-1", "Which branch?", "--option", "main", "--option", "next"];
    // That a script joined the team is told, too.
    let mut shown = 0;
    let mut next_question = || loop {
        let popup = desktop.next_popup();
        shown += 1;
        if popup.body.contains("Which branch?") || popup.summary.contains("Which branch?") {
            return (shown, popup);
        }
    };
    silent.base.run(&ask);
    assert_eq!(next_question().1.actions, ["default", "Show"], "it takes no answers");
    other.base.run(&ask);
    let (number, popup) = next_question();
    let at = popup.actions.iter().position(|action| action == "next").expect("a button");
    desktop.report_clicked(number, &popup.actions[at - 1]);
    until("it is answered there", || {
        other.base.run(&["questions", "--all", "--json"]).contains("\"answer\":\"next\"")
    });
}

#[test]
fn what_is_no_team_is_told() {
    let server = NatsServer::of_team("t");
    let (laptop, credentials) = machine("laptop");
    let url = server.url();
    let add = |url: &str, rest: &[&str], exit: i32| {
        laptop.fails(&[&["relay", "add", "nats", url, "--yes"], rest].concat(), exit)
    };
    let said = add("nats://nats.example.org", &["--team", "t", "--credentials", &credentials], 64);
    assert!(said.contains("unencrypted"), "{said}");
    let said = add("tls://nats.example.org", &["--team", "t"], 64);
    assert!(said.contains("needs `credentials`"), "{said}");
    let said = add(&url, &["--team", "a.b"], 64);
    assert!(said.contains("has the team"), "{said}");
    let said = add(&url, &["--team", "t"], 69);
    assert!(said.contains("authorization violation"), "{said}");
    // The credentials are those of another machine.
    let said = add(&url, &["--team", "t", "--name", "box", "--credentials", &credentials], 69);
    assert!(said.to_lowercase().contains("permissions violation") && !said.contains("SUA"), "{said}");
    assert_eq!(laptop.json(&["relay", "list", "--json"])["machines"], json!([]));
}
