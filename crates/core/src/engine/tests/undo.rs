//! Undoing the person's last command.

use proptest::prelude::*;

use super::*;
use crate::attention::{ResolvedBy, UndoItem, UndoKind};
use crate::message::Mark;

const PLACES: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];

fn record(number: u64, surface: Option<&str>, is_read: bool) -> Record {
    let place = Place { workspace: WorkspaceId::new("w"), surface: surface.map(SurfaceId::new) };
    let record = Record::new(id(number), place, Kind::Complete, "x", 0);
    Record { is_read, is_resolved: is_read, key: Some(format!("key {number}").into()), ..record }
}

fn undo() -> Event {
    mark(Mark::Undo, "all", "")
}

/// The notifications by their numbers, and which of them are unread.
fn state(engine: &Engine) -> Vec<(u64, bool, bool)> {
    let state = |record: &Record| (number(&record.id), record.is_read, record.is_resolved);
    let mut records: Vec<_> = engine.attention().store().newest().map(state).collect();
    records.sort_unstable();
    records
}

/// Handles the event, and continues until all marks are applied.
fn handle(engine: &mut Engine, now: Now, event: Event) -> Vec<Order> {
    let mut orders = engine.handle(now, event);
    while engine.has_unfinished_marks() {
        orders.extend(engine.continue_marks(now));
    }
    orders
}

#[test]
fn each_goes_one_command_further_back() {
    let mut engine = engine(&[]);
    engine.restore(at(0), (1..4).map(|number| record(number, None, false)), []);
    handle(&mut engine, at(1), mark(Mark::Read, id(1).as_str(), "one"));
    handle(&mut engine, at(2), mark(Mark::Read, id(2).as_str(), "two"));
    handle(&mut engine, at(2), mark(Mark::Read, id(3).as_str(), "two"));
    handle(&mut engine, at(3), mark(Mark::Clear, "all", "three"));
    assert_eq!((state(&engine), engine.undo_log().last()), (vec![], Some(UndoKind::Clear)));
    handle(&mut engine, at(4), undo());
    assert_eq!(state(&engine), [(1, true, true), (2, true, true), (3, true, true)]);
    assert_eq!(engine.undo_log().last(), Some(UndoKind::Read));
    handle(&mut engine, at(5), undo());
    assert_eq!(state(&engine), [(1, true, true), (2, false, false), (3, false, false)]);
    handle(&mut engine, at(6), undo());
    assert_eq!(state(&engine), [(1, false, false), (2, false, false), (3, false, false)]);
    assert_eq!(engine.undo_log().last(), None);
    assert_eq!(handle(&mut engine, at(7), undo()), []);
}

#[test]
fn looking_and_what_is_no_command_are_not_taken_back() {
    let mut engine = engine(&[]);
    engine.restore(at(0), (1..4).map(|number| record(number, Some("a"), false)), []);
    engine.handle(at(1), looks(&["a"]));
    engine.handle(at(2), mark(Mark::Read, "all", ""));
    engine.handle(at(3), Event::Remove(id(1)));
    assert_eq!(engine.undo_log().last(), None);
}

#[test]
fn what_has_ended_since_does_not_come_back() {
    for (command, rest) in [(Mark::Read, vec![(1, true, true)]), (Mark::Clear, vec![])] {
        let mut engine = engine(&[]);
        let expires_ms = Some(10);
        let records =
            [record(1, None, false), Record { expires_ms: expires_ms.into(), ..record(2, None, false) }];
        engine.restore(at(0), records, []);
        engine.restore(at(0), [record(3, None, false)], []);
        engine.handle(at(1), mark(command, "all", "c"));
        engine.resolve_key(at(2), None, "key 1", ResolvedBy::Replaced, &mut Vec::new());
        handle(&mut engine, at(20), undo());
        let mut expected = rest;
        if command == Mark::Read {
            expected.push((2, true, true));
        }
        expected.push((3, false, false));
        assert_eq!(state(&engine), expected, "{command:?}");
        assert_eq!(engine.undo_log().last(), None);
    }
}

#[test]
fn what_a_newer_one_took_the_place_of_comes_back_as_read() {
    for command in [Mark::Read, Mark::Clear] {
        let mut engine = engine(&[]);
        engine.restore(at(0), [record(1, Some("a"), false)], []);
        engine.handle(at(1), mark(command, "all", "c"));
        engine.handle(at(2), message(2, "a", "needs you"));
        handle(&mut engine, at(3), undo());
        assert_eq!(state(&engine), [(1, true, true), (2, false, false)], "{command:?}");
    }
}

#[test]
fn a_repository_that_is_forgotten_is_forgotten_here_too() {
    let mut engine = engine(&[]);
    let of = |number, scope: &str| Record { scope: scope.into(), ..record(number, None, false) };
    engine.restore(at(0), [of(1, "one"), of(2, "two")], []);
    engine.handle(at(1), mark(Mark::Clear, "all", "c"));
    assert_eq!(engine.forget_undo("one"), [Order::SaveState(Box::new(UndoItem::removal(1)))]);
    handle(&mut engine, at(2), undo());
    assert_eq!(state(&engine), [(2, false, false)]);
}

proptest! {
    #[test]
    fn afterwards_everything_is_as_before_and_nothing_pops_up(
        records in prop::collection::vec((0usize..4, any::<bool>()), 0..20),
        which in 0usize..8,
        most in 1usize..7,
    ) {
        let command = match which {
            0 => (Mark::Read, "all".to_owned()),
            1 => (Mark::Read, "place:1:w".to_owned()),
            2 => (Mark::Read, "place:1:wb".to_owned()),
            3 => (Mark::Read, id(0).to_string()),
            4 => (Mark::Clear, "all".to_owned()),
            5 => (Mark::Clear, "place:1:wb".to_owned()),
            6 => (Mark::Clear, id(0).to_string()),
            _ => (Mark::Clear, "all-read".to_owned()),
        };
        let mut engine = engine(&[]);
        engine.limit_marks(most);
        // At most one notification of a surface is unread.
        let mut taken = HashSet::new();
        let records = (0..).zip(records).map(|(number, (place, is_read))| {
            let is_read = is_read || (place > 0 && !taken.insert(place));
            record(number, PLACES[place], is_read)
        });
        let records: Vec<Record> = records.collect();
        engine.restore(at(0), records, [(UnreadReason::Manual, place("b"))]);
        let before = (state(&engine), engine.lit_rings.clone(), engine.badges.clone());
        let reasons: Vec<_> = engine.attention().reasons().collect();
        let saved = handle(&mut engine, at(1), mark(command.0, &command.1, "c"));
        // Another process continues with the saved items.
        let saved = saved.iter().filter_map(|order| match order {
            Order::SaveState(state) => Some((**state).clone()),
            _ => None,
        });
        engine.undo_log = UndoLog::default();
        engine.restore_state(at(1), saved.collect::<Vec<_>>());
        let orders = handle(&mut engine, at(2), undo());
        prop_assert!(!orders.iter().any(|order| matches!(order, Order::Deliver(_) | Order::Flash(_))));
        prop_assert_eq!((state(&engine), engine.lit_rings.clone(), engine.badges.clone()), before);
        prop_assert_eq!(engine.attention().reasons().collect::<Vec<_>>(), reasons);
        prop_assert_eq!(engine.undo_log().items().count(), 0);
    }
}
