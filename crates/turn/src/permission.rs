//! Permission relay: a request that waits at the keyboard can be answered from a chat as well.

use std::fmt;

use crate::error::Error;
use crate::operator::Operator;
use crate::pairing::Admitted;

/// Requests that may be open at once. One more is not relayed; it still waits at the keyboard.
pub const MAX_OPEN: usize = 32;

/// Letters of a request id: none that looks like a 1 or an I.
const LETTERS: &[u8; 25] = b"abcdefghijkmnopqrstuvwxyz";
const LENGTH: usize = 5;

/// The name of one request: five letters without l, short enough to be typed on a telephone.
///
/// ```
/// use ringer_turn::RequestId;
///
/// assert_eq!(RequestId::new(0).as_str(), "aaaaa");
/// assert!(RequestId::parse("tbxkq").is_ok() && RequestId::parse("hello").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// An id out of the caller's randomness.
    pub fn new(random: u32) -> Self {
        let mut rest = random;
        let letters = (0..LENGTH).map(|_| {
            let letter = LETTERS[rest as usize % LETTERS.len()];
            rest /= 25;
            char::from(letter)
        });
        Self(letters.collect())
    }

    /// Reads an id that a client made.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_id = text.len() == LENGTH && text.bytes().all(|byte| LETTERS.contains(&byte));
        if is_id { Ok(Self(text.to_owned())) } else { Err(Error::NoRequestId(text.to_owned())) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What somebody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// Reads an answer: `yes ID` or `no ID`, and nothing else in the message. A telephone may begin it with a capital.
/// Anything that merely sounds like consent is a message like any other.
///
/// ```
/// use ringer_turn::{read_answer, Verdict};
///
/// assert!(read_answer("Yes tbxkq").is_some_and(|(id, verdict)| id.as_str() == "tbxkq" && verdict == Verdict::Allow));
/// assert_eq!(read_answer("yes, go ahead with tbxkq"), None);
/// ```
pub fn read_answer(text: &str) -> Option<(RequestId, Verdict)> {
    let text = text.trim().to_ascii_lowercase();
    let (word, id) = text.split_once(' ')?;
    let verdict = match word {
        "yes" => Verdict::Allow,
        "no" => Verdict::Deny,
        _ => return None,
    };
    Some((RequestId::parse(id).ok()?, verdict))
}

/// What a message of an admitted sender was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The first answer to an open request: carry it out.
    Answer {
        /// The request.
        id: RequestId,
        /// The answer.
        verdict: Verdict,
    },
    /// An answer to a request that is answered already, or never was. It does nothing.
    TooLate {
        /// The request it names.
        id: RequestId,
    },
    /// A message like any other: it goes to the agent.
    Message,
}

/// The requests that are open.
#[derive(Debug, Clone, Default)]
pub struct PermissionRelay {
    open: Vec<RequestId>,
}

impl PermissionRelay {
    /// Opens a request under an id out of the caller's randomness, which no other open one has.
    pub fn ask(&mut self, random: u32) -> Result<RequestId, Error> {
        let mut random = random;
        while self.open.contains(&RequestId::new(random)) {
            random = random.wrapping_add(1);
        }
        self.ask_as(RequestId::new(random))
    }

    /// Opens a request under the id that the client gave it. Opening it twice is opening it once.
    pub fn ask_as(&mut self, id: RequestId) -> Result<RequestId, Error> {
        if !self.open.contains(&id) {
            if self.open.len() >= MAX_OPEN {
                return Err(Error::RequestsFull { most: MAX_OPEN });
            }
            self.open.push(id.clone());
        }
        Ok(id)
    }

    /// Hears a message of somebody on the allowlist. The first answer wins and closes the request.
    pub fn hear(&mut self, _: Admitted<'_>, text: &str) -> Heard {
        match read_answer(text) {
            Some((id, verdict)) if self.close(&id) => Heard::Answer { id, verdict },
            Some((id, _)) => Heard::TooLate { id },
            None => Heard::Message,
        }
    }

    /// Closes a request that was answered at the keyboard. Gives whether that was the first answer.
    pub fn settle(&mut self, _: &Operator, id: &RequestId) -> bool {
        self.close(id)
    }

    /// Closes a request that nobody needs to answer any more: the agent went on, or is gone.
    pub fn withdraw(&mut self, id: &RequestId) -> bool {
        self.close(id)
    }

    fn close(&mut self, id: &RequestId) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open != id);
        self.open.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Access;
    use crate::sender::ChannelSender;
    use crate::source::Server;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Somebody who is on the allowlist, and the list.
    fn alice() -> (Access, ChannelSender) {
        let sender = ChannelSender::new(Server::new("slack").unwrap(), "alice").unwrap();
        let mut access = Access::default();
        let code = access.offer(Duration::ZERO, &sender, [1; 3]).unwrap();
        access.approve(Duration::ZERO, &Operator::at_the_keyboard(), &code.to_string()).unwrap();
        (access, sender)
    }

    #[test]
    fn a_request_id_has_five_letters_without_l() {
        for text in ["abcde", "zzzzz", "kmnop"] {
            assert_eq!(RequestId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "abcd", "abcdef", "hello", "ABCDE", "abcd1", "abc e", "äbcd"] {
            assert!(RequestId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_strict_answers_count() {
        let check = |text: &str, expected: Option<Verdict>| {
            assert_eq!(read_answer(text).map(|(_, verdict)| verdict), expected, "{text:?}");
        };
        check("yes abcde", Some(Verdict::Allow));
        check("no abcde", Some(Verdict::Deny));
        check(" Yes abcde\n", Some(Verdict::Allow));
        check("NO ABCDE", Some(Verdict::Deny));
        for text in [
            "yes",
            "no",
            "abcde",
            "y abcde",
            "ok abcde",
            "yes  abcde",
            "yes abcde please",
            "yes abcdl",
            "yes, abcde",
            "yesabcde",
            "say yes abcde",
            "yes\nabcde",
            "yes abcde no abcde",
            "",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn the_first_answer_wins() {
        let (access, sender) = alice();
        let admitted = access.admit(&sender).unwrap();
        let mut relay = PermissionRelay::default();
        let id = relay.ask(7).unwrap();
        let answer = Heard::Answer { id: id.clone(), verdict: Verdict::Deny };
        assert_eq!(relay.hear(admitted, "do not do that"), Heard::Message);
        assert_eq!(relay.hear(admitted, &format!("no {id}")), answer);
        assert_eq!(relay.hear(admitted, &format!("yes {id}")), Heard::TooLate { id: id.clone() });
        assert!(!relay.settle(&Operator::at_the_keyboard(), &id), "the keyboard came second");
    }

    #[test]
    fn an_answer_at_the_keyboard_closes_it_for_the_chat() {
        let (access, sender) = alice();
        let mut relay = PermissionRelay::default();
        let id = relay.ask(7).unwrap();
        assert!(relay.settle(&Operator::at_the_keyboard(), &id));
        let heard = relay.hear(access.admit(&sender).unwrap(), &format!("yes {id}"));
        assert_eq!(heard, Heard::TooLate { id: id.clone() });
        assert!(!relay.withdraw(&id));
    }

    #[test]
    fn open_requests_have_ids_of_their_own_and_an_end() {
        let mut relay = PermissionRelay::default();
        for _ in 0..MAX_OPEN {
            relay.ask(u32::MAX).unwrap();
        }
        let mut ids = relay.open.clone();
        ids.sort_by_key(ToString::to_string);
        ids.dedup();
        assert_eq!(ids.len(), MAX_OPEN);
        assert_eq!(relay.ask(0), Err(Error::RequestsFull { most: MAX_OPEN }));
        assert!(relay.ask_as(ids[0].clone()).is_ok(), "it is open already");
    }

    proptest! {
        #[test]
        fn every_random_number_makes_an_id_that_can_be_answered(random: u32) {
            let id = RequestId::new(random);
            prop_assert_eq!(RequestId::parse(id.as_str()), Ok(id.clone()));
            prop_assert_eq!(read_answer(&format!("yes {id}")), Some((id, Verdict::Allow)));
        }

        #[test]
        fn no_other_text_is_an_answer(text in "(yes|no|[yn]|ja)?[ \n,]{0,2}[a-m]{4,6}[ .!]?\\PC{0,3}") {
            let strict = text.trim().to_ascii_lowercase();
            let expected = ["yes ", "no "].iter().any(|word| {
                strict.strip_prefix(word).is_some_and(|id| RequestId::parse(id).is_ok())
            });
            prop_assert_eq!(read_answer(&text).is_some(), expected);
        }
    }
}
