//! Feeding: messages are taken from the journal in batches, in order, and come in when their repositories were looked at.
//!
//! That look is a scout's (`scout`). While it is under way the batch is held, and nothing behind it is taken, so everything
//! keeps its order; but all else that happens goes on. Whoever asks something is answered when everything has come in that
//! was in the journal before.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use ringer_core::Message;
use ringer_journal::Error;
use tokio::sync::oneshot;

use crate::clock::monotonic;
use crate::dispatch::{BATCH, Dispatcher, RETRY_AFTER};
use crate::input::Reply;
use crate::requests::{Asked, Said};
use crate::scout::{PATIENCE, Round, Sight, Spot};

/// After this no other scout is sent for what a missing one did not get to.
const SEND_AGAIN_FOR: Duration = PATIENCE.saturating_mul(2);

/// Somebody who waits for an answer. Each connection waits for one at a time, so there are few of them.
pub(crate) struct Waiting {
    pub(crate) asked: Asked,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// What was found, and where.
type Sights = Vec<(Spot, Sight)>;

/// What was taken from the journal at once.
struct Batch {
    messages: Vec<Message>,
    /// Who is answered when it has come in.
    waiting: VecDeque<Waiting>,
}

/// A batch whose repositories are being looked at.
pub(crate) struct Held {
    batch: Batch,
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
    /// Takes what is new in the journal, as far as there is room, and answers whoever waits for it.
    pub(crate) fn feed(&mut self) {
        self.look_at_settings();
        self.take_in();
        // No more can be taken now, so they are answered with what there is.
        while self.held.is_none() && !self.waiting.is_empty() {
            let waiting = mem::take(&mut self.waiting);
            self.answer_in_turn(waiting);
            self.take_in();
        }
    }

    fn take_in(&mut self) {
        while self.held.is_none() && self.hungry && self.has_room() {
            if let Err(error) = self.feed_once() {
                return self.retry_later(&error);
            }
        }
    }

    fn retry_later(&mut self, error: &Error) {
        self.log.line(format!("cannot read the journal: {error}"));
        self.retry_at = Some(monotonic() + RETRY_AFTER);
    }

    fn feed_once(&mut self) -> Result<(), Error> {
        // Emptied before the look: what comes after it rings again.
        self.bell.get_ref().empty(self.journal.home())?;
        self.journal.refresh()?;
        let seq = self.seq;
        let messages = self.journal.healing(|journal| journal.messages_after(seq, BATCH))?;
        self.hungry = messages.len() == BATCH;
        let begun = monotonic();
        if !messages.is_empty() {
            self.last_busy = begun;
        }
        let spots = self.spots(&messages);
        // With more in the journal, they wait for that too.
        let waiting = if self.hungry { VecDeque::new() } else { mem::take(&mut self.waiting) };
        let batch = Batch { messages, waiting };
        match self.scouts.send(spots, begun) {
            Some(round) => {
                self.held = Some(Held { batch, round, sights: Vec::new(), begun });
                Ok(())
            }
            None => self.let_in(batch, &[]),
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
        let Some(Held { batch, round, mut sights, begun }) = self.held.take() else { return };
        let now = monotonic();
        let (found, left) = self.scouts.end(round, now);
        sights.extend(found);
        let again = now < begun + SEND_AGAIN_FOR;
        if let Some(round) = self.scouts.send(left.into_iter().filter(|_| again), now) {
            self.held = Some(Held { batch, round, sights, begun });
            return;
        }
        if let Err(error) = self.let_in(batch, &sights) {
            self.retry_later(&error);
        }
        // Whoever asked in the meantime may have written something before.
        if !self.waiting.is_empty() {
            self.feed();
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
    fn let_in(&mut self, batch: Batch, sights: &[(Spot, Sight)]) -> Result<(), Error> {
        for (spot, sight) in sights.iter().filter(|(spot, _)| matches!(spot, Spot::Known { .. })) {
            self.see(spot.scope(), sight);
        }
        let many = batch.messages.len();
        for message in batch.messages {
            self.seq = message.seq;
            self.arrive(message, sights);
        }
        self.book.take(self.seq);
        let followed = self.follow();
        self.settle();
        self.after_change(many);
        self.answer_in_turn(batch.waiting);
        followed
    }

    /// The agents may have changed with what came in.
    fn follow(&mut self) -> Result<(), Error> {
        self.agents_due = self.journal.agents_deadline(monotonic(), self.patience)?;
        self.follow_agents()
    }

    /// Answers in the order in which they asked. One that wrote something is answered when that has come in, and the
    /// others after it.
    fn answer_in_turn(&mut self, mut waiting: VecDeque<Waiting>) {
        while let Some(Waiting { asked, reply }) = waiting.pop_front() {
            let said = self.call(asked);
            self.settle();
            match said {
                // A client that has gone needs no answer.
                Said::Now(answer) => drop(reply.send(answer)),
                Said::Then(asked) => {
                    waiting.push_front(Waiting { asked, reply });
                    waiting.append(&mut self.waiting);
                    self.waiting = waiting;
                    return self.wake();
                }
            }
        }
    }
}
