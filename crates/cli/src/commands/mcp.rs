//! `ringer mcp` and `ringer mcp proxy`.

use std::io;
use std::process::{self, ExitCode, Stdio};

use ringer_hub::monotonic;
use ringer_mcp::{AgentInbox, PushSource, exit_code, run_proxy, run_server};

use super::mcp_backend::McpBackend;
use super::mcp_channels;
use super::run::{CommandWords, cannot_run};
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
    Proxy(ProxyArgs),
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

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    match &arguments.command {
        None => serve(),
        Some(Command::Proxy(arguments)) => return proxy(arguments),
        Some(Command::Status { json }) => mcp_channels::show_status(*json),
        Some(Command::Pair { code }) => mcp_channels::pair(code),
        Some(Command::Unpair { channel, sender }) => mcp_channels::unpair(channel, sender),
    }?;
    Ok(ExitCode::SUCCESS)
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

/// Run an MCP server, and add what waits for the agent to its tools' results
///
/// Put it in front of the command of any MCP server that speaks on standard
/// input and output. Everything is passed on as it is, except text that looks like a
/// notification, which is escaped. While notifications wait for the agent, the next
/// tool result carries them at the end of its text, so that an agent whose client
/// has no hooks reads them in the middle of its turn.
/// The agent is the one that runs the server; else $RINGER_AGENT, or the agent of
/// this worktree.
///
/// Examples:
///   ringer mcp proxy -- npx -y @modelcontextprotocol/server-filesystem .
///   ringer mcp proxy -- python3 server.py
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct ProxyArgs {
    #[command(flatten)]
    command: CommandWords,
}

fn proxy(arguments: &ProxyArgs) -> Result<ExitCode, Failure> {
    let (program, rest) = arguments.command.split()?;
    let inbox = AgentInbox::new(context::home()?, monotonic, Box::new(context::agent_of_client));
    let mut server = process::Command::new(program);
    let server = server.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
    let server = server.spawn().map_err(|error| cannot_run(program, error))?;
    match run_proxy(server, io::stdin(), io::stdout().lock(), inbox) {
        Ok(status) => Ok(ExitCode::from(exit_code(status))),
        // The client has gone. When this process exits, the server's input ends.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::new(Exit::Unavailable, "the server cannot be passed on").because(error)),
    }
}
