//! Duplicates: several reports of one event within half a second are one notification.
//!
//! An agent may send an OSC sequence, a bell, a hook and a title change, all for the same event.

use std::collections::HashMap;
use std::time::Duration;

use crate::message::{Kind, MessageId, Place};
use crate::policy::DeliveryChannel;

/// The maximum time between two reports of one event. A choice, not a measurement: half a second is short enough that a person
/// does not see two different events as one.
pub(crate) const DUPLICATE_WINDOW: Duration = Duration::from_millis(500);
/// The most surfaces that are remembered. At the limit, surfaces whose window is over are removed, and if there are none, all
/// are: the worst effect is that one duplicate is shown.
const MAX_REMEMBERED: usize = 4096;

/// One report of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventReport {
    /// The id of the message; `None` for a terminal's report that is not in the journal yet.
    pub id: Option<MessageId>,
    /// A heading.
    pub title: Option<String>,
    /// The text.
    pub body: String,
    /// True for a bell, which has no content.
    pub is_bell: bool,
    /// The kind, if the report has one.
    pub kind: Option<Kind>,
    /// True if the report carries the text of an open question.
    pub has_question: bool,
    /// The agent's episode that is reported. Two episodes are two events, even with the same text.
    pub episode: Option<String>,
}

impl EventReport {
    /// Ranks the report by how much it says, the most important part first.
    fn detail(&self) -> (bool, bool, bool, bool, usize) {
        let kind = self.kind.is_some_and(|kind| kind != Kind::Status);
        (!self.is_bell, self.has_question, kind, self.title.is_some(), self.body.len())
    }
}

/// Result of comparing a report with the previous one of the same surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DuplicateVerdict {
    /// The first report of an event.
    New,
    /// An earlier report of the event says as much or more. This one is dropped.
    Duplicate {
        /// The earlier message; `None` if it is not in the journal yet.
        of: Option<MessageId>,
    },
    /// This report says more than the earlier one and replaces it.
    Replaces {
        /// The replaced message; `None` if it is not in the journal yet. It is then dropped as a duplicate of this one when it
        /// arrives.
        older: Option<MessageId>,
        /// What was done for the replaced message and cannot be taken back, so it is not done again.
        done: Vec<DeliveryChannel>,
    },
}

#[derive(Debug, Clone)]
struct LastReport {
    at: Duration,
    report: EventReport,
    /// The message that the report replaced.
    replaces: Option<MessageId>,
    /// What was done for the event and cannot be taken back.
    done: Vec<DeliveryChannel>,
}

/// Remembers the last report of each surface for [`DUPLICATE_WINDOW`].
#[derive(Debug, Clone, Default)]
pub(crate) struct DuplicateWindow {
    last: HashMap<Place, LastReport>,
}

impl DuplicateWindow {
    /// Compares a report with the last one of its surface, and remembers it. Without a surface every report is new.
    pub(crate) fn observe(&mut self, now: Duration, place: &Place, report: EventReport) -> DuplicateVerdict {
        if place.surface.is_none() {
            return DuplicateVerdict::New;
        }
        self.limit_memory(now);
        let before = self.last.get(place).filter(|last| now.saturating_sub(last.at) < DUPLICATE_WINDOW);
        let verdict = before.map_or(DuplicateVerdict::New, |before| compare(before, &report));
        // The window counts from the first report: otherwise a steady stream of bells would stay one event.
        let same = before.filter(|before| is_same(&before.report, &report));
        let (at, replaces) = match &verdict {
            DuplicateVerdict::Duplicate { .. } => return verdict,
            DuplicateVerdict::Replaces { older, .. } => {
                let inherited = same.and_then(|before| before.replaces.clone());
                (same.map_or(now, |before| before.at), older.clone().or(inherited))
            }
            DuplicateVerdict::New => (same.map_or(now, |before| before.at), None),
        };
        let done = same.map_or_else(Vec::new, |before| before.done.clone());
        self.last.insert(place.clone(), LastReport { at, report, replaces, done });
        verdict
    }

    /// Remembers what was done for a notification, if it is the last report of its place. What is only under way may still be
    /// withdrawn, so a richer report does it again.
    pub(crate) fn delivered(&mut self, place: &Place, id: &MessageId, channel: DeliveryChannel) {
        let last = self.last.get_mut(place).filter(|last| last.report.id.as_ref() == Some(id));
        if let Some(last) = last.filter(|_| !channel.is_popup()) {
            last.done.push(channel);
        }
    }

    fn limit_memory(&mut self, now: Duration) {
        if self.last.len() >= MAX_REMEMBERED {
            self.last.retain(|_, last| now.saturating_sub(last.at) < DUPLICATE_WINDOW);
        }
        if self.last.len() >= MAX_REMEMBERED {
            self.last.clear();
        }
    }
}

fn is_same(before: &EventReport, report: &EventReport) -> bool {
    let other_episode =
        before.episode.is_some() && report.episode.is_some() && before.episode != report.episode;
    !other_episode && (before.body == report.body || before.is_bell || report.is_bell)
}

fn compare(before: &LastReport, report: &EventReport) -> DuplicateVerdict {
    let (earlier, detail) = (&before.report, report.detail());
    if !is_same(earlier, report) {
        return DuplicateVerdict::New;
    }
    // A terminal's report comes back through the journal, with an id: that is the same report, not a second one.
    let comes_back = earlier.id.is_none() && report.id.is_some() && detail >= earlier.detail();
    match &before.replaces {
        Some(older) if comes_back => {
            DuplicateVerdict::Replaces { older: Some(older.clone()), done: before.done.clone() }
        }
        None if comes_back => DuplicateVerdict::New,
        _ if detail > earlier.detail() => {
            DuplicateVerdict::Replaces { older: earlier.id.clone(), done: before.done.clone() }
        }
        _ => DuplicateVerdict::Duplicate { of: earlier.id.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{SurfaceId, WorkspaceId};

    fn id(number: u64) -> MessageId {
        MessageId::new(number, [0; 10])
    }

    fn plain(number: u64, body: &str) -> EventReport {
        EventReport {
            id: Some(id(number)),
            title: None,
            body: body.to_owned(),
            is_bell: body.is_empty(),
            kind: None,
            has_question: false,
            episode: None,
        }
    }

    fn replaces(older: Option<MessageId>) -> DuplicateVerdict {
        DuplicateVerdict::Replaces { older, done: Vec::new() }
    }

    fn pane() -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"))
    }

    #[track_caller]
    fn check(reports: &[(u64, EventReport)], expected: &[DuplicateVerdict]) {
        let mut window = DuplicateWindow::default();
        let verdicts: Vec<DuplicateVerdict> = reports
            .iter()
            .map(|(ms, report)| window.observe(Duration::from_millis(*ms), &pane(), report.clone()))
            .collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn the_same_body_within_half_a_second_is_one() {
        let duplicate = DuplicateVerdict::Duplicate { of: Some(id(1)) };
        check(&[(0, plain(1, "x")), (499, plain(2, "x"))], &[DuplicateVerdict::New, duplicate]);
        check(&[(0, plain(1, "x")), (500, plain(2, "x"))], &[DuplicateVerdict::New, DuplicateVerdict::New]);
        check(&[(0, plain(1, "x")), (10, plain(2, "y"))], &[DuplicateVerdict::New, DuplicateVerdict::New]);
    }

    #[test]
    fn the_report_with_more_detail_wins_even_if_it_came_second() {
        let titled = EventReport { title: Some("Claude Code".into()), ..plain(2, "x") };
        check(&[(0, plain(1, "x")), (100, titled.clone())], &[DuplicateVerdict::New, replaces(Some(id(1)))]);
        check(
            &[(0, titled.clone()), (100, plain(3, "x"))],
            &[DuplicateVerdict::New, DuplicateVerdict::Duplicate { of: Some(id(2)) }],
        );
        let kind = EventReport { kind: Some(Kind::Waiting), ..plain(3, "x") };
        check(&[(0, titled), (100, kind.clone())], &[DuplicateVerdict::New, replaces(Some(id(2)))]);
        let question = EventReport { has_question: true, ..plain(4, "x") };
        check(&[(0, kind), (100, question)], &[DuplicateVerdict::New, replaces(Some(id(3)))]);
    }

    #[test]
    fn a_bell_within_the_window_is_a_duplicate_and_a_text_after_a_bell_replaces_it() {
        check(
            &[(0, plain(1, "x")), (100, plain(2, ""))],
            &[DuplicateVerdict::New, DuplicateVerdict::Duplicate { of: Some(id(1)) }],
        );
        check(&[(0, plain(1, "")), (100, plain(2, "x"))], &[DuplicateVerdict::New, replaces(Some(id(1)))]);
    }

    /// A terminal's report, before it is a message.
    fn sign(body: &str) -> EventReport {
        EventReport { id: None, ..plain(0, body) }
    }

    #[test]
    fn a_terminal_report_is_new_once_and_its_message_is_no_duplicate_of_it() {
        check(
            &[(0, sign("x")), (100, sign("x")), (200, plain(1, "x")), (300, sign("x"))],
            &[
                DuplicateVerdict::New,
                DuplicateVerdict::Duplicate { of: None },
                DuplicateVerdict::New,
                DuplicateVerdict::Duplicate { of: Some(id(1)) },
            ],
        );
    }

    #[test]
    fn a_bell_that_comes_back_as_a_message_is_still_a_bell() {
        let bell = EventReport { is_bell: true, ..plain(1, "the bell rang") };
        check(
            &[(0, sign("")), (50, bell), (100, sign("done")), (150, plain(2, "done"))],
            &[DuplicateVerdict::New, DuplicateVerdict::New, replaces(Some(id(1))), replaces(Some(id(1)))],
        );
    }

    #[test]
    fn more_detail_wins_although_the_earlier_report_is_not_in_the_journal_yet() {
        let rich = |report| EventReport { title: Some("Codex".into()), ..report };
        check(
            &[(0, sign("x")), (50, rich(sign("x"))), (100, plain(1, "x")), (150, rich(plain(2, "x")))],
            &[
                DuplicateVerdict::New,
                replaces(None),
                DuplicateVerdict::Duplicate { of: None },
                DuplicateVerdict::New,
            ],
        );
    }

    #[test]
    fn a_stream_of_bells_is_not_one_event_for_ever() {
        let bells: Vec<(u64, EventReport)> = (0..6).map(|n| (n * 200, plain(n, ""))).collect();
        let mut window = DuplicateWindow::default();
        let new = bells.iter().filter(|(ms, bell)| {
            window.observe(Duration::from_millis(*ms), &pane(), bell.clone()) == DuplicateVerdict::New
        });
        assert_eq!(new.count(), 2);
    }

    #[test]
    fn surfaces_do_not_mix_and_without_one_nothing_is_a_duplicate() {
        let mut window = DuplicateWindow::default();
        let other = Place::surface(WorkspaceId::new("w"), SurfaceId::new("t"));
        let whole = Place::workspace(WorkspaceId::new("w"));
        for (number, place) in [(1, pane()), (2, other), (3, whole.clone()), (4, whole)] {
            assert_eq!(window.observe(Duration::ZERO, &place, plain(number, "x")), DuplicateVerdict::New);
        }
    }

    #[test]
    fn what_was_done_for_the_earlier_report_is_known_unless_it_can_be_replaced() {
        let mut window = DuplicateWindow::default();
        window.observe(Duration::ZERO, &pane(), plain(1, "x"));
        let channels = [DeliveryChannel::Desktop, DeliveryChannel::Sound, DeliveryChannel::Command];
        for channel in channels {
            window.delivered(&pane(), &id(1), channel);
        }
        let richer = EventReport { title: Some("Claude Code".into()), ..plain(2, "x") };
        let done = vec![DeliveryChannel::Sound, DeliveryChannel::Command];
        assert_eq!(
            window.observe(Duration::from_millis(100), &pane(), richer),
            DuplicateVerdict::Replaces { older: Some(id(1)), done }
        );
        let other = plain(3, "another event");
        assert_eq!(window.observe(Duration::from_millis(200), &pane(), other), DuplicateVerdict::New);
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = DuplicateWindow::default();
        for number in 0..20_000u64 {
            let place = Place::surface(WorkspaceId::new("w"), SurfaceId::new(&number.to_string()));
            window.observe(Duration::ZERO, &place, plain(number, "x"));
        }
        assert!(window.last.len() <= MAX_REMEMBERED);
    }
}
