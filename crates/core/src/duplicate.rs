//! Duplicates: one event, told several times within a moment, is one notification.
//!
//! An agent may send an OSC and a bell, a hook, a title change, all for the same thing.

use std::collections::HashMap;
use std::time::Duration;

use crate::id::MessageId;
use crate::kind::Kind;
use crate::surface::Place;

/// How long two tellings of one event may lie apart.
pub const WINDOW: Duration = Duration::from_millis(500);
/// Surfaces that are remembered. The oldest are forgotten first; after the window nobody asks for them.
const MAX_REMEMBERED: usize = 4096;

/// One report of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The message it is; `None` for what a terminal told and is not in the journal yet.
    pub id: Option<MessageId>,
    /// A heading.
    pub title: Option<String>,
    /// The text.
    pub body: String,
    /// Whether it says nothing but that something happened.
    pub is_bell: bool,
    /// What it is about, where it says more than that something happened.
    pub kind: Option<Kind>,
    /// Whether it carries the real question.
    pub has_question: bool,
}

impl Report {
    /// How much it says, in the order of what counts most.
    fn richness(&self) -> (bool, bool, bool, bool, usize) {
        let kind = self.kind.is_some_and(|kind| kind != Kind::Status);
        (!self.is_bell, self.has_question, kind, self.title.is_some(), self.body.len())
    }
}

/// What to do with a telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the first of its event.
    New,
    /// The event was told already, and better. Nothing is shown.
    Absorbed {
        /// What told it; `None` if that is still on its way into the journal.
        by: Option<MessageId>,
    },
    /// The event was told already, and this says more: it takes that one's place.
    Replaces {
        /// What it replaces; `None` if that is still on its way into the journal, where this will meet it.
        older: Option<MessageId>,
    },
}

#[derive(Debug, Clone)]
struct Heard {
    at: Duration,
    telling: Report,
    /// The message whose place it takes.
    replaces: Option<MessageId>,
}

/// Remembers for each surface what was told in the last moment.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{DuplicateWindow, MessageId, Place, SurfaceId, Report, Verdict, WorkspaceId};
///
/// let mut window = DuplicateWindow::default();
/// let pane = Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"));
/// let telling = |number, body: &str| Report {
///     id: Some(MessageId::new(number, [0; 10])), title: None, body: body.to_owned(), is_bell: body.is_empty(),
///     kind: None, has_question: false,
/// };
/// assert_eq!(window.hear(Duration::ZERO, &pane, telling(1, "done")), Verdict::New);
/// let bell = window.hear(Duration::from_millis(100), &pane, telling(2, ""));
/// assert_eq!(bell, Verdict::Absorbed { by: Some(MessageId::new(1, [0; 10])) });
/// ```
#[derive(Debug, Clone, Default)]
pub struct DuplicateWindow {
    heard: HashMap<Place, Heard>,
}

impl DuplicateWindow {
    /// Hears a telling. Without a surface nothing can be a duplicate.
    pub fn hear(&mut self, now: Duration, place: &Place, telling: Report) -> Verdict {
        if place.surface.is_none() {
            return Verdict::New;
        }
        self.bound(now);
        let before = self.heard.get(place).filter(|heard| now.saturating_sub(heard.at) < WINDOW);
        let verdict = before.map_or(Verdict::New, |before| judge(before, &telling));
        // The window counts from the first telling, so that a stream of bells does not go on being one event.
        let same = before.filter(|before| is_same(&before.telling, &telling));
        let (at, replaces) = match &verdict {
            Verdict::Absorbed { .. } => return verdict,
            Verdict::Replaces { older } => {
                let inherited = same.and_then(|before| before.replaces.clone());
                (same.map_or(now, |before| before.at), older.clone().or(inherited))
            }
            Verdict::New => (same.map_or(now, |before| before.at), None),
        };
        self.heard.insert(place.clone(), Heard { at, telling, replaces });
        verdict
    }

    fn bound(&mut self, now: Duration) {
        if self.heard.len() >= MAX_REMEMBERED {
            self.heard.retain(|_, heard| now.saturating_sub(heard.at) < WINDOW);
        }
        if self.heard.len() >= MAX_REMEMBERED {
            self.heard.clear();
        }
    }
}

fn is_same(before: &Report, telling: &Report) -> bool {
    before.body == telling.body || before.is_bell || telling.is_bell
}

fn judge(before: &Heard, telling: &Report) -> Verdict {
    let (told, richness) = (&before.telling, telling.richness());
    if !is_same(told, telling) {
        return Verdict::New;
    }
    // What a terminal told comes back as a message: that is the same telling, not another.
    let comes_back = told.id.is_none() && telling.id.is_some() && richness >= told.richness();
    match &before.replaces {
        Some(older) if comes_back => Verdict::Replaces { older: Some(older.clone()) },
        None if comes_back => Verdict::New,
        _ if richness > told.richness() => Verdict::Replaces { older: told.id.clone() },
        _ => Verdict::Absorbed { by: told.id.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{SurfaceId, WorkspaceId};

    fn id(number: u64) -> MessageId {
        MessageId::new(number, [0; 10])
    }

    fn plain(number: u64, body: &str) -> Report {
        Report {
            id: Some(id(number)),
            title: None,
            body: body.to_owned(),
            is_bell: body.is_empty(),
            kind: None,
            has_question: false,
        }
    }

    fn pane() -> Place {
        Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"))
    }

    #[track_caller]
    fn check(tellings: &[(u64, Report)], expected: &[Verdict]) {
        let mut window = DuplicateWindow::default();
        let verdicts: Vec<Verdict> = tellings
            .iter()
            .map(|(ms, telling)| window.hear(Duration::from_millis(*ms), &pane(), telling.clone()))
            .collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn the_same_body_within_half_a_second_is_one() {
        let absorbed = Verdict::Absorbed { by: Some(id(1)) };
        check(&[(0, plain(1, "x")), (499, plain(2, "x"))], &[Verdict::New, absorbed]);
        check(&[(0, plain(1, "x")), (500, plain(2, "x"))], &[Verdict::New, Verdict::New]);
        check(&[(0, plain(1, "x")), (10, plain(2, "y"))], &[Verdict::New, Verdict::New]);
    }

    #[test]
    fn the_richer_one_wins_even_if_it_came_second() {
        let titled = Report { title: Some("Claude Code".into()), ..plain(2, "x") };
        check(
            &[(0, plain(1, "x")), (100, titled.clone())],
            &[Verdict::New, Verdict::Replaces { older: Some(id(1)) }],
        );
        check(
            &[(0, titled.clone()), (100, plain(3, "x"))],
            &[Verdict::New, Verdict::Absorbed { by: Some(id(2)) }],
        );
        let kind = Report { kind: Some(Kind::Waiting), ..plain(3, "x") };
        check(&[(0, titled), (100, kind.clone())], &[Verdict::New, Verdict::Replaces { older: Some(id(2)) }]);
        let question = Report { has_question: true, ..plain(4, "x") };
        check(&[(0, kind), (100, question)], &[Verdict::New, Verdict::Replaces { older: Some(id(3)) }]);
    }

    #[test]
    fn a_bell_within_the_window_is_absorbed_and_a_text_after_a_bell_replaces_it() {
        check(
            &[(0, plain(1, "x")), (100, plain(2, ""))],
            &[Verdict::New, Verdict::Absorbed { by: Some(id(1)) }],
        );
        check(
            &[(0, plain(1, "")), (100, plain(2, "x"))],
            &[Verdict::New, Verdict::Replaces { older: Some(id(1)) }],
        );
    }

    /// What a terminal told, before it is a message.
    fn sign(body: &str) -> Report {
        Report { id: None, ..plain(0, body) }
    }

    #[test]
    fn what_a_terminal_told_is_new_once_and_its_message_is_no_duplicate_of_it() {
        check(
            &[(0, sign("x")), (100, sign("x")), (200, plain(1, "x")), (300, sign("x"))],
            &[
                Verdict::New,
                Verdict::Absorbed { by: None },
                Verdict::New,
                Verdict::Absorbed { by: Some(id(1)) },
            ],
        );
    }

    #[test]
    fn a_bell_comes_back_as_a_message_with_words_and_is_still_a_bell() {
        let bell = Report { is_bell: true, ..plain(1, "the bell rang") };
        check(
            &[(0, sign("")), (50, bell), (100, sign("done")), (150, plain(2, "done"))],
            &[
                Verdict::New,
                Verdict::New,
                Verdict::Replaces { older: Some(id(1)) },
                Verdict::Replaces { older: Some(id(1)) },
            ],
        );
    }

    #[test]
    fn a_richer_telling_wins_although_the_poorer_one_is_not_in_the_journal_yet() {
        let rich = |report| Report { title: Some("Codex".into()), ..report };
        check(
            &[(0, sign("x")), (50, rich(sign("x"))), (100, plain(1, "x")), (150, rich(plain(2, "x")))],
            &[Verdict::New, Verdict::Replaces { older: None }, Verdict::Absorbed { by: None }, Verdict::New],
        );
    }

    #[test]
    fn a_stream_of_bells_is_not_one_event_for_ever() {
        let bells: Vec<(u64, Report)> = (0..6).map(|n| (n * 200, plain(n, ""))).collect();
        let mut window = DuplicateWindow::default();
        let new = bells.iter().filter(|(ms, bell)| {
            window.hear(Duration::from_millis(*ms), &pane(), bell.clone()) == Verdict::New
        });
        assert_eq!(new.count(), 2);
    }

    #[test]
    fn surfaces_do_not_mix_and_without_one_nothing_is_a_duplicate() {
        let mut window = DuplicateWindow::default();
        let other = Place::surface(WorkspaceId::new("w"), SurfaceId::new("t"));
        let whole = Place::workspace(WorkspaceId::new("w"));
        for (number, place) in [(1, pane()), (2, other), (3, whole.clone()), (4, whole)] {
            assert_eq!(window.hear(Duration::ZERO, &place, plain(number, "x")), Verdict::New);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = DuplicateWindow::default();
        for number in 0..20_000u64 {
            let place = Place::surface(WorkspaceId::new("w"), SurfaceId::new(&number.to_string()));
            window.hear(Duration::ZERO, &place, plain(number, "x"));
        }
        assert!(window.heard.len() <= MAX_REMEMBERED);
    }
}
