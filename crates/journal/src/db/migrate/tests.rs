use super::*;
use crate::hub_store::store::HubSchema;
use crate::journal::schema::JournalSchema;

fn pages_of_definitions<S: Schema>() -> i64 {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = Connection::open(directory.path().join(S::FILE)).unwrap();
    migrate::<S>(&mut connection).unwrap();
    let mut count = connection.prepare("SELECT count(*) FROM dbstat WHERE name = 'sqlite_schema'");
    if let Ok(statement) = &mut count {
        return statement.query_row([], |row| row.get(0)).unwrap();
    }
    // Without that table: one leaf of 4096 bytes holds it if its text is short enough.
    let sum =
        "SELECT sum(length(type) + 2 * length(name) + length(coalesce(sql, '')) + 16) FROM sqlite_schema";
    connection.query_row(sum, [], |row| row.get::<_, i64>(0)).unwrap() / 3900 + 1
}

#[test]
fn the_tables_fit_into_the_first_page() {
    assert_eq!((pages_of_definitions::<JournalSchema>(), pages_of_definitions::<HubSchema>()), (1, 1));
}

#[test]
fn an_older_file_keeps_what_is_in_it_and_gets_what_a_new_one_has() {
    let (mut old, mut new) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
    migrate::<JournalSchema>(&mut new).unwrap();
    // Version 1 had no tables for leads and spooled events, and a smaller one for agents.
    migrate::<JournalSchema>(&mut old).unwrap();
    old.execute_batch(
        "ALTER TABLE message DROP COLUMN about; DROP INDEX message_question; DROP INDEX receipt_seq; DROP TABLE spooled; DROP TABLE prompt; DROP TABLE agent_process; DROP TABLE lead; DROP TABLE agent; CREATE TABLE agent (id TEXT PRIMARY KEY);
         DROP TABLE repair; ALTER TABLE cursor DROP COLUMN id; ALTER TABLE cursor DROP COLUMN idle;
         DELETE FROM note",
    )
    .unwrap();
    old.execute_batch("PRAGMA user_version = 1; INSERT INTO note VALUES ('a', 'b')").unwrap();
    migrate::<JournalSchema>(&mut old).unwrap();
    let query = "SELECT value FROM note WHERE name = 'a'";
    let note: String = old.query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!((note.as_str(), version(&old).unwrap()), ("b", newest::<JournalSchema>()));
    assert_eq!(definitions(&old).unwrap(), definitions(&new).unwrap());
}

#[test]
fn a_file_of_this_version_is_known_by_its_tables() {
    fn check<S: Schema>() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::<S>(&mut connection).unwrap();
        assert!(is_own::<S>(&connection).unwrap());
        connection.execute_batch("CREATE TABLE another (a)").unwrap();
        assert!(!is_own::<S>(&connection).unwrap());
    }
    check::<JournalSchema>();
    check::<HubSchema>();
}

#[test]
fn migrating_twice_changes_nothing() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::<JournalSchema>(&mut connection).unwrap();
    let before = definitions(&connection).unwrap();
    migrate::<JournalSchema>(&mut connection).unwrap();
    assert_eq!(
        (version(&connection).unwrap(), definitions(&connection).unwrap()),
        (newest::<JournalSchema>(), before)
    );
}
