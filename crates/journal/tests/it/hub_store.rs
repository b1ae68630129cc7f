//! The hub's store: what is written down in one transaction, and what comes back.

use ringer_core::attention::{
    Cause, MAX_TRAIL_STEPS, PreviousState, Record, Trail, TrailStep, UndoItem, UndoKind, UnreadReason,
};
use ringer_core::engine::{FeatureValue, SavedState};
use ringer_core::message::{Place, ShownKind, WorkspaceId};
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_core::{Kind, MessageId};
use ringer_journal::{
    CatchUp, Cursor, DeadLetter, HubChanges, HubStore, PendingDelivery, PlaceFlag, ReadPosition, ShownPopup,
};
use rusqlite::params;

use crate::home::{TestHome, append};

pub(crate) mod kept;

/// An id, with a message or without.
fn id(number: u64) -> MessageId {
    MessageId::new(number, [0; 10])
}

/// A step that differs from others by its number.
fn cause(number: i64) -> Cause {
    Cause::CannotShow { why: number.to_string() }
}

/// A notification with so many steps behind it.
fn record(id: &MessageId, is_read: bool, steps: std::ops::Range<i64>) -> Record {
    let place = Place::workspace(WorkspaceId::new("w"));
    let mut record = Record::new(id.clone(), place, Kind::Status, "x", 7);
    (record.is_read, record.is_resolved) = (is_read, is_read);
    steps.for_each(|number| record.trail.add(number, cause(number)));
    record
}

fn settle(store: &mut HubStore, transaction: &HubChanges) {
    store.commit(transaction).expect("settled");
}

fn remember(store: &mut HubStore, records: Vec<Record>) {
    settle(store, &HubChanges { records, ..HubChanges::default() });
}

fn outgoing(id: &MessageId, channel: &str, delivery: &str) -> PendingDelivery {
    PendingDelivery { id: id.clone(), channel: channel.to_owned(), delivery: delivery.to_owned() }
}

fn popup(key: &str, id: &MessageId, number: u32) -> ShownPopup {
    ShownPopup {
        key: key.to_owned(),
        id: id.clone(),
        number,
        server: "dunst".to_owned(),
        offer: Some("{}".to_owned()),
    }
}

fn dead(id: &MessageId, unix_ms: i64) -> DeadLetter {
    DeadLetter { id: id.clone(), target: "ntfy".to_owned(), why: "no route".to_owned(), unix_ms }
}

fn flag(reason: &str, place: &str) -> PlaceFlag {
    PlaceFlag { reason: reason.to_owned(), place: place.to_owned() }
}

/// A change of a notification by a command.
fn undo_item(number: i64, id: &MessageId) -> UndoItem {
    let before = PreviousState::Notification(Box::new(record(id, false, 0..0)));
    UndoItem { number, command: "c".into(), kind: UndoKind::Clear, before, has_ended: false }
}

/// The saved undo items.
fn undo_items(store: &mut HubStore) -> Vec<UndoItem> {
    store.states().expect("readable").iter().filter_map(SavedState::read).collect()
}

/// A mute of an agent that holds until it is ended.
fn mute(agent: &str) -> RequestedMute {
    let target = MuteTarget::Agent(agent.to_owned());
    RequestedMute { target, until_unix_ms: None, allow: vec![ShownKind::Question] }
}

/// A place in the journal, in the middle of catching up.
fn taken(seq: i64) -> ReadPosition {
    let cursor = Cursor { generation: Some("0a".to_owned()), seq, id: Some(id(2).to_string()) };
    ReadPosition { cursor, catch_up: Some(CatchUp { newest: id(1).to_string(), until: 9 }) }
}

/// Everything at once, for two messages.
fn everything(one: &MessageId, two: &MessageId) -> HubChanges {
    HubChanges {
        position: Some(taken(2)),
        undecided: vec![one.clone()],
        decided: vec![two.clone()],
        records: vec![record(one, false, 0..2)],
        forgotten: vec![two.clone()],
        steps: vec![(two.clone(), TrailStep { unix_ms: 1, cause: Cause::Expired })],
        started: vec![outgoing(one, "desktop", "{}")],
        finished: vec![(two.clone(), "sound".to_owned())],
        shown: vec![popup("w", one, 1)],
        withdrawn: vec![two.clone()],
        dead_letters: vec![dead(one, 5)],
        flags_set: vec![flag("manual", "w")],
        flags_cleared: vec![flag("panel", "w")],
        states: vec![undo_item(2, two).saved(), UndoItem::removal(1), mute("ci").saved()],
    }
}

/// Every row of every table that a transaction changes.
fn rows(test: &TestHome) -> Vec<String> {
    let connection = test.memory_connection();
    let mut all = Vec::new();
    for (table, columns) in [
        ("hub_position", "seq"),
        ("undecided", "id"),
        ("notification", "id, is_read"),
        ("trail", "id, step, text"),
        ("outbox", "id, channel"),
        ("popup", "key, id, number, server"),
        ("dead_letter", "id, target, why, ts"),
        ("flag", "reason, place"),
        ("state", "feature, key, about"),
    ] {
        let query = format!("SELECT '{table}: ' || concat_ws(' ', {columns}) FROM {table} ORDER BY 1");
        let mut statement = connection.prepare(&query).expect("a table");
        let found = statement.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        all.extend(found.map(|row| row.expect("a row")));
    }
    all
}

#[test]
fn a_settlement_is_all_or_nothing() {
    for table in [
        "hub_position",
        "undecided",
        "notification",
        "trail",
        "outbox",
        "dead_letter",
        "popup",
        "flag",
        "state",
    ] {
        let test = TestHome::new();
        let mut store = test.memory();
        let (one, two) = (id(1), id(2));
        let before = HubChanges {
            undecided: vec![two.clone()],
            records: vec![record(&two, false, 0..1)],
            started: vec![outgoing(&two, "sound", "{}")],
            shown: vec![popup("v", &two, 2)],
            flags_set: vec![flag("panel", "w")],
            states: vec![undo_item(1, &one).saved()],
            ..HubChanges::default()
        };
        settle(&mut store, &before);
        let written = rows(&test);
        let refuse =
            format!("CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END");
        test.memory_connection().execute_batch(&refuse).unwrap();
        assert!(store.commit(&everything(&one, &two)).is_err(), "{table}");
        assert_eq!(rows(&test), written, "{table} could not be written, and something else was");
        test.memory_connection().execute_batch("DROP TRIGGER no").unwrap();
        settle(&mut store, &everything(&one, &two));
        assert_eq!(store.position().unwrap(), Some(taken(2)));
        assert!(!rows(&test).iter().any(|row| row.contains("sound") || row.starts_with("popup: v")));
        assert_eq!(store.flags().unwrap(), [flag("manual", "w")]);
        assert_eq!(undo_items(&mut store), [undo_item(2, &two)]);
    }
}

#[test]
fn what_commands_changed_comes_back_in_its_order_and_as_it_last_was() {
    let test = TestHome::new();
    let mut store = test.memory();
    let place = Place::workspace(WorkspaceId::new("w"));
    let reason =
        UndoItem { before: PreviousState::Reason(UnreadReason::Panel, place), ..undo_item(1, &id(1)) };
    let states = [undo_item(3, &id(2)), reason.clone(), undo_item(2, &id(1))].map(|item| item.saved());
    settle(&mut store, &HubChanges { states: states.into(), ..HubChanges::default() });
    let ended = UndoItem { has_ended: true, ..undo_item(2, &id(1)) };
    settle(&mut store, &HubChanges { states: vec![ended.saved()], ..HubChanges::default() });
    let damaged = "INSERT INTO state (feature, key, value) VALUES ('undo', '9', 'no item')";
    test.memory_connection().execute(damaged, []).unwrap();
    assert_eq!(undo_items(&mut store), [reason, ended, undo_item(3, &id(2))]);
}

#[test]
fn an_empty_settlement_is_known_as_such() {
    assert!(HubChanges::default().is_empty());
    assert!(!everything(&id(1), &id(2)).is_empty());
}

#[test]
fn the_undecided_are_entered_once_and_struck_out_one_by_one() {
    let test = TestHome::new();
    let mut store = test.memory();
    let undecided = |ids: &[u64]| HubChanges {
        undecided: ids.iter().copied().map(id).collect(),
        ..HubChanges::default()
    };
    settle(&mut store, &undecided(&[3, 1]));
    settle(&mut store, &undecided(&[1, 2]));
    assert_eq!(store.undecided().unwrap(), [id(1), id(2), id(3)]);
    settle(&mut store, &HubChanges { decided: vec![id(2), id(9)], ..HubChanges::default() });
    assert_eq!(store.undecided().unwrap(), [id(1), id(3)]);
}

/// What the journal has of them, in its own order.
#[test]
fn messages_are_found_by_their_ids() {
    let test = TestHome::new();
    let mut journal = test.open();
    let ids = ["one", "two", "three"].map(|body| append(&mut journal, body));
    let found = journal.messages(&[ids[2].clone(), id(9), ids[0].clone()]).unwrap();
    assert_eq!(found.into_iter().map(|message| message.draft.body).collect::<Vec<_>>(), ["one", "three"]);
}

#[test]
fn a_notification_comes_back_as_it_last_was_with_its_whole_trail() {
    let test = TestHome::new();
    let mut store = test.memory();
    let message = id(1);
    let first = record(&message, false, 0..3);
    remember(&mut store, vec![first.clone()]);
    assert_eq!(store.notification(message.as_str()).unwrap(), Some(first));
    // Only what is new of the trail is given.
    let mut changed = record(&message, true, 3..5);
    changed.body = "richer".into();
    remember(&mut store, vec![changed.clone()]);
    let trail = record(&message, true, 0..5).trail;
    assert_eq!(
        store.notification(message.as_str()).unwrap(),
        Some(Record { trail: trail.clone(), ..changed.clone() })
    );
    assert_eq!(store.trail(message.as_str()).unwrap(), trail);
    let bare = Record { trail: Trail::default(), ..changed };
    assert_eq!(store.notifications(1).unwrap().records, [bare], "it counts as read now");
    assert_eq!(store.notifications(0).unwrap().records, []);
    assert_eq!(store.notification("nobody").unwrap(), None);
}

#[test]
fn a_long_trail_is_written_as_it_is_kept() {
    let test = TestHome::new();
    let mut store = test.memory();
    let most = i64::try_from(MAX_TRAIL_STEPS).unwrap();
    // Up to the brim, over it by one, and far over it; each goes on from the one before.
    for (from, steps) in [(0, most - 1), (most - 1, most), (most, most + 1), (most + 1, most + 40)] {
        remember(&mut store, vec![record(&id(1), false, from..steps)]);
        let whole = record(&id(1), false, 0..steps);
        assert_eq!(store.notification(id(1).as_str()).unwrap(), Some(whole), "{steps} steps");
        let rows: i64 =
            test.memory_connection().query_row("SELECT count(*) FROM trail", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, steps.min(most));
    }
}

#[test]
fn steps_of_what_is_no_notification_follow_each_other_up_to_the_cap() {
    let test = TestHome::new();
    let mut store = test.memory();
    for number in 0..70 {
        let step = TrailStep { unix_ms: number, cause: cause(number) };
        let other = TrailStep { unix_ms: 0, cause: Cause::Expired };
        let mut steps = vec![(id(1), step)];
        steps.extend((number == 0).then(|| (id(2), other)));
        settle(&mut store, &HubChanges { steps, ..HubChanges::default() });
    }
    let trail = store.trail(id(1).as_str()).unwrap();
    let kept: Vec<i64> = trail.steps().map(|step| step.unix_ms).collect();
    assert_eq!(kept, (0..32).chain(38..70).collect::<Vec<_>>(), "the beginning and the end");
    assert_eq!(store.trail(id(2).as_str()).unwrap().steps().len(), 1);
}

#[test]
fn what_is_off_the_list_can_still_be_asked_about() {
    let test = TestHome::new();
    let mut store = test.memory();
    remember(&mut store, vec![record(&id(1), false, 0..2), record(&id(2), false, 0..1)]);
    settle(&mut store, &HubChanges { forgotten: vec![id(1)], ..HubChanges::default() });
    assert_eq!(store.notification(id(1).as_str()).unwrap(), None);
    assert_eq!(store.trail(id(1).as_str()).unwrap().steps().len(), 2);
    assert!(store.notification(id(2).as_str()).unwrap().is_some());
}

#[test]
fn all_unread_and_the_newest_of_the_read_are_remembered_oldest_first() {
    let test = TestHome::new();
    let mut store = test.memory();
    // In the order they came, whatever their ids say.
    let ids: Vec<MessageId> = (0..6).rev().map(id).collect();
    let read = [true, false, true, true, false, true];
    for at in 0..6 {
        remember(&mut store, vec![record(&ids[at], read[at], 0..2)]);
    }
    let mut check = |most_read: usize, expect: &[usize]| {
        let found = store.notifications(most_read).unwrap();
        let at = |record: &Record| ids.iter().position(|id| *id == record.id).unwrap();
        assert_eq!(found.records.iter().map(at).collect::<Vec<_>>(), expect, "{most_read} read ones");
        assert!(found.records.iter().all(|record| record.trail.steps().len() == 0), "trails stay there");
    };
    check(0, &[1, 4]);
    check(2, &[1, 3, 4, 5]);
    check(usize::MAX, &[0, 1, 2, 3, 4, 5]);
    let damage = "UPDATE notification SET record = 'dance' WHERE id = ?1";
    assert_eq!(test.memory_connection().execute(damage, [ids[1].as_str()]), Ok(1));
    check(0, &[4]);
    assert_eq!(store.notification(ids[1].as_str()).unwrap(), None);
}

#[test]
fn a_delivery_is_under_way_until_that_way_is_settled_or_the_whole_is_withdrawn() {
    let test = TestHome::new();
    let mut store = test.memory();
    let all = [
        outgoing(&id(1), "desktop", "old"),
        outgoing(&id(1), "sound", "s"),
        outgoing(&id(2), "desktop", "d"),
        outgoing(&id(2), "sound", "t"),
    ];
    settle(&mut store, &HubChanges { started: all.to_vec(), ..HubChanges::default() });
    let again = outgoing(&id(1), "desktop", "new");
    settle(&mut store, &HubChanges { started: vec![again.clone()], ..HubChanges::default() });
    assert_eq!(store.outbox().unwrap(), [again.clone(), all[1].clone(), all[2].clone(), all[3].clone()]);
    let settled = vec![(id(2), "sound".to_owned()), (id(3), "desktop".to_owned())];
    settle(&mut store, &HubChanges { finished: settled, ..HubChanges::default() });
    assert_eq!(store.outbox().unwrap(), [again, all[1].clone(), all[2].clone()]);
    settle(&mut store, &HubChanges { withdrawn: vec![id(1)], ..HubChanges::default() });
    assert_eq!(store.outbox().unwrap(), [all[2].clone()]);
}

#[test]
fn a_popup_takes_the_place_of_the_last_one_of_its_key_and_is_forgotten_when_withdrawn() {
    let test = TestHome::new();
    let mut store = test.memory();
    let shown = vec![popup("a", &id(1), 1), popup("b", &id(2), 2), popup("a", &id(3), 3)];
    settle(&mut store, &HubChanges { shown, ..HubChanges::default() });
    assert_eq!(store.popups().unwrap(), [popup("b", &id(2), 2), popup("a", &id(3), 3)]);
    settle(&mut store, &HubChanges { withdrawn: vec![id(1), id(2)], ..HubChanges::default() });
    assert_eq!(store.popups().unwrap(), [popup("a", &id(3), 3)]);
}

#[test]
fn of_the_dead_letters_the_last_hundred_are_kept_newest_first() {
    let test = TestHome::new();
    let mut store = test.memory();
    let letters: Vec<DeadLetter> = (0..103).map(|number| dead(&id(1), number)).collect();
    settle(&mut store, &HubChanges { dead_letters: letters[..60].to_vec(), ..HubChanges::default() });
    settle(&mut store, &HubChanges { dead_letters: letters[60..].to_vec(), ..HubChanges::default() });
    let expect: Vec<DeadLetter> = letters[3..].iter().rev().cloned().collect();
    assert_eq!(store.dead_letters().unwrap(), expect);
}

#[test]
fn rows_of_no_id_are_passed_over() {
    let test = TestHome::new();
    let mut store = test.memory();
    let connection = test.memory_connection();
    for change in [
        "INSERT INTO outbox VALUES (?1, 'desktop', '{}')",
        "INSERT INTO popup (key, id, number, server) VALUES ('k', ?1, 1, 's')",
        "INSERT INTO dead_letter (id, target, why, ts) VALUES (?1, 't', 'w', 1)",
    ] {
        connection.execute(change, params!["two\nlines"]).unwrap();
    }
    assert!(store.outbox().unwrap().is_empty());
    assert!(store.popups().unwrap().is_empty());
    assert!(store.dead_letters().unwrap().is_empty());
}

#[test]
fn a_value_is_kept_until_it_is_replaced_or_removed() {
    let test = TestHome::new();
    let change = |states| settle(&mut test.memory(), &HubChanges { states, ..HubChanges::default() });
    let (one, two) = (mute("one"), mute("two"));
    let ending = RequestedMute { until_unix_ms: Some(9), ..one.clone() };
    change(vec![one.saved(), two.saved()]);
    change(vec![one.target.removal(), ending.saved(), two.target.removal()]);
    assert_eq!(test.memory().states().unwrap(), [ending.saved()], "the last change of each counts");
}
