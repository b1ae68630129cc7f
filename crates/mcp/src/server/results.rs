//! Tool results. Pending messages are appended to a result just before it is written, and marked as delivered after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringer_core::conversation::escape_tags;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

use super::push::Pushes;
use super::tools::{Backend, ToolText};
use crate::agent_inbox::AgentInbox;
use crate::proxy::PendingNotifications;

/// The `_meta` key that carries a [`WhenWritten`] to the transport, which removes it: clients do not see it.
const WHEN_WRITTEN: &str = "ringer/when-written";

/// Extra work when a result is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WhenWritten {
    Nothing,
    /// The result is from `inbox`: append everything that is pending.
    Inbox,
    /// The result contains the answer to this question: mark it as read.
    AnswerRead(String),
}

/// Builds a tool result. Escapes text that looks like a notification.
pub(super) fn result(text: ToolText, when_written: &WhenWritten) -> CallToolResult {
    let (text, is_error) = match text {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    let content = vec![ContentBlock::text(escape_tags(text.trim_end()).into_owned())];
    let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    let mark = match when_written {
        WhenWritten::Nothing => return result,
        WhenWritten::Inbox => Value::Bool(true),
        WhenWritten::AnswerRead(question) => Value::String(question.clone()),
    };
    let mut meta = MetaObject::new();
    meta.insert(WHEN_WRITTEN.to_owned(), mark);
    result.with_meta(Some(meta))
}

fn take_when_written(result: &mut CallToolResult) -> WhenWritten {
    match result.meta.take().and_then(|mut meta| meta.remove(WHEN_WRITTEN)) {
        Some(Value::String(question)) => WhenWritten::AnswerRead(question),
        Some(_) => WhenWritten::Inbox,
        None => WhenWritten::Nothing,
    }
}

/// Appends pending messages to tool results, one result at a time.
#[derive(Clone)]
pub(super) struct ResultWriter {
    inbox: Arc<Mutex<AgentInbox>>,
    backend: Arc<dyn Backend>,
    pushes: Arc<Pushes>,
}

impl ResultWriter {
    pub(super) fn new(inbox: AgentInbox, backend: Arc<dyn Backend>, pushes: Arc<Pushes>) -> Self {
        Self { inbox: Arc::new(Mutex::new(inbox)), backend, pushes }
    }

    /// Appends pending messages to a result. If there are any, other results wait until [`TakenNotifications::written`].
    pub(super) async fn add_pending(
        &self,
        mut result: CallToolResult,
        calls: &AtomicU64,
    ) -> (CallToolResult, TakenNotifications) {
        let when_written = take_when_written(&mut result);
        let mut inbox = Arc::clone(&self.inbox).lock_owned().await;
        let (backend, calls) = (Arc::clone(&self.backend), calls.load(Ordering::Relaxed));
        let taken = spawn_blocking(move || {
            if let WhenWritten::AnswerRead(question) = &when_written {
                backend.mark_answer_read(question);
            }
            let is_inbox = when_written == WhenWritten::Inbox;
            let added = if is_inbox { everything(&mut inbox, calls) } else { Ok(inbox.take(calls)) };
            (inbox, is_inbox, added)
        });
        let Ok((inbox, is_inbox, added)) = taken.await else { return (result, TakenNotifications(None)) };
        self.pushes.agent_is(inbox.agent());
        match added {
            Ok(Some(text)) => {
                append(&mut result, &text);
                return (result, TakenNotifications(Some(inbox)));
            }
            Ok(None) if is_inbox => append(&mut result, "Nothing waits for you."),
            Ok(None) => {}
            Err(why) => {
                append(&mut result, &why);
                result.is_error = Some(true);
            }
        }
        (result, TakenNotifications(None))
    }
}

/// The lock on the inbox whose messages were appended to a result, if any were.
#[must_use]
pub(super) struct TakenNotifications(Option<OwnedMutexGuard<AgentInbox>>);

impl TakenNotifications {
    /// Marks the messages as delivered, or releases them if the result was not written.
    pub(super) async fn written(self, is_written: bool) {
        if let Some(mut inbox) = self.0 {
            // If this fails, the messages become pending again when their lease expires.
            let _ = spawn_blocking(move || inbox.written(is_written)).await;
        }
    }
}

fn everything(inbox: &mut AgentInbox, calls: u64) -> Result<Option<String>, String> {
    let taken = inbox.take_all(calls);
    let taken = taken.map_err(|error| {
        format!("error: your messages cannot be read now: {error}\nhint: call `inbox` again")
    })?;
    Ok(taken.map(|taken| {
        let more = if taken.has_more { "\n\nMore messages wait: call `inbox` again." } else { "" };
        taken.text + more
    }))
}

/// Appends a paragraph to the last text of the result.
fn append(result: &mut CallToolResult, text: &str) {
    let last = result.content.iter().rev().find_map(ContentBlock::as_text).map(|last| last.text.clone());
    let whole = match last {
        Some(last) if !last.is_empty() => format!("{last}\n\n{text}"),
        _ => text.to_owned(),
    };
    result.content = vec![ContentBlock::text(whole)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_after_writing_is_removed_from_the_result() {
        for when in [WhenWritten::Nothing, WhenWritten::Inbox, WhenWritten::AnswerRead("q-1".to_owned())] {
            let mut made = result(Ok("x\n".to_owned()), &when);
            assert_eq!(take_when_written(&mut made), when);
            assert_eq!(made, CallToolResult::success(vec![ContentBlock::text("x")]));
        }
    }

    #[test]
    fn added_text_follows_a_blank_line() {
        let added = |text: &str| {
            let mut made = result(Ok(text.to_owned()), &WhenWritten::Nothing);
            append(&mut made, "more");
            made.content[0].as_text().map(|text| text.text.clone()).unwrap_or_default()
        };
        assert_eq!((added("one").as_str(), added("").as_str()), ("one\n\nmore", "more"));
    }
}
