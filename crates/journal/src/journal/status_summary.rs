//! The few numbers that a status bar shows, many times a minute.

use ringer_core::Recipient;
use rusqlite::params;

use crate::db::text::text;
use crate::error::Error;
use crate::hub_store::store::HubStore;
use crate::journal::schema::Journal;

/// What a status bar shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusSummary {
    /// Notifications that the person has not read.
    pub unread: i64,
    /// How many agents are in which state; those that have gone do not count.
    pub agents: Vec<(String, i64)>,
}

impl Journal {
    /// Counts unread notifications and agents. Messages that no hub has read yet count as unread.
    pub fn status_summary(
        &mut self,
        mut hub_store: Option<&mut HubStore>,
        unix_ms: i64,
    ) -> Result<StatusSummary, Error> {
        let taken = self.hub_position(hub_store.as_deref_mut())?;
        let (newest, until) = taken.catch_up.map(|catch_up| (catch_up.newest, catch_up.until)).unzip();
        let until = until.unwrap_or_default();
        let remembered = hub_store.map(HubStore::unread).transpose()?.unwrap_or_default();
        self.read(|connection| {
            let waiting: i64 = connection.query_row(
                "SELECT count(*) FROM message
                 WHERE seq > ?1 AND kind NOT LIKE 'mark-%' AND recipient IN (?2, ?3, ?4)
                   AND (ttl IS NULL OR ts + ttl > ?5) AND (seq > ?6 OR id > ?7)",
                params![
                    taken.cursor.seq,
                    Recipient::Default.to_string(),
                    Recipient::Person.to_string(),
                    Recipient::All.to_string(),
                    unix_ms,
                    until,
                    newest
                ],
                |row| row.get(0),
            )?;
            let agents = connection
                .prepare(
                    "SELECT state, count(*) FROM agent WHERE state <> 'exited' GROUP BY state ORDER BY state",
                )?
                .query_map([], |row| Ok((text(row, 0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(StatusSummary { unread: remembered + waiting, agents })
        })
    }
}
