use super::*;
use crate::hub_store::store::HubSchema;
use crate::journal::schema::JournalSchema;

fn pages_of_definitions<S: Schema>() -> i64 {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = Connection::open(directory.path().join(S::FILE)).unwrap();
    make::<S>(&mut connection).unwrap();
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
fn a_file_of_this_version_is_known_by_its_tables() {
    fn check<S: Schema>() {
        let mut connection = Connection::open_in_memory().unwrap();
        make::<S>(&mut connection).unwrap();
        assert!(is_own::<S>(&connection).unwrap());
        connection.execute_batch("CREATE TABLE another (a)").unwrap();
        assert!(!is_own::<S>(&connection).unwrap());
    }
    check::<JournalSchema>();
    check::<HubSchema>();
}
