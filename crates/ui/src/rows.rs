//! The rows of the inbox, the widths of their columns, and the format of ages.

use ringer_core::attention::ReadBy;
use ringer_core::message::ShownKind;
use ringer_term::sanitise_line;

use crate::backend::{Agent, Data, Notification};
use crate::columns::{cut_end, cut_front, cut_middle, width};
use crate::theme::{Sign, sign_of_kind, sign_of_state};

/// The sections of the inbox, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Section {
    NeedsYou,
    Agents,
    Recent,
}

impl Section {
    pub(crate) const ALL: [Self; 3] = [Self::NeedsYou, Self::Agents, Self::Recent];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::NeedsYou => "NEEDS YOU",
            Self::Agents => "AGENTS",
            Self::Recent => "RECENT",
        }
    }
}

/// Identifies a row, so that it stays selected when the rows around it change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) section: Section,
    pub(crate) id: String,
}

/// A row. Its texts are safe to print.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: RowKey,
    pub(crate) is_unread: bool,
    pub(crate) short_id: String,
    pub(crate) label: String,
    pub(crate) client: String,
    pub(crate) sign: Sign,
    pub(crate) detail: String,
    /// True if the detail is a command: it is cut in the middle, while other text is cut at the end.
    is_command: bool,
    /// True if the detail changes with every tool.
    changes_often: bool,
    pub(crate) since_ms: i64,
    pub(crate) age: String,
    /// The place, or for a notification that was read, how it was read.
    pub(crate) place: String,
}

impl Row {
    fn for_notification(section: Section, notification: &Notification, now_ms: i64) -> Self {
        let snoozed = notification.snoozed_until_ms.filter(|until| *until > now_ms);
        Self {
            key: RowKey { section, id: notification.id.clone() },
            is_unread: !notification.is_read,
            short_id: sanitise_line(&notification.short_id),
            label: sanitise_line(&notification.label),
            client: String::new(),
            sign: sign_of_kind(notification.kind),
            detail: with_remaining(
                snoozed.map(|until| format!("back in {}", age(until - now_ms))),
                one_line(&notification.text),
            ),
            is_command: notification.kind == ShownKind::Permission,
            changes_often: false,
            since_ms: notification.sent_ms,
            age: age(now_ms.saturating_sub(notification.sent_ms)),
            place: sanitise_line(&read_reason(notification).unwrap_or_else(|| notification.place.clone())),
        }
    }

    fn for_agent(agent: &Agent, open_notification: Option<&Notification>, now_ms: i64) -> Self {
        let prompt = if agent.text.is_empty() {
            open_notification.map(|notification| one_line(&notification.text))
        } else {
            None
        };
        let muted = agent.muted_until_ms.filter(|until| *until > now_ms).map(|until| match until {
            i64::MAX => "muted".to_owned(),
            until => format!("muted {}", age(until - now_ms)),
        });
        let is_working = agent.state == "working";
        Self {
            key: RowKey { section: Section::Agents, id: agent.id.clone() },
            is_unread: false,
            short_id: String::new(),
            label: sanitise_line(&agent.label),
            client: sanitise_line(&agent.client),
            sign: sign_of_state(&agent.state, open_notification.map(|notification| notification.kind)),
            detail: with_remaining(muted, prompt.unwrap_or_else(|| one_line(&agent.text))),
            is_command: is_working
                || open_notification.is_some_and(|notification| notification.kind == ShownKind::Permission),
            changes_often: is_working,
            since_ms: agent.since_ms,
            age: age(now_ms.saturating_sub(agent.since_ms)),
            place: sanitise_line(&agent.place),
        }
    }

    pub(crate) fn detail(&self, width: usize) -> String {
        if self.is_command { cut_middle(&self.detail, width) } else { cut_end(&self.detail, width) }
    }

    pub(crate) fn label(&self, width: usize) -> String {
        cut_front(&self.label, width)
    }

    fn detail_width(&self) -> usize {
        // A fixed width, so that the columns do not move with every tool.
        if self.changes_often { CURRENT_TOOL } else { width(&self.detail) }
    }

    fn matches_filter(&self, filter: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(filter);
        has(&self.label) || has(&self.client) || has(&self.detail) || has(self.sign.word) || has(&self.place)
    }
}

/// Returns how a notification was read: `read in tmux`, `read in api`.
fn read_reason(notification: &Notification) -> Option<String> {
    let words = match notification.read_by.filter(|_| notification.is_read)? {
        ReadBy::Person => "read by you",
        ReadBy::Looking => {
            // `tmux main:3`, `pts/4`, `my api · tests`, `box · pts/4`.
            let outer = notification.place.split(" · ").next().unwrap_or_default();
            let outer = if outer.starts_with("tmux ") { "tmux" } else { outer };
            return Some(if outer.is_empty() { "seen".to_owned() } else { format!("read in {outer}") });
        }
        ReadBy::Answer => "answered",
        ReadBy::ClosedUnanswered => "closed",
        ReadBy::Prompt => "answered by prompt",
        ReadBy::Newer => "a newer one came",
        ReadBy::Interruption => "interrupted",
        ReadBy::Agent => "went on",
        ReadBy::SessionEnd => "session ended",
        ReadBy::Expiry => "expired",
        ReadBy::Program => "taken back",
        _ => return None,
    };
    Some(words.to_owned())
}

/// Puts the duration of a snooze or a mute in front of a text.
fn with_remaining(how_long: Option<String>, text: String) -> String {
    match how_long {
        Some(how_long) if text.is_empty() => how_long,
        Some(how_long) => format!("{how_long} · {text}"),
        None => text,
    }
}

fn one_line(text: &str) -> String {
    sanitise_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of all sections, in order. A filter keeps the rows that contain all of its words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rows {
    sections: [Vec<Row>; 3],
    /// The number of notifications that need the person and were not loaded; 0 with a filter, which cannot be applied to them.
    unlisted: usize,
}

impl Rows {
    pub(crate) fn of(data: &Data, filter: &str, now_ms: i64) -> Self {
        let notifications = |section: Section, list: &[Notification]| {
            list.iter()
                .map(|notification| Row::for_notification(section, notification, now_ms))
                .collect::<Vec<Row>>()
        };
        let open_notification =
            |agent: &Agent| data.needs_you.iter().find(|notification| notification.from == agent.sender);
        let mut sections = [
            notifications(Section::NeedsYou, &data.needs_you),
            data.agents.iter().map(|agent| Row::for_agent(agent, open_notification(agent), now_ms)).collect(),
            notifications(Section::Recent, &data.recent),
        ];
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        for rows in &mut sections {
            rows.retain(|row| words.iter().all(|word| row.matches_filter(word)));
        }
        let unlisted = if words.is_empty() { data.needs_you_unlisted } else { 0 };
        Self { sections, unlisted }
    }

    /// Returns the number of rows in a section, including notifications that were not loaded.
    pub(crate) fn count(&self, section: Section) -> usize {
        let unlisted = if section == Section::NeedsYou { self.unlisted } else { 0 };
        self.section(section).len() + unlisted
    }

    pub(crate) fn section(&self, section: Section) -> &[Row] {
        match section {
            Section::NeedsYou => &self.sections[0],
            Section::Agents => &self.sections[1],
            Section::Recent => &self.sections[2],
        }
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.sections.iter().flatten()
    }

    pub(crate) fn find(&self, key: &RowKey) -> Option<&Row> {
        self.section(key.section).iter().find(|row| row.key == *key)
    }

    pub(crate) fn counts(&self) -> [usize; 3] {
        [self.sections[0].len(), self.sections[1].len(), self.sections[2].len()]
    }
}

/// The widths of the columns of a section. A column of width 0 is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) id: usize,
    pub(crate) label: usize,
    pub(crate) client: usize,
    pub(crate) word: usize,
    pub(crate) detail: usize,
    pub(crate) age: usize,
    pub(crate) place: usize,
}

/// The width of the unread mark, with its spaces.
pub(crate) const MARK: usize = 3;
/// The width of the sign, with its spaces.
const SIGN: usize = 3;
const GAP: usize = 2;
/// The width of the longest age: `now`, `59m`, `999d`.
const AGE: usize = 4;
const MAX_LABEL: usize = 24;
const MAX_PLACE: usize = 20;
const MIN_LABEL: usize = 8;
/// The width for the current tool of an agent: `Bash: cargo test --lib`.
const CURRENT_TOOL: usize = 24;
/// If the detail would get fewer columns than these, the client is hidden, then the place is hidden, then the label is cut. The
/// first two limits shrink to the longest detail of the section.
const DETAIL_BEFORE_CLIENT: usize = 48;
const DETAIL_BEFORE_PLACE: usize = 40;
const DETAIL_BEFORE_LABEL: usize = 16;

impl Widths {
    /// Computes the widths from all rows of a section, visible or not, so that columns do not move while scrolling.
    pub(crate) fn of(rows: &[Row], columns: usize) -> Self {
        let widest = |part: fn(&Row) -> &str, most: usize| {
            rows.iter().map(|row| width(part(row))).max().unwrap_or(0).min(most)
        };
        let mut widths = Self {
            id: widest(|row| &row.short_id, 6),
            label: widest(|row| &row.label, MAX_LABEL),
            client: widest(|row| &row.client, 10),
            word: widest(|row| row.sign.word, 16),
            detail: 0,
            age: AGE,
            place: widest(|row| &row.place, MAX_PLACE),
        };
        let longest = rows.iter().map(Row::detail_width).max().unwrap_or(0);
        if widths.rest(columns) < longest.min(DETAIL_BEFORE_CLIENT) {
            widths.client = 0;
        }
        if widths.rest(columns) < longest.min(DETAIL_BEFORE_PLACE) {
            widths.place = 0;
        }
        let missing = DETAIL_BEFORE_LABEL.saturating_sub(widths.rest(columns));
        widths.label = widths.label.saturating_sub(missing).max(MIN_LABEL.min(widths.label));
        widths.detail = widths.rest(columns);
        widths
    }

    fn rest(&self, columns: usize) -> usize {
        let part = |width: usize| if width > 0 { width + GAP } else { 0 };
        let id = if self.id > 0 { self.id + 1 } else { 0 };
        let fixed = MARK + id + part(self.label) + part(self.client) + SIGN + part(self.word);
        columns.saturating_sub(fixed + GAP + self.age + part(self.place) + 1)
    }
}

/// Formats an age: `now`, `40s`, `5m`, `3h`, `2d`. A negative age, as after a change of the clock, is `now`.
pub fn age(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        ..10 => "now".to_owned(),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// Returns the milliseconds until the text of [`age`] changes.
pub(crate) fn next_age_change_in(milliseconds: i64) -> i64 {
    let unit = match milliseconds {
        ..10_000 => return 10_000_i64.saturating_sub(milliseconds),
        10_000..60_000 => 1000,
        60_000..3_600_000 => 60_000,
        3_600_000..86_400_000 => 3_600_000,
        _ => 86_400_000,
    };
    unit - milliseconds % unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_reading_is_named_in_full() {
        let check = |read_by: ReadBy, place: &str, expected: &str| {
            let notification = Notification {
                id: String::new(),
                short_id: String::new(),
                from: String::new(),
                label: String::new(),
                kind: ShownKind::Error,
                text: String::new(),
                sent_ms: 0,
                place: place.to_owned(),
                is_read: true,
                read_by: Some(read_by),
                snoozed_until_ms: None,
            };
            assert_eq!(read_reason(&notification).as_deref(), Some(expected));
        };
        check(ReadBy::Looking, "tmux main:3", "read in tmux");
        check(ReadBy::Looking, "pts/4", "read in pts/4");
        check(ReadBy::Looking, "my api · tests", "read in my api");
        check(ReadBy::Looking, "box · tmux %3", "read in box");
        check(ReadBy::Looking, "", "seen");
        check(ReadBy::Answer, "pts/4", "answered");
        check(ReadBy::ClosedUnanswered, "pts/4", "closed");
    }

    #[test]
    fn the_next_change_of_an_age_is_known() {
        for start in
            [-5, 0, 9_999, 10_000, 10_001, 59_999, 61_234, 3_599_999, 3_600_001, 86_400_000, 90_000_000]
        {
            let change = start + next_age_change_in(start);
            assert_eq!(age(change - 1), age(start), "{start}");
            assert_ne!(age(change), age(start), "{start}");
        }
    }

    #[test]
    fn one_number_and_one_letter() {
        let ages = [i64::MIN, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 4_000_000_000];
        let expect = ["now", "now", "10s", "59s", "1m", "59m", "1h", "1d", "46d"];
        assert_eq!(ages.map(age), expect);
    }
}
