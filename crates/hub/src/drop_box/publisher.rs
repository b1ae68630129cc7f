//! Keeps the outbox up to date: a file for each question that a sandbox asked, and for each listener in one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ringer_core::Sender;
use ringer_core::message::QuestionId;
use ringer_ipc::drop_box::{ListenerFile, MAX_LISTENER_FILE, Outbox, QuestionState};
use ringer_journal::{Consumer, Error, IdSource, Journal};
use ringer_platform::{Durability, replace_file};
use serde::Serialize;

use crate::log::Log;

/// The most messages in a listener's file.
const MAX_MESSAGES: usize = 1_000;
/// The most listeners that have a file. Beyond that, the one that asked longest ago loses its file.
const MAX_LISTENERS: usize = 20;
/// The shortest time between two searches for expired files.
const EXPIRE_EVERY: Duration = Duration::from_mins(10);
/// How long a file stays after it was last requested.
const KEPT_FOR: Duration = Duration::from_hours(24);

pub(super) struct Publisher {
    outbox: Outbox,
    log: Log,
    /// Questions without an answer.
    open_questions: BTreeSet<QuestionId>,
    /// By name and scope.
    listeners: BTreeMap<(String, String), PublishedListener>,
    expire_at: Duration,
}

/// A listener and the contents of its file.
struct PublishedListener {
    consumer: Consumer,
    /// Time of its latest request, on the monotonic clock.
    asked: Duration,
    /// The sequence numbers of the first and the last message in its file. `None` before it is written.
    written: Option<(i64, i64)>,
}

impl Publisher {
    /// Continues with the files of an earlier hub.
    pub(super) fn new(outbox: Outbox, log: Log, now: Duration) -> Self {
        let (questions, listeners) = outbox.entries();
        let mut publisher = Self {
            outbox,
            log,
            open_questions: questions.into_iter().collect(),
            listeners: BTreeMap::new(),
            expire_at: now,
        };
        for consumer in listeners {
            publisher.add_listener(consumer, now);
        }
        publisher
    }

    /// Returns true if a file may change.
    pub(super) fn has_work(&self) -> bool {
        !self.open_questions.is_empty() || !self.listeners.is_empty()
    }

    /// Publishes the answer to a question.
    pub(super) fn add_question(&mut self, id: QuestionId) {
        self.open_questions.insert(id);
    }

    /// Refuses a sandbox's question because another one has its id.
    pub(super) fn refuse_question(&self, id: &QuestionId) {
        self.write(&self.outbox.question_path(id), &QuestionState::Refused);
    }

    /// Publishes a listener's unread messages until a day after its latest request.
    pub(super) fn add_listener(&mut self, consumer: Consumer, now: Duration) {
        let key = (consumer.name().to_owned(), consumer.scope().to_string());
        let written = self.listeners.get(&key).and_then(|listener| listener.written);
        self.listeners.insert(key, PublishedListener { consumer, asked: now, written });
        while self.listeners.len() > MAX_LISTENERS
            && let Some(oldest) = self.listeners.iter().min_by_key(|(_, listener)| listener.asked)
        {
            let key = oldest.0.clone();
            if let Some(listener) = self.listeners.remove(&key) {
                let _ = fs::remove_file(self.outbox.listener_path(&listener.consumer));
            }
        }
    }

    /// Writes the files that have changed.
    pub(super) fn publish(&mut self, journal: &mut Journal) -> Result<(), Error> {
        self.publish_questions(journal)?;
        let unix_ms = IdSource::now().unix_ms;
        for listener in self.listeners.values_mut() {
            let (newest, messages) = journal.newest_unread(&listener.consumer, unix_ms, MAX_MESSAGES)?;
            let first_and_last = messages.first().zip(messages.last());
            let ends = first_and_last.map_or((0, 0), |(first, last)| (first.seq, last.seq));
            if listener.written == Some(ends) {
                continue;
            }
            let file = without_oldest(ListenerFile { newest, messages });
            match write(&self.outbox.listener_path(&listener.consumer), &file) {
                Ok(()) => listener.written = Some(ends),
                Err(error) => log_failure(&self.log, &error),
            }
        }
        Ok(())
    }

    fn publish_questions(&mut self, journal: &mut Journal) -> Result<(), Error> {
        let mut closed = Vec::new();
        for id in &self.open_questions {
            let path = self.outbox.question_path(id);
            // Questions of other askers are withheld from sandboxes, one of which could have created a file of that name.
            let question = journal.question(id)?.filter(|question| question.asker == Sender::unverified());
            let Some(question) = question else {
                let _ = fs::remove_file(&path);
                closed.push(id.clone());
                continue;
            };
            let state = match (question.answered_ms, question.answer) {
                (None, _) => QuestionState::Open,
                (Some(_), Some(answer)) => QuestionState::Answered(answer),
                (Some(_), None) => QuestionState::Closed,
            };
            if self.outbox.question(id).as_ref() != Some(&state) {
                self.write(&path, &state);
            }
            if state != QuestionState::Open {
                closed.push(id.clone());
            }
        }
        for id in closed {
            self.open_questions.remove(&id);
        }
        Ok(())
    }

    /// Removes files that were not requested for a day.
    pub(super) fn expire(&mut self, now: Duration) {
        if now < self.expire_at {
            return;
        }
        self.expire_at = now + EXPIRE_EVERY;
        let outbox = &self.outbox;
        self.listeners.retain(|_, listener| {
            let stays = now.saturating_sub(listener.asked) < KEPT_FOR;
            if !stays {
                let _ = fs::remove_file(outbox.listener_path(&listener.consumer));
            }
            stays
        });
        let (questions, _) = outbox.entries();
        for id in questions.iter().filter(|id| !self.open_questions.contains(*id)) {
            let path = outbox.question_path(id);
            if age(&path).is_some_and(|age| age > KEPT_FOR) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn write(&self, path: &Path, content: &impl Serialize) {
        if let Err(error) = write(path, content) {
            log_failure(&self.log, &error);
        }
    }
}

fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    replace_file(path, &serde_json::to_vec(content)?, Durability::Unsynced)
}

fn log_failure(log: &Log, error: &io::Error) {
    log.quiet_line(format!("cannot write the outbox: {error}"));
}

/// Leaves out the oldest messages until the rest fits into a file.
fn without_oldest(mut file: ListenerFile) -> ListenerFile {
    let mut room = MAX_LISTENER_FILE;
    let size = |message| serde_json::to_vec(message).map_or(usize::MAX, |bytes| bytes.len() + 1);
    let kept = file.messages.iter().rev().map(size).take_while(|size| {
        let left = room.checked_sub(*size);
        room = left.unwrap_or(0);
        left.is_some()
    });
    let kept = kept.count();
    file.messages.drain(..file.messages.len() - kept);
    file
}

fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    SystemTime::now().duration_since(modified).ok()
}
