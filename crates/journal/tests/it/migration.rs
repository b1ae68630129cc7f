//! From an empty file to today's tables, and no step back.

use std::fs;
use std::sync::Barrier;
use std::thread;

use ringer_core::attention::{AwayPeriod, Record};
use ringer_core::message::{About, Agent, Place, WorkspaceId};
use ringer_core::policy::{MuteTarget, RequestedMute};
use ringer_core::{Draft, Kind, MessageId, Recipient, Scope, Sender};
use ringer_journal::{Cursor, Error, HubChanges, IdSource, Journal, ReadPosition};

use crate::home::{MEMORY_TO_SCHEMA_1, TO_SCHEMA_3, TestHome, append, bodies, heard, lead, place, read_to};

#[test]
fn a_database_of_version_0_becomes_a_journal() {
    let test = TestHome::new();
    fs::create_dir_all(test.home.path()).unwrap();
    test.connection().execute_batch("CREATE TABLE unrelated (a); DROP TABLE unrelated;").unwrap();
    let mut journal = test.open();
    append(&mut journal, "hello");
    assert_eq!(bodies(&mut journal), ["hello"]);
}

/// Schema 6 had one receipt for a message, however long.
#[test]
fn what_waits_for_an_agent_in_schema_6_waits_on() {
    let test = TestHome::new();
    let mut journal = test.open();
    let agent = Agent::new("a1").unwrap();
    let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, "look").unwrap();
    draft.recipient = Recipient::Agent(agent.clone());
    let id = journal.append(&draft, &IdSource::now()).unwrap();
    drop(journal);
    let old = "DROP TABLE prompt;
         DROP TABLE agent_process;
         ALTER TABLE agent DROP COLUMN nonce;
         ALTER TABLE lead DROP COLUMN may_decide;
         DROP INDEX receipt_seq;
         CREATE TABLE old (agent TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, queued INTEGER NOT NULL,
             leased_until INTEGER, call_id TEXT, delivered INTEGER, seen INTEGER, PRIMARY KEY (agent, seq)) STRICT, WITHOUT ROWID;
         INSERT INTO old SELECT agent, seq, state, queued, leased_until, call_id, delivered, seen FROM receipt;
         DROP TABLE receipt;
         ALTER TABLE old RENAME TO receipt;
         CREATE INDEX receipt_seq ON receipt (seq);
         PRAGMA user_version = 6;";
    test.connection().execute_batch(old).unwrap();
    let mut journal = test.open();
    assert!(journal.repair().is_none());
    let waiting = journal.pending_for(&agent, IdSource::now().unix_ms).unwrap();
    assert_eq!(
        waiting.iter().map(|part| (&part.message.id, part.number, part.of)).collect::<Vec<_>>(),
        [(&id, 0, 1)]
    );
}

/// Schema 3 had a number alone in its cursors, and nothing that names the file.
#[test]
fn cursors_of_schema_3_are_where_they_were() {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..3 {
        append(&mut journal, &number.to_string());
    }
    read_to(&mut journal, &lead(), 2, 7);
    let last = place(&mut journal, 3);
    journal.advance_hub(&last, 8).unwrap();
    drop(journal);
    test.connection().execute_batch(TO_SCHEMA_3).unwrap();
    test.connection().execute("UPDATE cursor SET seq = 30 WHERE consumer = 'hub'", []).unwrap();
    let mut journal = test.open();
    assert_eq!(journal.generation().unwrap().len(), 16);
    assert_eq!((journal.cursor(&lead()).unwrap(), heard(&mut journal, lead(), 9)), (2, vec!["2".to_owned()]));
    assert_eq!(journal.hub_position(None).unwrap().catch_up, None, "that was no place in this journal");
}

#[test]
fn what_was_read_in_a_memory_of_schema_2_is_over_and_what_was_not_is_open() {
    let test = TestHome::new();
    let id = |number| MessageId::new(number, [0; 10]);
    let record = |number, is_read| {
        let place = Place::workspace(WorkspaceId::new("w"));
        Record { is_read, ..Record::new(id(number), place, Kind::Question, "why?", 0) }
    };
    let records = vec![record(1, true), record(2, false)];
    test.memory().commit(&HubChanges { records, ..HubChanges::default() }).unwrap();
    test.memory_connection()
        .execute_batch(
            "UPDATE notification SET record = json_remove(record, '$.is_resolved');
             ALTER TABLE notification DROP COLUMN is_open;
             DROP TABLE undo;
             ALTER TABLE popup DROP COLUMN offer;
             DROP TABLE mute;
             DROP TABLE away;
             PRAGMA user_version = 2;",
        )
        .unwrap();
    let stored = test.memory().notifications(10).unwrap().records;
    let states: Vec<_> = stored.iter().map(|record| (record.is_read, record.is_resolved)).collect();
    assert_eq!(states, [(true, true), (false, false)]);
    assert!(test.memory().notifications(0).unwrap().records.iter().all(|record| !record.is_read));
}

#[test]
fn a_memory_of_schema_5_has_no_mutes_and_keeps_the_rest() {
    let test = TestHome::new();
    let place = Place::workspace(WorkspaceId::new("w"));
    let record = Record::new(MessageId::new(1, [0; 10]), place, Kind::Question, "why?", 0);
    test.memory().commit(&HubChanges { records: vec![record.clone()], ..HubChanges::default() }).unwrap();
    test.memory_connection()
        .execute_batch("DROP TABLE mute; DROP TABLE away; PRAGMA user_version = 5;")
        .unwrap();
    assert_eq!(test.memory().mutes().unwrap(), []);
    assert_eq!(test.memory().notifications(10).unwrap().records, [record]);
    let target = MuteTarget::All;
    let mute = RequestedMute { target: target.clone(), until_unix_ms: Some(7), allow: Vec::new() };
    let mutes = vec![(target, Some(mute.clone()))];
    test.memory().commit(&HubChanges { mutes, ..HubChanges::default() }).unwrap();
    assert_eq!(test.memory().mutes().unwrap(), [mute]);
}

#[test]
fn a_memory_of_schema_6_does_not_know_when_the_person_was_away() {
    let test = TestHome::new();
    test.memory()
        .commit(&HubChanges { undecided: vec![MessageId::new(1, [0; 10])], ..HubChanges::default() })
        .unwrap();
    test.memory_connection().execute_batch("DROP TABLE away; PRAGMA user_version = 6;").unwrap();
    assert_eq!(test.memory().away().unwrap(), None);
    let away = AwayPeriod { since_ms: 7, until_ms: None };
    test.memory().commit(&HubChanges { away: Some(away), ..HubChanges::default() }).unwrap();
    assert_eq!((test.memory().away().unwrap(), test.memory().undecided().unwrap().len()), (Some(away), 1));
    let back = AwayPeriod { until_ms: Some(9), ..away };
    test.memory().commit(&HubChanges { away: Some(back), ..HubChanges::default() }).unwrap();
    assert_eq!(test.memory().away().unwrap(), Some(back));
}

#[test]
fn the_place_in_a_memory_of_schema_1_is_kept_and_named() {
    let test = TestHome::new();
    let mut journal = test.open();
    for number in 0..3 {
        append(&mut journal, &number.to_string());
    }
    for (noted, expect) in [(2, 2), (30, 0)] {
        let cursor = Cursor { seq: noted, ..place(&mut journal, 0) };
        let transaction =
            HubChanges { position: Some(ReadPosition { cursor, catch_up: None }), ..HubChanges::default() };
        test.memory().commit(&transaction).unwrap();
        test.memory_connection().execute_batch(MEMORY_TO_SCHEMA_1).unwrap();
        let mut store = test.memory();
        let taken = store.position().unwrap().expect("it is kept").cursor;
        assert_eq!(taken, Cursor { generation: None, seq: noted, id: None });
        assert_eq!(journal.hub_position(Some(&mut store)).unwrap().cursor, place(&mut journal, expect));
    }
}

#[test]
fn a_newer_one_is_refused_and_not_touched() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let ours: i64 = test.connection().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    test.connection().execute_batch("CREATE TABLE newer (a); PRAGMA user_version = 99").unwrap();
    test.flatten();
    let before = fs::read(test.home.database()).unwrap();
    for opened in [Journal::open(&test.home).map(Some), Journal::open_existing(&test.home)] {
        match opened {
            Err(Error::Newer { found, known, path }) => {
                assert_eq!((found, path), (99, test.home.database()));
                assert!(known < 99);
            }
            other => unreachable!("{other:?}"),
        }
    }
    assert!(fs::read(test.home.database()).unwrap() == before);
    assert!(test.files("ringer.db.").is_empty(), "nothing is set aside");
    // The new version finds everything.
    test.connection().execute_batch("DROP TABLE newer").unwrap();
    test.connection().pragma_update(None, "user_version", ours).unwrap();
    assert_eq!(bodies(&mut test.open()), ["hello"]);
}

/// The version may be in the log alone: the newer program still runs, and has it open.
#[test]
fn a_newer_one_in_use_is_refused_too() {
    let test = TestHome::new();
    append(&mut test.open(), "hello");
    let newer = test.connection();
    newer.execute_batch("CREATE TABLE newer (a); PRAGMA user_version = 99").unwrap();
    let files = ["ringer.db", "ringer.db-wal"].map(|name| test.home.path().join(name));
    let before = files.clone().map(|path| fs::read(path).unwrap());
    assert!(matches!(Journal::open(&test.home), Err(Error::Newer { found: 99, .. })));
    assert!(files.map(|path| fs::read(path).unwrap()) == before);
    drop(newer);
}

/// One bit of the header is enough for that, and would be an outage for ever.
#[test]
fn a_damaged_version_is_no_newer_one() {
    for version in [0, 1, 3, 4, 5, 8, 9, 15, 67_108_871, -4] {
        let test = TestHome::new();
        append(&mut test.open(), "hello");
        test.connection().pragma_update(None, "user_version", version).unwrap();
        let mut journal = test.open();
        assert!(journal.repair().is_some(), "version {version}");
        append(&mut journal, "after");
        assert_eq!(bodies(&mut journal), ["hello", "after"], "version {version}");
    }
}

#[test]
fn sixty_four_open_a_fresh_home_at_once() {
    let test = TestHome::new();
    let start = Barrier::new(64);
    thread::scope(|threads| {
        for number in 0..64 {
            let (test, start) = (&test, &start);
            threads.spawn(move || {
                start.wait();
                append(&mut test.open(), &number.to_string());
            });
        }
    });
    let mut sent: Vec<u32> = bodies(&mut test.open()).iter().map(|body| body.parse().unwrap()).collect();
    sent.sort_unstable();
    assert_eq!(sent, (0..64).collect::<Vec<u32>>());
}

#[test]
fn messages_of_schema_5_have_no_parts_and_new_ones_have_them() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "old");
    drop(journal);
    test.connection()
        .execute_batch("ALTER TABLE message DROP COLUMN about; DROP TABLE prompt; ALTER TABLE lead DROP COLUMN may_decide;
             DROP TABLE agent_process;
         ALTER TABLE agent DROP COLUMN nonce; PRAGMA user_version = 5")
        .unwrap();
    let mut journal = test.open();
    let about = About { repository: Some("proj".to_owned()), ..About::default() };
    let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "new").unwrap();
    journal.append(&Draft { about: Some(about.clone()), ..draft }, &IdSource::now()).unwrap();
    let messages = journal.messages_after(0, 9).unwrap();
    let kept: Vec<Option<About>> = messages.into_iter().map(|message| message.draft.about).collect();
    assert_eq!(kept, [None, Some(about)]);
}
