//! Links between machines: what is written in the journal of one comes to the journal of the other, once and in order, over
//! any program that connects two pipes: `ssh`, `docker exec`.
//!
//! Each end of a connection is a [`Link`]: pure rules, without a clock, a file or a process.
//!
//! # What it never does
//!
//! It passes nothing on that came from a third machine. It believes nothing of what the other machine says of itself: see
//! [`ImportRules`].

#![forbid(unsafe_code)]

mod agents;
mod answers;
mod bulk_mark;
mod error;
mod exchange;
mod exchange_setup;
mod extension;
mod first_position;
mod frame;
mod given_name;
mod import;
mod link;
mod link_agents;
mod link_process;
mod local_journal;
mod machine;
mod machine_agents;
#[cfg(feature = "nats")]
mod nats;
mod one_question;
mod peer;
mod peer_lock;
mod position;
mod repositories;
mod repository_names;
mod round_trip;
mod serve;
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
pub use answers::{AnswerRequest, GiveAnswer};
pub use error::{BUILD_WITH_NATS, Error, WITHOUT_NATS};
pub use exchange::{Ended, Exchange, Pipes, Progress};
pub use exchange_setup::ExchangeSetup;
pub use extension::{RelaySetup, Relays};
pub use frame::{Answered, Frame, FrameReader, Hello, MAX_FRAME, MAX_PARTS, NoFrame, PROTOCOL, Purpose};
pub use given_name::GivenName;
pub use import::{ImportRefusal, ImportRules};
pub use link::{GONE_AFTER, Input, Link, Output, PING_AFTER, ReadMessages, WINDOW};
pub use link_process::{FinishedProcess, LinkProcess, ProcessErrors};
pub use machine::{MachineId, MachineName};
pub use machine_agents::MachineAgents;
pub use one_question::OneQuestion;
pub use peer::{forget_machine, register_machine};
pub use position::Position;
pub use repository_names::RepositoryNames;
pub use round_trip::round_trip;
pub use serve::serve;
pub use status_file::{LinkState, LinkStatus, RelayStatus};
pub use team::{answer_in_team, forget_team, join_team};
pub use team_setup::{TeamProgress, TeamSetup};
pub use wire_message::WireMessage;
