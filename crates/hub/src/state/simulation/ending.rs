//! The end of a run: waits until the hub is idle, and checks the invariants.

use std::collections::HashSet;
use std::time::Duration;

use ringer_core::attention::Cause;
use ringer_core::message::{Mark, Tag};
use ringer_core::{Message, MessageId};
use serde_json::json;

use super::{CLIENT, Simulation};
use crate::message::{LoopEvent, Request, RequestId};

impl Simulation {
    /// Waits until the hub is idle, marks everything as read, and waits again.
    pub(super) fn finish(&mut self) {
        self.is_ending = true;
        self.rest();
        self.check_all_read();
        self.requests += 1;
        let id = RequestId(self.requests);
        self.asked.push_back(id);
        let request = Request {
            method: "notification.mark_read".to_owned(),
            params: json!({ "all": true }),
            connection: CLIENT,
            peer: None,
        };
        self.handle(LoopEvent::Request { id, request });
        self.rest();
        self.check();
    }

    fn rest(&mut self) {
        let mut quiet = 0;
        for _ in 0..500 {
            self.now += Duration::from_secs(2);
            self.hear_bell();
            self.turn();
            self.answer_probe();
            self.finish_maintenance();
            self.answer_hook();
            self.finish_delivery();
            self.try_title();
            let now = self.now();
            let actions = self.state().tick(now);
            self.perform(actions);
            let is_over = self.pending_probe.is_none()
                && self.state().notifications.undecided() == 0
                && self.deliveries.is_empty()
                && self.hooks.is_empty()
                && self.titles.is_empty();
            let is_quiet = is_over && self.asked.is_empty() && !self.state().has_work(now.mono);
            quiet = if is_quiet { quiet + 1 } else { 0 };
            // The decisions of a quiet turn take effect in the next one.
            if quiet == 3 {
                break;
            }
        }
    }

    /// Checks that no ring of the doorbell was lost.
    fn check_all_read(&mut self) {
        let position = self.store.position().unwrap().map_or(0, |position| position.cursor.seq);
        assert_eq!(position, self.journal.last_seq().unwrap(), "everything is read");
    }

    fn check(&mut self) {
        assert!(self.asked.is_empty(), "every request is answered");
        self.check_all_read();
        assert_eq!(self.store.undecided().unwrap(), [], "everything is decided");
        assert_eq!(self.store.outbox().unwrap().len(), 0, "no delivery is left");
        let marked: Vec<_> = self.marked.iter().filter(|(_, marked)| **marked).collect();
        assert_eq!(marked, [], "everything is read, so no title has a mark");
        assert_eq!(self.store.unread().unwrap(), 0, "everything is read");
        self.check_clearing();
        self.check_snoozes();
        self.check_mutes();
        self.check_away();
        let distinct: HashSet<_> = self.sent.iter().cloned().collect();
        for id in distinct {
            let known = self.store.notification(id.as_str()).unwrap().is_some();
            let steps = self.store.trail(id.as_str()).unwrap();
            assert!(known || steps.steps().next().is_some() || self.is_removed(&id), "{id} is lost");
        }
    }

    /// Checks that messages sent before everything was cleared are gone, unless a later undo restored them, and that messages
    /// listed after the last clear are present.
    fn check_clearing(&mut self) {
        let messages = self.journal.messages_after(0, usize::MAX).unwrap();
        let last = |keys: &[&str]| {
            let is_meant = |message: &&Message| {
                message.draft.tag == Tag::Mark(Mark::Clear)
                    && message.draft.key.as_deref().is_some_and(|key| keys.contains(&key))
            };
            messages.iter().filter(is_meant).map(|message| message.seq).max().unwrap_or(0)
        };
        let (all, any) = (last(&["all"]), last(&["all", "all-read"]));
        let is_undo = |message: &&Message| message.draft.tag == Tag::Mark(Mark::Undo);
        let undone = messages.iter().filter(is_undo).map(|message| message.seq).max().unwrap_or(0);
        for message in messages.iter().filter(|message| matches!(message.draft.tag, Tag::Notice(_))) {
            let id = message.id.as_str();
            let is_listed = self.store.notification(id).unwrap().is_some();
            let trail = self.store.trail(id).unwrap();
            let was_listed =
                trail.steps().any(|step| matches!(step.cause, Cause::Decided { listed: true, .. }));
            assert!(message.seq > all || !is_listed || undone > all, "{id} was cleared");
            assert!(message.seq < any || !was_listed || is_listed, "{id} came after all clearing");
        }
    }

    /// Returns true if a message was read. A cleared notification leaves no other trace.
    fn is_removed(&mut self, id: &MessageId) -> bool {
        let seq = self.journal.message(id.as_str()).unwrap().map(|message| message.seq);
        let position = self.store.position().unwrap().map_or(0, |position| position.cursor.seq);
        seq.is_some_and(|seq| seq <= position)
    }
}
