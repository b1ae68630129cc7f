//! Tracks which messages of this machine are in flight to the server, and how far all of them have arrived: pure rules.

use std::collections::VecDeque;

use crate::position::Position;

/// The most messages that wait for the server's acknowledgement. A message has at most 480 KiB, most have about one.
pub(crate) const WINDOW: usize = 256;

/// The messages that are being published, in the order of the journal.
#[derive(Debug)]
pub(crate) struct Publishing {
    /// All messages up to this number have been examined.
    examined_to: i64,
    /// The journal may have more messages.
    more: bool,
    /// Messages that were read and are not confirmed yet; at most [`WINDOW`].
    unconfirmed: VecDeque<UnconfirmedMessage>,
    next_ticket: u64,
}

/// A message that was read.
#[derive(Debug)]
struct UnconfirmedMessage {
    ticket: u64,
    position: Position,
    /// The number of publications that the server has not confirmed. `None` until it is known how many the message has.
    publications: Option<usize>,
}

impl Publishing {
    /// Starts after a number.
    pub(crate) fn after(seq: i64) -> Self {
        Self { examined_to: seq, more: true, unconfirmed: VecDeque::new(), next_ticket: 0 }
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self) {
        self.more = true;
    }

    /// Returns the number after which to read, and the most messages to read. `None` if there are no more, or no room.
    pub(crate) fn wanted(&self) -> Option<(i64, usize)> {
        let room = WINDOW.saturating_sub(self.unconfirmed.len());
        // Reads only once a good part of the window is free.
        (self.more && room >= WINDOW / 4).then_some((self.examined_to, room))
    }

    /// The journal was read up to this number.
    pub(crate) fn read_up_to(&mut self, examined_to: i64, more: bool) {
        (self.examined_to, self.more) = (examined_to, more);
    }

    /// Returns the number up to which everything was published, or stays on this machine.
    pub(crate) fn published_up_to(&self) -> i64 {
        let unsent = self.unconfirmed.iter().find(|message| message.publications.is_none());
        unsent.map_or(self.examined_to, |message| message.position.seq.saturating_sub(1))
    }

    /// Adds a message that was read. Returns the ticket for confirming its publications.
    pub(crate) fn read(&mut self, position: Position) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.unconfirmed.push_back(UnconfirmedMessage { ticket, position, publications: None });
        ticket
    }

    /// Sets the number of publications of a ticket's message: 0 if it stays on this machine.
    pub(crate) fn set_publications(&mut self, ticket: u64, publications: usize) {
        if let Some(message) = self.unconfirmed_mut(ticket) {
            message.publications = Some(publications);
        }
    }

    /// The server has confirmed one publication of a ticket's message.
    pub(crate) fn confirmed(&mut self, ticket: u64) {
        if let Some(message) = self.unconfirmed_mut(ticket) {
            message.publications = message.publications.map(|count| count.saturating_sub(1));
        }
    }

    fn unconfirmed_mut(&mut self, ticket: u64) -> Option<&mut UnconfirmedMessage> {
        self.unconfirmed.iter_mut().find(|message| message.ticket == ticket)
    }

    /// Returns the position up to which everything has arrived; `None` if it has not advanced.
    pub(crate) fn arrived(&mut self) -> Option<Position> {
        let mut end = None;
        while self.unconfirmed.front().is_some_and(|message| message.publications == Some(0)) {
            end = self.unconfirmed.pop_front().map(|message| message.position);
        }
        end
    }

    /// Returns true if nothing is in flight, and there is nothing more to publish.
    pub(crate) fn is_done(&self) -> bool {
        self.unconfirmed.is_empty() && !self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn position(seq: i64) -> Position {
        Position { generation: "g".to_owned(), seq, id: None }
    }

    fn read(publishing: &mut Publishing, seq: i64, publications: usize) -> u64 {
        let ticket = publishing.read(position(seq));
        publishing.set_publications(ticket, publications);
        ticket
    }

    #[test]
    fn a_position_is_confirmed_once_all_before_it_have_arrived() {
        let mut publishing = Publishing::after(4);
        assert_eq!(publishing.wanted(), Some((4, WINDOW)));
        publishing.read_up_to(8, false);
        let tickets = [5, 6].map(|seq| read(&mut publishing, seq, 1));
        read(&mut publishing, 7, 0);
        let last = publishing.read(position(8));
        assert_eq!(publishing.published_up_to(), 7);
        publishing.confirmed(tickets[1]);
        assert_eq!(publishing.arrived(), None);
        publishing.confirmed(tickets[0]);
        assert_eq!(publishing.arrived(), Some(position(7)), "unpublished messages are skipped");
        assert_eq!(publishing.arrived(), None);
        assert!(!publishing.is_done());
        publishing.set_publications(last, 2);
        publishing.confirmed(last);
        assert_eq!(
            (publishing.arrived(), publishing.is_done()),
            (None, false),
            "one publication is unconfirmed"
        );
        publishing.confirmed(last);
        publishing.confirmed(99);
        assert_eq!(publishing.arrived(), Some(position(8)));
        assert!(publishing.is_done() && publishing.wanted().is_none());
        publishing.changed();
        assert_eq!((publishing.wanted(), publishing.published_up_to()), (Some((8, WINDOW)), 8));
    }

    #[test]
    fn reading_stops_when_the_window_is_full() {
        let mut publishing = Publishing::after(0);
        for seq in 1..=i64::try_from(WINDOW).unwrap() {
            publishing.read(position(seq));
        }
        assert_eq!(publishing.wanted(), None);
    }

    proptest! {
        /// The position never passes a message with an unconfirmed part, in any order of acknowledgements.
        #[test]
        fn the_position_never_skips_an_unconfirmed_message(order in Just((0_u64..40).collect::<Vec<_>>()).prop_shuffle(), cut in 0_usize..40) {
            let mut publishing = Publishing::after(0);
            // Every fourth message has five parts, the others have one: forty of twenty messages.
            let parts: Vec<u64> = (1..=20).flat_map(|seq| {
                let count = if seq % 4 == 0 { 5 } else { 1 };
                vec![read(&mut publishing, seq, count); count]
            }).collect();
            let mut end = 0;
            let confirmed: Vec<u64> = order[..cut].iter().map(|at| parts[usize::try_from(*at).unwrap()]).collect();
            for ticket in &confirmed {
                publishing.confirmed(*ticket);
                end = publishing.arrived().map_or(end, |position| position.seq);
            }
            let count = |of: &[u64], seq: i64| of.iter().filter(|of| **of == u64::try_from(seq - 1).unwrap()).count();
            let arrived = |seq: i64| count(&confirmed, seq) == count(&parts, seq);
            prop_assert!((1..=end).all(arrived));
            prop_assert!(end == 20 || !arrived(end + 1));
        }
    }
}
