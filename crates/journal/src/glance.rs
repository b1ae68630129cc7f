//! A glance: the few numbers that a status bar shows, many times a minute.

use ringer_core::Recipient;
use rusqlite::params;

use crate::error::Error;
use crate::open::Journal;

/// What a status bar shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Notifications that the person has not read.
    pub unread: i64,
    /// How many agents are in which state; those that have gone do not count.
    pub agents: Vec<(String, i64)>,
}

impl Journal {
    /// Takes a glance.
    pub fn glance(&self, unix_ms: i64) -> Result<Glance, Error> {
        let take = || -> rusqlite::Result<Glance> {
            let remembered: i64 = self.connection.query_row(
                "SELECT count(*) FROM notification WHERE is_read = 0",
                [],
                |row| row.get(0),
            )?;
            // What no hub has taken yet is unread, too.
            let waiting: i64 = self.connection.query_row(
                "SELECT count(*) FROM message
                 WHERE seq > coalesce((SELECT seq FROM cursor WHERE consumer = 'hub' AND scope = '*'), 0)
                   AND kind NOT LIKE 'mark-%' AND recipient IN (?1, ?2, ?3) AND (ttl IS NULL OR ts + ttl > ?4)",
                params![
                    Recipient::Default.to_string(),
                    Recipient::Person.to_string(),
                    Recipient::All.to_string(),
                    unix_ms
                ],
                |row| row.get(0),
            )?;
            let agents = self
                .connection
                .prepare(
                    "SELECT state, count(*) FROM agent WHERE state <> 'exited' GROUP BY state ORDER BY state",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(Glance { unread: remembered + waiting, agents })
        };
        take().map_err(|error| self.error(error))
    }
}
