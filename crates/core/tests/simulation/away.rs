//! A person who goes away and comes back, and what escalates meanwhile.

use std::collections::{HashMap, HashSet};

use ringer_core::attention::{AwayPeriod, DesktopSession, Digest, Record, digest_id};
use ringer_core::engine::{Delivery, FeatureValue, SavedState};
use ringer_core::message::ShownKind;
use ringer_core::policy::DeliveryChannel;
use ringer_core::{Event, MessageId};
use test_support::Random;

/// Other hosts than those that show panes.
const HOSTS: [u64; 2] = [10, 11];

/// What was ordered so far.
#[derive(Debug, Default)]
pub(crate) struct Away {
    period: Option<AwayPeriod>,
    records: HashMap<MessageId, Record>,
    escalated: HashSet<MessageId>,
    /// The person came back with the event that is handled now.
    came_back: Option<Return>,
}

#[derive(Debug)]
struct Return {
    since_ms: i64,
    has_digest: bool,
    /// What belonged into the digest when they came.
    before: HashSet<MessageId>,
}

/// The desktop is locked, idle or unlocked, or a host says where the person is.
pub(crate) fn change(random: &mut Random) -> Event {
    let host = *random.pick(&HOSTS);
    match random.below(6) {
        0 => Event::Presence { host, present: *random.pick(&[Some(true), Some(false), None]) },
        1 => Event::Input { host },
        2 => Event::HostGone { host },
        3 => Event::Desktop(None),
        _ => {
            let mut flag = || random.below(2) == 0;
            Event::Desktop(Some(DesktopSession { is_locked: flag(), is_idle: flag(), reports_idle: flag() }))
        }
    }
}

fn can_wait(kind: ShownKind) -> bool {
    matches!(kind, ShownKind::Complete | ShownKind::Idle | ShownKind::Status)
}

impl Away {
    pub(crate) fn is_away(&self) -> bool {
        self.period.is_some_and(|period| period.until_ms.is_none())
    }

    /// What the next hub reads.
    pub(crate) fn state(&self) -> Option<SavedState> {
        self.period.map(|period| period.saved())
    }

    pub(crate) fn saved(&mut self, record: &Record) {
        if !record.snoozed_until.is_none() {
            // It comes back as new.
            self.escalated.remove(&record.id);
        }
        self.records.insert(record.id.clone(), record.clone());
    }

    pub(crate) fn deleted(&mut self, id: &MessageId) {
        self.records.remove(id);
    }

    pub(crate) fn changed(&mut self, period: AwayPeriod, is_muted: impl Fn(&Record) -> bool) {
        let was_away = self.is_away();
        assert_eq!(was_away, period.until_ms.is_some(), "one goes and comes by turns");
        self.period = Some(period);
        if was_away {
            // The same event may end a mute, after the digest.
            let before = self.digest(period.since_ms).filter(|record| !is_muted(record));
            let before = before.map(|record| record.id.clone()).collect();
            self.came_back = Some(Return { since_ms: period.since_ms, has_digest: false, before });
        }
    }

    pub(crate) fn delivered(&mut self, delivery: &Delivery, is_muted: impl Fn(&Record) -> bool) {
        let is_popup = matches!(delivery.channel, DeliveryChannel::Desktop | DeliveryChannel::Terminal);
        assert!(!(is_popup && can_wait(delivery.kind) && self.is_away()), "it can wait, and popped up");
        if delivery.id == digest_id() {
            assert!(is_popup, "the digest is a popup and nothing else");
            if delivery.channel == DeliveryChannel::Desktop {
                let came_back = self.came_back.as_ref().expect("a digest is for a person who came back");
                assert!(!came_back.has_digest, "one digest for each return");
                let counted = self.digest(came_back.since_ms).filter(|record| !is_muted(record));
                assert_eq!(delivery.body, Digest::of(counted).to_string());
                self.came_back.as_mut().expect("as before").has_digest = true;
            }
        }
        if delivery.channel == DeliveryChannel::AwayWebhook {
            assert!(self.escalated.insert(delivery.id.clone()), "it escalated twice");
            let record = self.records.get(&delivery.id).expect("it is on the list");
            assert!(!record.is_resolved && record.shown_kind().escalates(), "it is over, and escalated");
        }
    }

    /// An event was handled.
    pub(crate) fn handled(&mut self, is_muted: impl Fn(&Record) -> bool) {
        let Some(came_back) = self.came_back.take() else { return };
        let mut still = self.digest(came_back.since_ms).filter(|record| !is_muted(record));
        let missed = still.any(|record| came_back.before.contains(&record.id));
        assert!(came_back.has_digest || !missed, "they came back, and no digest told them");
    }

    fn digest(&self, since_ms: i64) -> impl Iterator<Item = &Record> {
        self.records.values().filter(move |record| Digest::includes(record, since_ms))
    }
}
