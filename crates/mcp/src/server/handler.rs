//! Handles the requests of a client.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringer_core::conversation::system_prompt;
use ringer_core::message::SessionNonce;
use ringer_platform::wake_pair;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::interval_at;

use super::push::Pushes;
use super::results::{WhenWritten, result};
use super::tools::{
    AskArguments, AskResult, Backend, DEFAULT_ASK_SECONDS, InboxArguments, StatusArguments, ToolName,
    ToolText, read_arguments,
};

/// The most questions that wait at the same time. Each takes a thread.
pub(super) const MAX_ASKING: usize = 64;
/// Interval of progress notifications while a question waits. Clients that restart their timeout on progress allow 60 seconds.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// The second part of the instructions, after the explanation of notifications.
const ABOUT_TOOLS: &str = "\
Tell the person with `notify` when your task is done, has failed, or needs them; they may be looking elsewhere. Before a \
decision that is theirs, `ask`. `inbox` shows what waits for you now. A message may also come as a `<channel>` element with \
a `message_id`: when you have read it, pass that id to `inbox` as `seen`, otherwise it comes once more.";

/// The capability to send channel messages. Relaying permission dialogs is a separate capability, which is not declared:
/// `ringer answer` answers them through the client's hooks.
const CHANNEL: &str = "claude/channel";

pub(super) struct Handler {
    backend: Arc<dyn Backend>,
    pushes: Arc<Pushes>,
    version: &'static str,
    instructions: String,
    asking: Semaphore,
    ended: watch::Receiver<bool>,
}

impl Handler {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        pushes: Arc<Pushes>,
        version: &'static str,
        nonce: &SessionNonce,
        ended: watch::Receiver<bool>,
    ) -> Self {
        let instructions = format!("{}\n\n{ABOUT_TOOLS}", system_prompt(nonce));
        Self { backend, pushes, version, instructions, asking: Semaphore::new(MAX_ASKING), ended }
    }

    /// Runs a blocking method of the backend.
    async fn run(&self, run: impl FnOnce(&dyn Backend) -> ToolText + Send + 'static) -> ToolText {
        let backend = Arc::clone(&self.backend);
        let text = spawn_blocking(move || run(backend.as_ref())).await;
        text.unwrap_or_else(|_| Err("error: an error in Ringer itself".to_owned()))
    }

    async fn call(
        &self,
        tool: ToolName,
        arguments: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let text = match tool {
            ToolName::Notify => {
                let arguments = read_arguments(tool, arguments)?;
                self.run(move |backend| backend.notify(&arguments)).await
            }
            ToolName::Ask => return self.ask(read_arguments(tool, arguments)?, context).await,
            ToolName::Questions => {
                let arguments = read_arguments(tool, arguments)?;
                self.run(move |backend| backend.questions(&arguments)).await
            }
            ToolName::Answer => {
                let arguments = read_arguments(tool, arguments)?;
                self.run(move |backend| backend.answer(&arguments)).await
            }
            ToolName::Inbox => {
                let InboxArguments { seen } = read_arguments(tool, arguments)?;
                let text = self.run(move |backend| backend.mark_seen(&seen)).await?;
                return Ok(result(Ok(text), &WhenWritten::Inbox));
            }
            ToolName::List => {
                let arguments = read_arguments(tool, arguments)?;
                self.run(move |backend| backend.list(&arguments)).await
            }
            ToolName::Status => {
                let StatusArguments {} = read_arguments(tool, arguments)?;
                self.run(Backend::status).await
            }
        };
        Ok(result(text, &WhenWritten::Nothing))
    }

    /// Asks and waits. If the call is cancelled or the client disconnects, the waiting thread stops.
    async fn ask(
        &self,
        arguments: AskArguments,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let Ok(_permit) = self.asking.try_acquire() else {
            return Err(format!(
                "error: {MAX_ASKING} questions wait already\nhint: ask again when one of them has its answer"
            ));
        };
        let within = Duration::from_secs(arguments.timeout_seconds.unwrap_or(DEFAULT_ASK_SECONDS));
        let failed = |error: std::io::Error| format!("error: cannot wait for an answer: {error}");
        // The thread polls `stop`, which hangs up when `kept` is dropped.
        let (stop, kept) = wake_pair().map_err(failed)?;
        let backend = Arc::clone(&self.backend);
        let mut waiting = spawn_blocking(move || backend.ask(&arguments, within, stop.as_fd()));
        let (started, mut ended) = (Instant::now(), self.ended.clone());
        let mut ticks = interval_at((started + PROGRESS_EVERY).into(), PROGRESS_EVERY);
        let asked = loop {
            tokio::select! {
                asked = &mut waiting => break asked,
                () = context.ct.cancelled() => return Err("cancelled".to_owned()),
                () = wait_for_disconnect(&mut ended) => return Err("the client has gone".to_owned()),
                _ = ticks.tick() => self.report_progress(context, started.elapsed(), within).await,
            }
        };
        drop(kept);
        let asked = asked.unwrap_or_else(|_| Err("error: an error in Ringer itself".to_owned()))?;
        let (text, when_written) = match asked {
            AskResult::Answered { id, answer: Some(answer) } => (answer, WhenWritten::AnswerRead(id)),
            AskResult::Answered { id, answer: None } => {
                (format!("The question {id} was closed without an answer."), WhenWritten::Nothing)
            }
            AskResult::Open { id, is_sent_later } => (open(&id, is_sent_later, within), WhenWritten::Nothing),
        };
        Ok(result(Ok(text), &when_written))
    }

    async fn report_progress(
        &self,
        context: &RequestContext<RoleServer>,
        waited: Duration,
        within: Duration,
    ) {
        let Some(token) = context.meta.get_progress_token() else { return };
        let mut progress = ProgressNotificationParam::new(token, waited.as_secs_f64());
        progress.total = Some(within.as_secs_f64());
        progress.message = Some("waiting for the answer".to_owned());
        // The transport notices a client that has disconnected.
        let _ = context.peer.notify_progress(progress).await;
    }
}

async fn wait_for_disconnect(ended: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, which happens only after the service has ended.
    let _ = ended.wait_for(|ended| *ended).await;
}

fn open(id: &str, is_sent_later: bool, within: Duration) -> String {
    let waited = match within.as_secs() {
        0 => String::new(),
        seconds => format!("No answer within {seconds} s. "),
    };
    let later = if is_sent_later {
        "Its answer comes at the end of a later tool result; `inbox` shows it, too."
    } else {
        "Call `questions` with `all` later to read its answer."
    };
    format!("{waited}The question {id} stays open. {later}")
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let channel = BTreeMap::from([(CHANNEL.to_owned(), JsonObject::new())]);
        let capabilities =
            ServerCapabilities::builder().enable_experimental_with(channel).enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ringer", self.version))
            .with_instructions(self.instructions.clone())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.pushes.start(&context.peer);
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ToolName::ALL.into_iter().map(ToolName::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Clients of the newest protocol version send no `initialized` notification.
        self.pushes.start(&context.peer);
        let called = if let Some(tool) = ToolName::parse(&request.name) {
            self.call(tool, request.arguments, &context).await
        } else {
            let known: Vec<&str> = ToolName::ALL.into_iter().map(ToolName::as_str).collect();
            Err(format!("error: unknown tool {:?} (known: {})", request.name, known.join(", ")))
        };
        Ok(called.unwrap_or_else(|why| result(Err(why), &WhenWritten::Nothing)).into())
    }
}
