//! An agent's state, the signals that change it, and the messages that a change causes.

mod machine;
mod messages;
mod signal;

pub use machine::{AUTHORITY_HOLD, AgentMachine, AgentNotice, AgentTimeouts, Episode};
pub use messages::{AgentMessage, Tier, agent_messages, ends_with_waiting_marker};
pub use signal::{AgentState, Authority, BlockedOn, Signal, SignalContent};
