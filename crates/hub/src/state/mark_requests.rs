//! Handles requests that mark notifications, and undo.

use ringer_core::attention::MarkTarget;
use ringer_core::message::Mark;
use ringer_core::{Draft, MessageId, Now};
use ringer_ipc::ApiError;
use serde_json::{Value, json};

use super::HubState;
use super::handlers::{Handled, Result};
use super::journal_writes::mark_draft;
use super::request_queue::Continuation;
use crate::message::Answer;
use crate::socket::requests::{SnoozeParams, TargetParams};

impl HubState {
    /// Appends a mark. Marks are messages, so every reader of the journal applies them.
    pub(super) fn mark(&mut self, now: Now, mark: Mark, target: &TargetParams) -> Result<Handled> {
        let marked = match (&target.id, target.all) {
            (Some(id), _) => {
                let id = self.named(id)?;
                if self.notifications.get(&id).is_none() && !self.is_still_to_be_read(&id) {
                    return Err(ApiError::new("not_found", format!("unknown notification {id}")));
                }
                MarkTarget::Message(id)
            }
            (None, true) => MarkTarget::All,
            (None, false) => MarkTarget::Place(self.place(target)?),
        };
        let (unread, listed) = (self.notifications.list().total_unread(), self.notifications.list().len());
        self.append_command(now, mark, &marked, target.command.as_deref())?;
        Ok(Handled::AfterIngest(Continuation::Marked { unread, listed }))
    }

    /// Appends a mark that the person can undo. The marks of one command share an id; a single mark gets a new one.
    pub(super) fn append_command(
        &mut self,
        now: Now,
        mark: Mark,
        target: &MarkTarget,
        command: Option<&str>,
    ) -> Result<()> {
        let command = command.map(MessageId::parse).transpose();
        let command = command.map_err(|error| ApiError::params(format!("command: {error}")))?;
        let command = command.unwrap_or_else(|| self.ids(now).message_id());
        let draft = Draft { body: command.to_string(), ..mark_draft(mark, target) };
        self.append_for_request(now, &draft).map(drop)
    }

    /// Snoozes a notification.
    pub(super) fn snooze(&mut self, now: Now, params: &SnoozeParams) -> Result<Handled> {
        let id = match &params.id {
            Some(id) => Some(self.named(id)?),
            None => self.most_urgent_unread(),
        };
        let Some(id) = id else { return Ok(Handled::AfterIngest(Continuation::Value(Value::Null))) };
        if self.record(&id)?.is_resolved {
            let short_id = self.notifications.list().short_id(&id).unwrap_or_else(|| id.to_string());
            return Err(ApiError::new("resolved", format!("notification {short_id} is over")));
        }
        if params.until_unix_ms <= now.wall_ms {
            return Err(ApiError::params("until_unix_ms is in the past"));
        }
        let mark = mark_draft(Mark::Snooze, &MarkTarget::Message(id.clone()));
        self.append_for_request(now, &Draft { body: params.until_unix_ms.to_string(), ..mark })?;
        Ok(Handled::AfterIngest(Continuation::Snoozed { id }))
    }

    /// Undoes the last command.
    pub(super) fn undo(&mut self, now: Now) -> Result<Handled> {
        let Some(kind) = self.notifications.engine().undo_log().last() else {
            let nothing = json!({ "undone": null, "unread": 0, "listed": 0 });
            return Ok(Handled::Done(Answer::Value(Ok(nothing))));
        };
        let (unread, listed) = (self.notifications.list().total_unread(), self.notifications.list().len());
        self.append_for_request(now, &mark_draft(Mark::Undo, &MarkTarget::All))?;
        Ok(Handled::AfterIngest(Continuation::Undone { kind, unread, listed }))
    }
}
