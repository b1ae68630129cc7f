//! Interprets messages of the stream for this machine: pure rules. The server identifies the machine that published a message;
//! the payload is untrusted.

use std::collections::{BTreeMap, BTreeSet};

use ringer_core::message::{MarkReach, Tag};

use crate::position::Position;
use crate::wire_message::WireMessage;

use super::payload::TeamPayload;
use super::subject::{Audience, TeamSubject};

/// The longest word in a position, in bytes. Positions are stored.
const MAX_WORD: usize = 64;

/// A message as the server delivered it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveredMessage<'a> {
    pub(crate) subject: &'a str,
    pub(crate) payload: &'a [u8],
    /// The time at which the server stored it, by the server's clock, in milliseconds since 1970.
    pub(crate) stored_ms: i64,
    /// It may have arrived before.
    pub(crate) is_repeat: bool,
}

/// The part of a batch that concerns this machine.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SortedBatch {
    /// Messages to store, in the order of the stream.
    pub(crate) runs: Vec<Run>,
    /// Requests of other machines to send messages of this one again.
    pub(crate) resend_requests: Vec<ResendRequest>,
    /// The number of invalid messages.
    pub(crate) unreadable: usize,
}

/// The messages of one journal in a batch, all together: a mark counts only after its message.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    /// The machine, as the server identifies it.
    pub(crate) machine: String,
    /// In the order of the journal.
    pub(crate) messages: Vec<WireMessage>,
    /// The numbers of messages that may have arrived before and been pruned since.
    pub(crate) repeats: BTreeSet<i64>,
    /// The position of each message, in the order of the stream.
    pub(crate) places: Vec<Place>,
    /// How far the clock of the server is ahead of the machine's, in milliseconds.
    pub(crate) clock_ahead_ms: i64,
}

/// The position of a message in the journal of its machine, and what is known of the messages before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    /// The stream was given every message after this number, before this one. `None`: every message since the machine joined.
    pub(crate) covered_from: Option<i64>,
    /// All of these have this number in the stream, or a higher one.
    pub(crate) covered_at: u64,
}

/// A request of another machine for messages of this one.
#[derive(Debug, PartialEq)]
pub(crate) struct ResendRequest {
    /// The last message that it has; `None` if it has none.
    pub(crate) after: Option<Position>,
    /// When it joined the team, in milliseconds since 1970.
    pub(crate) joined_ms: i64,
    /// Messages before this number were removed from the stream before it had read them.
    pub(crate) removed_before: u64,
}

/// The identity of this machine in its team, and the person's settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSorter<'a> {
    pub(crate) team: &'a str,
    pub(crate) machine: &'a str,
    pub(crate) share_marks: bool,
}

impl BatchSorter<'_> {
    /// Sorts a batch. Leaves out messages of this machine itself, and those for others.
    pub(crate) fn sort(self, batch: &[DeliveredMessage<'_>]) -> SortedBatch {
        let mut received = SortedBatch::default();
        // The run of each journal: redelivered messages arrive late, and are put in order here.
        let mut open: BTreeMap<(String, String), usize> = BTreeMap::new();
        for delivered in batch {
            let Some(subject) = TeamSubject::parse(delivered.subject, self.team) else {
                received.unreadable += 1;
                continue;
            };
            if subject.machine == self.machine || !self.is_for_this_machine(&subject.audience) {
                continue;
            }
            match TeamPayload::read(delivered.payload) {
                None => received.unreadable += 1,
                Some(TeamPayload::Hello { .. } | TeamPayload::Unknown) => {}
                Some(TeamPayload::Want { mut stored, joined_ms, removed_before }) => {
                    let after = stored.remove(self.machine);
                    received.resend_requests.push(ResendRequest { after, joined_ms, removed_before });
                }
                Some(TeamPayload::Message { generation, message, .. })
                    if generation.len() > MAX_WORD || message.id.len() > MAX_WORD || message.seq < 0 =>
                {
                    received.unreadable += 1;
                }
                Some(TeamPayload::Message {
                    generation,
                    sent_ms,
                    covered_from,
                    covered_at,
                    again,
                    message,
                }) => {
                    if !self.share_marks && is_personal_mark(&message) {
                        continue;
                    }
                    let is_one_of_many =
                        matches!(subject.audience, Audience::Machine(_)) && is_personal_mark(&message);
                    let clock_ahead_ms = delivered.stored_ms.saturating_sub(sent_ms);
                    let position = Position { generation, seq: message.seq, id: Some(message.id.clone()) };
                    let key = (subject.machine.to_owned(), position.generation.clone());
                    let at = *open.entry(key).or_insert_with(|| {
                        received.runs.push(Run {
                            machine: subject.machine.to_owned(),
                            messages: Vec::new(),
                            repeats: BTreeSet::new(),
                            places: Vec::new(),
                            clock_ahead_ms,
                        });
                        received.runs.len() - 1
                    });
                    let run = &mut received.runs[at];
                    if delivered.is_repeat || again {
                        run.repeats.insert(message.seq);
                    }
                    run.messages.push(*message);
                    // One mark was expanded to many for this machine, and their ids are not in the journal.
                    if !is_one_of_many {
                        run.places.push(Place { position, covered_from, covered_at });
                    }
                    // The transit to the server only adds to the difference.
                    run.clock_ahead_ms = run.clock_ahead_ms.min(clock_ahead_ms);
                }
            }
        }
        for run in &mut received.runs {
            run.messages.sort_by_key(|message| message.seq);
        }
        received
    }

    fn is_for_this_machine(self, audience: &Audience<'_>) -> bool {
        !matches!(audience, Audience::Machine(machine) if *machine != self.machine)
    }
}

/// Returns the position up to which this machine has everything of another one, after storing its `messages`. A new stream may
/// lack earlier messages: the position moves only over messages that the stream was given completely, and still had when they
/// were read here. In the stream in which this machine joined, these are all required messages, if nothing was removed unread.
pub(crate) fn advance_position(
    before: Option<Position>,
    messages: &[Place],
    is_first_stream: bool,
    removed_before: u64,
) -> Option<Position> {
    let mut place = before;
    for Place { position: message, covered_from, covered_at } in messages {
        let known =
            place.as_ref().filter(|place| place.generation == message.generation).map(|place| place.seq);
        let is_whole = match (known, covered_from) {
            (_, None) => true,
            (Some(known), Some(from)) => *from <= known,
            (None, Some(_)) => is_first_stream && removed_before == 0 && place.is_none(),
        };
        if is_whole && *covered_at >= removed_before && known.is_none_or(|known| message.seq > known) {
            place = Some(message.clone());
        }
    }
    place
}

/// Returns true for marks that a person sets on notifications. A colleague's reading must not clear a notification here.
pub(crate) fn is_personal_mark(message: &WireMessage) -> bool {
    let Some(Tag::Mark(mark)) = Tag::named(&message.tag) else { return false };
    mark.reach() == MarkReach::PersonsMachines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ImportRules;
    use crate::local_journal::store;
    use crate::machine::MachineName;
    use crate::repositories::Repositories;
    use ringer_journal::{Home, Journal};

    const HERE: BatchSorter<'static> = BatchSorter { team: "t", machine: "laptop", share_marks: false };

    fn payload(seq: i64, tag: &str) -> Vec<u8> {
        let message =
            WireMessage { seq, id: format!("id-{seq}"), tag: tag.to_owned(), ..WireMessage::default() };
        TeamPayload::Message {
            generation: "g".to_owned(),
            sent_ms: 100,
            covered_from: None,
            covered_at: 0,
            again: false,
            message: Box::new(message),
        }
        .encode()
    }

    fn sort(receiver: BatchSorter<'_>, batch: &[(&str, Vec<u8>)]) -> SortedBatch {
        let batch: Vec<DeliveredMessage<'_>> = batch
            .iter()
            .map(|(subject, payload)| DeliveredMessage { subject, payload, stored_ms: 130, is_repeat: false })
            .collect();
        receiver.sort(&batch)
    }

    fn seqs(received: &SortedBatch) -> Vec<(&str, Vec<i64>)> {
        let seqs = |run: &Run| run.messages.iter().map(|message| message.seq).collect();
        received.runs.iter().map(|run| (run.machine.as_str(), seqs(run))).collect()
    }

    #[test]
    fn messages_are_grouped_by_the_machine_in_the_subject() {
        let received = sort(
            HERE,
            &[
                ("ringer.t.box.s.all", payload(1, "status")),
                ("ringer.t.vm.s.all", payload(7, "status")),
                ("ringer.t.laptop.s.all", payload(3, "status")),
                ("ringer.t.box.s.to-vm", payload(2, "status")),
                ("ringer.t.box.s.to-laptop", payload(4, "status")),
                ("ringer.t.box.s.mark", payload(5, "mark-resolve")),
                ("ringer.t.box.s.mark", payload(6, "mark-read")),
                ("ringer.t.box.s.all", b"nonsense".to_vec()),
                ("ringer.u.box.s.all", payload(8, "status")),
                ("ringer.t.box.s.all", payload(-1, "status")),
            ],
        );
        assert_eq!(seqs(&received), [("box", vec![1, 4, 5]), ("vm", vec![7])]);
        assert_eq!(received.unreadable, 3);
        assert_eq!((received.runs[0].places.len(), received.runs[0].clock_ahead_ms), (3, 30));
    }

    #[test]
    fn personal_marks_are_accepted_only_if_shared() {
        let batch = [("ringer.t.box.s.mark", payload(6, "mark-read"))];
        assert!(sort(HERE, &batch).runs.is_empty());
        assert_eq!(sort(BatchSorter { share_marks: true, ..HERE }, &batch).runs.len(), 1);
    }

    #[test]
    fn a_mark_for_this_machine_alone_has_no_position() {
        let batch = [
            ("ringer.t.box.s.to-laptop", payload(6, "mark-read")),
            ("ringer.t.box.s.to-laptop", payload(7, "status")),
        ];
        let received = sort(BatchSorter { share_marks: true, ..HERE }, &batch);
        let places: Vec<i64> = received.runs[0].places.iter().map(|place| place.position.seq).collect();
        assert_eq!((seqs(&received), places), (vec![("box", vec![6, 7])], vec![7]));
    }

    #[test]
    fn a_late_message_is_stored_without_moving_the_position_back() {
        let batch = [3, 1, 2].map(|seq| ("ringer.t.box.s.all", payload(seq, "status")));
        let received = sort(HERE, &batch);
        assert_eq!(seqs(&received), [("box", vec![1, 2, 3])]);
        let place = advance_position(None, &received.runs[0].places, true, 0);
        assert_eq!(place.map(|place| place.seq), Some(3));
    }

    #[test]
    fn a_mark_follows_its_redelivered_message() {
        let id = |seq: i64| format!("01890000-0000-7000-8000-00000000000{seq}");
        let payload = |seq: i64, tag: &str, key: Option<String>| {
            let (id, tag, scope) = (id(seq), tag.to_owned(), "global".to_owned());
            let (sender, recipient, body) = ("worker-1".to_owned(), "person".to_owned(), "x".to_owned());
            let message =
                WireMessage { seq, id, tag, scope, sender, recipient, body, key, ..WireMessage::default() };
            TeamPayload::Message {
                generation: "g".to_owned(),
                sent_ms: 100,
                covered_from: None,
                covered_at: 0,
                again: false,
                message: Box::new(message),
            }
            .encode()
        };
        let payloads =
            [payload(1, "status", None), payload(2, "status", None), payload(3, "mark-read", Some(id(2)))];
        let batch: Vec<DeliveredMessage<'_>> = payloads
            .iter()
            .enumerate()
            .map(|(at, payload)| DeliveredMessage {
                subject: "ringer.t.box.s.all",
                payload,
                stored_ms: 130,
                is_repeat: at == 1,
            })
            .collect();
        let mut received = BatchSorter { share_marks: true, ..HERE }.sort(&batch);
        assert_eq!(seqs(&received), [("box", vec![1, 2, 3])]);
        let run = received.runs.remove(0);
        assert_eq!(run.repeats, BTreeSet::from([2]));
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&Home::new(directory.path())).unwrap();
        let rules = ImportRules::new(MachineName::parse("box.t").unwrap(), false, 0, 0);
        let repositories = &mut Repositories::default();
        let checked = store(&mut journal, repositories, &rules, run.messages, |_| false).unwrap();
        let ids: Vec<&str> = checked.messages.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids, [id(1), id(2), id(3)]);
    }

    #[test]
    fn the_position_moves_only_over_complete_coverage() {
        let at = |seq: i64| Position { generation: "g".to_owned(), seq, id: None };
        let check = |before: Option<i64>, seq: i64, covered_from: Option<i64>, is_first: bool| {
            let message = Place { position: at(seq), covered_from, covered_at: 20 };
            let place = advance_position(before.map(at), std::slice::from_ref(&message), is_first, 0);
            if before.is_some() || !is_first {
                assert_eq!(
                    advance_position(before.map(at), std::slice::from_ref(&message), is_first, 20),
                    place
                );
            }
            assert_eq!(
                advance_position(before.map(at), &[message], is_first, 21),
                before.map(at),
                "some were removed"
            );
            place.map(|place| place.seq)
        };
        assert_eq!(check(Some(4), 9, Some(4), false), Some(9));
        assert_eq!(check(Some(4), 9, Some(5), false), Some(4), "5 may be lacking");
        assert_eq!(check(Some(4), 9, None, false), Some(9));
        assert_eq!(check(Some(9), 4, None, false), Some(9), "it came late");
        assert_eq!(check(None, 9, Some(5), false), None);
        assert_eq!(check(None, 9, Some(5), true), Some(9));
        let message = Place { position: at(9), covered_from: Some(5), covered_at: 20 };
        assert_eq!(
            advance_position(None, &[message], true, 20),
            None,
            "what is up to 5 may have been removed unread"
        );
        let other = Position { generation: "new".to_owned(), seq: 2, id: None };
        let message = |covered_from| [Place { position: other.clone(), covered_from, covered_at: 0 }];
        assert_eq!(advance_position(Some(at(4)), &message(Some(1)), true, 0), Some(at(4)));
        assert_eq!(
            advance_position(Some(at(4)), &message(None), false, 0),
            Some(other.clone()),
            "another journal"
        );
    }

    #[test]
    fn a_request_names_the_missing_messages_of_this_machine() {
        let place = Position { generation: "g".to_owned(), seq: 4, id: None };
        let stored =
            BTreeMap::from([("laptop".to_owned(), place.clone()), ("box".to_owned(), place.clone())]);
        let want = TeamPayload::Want { stored, joined_ms: 9, removed_before: 7 }.encode();
        let none = TeamPayload::Want { stored: BTreeMap::new(), joined_ms: 9, removed_before: 0 }.encode();
        let received = sort(HERE, &[("ringer.t.box.link.want", want), ("ringer.t.vm.link.want", none)]);
        assert_eq!(
            received.resend_requests,
            [
                ResendRequest { after: Some(place), joined_ms: 9, removed_before: 7 },
                ResendRequest { after: None, joined_ms: 9, removed_before: 0 }
            ]
        );
    }
}
