//! Damaged values in every column of every table: all readable data is read, and everything keeps working.

use std::time::Duration;

use ringer_core::agent::AgentTimeouts;
use ringer_core::message::{Agent, QuestionId};
use ringer_journal::{Damage, Error, HubChanges, HubPruning, HubStore, IdSource, Journal, RetentionLimits};
use rusqlite::Connection;

use crate::home::{TestHome, append, bodies, draft, heard, lead, scope};
use crate::hub_store::kept::fill;

/// The databases of a home.
const FILES: [fn(&TestHome) -> Connection; 2] = [TestHome::connection, TestHome::memory_connection];

/// A column of a table.
#[derive(Debug, Clone)]
struct Column {
    table: String,
    name: String,
    kind: String,
}

fn columns(connection: &Connection) -> Vec<Column> {
    let query = "SELECT tables.name, columns.name, columns.type
                 FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
                 WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    let mut statement = connection.prepare(query).expect("tables");
    let read =
        |row: &rusqlite::Row<'_>| Ok(Column { table: row.get(0)?, name: row.get(1)?, kind: row.get(2)? });
    statement.query_map([], read).expect("columns").map(|column| column.expect("a column")).collect()
}

/// A home with a row in every table, and a waiting process.
fn home() -> TestHome {
    let test = TestHome::in_memory();
    fill(&test, &scope("aaaaaaaa"), "claude-1");
    let connection = test.connection();
    connection
        .execute_batch(
            r#"INSERT INTO waiter VALUES ('w', 'lead', 'aaaaaaaa', 'claude-1');
             INSERT INTO prompt VALUES ('episode:claude-1:1', 'claude-1', 'aaaaaaaa', 'c', 1,
                 '{"content":{"plan":{"text":"go","whole":true}},"method":"waiting_hook"}',
                 '"allow"', 'person', 2, 'command', 3, NULL);
             INSERT INTO agent_process VALUES (1, 1, 'claude-1');
             INSERT INTO spooled VALUES ('x');
             INSERT INTO note VALUES ('agent:claude-1', '{}');
             INSERT INTO repair VALUES ('r', 1, 'file', '/nowhere', 1, x'00', 1)"#,
        )
        .expect("rows");
    test.memory_connection()
        .execute_batch("INSERT INTO repair VALUES ('r', 1, 'notification', NULL, 1, x'00', 1)")
        .expect("rows");
    test
}

/// Calls every query.
fn look(journal: &mut Journal, store: &mut HubStore) -> Result<(), Error> {
    let (agent, aaaaaaaa) = (Agent::new("claude-1").expect("a name"), scope("aaaaaaaa"));
    let worker = Agent::new("worker").expect("a name");
    let now = IdSource::now().unix_ms;
    journal.batch_after(0, 100)?;
    journal.unread(&lead(), None, now, 100)?;
    journal.agent_state(&agent)?;
    journal.agent_info(&agent)?;
    journal.agent_on("tmux:%1")?;
    journal.live_agents(Duration::from_secs(1), AgentTimeouts::default())?;
    journal.blocks(&agent)?;
    journal.pending_for(&worker, now)?;
    journal.receipts("x")?;
    journal.stats(Some(&aaaaaaaa), now)?;
    journal.stats(None, now)?;
    journal.agent_of_worktree("/w")?;
    journal.agent_named("claude-1")?;
    journal.never_read(&aaaaaaaa)?;
    journal.lead(&aaaaaaaa)?;
    journal.questions(None, true)?;
    journal.question(&QuestionId::new(1, 1))?;
    journal.open_prompts()?;
    journal.prompt("episode:claude-1:1")?;
    journal.is_waited_for("episode:claude-1:1")?;
    journal.caller(std::process::id())?;
    journal.agent_note(&agent)?;
    journal.kept_from()?;
    journal.status_summary(Some(store), now)?;
    journal.repairs()?;
    store.position()?;
    store.undecided()?;
    for record in store.notifications(100)?.records {
        store.notification(record.id.as_str())?;
        store.trail(record.id.as_str())?;
    }
    store.unread()?;
    store.outbox()?;
    store.dead_letters()?;
    store.popups()?;
    store.flags()?;
    store.states()?;
    store.repairs()?;
    Ok(())
}

/// Writes to every table.
fn change(journal: &mut Journal, store: &mut HubStore) -> Result<(), Error> {
    journal.ask(&draft("again?"), "again?", &[], &IdSource::now(), None)?;
    journal.claim_lead(&scope("aaaaaaaa"), &Agent::new("claude-2").expect("a name"))?;
    journal.prune(RetentionLimits::default(), &IdSource::now())?;
    journal.tick_agents(Duration::from_hours(1), AgentTimeouts::default(), &IdSource::now())?;
    let oldest = IdSource::now().message_id();
    store.commit(&HubChanges { undecided: vec![oldest.clone()], ..HubChanges::default() })?;
    store.prune(HubPruning::of(&oldest)).map(drop)
}

/// Asserts that everything keeps working.
#[track_caller]
fn check(what: &str, test: &TestHome) {
    let (mut journal, mut store) = (test.open(), test.memory());
    look(&mut journal, &mut store).expect(what);
    change(&mut journal, &mut store).expect(what);
    append(&mut journal, "after");
    look(&mut journal, &mut store).expect(what);
    let listened = heard(&mut journal, lead(), 100);
    assert!(listened.contains(&"after".to_owned()), "{what}: {listened:?}");
}

#[test]
fn a_byte_that_is_no_text_costs_a_character_in_every_column() {
    let mut checked = 0;
    for file in FILES {
        for column in columns(&file(&home())).into_iter().filter(|column| column.kind == "TEXT") {
            let test = home();
            let Column { table, name, .. } = &column;
            let damage = format!("UPDATE {table} SET {name} = CAST(CAST({name} AS BLOB) || x'ff' AS TEXT)");
            assert!(file(&test).execute(&damage, []).unwrap() > 0, "{column:?} has no row");
            check(&damage, &test);
            assert!(test.files("ringer.db.damaged").is_empty(), "{column:?}: a byte is no reason to repair");
            assert!(test.files("hub.db.damaged").is_empty(), "{column:?}: a byte is no reason to repair");
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} columns");
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    let test = TestHome::new();
    let mut journal = test.open();
    append(&mut journal, "before");
    append(&mut journal, "after");
    let damage = "UPDATE message SET body = CAST(x'62ff666f7265' AS TEXT) WHERE seq = 1";
    assert_eq!(test.connection().execute(damage, []), Ok(1));
    assert_eq!(bodies(&mut journal), ["b\u{fffd}fore", "after"]);
    assert_eq!(heard(&mut journal, lead(), 10), ["b\u{fffd}fore", "after"]);
}

/// Makes the tables accept any type, by removing `STRICT` from their definitions.
fn loosen(connection: &Connection, name: &str) {
    let write = |change: &str| {
        connection
            .execute_batch(&format!("PRAGMA writable_schema = ON; {change}; PRAGMA writable_schema = RESET"))
    };
    write(&format!(
        "UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'STRICT, ', ''), ' STRICT', ''), ' NOT NULL', '')
         WHERE name = '{name}'"
    ))
    .expect("written");
}

#[test]
fn a_value_of_another_type_is_repaired_in_every_column() {
    let mut checked = 0;
    for file in FILES {
        for column in columns(&file(&home())) {
            let Column { table, name: own, kind } = &column;
            let value = match kind.as_str() {
                "INTEGER" => format!("'a' || {own}"),
                "TEXT" => format!("CAST({own} AS BLOB)"),
                _ => "7".to_owned(),
            };
            let test = home();
            let before: String = file(&test)
                .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
                .unwrap();
            loosen(&file(&test), table);
            // An integer primary key cannot have another type.
            let changed = file(&test).execute(&format!("UPDATE {table} SET {own} = {value}"), []);
            if changed.is_err() {
                continue;
            }
            checked += 1;
            let connection = file(&test);
            connection.execute_batch("PRAGMA writable_schema = ON").unwrap();
            connection
                .execute("UPDATE sqlite_schema SET sql = ?1 WHERE name = ?2", [&before, table])
                .unwrap();
            drop(connection);
            check(&format!("{column:?} = {value}"), &test);
        }
    }
    assert!(checked > 100, "only {checked} columns");
}

#[test]
fn a_message_without_an_id_is_taken_out_and_told_of_once() {
    let test = TestHome::new();
    let mut journal = test.open();
    for body in ["one", "two", "three"] {
        append(&mut journal, body);
    }
    test.connection().execute("UPDATE message SET id = '' WHERE seq = 2", []).unwrap();
    let batch = journal.batch_after(0, 10).unwrap();
    assert_eq!((batch.messages.len(), batch.unreadable.as_slice()), (2, &[2][..]));
    journal.quarantine_messages(&batch.unreadable, &IdSource::now()).unwrap();
    assert_eq!(journal.batch_after(0, 10).unwrap().unreadable, Vec::<i64>::new());
    let untold = journal.unreported_repairs().unwrap();
    assert_eq!(untold[0].damage, Damage::Row { table: "message".to_owned() });
    let kept: String =
        test.connection().query_row("SELECT CAST(bytes AS TEXT) FROM repair", [], |row| row.get(0)).unwrap();
    assert!(kept.contains("74776F"), "the body of the second, in hexadecimal: {kept}");
    journal.mark_repairs_reported(&untold).unwrap();
    assert_eq!((journal.unreported_repairs().unwrap(), journal.repairs().unwrap()), (Vec::new(), untold));
}

#[test]
fn a_repair_is_noted_in_the_fresh_file_until_its_copy_is_removed() {
    let test = TestHome::new();
    append(&mut test.open(), "before");
    std::fs::write(test.home.database(), "no database".repeat(100)).unwrap();
    let mut journal = test.open();
    let aside = test.home.path().join("ringer.db.damaged-1");
    let untold = journal.unreported_repairs().unwrap();
    assert_eq!(untold[0].damage, Damage::File { damaged_copy: aside.clone(), rescued_rows: 0 });
    journal.mark_repairs_reported(&untold).unwrap();
    assert_eq!(journal.repairs().unwrap(), untold);
    for name in test.files("ringer.db.damaged-1") {
        std::fs::remove_file(test.home.path().join(name)).unwrap();
    }
    assert_eq!(journal.repairs().unwrap(), []);
}

/// A flipped bit in an index key: SQLite does not detect it, and a search ends there.
#[test]
fn messages_that_an_index_lost_are_read() {
    let test = TestHome::in_memory();
    let mut journal = test.open();
    for body in ["one", "two", "three"] {
        append(&mut journal, body);
    }
    assert_eq!(heard(&mut journal, lead(), 10), ["one", "two", "three"]);
    append(&mut journal, "four");
    let connection = test.connection();
    let set = |sql: &str| {
        connection
            .execute_batch(&format!(
                "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = '{sql}' WHERE name = 'message_scope';
                 PRAGMA writable_schema = RESET;"
            ))
            .expect("changed");
    };
    let whole: String = connection
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'message_scope'", [], |row| row.get(0))
        .expect("the index");
    set(&format!("{whole} WHERE seq < 4"));
    connection.execute_batch("REINDEX message_scope").expect("without the last one");
    set(&whole);
    drop(connection);
    drop(journal);
    let mut journal = test.open();
    assert_eq!(heard(&mut journal, lead(), 10), ["four"]);
    assert_eq!(journal.unreported_repairs().expect("readable").len(), 1, "the person is told");
}
