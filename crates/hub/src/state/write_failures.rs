//! What cannot be written for now, because the disk is full, read-only or failing; and what was lost meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_journal::Error;

use super::ingest::RETRY_AFTER;
use super::journal_write_queue::MAX_WAITING;
use super::problems::Problem;

/// Since the first write that failed, until the disk can be written again.
#[derive(Debug, Default)]
pub(super) struct WriteFailures {
    /// What was said in the log: each kind of write once, and not with every try.
    said: BTreeSet<&'static str>,
    /// What the last failed write said.
    why: String,
    is_store_failing: bool,
    /// When it is looked whether the journal can be written again.
    check_at: Option<Duration>,
    /// Messages for which there was no room in the queue.
    lost: u64,
}

impl WriteFailures {
    /// A write failed that may work later. Gives whether that is to be said in the log.
    pub(super) fn add(&mut self, what: &'static str, error: &Error, now: Duration) -> bool {
        self.why = error.to_string();
        self.check_at.get_or_insert(now + RETRY_AFTER);
        self.said.insert(what)
    }

    pub(super) fn set_store_failing(&mut self, is_failing: bool) {
        self.is_store_failing = is_failing;
    }

    /// A message was lost. Gives whether it is the first one.
    pub(super) fn add_lost(&mut self) -> bool {
        self.lost += 1;
        self.lost == 1
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.check_at
    }

    /// Whether it is to be looked now whether the journal can be written again. If so, the next time is in a second.
    pub(super) fn take_due(&mut self, now: Duration) -> bool {
        let is_due = self.check_at.is_some_and(|at| at <= now);
        if is_due {
            self.check_at = Some(now + RETRY_AFTER);
        }
        is_due
    }

    /// The journal can be written, and nothing waits for it. Gives whether that is the end of the failures; the store has to
    /// be written again, too.
    pub(super) fn end(&mut self) -> bool {
        let is_over = self.check_at.is_some() && !self.is_store_failing;
        if is_over {
            self.said.clear();
            self.check_at = None;
        }
        is_over
    }

    /// What the person is told until then.
    pub(super) fn problem(&self) -> Problem {
        let lost = match self.lost {
            0 => String::new(),
            1 => ", and 1 message was lost".to_owned(),
            many => format!(", and {many} messages were lost"),
        };
        let text = format!("{}; what terminals report waits in the hub's memory{lost}", self.why);
        Problem { text, hint: "ringer doctor" }
    }

    /// A message to the person of what was lost, if something was. It is counted anew from then on.
    pub(super) fn take_lost_notice(&mut self) -> Option<Draft> {
        let title = match std::mem::take(&mut self.lost) {
            0 => return None,
            1 => "Ringer: 1 message was lost".to_owned(),
            many => format!("Ringer: {many} messages were lost"),
        };
        let why = if self.why.is_empty() { "the journal was busy" } else { &self.why };
        let body =
            format!("The journal could not be written ({why}), and more than {MAX_WAITING} messages waited.");
        let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Error, &body).ok()?;
        draft.title = Some(title);
        draft.recipient = Recipient::Person;
        Some(draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_write_is_said_once_and_all_have_to_work_again() {
        let (mut failures, second) = (WriteFailures::default(), RETRY_AFTER);
        let full = || Error::Full { path: "/home".into() };
        assert!(!failures.end() && failures.next_deadline().is_none());
        assert!(
            failures.add("cannot append", &full(), second) && !failures.add("cannot append", &full(), second)
        );
        failures.set_store_failing(true);
        assert!(failures.add("cannot commit", &full(), second * 2));
        assert!(!failures.take_due(second) && failures.take_due(second * 2));
        assert_eq!(failures.next_deadline(), Some(second * 3));
        assert!(!failures.end(), "the store cannot be written yet");
        failures.set_store_failing(false);
        assert!(failures.end() && !failures.end() && failures.next_deadline().is_none());
        assert!(failures.add("cannot append", &full(), second), "it is said again the next time");
    }

    #[test]
    fn what_was_lost_is_counted_and_told_once() {
        let mut failures = WriteFailures::default();
        failures.add("cannot append", &Error::Full { path: "/home".into() }, RETRY_AFTER);
        assert_eq!(
            failures.problem().text,
            "no space left in /home; what terminals report waits in the hub's memory"
        );
        assert_eq!(failures.take_lost_notice(), None);
        assert!(failures.add_lost() && !failures.add_lost());
        assert!(failures.problem().text.ends_with(", and 2 messages were lost"));
        let notice = failures.take_lost_notice().unwrap();
        assert_eq!(notice.title.as_deref(), Some("Ringer: 2 messages were lost"));
        assert_eq!(
            notice.body,
            "The journal could not be written (no space left in /home), and more than 1024 messages waited."
        );
        assert_eq!(failures.take_lost_notice(), None);
    }
}
