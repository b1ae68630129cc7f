//! Permission relay: answers a permission request from a chat as well as at the keyboard.

use std::collections::VecDeque;
use std::fmt;

use crate::conversation::error::Error;
use crate::conversation::pairing::AdmittedSender;

/// The most open requests. Further ones are not relayed but still wait at the keyboard: a person cannot keep track of more.
pub const MAX_OPEN_REQUESTS: usize = 32;

/// How many closed requests are remembered, to distinguish a late answer from an ordinary message.
const MAX_CLOSED: usize = 256;

/// The letters of a request id. There is no l, which looks like 1 or I.
const LETTERS: &[u8; 25] = b"abcdefghijkmnopqrstuvwxyz";
const LENGTH: usize = 5;

/// The id of a request: five letters without l, short enough to type on a phone.
///
/// ```
/// use ringer_core::conversation::PermissionRequestId;
///
/// assert_eq!(PermissionRequestId::new(0).as_str(), "aaaaa");
/// assert!(PermissionRequestId::parse("tbxkq").is_ok() && PermissionRequestId::parse("hello").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PermissionRequestId(String);

impl PermissionRequestId {
    /// Creates an id from the caller's random number.
    pub fn new(random: u32) -> Self {
        let mut rest = random;
        let letters = (0..LENGTH).map(|_| {
            let letter = LETTERS[rest as usize % LETTERS.len()];
            rest /= 25;
            char::from(letter)
        });
        Self(letters.collect())
    }

    /// Parses an id that a client made.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_id = text.len() == LENGTH && text.bytes().all(|byte| LETTERS.contains(&byte));
        if is_id { Ok(Self(text.to_owned())) } else { Err(Error::NoRequestId(text.to_owned())) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PermissionRequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionVerdict {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// Parses an answer: `yes ID` or `no ID`, in either case, and nothing else in the message. Any other text is an ordinary
/// message, even if it sounds like consent.
///
/// ```
/// use ringer_core::conversation::{parse_answer, PermissionVerdict};
///
/// assert!(parse_answer("Yes tbxkq").is_some_and(|(id, verdict)| id.as_str() == "tbxkq" && verdict == PermissionVerdict::Allow));
/// assert_eq!(parse_answer("yes, go ahead with tbxkq"), None);
/// ```
pub fn parse_answer(text: &str) -> Option<(PermissionRequestId, PermissionVerdict)> {
    let text = text.trim().to_ascii_lowercase();
    let (word, id) = text.split_once(' ')?;
    let verdict = match word {
        "yes" => PermissionVerdict::Allow,
        "no" => PermissionVerdict::Deny,
        _ => return None,
    };
    Some((PermissionRequestId::parse(id).ok()?, verdict))
}

/// How a message of an admitted sender was interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayedMessage {
    /// The first answer to an open request. The caller must carry it out.
    Answer {
        /// The request.
        id: PermissionRequestId,
        /// The answer.
        verdict: PermissionVerdict,
    },
    /// An answer to a request that is closed. It has no effect.
    TooLate {
        /// The request it names.
        id: PermissionRequestId,
    },
    /// An ordinary message for the agent.
    Message,
}

/// The open requests, and the ones closed last.
#[derive(Debug, Clone, Default)]
pub struct PermissionRelay {
    open: Vec<PermissionRequestId>,
    closed: VecDeque<PermissionRequestId>,
}

impl PermissionRelay {
    /// Opens a request with an unused id from the caller's random number.
    pub fn ask(&mut self, random: u32) -> Result<PermissionRequestId, Error> {
        let mut random = random;
        let is_used =
            |id: &PermissionRequestId| self.open.iter().chain(&self.closed).any(|other| other == id);
        while is_used(&PermissionRequestId::new(random)) {
            random = random.wrapping_add(1);
        }
        self.ask_as(PermissionRequestId::new(random))
    }

    /// Opens a request under the client's id, or reopens it. Does nothing if it is open already.
    pub fn ask_as(&mut self, id: PermissionRequestId) -> Result<PermissionRequestId, Error> {
        if !self.open.contains(&id) {
            if self.open.len() >= MAX_OPEN_REQUESTS {
                return Err(Error::RequestsFull { most: MAX_OPEN_REQUESTS });
            }
            self.open.push(id.clone());
            self.closed.retain(|closed| *closed != id);
        }
        Ok(id)
    }

    /// Handles a message of an admitted sender. The first answer counts and closes the request.
    pub fn receive(&mut self, _: AdmittedSender<'_>, text: &str) -> RelayedMessage {
        match parse_answer(text) {
            Some((id, verdict)) if self.close(&id) => RelayedMessage::Answer { id, verdict },
            Some((id, _)) if self.closed.contains(&id) => RelayedMessage::TooLate { id },
            _ => RelayedMessage::Message,
        }
    }

    /// Handles a verdict from a server that has authenticated the sender itself. The first answer counts and closes the request.
    pub fn receive_verdict(&mut self, id: &str, verdict: PermissionVerdict) -> Result<RelayedMessage, Error> {
        let id = PermissionRequestId::parse(id)?;
        let is_first = self.close(&id);
        Ok(if is_first { RelayedMessage::Answer { id, verdict } } else { RelayedMessage::TooLate { id } })
    }

    /// Closes a request that no longer needs an answer because the agent continued or exited. Returns true if it was open.
    pub fn withdraw(&mut self, id: &PermissionRequestId) -> bool {
        self.close(id)
    }

    fn close(&mut self, id: &PermissionRequestId) -> bool {
        let Some(place) = self.open.iter().position(|open| open == id) else { return false };
        let closed = self.open.remove(place);
        if self.closed.len() == MAX_CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(closed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::channel::ChannelSender;
    use crate::conversation::pairing::{Access, Operator};
    use crate::conversation::source::McpServer;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Returns a sender and an allowlist with that sender.
    fn alice() -> (Access, ChannelSender) {
        let sender = ChannelSender::new(McpServer::new("slack").unwrap(), "alice").unwrap();
        let mut access = Access::default();
        let code = access.offer_code(Duration::ZERO, &sender, [1; 3]).unwrap();
        access.approve(Duration::ZERO, &Operator::at_the_keyboard(), &code.to_string()).unwrap();
        (access, sender)
    }

    #[test]
    fn a_request_id_has_five_letters_without_l() {
        for text in ["abcde", "zzzzz", "kmnop"] {
            assert_eq!(PermissionRequestId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "abcd", "abcdef", "hello", "ABCDE", "abcd1", "abc e", "äbcd"] {
            assert!(PermissionRequestId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_strict_answers_count() {
        let check = |text: &str, expected: Option<PermissionVerdict>| {
            assert_eq!(parse_answer(text).map(|(_, verdict)| verdict), expected, "{text:?}");
        };
        check("yes abcde", Some(PermissionVerdict::Allow));
        check("no abcde", Some(PermissionVerdict::Deny));
        check(" Yes abcde\n", Some(PermissionVerdict::Allow));
        check("NO ABCDE", Some(PermissionVerdict::Deny));
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
        let answer = RelayedMessage::Answer { id: id.clone(), verdict: PermissionVerdict::Deny };
        assert_eq!(relay.receive(admitted, "do not do that"), RelayedMessage::Message);
        assert_eq!(relay.receive(admitted, "no merge"), RelayedMessage::Message, "no request has that id");
        assert_eq!(relay.receive(admitted, &format!("no {id}")), answer);
        assert_eq!(relay.receive(admitted, &format!("yes {id}")), RelayedMessage::TooLate { id: id.clone() });
    }

    #[test]
    fn the_verdict_of_a_server_counts_once() {
        let mut relay = PermissionRelay::default();
        let id = relay.ask(7).unwrap();
        let answer = RelayedMessage::Answer { id: id.clone(), verdict: PermissionVerdict::Allow };
        assert_eq!(relay.receive_verdict(id.as_str(), PermissionVerdict::Allow), Ok(answer));
        let late = RelayedMessage::TooLate { id: id.clone() };
        assert_eq!(relay.receive_verdict(id.as_str(), PermissionVerdict::Deny), Ok(late));
        assert!(relay.receive_verdict("hello", PermissionVerdict::Allow).is_err());
    }

    #[test]
    fn a_request_can_be_opened_again_and_ids_are_not_used_again() {
        let mut relay = PermissionRelay::default();
        let id = relay.ask(7).unwrap();
        assert!(relay.withdraw(&id) && relay.ask(7).unwrap() != id);
        assert_eq!(relay.ask_as(id.clone()), Ok(id.clone()));
        let heard = relay.receive_verdict(id.as_str(), PermissionVerdict::Deny).unwrap();
        assert_eq!(heard, RelayedMessage::Answer { id, verdict: PermissionVerdict::Deny });
        for _ in 0..2 * MAX_CLOSED {
            let id = relay.ask(7).unwrap();
            relay.withdraw(&id);
        }
        assert_eq!(relay.closed.len(), MAX_CLOSED);
    }

    #[test]
    fn a_request_that_was_withdrawn_is_closed_for_the_chat() {
        let (access, sender) = alice();
        let mut relay = PermissionRelay::default();
        let id = relay.ask(7).unwrap();
        assert!(relay.withdraw(&id));
        let heard = relay.receive(access.admit(&sender).unwrap(), &format!("yes {id}"));
        assert_eq!(heard, RelayedMessage::TooLate { id: id.clone() });
        assert!(!relay.withdraw(&id));
    }

    #[test]
    fn open_requests_have_ids_of_their_own_and_an_end() {
        let mut relay = PermissionRelay::default();
        for _ in 0..MAX_OPEN_REQUESTS {
            relay.ask(u32::MAX).unwrap();
        }
        let mut ids = relay.open.clone();
        ids.sort_by_key(ToString::to_string);
        ids.dedup();
        assert_eq!(ids.len(), MAX_OPEN_REQUESTS);
        assert_eq!(relay.ask(0), Err(Error::RequestsFull { most: MAX_OPEN_REQUESTS }));
        assert!(relay.ask_as(ids[0].clone()).is_ok(), "it is open already");
    }

    proptest! {
        #[test]
        fn every_random_number_makes_an_id_that_can_be_answered(random: u32) {
            let id = PermissionRequestId::new(random);
            prop_assert_eq!(PermissionRequestId::parse(id.as_str()), Ok(id.clone()));
            prop_assert_eq!(parse_answer(&format!("yes {id}")), Some((id, PermissionVerdict::Allow)));
        }

        #[test]
        fn no_other_text_is_an_answer(text in "(yes|no|[yn]|ja)?[ \n,]{0,2}[a-m]{4,6}[ .!]?\\PC{0,3}") {
            let strict = text.trim().to_ascii_lowercase();
            let expected = ["yes ", "no "].iter().any(|word| {
                strict.strip_prefix(word).is_some_and(|id| PermissionRequestId::parse(id).is_ok())
            });
            prop_assert_eq!(parse_answer(&text).is_some(), expected);
        }
    }
}
