//! Real journals, linked over a wire that can be cut after any frame.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod cuts;
mod forging;
mod machines;
mod refusals;
