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
    /// What was looked at and is not confirmed yet.
    open: VecDeque<Open>,
    /// The number of the next ticket.
    next_ticket: u64,
}

/// A message that was looked at.
#[derive(Debug)]
struct Open {
    ticket: u64,
    place: Position,
    /// The server has it, or it does not leave this machine.
    is_settled: bool,
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
    pub(crate) fn looked_at(&self) -> i64 {
        self.looked_at
    }

    /// A message was published. Gives the ticket with which it is confirmed.
    pub(crate) fn published(&mut self, place: Position) -> u64 {
        self.push(place, false)
    }

    /// A message does not leave this machine.
    pub(crate) fn kept_here(&mut self, place: Position) {
        self.push(place, true);
    }

    fn push(&mut self, place: Position, is_settled: bool) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.open.push_back(Open { ticket, place, is_settled });
        ticket
    }

    /// The server has the message of a ticket.
    pub(crate) fn confirmed(&mut self, ticket: u64) {
        if let Some(open) = self.open.iter_mut().find(|open| open.ticket == ticket) {
            open.is_settled = true;
        }
    }

    /// How far everything has arrived by now; `None` if that is no further than before.
    pub(crate) fn arrived(&mut self) -> Option<Position> {
        let mut end = None;
        while self.open.front().is_some_and(|open| open.is_settled) {
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

    #[test]
    fn a_place_counts_once_all_before_it_have_arrived() {
        let mut publishing = Publishing::after(4);
        assert_eq!(publishing.wanted(), Some((4, WINDOW)));
        publishing.read_up_to(8, false);
        let tickets: Vec<u64> = [5, 6].into_iter().map(|seq| publishing.published(place(seq))).collect();
        publishing.kept_here(place(7));
        let last = publishing.published(place(8));
        publishing.confirmed(tickets[1]);
        assert_eq!(publishing.arrived(), None);
        publishing.confirmed(tickets[0]);
        assert_eq!(publishing.arrived(), Some(place(7)), "what stays here is passed over");
        assert_eq!(publishing.arrived(), None);
        assert!(!publishing.is_done());
        publishing.confirmed(last);
        publishing.confirmed(99);
        assert_eq!(publishing.arrived(), Some(place(8)));
        assert!(publishing.is_done() && publishing.wanted().is_none());
        publishing.changed();
        assert_eq!(publishing.wanted(), Some((8, WINDOW)));
    }

    #[test]
    fn no_more_is_on_the_way_than_the_window_holds() {
        let mut publishing = Publishing::after(0);
        for seq in 1..=i64::try_from(WINDOW).unwrap() {
            publishing.published(place(seq));
        }
        assert_eq!(publishing.wanted(), None);
    }

    proptest! {
        /// Whatever order acknowledgements come in, the place never passes a message that has not arrived.
        #[test]
        fn nothing_is_passed_over(order in Just((0_u64..20).collect::<Vec<_>>()).prop_shuffle(), cut in 0_usize..20) {
            let mut publishing = Publishing::after(0);
            for seq in 1..=20 {
                publishing.published(place(seq));
            }
            let mut end = 0;
            for ticket in &order[..cut] {
                publishing.confirmed(*ticket);
                end = publishing.arrived().map_or(end, |place| place.seq);
            }
            let arrived = |seq: i64| order[..cut].contains(&u64::try_from(seq - 1).unwrap());
            prop_assert!((1..=end).all(arrived));
            prop_assert!(end == 20 || !arrived(end + 1));
        }
    }
}
