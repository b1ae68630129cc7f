//! The Model Context Protocol: Ringer as a server, and what stands between a client and another server. With both, what waits
//! for an agent enters the results of tools.
//!
//! [`run_server`] serves a client on standard input and output; what its tools do is the program's [`Backend`].
//!
//! [`run_proxy`] passes everything on as it is, both ways. Only the answers to open `tools/call` requests are read, and only
//! while something waits for the agent is one of them changed: the notifications are added to the end of its text.
//!
//! [`channels`] is the other direction: an extension of the hub that runs the MCP servers of the settings, each on a thread,
//! and puts what they push into the inbox of an agent.
//!
//! # Inside
//!
//! `server` answers requests: its `handler` calls the backend, and `transport` writes lines and marks messages delivered only once the result
//! was written. `proxy` stands between a client and another server, with a thread for each direction. Both take what waits from the
//! `agent_inbox`. `channels` runs the MCP servers of the settings, each on its own thread, and puts what they push into inboxes.

#![forbid(unsafe_code)]

mod agent_inbox;
pub mod channels;
mod element_filter;
mod line_splitter;
mod open_calls;
mod proxy;
mod server;
mod tool_answer;

pub use agent_inbox::{AgentInbox, FindAgent};
pub use proxy::{PendingNotifications, exit_code, pass_answers, run_proxy};
pub use server::{
    AnswerArguments, AskArguments, AskResult, Backend, ListArguments, NotifyArguments, PushSource,
    QuestionsArguments, ToolText, run_server,
};
