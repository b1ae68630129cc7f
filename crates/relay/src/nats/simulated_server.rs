//! A server of the random runs of a team: a stream, and the consumers of the machines.

use std::collections::{BTreeMap, BTreeSet};

use super::payload::TeamPayload;
use super::receiving::is_of_person;
use super::state::LastPublished;
use super::subject::TeamSubject;

/// The team.
pub(crate) const TEAM: &str = "t";

/// The server: all of it may be lost.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) created: u64,
    /// Subject, payload and the message's id in the stream.
    pub(crate) stream: Vec<(String, Vec<u8>, String)>,
    /// What is before this place was removed. Its ids are still known.
    pub(crate) first: usize,
    pub(crate) consumers: BTreeMap<&'static str, Consumer>,
    /// What is before this number is not lost with the end.
    pub(crate) synced: usize,
}

/// What the server knows of a machine: where it is, and what it delivered and was not told to be stored.
#[derive(Default, Clone)]
pub(crate) struct Consumer {
    pub(crate) next: usize,
    pub(crate) open: BTreeSet<usize>,
}

impl Server {
    /// Takes a message, unless it has one of that id. Gives its number.
    pub(crate) fn take(&mut self, subject: String, payload: Vec<u8>, id: &str) -> u64 {
        let known = self.stream.iter().position(|(.., known)| known == id);
        let number = known.unwrap_or_else(|| {
            self.stream.push((subject, payload, id.to_owned()));
            self.stream.len() - 1
        });
        number_of(number)
    }

    /// The first message of a machine: behind which number there all are here in whole, and its number here.
    pub(crate) fn first_of(&self, machine: &str) -> Option<(i64, u64)> {
        self.stream.iter().enumerate().skip(self.first).find_map(|(place, (subject, payload, _))| {
            let subject = TeamSubject::parse(subject, TEAM)?;
            match TeamPayload::read(payload)? {
                TeamPayload::Message { message, .. } if subject.machine == machine => {
                    Some((message.seq - i64::from(!is_of_person(&message)), number_of(place)))
                }
                _ => None,
            }
        })
    }

    /// Its operator removes all but the last few.
    pub(crate) fn purge(&mut self, kept: usize) {
        self.first = self.first.max(self.stream.len().saturating_sub(kept));
        for consumer in self.consumers.values_mut() {
            consumer.next = consumer.next.max(self.first);
            consumer.open.retain(|place| *place >= self.first);
        }
    }

    pub(crate) fn first_number(&self) -> u64 {
        number_of(self.first)
    }

    pub(crate) fn next_number(&self) -> u64 {
        number_of(self.stream.len())
    }

    /// Whether it has a message that it acknowledged, as far as it can be known.
    pub(crate) fn has(&self, last: &LastPublished) -> bool {
        let found = self.stream.get(usize::try_from(last.sequence).unwrap() - 1);
        last.sequence < self.first_number() || found.is_some_and(|(.., id)| *id == last.message_id)
    }
}

/// The number of the message at a place of the stream. Numbers begin at 1.
pub(crate) fn number_of(place: usize) -> u64 {
    u64::try_from(place).unwrap() + 1
}
