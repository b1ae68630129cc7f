//! Feeding: messages are taken from the journal in batches, in order, and come in when their repositories were looked at.
//!
//! That look is a scout's (`scout`). While it is under way the batch is held, and nothing behind it is taken, so everything
//! keeps its order; but all else that happens goes on.
//!
//! The loop reads a few batches at a time and then serves its inputs, so a long backlog delays neither requests nor the end
//! of the hub. A request is answered when the hub has read everything that was in the journal before it, or after a
//! second; the answer then says how many of those messages are missing in it.

use std::mem;
use std::time::Duration;

use ringer_core::Message;
use ringer_journal::{Batch, Error, IdSource};
use tokio::sync::oneshot;

use crate::clock::monotonic;
use crate::dispatch::{BATCH, Dispatcher, RETRY_AFTER};
use crate::input::Answered;
use crate::requests::{Asked, Said};
use crate::scout::{PATIENCE, Round, Sight, Spot};

/// After this no other scout is sent for what a missing one did not get to.
const SEND_AGAIN_FOR: Duration = PATIENCE.saturating_mul(2);

/// Batches that are read before the loop serves its inputs again. In a release build a message takes about 62 µs (100,000
/// took 6.2 s), so 4 batches of 64 take about 16 ms; the loop may be away from its inputs for 20 ms.
const BATCHES_A_TURN: usize = 4;
/// How long a request waits for the messages that were in the journal before it. Clients give up after 5 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A request that waits for its answer. Each connection waits for one at a time, so there are few of them.
pub(crate) struct Waiting {
    asked: Asked,
    reply: oneshot::Sender<Answered>,
    /// The number of the last message that was in the journal when it was asked: the answer takes that one into account.
    up_to: i64,
    /// When it is answered with what has been read by then.
    deadline: Duration,
}

impl Waiting {
    /// When it is answered at the latest.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }
}

/// What was found, and where.
type Sights = Vec<(Spot, Sight)>;

/// A batch whose repositories are being looked at.
pub(crate) struct Held {
    messages: Vec<Message>,
    round: Round,
    /// What earlier rounds found.
    sights: Sights,
    begun: Duration,
}

impl Held {
    /// Waits until its scout is back, or can never be.
    pub(crate) async fn scouted(&mut self) {
        self.round.back().await;
    }

    /// How long its scout is waited for.
    pub(crate) fn deadline(&self) -> Duration {
        self.round.deadline
    }
}

impl Dispatcher {
    /// A request came: it is answered once the journal has been read up to here, so that its caller sees what it wrote.
    pub(crate) fn ask(&mut self, asked: Asked, reply: oneshot::Sender<Answered>) {
        // If that cannot be read, everything counts as missing until the journal has been read to its end.
        let up_to = self.journal.last_seq().unwrap_or(i64::MAX);
        let deadline = monotonic() + ANSWER_WITHIN;
        self.waiting.push_back(Waiting { asked, reply, up_to, deadline });
        self.wake();
    }

    /// Reads what is new in the journal, as far as there is room and for one turn of the loop at most, and answers the
    /// requests that waited for it.
    pub(crate) fn feed(&mut self) {
        self.look_at_settings();
        for _ in 0..BATCHES_A_TURN {
            if self.held.is_some() || !self.hungry || !self.has_room() {
                break;
            }
            if let Err(error) = self.feed_once() {
                self.retry_later(&error);
                break;
            }
        }
        self.tell_of_repairs();
        self.answer_in_turn();
    }

    fn retry_later(&mut self, error: &Error) {
        self.log.line(format!("cannot read the journal: {error}"));
        self.retry_at = Some(monotonic() + RETRY_AFTER);
    }

    fn feed_once(&mut self) -> Result<(), Error> {
        // Emptied before the look: what comes after it rings again.
        let rang = self.bell.get_ref().drain(self.journal.home())?;
        self.journal.refresh()?;
        self.take_in_spool();
        self.go_on()?;
        let Batch { messages, unreadable } = self.journal.batch_after(self.cursor(), BATCH)?;
        if !unreadable.is_empty() {
            self.journal.quarantine_messages(&unreadable, &IdSource::now())?;
            self.house.repairs_are_untold();
        }
        self.hungry = messages.len() == BATCH;
        // A ring without a message is a change, too: that of an agent's state.
        self.house.add_changes(messages.len().max(usize::from(rang)));
        let begun = monotonic();
        if !messages.is_empty() {
            self.last_busy = begun;
        }
        let spots = self.spots(&messages);
        match self.scouts.send(spots, begun) {
            Some(round) => {
                self.held = Some(Held { messages, round, sights: Vec::new(), begun });
                Ok(())
            }
            None => self.let_in(messages, &[]),
        }
    }

    /// Where the repositories of these are; now and then, also those that are known.
    fn spots(&mut self, messages: &[Message]) -> Vec<Spot> {
        let mut spots: Vec<Spot> = Vec::new();
        for draft in messages.iter().map(|message| &message.draft) {
            let (Some(cwd), scope) = (&draft.origin.cwd, draft.scope.as_str()) else { continue };
            if !spots.iter().any(|spot| spot.is_around(scope, cwd)) {
                let known = self.settings.repository(scope);
                spots.push(Spot::Around { scope: scope.to_owned(), cwd: cwd.clone(), known });
            }
        }
        if mem::take(&mut self.look_at_known) {
            let others = self.settings.repositories();
            let others = others.filter(|(scope, _)| spots.iter().all(|spot| spot.scope() != *scope));
            let known = others.map(|(scope, own)| Spot::Known { scope: scope.clone(), own: own.clone() });
            spots.extend(known.collect::<Vec<_>>());
        }
        spots
    }

    /// The scout is back, or missing: what was held comes in, unless there is something left to look at.
    pub(crate) fn scouted(&mut self) {
        let Some(Held { messages, round, mut sights, begun }) = self.held.take() else { return };
        let now = monotonic();
        let (found, left) = self.scouts.end(round, now);
        sights.extend(found);
        let again = now < begun + SEND_AGAIN_FOR;
        if let Some(round) = self.scouts.send(left.into_iter().filter(|_| again), now) {
            self.held = Some(Held { messages, round, sights, begun });
            return;
        }
        if let Err(error) = self.let_in(messages, &sights) {
            self.retry_later(&error);
        }
    }

    /// What was found of repositories from which these came. Waits for it, but not for long.
    pub(crate) async fn sights_of(&mut self, messages: &[Message]) -> Sights {
        let spots = self.spots(messages);
        let Some(mut round) = self.scouts.send(spots, monotonic()) else { return Vec::new() };
        // However it ends, what was found is in the round.
        let _ = tokio::time::timeout(PATIENCE, round.back()).await;
        self.scouts.end(round, monotonic()).0
    }

    /// A batch comes in, each message with the settings of the worktree from which it came.
    fn let_in(&mut self, messages: Vec<Message>, sights: &[(Spot, Sight)]) -> Result<(), Error> {
        for (spot, sight) in sights.iter().filter(|(spot, _)| matches!(spot, Spot::Known { .. })) {
            self.see(spot.scope(), sight);
        }
        // With nothing new the cursor stays, and nothing has to reach the disk before a request is answered.
        if !messages.is_empty() {
            // Trust that was withdrawn before a message came counts for it.
            self.reload();
        }
        let taken = messages.into_iter().try_for_each(|message| {
            self.take_message(message, sights)?;
            self.book.take(self.taken.clone());
            Ok(())
        });
        let followed = self.follow();
        self.settle();
        self.after_change();
        taken.and(followed)
    }

    /// The agents may have changed with what came in.
    fn follow(&mut self) -> Result<(), Error> {
        self.agents_due = self.journal.agents_deadline(monotonic(), self.patience)?;
        self.follow_agents()
    }

    /// Answers the requests whose time has come, in the order in which they were asked. One that wrote something is
    /// answered when that has come in, and the others after it.
    fn answer_in_turn(&mut self) {
        while self.waiting.front().is_some_and(|first| self.can_answer(first))
            && let Some(Waiting { asked, reply, up_to, deadline }) = self.waiting.pop_front()
        {
            let said = self.call(asked);
            self.settle();
            match said {
                // A client that has gone needs no answer.
                Said::Now(answer) => {
                    let behind = self.missing_of(up_to);
                    drop(reply.send(Answered { reply: answer, behind }));
                }
                Said::Then(asked) => {
                    // What it wrote, if it wrote something; and in any case the journal is read once more before.
                    let up_to = self.journal.last_seq().unwrap_or(i64::MAX).max(self.cursor() + 1);
                    self.waiting.push_front(Waiting { asked, reply, up_to, deadline });
                    self.wake();
                }
            }
        }
    }

    /// Whether everything has been read that was in the journal before this request; or it has waited for long enough; or
    /// nothing more can be read now, so that it would wait in vain.
    fn can_answer(&self, waiting: &Waiting) -> bool {
        let now = monotonic();
        if self.cursor() >= waiting.up_to || waiting.deadline <= now {
            return true;
        }
        self.held.is_none() && (!self.hungry || !self.has_room() || self.retry_at.is_some_and(|at| at > now))
    }

    /// About how many messages up to this one have not been read yet. Those that were removed in between count, too.
    fn missing_of(&mut self, up_to: i64) -> u64 {
        if !self.hungry && self.held.is_none() {
            return 0;
        }
        let next = self
            .journal
            .messages_after(self.cursor(), 1)
            .ok()
            .and_then(|next| next.first().map(|next| next.seq));
        let missing = next.map_or(0, |next| up_to.saturating_sub(next).saturating_add(1));
        u64::try_from(missing).unwrap_or(0)
    }

    /// About how many messages of the journal have not been read yet.
    pub(crate) fn behind(&mut self) -> u64 {
        self.journal.last_seq().map_or(0, |last| self.missing_of(last))
    }
}
