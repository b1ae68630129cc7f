//! Which popup is which notification.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringer_core::MessageId;
use zbus::message::Sequence;

use super::request::{MAX_POPUPS, PopupHandle, PreviousPopup};

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

/// The popups that are shown, as far as the server reported. At most [`MAX_POPUPS`].
#[derive(Debug, Default)]
pub(super) struct PopupTable(VecDeque<Entry>);

impl PopupTable {
    /// With the popups of an earlier hub.
    pub(super) fn new(known: Vec<PreviousPopup>) -> Self {
        let mut table = Self::default();
        for PreviousPopup { key, id, shown } in known {
            table.insert(key, id, shown, None);
        }
        table
    }

    /// A popup is shown. Whatever else had its key or its number is not any more.
    pub(super) fn insert(&mut self, key: String, id: MessageId, shown: PopupHandle, since: Option<Sequence>) {
        let before = self.0.iter().find(|entry| entry.shown == shown).map(|entry| entry.id.clone());
        self.0.retain(|entry| entry.shown != shown && entry.key != key);
        if self.0.len() == MAX_POPUPS {
            self.0.pop_front();
        }
        self.0.push_back(Entry { key, id, shown, since, before, token: None, clicked: None });
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

    /// The person clicked. Gives the notification and the token.
    pub(super) fn clicked(
        &mut self,
        shown: &PopupHandle,
        at: Sequence,
        now: Instant,
    ) -> Option<(MessageId, Option<String>)> {
        let entry = self.0.iter_mut().find(|entry| entry.shown == *shown)?;
        let token = entry.token.take();
        if entry.since.is_some_and(|since| at < since) {
            entry.before.clone().map(|id| (id, token))
        } else {
            entry.clicked = Some(now);
            Some((entry.id.clone(), token))
        }
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
        let known = PreviousPopup { key: "s1".into(), id: id("a"), shown: shown(7) };
        let mut table = PopupTable::new(vec![known]);
        assert_eq!(table.number("s1", "bus :1.1"), Some(7));
        assert_eq!(table.number("s1", "bus :1.2"), None, "another server's number");
        table.insert("s1".into(), id("b"), shown(7), None);
        assert_eq!(table.take(&id("a")), None, "replaced");
        assert_eq!(table.take(&id("b")), Some(shown(7)));
        assert_eq!(table.number("s1", "bus :1.1"), None);
    }

    #[test]
    fn only_closing_by_hand_counts() {
        for (reason, expected) in [(1, None), (2, Some(id("a"))), (3, None), (4, None)] {
            let mut table = PopupTable::default();
            table.insert("s".into(), id("a"), shown(1), None);
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
            table.insert("s".into(), id("a"), shown(1), None);
            assert_eq!(table.clicked(&shown(1), Sequence::default(), now), Some((id("a"), None)));
            assert_eq!(table.closed(&shown(1), BY_HAND, Sequence::default(), now + later), expected);
            table.insert("s".into(), id("b"), shown(1), None);
            let other = table.closed(&shown(1), BY_HAND, Sequence::default(), now);
            assert_eq!(other, Some(id("b")), "another popup");
        }
    }

    #[test]
    fn it_never_grows_beyond_its_cap() {
        let mut table = PopupTable::default();
        for number in 0..=u32::try_from(MAX_POPUPS).unwrap() {
            table.insert(number.to_string(), id(&number.to_string()), shown(number), None);
        }
        assert_eq!(table.0.len(), MAX_POPUPS);
        assert_eq!(table.number("0", "bus :1.1"), None, "the oldest went");
        table.keep_only("another");
        assert!(table.0.is_empty());
    }

    #[test]
    fn a_token_belongs_to_one_click() {
        let mut table = PopupTable::default();
        table.insert("s".into(), id("a"), shown(1), None);
        table.token(&shown(1), "t".to_owned());
        table.token(&shown(9), "of no popup".to_owned());
        assert_eq!(
            table.clicked(&shown(1), Sequence::default(), Instant::now()),
            Some((id("a"), Some("t".to_owned())))
        );
        assert_eq!(table.clicked(&shown(1), Sequence::default(), Instant::now()), Some((id("a"), None)));
        assert_eq!(table.clicked(&shown(2), Sequence::default(), Instant::now()), None);
    }
}
