//! The notifications as a hub that started now would list them. Commands that only look read them without asking a hub.

use std::collections::HashMap;

use ringer_core::attention::{NotificationStore, Record};
use ringer_core::message::{IdMatch, MessageId, ShortIds, ShownKind};
use ringer_hub::{Clock, OfflineHub, view};
use ringer_journal::Journal;
use ringer_term::sanitise_line;
use ringer_ui::age;
use serde_json::{Value, json};

use crate::context;
use crate::failure::Failure;

/// Reads the notifications.
pub(crate) fn read() -> Result<NotificationStore, Failure> {
    let hub = OfflineHub::open(&context::home()?)?;
    Ok(hub.map(|hub| hub.notifications().clone()).unwrap_or_default())
}

/// Short ids in a list of messages.
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

    /// Returns the short id; `None` if the message is not in the list.
    pub(crate) fn short_id(&self, id: &MessageId) -> Option<String> {
        self.numbers.get(id).map(|number| self.short_ids.shown(id, *number))
    }
}

/// Formats a notification as the hub does.
pub(crate) fn view(list: &NotificationStore, record: &Record, clock: &Clock) -> Value {
    view::notification(record, list.short_id(&record.id).as_deref(), clock)
}

/// Returns the notifications that need the person, in the hub's form: the most urgent first, then the oldest.
pub(crate) fn needing_person(
    list: &NotificationStore,
    clock: &Clock,
    wanted: impl Fn(&Record) -> bool,
) -> Vec<Value> {
    let mut needing: Vec<&Record> = list.needs_person().filter(|record| wanted(record)).collect();
    needing.sort_by(|one, two| one.by_urgency(two));
    needing.into_iter().map(|record| view(list, record, clock)).collect()
}

/// Returns everything that waits for an answer, on all machines, oldest first. Every command that picks the only open prompt, or
/// lists them, uses this. Questions count until they are answered, even if they were cleared.
pub(crate) fn open_prompts(
    list: &NotificationStore,
    journal: &mut Journal,
) -> Result<Vec<MessageId>, Failure> {
    let listed = list.newest().filter(|record| record.waits_for_answer());
    let mut open: Vec<MessageId> = listed.map(|record| record.id.clone()).collect();
    let questions = journal.question_messages(false)?;
    open.extend(questions.into_iter().map(|(_, message)| message));
    // Ids sort by time.
    open.sort();
    open.dedup();
    Ok(open)
}

/// The open questions of agents on other machines.
pub(crate) fn questions_elsewhere(list: &NotificationStore) -> impl Iterator<Item = &Record> {
    let is_question =
        |record: &&Record| record.waits_for_answer() && record.shown_kind() == ShownKind::Question;
    list.newest_elsewhere().filter(is_question)
}

/// Returns the notification that a person names. `None` if there is none.
pub(crate) fn named(
    list: &NotificationStore,
    text: &str,
    clock: &Clock,
) -> Result<Option<MessageId>, Failure> {
    match list.named(text) {
        IdMatch::One(id) => Ok(Some(id)),
        IdMatch::Unknown => Ok(None),
        IdMatch::Several(ids) => {
            let what = format!("{text:?} fits {} notifications", ids.len());
            let matches = ids.iter().filter_map(|id| list.get(id)).take(10);
            let matches: Vec<Value> = matches.map(|record| view(list, record, clock)).collect();
            Err(ambiguous(&what, &json!(matches), clock))
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
        let excerpt =
            Some(text(row, "title")).filter(|title| !title.is_empty()).unwrap_or_else(|| text(row, "body"));
        let age = clock.parse_stamp(&text(row, "ts")).map(|sent| age(now - sent)).unwrap_or_default();
        let excerpt: String = sanitise_line(&excerpt).chars().take(60).collect();
        format!("\n  {}  {age:>3}  {excerpt}", text(row, "short_id"))
    });
    let first = matches[0]["short_id"].as_str().unwrap_or_default();
    Failure::usage(format!("{}:{}", sanitise_line(what), lines.collect::<String>()))
        .hint(format!("name one of them, as in: ringer why {first}"))
}
