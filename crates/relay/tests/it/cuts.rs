//! A connection that is cut after every frame, a journal from an older copy, a long backlog, three machines, marks.

use ringer_core::message::{Mark, Tag};
use ringer_core::{Draft, MessageId, Scope, Sender};
use ringer_journal::IdSource;
use ringer_relay::{ConnectionEnd, Progress};

use crate::machines::{Machine, connect};

const NEVER: usize = usize::MAX;

fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix} {number}")).collect()
}

/// Returns two machines that are linked.
fn linked() -> [Machine; 2] {
    let machines = [Machine::new("laptop"), Machine::new("box")];
    connect([&machines[0], &machines[1]], NEVER);
    machines
}

#[test]
fn messages_go_both_ways_once_and_in_order() {
    let machines = linked();
    let (own, other) = (texts("laptop", 600), texts("box", 5));
    machines[0].write(own.clone());
    machines[1].write(other.clone());
    let outcome = connect([&machines[0], &machines[1]], NEVER);
    assert!(outcome.ends.iter().all(|end| matches!(end, Ok(ConnectionEnd::Stopped | ConnectionEnd::Closed))));
    assert_eq!(machines[1].texts_of("laptop"), own);
    assert_eq!(machines[0].texts_of("box"), other);
    let again = connect([&machines[0], &machines[1]], NEVER);
    let stored = again.progress.iter().flatten().filter(|made| matches!(made, Progress::Stored { .. }));
    assert_eq!(stored.count(), 0, "nothing comes twice");
}

#[test]
fn a_cut_after_every_frame_loses_and_duplicates_nothing() {
    let machines = linked();
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let mut cut_after = 1;
    // Each connection gets one frame further, and there is always something to send.
    loop {
        let more = (texts(&format!("laptop {cut_after}"), 3), texts(&format!("box {cut_after}"), 2));
        machines[0].write(more.0.clone());
        machines[1].write(more.1.clone());
        own.extend(more.0);
        other.extend(more.1);
        let outcome = connect([&machines[0], &machines[1]], cut_after);
        if outcome.frames < cut_after {
            break;
        }
        cut_after += 1;
    }
    assert!(cut_after > 8, "a connection has {cut_after} frames");
    connect([&machines[0], &machines[1]], NEVER);
    assert_eq!(machines[1].texts_of("laptop"), own);
    assert_eq!(machines[0].texts_of("box"), other);
}

#[test]
fn a_journal_restored_from_a_copy_sends_everything_it_has() {
    let machines = linked();
    machines[1].write(texts("before", 5));
    connect([&machines[0], &machines[1]], NEVER);
    let copy = machines[1].copy();
    machines[1].write(texts("after", 5));
    connect([&machines[0], &machines[1]], NEVER);
    machines[1].restore(&copy);
    machines[1].write(texts("anew", 3));
    connect([&machines[0], &machines[1]], NEVER);
    let expected = [texts("before", 5), texts("after", 5), texts("anew", 3)].concat();
    assert_eq!(machines[0].texts_of("box"), expected, "each once, what was lost there too");
    // The same with more messages than the copy had: the numbers are those of others now.
    machines[1].restore(&copy);
    machines[1].write(texts("once more", 20));
    connect([&machines[0], &machines[1]], NEVER);
    let expected = [expected, texts("once more", 20)].concat();
    assert_eq!(machines[0].texts_of("box"), expected);
}

#[test]
fn a_receiver_restored_from_a_copy_gets_lost_messages_again() {
    let machines = linked();
    machines[1].write(texts("before", 5));
    connect([&machines[0], &machines[1]], NEVER);
    let copy = machines[0].copy();
    machines[1].write(texts("after", 5));
    connect([&machines[0], &machines[1]], NEVER);
    machines[0].restore(&copy);
    machines[1].write(texts("anew", 1));
    connect([&machines[0], &machines[1]], NEVER);
    let expected = [texts("before", 5), texts("after", 5), texts("anew", 1)].concat();
    assert_eq!(machines[0].texts_of("box"), expected);
}

#[test]
fn a_new_journal_starts_from_its_beginning() {
    let machines = linked();
    machines[1].write(texts("before", 5));
    connect([&machines[0], &machines[1]], NEVER);
    machines[1].restore(&[]);
    machines[1].write(texts("anew", 5));
    connect([&machines[0], &machines[1]], NEVER);
    assert_eq!(machines[0].texts_of("box"), [texts("before", 5), texts("anew", 5)].concat());
}

#[test]
fn messages_are_not_forwarded_to_a_third_machine() {
    let machines = [Machine::new("laptop"), Machine::new("box"), Machine::new("other")];
    let [laptop, first, second] = [&machines[0], &machines[1], &machines[2]];
    connect([laptop, first], NEVER);
    connect([laptop, second], NEVER);
    first.write(texts("first", 3));
    second.write(texts("second", 3));
    for _ in 0..2 {
        connect([laptop, first], NEVER);
        connect([laptop, second], NEVER);
    }
    assert_eq!(laptop.texts_of("box"), texts("first", 3));
    assert_eq!(laptop.texts_of("other"), texts("second", 3));
    let all = |machine: &Machine| machine.journal().messages_after(0, usize::MAX).expect("messages").len();
    assert_eq!((all(first), all(second)), (3, 3));
}

/// Marks notifications as read on a machine.
fn mark_read(machine: &Machine, ids: &[&MessageId]) {
    for id in ids {
        let mut mark = Draft::tagged(Scope::global(), Sender::system(), Tag::Mark(Mark::Read), "");
        mark.key = Some(id.to_string());
        machine.journal().append(&mark, &IdSource::now()).expect("it is stored");
    }
}

/// Returns the messages that another machine marked as read here.
fn marked_read_by(machine: &Machine, other: &str) -> Vec<String> {
    let messages = machine.journal().messages_after(0, usize::MAX).expect("messages");
    let marks = messages.into_iter().filter(|message| {
        message.machine.as_deref() == Some(other) && message.draft.tag == Tag::Mark(Mark::Read)
    });
    marks.filter_map(|mark| mark.draft.key).collect()
}

#[test]
fn read_marks_arrive_when_the_other_machine_reconnects() {
    let machines = [Machine::new("laptop"), Machine::new("box"), Machine::new("other")];
    let [laptop, own, third] = [&machines[0], &machines[1], &machines[2]];
    for other in [own, third] {
        connect([laptop, other], NEVER);
    }
    let of_third = third.write(texts("third", 1)).remove(0);
    connect([laptop, third], NEVER);
    let of_laptop = laptop.write(texts("laptop", 1)).remove(0);
    let ids = own.write(texts("box", 2));
    // The second one is not read. One of a third machine may not be marked.
    mark_read(own, &[&ids[0], &of_laptop, &of_third]);
    connect([laptop, own], NEVER);
    assert_eq!(laptop.texts_of("box"), [texts("box", 2), vec![String::new(); 2]].concat());
    assert_eq!(marked_read_by(laptop, "box"), [ids[0].to_string(), of_laptop.to_string()]);
}

/// `RINGER_RELAY_BACKLOG=100000` sends that many; fewer by default, to be quick.
#[test]
fn a_long_backlog_arrives_while_the_other_side_also_sends() {
    let count = std::env::var("RINGER_RELAY_BACKLOG").ok().and_then(|count| count.parse().ok());
    let machines = linked();
    let (own, other) = (texts("laptop", 200), texts("box", count.unwrap_or(3_000)));
    machines[0].write(own.clone());
    machines[1].write(other.clone());
    let begun = std::time::Instant::now();
    let mut connections = 0;
    while machines[0].texts_of("box").len() < other.len() {
        // Cut twice on the way.
        let cut_after = if connections < 2 { 20 } else { NEVER };
        connect([&machines[0], &machines[1]], cut_after);
        connections += 1;
        assert!(connections < 10, "it gets no further");
    }
    println!("{} messages in {:?}, {connections} connections", other.len(), begun.elapsed());
    assert_eq!(machines[0].texts_of("box"), other);
    assert_eq!(machines[1].texts_of("laptop"), own);
}
