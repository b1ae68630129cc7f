//! Messages that an operator removes from the stream before all machines have read them.

use test_support::{NatsServer, until};

use crate::raw;
use crate::team::Member;

/// The log line about removed messages.
const REMOVED: &str = "messages were removed from the stream before they had come";

fn until_published(member: &Member) {
    until("the server has all", || {
        member.machine.journal().export_lag("nats:t").expect("a journal") == Some(0)
    });
}

#[test]
fn messages_removed_unread_are_republished() {
    let server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = laptop.write("read", 20);
    vm.until_has_all(&laptop, &texts);
    vm.stop();
    texts.extend(laptop.write("removed", 50));
    until_published(&laptop);
    raw::run(raw::purge(&server.url()));
    vm.start();
    vm.until_has_all(&laptop, &texts);
    assert!(vm.has_logged(REMOVED));
    // Messages after the removed ones do not hide the gap.
    vm.stop();
    texts.extend(laptop.write("removed, too", 50));
    until_published(&laptop);
    raw::run(raw::purge(&server.url()));
    texts.extend(laptop.write("after", 5));
    until_published(&laptop);
    vm.start();
    vm.until_has_all(&laptop, &texts);
    let own = vm.write("back", 5);
    laptop.until_has_all(&vm, &own);
}

#[test]
fn machines_that_connect_later_republish_removed_messages() {
    let server = NatsServer::start();
    let mut members = ["laptop", "vm", "box"].map(|name| Member::connected(&server, name));
    let [laptop, vm, other] = &mut members;
    vm.stop();
    let mut texts = laptop.write("removed", 20);
    let others = other.write("removed", 20);
    until_published(laptop);
    until_published(other);
    laptop.until_has_all(other, &others);
    other.until_has_all(laptop, &texts);
    // It is disconnected, and the requests of the others are removed.
    other.stop();
    raw::run(raw::purge(&server.url()));
    vm.start();
    vm.until_has_all(laptop, &texts);
    texts.extend(laptop.write("unread by the box", 5));
    vm.until_has_all(laptop, &texts);
    raw::run(raw::purge(&server.url()));
    other.start();
    other.until_has_all(laptop, &texts);
    vm.until_has_all(other, &others);
}

#[test]
fn a_machine_that_read_nothing_gets_removed_messages() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    let before = laptop.write("before the other machine joined", 3);
    until_published(&laptop);
    let mut vm = Member::connected(&server, "vm");
    vm.stop();
    let texts = laptop.write("removed", 20);
    until_published(&laptop);
    raw::run(raw::purge(&server.url()));
    vm.start();
    until("all of them come", || {
        let has = vm.has_of(&laptop);
        texts.iter().all(|text| has.contains(text))
    });
    // Clocks may differ by a day, so slightly older messages may also arrive.
    assert!(vm.has_of(&laptop).len() <= before.len() + texts.len());
}

#[test]
fn messages_removed_after_reading_are_not_republished() {
    let server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let texts = laptop.write("read", 20);
    vm.until_has_all(&laptop, &texts);
    // Each machine reads its own messages, too.
    for consumer in ["ringer-laptop", "ringer-vm"] {
        until("all is read", || raw::run(raw::unread(&server.url(), consumer)) == 0);
    }
    vm.stop();
    raw::run(raw::purge(&server.url()));
    vm.start();
    vm.until_connected();
    let more = laptop.write("more", 1);
    vm.until_has_all(&laptop, &[texts, more].concat());
    assert!(!vm.has_logged(REMOVED));
    assert_eq!(raw::run(raw::count(&server.url())), 1, "the stream has only what was written since then");
}

#[test]
fn a_machine_that_only_writes_does_not_miss_its_own_messages() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let texts = laptop.write("written", 20);
    vm.until_has_all(&laptop, &texts);
    until_published(&laptop);
    for consumer in ["ringer-laptop", "ringer-vm"] {
        until("all is read", || raw::run(raw::unread(&server.url(), consumer)) == 0);
    }
    laptop.stop();
    raw::run(raw::purge(&server.url()));
    laptop.start();
    laptop.until_connected();
    let more = laptop.write("more", 1);
    vm.until_has_all(&laptop, &[texts, more].concat());
    assert!(!laptop.has_logged(REMOVED));
    assert_eq!(raw::run(raw::count(&server.url())), 1, "the stream has only what was written since then");
}

#[test]
fn messages_removed_from_the_middle_stay_removed_and_block_nothing() {
    let server = NatsServer::start();
    let mut members = ["laptop", "vm", "box"].map(|name| Member::connected(&server, name));
    let [laptop, vm, other] = &mut members;
    // Only messages removed from the beginning of the stream are requested again.
    let first = other.write("first in the stream", 1);
    vm.until_has_all(other, &first);
    let others = laptop.write("read", 3);
    vm.until_has_all(laptop, &others);
    for consumer in ["ringer-laptop", "ringer-vm", "ringer-box"] {
        until("all is read", || raw::run(raw::unread(&server.url(), consumer)) == 0);
    }
    vm.stop();
    laptop.write("removed by subject", 10);
    until_published(laptop);
    raw::run(raw::purge_machine(&server.url(), "laptop"));
    let second = other.write("after that", 1);
    until_published(other);
    laptop.write("removed by number", 1);
    until_published(laptop);
    raw::run(raw::remove_last(&server.url()));
    let more = laptop.write("after both", 3);
    until_published(laptop);
    vm.start();
    vm.until_has_all(laptop, &[others, more].concat());
    vm.until_has_all(other, &[first, second].concat());
    assert!(!vm.has_logged(REMOVED));
}
