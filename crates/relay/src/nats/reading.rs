//! Tracks how far this machine has read its team's stream, and which messages were removed unread: pure rules.
//!
//! An operator can remove messages of a stream (`nats stream purge`), and the server skips them silently. The numbers of messages
//! reveal it: a stream that starts after the last message that this machine has read has lost something. The other machines are
//! asked for it, and until they have answered, their statements about earlier messages in the stream are ignored.

use serde::{Deserialize, Serialize};

use super::state::LastPublished;

/// The read position in the stream. It is stored together with the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// The furthest message with a `Nats-Msg-Id`: its number in the stream, 0 if there was none, and its id.
    sequence: u64,
    message_id: String,
    /// Everything up to this number was stored, or is known to be removed.
    #[serde(default)]
    whole_to: u64,
    /// Messages up to this number may have arrived before, because the stream is read again.
    #[serde(default)]
    repeats_to: u64,
    /// Messages before this number were removed, and some of them had not arrived.
    #[serde(default)]
    removed_before: u64,
    /// The other machines were asked for messages that were removed before this number.
    #[serde(default)]
    asked_before: u64,
    /// The number of the latest request to them, for any reason; 0 if there was none.
    #[serde(default)]
    asked_at: u64,
}

impl Reading {
    /// Starts after a message, with its number in the stream and perhaps its id.
    pub(crate) fn after(number: u64, id: Option<&str>) -> Self {
        let mut reading = Self::default();
        reading.stored([(number, id)]);
        reading
    }

    pub(crate) fn read(note: &str) -> Option<Self> {
        serde_json::from_str(note).ok()
    }

    pub(crate) fn encode(&self) -> String {
        // Plain data cannot fail to encode.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the furthest message that arrived, or after which this machine began to read.
    pub(crate) fn furthest(&self) -> Option<LastPublished> {
        let Self { sequence, message_id, .. } = self;
        (*sequence > 0).then(|| LastPublished { sequence: *sequence, message_id: message_id.clone() })
    }

    /// Returns the number up to which everything was stored, or is known to be removed.
    pub(crate) fn whole_to(&self) -> u64 {
        self.whole_to
    }

    /// The stream is a different one, or its server lost its end and reuses numbers: it is read from its beginning.
    pub(crate) fn restarted(self) -> Self {
        let Self { removed_before, asked_before, asked_at, .. } = self;
        Self { removed_before, asked_before, asked_at, repeats_to: u64::MAX, ..Self::default() }
    }

    /// Begins a connection. `first` and `last` are the numbers of the first and the last message of the stream.
    pub(crate) fn connected(&mut self, first: u64, last: u64) {
        self.whole_to = self.whole_to.min(last);
        self.repeats_to = self.repeats_to.min(last);
        self.removed_before = self.removed_before.min(last.saturating_add(1));
        self.check_removed(first);
    }

    /// The stream starts at this number. Records a removal if some of the messages had not arrived.
    pub(crate) fn check_removed(&mut self, first: u64) {
        if first > self.whole_to.saturating_add(1) {
            self.whole_to = first - 1;
            self.removed_before = self.removed_before.max(first);
        }
    }

    /// Returns how many of these message numbers directly follow what was stored, or have arrived before. The stream may have
    /// others before the next one.
    pub(crate) fn follow(&self, numbers: impl IntoIterator<Item = u64>) -> usize {
        let mut whole_to = self.whole_to;
        let following = numbers.into_iter().take_while(|number| {
            let follows = *number <= whole_to.saturating_add(1);
            whole_to = whole_to.max(*number);
            follows
        });
        following.count()
    }

    /// The stream has no more messages before this number.
    pub(crate) fn skip_to(&mut self, before: u64) {
        self.whole_to = self.whole_to.max(before.saturating_sub(1));
    }

    /// Returns true if the message with this number may have arrived before.
    pub(crate) fn is_repeat(&self, number: u64) -> bool {
        number <= self.repeats_to
    }

    /// Messages were stored, with these numbers and ids.
    pub(crate) fn stored<'a>(&mut self, messages: impl IntoIterator<Item = (u64, Option<&'a str>)>) {
        for (sequence, id) in messages {
            if let Some(id) = id.filter(|_| sequence > self.sequence) {
                (self.sequence, self.message_id) = (sequence, id.to_owned());
            }
            self.whole_to = self.whole_to.max(sequence);
        }
    }

    /// Returns the number before which messages were removed unread; 0 if there are none.
    pub(crate) fn removed_before(&self) -> u64 {
        self.removed_before
    }

    /// Returns true if messages were removed that the other machines have not been asked for.
    pub(crate) fn has_unrequested_removal(&self) -> bool {
        self.removed_before > self.asked_before
    }

    /// Returns true if the other machines must be asked for removed messages. The stream starts at `first`: an earlier request
    /// was also removed, perhaps before all machines had read it.
    pub(crate) fn must_request(&self, first: u64) -> bool {
        self.has_unrequested_removal() || self.request_was_removed(first)
    }

    /// Returns true if a removal before this number includes the request to the other machines.
    pub(crate) fn request_was_removed(&self, removed_before: u64) -> bool {
        self.asked_at > 0 && self.asked_at < removed_before
    }

    /// The other machines were asked, with the message of that number.
    pub(crate) fn asked(&mut self, sequence: u64) {
        (self.asked_before, self.asked_at) = (self.removed_before, sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_of_unread_messages_is_noticed_once() {
        let mut reading = Reading::after(10, None);
        reading.connected(1, 12);
        assert_eq!([reading.follow([11, 4, 12]), reading.follow([11, 13]), reading.follow([12])], [3, 1, 0]);
        reading.stored([(11, Some("a")), (12, None)]);
        assert_eq!((reading.whole_to, reading.furthest().unwrap().sequence), (12, 11));
        reading.check_removed(13);
        assert_eq!(reading.removed_before(), 0, "everything had arrived");
        reading.check_removed(14);
        assert_eq!((reading.removed_before(), reading.must_request(14)), (14, true));
        reading.asked(14);
        assert!(!reading.must_request(14) && reading.must_request(15));
        assert!(reading.request_was_removed(15) && !reading.request_was_removed(14));
        reading.check_removed(14);
        assert_eq!(Reading::read(&reading.encode()), Some(reading));
    }

    #[test]
    fn reused_numbers_are_read_again() {
        let mut reading = Reading::after(3, Some("c"));
        assert_eq!(reading.furthest().unwrap().sequence, 3);
        reading.stored([(8, Some("h"))]);
        assert!(!reading.is_repeat(1));
        reading = reading.restarted();
        reading.connected(1, 5);
        assert_eq!((reading.furthest(), reading.whole_to(), reading.removed_before()), (None, 0, 0));
        reading.stored([(1, None)]);
        reading.connected(1, 9);
        assert!(reading.is_repeat(5) && !reading.is_repeat(6), "messages from before the restart");
        reading.connected(4, 5);
        assert_eq!(reading.removed_before(), 4, "what was before is not known");
    }
}
