//! The messages of a machine keep their order, whatever becomes of connections on the way.

use async_nats::jetstream::stream::{Config, RetentionPolicy};
use test_support::{NatsServer, until};

use crate::raw::{self, OpenRequest};
use crate::team::Member;
use crate::wire::Wire;

const LAPTOP: &str = "ringer-laptop";

/// A machine that is connected over a wire.
fn connected_over(wire: &Wire, server: &NatsServer, name: &'static str) -> Member {
    let mut member = Member::new(server, name, false);
    member.change(|_, team| team.urls = vec![wire.url()]);
    member.start();
    member.until_connected();
    member
}

/// Waits until the server has sent so many messages to the laptop that this has not acknowledged.
fn until_on_their_way(server: &NatsServer, count: usize) {
    until("they are on their way", || {
        raw::run(raw::consumer_info(&server.url(), LAPTOP)).num_ack_pending == count
    });
}

/// Cuts the connection of the laptop while messages are on their way to it.
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
fn what_was_on_its_way_when_a_connection_was_cut_comes_before_what_follows() {
    cut_on_the_way(&NatsServer::start());
}

#[test]
fn a_stream_that_removes_what_all_have_read_keeps_the_order() {
    let server = NatsServer::start();
    let settings = Config { retention: RetentionPolicy::Interest, ..Config::default() };
    raw::run(raw::make_stream_with(&server.url(), settings)).expect("a stream");
    cut_on_the_way(&server);
}

/// As between a leaf node and its hub, while the machine stays connected to the leaf node.
#[test]
fn what_was_lost_on_a_connection_that_stays_comes_before_what_follows() {
    let server = NatsServer::start();
    let wire = Wire::to(server.port());
    let (laptop, vm) = (connected_over(&wire, &server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = vm.write("before", 5);
    laptop.until_has(&vm, &texts);
    // In the first round something follows at once; in the second one the server delivers again what was lost.
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
fn what_another_process_took_comes_before_what_follows() {
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
fn what_goes_to_a_connection_that_is_half_open_comes_before_what_follows() {
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
fn a_receiver_from_an_older_copy_gets_again_what_it_lost() {
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
fn a_receiver_from_a_much_older_copy_gets_again_what_it_lost() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let copy = laptop.machine.copy();
    // More than what is read without the consumer.
    let mut texts = vm.write("after", 2_100);
    laptop.until_has(&vm, &texts);
    laptop.stop();
    laptop.machine.restore(&copy);
    texts.extend(vm.write("anew", 5));
    laptop.start();
    laptop.until_has(&vm, &texts);
}
