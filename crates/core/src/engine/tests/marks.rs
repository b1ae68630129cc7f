//! Marks on many notifications, applied in pieces.

use proptest::prelude::*;

use super::*;

const PLACES: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];

fn record(number: u64, surface: Option<&str>, is_read: bool) -> Record {
    let place = Place { workspace: WorkspaceId::new("w"), surface: surface.map(SurfaceId::new) };
    let record = Record::new(id(number), place, Kind::Complete, "x", 0);
    Record {
        is_read,
        is_resolved: is_read,
        expires_ms: number.is_multiple_of(3).then_some(50).into(),
        ..record
    }
}

fn changes(orders: &[Order]) -> Vec<String> {
    let is_change = |order: &&Order| matches!(order, Order::SaveRecord { .. } | Order::DeleteRecord(_));
    orders.iter().filter(is_change).map(|order| format!("{order:?}")).collect()
}

#[test]
fn what_comes_during_a_mark_is_not_meant_by_it() {
    let mut engine = engine(&[]);
    engine.limit_marks(1);
    engine.restore(at(0), (0..3).map(|number| record(number, None, false)), []);
    assert_eq!(changes(&engine.handle(at(1), Event::ClearAll)).len(), 1);
    engine.handle(at(2), message(7, "a", "needs you"));
    while engine.has_unfinished_marks() {
        assert!(changes(&engine.continue_marks(at(3))).len() <= 1);
    }
    let left: Vec<_> = engine.attention().store().newest().map(|record| record.id.clone()).collect();
    assert_eq!(left, [id(7)]);
}

#[test]
fn a_mark_waits_for_the_one_before_it() {
    let mut engine = engine(&[]);
    engine.limit_marks(2);
    engine.restore(at(0), (0..3).map(|number| record(number, None, false)), []);
    engine.handle(at(1), Event::ReadAll);
    assert!(changes(&engine.handle(at(2), Event::ClearAll)).is_empty());
    // The rest of the first, then the beginning of the second.
    assert_eq!(changes(&engine.continue_marks(at(3))).len(), 2);
    assert_eq!(changes(&engine.continue_marks(at(4))).len(), 2);
    assert!(engine.attention().store().is_empty() && !engine.has_unfinished_marks());
}

proptest! {
    #[test]
    fn in_pieces_a_mark_does_the_same(
        records in prop::collection::vec((0usize..4, any::<bool>()), 0..30),
        which in 0usize..6,
        most in 1usize..7,
    ) {
        let event = match which {
            0 => Event::ReadAll,
            1 => Event::ClearAll,
            2 => Event::RemoveRead,
            3 => Event::Read(Place::workspace(WorkspaceId::new("w"))),
            4 => Event::Clear(place("a")),
            _ => Event::Tick,
        };
        let (mut whole, mut pieces) = (engine(&[]), engine(&[]));
        pieces.limit_marks(most);
        for engine in [&mut whole, &mut pieces] {
            let records = (0..).zip(&records);
            let records = records.map(|(number, (place, is_read))| record(number, PLACES[*place], *is_read));
            engine.restore(at(0), records, [(UnreadReason::Manual, place("b"))]);
        }
        // After some of them have expired, if nothing else happens.
        let now = at(if which == 5 { 60 } else { 1 });
        let expected = changes(&whole.handle(now, event.clone()));
        let mut found = changes(&pieces.handle(now, event));
        prop_assert!(found.len() <= most);
        while pieces.has_unfinished_marks() || pieces.next_deadline(now).is_some_and(|due| due <= now.mono) {
            let piece = if pieces.has_unfinished_marks() {
                pieces.continue_marks(now)
            } else {
                pieces.handle(now, Event::Tick)
            };
            prop_assert!((1..=most).contains(&changes(&piece).len()));
            found.extend(changes(&piece));
        }
        prop_assert_eq!(found, expected);
        let listed = |engine: &Engine| engine.attention().store().newest().cloned().collect::<Vec<_>>();
        prop_assert_eq!(listed(&pieces), listed(&whole));
        let manual = |engine: &Engine| engine.attention().places(UnreadReason::Manual);
        prop_assert_eq!(manual(&pieces), manual(&whole));
        prop_assert_eq!(&pieces.lit_rings, &whole.lit_rings);
        prop_assert_eq!(&pieces.badges, &whole.badges);
    }
}
