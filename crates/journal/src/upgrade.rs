//! Upgrades from versions that kept the hub's tables in the journal.

use std::time::Duration;

use rusqlite::Connection;

use crate::db::schema::Schema;
use crate::error::Error;
use crate::home::Home;
use crate::hub_store::store::{HubSchema, HubStore};

/// Moves the hub's tables out of a journal of version 2, which had them in its own file. If the process is killed on the
/// way, they stay there, and the next one begins again.
pub(crate) fn move_out(home: &Home, journal: &Connection) -> Result<(), Error> {
    let _memory = HubStore::open(home)?;
    let path = home.path().join(HubSchema::FILE);
    let failed = |error| Error::database(&path, Duration::ZERO, error);
    journal.execute("ATTACH ?1 AS memory", [path.to_string_lossy()]).map_err(failed)?;
    let copied = journal.execute_batch(
        "BEGIN IMMEDIATE;
         INSERT OR IGNORE INTO memory.notification (id, is_read, record)
             SELECT id, is_read, record FROM main.notification ORDER BY seq;
         INSERT OR IGNORE INTO memory.trail SELECT id, step, ts, text FROM main.trail;
         INSERT OR IGNORE INTO memory.undecided
             SELECT id FROM main.message WHERE seq IN (SELECT seq FROM main.undecided);
         INSERT OR IGNORE INTO memory.outbox SELECT id, way, delivery FROM main.outbox;
         INSERT OR IGNORE INTO memory.popup (key, id, number, server) SELECT key, id, number, server FROM main.popup;
         INSERT OR IGNORE INTO memory.dead_letter SELECT number, id, target, why, ts FROM main.dead_letter;
         INSERT OR IGNORE INTO memory.taken (one, seq)
             SELECT 1, seq FROM main.cursor WHERE consumer = 'hub' AND scope = '*';
         COMMIT;",
    );
    copied.and_then(|()| journal.execute_batch("DETACH memory")).map_err(failed)
}
