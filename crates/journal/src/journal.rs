//! The journal (`ringer.db`): its tables, and the operations on them.

pub(crate) mod agent;
pub(crate) mod append;
pub(crate) mod consumer;
pub(crate) mod export;
pub(crate) mod hook_waiter;
pub(crate) mod hub_reader;
pub(crate) mod inbox;
pub(crate) mod lead;
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
pub(crate) mod stats;
#[cfg(test)]
pub(crate) mod test_journal;
