//! Real journals, linked over a wire that can be cut after any frame.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod cuts;
mod forging;
mod machines;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod nats_access;
#[cfg(feature = "nats")]
mod nats_agents;
#[cfg(feature = "nats")]
mod nats_order;
#[cfg(feature = "nats")]
mod nats_purge;
#[cfg(feature = "nats")]
mod nats_servers;
#[cfg(feature = "nats")]
mod raw;
mod refusals;
#[cfg(feature = "nats")]
mod team;
#[cfg(feature = "nats")]
mod wire;
