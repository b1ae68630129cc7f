//! Maps popups on the screen to notifications.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringer_core::MessageId;
use ringer_core::agent::PopupAnswer;
use zbus::message::Sequence;

use super::content::{PopupContent, action};
use super::popup::{MAX_POPUPS, PopupHandle, PreviousPopup};

/// The `NotificationClosed` reason for a popup that the person closed. (1: expired, 3: closed by a call.)
const BY_HAND: u32 = 2;

/// GNOME, mako and dunst close a clicked popup at once and report that the person closed it. A popup that is closed later than
/// this was dismissed.
const CLICK_CLOSES_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Entry {
    key: String,
    id: MessageId,
    handle: PopupHandle,
    /// Position of the `Notify` reply among the messages of the bus. Earlier signals with the same number were about the replaced
    /// popup. `None` for popups of an earlier hub.
    shown_at: Option<Sequence>,
    /// The answers that it offers. `None` for a popup of an earlier hub that did not store them.
    answers: Option<Vec<PopupAnswer>>,
    /// The notification that had the same number before.
    replaced: Option<MessageId>,
    /// The activation token, which the server sends just before the action.
    token: Option<String>,
    clicked_at: Option<Instant>,
}

impl Entry {
    /// Returns true if a popup that closes now does so because it was clicked. The click itself decides whether the notification
    /// becomes read.
    fn closes_by_click(&self, now: Instant) -> bool {
        self.clicked_at.is_some_and(|clicked| now.saturating_duration_since(clicked) < CLICK_CLOSES_WITHIN)
    }
}

/// A click on a popup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Click {
    /// Go to the surface. The activation token is for the window that comes to the front.
    Show(MessageId, Option<String>),
    /// An answer that it offers.
    Answer(MessageId, PopupAnswer),
}

/// The popups on the screen, as far as the server has reported. At most [`MAX_POPUPS`].
#[derive(Debug, Default)]
pub(super) struct PopupTable(VecDeque<Entry>);

impl PopupTable {
    /// A table with the popups of an earlier hub.
    pub(super) fn new(known: Vec<PreviousPopup>) -> Self {
        let mut table = Self::default();
        for PreviousPopup { key, id, handle, offer } in known {
            let content = offer.as_deref().and_then(PopupContent::from_offer);
            table.insert(key, id, handle, (None, content.map(|content| content.answers)));
        }
        table
    }

    /// Adds a popup, and removes those with the same key or number. `shown_at` is known if this hub has shown it.
    pub(super) fn insert(
        &mut self,
        key: String,
        id: MessageId,
        handle: PopupHandle,
        (shown_at, answers): (Option<Sequence>, Option<Vec<PopupAnswer>>),
    ) {
        let replaced = self.0.iter().find(|entry| entry.handle == handle).map(|entry| entry.id.clone());
        self.0.retain(|entry| entry.handle != handle && entry.key != key);
        if self.0.len() == MAX_POPUPS {
            self.0.pop_front();
        }
        self.0.push_back(Entry {
            key,
            id,
            handle,
            shown_at,
            answers,
            replaced,
            token: None,
            clicked_at: None,
        });
    }

    /// The number of the popup with this key, if it is on this server.
    pub(super) fn number(&self, key: &str, server: &str) -> Option<u32> {
        let entry = self.0.iter().find(|entry| entry.key == key && entry.handle.server == server)?;
        Some(entry.handle.number)
    }

    /// Removes the popup of a notification.
    pub(super) fn take(&mut self, id: &MessageId) -> Option<PopupHandle> {
        let index = self.0.iter().position(|entry| entry.id == *id)?;
        self.0.remove(index).map(|entry| entry.handle)
    }

    /// The server closed a popup. Returns the notification if the person dismissed it.
    pub(super) fn closed(
        &mut self,
        handle: &PopupHandle,
        reason: u32,
        at: Sequence,
        now: Instant,
    ) -> Option<MessageId> {
        let index = self.0.iter().position(|entry| entry.handle == *handle)?;
        let entry = self.0.get_mut(index)?;
        let closed = if entry.shown_at.is_some_and(|shown_at| at < shown_at) {
            entry.replaced.take()
        } else {
            self.0.remove(index).filter(|entry| !entry.closes_by_click(now)).map(|entry| entry.id)
        };
        closed.filter(|_| reason == BY_HAND)
    }

    /// Stores the activation token for the action that follows.
    pub(super) fn token(&mut self, handle: &PopupHandle, token: String) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.handle == *handle) {
            entry.token = Some(token);
        }
    }

    /// The person clicked. Only the action of an answer that the popup offers counts as that answer.
    pub(super) fn clicked(
        &mut self,
        handle: &PopupHandle,
        name: &str,
        at: Sequence,
        now: Instant,
    ) -> Option<Click> {
        let entry = self.0.iter_mut().find(|entry| entry.handle == *handle)?;
        let token = entry.token.take();
        if entry.shown_at.is_some_and(|shown_at| at < shown_at) {
            return entry.replaced.clone().map(|id| Click::Show(id, token));
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
        entry.clicked_at = Some(now);
        Some(click)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the popups of every other server: they disappeared with it.
    pub(super) fn keep_only(&mut self, server: &str) {
        self.0.retain(|entry| entry.handle.server == server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    fn handle(number: u32) -> PopupHandle {
        PopupHandle { number, server: "bus :1.1".to_owned() }
    }

    #[test]
    fn one_popup_per_key_and_per_number() {
        let known = PreviousPopup { key: "s1".into(), id: id("a"), handle: handle(7), offer: None };
        let mut table = PopupTable::new(vec![known]);
        assert_eq!(table.number("s1", "bus :1.1"), Some(7));
        assert_eq!(table.number("s1", "bus :1.2"), None, "another server's number");
        table.insert("s1".into(), id("b"), handle(7), (None, None));
        assert_eq!(table.take(&id("a")), None, "replaced");
        assert_eq!(table.take(&id("b")), Some(handle(7)));
        assert_eq!(table.number("s1", "bus :1.1"), None);
    }

    #[test]
    fn only_closing_by_hand_counts() {
        for (reason, expected) in [(1, None), (2, Some(id("a"))), (3, None), (4, None)] {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), handle(1), (None, None));
            assert_eq!(
                table.closed(&handle(1), reason, Sequence::default(), Instant::now()),
                expected,
                "{reason}"
            );
            assert_eq!(table.number("s", "bus :1.1"), None, "gone either way");
            assert_eq!(table.closed(&handle(1), reason, Sequence::default(), Instant::now()), None);
        }
    }

    #[test]
    fn what_closes_because_it_was_clicked_was_not_dismissed() {
        let now = Instant::now();
        for (later, expected) in [(Duration::ZERO, None), (CLICK_CLOSES_WITHIN, Some(id("a")))] {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), handle(1), (None, None));
            let click = table.clicked(&handle(1), "default", Sequence::default(), now);
            assert_eq!(click, Some(Click::Show(id("a"), None)));
            assert_eq!(table.closed(&handle(1), BY_HAND, Sequence::default(), now + later), expected);
            table.insert("s".into(), id("b"), handle(1), (None, None));
            let other = table.closed(&handle(1), BY_HAND, Sequence::default(), now);
            assert_eq!(other, Some(id("b")), "another popup");
        }
    }

    #[test]
    fn it_never_grows_beyond_its_cap() {
        let mut table = PopupTable::default();
        for number in 0..=u32::try_from(MAX_POPUPS).unwrap() {
            table.insert(number.to_string(), id(&number.to_string()), handle(number), (None, None));
        }
        assert_eq!(table.0.len(), MAX_POPUPS);
        assert_eq!(table.number("0", "bus :1.1"), None, "the oldest went");
        table.keep_only("another");
        assert!(table.0.is_empty());
    }

    #[test]
    fn a_token_belongs_to_one_click() {
        let mut table = PopupTable::default();
        table.insert("s".into(), id("a"), handle(1), (None, None));
        table.token(&handle(1), "t".to_owned());
        table.token(&handle(9), "of no popup".to_owned());
        let mut click =
            |number| table.clicked(&handle(number), "default", Sequence::default(), Instant::now());
        assert_eq!(click(1), Some(Click::Show(id("a"), Some("t".to_owned()))));
        assert_eq!(click(1), Some(Click::Show(id("a"), None)));
        assert_eq!(click(2), None);
    }

    #[test]
    fn only_an_answer_that_was_offered_is_one() {
        let yes = PopupAnswer::Choose("yes".to_owned());
        let check = |answers: Option<Vec<PopupAnswer>>, name: &str, expected: Option<Click>| {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), handle(1), (Some(Sequence::default()), answers));
            let click = table.clicked(&handle(1), name, Sequence::default(), Instant::now());
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
            let known = PreviousPopup { key: "s".to_owned(), id: id("a"), handle: handle(1), offer };
            let mut table = PopupTable::new(vec![known]);
            table.clicked(&handle(1), name, Sequence::default(), Instant::now())
        };
        let offer = r#"{"summary":"s","body":"b","urgency":2,"category":"c","icon":"i","tag":"t","actions":["default","Show"],
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
