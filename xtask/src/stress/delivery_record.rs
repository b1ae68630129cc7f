use std::collections::HashMap;

use serde_json::Value;

use super::payload::Label;

/// The consumers. Each must receive every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consumer {
    /// Shared by several listeners.
    Lead,
    /// Used by a single listener.
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

/// How a listener with output ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listener {
    /// It exited on its own: the messages that it printed are read and must not arrive again.
    Finished,
    /// It was killed or failed before it could record its output: the messages may arrive again.
    Died,
}

/// The sent, acknowledged and received messages, with at most one entry for each sent message.
pub(super) struct DeliveryRecord {
    seed: u64,
    messages: HashMap<Label, MessageRecord>,
    owners: HashMap<String, Label>,
    pub(super) faults: Faults,
}

#[derive(Default)]
struct MessageRecord {
    acknowledged: bool,
    arrivals: [Arrivals; 2],
}

#[derive(Default, Clone, Copy)]
struct Arrivals {
    times: u64,
    /// Arrivals at listeners that finished. More than one is a fault, whichever process was killed.
    finished: u64,
}

/// Counts of faults.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Faults {
    /// Lines that are not JSON, and messages with a wrong text.
    pub(super) torn: u64,
    /// Messages that were never sent.
    pub(super) never_sent: u64,
    /// Two messages with the same id, or one message with two ids.
    pub(super) clashes: u64,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Totals {
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    /// Messages that a consumer did not receive although they were acknowledged; counted once per consumer.
    pub(super) lost: u64,
    /// Arrivals beyond the first.
    pub(super) duplicates: u64,
    /// Duplicates that no killed or failed listener explains.
    pub(super) unexplained: u64,
    /// Messages in the journal whose writer was killed before it could acknowledge them. Allowed.
    pub(super) unacknowledged_but_there: u64,
}

impl DeliveryRecord {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, messages: HashMap::new(), owners: HashMap::new(), faults: Faults::default() }
    }

    /// Records a message. Must be called before it is sent, because it may arrive before its writer exits.
    pub(super) fn send(&mut self, label: Label) {
        self.messages.entry(label).or_default();
    }

    /// Records that `notify` exited with 0 and this output.
    pub(super) fn acknowledge(&mut self, label: Label, printed: &[u8]) {
        self.messages.entry(label).or_default().acknowledged = true;
        let report = serde_json::from_slice::<Value>(printed).ok();
        let id = report.and_then(|report| report["id"].as_str().map(str::to_owned));
        match id {
            Some(id) => self.record_id(label, id),
            None => self.faults.torn += 1,
        }
    }

    /// Records the output of a listener. An incomplete line does not count: the listener died while it wrote the line.
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
        let value = serde_json::from_slice::<Value>(line).ok();
        let fields = value.as_ref().and_then(|value| {
            let text = |name: &str| value[name].as_str();
            Some((text("msg")?, text("from")?, text("id")?, text("type")?))
        });
        let Some((text, from, id, kind)) = fields else {
            self.faults.torn += 1;
            return;
        };
        let Some(label) = Label::of(text).filter(|label| self.messages.contains_key(label)) else {
            self.faults.never_sent += 1;
            return;
        };
        if text != label.text(self.seed) || from != label.sender() || kind != "status" {
            self.faults.torn += 1;
            return;
        }
        self.record_id(label, id.to_owned());
        let arrivals = &mut self.messages.entry(label).or_default().arrivals[consumer as usize];
        arrivals.times += 1;
        arrivals.finished += u64::from(listener == Listener::Finished);
    }

    fn record_id(&mut self, label: Label, id: String) {
        if *self.owners.entry(id).or_insert(label) != label {
            self.faults.clashes += 1;
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { sent: self.messages.len() as u64, ..Totals::default() };
        for message in self.messages.values() {
            totals.acknowledged += u64::from(message.acknowledged);
            let arrived = message.arrivals.iter().any(|arrivals| arrivals.times > 0);
            totals.unacknowledged_but_there += u64::from(!message.acknowledged && arrived);
            for Arrivals { times, finished } in message.arrivals {
                // A message that reached one consumer must reach the other too, acknowledged or not.
                totals.lost += u64::from((message.acknowledged || arrived) && times == 0);
                totals.duplicates += times.saturating_sub(1);
                totals.unexplained += finished.saturating_sub(1);
            }
        }
        totals
    }

    /// Counts second ids of messages, which [`DeliveryRecord::record_id`] cannot detect.
    pub(super) fn ids_beyond_messages(&self) -> u64 {
        let mut labels: Vec<&Label> = self.owners.values().collect();
        labels.sort_unstable_by_key(|label| (label.writer, label.number));
        labels.dedup();
        (self.owners.len() - labels.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Consumer, DeliveryRecord, Faults, Listener, Totals};
    use crate::stress::payload::Label;
    use serde_json::json;

    const FIRST: Label = Label { writer: 1, number: 2 };
    const SECOND: Label = Label { writer: 1, number: 3 };

    fn line(label: Label, id: &str) -> String {
        let line =
            json!({ "ts": "t", "from": label.sender(), "type": "status", "msg": label.text(0), "id": id });
        format!("{line}\n")
    }

    fn record() -> DeliveryRecord {
        let mut record = DeliveryRecord::new(0);
        record.send(FIRST);
        record.send(SECOND);
        record.acknowledge(FIRST, b"{\"id\":\"one\",\"scope\":\"s\"}\n");
        record
    }

    fn arrive(record: &mut DeliveryRecord, printed: &str, listener: Listener) {
        for consumer in Consumer::ALL {
            record.arrive(consumer, listener, printed.as_bytes());
        }
    }

    #[test]
    fn acknowledged_and_delivered_is_all_there_is_to_it() {
        let mut record = record();
        arrive(&mut record, &line(FIRST, "one"), Listener::Finished);
        assert_eq!(record.totals(), Totals { sent: 2, acknowledged: 1, ..Totals::default() });
        assert_eq!(record.faults, Faults::default());
    }

    #[test]
    fn both_consumers_have_to_get_it() {
        let mut record = record();
        assert_eq!(record.totals().lost, 2);
        record.arrive(Consumer::Lead, Listener::Finished, line(FIRST, "one").as_bytes());
        assert_eq!(record.totals().lost, 1);
    }

    #[test]
    fn a_killed_writer_may_or_may_not_have_sent() {
        let mut record = record();
        arrive(&mut record, &(line(FIRST, "one") + &line(SECOND, "two")), Listener::Finished);
        let expect = Totals { sent: 2, acknowledged: 1, unacknowledged_but_there: 1, ..Totals::default() };
        assert_eq!(record.totals(), expect);
    }

    #[test]
    fn a_dead_listener_explains_a_duplicate() {
        let mut record = record();
        arrive(&mut record, &line(FIRST, "one"), Listener::Died);
        arrive(&mut record, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((record.totals().duplicates, record.totals().unexplained), (2, 0));
        arrive(&mut record, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((record.totals().duplicates, record.totals().unexplained), (4, 2));
    }

    #[test]
    fn a_line_without_its_end_was_not_delivered() {
        let whole = line(FIRST, "one");
        let mut record = record();
        arrive(&mut record, &whole[..whole.len() - 1], Listener::Died);
        assert_eq!((record.totals().lost, record.faults.torn), (2, 0));
        arrive(&mut record, &whole[..whole.len() - 1], Listener::Finished);
        assert_eq!((record.totals().lost, record.faults.torn), (2, 2));
    }

    #[test]
    fn what_is_not_what_was_sent_is_torn() {
        fn check(printed: &str, expect: &Faults) {
            let mut record = record();
            record.arrive(Consumer::Lead, Listener::Died, printed.as_bytes());
            assert_eq!(record.faults, *expect, "{printed}");
        }
        let torn = Faults { torn: 1, ..Faults::default() };
        let stranger = Faults { never_sent: 1, ..Faults::default() };
        check(&line(FIRST, "one").replacen('{', "", 1), &torn);
        check(&line(FIRST, "one").replacen("1:2:", "1:2:x", 1), &torn);
        check(&line(FIRST, "one").replacen("\"w1\"", "\"w2\"", 1), &torn);
        check("{}\n", &torn);
        check("\n", &torn);
        check(&line(Label { writer: 1, number: 4 }, "four"), &stranger);
    }

    #[test]
    fn an_id_is_one_messages_and_a_message_has_one() {
        let mut record = record();
        arrive(&mut record, &line(FIRST, "one"), Listener::Finished);
        assert_eq!((record.faults.clashes, record.ids_beyond_messages()), (0, 0));
        record.arrive(Consumer::Lead, Listener::Finished, line(SECOND, "one").as_bytes());
        assert_eq!((record.faults.clashes, record.ids_beyond_messages()), (1, 0));
        record.arrive(Consumer::Lead, Listener::Finished, line(SECOND, "two").as_bytes());
        record.arrive(Consumer::Audit, Listener::Finished, line(SECOND, "three").as_bytes());
        assert_eq!((record.faults.clashes, record.ids_beyond_messages()), (1, 1));
    }
}
