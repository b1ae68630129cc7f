//! A team over a real NATS server: what is lost and doubled when the server is killed, emptied, full, or lies.

use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_journal::IdSource;
use test_support::{NatsServer, until, until_within};

use crate::raw;
use crate::team::{Member, RECOVERY_TIMEOUT};
use crate::wire::Wire;

#[test]
fn all_machines_get_messages_once_and_in_order() {
    let server = NatsServer::start();
    let members = ["laptop", "box", "vm"].map(|name| Member::connected(&server, name));
    let texts: Vec<Vec<String>> = members.iter().map(|member| member.write("first", 40)).collect();
    for (at, member) in members.iter().enumerate() {
        for (other_at, other) in members.iter().enumerate().filter(|(other, _)| *other != at) {
            member.until_has(other, &texts[other_at]);
        }
        assert!(member.has_of(member).is_empty(), "what it wrote itself does not come back");
    }
    let status = members[0].status();
    assert_eq!((status.messages, status.refused), (80, 0));
    let waiting = members[0].machine.journal().export_lag("nats:t").expect("a journal");
    assert_eq!(waiting, Some(0));
}

#[test]
fn a_day_offline_is_caught_up() {
    let server = NatsServer::start();
    let (mut laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "box"));
    laptop.stop();
    let missed = vm.write("missed", 700);
    let own = laptop.write("meanwhile", 300);
    laptop.start();
    laptop.until_has(&vm, &missed);
    vm.until_has(&laptop, &own);
}

#[test]
fn a_server_killed_in_a_burst_loses_and_duplicates_nothing() {
    let mut server = NatsServer::start();
    let members = ["laptop", "box"].map(|name| Member::connected(&server, name));
    let mut texts = [Vec::new(), Vec::new()];
    for round in 0..4 {
        for (member, texts) in members.iter().zip(&mut texts) {
            texts.extend(member.write(&format!("round {round}"), 60));
        }
        server.kill();
        for (member, texts) in members.iter().zip(&mut texts) {
            texts.extend(member.write(&format!("without a server {round}"), 5));
        }
        server.run();
    }
    members[0].until_has(&members[1], &texts[1]);
    members[1].until_has(&members[0], &texts[0]);
}

#[test]
fn messages_of_an_emptied_server_are_republished() {
    let mut server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = laptop.write("known", 30);
    vm.until_has_all(&laptop, &texts);
    // The server has acknowledged these, and the other machine has not read them.
    vm.stop();
    texts.extend(laptop.write("unread", 50));
    until("the server has all", || {
        laptop.machine.journal().export_lag("nats:t").expect("a journal") == Some(0)
    });
    server.kill();
    server.wipe();
    texts.extend(laptop.write("meanwhile", 5));
    server.run();
    laptop.until_connected();
    texts.extend(laptop.write("after", 5));
    vm.start();
    vm.until_has_all(&laptop, &texts);
    let own = vm.write("back", 5);
    laptop.until_has_all(&vm, &own);
}

#[test]
fn recent_messages_that_a_server_lost_are_republished() {
    let mut server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = laptop.write("synced", 20);
    vm.until_has_all(&laptop, &texts);
    vm.stop();
    let all_arrived = || laptop.machine.journal().export_lag("nats:t").expect("a journal") == Some(0);
    until("the server has all", all_arrived);
    server.kill();
    let synced = server.directory().join("synced");
    copy(&server.store(), &synced);
    server.run();
    laptop.until_connected();
    texts.extend(laptop.write("acknowledged and not synced", 20));
    until("the server has all", all_arrived);
    server.kill();
    server.wipe();
    copy(&synced, &server.store());
    server.run();
    vm.start();
    vm.until_has_all(&laptop, &texts);
}

#[test]
fn old_messages_that_a_server_lost_are_republished() {
    let mut server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    // Written a week ago, while this machine had no connection.
    let write = |text: &str| {
        let draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, text).expect("a draft");
        let now = IdSource::now();
        let written = now.unix_ms - 7 * 24 * 3_600_000;
        laptop.machine.journal().append_as(&draft, &now.message_id(), written).expect("it is stored");
        text.to_owned()
    };
    let mut texts = vec![write("synced")];
    vm.until_has_all(&laptop, &texts);
    vm.stop();
    let all_arrived = || laptop.machine.journal().export_lag("nats:t").expect("a journal") == Some(0);
    until("the server has all", all_arrived);
    server.kill();
    let synced = server.directory().join("synced");
    copy(&server.store(), &synced);
    server.run();
    texts.push(write("acknowledged and not synced"));
    until_within(RECOVERY_TIMEOUT, "the server has it", all_arrived);
    server.kill();
    server.wipe();
    copy(&synced, &server.store());
    server.run();
    vm.start();
    vm.until_has_all(&laptop, &texts);
}

#[test]
fn machines_that_were_away_get_messages_of_another_stream() {
    let mut server = NatsServer::start();
    let (laptop, mut vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = laptop.write("with its disk", 5);
    vm.until_has_all(&laptop, &texts);
    vm.stop();
    server.kill();
    // The server is started without its disk, creates another stream, and then gets its disk back.
    let disk = server.directory().join("disk");
    std::fs::rename(server.store(), &disk).expect("the disk is away");
    server.run();
    texts.extend(laptop.write("without its disk", 5));
    let all_arrived = || laptop.machine.journal().export_lag("nats:t").expect("a journal") == Some(0);
    until_within(RECOVERY_TIMEOUT, "the server has all", all_arrived);
    // It has never seen the first stream.
    let other = Member::connected(&server, "box");
    let others = other.write("joined without the disk", 5);
    laptop.until_has_all(&other, &others);
    server.kill();
    server.wipe();
    std::fs::rename(&disk, server.store()).expect("the disk is back");
    server.run();
    vm.start();
    vm.until_has_all(&laptop, &texts);
    vm.until_has_all(&other, &others);
}

/// Copies a directory.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp runs").success());
}

#[test]
fn a_disconnected_machine_loses_and_duplicates_nothing() {
    let server = NatsServer::start();
    let wire = Wire::to(server.port());
    let mut laptop = Member::new(&server, "laptop", false);
    laptop.change(|_, team| team.urls = vec![wire.url()]);
    laptop.start();
    laptop.until_connected();
    let vm = Member::connected(&server, "vm");
    let (mut own, mut other) = (laptop.write("before", 10), vm.write("before", 10));
    vm.until_has(&laptop, &own);
    for round in 0..3 {
        wire.swallow();
        own.extend(laptop.write(&format!("swallowed {round}"), 20));
        other.extend(vm.write(&format!("swallowed {round}"), 20));
        wire.cut();
        laptop.until_failed();
        own.extend(laptop.write(&format!("cut {round}"), 5));
        wire.mend();
        laptop.until_connected();
    }
    laptop.until_has(&vm, &other);
    vm.until_has(&laptop, &own);
}

#[test]
fn repeated_and_reordered_messages_are_stored_once() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    let payloads: Vec<String> =
        [3, 1, 2, 3, 1].map(|seq| raw::message(seq, "default", &format!("eve {seq}"))).into();
    raw::run(raw::publish(&server.url(), None, "ringer.t.eve.global.default", &payloads)).expect("published");
    let eve = Member::new(&server, "eve", false);
    laptop.until_has_all(&eve, &["eve 1", "eve 2", "eve 3"].map(str::to_owned));
    // The end of the journal that it says does not keep others out.
    let more = [raw::message(i64::MAX, "default", "last"), raw::message(4, "default", "late")];
    raw::run(raw::publish(&server.url(), None, "ringer.t.eve.global.default", &more)).expect("published");
    laptop.until_has_all(&eve, &["eve 1", "eve 2", "eve 3", "last", "late"].map(str::to_owned));
}

#[test]
fn forbidden_messages_are_refused_and_counted() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    let long = raw::message(4, "default", &"x".repeat(600_000));
    let payloads = [
        raw::message(1, "agent:worker-1", "obey"),
        "nonsense".to_owned(),
        "[".repeat(100_000),
        long,
        raw::message(5, "default", "fine").replace("status", "mark-mute"),
        raw::message(6, "default", "fine"),
    ];
    raw::run(raw::publish(&server.url(), None, "ringer.t.eve.global.default", &payloads)).expect("published");
    let odd = [raw::message(7, "default", "odd")];
    raw::run(raw::publish(&server.url(), None, "ringer.t.e@ve.global.default", &odd)).expect("published");
    let eve = Member::new(&server, "eve", false);
    laptop.until_has(&eve, &["fine".to_owned()]);
    until("all are counted", || laptop.status().refused == 6);
    assert_eq!(laptop.status().state, ringer_relay::LinkState::Connected);
}

#[test]
fn a_full_server_accepts_the_rest_once_it_has_room() {
    let mut server = NatsServer::start();
    let (laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let mut texts = laptop.write("fits", 3);
    vm.until_has_all(&laptop, &texts);
    server.set_limit(Some(20_000));
    server.run();
    laptop.until_connected();
    texts.extend(laptop.write("does not fit", 200));
    let why = laptop.until_failed();
    assert!(why.contains("a message was not taken") && why.contains("resources"), "{why}");
    server.set_limit(None);
    server.run();
    vm.until_has_all(&laptop, &texts);
}

#[test]
fn a_server_whose_disk_is_full_loses_nothing() {
    if !test_support::can_mount() {
        return;
    }
    let mut server = NatsServer::start();
    let (laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    server.set_disk(Some(1 << 20));
    server.run();
    laptop.until_connected();
    let text = "x".repeat(20_000);
    let texts = laptop.write(&text, 200);
    laptop.until_failed();
    // It starts with an empty disk.
    server.set_disk(None);
    server.run();
    vm.until_has_all(&laptop, &texts);
}

#[test]
fn a_new_journal_is_published_and_messages_from_before_the_team_stay_local() {
    let server = NatsServer::start();
    let laptop = Member::connected(&server, "laptop");
    let mut vm = Member::new(&server, "vm", false);
    vm.write("before the team", 3);
    vm.start();
    vm.until_connected();
    let mut texts = vm.write("in the team", 3);
    laptop.until_has(&vm, &texts);
    vm.stop();
    vm.machine.restore(&[]);
    texts.extend(vm.write("anew", 3));
    vm.start();
    laptop.until_has(&vm, &texts);
}

#[test]
fn bulk_marks_that_expand_to_thousands_block_nothing() {
    const NOTICES: usize = 500;
    let server = NatsServer::start();
    let mut members = ["laptop", "vm"].map(|name| Member::new(&server, name, false));
    for member in &mut members {
        member.change(|_, team| team.share_marks = true);
        member.start();
        member.until_connected();
    }
    let [laptop, vm] = &mut members;
    laptop.until_has(vm, &vm.write("notice", NOTICES));
    // All of them are read at once, and exceed the client's limit of unacknowledged publications.
    laptop.stop();
    let mut mark = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
    mark.key = Some("all".to_owned());
    let mut journal = laptop.machine.journal();
    for _ in 0..12 {
        journal.append(&mark, &IdSource::now()).expect("it is stored");
    }
    let after = laptop.write("after the marks", 1);
    laptop.start();
    until_within(RECOVERY_TIMEOUT, "what follows comes", || vm.has_of(laptop).contains(&after[0]));
    assert!(vm.has_of(laptop).len() > NOTICES, "a mark on each has come");
}

#[test]
fn a_team_removed_while_connected_stays_removed() {
    let server = NatsServer::start();
    let (laptop, vm) = (Member::connected(&server, "laptop"), Member::connected(&server, "vm"));
    let texts = laptop.write("before", 5);
    vm.until_has(&laptop, &texts);
    laptop.forget_team();
    laptop.write("after", 1);
    until_within(RECOVERY_TIMEOUT, "the connection ends", || laptop.has_logged("t was removed"));
}
