//! `ringer mcp`.

use ringer_hub::monotonic;
use ringer_mcp::{AgentInbox, PushSource, run_server};

use super::mcp_backend::McpBackend;
use super::mcp_channels;
use crate::failure::{Exit, Failure, Outcome};
use crate::{context, hub_client};

/// Run Ringer as an MCP server on standard input and output
///
/// Add it to an agent's client, which starts it: the agent can then notify you,
/// ask you and wait for the answer, read its messages and answer other agents.
/// What waits for the agent comes with the result of each tool. The agent is
/// the one that runs the server; else $RINGER_AGENT, or the agent of this worktree.
///
/// `status`, `pair` and `unpair` are for the other direction: MCP servers that
/// push messages to your agents, which `[[channel]]` in config.toml names.
///
/// Examples:
///   claude mcp add ringer -- ringer mcp
///   codex mcp add ringer -- ringer mcp
///   ringer mcp status
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the MCP servers that push messages to agents, and who wants to write
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Allow the sender with this code to write
    Pair {
        /// The code that `status` shows: six letters and digits
        code: String,
    },
    /// Take back what `pair` allowed
    Unpair {
        /// Name of the `[[channel]]`
        channel: String,
        /// The sender, as `pair` showed it
        sender: String,
    },
}

pub(super) fn run(arguments: &Args) -> Outcome {
    match &arguments.command {
        None => serve(),
        Some(Command::Status { json }) => mcp_channels::show_status(*json),
        Some(Command::Pair { code }) => mcp_channels::pair(code),
        Some(Command::Unpair { channel, sender }) => mcp_channels::unpair(channel, sender),
    }
}

fn serve() -> Outcome {
    let home = context::home()?;
    hub_client::start_by_another_process();
    let inbox = AgentInbox::new(home.clone(), monotonic, Box::new(context::agent_of_client));
    let scope = || context::scope(context::repository().as_ref());
    let pushes = PushSource { home, find_agent: Box::new(context::agent_of_client), scope };
    run_server(McpBackend, inbox, pushes, env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::new(Exit::Unavailable, "the client cannot be served").because(error))
}
