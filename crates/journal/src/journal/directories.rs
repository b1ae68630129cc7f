//! The directories that messages and agents come from.

use crate::db::text::text;
use crate::error::Error;
use crate::journal::schema::Journal;

impl Journal {
    /// Every directory in which a message was sent or an agent worked, as far as that is kept.
    pub fn directories(&mut self) -> Result<Vec<String>, Error> {
        self.read(|connection| {
            let query = "SELECT json_extract(origin, '$.cwd') AS directory FROM message
                         WHERE json_valid(origin) AND directory IS NOT NULL
                         UNION SELECT worktree FROM agent WHERE worktree IS NOT NULL
                         UNION SELECT cwd FROM agent WHERE cwd IS NOT NULL";
            connection.prepare(query)?.query_map([], |row| text(row, 0))?.collect()
        })
    }
}
