//! Machines of a team, each with the hub's relay extension, and a real NATS server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringer_config::{RelayLink, TeamLink};
use ringer_relay::{
    LinkState, LinkStatus, RelaySetup, RelayStatus, Relays, TeamSetup, forget_team, join_team,
};
use test_support::{NATS_USERS, NatsServer, until_within};

use crate::machines::Machine;

/// Time limit for recovery: a killed server is retried after some seconds, or a minute after many failures, and messages in
/// flight are redelivered after ten.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) const TEAM: &str = "t";

/// A machine of a team.
pub(crate) struct Member {
    pub(crate) machine: Machine,
    name: &'static str,
    relays: Option<Relays>,
    link: RelayLink,
    log: Arc<Mutex<Vec<String>>>,
}

impl Member {
    /// Returns a configured machine that is not connected yet. With credentials if it is one of the users of the server.
    pub(crate) fn new(server: &NatsServer, name: &'static str, with_credentials: bool) -> Self {
        let machine = Machine::new(name);
        drop(machine.journal());
        let user = NATS_USERS.into_iter().find(|user| user.machine == name).filter(|_| with_credentials);
        let credentials = user.map(|user| {
            let path = machine.home().path().join("nkey");
            fs::write(&path, user.seed).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a private file");
            path
        });
        let team = TeamLink {
            urls: vec![server.url()],
            domain: None,
            machine: Some(name.to_owned()),
            credentials,
            ca: None,
            share_marks: false,
        };
        let link = RelayLink {
            name: TEAM.to_owned(),
            command: Vec::new(),
            ssh: None,
            may_answer: false,
            may_reach_lead: false,
            team: Some(team),
        };
        Self { machine, name, relays: None, link, log: Arc::default() }
    }

    /// Returns a connected machine.
    pub(crate) fn connected(server: &NatsServer, name: &'static str) -> Self {
        let mut member = Self::new(server, name, false);
        member.start();
        member.until_connected();
        member
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&mut RelayLink, &mut TeamLink)) {
        let mut team = self.link.team.take().expect("a team");
        change(&mut self.link, &mut team);
        self.link.team = Some(team);
    }

    pub(crate) fn start(&mut self) {
        // What was said when it last ran does not count. At first there is nothing.
        let _ = fs::remove_file(self.machine.home().path().join("relay-status.json"));
        let log = Arc::clone(&self.log);
        let mut relays = Relays::start(RelaySetup {
            home: self.machine.home(),
            program: "1.0".to_owned(),
            give_answer: None,
            log: Box::new(move |line| log.lock().expect("no panic").push(line)),
        });
        relays.set_links(vec![self.link.clone()]);
        self.relays = Some(relays);
    }

    /// Returns true if a line containing this text was logged.
    pub(crate) fn has_logged(&self, part: &str) -> bool {
        self.log.lock().expect("no panic").iter().any(|line| line.contains(part))
    }

    /// Forgets the team, as if its person had removed it and the relay part did not know yet.
    pub(crate) fn forget_team(&self) {
        let home = self.machine.home();
        let setup = TeamSetup::of(&home, &self.link).expect("a team");
        forget_team(&setup, &mut self.machine.journal()).expect("it is forgotten");
    }

    /// Joins the team, as `ringer relay add nats` does.
    pub(crate) fn join(&self) -> Result<String, ringer_relay::Error> {
        join_team(&TeamSetup::of(&self.machine.home(), &self.link).expect("a team"))
    }

    /// Disconnects it, as if its hub had ended.
    pub(crate) fn stop(&mut self) {
        self.relays = None;
    }

    pub(crate) fn status(&self) -> LinkStatus {
        let status = RelayStatus::read_last(&self.machine.home());
        status.and_then(|status| status.link(TEAM).cloned()).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn until_connected(&self) {
        until_within(RECOVERY_TIMEOUT, "the machine is connected", || {
            self.status().state == LinkState::Connected
        });
    }

    /// Waits until it is disconnected. Returns the reason.
    #[track_caller]
    pub(crate) fn until_failed(&self) -> String {
        until_within(RECOVERY_TIMEOUT, "the machine is not connected", || {
            self.status().state == LinkState::Failed
        });
        self.status().why.unwrap_or_default()
    }

    /// Writes `count` messages. Returns their texts.
    pub(crate) fn write(&self, prefix: &str, count: usize) -> Vec<String> {
        let texts: Vec<String> =
            (0..count).map(|number| format!("{} {prefix} {number}", self.name)).collect();
        self.machine.write(texts.clone());
        texts
    }

    pub(crate) fn has_of(&self, other: &Self) -> Vec<String> {
        self.machine.texts_of(&format!("{}.{TEAM}", other.name))
    }

    /// Waits until it has exactly these messages of another machine, each once and in order.
    #[track_caller]
    pub(crate) fn until_has(&self, other: &Self, texts: &[String]) {
        self.until_has_all(other, texts);
        assert_eq!(self.has_of(other), texts, "in order");
    }

    /// The same in any order: messages that a server lost are republished after newer ones.
    #[track_caller]
    pub(crate) fn until_has_all(&self, other: &Self, texts: &[String]) {
        let lacks = || {
            let has = self.has_of(other);
            texts.iter().any(|text| !has.contains(text))
        };
        let what = format!("{} has all {} of {}", self.name, texts.len(), other.name);
        until_within(RECOVERY_TIMEOUT, &what, || !lacks());
        let mut has = self.has_of(other);
        assert_eq!(has.len(), texts.len(), "each is there once");
        has.sort_unstable();
        let mut expected = texts.to_vec();
        expected.sort_unstable();
        assert_eq!(has, expected);
    }
}
