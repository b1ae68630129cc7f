//! Which messages of this machine are on their way to the server, and how far all of them have arrived: pure rules.

use std::collections::VecDeque;

use crate::position::Position;

/// Messages that wait for the server's acknowledgement at once. A message has at most 480 KiB, most have one.
pub(crate) const WINDOW: usize = 256;

/// What is being published, in the order of the journal.
#[derive(Debug)]
pub(crate) struct Publishing {
    /// Everything up to this number was looked at.
    looked_at: i64,
    /// There may be more behind that.
    more: bool,
    /// What was read and is not confirmed yet. No more than [`WINDOW`].
    open: VecDeque<Open>,
    /// The number of the next ticket.
    next_ticket: u64,
}

/// A message that was read.
#[derive(Debug)]
struct Open {
    ticket: u64,
    place: Position,
    /// How many publications of it the server has not confirmed. `None` while it is not known how many it becomes.
    unconfirmed: Option<usize>,
}

impl Publishing {
    /// Begins behind a number.
    pub(crate) fn after(seq: i64) -> Self {
        Self { looked_at: seq, more: true, open: VecDeque::new(), next_ticket: 0 }
    }

    /// The journal has changed.
    pub(crate) fn changed(&mut self) {
        self.more = true;
    }

    /// Behind which number to read, and how many messages at most. `None` if there is no more, or no room for it.
    pub(crate) fn wanted(&self) -> Option<(i64, usize)> {
        let room = WINDOW.saturating_sub(self.open.len());
        // A read is worth it once a good part of the window is free.
        (self.more && room >= WINDOW / 4).then_some((self.looked_at, room))
    }

    /// What was read goes up to there.
    pub(crate) fn read_up_to(&mut self, looked_at: i64, more: bool) {
        (self.looked_at, self.more) = (looked_at, more);
    }

    /// Up to which number everything was published, or does not leave this machine.
    pub(crate) fn published_up_to(&self) -> i64 {
        let unsent = self.open.iter().find(|open| open.unconfirmed.is_none());
        unsent.map_or(self.looked_at, |open| open.place.seq.saturating_sub(1))
    }

    /// A message was read. Gives the ticket with which its publications are confirmed.
    pub(crate) fn read(&mut self, place: Position) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.open.push_back(Open { ticket, place, unconfirmed: None });
        ticket
    }

    /// The message of a ticket becomes so many publications: none if it does not leave this machine.
    pub(crate) fn becomes(&mut self, ticket: u64, publications: usize) {
        if let Some(open) = self.open_of(ticket) {
            open.unconfirmed = Some(publications);
        }
    }

    /// The server has one publication of the message of a ticket.
    pub(crate) fn confirmed(&mut self, ticket: u64) {
        if let Some(open) = self.open_of(ticket) {
            open.unconfirmed = open.unconfirmed.map(|count| count.saturating_sub(1));
        }
    }

    fn open_of(&mut self, ticket: u64) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.ticket == ticket)
    }

    /// How far everything has arrived by now; `None` if that is no further than before.
    pub(crate) fn arrived(&mut self) -> Option<Position> {
        let mut end = None;
        while self.open.front().is_some_and(|open| open.unconfirmed == Some(0)) {
            end = self.open.pop_front().map(|open| open.place);
        }
        end
    }

    /// Nothing is on its way, and there is nothing more to publish.
    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty() && !self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(seq: i64) -> Position {
        Position { generation: "g".to_owned(), seq, id: None }
    }

    fn read(publishing: &mut Publishing, seq: i64, publications: usize) -> u64 {
        let ticket = publishing.read(place(seq));
        publishing.becomes(ticket, publications);
        ticket
    }

    #[test]
    fn a_place_counts_once_all_before_it_have_arrived() {
        let mut publishing = Publishing::after(4);
        assert_eq!(publishing.wanted(), Some((4, WINDOW)));
        publishing.read_up_to(8, false);
        let tickets = [5, 6].map(|seq| read(&mut publishing, seq, 1));
        read(&mut publishing, 7, 0);
        let last = publishing.read(place(8));
        assert_eq!(publishing.published_up_to(), 7);
        publishing.confirmed(tickets[1]);
        assert_eq!(publishing.arrived(), None);
        publishing.confirmed(tickets[0]);
        assert_eq!(publishing.arrived(), Some(place(7)), "what stays here is passed over");
        assert_eq!(publishing.arrived(), None);
        assert!(!publishing.is_done());
        publishing.becomes(last, 2);
        publishing.confirmed(last);
        assert_eq!((publishing.arrived(), publishing.is_done()), (None, false), "only a part of it is there");
        publishing.confirmed(last);
        publishing.confirmed(99);
        assert_eq!(publishing.arrived(), Some(place(8)));
        assert!(publishing.is_done() && publishing.wanted().is_none());
        publishing.changed();
        assert_eq!((publishing.wanted(), publishing.published_up_to()), (Some((8, WINDOW)), 8));
    }

    #[test]
    fn no_more_is_read_than_the_window_holds() {
        let mut publishing = Publishing::after(0);
        for seq in 1..=i64::try_from(WINDOW).unwrap() {
            publishing.read(place(seq));
        }
        assert_eq!(publishing.wanted(), None);
    }

    proptest! {
        /// Whatever order acknowledgements come in, the place never passes a message of which a part has not arrived.
        #[test]
        fn nothing_is_passed_over(order in Just((0_u64..40).collect::<Vec<_>>()).prop_shuffle(), cut in 0_usize..40) {
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
                end = publishing.arrived().map_or(end, |place| place.seq);
            }
            let count = |of: &[u64], seq: i64| of.iter().filter(|of| **of == u64::try_from(seq - 1).unwrap()).count();
            let arrived = |seq: i64| count(&confirmed, seq) == count(&parts, seq);
            prop_assert!((1..=end).all(arrived));
            prop_assert!(end == 20 || !arrived(end + 1));
        }
    }
}
