//! Which popup is which notification.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringer_core::MessageId;
use ringer_core::agent::PopupAnswer;
use zbus::message::Sequence;

use super::content::{PopupContent, action};
use super::popup::{MAX_POPUPS, PopupHandle, PreviousPopup};

/// The person closed it by hand. (1 is out of time, 3 is closed by a call.)
const BY_HAND: u32 = 2;

/// GNOME, mako and dunst close a popup that was clicked, in the name of the person, and at once. One that is closed later
/// than this was dismissed.
const CLICK_CLOSES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Entry {
    key: String,
    id: MessageId,
    shown: PopupHandle,
    /// When the server said that it is shown, by the order in which the bus delivered. What the server said about the
    /// number before that was about the predecessor. `None` for popups of an earlier hub.
    since: Option<Sequence>,
    /// The answers that it offers. `None` for a popup of an earlier hub that did not write them down.
    answers: Option<Vec<PopupAnswer>>,
    /// The notification that had the same number before.
    before: Option<MessageId>,
    /// Told shortly before an action.
    token: Option<String>,
    /// When the person clicked it.
    clicked: Option<Instant>,
}

impl Entry {
    /// Whether it closes because it was clicked. Whether it is read then depends on whether the person got there.
    fn closes_by_click(&self, now: Instant) -> bool {
        self.clicked.is_some_and(|clicked| now.saturating_duration_since(clicked) < CLICK_CLOSES_WITHIN)
    }
}

/// What the person clicked on a popup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Click {
    /// To be taken to where it came from. The token is for the window that comes to the front.
    Show(MessageId, Option<String>),
    /// An answer that it offers.
    Answer(MessageId, PopupAnswer),
}

/// The popups that are shown, as far as the server reported. At most [`MAX_POPUPS`].
#[derive(Debug, Default)]
pub(super) struct PopupTable(VecDeque<Entry>);

impl PopupTable {
    /// With the popups of an earlier hub.
    pub(super) fn new(known: Vec<PreviousPopup>) -> Self {
        let mut table = Self::default();
        for PreviousPopup { key, id, shown, offer } in known {
            let content = offer.as_deref().and_then(PopupContent::of_offer);
            table.insert(key, id, shown, (None, content.map(|content| content.answers)));
        }
        table
    }

    /// A popup is shown, since then if this hub has shown it, and with these answers as far as they are known. Whatever else
    /// had its key or its number is not shown any more.
    pub(super) fn insert(
        &mut self,
        key: String,
        id: MessageId,
        shown: PopupHandle,
        (since, answers): (Option<Sequence>, Option<Vec<PopupAnswer>>),
    ) {
        let before = self.0.iter().find(|entry| entry.shown == shown).map(|entry| entry.id.clone());
        self.0.retain(|entry| entry.shown != shown && entry.key != key);
        if self.0.len() == MAX_POPUPS {
            self.0.pop_front();
        }
        self.0.push_back(Entry { key, id, shown, since, answers, before, token: None, clicked: None });
    }

    /// The number to replace at this server, if there is one.
    pub(super) fn number(&self, key: &str, server: &str) -> Option<u32> {
        let found = self.0.iter().find(|entry| entry.key == key && entry.shown.server == server)?;
        Some(found.shown.number)
    }

    /// Takes out the popup of a notification.
    pub(super) fn take(&mut self, id: &MessageId) -> Option<PopupHandle> {
        let index = self.0.iter().position(|entry| entry.id == *id)?;
        self.0.remove(index).map(|entry| entry.shown)
    }

    /// The server closed a popup. Gives the notification if the person closed it by hand.
    pub(super) fn closed(
        &mut self,
        shown: &PopupHandle,
        reason: u32,
        at: Sequence,
        now: Instant,
    ) -> Option<MessageId> {
        let index = self.0.iter().position(|entry| entry.shown == *shown)?;
        let entry = self.0.get_mut(index)?;
        let closed = if entry.since.is_some_and(|since| at < since) {
            entry.before.take()
        } else {
            self.0.remove(index).filter(|entry| !entry.closes_by_click(now)).map(|entry| entry.id)
        };
        closed.filter(|_| reason == BY_HAND)
    }

    /// The server gives a token for the action that follows.
    pub(super) fn token(&mut self, shown: &PopupHandle, token: String) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.shown == *shown) {
            entry.token = Some(token);
        }
    }

    /// The person clicked. Nothing but the action of an answer that the popup offers is that answer.
    pub(super) fn clicked(
        &mut self,
        shown: &PopupHandle,
        name: &str,
        at: Sequence,
        now: Instant,
    ) -> Option<Click> {
        let entry = self.0.iter_mut().find(|entry| entry.shown == *shown)?;
        let token = entry.token.take();
        if entry.since.is_some_and(|since| at < since) {
            return entry.before.clone().map(|id| Click::Show(id, token));
        }
        let is_show = matches!(name, "default" | "show");
        let click = match &entry.answers {
            Some(answers) if !is_show => {
                let mut offered = answers.iter().enumerate();
                let (_, answer) = offered.find(|(index, answer)| action(*index, answer) == name)?;
                Click::Answer(entry.id.clone(), answer.clone())
            }
            _ => Click::Show(entry.id.clone(), token),
        };
        entry.clicked = Some(now);
        Some(click)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the popups of every other server: they went with it.
    pub(super) fn keep_only(&mut self, server: &str) {
        self.0.retain(|entry| entry.shown.server == server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    fn shown(number: u32) -> PopupHandle {
        PopupHandle { number, server: "bus :1.1".to_owned() }
    }

    #[test]
    fn one_popup_per_key_and_per_number() {
        let known = PreviousPopup { key: "s1".into(), id: id("a"), shown: shown(7), offer: None };
        let mut table = PopupTable::new(vec![known]);
        assert_eq!(table.number("s1", "bus :1.1"), Some(7));
        assert_eq!(table.number("s1", "bus :1.2"), None, "another server's number");
        table.insert("s1".into(), id("b"), shown(7), (None, None));
        assert_eq!(table.take(&id("a")), None, "replaced");
        assert_eq!(table.take(&id("b")), Some(shown(7)));
        assert_eq!(table.number("s1", "bus :1.1"), None);
    }

    #[test]
    fn only_closing_by_hand_counts() {
        for (reason, expected) in [(1, None), (2, Some(id("a"))), (3, None), (4, None)] {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), shown(1), (None, None));
            assert_eq!(
                table.closed(&shown(1), reason, Sequence::default(), Instant::now()),
                expected,
                "{reason}"
            );
            assert_eq!(table.number("s", "bus :1.1"), None, "gone either way");
            assert_eq!(table.closed(&shown(1), reason, Sequence::default(), Instant::now()), None);
        }
    }

    #[test]
    fn what_closes_because_it_was_clicked_was_not_dismissed() {
        let now = Instant::now();
        for (later, expected) in [(Duration::ZERO, None), (CLICK_CLOSES_WITHIN, Some(id("a")))] {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), shown(1), (None, None));
            let click = table.clicked(&shown(1), "default", Sequence::default(), now);
            assert_eq!(click, Some(Click::Show(id("a"), None)));
            assert_eq!(table.closed(&shown(1), BY_HAND, Sequence::default(), now + later), expected);
            table.insert("s".into(), id("b"), shown(1), (None, None));
            let other = table.closed(&shown(1), BY_HAND, Sequence::default(), now);
            assert_eq!(other, Some(id("b")), "another popup");
        }
    }

    #[test]
    fn it_never_grows_beyond_its_cap() {
        let mut table = PopupTable::default();
        for number in 0..=u32::try_from(MAX_POPUPS).unwrap() {
            table.insert(number.to_string(), id(&number.to_string()), shown(number), (None, None));
        }
        assert_eq!(table.0.len(), MAX_POPUPS);
        assert_eq!(table.number("0", "bus :1.1"), None, "the oldest went");
        table.keep_only("another");
        assert!(table.0.is_empty());
    }

    #[test]
    fn a_token_belongs_to_one_click() {
        let mut table = PopupTable::default();
        table.insert("s".into(), id("a"), shown(1), (None, None));
        table.token(&shown(1), "t".to_owned());
        table.token(&shown(9), "of no popup".to_owned());
        let mut click =
            |number| table.clicked(&shown(number), "default", Sequence::default(), Instant::now());
        assert_eq!(click(1), Some(Click::Show(id("a"), Some("t".to_owned()))));
        assert_eq!(click(1), Some(Click::Show(id("a"), None)));
        assert_eq!(click(2), None);
    }

    #[test]
    fn only_an_answer_that_was_offered_is_one() {
        let yes = PopupAnswer::Choose("yes".to_owned());
        let check = |answers: Option<Vec<PopupAnswer>>, name: &str, expected: Option<Click>| {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), shown(1), (Some(Sequence::default()), answers));
            let click = table.clicked(&shown(1), name, Sequence::default(), Instant::now());
            assert_eq!(click, expected, "{name}");
            let other = PopupHandle { number: 1, server: "bus :1.2".to_owned() };
            assert_eq!(table.clicked(&other, name, Sequence::default(), Instant::now()), None, "forged");
        };
        let show = || Some(Click::Show(id("a"), None));
        let answer = |answer: &PopupAnswer| Some(Click::Answer(id("a"), answer.clone()));
        let deny_only = || Some(vec![PopupAnswer::Deny]);
        check(Some(vec![PopupAnswer::Allow, PopupAnswer::Deny]), "allow", answer(&PopupAnswer::Allow));
        check(deny_only(), "deny", answer(&PopupAnswer::Deny));
        check(deny_only(), "allow", None);
        check(deny_only(), "default", show());
        check(deny_only(), "show", show());
        check(Some(vec![yes.clone()]), "option-1", answer(&yes));
        check(Some(vec![yes]), "option-2", None);
        check(Some(Vec::new()), "allow", None);
        check(None, "allow", show());
    }

    #[test]
    fn a_popup_of_an_earlier_hub_offers_what_that_hub_wrote_down() {
        let click = |offer: Option<&str>, name: &str| {
            let offer = offer.map(str::to_owned);
            let known = PreviousPopup { key: "s".to_owned(), id: id("a"), shown: shown(1), offer };
            let mut table = PopupTable::new(vec![known]);
            table.clicked(&shown(1), name, Sequence::default(), Instant::now())
        };
        let offer = r#"{"summary":"s","body":"b","urgency":2,"category":"c","tag":"t","actions":["default","Show"],
            "answers":["deny"],"expire":0}"#;
        let show = || Some(Click::Show(id("a"), None));
        assert_eq!(click(Some(offer), "deny"), Some(Click::Answer(id("a"), PopupAnswer::Deny)));
        assert_eq!(click(Some(offer), "allow"), None, "not offered");
        assert_eq!(click(Some(offer), "default"), show());
        for unknown in [None, Some("{"), Some(""), Some("{}")] {
            assert_eq!(click(unknown, "allow"), show(), "{unknown:?}");
        }
    }
}
