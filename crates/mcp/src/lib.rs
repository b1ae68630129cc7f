//! The Model Context Protocol: Ringer as an MCP server, and a proxy between a client and another server. Both add pending
//! notifications to tool results.
//!
//! [`run_server`] serves a client on standard input and output. The caller's [`Backend`] implements the tools.
//!
//! [`run_proxy`] forwards both directions unchanged, with two exceptions: pending notifications are appended to the text of the
//! result of an open `tools/call` request, and text of the server that looks like a notification is escaped.
//!
//! [`channels`] works the other way: a part of the hub that runs the MCP servers from the settings, each on its own thread, and
//! puts the messages they push into an agent's inbox.
//!
//! # Inside
//!
//! `server` answers requests: its `handler` calls the backend, and its `transport` writes lines and marks messages as delivered
//! only after the result has been written. `proxy` sits between a client and another server, with a thread for each direction.
//! Both take pending messages from `agent_inbox`. `channels` runs the MCP servers from the settings.

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
