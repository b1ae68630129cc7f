//! Links between machines: messages in the journal of one machine are copied to the journal of the other, once and in order, over
//! any program that connects two pipes: `ssh`, `docker exec`.
//!
//! Each end of a connection is a [`Link`]: pure rules, without a clock, a file or a process.
//!
//! # What it never does
//! It never forwards messages from a third machine. It trusts nothing that the other machine says about itself: see
//! [`ImportRules`].
//!
//! # Inside
//! `link` is one end of a connection: pure rules from frames to frames, with a `simulation`. `exchange` is the loop around it;
//! `serve` runs it on standard input and output, `relays` starts the program of each link and reconnects. `wire_message`
//! decides what leaves this machine, `import` converts what arrives into a message. `nats` (feature `nats`) puts a server between
//! the journals of a team: the server is transport, and each machine republishes from its own journal what others lack.

#![forbid(unsafe_code)]

mod agents;
mod error;
mod exchange;
mod frame;
mod import;
mod link;
mod link_process;
mod local_journal;
mod machine;
mod machine_agents;
#[cfg(feature = "nats")]
mod nats;
mod one_question;
mod peer;
mod position;
mod relays;
mod repositories;
mod status_file;
mod team;
#[cfg_attr(
    not(any(feature = "nats", test)),
    expect(dead_code, reason = "without NATS, no team is connected to")
)]
mod team_agents;
#[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "without NATS, no team is connected to"))]
mod team_setup;
mod wire_message;

#[cfg(test)]
mod simulation;

pub use agents::WireAgent;
pub use error::{BUILD_WITH_NATS, Error, WITHOUT_NATS};
pub use exchange::{ConnectionEnd, Exchange, Pipes, Progress, serve};
pub use frame::{
    AnswerOutput, Frame, FrameReader, Hello, InvalidFrame, MAX_FRAME, MAX_PARTS, PROTOCOL, Purpose,
};
pub use import::{ImportRefusal, ImportRules};
pub use link::{GONE_AFTER, Input, Link, Output, PING_AFTER, ReadMessages, WINDOW};
pub use link_process::{FinishedProcess, LinkProcess, ProcessErrors};
pub use local_journal::{AnswerHandler, AnswerRequest};
pub use machine::{MachineId, MachineName};
pub use machine_agents::MachineAgents;
pub use one_question::{RemoteRequest, round_trip};
pub use peer::{ConfiguredName, ExchangeSetup, forget_machine, register_machine};
pub use position::Position;
pub use relays::{RelaySetup, Relays};
pub use repositories::RepositoryNames;
pub use status_file::{LinkState, LinkStatus, RelayStatus};
pub use team::{answer_in_team, forget_team, join_team};
pub use team_setup::{TeamProgress, TeamSetup};
pub use wire_message::WireMessage;
