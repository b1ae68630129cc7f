//! Hosts: what shows surfaces to the person, and draws rings on them.
//!
//! * [`run`]: one program on a PTY inside a real terminal (`ringer run`).

#![forbid(unsafe_code)]

pub mod run;
