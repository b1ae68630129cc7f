//! The messages of a machine keep their order, whatever happens to connections.

use async_nats::jetstream::stream::{Config, RetentionPolicy};
use test_support::{NatsServer, until};

use crate::raw::{self, OpenRequest};
use crate::team::Member;
use crate::wire::Wire;

const LAPTOP: &str = "ringer-laptop";

/// Returns a machine that is connected through a proxy.
fn connected_over(wire: &Wire, server: &NatsServer, name: &'static str) -> Member {
    let mut member = Member::new(server, name, false);
    member.change(|_, team| team.urls = vec![wire.url()]);
    member.start();
    member.until_connected();
    member
}

/// Waits until the laptop has this number of unacknowledged messages.
fn until_on_their_way(server: &NatsServer, count: usize) {
    until("they are on their way", || {
        raw::run(raw::consumer_info(&server.url(), LAPTOP)).num_ack_pending == count
    });
}

/// Cuts the connection of the laptop while messages to it are in flight.
fn cut_on_the_way(server: &NatsServer) {
    let wire = Wire::to(server.port());
    let (laptop, vm) = (connected_over(&wire, server, "laptop"), Member::connected(server, "vm"));
    let mut texts = vm.write("before", 5);
    laptop.until_has(&vm, &texts);
    for round in 0..2 {
        until_on_their_way(server, 0);
        wire.swallow();
        texts.extend(vm.write(&format!("on its way {round}"), 20));
        until_on_their_way(server, 20);
        wire.cut();
        texts.extend(vm.write(&format!("later {round}"), 20));
        laptop.until_failed();
        wire.mend();
        laptop.until_has(&vm, &texts);
    }
}

#[test]
fn messages_in_flight_at_a_cut_arrive_before_later_ones() {
    cut_on_the_way(&NatsServer::start());
}

#[test]
fn a_stream_that_removes_read_messages_keeps_the_order() {
    let server = NatsServer::start();
    let settings = Config { retention: RetentionPolicy::Interest, ..Config::default() };
    raw::run(raw::make_stream_with(&server.url(), settings)).expect("a stream");
    cut_on_the_way(&server);
}

/// As between a leaf node and its hub, while the machine stays connected to the leaf node.
#[test]
fn messages_lost_on_a_live_connection_arrive_before_later_ones() {
    let server = NatsServer::start();
    let wire = Wire::to(server.port());
    let (laptop, vm) = (connected_over(&wire, &server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = vm.write("before", 5);
    laptop.until_has(&vm, &texts);
    // In the first round more messages follow at once; in the second the server redelivers the lost ones.
    for round in 0..2 {
        until_on_their_way(&server, 0);
        let swallowed = wire.swallowed();
        wire.swallow();
        let lost = vm.write(&format!("{} lost {round}", "x".repeat(100)), 5);
        until_on_their_way(&server, 5);
        until("all of it is swallowed", || wire.swallowed() - swallowed > 5 * lost[0].len());
        wire.mend();
        texts.extend(lost);
        if round == 0 {
            texts.extend(vm.write("later", 5));
        }
        laptop.until_has(&vm, &texts);
    }
}

#[test]
fn messages_fetched_by_another_process_arrive_before_later_ones() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    laptop.stop();
    let mut texts = vm.write("taken", 5);
    let taken = raw::run(raw::take(&server.url(), LAPTOP, 5));
    assert_eq!(taken, 5, "another process took them, and did not acknowledge them");
    texts.extend(vm.write("later", 20));
    laptop.start();
    laptop.until_has(&vm, &texts);
}

#[test]
fn messages_sent_to_a_half_open_connection_arrive_before_later_ones() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    laptop.stop();
    let _half_open = OpenRequest::of(&server.url(), LAPTOP);
    laptop.start();
    laptop.until_connected();
    let texts = vm.write("after that", 20);
    laptop.until_has(&vm, &texts);
}

#[test]
fn a_receiver_restored_from_a_copy_gets_lost_messages_again() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = vm.write("before", 5);
    laptop.until_has(&vm, &texts);
    let copy = laptop.machine.copy();
    texts.extend(vm.write("after", 5));
    laptop.until_has(&vm, &texts);
    laptop.stop();
    laptop.machine.restore(&copy);
    texts.extend(vm.write("anew", 5));
    laptop.start();
    laptop.until_has(&vm, &texts);
}

#[test]
fn a_receiver_restored_from_an_old_copy_gets_lost_messages_again() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let copy = laptop.machine.copy();
    // More than is read by number.
    let mut texts = vm.write("after", 2_100);
    laptop.until_has(&vm, &texts);
    laptop.stop();
    laptop.machine.restore(&copy);
    texts.extend(vm.write("anew", 5));
    laptop.start();
    laptop.until_has(&vm, &texts);
}
