//! A team over more than one server: leaf nodes, clusters, addresses that do not answer.

use test_support::{NatsServer, until, until_within};

use crate::raw;
use crate::team::{Member, RECOVERY_TIMEOUT, TEAM};
use crate::wire::Wire;

/// An address at which no server listens.
const DEAD: &str = "nats://127.0.0.1:1";

#[test]
fn a_disconnected_site_loses_and_duplicates_nothing() {
    let (hub, leaf_port) = NatsServer::hub("hub");
    let wire = Wire::to(leaf_port);
    let mut leaf = NatsServer::leaf_of_team(wire.port(), TEAM, Some("hub"));
    let vm = Member::connected(&hub, "vm");
    let mut laptop = Member::new(&leaf, "laptop", true);
    laptop.change(|_, team| team.domain = Some("hub".to_owned()));
    laptop.start();
    laptop.until_connected();
    let (mut own, mut other) = (laptop.write("first", 20), vm.write("first", 20));
    laptop.until_has(&vm, &other);
    vm.until_has(&laptop, &own);
    // The leaf node loses its hub, and the machines stay connected to their servers.
    wire.cut();
    own.extend(laptop.write("cut off", 20));
    other.extend(vm.write("cut off", 20));
    laptop.until_failed();
    wire.mend();
    laptop.until_has(&vm, &other);
    vm.until_has(&laptop, &own);
    // The leaf node itself ends and comes back.
    leaf.kill();
    own.extend(laptop.write("without a leaf node", 20));
    other.extend(vm.write("without a leaf node", 20));
    leaf.run();
    laptop.until_has(&vm, &other);
    vm.until_has(&laptop, &own);
}

#[test]
fn an_idle_machine_at_a_leaf_node_notices_that_the_hub_is_lost() {
    let (hub, leaf_port) = NatsServer::hub("hub");
    let wire = Wire::to(leaf_port);
    let leaf = NatsServer::leaf_of_team(wire.port(), TEAM, Some("hub"));
    let vm = Member::connected(&hub, "vm");
    let mut laptop = Member::new(&leaf, "laptop", true);
    laptop.change(|_, team| team.domain = Some("hub".to_owned()));
    laptop.start();
    laptop.until_connected();
    wire.cut();
    let texts = vm.write("cut off", 20);
    wire.mend();
    laptop.until_has(&vm, &texts);
}

#[test]
fn a_missing_domain_of_a_leaf_node_is_reported() {
    let (_hub, leaf_port) = NatsServer::hub("hub");
    let leaf = NatsServer::leaf_of_team(leaf_port, TEAM, None);
    let mut laptop = Member::new(&leaf, "laptop", true);
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.contains("domain"), "{why}");
}

#[test]
fn an_address_that_does_not_answer_is_skipped() {
    let server = NatsServer::start();
    let vm = Member::connected(&server, "vm");
    let mut laptop = Member::new(&server, "laptop", false);
    laptop.change(|_, team| team.urls = vec![DEAD.to_owned(), server.url(), DEAD.to_owned()]);
    // The first address is chosen at random.
    for round in 0..4 {
        laptop.start();
        until("the address is told", || laptop.status().address == Some(server.url()));
        laptop.write(&format!("round {round}"), 1);
        laptop.stop();
    }
    let texts: Vec<String> = (0..4).map(|round| format!("laptop round {round} 0")).collect();
    laptop.start();
    vm.until_has(&laptop, &texts);
}

#[test]
fn all_failed_addresses_are_reported() {
    let server = NatsServer::start();
    let mut laptop = Member::new(&server, "laptop", false);
    let other = "nats://127.0.0.1:2".to_owned();
    laptop.change(|_, team| team.urls = vec![DEAD.to_owned(), other.clone()]);
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.contains(DEAD) && why.contains(&other), "{why}");
}

#[test]
fn a_cluster_that_loses_a_server_loses_and_duplicates_nothing() {
    let mut servers = NatsServer::cluster();
    let urls = servers.each_ref().map(NatsServer::url);
    until_within(RECOVERY_TIMEOUT, "the cluster takes a stream", || {
        raw::run(raw::make_stream(&urls[0], 3)).is_ok()
    });
    let mut members = ["laptop", "vm"].map(|name| Member::new(&servers[0], name, false));
    for member in &mut members {
        member.change(|_, team| team.urls = urls.to_vec());
        member.start();
        member.until_connected();
    }
    let mut texts = members.each_ref().map(|member| member.write("all are there", 20));
    for round in 0..2 {
        // The server that the first machine uses ends.
        let address = members[0].status().address;
        let at = urls.iter().position(|url| Some(url) == address.as_ref()).expect("an address");
        servers[at].kill();
        for (member, texts) in members.iter().zip(&mut texts) {
            texts.extend(member.write(&format!("one is gone {round}"), 20));
        }
        members[0].until_has_all(&members[1], &texts[1]);
        members[1].until_has_all(&members[0], &texts[0]);
        assert_ne!(members[0].status().address, address);
        servers[at].run();
    }
}

/// Waits until a stream of the team stores what is published at a server, here or at its hub or leaf node.
fn until_stored(server: &NatsServer) {
    let take = || raw::run(raw::publish(&server.url(), None, "ringer.t.x.link.want", &["{}".to_owned()]));
    until("a stream takes messages", || take().is_ok());
}

#[test]
fn no_stream_is_created_at_a_leaf_node_if_its_hub_has_one() {
    let (hub, port) = NatsServer::hub("hub");
    let vm = Member::connected(&hub, "vm");
    let leaf = NatsServer::leaf_with_streams(port, "site");
    until_stored(&leaf);
    let mut laptop = Member::new(&leaf, "laptop", false);
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.contains("domain = \"hub\""), "{why}");
    laptop.stop();
    laptop.change(|_, team| team.domain = Some("hub".to_owned()));
    laptop.start();
    laptop.until_connected();
    laptop.until_has(&vm, &vm.write("after that", 3));
}

#[test]
fn a_missing_domain_is_reported_if_the_leaf_node_has_a_stream() {
    let (hub, port) = NatsServer::hub_without_domain();
    let _vm = Member::connected(&hub, "vm");
    let leaf = NatsServer::leaf_with_streams(port, "site");
    until_stored(&leaf);
    let mut laptop = Member::new(&leaf, "laptop", false);
    laptop.start();
    let why = laptop.until_failed();
    assert!(why.contains("set a domain in the `jetstream` settings"), "{why}");
}

#[test]
fn duplicate_streams_are_reported_to_every_joining_machine() {
    let (hub, port) = NatsServer::hub("hub");
    let leaf = NatsServer::leaf_with_streams(port, "site");
    // As when the leaf node was cut off while the first machine joined there.
    for server in [&hub, &leaf] {
        raw::run(raw::make_stream(&server.url(), 1)).expect("a stream");
    }
    let vm = Member::new(&hub, "vm", false);
    until("the machine hears of both", || {
        let why = vm.join().err().map(|error| error.to_string()).unwrap_or_default();
        why.contains("2 streams ringer-t") && why.contains("hub, site")
    });
    let laptop = Member::new(&leaf, "laptop", false);
    let why = laptop.join().expect_err("two streams").to_string();
    assert!(why.contains("2 streams ringer-t") && why.contains("hub, site"), "{why}");
}
