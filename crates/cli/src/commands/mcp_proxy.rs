//! `ringer mcp-proxy`.

use std::io;
use std::process::{Command, ExitCode, Stdio};

use ringer_hub::monotonic;
use ringer_mcp::{AgentInbox, exit_code, run_proxy};

use super::lead_session::cannot_run;
use super::run::CommandWords;
use crate::context;
use crate::failure::{Exit, Failure};

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
///   ringer mcp-proxy -- npx -y @modelcontextprotocol/server-filesystem .
///   ringer mcp-proxy -- python3 server.py
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    command: CommandWords,
}

pub(super) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let (program, rest) = arguments.command.split()?;
    let inbox = AgentInbox::new(context::home()?, monotonic, Box::new(context::agent_of_client));
    let mut server = Command::new(program);
    let server = server.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
    let server = server.spawn().map_err(|error| cannot_run(program, error))?;
    match run_proxy(server, io::stdin(), io::stdout().lock(), inbox) {
        Ok(status) => Ok(ExitCode::from(exit_code(status))),
        // The client has gone. When this process exits, the server's input ends.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::new(Exit::Unavailable, "the server cannot be passed on").because(error)),
    }
}
