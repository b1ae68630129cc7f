//! The store's rules, and a recount of its indexes.

use super::*;
use crate::message::{IDLE_PROMPT, Kind, PERMISSION_PROMPT, SurfaceId};
use proptest::prelude::*;

fn id(number: u64) -> MessageId {
    MessageId::new(number, [0; 10])
}

fn pane(workspace: &str, surface: &str) -> Place {
    Place::surface(WorkspaceId::new(workspace), SurfaceId::new(surface))
}

fn whole(workspace: &str) -> Place {
    Place::workspace(WorkspaceId::new(workspace))
}

fn record(number: u64, place: Place) -> Record {
    Record::new(id(number), place, Kind::Status, format!("{number}"), 0)
}

fn question(number: u64, place: Place) -> Record {
    let open_question = Some(QuestionId::new(number, 0));
    Record { open_question, kind: Kind::Question, ..record(number, place) }
}

fn of_session(number: u64, place: Place, kind: Kind, category: Option<&str>) -> Record {
    let (category, key) = (category.map(Into::into), Some(format!("episode:a:{number}").into()));
    Record { sender: "a".into(), kind, category, key, ..record(number, place) }
}

#[test]
fn an_agents_prompt_stays_open_until_the_agent_goes_on() {
    let mut store = NotificationStore::default();
    store.add(of_session(1, pane("w", "a"), Kind::Waiting, Some(PERMISSION_PROMPT)), 0);
    store.add(of_session(2, pane("w", "a"), Kind::Question, None), 0);
    assert_eq!(store.total_unread(), 2, "neither supersedes the other");
    assert_eq!(store.add(record(3, pane("w", "a")), 0).superseded, []);
    store.mark_read(&pane("w", "a"), 0, &ReadReason::Looked);
    store.mark_read(&whole("w"), 0, &ReadReason::All);
    assert_eq!((store.total_unread(), store.needs_person().count()), (0, 2), "read, and still needed");
    assert_eq!(store.trim(0), 1, "what is open stays");
    assert!(store.resolve(&id(1), 0, ResolvedBy::WentOn) && !store.resolve(&id(1), 0, ResolvedBy::WentOn));
    assert!(store.resolve(&id(2), 0, ResolvedBy::Interrupted));
    assert_eq!((store.needs_person().count(), store.trim(0)), (0, 2));
}

#[test]
fn a_name_that_is_shown_names_the_one_that_waits() {
    let mut store = NotificationStore::default();
    let of = |record: Record, sender: &str, label: &str| Record {
        sender: sender.into(),
        label: Some(label.into()),
        key: None,
        ..record
    };
    store.add(of(question(1, pane("w", "a")), "claude-1", "api/auth"), 0);
    store.add(of(record(2, pane("w", "b")), "claude-1", "api/auth"), 0);
    store.add(of(record(3, pane("x", "c")), "codex-9", "web"), 0);
    let far =
        Record { machine: Some("box".into()), ..of(record(4, pane("y", "d")), "claude-7@box", "infra") };
    store.add(far, 0);
    let check = |store: &NotificationStore, text: &str, numbers: &[u64]| {
        let expected = IdMatch::of(numbers.iter().map(|number| id(*number)).collect());
        assert_eq!(store.named(text), expected, "{text}");
    };
    check(&store, "api/auth", &[1]);
    check(&store, "claude-1", &[1]);
    check(&store, "web", &[3]);
    check(&store, "infra@box", &[4]);
    check(&store, "box", &[4]);
    check(&store, "api", &[1]);
    check(&store, "claude", &[4, 1]);
    check(&store, "nothing", &[]);
    check(&store, "last", &[4]);
    store.add(of(record(5, pane("x", "e")), "gemini-2", "web"), 0);
    check(&store, "web", &[5, 3]);
    check(&store, "allow", &[]);
}

#[test]
fn what_no_agent_waits_for_ends_when_it_is_read() {
    let check = |record: Record, by: ReadReason, is_resolved: bool| {
        let mut store = NotificationStore::default();
        store.add(record, 0);
        store.mark_read(&pane("w", "a"), 0, &by);
        let read = store.get(&id(1)).unwrap();
        assert_eq!((read.is_read, read.is_resolved), (true, is_resolved), "{:?} {by:?}", read.kind);
    };
    for kind in [Kind::Complete, Kind::Stuck, Kind::Error, Kind::Status] {
        check(of_session(1, pane("w", "a"), kind, None), ReadReason::Looked, true);
        check(Record { kind, ..record(1, pane("w", "a")) }, ReadReason::Looked, true);
    }
    check(of_session(1, pane("w", "a"), Kind::Waiting, Some(IDLE_PROMPT)), ReadReason::Looked, true);
    // A prompt that a script sent: a look is no answer, a command is.
    let waiting = || Record { kind: Kind::Waiting, ..record(1, pane("w", "a")) };
    check(waiting(), ReadReason::Looked, false);
    check(waiting(), ReadReason::Place, true);
    check(question(1, pane("w", "a")), ReadReason::Place, false);
    check(question(1, pane("w", "a")), ReadReason::Answered, true);
}

#[test]
fn that_an_agent_waits_does_not_hide_how_its_turn_ended() {
    let mut store = NotificationStore::default();
    store.add(of_session(1, pane("w", "a"), Kind::Complete, None), 0);
    let idle = of_session(2, pane("w", "a"), Kind::Waiting, Some(IDLE_PROMPT));
    assert_eq!(store.add(idle, 0).superseded, []);
    let next = of_session(3, pane("w", "a"), Kind::Complete, None);
    assert_eq!(store.add(next, 0).superseded, [id(1), id(2)]);
}

#[test]
fn one_whose_time_is_over_is_found() {
    let mut store = NotificationStore::default();
    for (number, expires_ms) in [(1, Some(30)), (2, Some(10)), (3, None)] {
        store.add(Record { expires_ms: expires_ms.into(), ..record(number, whole("w")) }, 0);
    }
    assert_eq!((store.next_expiry(), store.expired(9, 5)), (Some(10), vec![]));
    assert_eq!(store.expired(30, 5), [id(2), id(1)]);
    assert_eq!(store.expired(30, 1), [id(2)]);
    store.mark(&id(2), true, 0, &ReadReason::Person);
    assert_eq!(store.next_expiry(), Some(30), "what is over does not expire");
}

#[test]
fn a_newer_one_supersedes_on_its_surface_only() {
    let mut store = NotificationStore::default();
    store.add(record(1, pane("w", "a")), 0);
    assert_eq!(store.add(record(2, pane("w", "b")), 0).superseded, []);
    assert_eq!(store.add(record(3, pane("w", "a")), 0).superseded, [id(1)]);
    assert_eq!((store.total_unread(), store.unread_of(&WorkspaceId::new("w"))), (2, 2));
    let old = store.get(&id(1)).unwrap();
    assert!(old.is_read && old.trail.steps().any(|step| step.cause.to_string().contains("superseded")));
}

#[test]
fn what_was_marked_unread_by_hand_is_superseded_too() {
    let mut store = NotificationStore::default();
    for number in 1..=3 {
        store.add(record(number, pane("w", "a")), 0);
    }
    store.mark(&id(1), false, 0, &ReadReason::Person);
    assert_eq!(store.total_unread(), 2);
    assert_eq!(store.add(record(4, pane("w", "a")), 0).superseded, [id(3), id(1)]);
    assert_eq!(store.total_unread(), 1);
}

#[test]
fn an_open_question_stays_until_it_is_answered() {
    let mut store = NotificationStore::default();
    store.add(question(1, pane("w", "a")), 0);
    assert_eq!(store.add(record(2, pane("w", "a")), 0).superseded, []);
    assert_eq!(store.add(record(3, pane("w", "a")), 0).superseded, [id(2)]);
    assert_eq!(store.total_unread(), 2);
    assert_eq!(store.close_question(&QuestionId::new(1, 0), 0, &ReadReason::Answered), Some(id(1)));
    assert_eq!(store.close_question(&QuestionId::new(1, 0), 0, &ReadReason::Answered), None);
    assert_eq!(store.total_unread(), 1);
}

#[test]
fn the_question_of_a_read_notification_is_closed_too() {
    let mut store = NotificationStore::default();
    store.add(question(1, pane("w", "a")), 0);
    store.mark(&id(1), true, 0, &ReadReason::Answered);
    assert_eq!(store.close_question(&QuestionId::new(1, 0), 0, &ReadReason::Answered), Some(id(1)));
    assert_eq!(store.get(&id(1)).unwrap().open_question, None);
}

#[test]
fn without_a_surface_each_counts() {
    let mut store = NotificationStore::default();
    for number in 0..3 {
        store.add(record(number, whole("w")), 0);
    }
    assert_eq!(store.unread_of(&WorkspaceId::new("w")), 3);
    assert!(store.has_unread(&whole("w")) && !store.has_unread(&pane("w", "a")));
}

#[test]
fn the_same_id_twice_is_one() {
    let mut store = NotificationStore::default();
    assert!(store.add(record(1, whole("w")), 0).is_new);
    assert!(!store.add(record(1, whole("v")), 0).is_new);
    assert_eq!(store.len(), 1);
}

#[test]
fn opening_a_pane_reads_that_pane_and_a_workspace_all_of_it() {
    let mut store = NotificationStore::default();
    for (number, place) in [(1, pane("w", "a")), (2, pane("w", "b")), (3, whole("w")), (4, pane("v", "a"))] {
        store.add(record(number, place), 0);
    }
    assert_eq!(store.mark_read(&pane("w", "a"), 0, &ReadReason::Looked), [id(1)]);
    assert_eq!(store.mark_read(&whole("w"), 0, &ReadReason::Looked), [id(2), id(3)]);
    assert_eq!(store.mark_read(&whole("v"), 0, &ReadReason::All), [id(4)]);
    assert!(
        store.mark(&id(4), false, 0, &ReadReason::Person)
            && !store.mark(&id(4), false, 0, &ReadReason::Person)
    );
    assert_eq!(store.total_unread(), 1);
}

#[test]
fn removing_the_latest_brings_back_the_one_before() {
    let mut store = NotificationStore::default();
    store.add(record(1, pane("w", "a")), 0);
    store.add(record(2, pane("w", "b")), 0);
    let workspace = WorkspaceId::new("w");
    assert_eq!(store.latest(&workspace).unwrap().id, id(2));
    assert_eq!(store.remove(&id(2)).unwrap().id, id(2));
    assert_eq!(store.latest(&workspace).unwrap().id, id(1));
    assert_eq!(store.clear(&whole("w")).len(), 1);
    assert!(store.latest(&workspace).is_none() && store.is_empty() && store.index.workspaces.is_empty());
}

#[test]
fn trimming_keeps_what_is_unread() {
    let mut store = NotificationStore::default();
    for number in 0..100 {
        store.add(record(number, whole("w")), 0);
    }
    for number in 50..100 {
        store.mark(&id(number), true, 0, &ReadReason::Person);
    }
    assert_eq!(store.trim(20), 50);
    assert_eq!((store.len(), store.total_unread()), (50, 50));
}

#[test]
fn what_was_read_first_is_trimmed_first() {
    let mut store = NotificationStore::default();
    for number in 0..4 {
        store.add(record(number, whole("w")), 0);
    }
    for number in [2, 0, 1] {
        store.mark(&id(number), true, 0, &ReadReason::Person);
    }
    assert_eq!(store.trim(2), 2);
    let left: Vec<&MessageId> = store.newest().map(|record| &record.id).collect();
    assert_eq!(left, [&id(3), &id(1)]);
}

/// The order of arrival, and the order in which the unread ones became unread, kept as plain lists.
#[derive(Default)]
struct Model {
    arrived: Vec<MessageId>,
    unread: Vec<MessageId>,
}

impl Model {
    /// One step adds at most one notification, and makes at most one unread.
    fn follow(&mut self, store: &NotificationStore) {
        let newest: Vec<MessageId> = store.newest().map(|record| record.id.clone()).collect();
        let unread: Vec<MessageId> = store.newest_unread().map(|record| record.id.clone()).collect();
        for (known, now) in [(&mut self.arrived, newest), (&mut self.unread, unread)] {
            known.retain(|id| now.contains(id));
            let new: Vec<MessageId> = now.iter().filter(|id| !known.contains(id)).cloned().collect();
            assert!(new.len() <= 1);
            known.extend(new);
            assert!(known.iter().rev().eq(&now));
        }
    }
}

/// Recounts the indexes from the records alone.
fn recount(store: &NotificationStore) {
    let all: Vec<&Record> = store.newest().collect();
    assert_eq!(all.len(), store.len());
    assert_eq!(all.iter().filter(|record| !record.is_read).count(), store.total_unread());
    assert_eq!(store.newest_unread().count(), store.total_unread());
    let open_and_read = all.iter().filter(|record| record.is_read && !record.is_resolved).count();
    assert_eq!(store.index.read.len() + store.index.unread.len() + open_and_read, store.len());
    let needed = all.iter().filter(|record| record.needs_person()).count();
    assert_eq!(store.needs_person().count(), needed);
    let open = all.iter().filter(|record| !record.is_resolved);
    assert_eq!(open.filter_map(|record| record.escalates_ms.get()).min(), store.next_escalation());
    let snoozed = all.iter().filter_map(|record| record.snoozed_until.get());
    assert_eq!(snoozed.clone().min(), store.next_snooze_end());
    assert_eq!(snoozed.count(), store.due_snoozed(i64::MAX, usize::MAX).len());
    assert!(
        all.iter().all(|record| record.snoozed_until.is_none() || (record.is_read && !record.is_resolved))
    );
    for record in &all {
        let key = record.key.as_deref().unwrap_or("none");
        let known = store.open_of(Some(&record.sender), key).any(|open| open.id == record.id);
        assert_eq!(known, record.key.is_some() && !record.is_resolved);
    }
    for workspace in ["w", "v"].map(WorkspaceId::new) {
        let of: Vec<&&Record> = all.iter().filter(|record| record.place.workspace == workspace).collect();
        assert_eq!(of.iter().filter(|record| !record.is_read).count(), store.unread_of(&workspace));
        assert_eq!(of.first().map(|record| &record.id), store.latest(&workspace).map(|record| &record.id));
        for surface in ["a", "b"].map(SurfaceId::new) {
            let place = Place::surface(workspace.clone(), surface);
            let here: Vec<&&&Record> = of.iter().filter(|record| record.place == place).collect();
            assert_eq!(here.iter().any(|record| !record.is_read), store.has_unread(&place));
            assert_eq!(here.len(), store.newest_of(&place).count());
            let current = here.iter().filter(|record| !record.is_read && !record.stays_unread()).count();
            assert_eq!(current, store.index.group(&place).map_or(0, |group| group.unread.len()));
        }
    }
}

fn check_names(store: &NotificationStore) {
    let ids: Vec<&MessageId> = store.newest().map(|record| &record.id).collect();
    for record in store.newest() {
        let shown = store.short_id(&record.id).unwrap();
        for text in ["last", record.id.as_str(), &record.id.as_str()[9..], &record.id.as_str()[..20], &shown]
        {
            assert_eq!(store.named(text), IdMatch::among(text, ids.iter().copied()));
        }
        assert_eq!(store.named(&shown), IdMatch::One(record.id.clone()));
    }
}

proptest! {
    #[test]
    fn the_indexes_are_what_a_recount_gives(
        steps in prop::collection::vec((0u8..13, 0u64..20, 0usize..5), 0..120),
        last_number in prop::sample::select(vec![0, u32::MAX - 30]),
    ) {
        let places = [pane("w", "a"), pane("w", "b"), whole("w"), pane("v", "a"), whole("v")];
        let store = NotificationStore { last_number, ..NotificationStore::default() };
        let (mut store, mut model) = (store, Model::default());
        for (step, number, place) in steps {
            let place = &places[place];
            match step {
                0 | 1 => drop(store.add(record(number, place.clone()), 0)),
                2 => drop(store.add(question(number, place.clone()), 0)),
                3 => drop(store.mark_read(place, 0, &ReadReason::Looked)),
                4 => drop(store.mark(&id(number), number % 2 == 0, 0, &ReadReason::Person)),
                5 => drop(store.remove(&id(number))),
                7 => drop(store.add(of_session(number, place.clone(), Kind::Waiting, None), 0)),
                8 => drop(store.resolve(&id(number), 0, ResolvedBy::WentOn)),
                6 => drop(store.close_question(&QuestionId::new(number, 0), 0, &ReadReason::Answered)),
                9 => drop(store.snooze(&id(number), 1 + i64::from(step), 0, Cause::SnoozeEnded)),
                10 => store.end_snooze(&id(number), (number % 2 == 0, false), 0),
                11 => store.set_escalation(&id(number), (number % 3 > 0).then_some(7)),
                _ if number == 0 => drop(store.clear(place)),
                _ => drop(store.trim(10)),
            }
            recount(&store);
            model.follow(&store);
        }
        check_names(&store);
    }
}
