use std::collections::HashMap;

use super::payload::Label;
use crate::json;

/// The names that are read under. Each has to get everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consumer {
    /// Shared by several listeners.
    Lead,
    /// One listener of its own.
    Audit,
}

impl Consumer {
    pub(super) const ALL: [Self; 2] = [Self::Lead, Self::Audit];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Audit => "audit",
        }
    }
}

/// How the listener ended that printed something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listener {
    /// It exited by itself, so what it printed is read and may not come again.
    Finished,
    /// Killed, or it failed: it could not say that it had printed, so the same may come again.
    Died,
}

/// What was sent, what was acknowledged, and what came. At most one entry per message sent.
pub(super) struct Ledger {
    seed: u64,
    letters: HashMap<Label, Letter>,
    owners: HashMap<String, Label>,
    pub(super) faults: Faults,
}

#[derive(Default)]
struct Letter {
    acknowledged: bool,
    arrivals: [Arrivals; 2],
}

#[derive(Default, Clone, Copy)]
struct Arrivals {
    times: u64,
    /// Of them, from listeners that finished: one at most is right, whoever is killed.
    finished: u64,
}

/// What must not happen, counted.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Faults {
    /// Lines that are no JSON, and messages that are not what was sent.
    pub(super) torn: u64,
    /// Messages that nobody sent.
    pub(super) strangers: u64,
    /// Two messages with one id, or one message with two.
    pub(super) clashes: u64,
}

/// The sums.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Sums {
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// Acknowledged, but a consumer did not get it; counted once per consumer.
    pub(super) lost: u64,
    /// Arrivals beyond the first.
    pub(super) duplicates: u64,
    /// Of them, those that no listener's death explains.
    pub(super) unexplained: u64,
    /// In the journal although the writer was killed before it could say so: allowed.
    pub(super) unacknowledged_but_there: u64,
}

impl Ledger {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, letters: HashMap::new(), owners: HashMap::new(), faults: Faults::default() }
    }

    /// To be called before it is sent: it may arrive before its writer is back.
    pub(super) fn send(&mut self, label: Label) {
        self.letters.entry(label).or_default();
    }

    /// `notify` exited 0 and printed this.
    pub(super) fn acknowledge(&mut self, label: Label, printed: &[u8]) {
        self.letters.entry(label).or_default().acknowledged = true;
        let id = std::str::from_utf8(printed)
            .ok()
            .and_then(|line| json::parse(line.trim_end_matches('\n')))
            .and_then(|report| report.text("id").map(str::to_owned));
        match id {
            Some(id) => self.claim(label, id),
            None => self.faults.torn += 1,
        }
    }

    /// A listener printed this. A line without its end was not printed: its listener died over it.
    pub(super) fn arrive(&mut self, consumer: Consumer, listener: Listener, printed: &[u8]) {
        let (whole, rest) = match printed.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => printed.split_at(end + 1),
            None => (&[][..], printed),
        };
        if !rest.is_empty() && listener == Listener::Finished {
            self.faults.torn += 1;
        }
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.line(consumer, listener, &line[..line.len() - 1]);
        }
    }

    fn line(&mut self, consumer: Consumer, listener: Listener, line: &[u8]) {
        let value = std::str::from_utf8(line).ok().and_then(json::parse);
        let fields = value.as_ref().and_then(|value| {
            Some((value.text("msg")?, value.text("from")?, value.text("id")?, value.text("type")?))
        });
        let Some((text, from, id, kind)) = fields else {
            self.faults.torn += 1;
            return;
        };
        let Some(label) = Label::of(text).filter(|label| self.letters.contains_key(label)) else {
            self.faults.strangers += 1;
            return;
        };
        if text != label.text(self.seed) || from != label.sender() || kind != "status" {
            self.faults.torn += 1;
            return;
        }
        self.claim(label, id.to_owned());
        let arrivals = &mut self.letters.entry(label).or_default().arrivals[consumer as usize];
        arrivals.times += 1;
        arrivals.finished += u64::from(listener == Listener::Finished);
    }

    fn claim(&mut self, label: Label, id: String) {
        if *self.owners.entry(id).or_insert(label) != label {
            self.faults.clashes += 1;
        }
    }

    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums { sent: self.letters.len() as u64, ..Sums::default() };
        for letter in self.letters.values() {
            sums.acknowledged += u64::from(letter.acknowledged);
            let arrived = letter.arrivals.iter().any(|arrivals| arrivals.times > 0);
            sums.unacknowledged_but_there += u64::from(!letter.acknowledged && arrived);
            for Arrivals { times, finished } in letter.arrivals {
                // One that came to one consumer has to come to the other too, acknowledged or not.
                sums.lost += u64::from((letter.acknowledged || arrived) && times == 0);
                sums.duplicates += times.saturating_sub(1);
                sums.unexplained += finished.saturating_sub(1);
            }
        }
        sums
    }

    /// Two ids for one message, which [`Ledger::claim`] cannot see.
    pub(super) fn ids_beyond_messages(&self) -> u64 {
        let mut labels: Vec<&Label> = self.owners.values().collect();
        labels.sort_unstable_by_key(|label| (label.writer, label.number));
        labels.dedup();
        (self.owners.len() - labels.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Consumer, Faults, Ledger, Listener, Sums};
    use crate::stress::payload::Label;

    const FIRST: Label = Label { writer: 1, number: 2 };
    const SECOND: Label = Label { writer: 1, number: 3 };

    fn quoted(text: &str) -> String {
        let escaped = |c: char| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c < ' ' => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        };
        text.chars().map(escaped).collect()
    }

    fn line(label: Label, id: &str) -> String {
        let (from, text) = (label.sender(), quoted(&label.text(0)));
        format!(
            "{{\"ts\":\"t\",\"from\":\"{from}\",\"type\":\"status\",\"msg\":\"{text}\",\"id\":\"{id}\"}}\n"
        )
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(0);
        ledger.send(FIRST);
        ledger.send(SECOND);
        ledger.acknowledge(FIRST, b"{\"id\":\"one\",\"scope\":\"s\"}\n");
        ledger
    }

    fn arrive(ledger: &mut Ledger, printed: &str, listener: Listener) {
        for consumer in Consumer::ALL {
            ledger.arrive(consumer, listener, printed.as_bytes());
        }
    }

    #[test]
    fn acknowledged_and_delivered_is_all_there_is_to_it() {
        let mut ledger = ledger();
        arrive(&mut ledger, &line(FIRST, "one"), Listener::Finished);
        assert_eq!(ledger.sums(), Sums { sent: 2, acknowledged: 1, ..Sums::default() });
        assert_eq!(ledger.faults, Faults::default());
    }

    #[test]
    fn both_consumers_have_to_get_it() {
        let mut ledger = ledger();
        assert_eq!(ledger.sums().lost, 2);
        ledger.arrive(Consumer::Lead, Listener::Finished, line(FIRST, "one").as_bytes());
        assert_eq!(ledger.sums().lost, 1);
    }

    #[test]
    fn a_killed_writer_may_or_may_not_have_sent() {
        let mut ledger = ledger();
        arrive(&mut ledger, &(line(FIRST, "one") + &line(SECOND, "two")), Listener::Finished);
        let expect = Sums { sent: 2, acknowledged: 1, unacknowledged_but_there: 1, ..Sums::default() };
        assert_eq!(ledger.sums(), expect);
    }

    #[test]
    fn a_dead_listener_explains_a_duplicate() {
        let mut ledger = ledger();
        arrive(&mut ledger, &line(FIRST, "one"), Listener::Died);
        arrive(&mut ledger, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((ledger.sums().duplicates, ledger.sums().unexplained), (2, 0));
        arrive(&mut ledger, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((ledger.sums().duplicates, ledger.sums().unexplained), (4, 2));
    }

    #[test]
    fn a_line_without_its_end_was_not_delivered() {
        let whole = line(FIRST, "one");
        let mut ledger = ledger();
        arrive(&mut ledger, &whole[..whole.len() - 1], Listener::Died);
        assert_eq!((ledger.sums().lost, ledger.faults.torn), (2, 0));
        arrive(&mut ledger, &whole[..whole.len() - 1], Listener::Finished);
        assert_eq!((ledger.sums().lost, ledger.faults.torn), (2, 2));
    }

    #[test]
    fn what_is_not_what_was_sent_is_torn() {
        fn check(printed: &str, expect: &Faults) {
            let mut ledger = ledger();
            ledger.arrive(Consumer::Lead, Listener::Died, printed.as_bytes());
            assert_eq!(ledger.faults, *expect, "{printed}");
        }
        let torn = Faults { torn: 1, ..Faults::default() };
        let stranger = Faults { strangers: 1, ..Faults::default() };
        check(&line(FIRST, "one").replacen('{', "", 1), &torn);
        check(&line(FIRST, "one").replacen("1:2:", "1:2:x", 1), &torn);
        check(&line(FIRST, "one").replacen("\"w1\"", "\"w2\"", 1), &torn);
        check("{}\n", &torn);
        check("\n", &torn);
        check(&line(Label { writer: 1, number: 4 }, "four"), &stranger);
    }

    #[test]
    fn an_id_is_one_messages_and_a_message_has_one() {
        let mut ledger = ledger();
        arrive(&mut ledger, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((ledger.faults.clashes, ledger.ids_beyond_messages()), (0, 0));
        ledger.arrive(Consumer::Lead, Listener::Finished, line(SECOND, "one").as_bytes());
        assert_eq!((ledger.faults.clashes, ledger.ids_beyond_messages()), (1, 0));
        ledger.arrive(Consumer::Lead, Listener::Finished, line(SECOND, "two").as_bytes());
        ledger.arrive(Consumer::Audit, Listener::Finished, line(SECOND, "three").as_bytes());
        assert_eq!((ledger.faults.clashes, ledger.ids_beyond_messages()), (1, 1));
    }
}
