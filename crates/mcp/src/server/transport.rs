//! The stdio transport: one message per line.
//!
//! It differs from the transport of rmcp: it appends pending messages to tool results and marks them as delivered after the
//! write, replies to invalid requests with their id, and closes when a write fails.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcResponse, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Semaphore, watch};

use super::results::ResultWriter;
use crate::line_splitter::{LineSplitter, MAX_LINE, Piece};

/// The default capacity of a pipe on Linux.
const CHUNK: usize = 64 * 1024;
/// The most error replies to invalid requests in flight. More are not sent: the client is not reading.
const MAX_REFUSALS: usize = 64;
/// Some clients start with a byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Writes messages, one at a time.
pub(super) struct Output<W> {
    write: Mutex<W>,
    /// True once a write has failed, the input has ended, or a signal has arrived.
    ended: watch::Sender<bool>,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    /// Writes a message. A failure ends the server.
    pub(super) async fn write(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut write = self.write.lock().await;
        let written = match write.write_all(&line).await {
            Ok(()) => write.flush().await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.ended.send_replace(true);
        }
        written
    }
}

/// Reads the client's messages and writes the server's.
pub(super) struct StdioTransport<R, W> {
    read: R,
    splitter: LineSplitter,
    chunk: Vec<u8>,
    /// Messages of the same read. All are counted in `calls` before the first one is answered.
    received: VecDeque<ClientJsonRpcMessage>,
    /// Messages before the first request are dropped: rmcp would stop serving.
    has_request: bool,
    /// Shared with `run_server`, which waits longer for its threads once the input has ended.
    input_ended: Arc<AtomicBool>,
    /// The number of tool calls so far.
    calls: Arc<AtomicU64>,
    refusals: Arc<Semaphore>,
    output: Arc<Output<W>>,
    results: ResultWriter,
}

impl<R, W> StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Creates the transport. It sets `ended` when the client is gone, and `input_ended` when the client closes the input.
    pub(super) fn new(
        read: R,
        write: W,
        results: ResultWriter,
        ended: watch::Sender<bool>,
        input_ended: Arc<AtomicBool>,
    ) -> Self {
        Self {
            read,
            splitter: LineSplitter::default(),
            chunk: vec![0; CHUNK],
            received: VecDeque::new(),
            has_request: false,
            input_ended,
            calls: Arc::default(),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            output: Arc::new(Output { write: Mutex::new(write), ended }),
            results,
        }
    }

    fn feed(&mut self, length: usize) {
        let (mut lines, mut is_too_long) = (Vec::new(), false);
        let fed: Result<(), ()> = self.splitter.feed(&self.chunk[..length], |piece| {
            match piece {
                Piece::Line(line) => lines.push(line.to_vec()),
                Piece::Part(part) => is_too_long |= part.len() > MAX_LINE,
            }
            Ok(())
        });
        debug_assert!(fed.is_ok(), "it cannot fail");
        for line in lines {
            self.take_in(&line);
        }
        if is_too_long {
            let text = format!("the message is longer than {MAX_LINE} bytes");
            self.refuse(ErrorData::invalid_request(text, None), None);
        }
    }

    fn finish(&mut self) {
        self.input_ended.store(true, Ordering::Relaxed);
        let rest = self.splitter.finish();
        self.take_in(&rest);
    }

    fn take_in(&mut self, line: &[u8]) {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return;
        }
        let message: ClientJsonRpcMessage = match serde_json::from_slice(line) {
            Ok(message) => message,
            // Without valid JSON there is no id to reply to. Other servers ignore such lines, too.
            Err(error) if error.is_syntax() || error.is_eof() => return,
            Err(_) => {
                let Envelope { id, method } = serde_json::from_slice(line).unwrap_or_default();
                // An unknown notification needs no reply.
                if id.is_some() || method.is_none() {
                    let text = format!(
                        "invalid request{}",
                        method.map(|name| format!(" {name:?}")).unwrap_or_default()
                    );
                    self.refuse(ErrorData::invalid_request(text, None), id);
                }
                return;
            }
        };
        if let JsonRpcMessage::Request(request) = &message {
            self.has_request = true;
            if matches!(request.request, ClientRequest::CallToolRequest(_)) {
                self.calls.fetch_add(1, Ordering::Relaxed);
            }
        }
        if self.has_request {
            self.received.push_back(message);
        }
    }

    /// Replies with an error. The reply is a separate task because rmcp cancels `receive` whenever a response is ready.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>) {
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        let output = Arc::clone(&self.output);
        tokio::spawn(async move {
            // `write` itself ends the server if it fails.
            let _ = output.write(&ServerJsonRpcMessage::error(error, id)).await;
            drop(permit);
        });
    }
}

/// The fields read from an invalid message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    id: Option<RequestId>,
    method: Option<String>,
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, results, calls) =
            (Arc::clone(&self.output), self.results.clone(), Arc::clone(&self.calls));
        async move {
            let JsonRpcMessage::Response(JsonRpcResponse { id, result, .. }) = item else {
                return output.write(&item).await;
            };
            let ServerResult::CallToolResult(result) = result else {
                return output.write(&ServerJsonRpcMessage::response(result, id)).await;
            };
            let (result, taken) = results.add_pending(result, &calls).await;
            let message = ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id);
            let written = output.write(&message).await;
            taken.written(written.is_ok()).await;
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut ended = self.output.ended.subscribe();
        loop {
            if let Some(message) = self.received.pop_front() {
                return Some(message);
            }
            if self.input_ended.load(Ordering::Relaxed) {
                // Questions stop waiting for their answers.
                self.output.ended.send_replace(true);
                return None;
            }
            tokio::select! {
                read = self.read.read(&mut self.chunk) => match read {
                    Ok(0) | Err(_) => self.finish(),
                    Ok(length) => self.feed(length),
                },
                _ = ended.wait_for(|ended| *ended) => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
