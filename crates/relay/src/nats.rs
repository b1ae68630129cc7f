//! Teams: the machines of several people, over a NATS server and a stream of it.
//!
//! Each machine publishes what is written in its journal into the stream of the team, and stores what the others published. The
//! journal is the record, and the stream transport: how far it has the messages of this machine is a cursor of the journal,
//! and how far this machine has stored it is a note there. `publishing`, `receiving` and `state` are the rules; `exchange` is
//! one connection, with `outbound` and `inbound` as its two directions.

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
