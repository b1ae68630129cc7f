//! The notifications without a hub: those that the last hub stored, and newer ones from the journal.

use std::collections::HashMap;

use ringer_core::attention::{Digest, Record, apply_mark_message, local_first};
use ringer_core::message::{MessageId, Named, QuestionId, ShortIds, ShownKind, Tag};
use ringer_hub::{Clock, MAX_READ, view};
use ringer_journal::{HubStore, Journal};
use ringer_term::sanitise_line;
use ringer_ui::age;
use serde_json::{Value, json};

use crate::context;
use crate::failure::Failure;

/// Notifications as a hub would list them.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    /// Oldest first.
    records: Vec<Record>,
    ids: ListedIds,
}

/// The ids of a list, with their short forms.
#[derive(Debug, Default)]
pub(crate) struct ListedIds {
    numbers: HashMap<MessageId, u32>,
    short_ids: ShortIds,
}

impl ListedIds {
    pub(crate) fn of<'a>(ids: impl Iterator<Item = &'a MessageId>) -> Self {
        let mut listed = Self::default();
        for (number, id) in (0..).zip(ids) {
            listed.numbers.insert(id.clone(), number);
            listed.short_ids.insert(id, number);
        }
        listed
    }

    /// Returns the short id; `None` if the notification is not in the list.
    pub(crate) fn short_id(&self, id: &MessageId) -> Option<String> {
        self.numbers.get(id).map(|number| self.short_ids.shown(id, *number))
    }
}

impl Notifications {
    pub(crate) fn read(journal: &mut Journal) -> Result<Self, Failure> {
        let mut hub_store = HubStore::open_to_read(&context::home()?)?;
        let mut records = match &mut hub_store {
            Some(hub_store) => hub_store.notifications(MAX_READ)?.records,
            None => Vec::new(),
        };
        for message in journal.unread_by_hub(hub_store.as_mut())? {
            match message.draft.tag {
                Tag::Notice(_) => records.extend(Record::of(&message)),
                // Marks that no hub has read yet already count.
                Tag::Mark(_) => apply_mark_message(&message, &mut records),
            }
        }
        let ids = ListedIds::of(records.iter().map(|record| &record.id));
        Ok(Self { records, ids })
    }

    /// Returns notifications in the hub's form, newest first: those of this machine before those of others.
    pub(crate) fn newest(&self, clock: &Clock, wanted: impl Fn(&Record) -> bool, most: usize) -> Vec<Value> {
        let newest = || self.records.iter().rev().filter(|record| wanted(record));
        let local = newest().filter(|record| record.machine.is_none());
        let elsewhere = newest().filter(|record| record.machine.is_some());
        local_first(local, elsewhere, most)
            .map(|record| view::notification(record, self.short_id(&record.id).as_deref(), clock))
            .collect()
    }

    /// Returns the notifications that need the person, in the hub's form: the most urgent first, then the oldest.
    pub(crate) fn needing_person(&self, clock: &Clock, wanted: impl Fn(&Record) -> bool) -> Vec<Value> {
        let needing = self.records.iter().filter(|record| record.needs_person() && wanted(record));
        let mut needing: Vec<&Record> = needing.collect();
        needing.sort_by(|one, two| one.by_urgency(two));
        let view = |record: &Record| view::notification(record, self.short_id(&record.id).as_deref(), clock);
        needing.into_iter().map(view).collect()
    }

    /// Returns the digest since a moment, in the hub's form.
    pub(crate) fn digest(&self, clock: &Clock, since_ms: i64) -> Value {
        let records = self.records.iter().filter(|record| Digest::includes(record, since_ms)).collect();
        view::digest(since_ms, records, |id| self.short_id(id), clock)
    }

    pub(crate) fn most_urgent_unread(&self) -> Option<&Record> {
        Record::most_urgent_unread(self.records.iter())
    }

    /// Returns everything that waits for an answer, on all machines, oldest first. Every command that picks the only open prompt,
    /// or lists them, uses this. Questions count until they are answered, even if they were cleared.
    pub(crate) fn open_prompts(&self, journal: &mut Journal) -> Result<Vec<MessageId>, Failure> {
        let listed = self.records.iter().filter(|record| record.waits_for_answer());
        let mut open: Vec<MessageId> = listed.map(|record| record.id.clone()).collect();
        let questions = journal.question_messages(false)?;
        open.extend(questions.into_iter().map(|(_, message)| message));
        // Ids sort by time.
        open.sort();
        open.dedup();
        Ok(open)
    }

    /// The open questions of agents on other machines, oldest first.
    pub(crate) fn questions_elsewhere(&self) -> impl Iterator<Item = &Record> {
        let is_question =
            |record: &&Record| record.waits_for_answer() && record.shown_kind() == ShownKind::Question;
        self.records.iter().filter(|record| record.machine.is_some()).filter(is_question)
    }

    pub(crate) fn asking(&self, question: &QuestionId) -> Option<&Record> {
        self.records.iter().find(|record| record.open_question.as_ref() == Some(question))
    }

    /// Returns the notification of a message; `None` if it is not in the list.
    pub(crate) fn record(&self, id: &MessageId) -> Option<&Record> {
        self.ids.numbers.get(id).and_then(|number| self.records.get(usize::try_from(*number).ok()?))
    }

    /// Returns the short id of a message; `None` if it is not in the list.
    pub(crate) fn short_id(&self, id: &MessageId) -> Option<String> {
        self.ids.short_id(id)
    }

    /// Returns the notification that a person names. `None` if there is none.
    pub(crate) fn named(&self, text: &str, clock: &Clock) -> Result<Option<MessageId>, Failure> {
        match Named::among(text, self.records.iter().rev().map(|record| &record.id)) {
            Named::One(id) => Ok(Some(id)),
            Named::Unknown => Ok(None),
            Named::Several(ids) => {
                let what = format!("{text:?} fits {} notifications", ids.len());
                let matches = self.newest(clock, |record| ids.contains(&record.id), 10);
                Err(ambiguous(&what, &json!(matches), clock))
            }
        }
    }
}

/// Returns the origin and the text of a listed notification, not sanitised.
pub(crate) fn label_and_text(row: &Value) -> (String, String) {
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    match (row["label"].as_str(), row["title"].as_str()) {
        // A title from an agent's client repeats the label and the kind.
        (Some(label), _) => (label.to_owned(), text("body")),
        (None, Some(title)) if !title.is_empty() => (text("from"), format!("{title}: {}", text("body"))),
        (None, _) => (text("from"), text("body")),
    }
}

/// Builds the failure for a text that matches several notifications; `matches` are the newest of them.
pub(crate) fn ambiguous(what: &str, matches: &Value, clock: &Clock) -> Failure {
    let now = clock.now().wall_ms;
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = matches.as_array().into_iter().flatten();
    let lines = rows.map(|row| {
        let said =
            Some(text(row, "title")).filter(|title| !title.is_empty()).unwrap_or_else(|| text(row, "body"));
        let age = clock.parse_stamp(&text(row, "ts")).map(|sent| age(now - sent)).unwrap_or_default();
        let said: String = sanitise_line(&said).chars().take(60).collect();
        format!("\n  {}  {age:>3}  {said}", text(row, "short_id"))
    });
    let first = matches[0]["short_id"].as_str().unwrap_or_default();
    Failure::usage(format!("{}:{}", sanitise_line(what), lines.collect::<String>()))
        .hint(format!("name one of them, as in: ringer why {first}"))
}
