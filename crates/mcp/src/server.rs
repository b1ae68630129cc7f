//! `ringer mcp`: Ringer as an MCP server on standard input and output.

mod handler;
mod push;
mod results;
mod tools;
mod transport;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringer_journal::IdSource;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::agent_inbox::AgentInbox;
use handler::{Handler, MAX_ASKING};
use push::Pushes;
use results::ResultWriter;
use transport::StdioTransport;

pub use push::PushSource;
pub use tools::{
    AnswerArguments, AskArguments, AskResult, Backend, ListArguments, NotifyArguments, QuestionsArguments,
    ToolText,
};

/// Threads for blocking calls: one for each question that waits, and as many again so that other tools never wait for a thread.
const MAX_THREADS: usize = 2 * MAX_ASKING;
/// How long shutdown waits for the threads to clean up and stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The same while standard input is still open, as after a signal: the thread that reads it may be blocked.
const SHUTDOWN_TIMEOUT_WITH_INPUT: Duration = Duration::from_millis(200);

/// Serves a client on standard input and output until the client disconnects or a signal arrives.
pub fn run_server(
    backend: impl Backend,
    inbox: AgentInbox,
    pushes: PushSource,
    version: &'static str,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(MAX_THREADS).build()?;
    let input_ended = Arc::new(AtomicBool::new(false));
    let served = runtime.block_on(serve(Arc::new(backend), inbox, pushes, version, Arc::clone(&input_ended)));
    let has_ended = input_ended.load(Ordering::Relaxed);
    runtime.shutdown_timeout(if has_ended { SHUTDOWN_TIMEOUT } else { SHUTDOWN_TIMEOUT_WITH_INPUT });
    served
}

async fn serve(
    backend: Arc<dyn Backend>,
    mut inbox: AgentInbox,
    pushes: PushSource,
    version: &'static str,
    input_ended: Arc<AtomicBool>,
) -> io::Result<()> {
    let nonce = inbox.choose_nonce(IdSource::now().random);
    let pushes = Arc::new(Pushes::new(pushes)?);
    let (ended, is_ended) = watch::channel(false);
    let (read, write) = stdio_pipes();
    let results = ResultWriter::new(inbox, Arc::clone(&backend), Arc::clone(&pushes));
    let transport = StdioTransport::new(read, write, results, ended.clone(), input_ended);
    let handler = Handler::new(backend, pushes, version, &nonce, is_ended);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
        // The transport closes, which ends the service.
        ended.send_replace(true);
    });
    match handler.serve(transport).await {
        Ok(service) => service.waiting().await.map(drop).map_err(io::Error::other),
        // The client disconnected before it was initialized.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::TransportError { .. }) => {
            Ok(())
        }
        Err(error) => Err(io::Error::other(error)),
    }
}
