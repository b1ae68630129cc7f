//! Authentication and permissions at a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use test_support::{NATS_USERS, NatsServer};

use crate::raw;
use crate::team::{Member, TEAM};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(name)
}

#[test]
fn the_permissions_of_the_docs_are_enough() {
    let mut server = NatsServer::of_team(TEAM);
    let mut members = ["laptop", "box"].map(|name| Member::new(&server, name, true));
    for member in &mut members {
        member.start();
        member.until_connected();
    }
    let mut texts = members[0].write("hello", 20);
    members[1].until_has(&members[0], &texts);
    // Everything that a machine does after the server was emptied is allowed, too.
    server.kill();
    server.wipe();
    texts.extend(members[0].write("meanwhile", 5));
    server.run();
    members[1].until_has_all(&members[0], &texts);
}

#[test]
fn a_machine_cannot_publish_as_another_one() {
    let server = NatsServer::of_team(TEAM);
    let mut laptop = Member::new(&server, "laptop", true);
    laptop.start();
    laptop.until_connected();
    let eve = NATS_USERS.into_iter().find(|user| user.machine == "eve").expect("a user");
    let publish = |subject: &str| {
        let payloads = [raw::message(1, "default", "I am the box")];
        raw::run(raw::publish(&server.url(), Some(eve.seed), subject, &payloads))
    };
    publish("ringer.t.eve.global.default").expect("as itself");
    publish("ringer.t.box.global.default").expect_err("as another machine");
    let (eve, vm) = (Member::new(&server, "eve", true), Member::new(&server, "box", true));
    laptop.until_has(&eve, &["I am the box".to_owned()]);
    assert!(laptop.has_of(&vm).is_empty());
}

#[test]
fn a_renamed_machine_learns_that_the_name_is_taken() {
    let server = NatsServer::of_team(TEAM);
    let mut eve = Member::new(&server, "eve", true);
    eve.change(|_, team| team.machine = Some("laptop".to_owned()));
    eve.start();
    let why = eve.until_failed();
    assert!(why.to_lowercase().contains("permissions violation"), "{why}");
}

#[test]
fn a_taken_name_is_reported() {
    let server = NatsServer::start();
    let _laptop = Member::connected(&server, "laptop");
    let mut other = Member::new(&server, "laptop", false);
    other.start();
    let why = other.until_failed();
    assert!(why.contains("another machine is called laptop in this team"), "{why}");
}

#[test]
fn a_machine_without_credentials_is_rejected() {
    let server = NatsServer::of_team(TEAM);
    let mut stranger = Member::new(&server, "laptop", false);
    stranger.start();
    let why = stranger.until_failed();
    assert!(why.contains("authorization violation"), "{why}");
}

#[test]
fn credentials_readable_by_others_are_rejected() {
    let server = NatsServer::of_team(TEAM);
    let mut laptop = Member::new(&server, "laptop", true);
    let path = laptop.machine.home().path().join("nkey");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a file");
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.contains("chmod 600") && !why.contains("SUA"), "{why}");
}

#[test]
fn a_machine_authenticates_with_a_jwt() {
    let operator = fs::read_to_string(fixture("operator.conf")).expect("a file");
    let server = NatsServer::with_settings(&operator);
    let mut laptop = Member::new(&server, "laptop", false);
    let path = laptop.machine.home().path().join("laptop.creds");
    fs::copy(fixture("laptop.creds"), &path).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file");
    laptop.change(|_, team| team.credentials = Some(path));
    laptop.start();
    laptop.until_connected();
}

#[test]
fn the_certificate_of_the_server_is_verified() {
    let settings = format!(
        "tls {{ cert_file: {:?}, key_file: {:?} }}\n",
        fixture("server.pem"),
        fixture("server-key.pem")
    );
    let server = NatsServer::with_settings(&settings);
    let mut laptop = Member::new(&server, "laptop", false);
    let url = server.url().replace("nats://", "tls://");
    laptop.change(|_, team| (team.urls, team.ca) = (vec![url], Some(fixture("ca.pem"))));
    laptop.start();
    laptop.until_connected();
    laptop.stop();
    laptop.change(|_, team| team.ca = None);
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.to_lowercase().contains("tls") || why.contains("certificate"), "{why}");
}
