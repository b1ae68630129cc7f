//! Tests of the public face: the life cycle of an inbox under any order of events.

#![expect(clippy::unwrap_used, reason = "that is how a test fails")]

mod inbox;
mod life_cycle;
mod spec_channels;
