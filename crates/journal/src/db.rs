//! An SQLite file with its tables, its write lock and its repair. The journal and the hub store are such files.

pub(crate) mod connection;
pub(crate) mod damage;
pub(crate) mod database;
pub(crate) mod log;
pub(crate) mod repair;
pub(crate) mod rescue;
pub(crate) mod tables;
pub(crate) mod write_lock;
