//! Tests of the journal with real files, concurrent processes and real faults.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod home;

mod agent;
mod clock;
mod cursor;
mod damaged_rows;
mod git;
#[cfg(target_os = "linux")]
mod hostile;
mod hub;
mod hub_store;
mod inbox;
mod inbox_property;
mod lead;
mod locks;
mod repair;
mod retention;
mod round_trip;
mod versions;
mod writers;
