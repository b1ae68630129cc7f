//! Teams: the machines of several people, connected by a stream on a NATS server.
//!
//! Each machine publishes its journal's messages into the stream of the team, and stores what the others published. The journal
//! is the record, and the stream only transport: the journal has a cursor for how far the stream has this machine's messages, and
//! a note for how far this machine has stored the stream. `publishing`, `receiving` and `state` are the rules; `exchange` is one
//! connection, with `outbound` and `inbound` as its two directions.

mod agent_service;
mod agent_timing;
mod answers;
mod connection;
mod consumer;
mod coverage;
mod exchange;
mod inbound;
mod incoming;
mod next;
mod outbound;
mod payload;
mod publications;
mod publishing;
mod reading;
mod receiving;
mod state;
mod stream_probe;
mod subject;

#[cfg(test)]
mod simulation;

pub(crate) use agent_service::leave;
pub(crate) use answers::answer;
pub(crate) use exchange::{exchange, join, readable};
