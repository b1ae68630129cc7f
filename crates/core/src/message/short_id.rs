//! Short ids: what a person types instead of a message id of 36 characters.
//!
//! A short id is computed from the message id and not stored. Its six characters allow 272,629,233 codes, and a list shows
//! only as many of them as tell its entries apart.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use crate::hash::fnv1a_64;
use crate::message::MessageId;

/// The letters: no vowels, so that no word can be spelled, and no `l` and `y`, which are misread.
const LETTERS: &[u8; 19] = b"bcdfghjkmnpqrstvwxz";
/// The characters after the first: letters, and digits without `0` and `1`, which look like letters.
const CHARACTERS: &[u8; 27] = b"bcdfghjkmnpqrstvwxz23456789";
const LENGTH: usize = 6;
/// The fewest characters that are shown or accepted.
const SHORTEST: usize = 4;
/// 19 × 27⁵.
const CODES: u64 = 272_629_233;

/// The short id of a message, of six characters.
///
/// ```
/// use ringer_core::MessageId;
/// use ringer_core::message::ShortId;
///
/// let id = MessageId::parse("01997a3e-0a1b-7c2d-8e3f-0123456789ab").unwrap();
/// assert_eq!(ShortId::of(&id).to_string(), "d438mf");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShortId(u32);

impl ShortId {
    /// The short id of a message.
    pub fn of(id: &MessageId) -> Self {
        // Hashes the whole text, because an id from elsewhere need not be a UUID. Ids of the same moment differ only at their
        // end, and the hash makes their first characters differ, too.
        let hash = fnv1a_64(id.as_str().bytes());
        let code = (hash ^ (hash >> 32)) % CODES;
        Self(u32::try_from(code).unwrap_or_default())
    }

    fn prefix(self, length: usize) -> String {
        self.to_string().chars().take(length).collect()
    }

    /// The length of the common prefix.
    fn shared_with(self, other: Self) -> usize {
        let (one, two) = (self.to_string(), other.to_string());
        one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count()
    }

    /// The short ids that begin with a text. `None` if none can, or if the text is too short to name one.
    fn beginning_with(text: &str) -> Option<RangeInclusive<Self>> {
        if !(SHORTEST..=LENGTH).contains(&text.len()) {
            return None;
        }
        let mut first = 0;
        for (at, byte) in text.bytes().enumerate() {
            let digits: &[u8] = if at == 0 { LETTERS } else { CHARACTERS };
            let digit = digits.iter().position(|own| *own == byte.to_ascii_lowercase())?;
            first = first * CHARACTERS.len() + digit;
        }
        let rest = CHARACTERS.len().pow(u32::try_from(LENGTH - text.len()).ok()?);
        let code = |number: usize| u32::try_from(number).ok().map(Self);
        Some(code(first * rest)?..=code(first * rest + rest - 1)?)
    }
}

impl fmt::Display for ShortId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; LENGTH];
        let mut rest = self.0 as usize;
        for byte in text[1..].iter_mut().rev() {
            *byte = CHARACTERS[rest % CHARACTERS.len()];
            rest /= CHARACTERS.len();
        }
        text[0] = LETTERS[rest % LETTERS.len()];
        formatter.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

/// The short ids of the messages in a list. The list identifies each message by a number.
///
/// A set with 8 bytes for each message: the shown length follows from the neighbours in the set.
#[derive(Debug, Clone, Default)]
pub struct ShortIds {
    codes: BTreeSet<(ShortId, u32)>,
}

impl ShortIds {
    /// Adds a message.
    pub fn insert(&mut self, id: &MessageId, number: u32) {
        self.codes.insert((ShortId::of(id), number));
    }

    /// Removes a message.
    pub fn remove(&mut self, id: &MessageId, number: u32) {
        self.codes.remove(&(ShortId::of(id), number));
    }

    /// Returns the shown id of a message: the shortest prefix of at least four characters that no other message in the list
    /// has. If another message has the same six characters, it is the whole message id.
    pub fn shown(&self, id: &MessageId, number: u32) -> String {
        let own = ShortId::of(id);
        let before = self.codes.range(..(own, number)).next_back();
        let after = self.codes.range((own, number)..).find(|entry| **entry != (own, number));
        let shared = before.into_iter().chain(after).map(|(other, _)| own.shared_with(*other)).max();
        match shared.unwrap_or(0) {
            LENGTH => id.to_string(),
            shared => own.prefix((shared + 1).max(SHORTEST)),
        }
    }

    /// The numbers of the messages whose short id begins with a text.
    pub fn beginning_with(&self, text: &str) -> impl Iterator<Item = u32> {
        let range = ShortId::beginning_with(text);
        let found = range.map(|range| self.codes.range((*range.start(), 0)..=(*range.end(), u32::MAX)));
        found.into_iter().flatten().map(|(_, number)| *number)
    }
}

/// Words that commands accept next to an id, so they never name a message.
const NEVER_IDS: [&str; 3] = ["allow", "deny", "always"];

/// What a person typed to name a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdReference<'a> {
    /// The newest one.
    Last,
    /// A message id, a short id, or a piece of a message id.
    Text(&'a str),
    /// A word or a number that names no message.
    NoId,
}

impl<'a> IdReference<'a> {
    /// Parses what a person typed.
    pub fn parse(text: &'a str) -> Self {
        match text {
            "last" => Self::Last,
            text if NEVER_IDS.contains(&text) || text.bytes().all(|byte| byte.is_ascii_digit()) => Self::NoId,
            text => Self::Text(text),
        }
    }

    /// Returns true if a message id contains the text, and the text is long enough to name one.
    pub fn is_piece_of(text: &str, id: &MessageId) -> bool {
        text.len() >= SHORTEST
            && (id.as_str().contains(text) || id.as_str().contains(&text.to_ascii_lowercase()))
    }
}

/// The result of looking up what a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdMatch {
    /// This one.
    One(MessageId),
    /// It could be any of these.
    Several(Vec<MessageId>),
    /// None that is known.
    Unknown,
}

impl IdMatch {
    /// Builds the result from the matching messages.
    pub fn of(mut fitting: Vec<MessageId>) -> Self {
        match fitting.len() {
            0 => Self::Unknown,
            1 => Self::One(fitting.remove(0)),
            _ => Self::Several(fitting),
        }
    }

    /// Returns the next result if nothing was found.
    #[must_use]
    pub fn or(self, next: impl FnOnce() -> Self) -> Self {
        if self == Self::Unknown { next() } else { self }
    }

    /// Finds a message in a list that is sorted newest first, by decreasing precision: the whole id, the short id, a piece.
    pub fn among<'a>(text: &str, ids: impl Iterator<Item = &'a MessageId> + Clone) -> Self {
        if let Some(exact) = ids.clone().find(|id| id.as_str() == text) {
            return Self::One(exact.clone());
        }
        let text = match IdReference::parse(text) {
            IdReference::Last => return Self::of(ids.take(1).cloned().collect()),
            IdReference::NoId => return Self::Unknown,
            IdReference::Text(text) => text,
        };
        let range = ShortId::beginning_with(text);
        let is_short = |id: &&MessageId| range.as_ref().is_some_and(|range| range.contains(&ShortId::of(id)));
        match Self::of(ids.clone().filter(is_short).cloned().collect()) {
            Self::Unknown => Self::of(ids.filter(|id| IdReference::is_piece_of(text, id)).cloned().collect()),
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ids that often share a prefix: few random bytes, consecutive ends, and texts from elsewhere.
    fn ids() -> impl Strategy<Value = Vec<MessageId>> {
        let uuid =
            (0u64..4, 0u8..40).prop_map(|(time, end)| MessageId::new(time, [7, 7, 7, 7, 7, 7, 7, 7, 7, end]));
        let foreign = "[a-z0-9]{1,8}/[A-Z]".prop_map(|text| MessageId::parse(&text).unwrap());
        prop::collection::hash_set(prop_oneof![4 => uuid, 1 => foreign], 1..60)
            .prop_map(|ids| ids.into_iter().collect())
    }

    fn list(ids: &[MessageId]) -> ShortIds {
        let mut list = ShortIds::default();
        for (number, id) in (0..).zip(ids) {
            list.insert(id, number);
        }
        list
    }

    #[test]
    fn the_last_code_is_the_last_text() {
        let last = u32::try_from(CODES - 1).unwrap();
        assert_eq!(ShortId(last).to_string(), "z99999");
        assert_eq!(ShortId::beginning_with("z99999"), Some(ShortId(last)..=ShortId(last)));
        assert_eq!(ShortId(0).to_string(), "bbbbbb");
    }

    #[test]
    fn a_short_id_stays_the_same_for_ever() {
        let id = |text: &str| ShortId::of(&MessageId::parse(text).unwrap()).to_string();
        assert_eq!(id("01997a3e-0a1b-7c2d-8e3f-0123456789ab"), "d438mf");
        assert_eq!(id("01997a3e-0a1b-7c2d-8e3f-0123456789ac"), "dx66c8");
        assert_eq!(id("from-elsewhere"), "bf6bqs");
    }

    #[test]
    fn two_of_one_code_are_shown_whole() {
        let (one, two) = (MessageId::parse("one").unwrap(), MessageId::parse("two").unwrap());
        // Two ids with the same code are hard to find, so the second is entered with the code of the first.
        let mut list = list(std::slice::from_ref(&one));
        list.codes.insert((ShortId::of(&one), 1));
        assert_eq!(list.shown(&one, 0), "one");
        list.insert(&two, 2);
        assert_eq!(list.shown(&two, 2).len(), SHORTEST);
        assert_eq!(list.beginning_with(&ShortId::of(&one).to_string()).count(), 2);
    }

    #[test]
    fn more_characters_are_shown_where_fewer_are_shared() {
        // Short ids of ten thousand messages: some share four characters, and few more.
        let ids: Vec<MessageId> = (0..10_000).map(|number| MessageId::new(number, [1; 10])).collect();
        let list = list(&ids);
        let lengths: Vec<usize> = (0..).zip(&ids).map(|(number, id)| list.shown(id, number).len()).collect();
        let count = |length: usize| lengths.iter().filter(|own| **own == length).count();
        assert_eq!(count(4) + count(5) + count(6), ids.len());
        assert!(count(4) > 9_000 && count(5) > 0, "{} {} {}", count(4), count(5), count(6));
    }

    #[test]
    fn words_and_numbers_are_never_ids() {
        for word in ["allow", "deny", "always", "1", "12345"] {
            assert_eq!(IdReference::parse(word), IdReference::NoId);
            assert_eq!(ShortId::beginning_with(word), None, "{word}");
        }
        let long = MessageId::parse("please-always-allow-12345").unwrap();
        assert_eq!(IdMatch::among("always", [&long].into_iter()), IdMatch::Unknown);
        assert_eq!(IdMatch::among("12345", [&long].into_iter()), IdMatch::Unknown);
        assert_eq!(IdMatch::among("please", [&long].into_iter()), IdMatch::One(long.clone()));
        assert_eq!(IdMatch::among("plE", [&long].into_iter()), IdMatch::Unknown, "too short");
        assert_eq!(IdMatch::among("PLEASE", [&long].into_iter()), IdMatch::One(long));
    }

    proptest! {
        #[test]
        fn no_two_are_shown_alike_and_what_is_shown_names_its_message(ids in ids()) {
            let list = list(&ids);
            let shown: Vec<String> = (0..).zip(&ids).map(|(number, id)| list.shown(id, number)).collect();
            for (number, (id, text)) in ids.iter().zip(&shown).enumerate() {
                prop_assert_eq!(shown.iter().filter(|other| *other == text).count(), 1);
                prop_assert_eq!(IdMatch::among(text, ids.iter()), IdMatch::One(id.clone()));
                if text != id.as_str() {
                    prop_assert!(list.beginning_with(text).eq([u32::try_from(number).unwrap()]));
                    prop_assert!((SHORTEST..=LENGTH).contains(&text.len()));
                    prop_assert!(text.starts_with(|c: char| c.is_ascii_alphabetic()));
                }
            }
        }

        #[test]
        fn a_short_id_is_no_word_and_no_number(text in "[a-z0-9-]{1,20}") {
            let short = ShortId::of(&MessageId::parse(&text).unwrap()).to_string();
            for length in SHORTEST..=LENGTH {
                prop_assert_eq!(IdReference::parse(&short[..length]), IdReference::Text(&short[..length]));
            }
        }

        #[test]
        fn removing_gives_the_others_their_short_ids_back(ids in ids()) {
            let mut changed = list(&ids);
            for (number, id) in (0..).zip(&ids).skip(1) {
                changed.remove(id, number);
            }
            prop_assert_eq!(changed.shown(&ids[0], 0).len(), SHORTEST);
        }

        #[test]
        fn any_text_names_one_several_or_none(text in ".{0,12}", ids in ids()) {
            let _ = IdMatch::among(&text, ids.iter());
        }
    }
}
