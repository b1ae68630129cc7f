//! The journal: its tables, and what processes do with them.

pub(crate) mod agent;
pub(crate) mod agent_note;
pub(crate) mod agent_question;
pub(crate) mod append;
pub(crate) mod caller;
pub(crate) mod consumer;
pub(crate) mod cursor;
mod directories;
pub(crate) mod earlier_key;
pub(crate) mod export;
pub(crate) mod hook_waiter;
pub(crate) mod hub_reader;
pub(crate) mod inbox;
pub(crate) mod journal_watch;
pub(crate) mod lead;
pub(crate) mod lead_inbox;
pub(crate) mod listener;
pub(crate) mod machine_name;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod read;
pub(crate) mod relay;
pub(crate) mod retention;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod sender;
pub(crate) mod sequence;
pub(crate) mod stats;
pub(crate) mod status_summary;
pub(crate) mod team;
#[cfg(test)]
pub(crate) mod test_journal;
