//! The lists of agents of a team's other machines: their contents, their validity, and forged lists.

use ringer_core::Scope;
use ringer_core::agent::{AgentState, Authority, Signal};
use ringer_core::message::Agent;
use ringer_journal::{
    AgentEvent, AgentInfo, Confirmation, IdSource, InboxRequest, NameSource, NamingResult, monotonic,
};
use ringer_relay::{LinkState, MachineAgents};
use test_support::{NATS_USERS, NatsServer, until, until_within};

use crate::raw;
use crate::team::{Member, RECOVERY_TIMEOUT, TEAM};

impl Member {
    /// Sets the state of an agent here.
    fn set_agent(&self, id: &str, name: Option<&str>, state: AgentState) {
        let info = AgentInfo::new(Agent::new(id).expect("an agent"), "claude", id, Scope::global());
        let mut journal = self.machine.journal();
        let event = AgentEvent {
            agent: AgentInfo {
                name: name.map(str::to_owned),
                cwd: Some("/home/ada/api".to_owned()),
                by_hooks: true,
                ..info
            },
            signals: vec![Signal::state(Authority::Hook, state)],
            notify: false,
            mono: monotonic(),
            stamp: IdSource::now(),
            session_starts: false,
            turn_changes: false,
            prompt: None,
            taken: None,
            nonce: None,
            confirms: Some(Confirmation::default()),
        };
        let written = journal.record_event(&event, InboxRequest::default()).expect("an event");
        if written.spooled {
            journal.settle_spool().expect("it is applied");
        }
    }

    /// Returns the list of another machine.
    fn lists(&self, machine: &str) -> Option<MachineAgents> {
        let name = format!("{machine}.{TEAM}");
        MachineAgents::all(&self.machine.home()).into_iter().find(|told| told.machine == name)
    }

    /// Returns the states of another machine's agents, if it is connected.
    fn states(&self, machine: &str) -> Vec<(String, String)> {
        let told = self.lists(machine).filter(|told| told.is_connected);
        let agents = told.map(|told| told.agents).unwrap_or_default();
        agents.into_iter().map(|agent| (agent.id, agent.state)).collect()
    }

    #[track_caller]
    fn until_lists(&self, machine: &str, states: &[(&str, &str)]) {
        let states: Vec<_> =
            states.iter().map(|(id, state)| ((*id).to_owned(), (*state).to_owned())).collect();
        until_within(RECOVERY_TIMEOUT, &format!("{machine} has {states:?}"), || {
            self.states(machine) == states
        });
    }
}

/// A list as a machine publishes it.
fn list(holds_s: u64, agents: &str) -> String {
    let now = IdSource::now().unix_ms;
    format!(r#"{{"sent_ms":{now},"holds_s":{holds_s},"agents":[{agents}]}}"#)
}

fn agent(id: &str) -> String {
    format!(r#"{{"id":"{id}","client":"claude","state":"working","since_ms":0}}"#)
}

#[test]
fn agents_are_listed_with_their_machine_and_updated() {
    let server = NatsServer::of_team(TEAM);
    let [mut laptop, mut other] = ["laptop", "box"].map(|name| Member::new(&server, name, true));
    laptop.set_agent("claude-1", Some("worker-1"), AgentState::Working);
    laptop.start();
    laptop.until_connected();
    other.start();
    // A machine that joins later requests the existing lists.
    other.until_lists("laptop", &[("claude-1@laptop.t", "working")]);
    let told = other.lists("laptop").expect("a list");
    let found = &told.agents[0];
    assert_eq!(found.name.as_deref(), Some("worker-1@laptop.t"));
    assert_eq!((found.client.as_str(), found.directory.as_deref()), ("claude", Some("laptop.t:api")));
    other.set_agent("codex-1", None, AgentState::Working);
    laptop.until_lists("box", &[("codex-1@box.t", "working")]);
    laptop.set_agent("claude-1", Some("worker-1"), AgentState::Done);
    other.until_lists("laptop", &[("claude-1@laptop.t", "done")]);
    laptop.set_agent("claude-1", Some("worker-1"), AgentState::Exited);
    other.until_lists("laptop", &[]);
    assert!(laptop.lists("laptop").is_none(), "its own are not of another machine");
    assert_eq!((laptop.status().agents_refused, other.status().agents_refused), (None, None));
}

#[test]
fn agents_of_a_machine_without_a_connection_have_no_state() {
    let mut server = NatsServer::start();
    let (laptop, mut other) = (Member::connected(&server, "laptop"), Member::connected(&server, "box"));
    other.set_agent("claude-1", None, AgentState::Working);
    laptop.until_lists("box", &[("claude-1@box.t", "working")]);
    server.kill();
    until_within(RECOVERY_TIMEOUT, "it is not connected", || {
        laptop.lists("box").is_some_and(|told| !told.is_connected && told.agents.len() == 1)
    });
    server.run();
    laptop.until_lists("box", &[("claude-1@box.t", "working")]);
    // Its hub exits and announces that.
    other.stop();
    until_within(RECOVERY_TIMEOUT, "it is gone", || {
        laptop.lists("box").is_some_and(|told| !told.is_connected)
    });
    assert_eq!(laptop.status().state, LinkState::Connected);
    other.start();
    laptop.until_lists("box", &[("claude-1@box.t", "working")]);
    laptop.forget_team();
    assert!(laptop.lists("box").is_none());
}

#[test]
fn a_server_that_forbids_lists_still_carries_messages() {
    let server = NatsServer::of_team_without_lists(TEAM);
    let mut members = ["laptop", "box"].map(|name| Member::new(&server, name, true));
    for member in &mut members {
        member.start();
        member.until_connected();
    }
    until("it is said", || members.iter().all(|member| member.status().agents_refused.is_some()));
    let why = members[0].status().agents_refused.unwrap_or_default();
    assert!(why.contains("ringer-agents.t"), "{why}");
    members[0].set_agent("claude-1", None, AgentState::Working);
    let texts = members[0].write("hello", 20);
    members[1].until_has(&members[0], &texts);
    assert!(members.iter().all(|member| member.status().state == LinkState::Connected));
    assert!(members.iter().all(|member| !member.has_logged("again in")), "no connection was lost");
    assert!(members[1].lists("laptop").is_none());
}

#[test]
fn a_machine_of_an_older_version_is_in_the_team_without_a_list() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    laptop.set_agent("claude-1", None, AgentState::Working);
    let hello = [raw::message(1, "default", "from an older version")];
    raw::run(raw::publish(&server.url(), None, "ringer.t.old.global.default", &hello)).expect("published");
    until_within(RECOVERY_TIMEOUT, "its message comes", || !laptop.machine.texts_of("old.t").is_empty());
    assert!(laptop.lists("old").is_none());
}

#[test]
fn forbidden_entries_of_a_list_are_left_out() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    let linked = laptop.machine.journal().name_machine("m1", "linked.t", &NameSource::Machine);
    assert_eq!(linked.expect("a name"), NamingResult::Named);
    let tell = |subject: &str, payloads: &[String]| {
        raw::run(raw::publish_core(&server.url(), None, subject, payloads));
    };
    let long = agent(&"x".repeat(300));
    let many: Vec<String> = (0..2_000).map(|number| agent(&format!("a{number}"))).collect();
    // All of these are ignored: another team, an invalid name, the name of a linked machine, this machine itself.
    for machine in ["u.eve", "t.e@ve", "t.linked", "t.laptop", "t.eve.more"] {
        tell(&format!("ringer-agents.{machine}"), &[list(60, &agent("claude-1"))]);
    }
    let payloads = [
        "nonsense".to_owned(),
        "[".repeat(100_000),
        format!("{{\"holds_s\":60,\"agents\":[{}]}}", "x".repeat(600_000)),
        list(60, &agent("claude-1")).replace("60", "-1"),
    ];
    tell("ringer-agents.t.eve", &payloads);
    let agents = [
        &agent("claude-1"),
        &agent("a\\u001b[31mb"),
        &agent("").replace("claude", &"\\u001b]0;x".repeat(900)),
        &long,
        &agent("claude-2").replace("working", "\\u0000"),
        &agent("claude-3").replace("\"since_ms\":0", "\"since_ms\":9223372036854775807"),
    ]
    .map(String::as_str)
    .join(",");
    tell("ringer-agents.t.eve", &[list(60, &agents).replacen("\"sent_ms\":", "\"sent_ms\":-", 1)]);
    laptop.until_lists("eve", &[("claude-1@eve.t", "working"), ("claude-3@eve.t", "working")]);
    assert_eq!(MachineAgents::all(&laptop.machine.home()).len(), 1);
    // More agents than a list may have.
    tell("ringer-agents.t.eve", &[list(60, &many.join(","))]);
    until("the list is as long as it may be", || {
        laptop.lists("eve").is_some_and(|told| told.agents.len() == 256 && told.unlisted == 2_000 - 256)
    });
    assert_eq!(laptop.status().state, LinkState::Connected);
}

#[test]
fn a_list_is_valid_as_long_as_stated_and_cannot_be_forged() {
    let server = NatsServer::of_team(TEAM);
    let mut laptop = Member::new(&server, "laptop", true);
    laptop.start();
    laptop.until_connected();
    let eve = NATS_USERS.into_iter().find(|user| user.machine == "eve").expect("a user");
    let tell = |machine: &str| {
        let subject = format!("ringer-agents.{TEAM}.{machine}");
        raw::run(raw::publish_core(&server.url(), Some(eve.seed), &subject, &[list(2, &agent("claude-1"))]));
    };
    tell("box");
    // It is valid for two seconds only: a test that stalls for longer would not see it.
    until_within(RECOVERY_TIMEOUT, "eve is listed", || {
        tell("eve");
        laptop.states("eve") == [("claude-1@eve.t".to_owned(), "working".to_owned())]
    });
    assert!(laptop.lists("box").is_none(), "the server does not let it");
    until("it has gone without a word", || laptop.lists("eve").is_some_and(|told| !told.is_connected));
}

#[test]
fn a_hundred_machines_that_connect_together_know_each_other() {
    const MACHINES: usize = 100;
    let server = NatsServer::start();
    let mut members: Vec<Member> =
        (0..MACHINES).map(|number| Member::new(&server, format!("m{number}").leak(), false)).collect();
    for member in &mut members {
        member.set_agent("claude-1", None, AgentState::Working);
        member.start();
    }
    for member in &members {
        member.until_connected();
    }
    let listed = |member: &Member| {
        let told = MachineAgents::all(&member.machine.home());
        told.iter().filter(|told| told.is_connected && told.agents.len() == 1).count()
    };
    for member in &members {
        until_within(RECOVERY_TIMEOUT, "all others are listed", || listed(member) == MACHINES - 1);
    }
}
