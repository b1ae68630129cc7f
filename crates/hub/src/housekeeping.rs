//! What the hub does besides reading the journal: deadlines, its own end, a short log, and letting what is old go.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringer_core::Event;
use ringer_journal::{Error, IdSource, RetentionLimits, Uptime};

use crate::clock::monotonic;
use crate::dispatch::Dispatcher;

/// Changes of the journal after which its log is worth copying into the database. A writer would do it by itself at four
/// times as many, and its sender would wait for it.
const MANY_CHANGES: usize = 16;
/// How often to look for what is old.
const EVERY: Duration = Duration::from_hours(4);
/// Messages after which it is looked whether there are too many. A tenth of those over the limit at most, then.
const MANY_MESSAGES: usize = 20_000;

/// How often it is said in the journal how far we are. What was taken since is shown again if our memory is lost.
const SAY_EVERY: Duration = Duration::from_mins(1);

/// What was done, and when.
#[derive(Debug, Default)]
pub(crate) struct House {
    changes: usize,
    messages: usize,
    kept: Option<Duration>,
    /// When it was last said in the journal how far we are, and what.
    said: Option<Duration>,
    said_seq: i64,
    /// The person was told of all repairs that are noted in the files.
    told_of_repairs: bool,
}

impl House {
    /// A repair was noted, of which the person has to be told.
    pub(crate) fn repairs_are_untold(&mut self) {
        self.told_of_repairs = false;
    }

    pub(crate) fn has_told_of_repairs(&mut self, told: bool) -> bool {
        std::mem::replace(&mut self.told_of_repairs, told)
    }

    /// The journal was found changed, so many times.
    pub(crate) fn add_changes(&mut self, changes: usize) {
        self.changes += changes;
        self.messages += changes;
    }
}

impl Dispatcher {
    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        let now = monotonic();
        if self.agents_due.is_some_and(|due| due <= now) {
            self.tick_agents(now);
        }
        self.retry_at = self.retry_at.filter(|at| *at > now);
        self.retry_spool(now);
        let idle = now.saturating_sub(self.last_busy) >= self.idle_after;
        // An agent that works may get stuck, and one that is done may wait for its person.
        let connections = self.connections.load(Ordering::Relaxed);
        let waits = self.held.is_some() || self.agents_due.is_some() || self.spool_retry_at.is_some();
        let quiet = connections == 0 && self.engine.undecided() == 0 && !waits;
        let over = idle && quiet && self.under_way.load(Ordering::Relaxed) == 0;
        if over && !self.waits_for_clicks(now) {
            self.log.line("nothing to do for a while: ending");
            self.stopping = true;
            self.by_itself = true;
        } else if idle {
            self.last_busy = now;
        }
        self.handle(Event::Tick);
    }

    /// The journal was read.
    pub(crate) fn after_change(&mut self) {
        if self.house.changes >= MANY_CHANGES {
            self.house.changes = 0;
            // If it cannot be done now, then another time.
            let _ = self.journal.checkpoint();
        }
        if self.house.messages >= MANY_MESSAGES {
            self.house.messages = 0;
            if let Err(error) = self.journal.forget_over_limit(RetentionLimits::default(), &IdSource::now()) {
                self.log.line(format!("cannot make the journal smaller: {error}"));
            }
        }
        let now = monotonic();
        if self.cursor() != self.house.said_seq
            && self.house.said.is_none_or(|said| now.saturating_sub(said) >= SAY_EVERY)
        {
            self.say_where();
        }
        if self.house.kept.is_none_or(|kept| monotonic().saturating_sub(kept) >= EVERY) {
            self.house.kept = Some(monotonic());
            if let Err(error) = self.let_go() {
                self.log.line(format!("cannot let go of what is old: {error}"));
            }
        }
    }

    /// Says how far we are, so that nothing goes that we have not taken; then lets the journal and the memory forget.
    fn let_go(&mut self) -> Result<(), Error> {
        let stamp = IdSource::now();
        self.say_where();
        self.journal.prune_if_due(&Uptime::now(), &stamp)?;
        match self.journal.kept_from()? {
            Some(oldest) => self.memory.prune(&oldest),
            None => Ok(()),
        }
    }

    /// Says in the journal how far we are.
    pub(crate) fn say_where(&mut self) {
        (self.house.said, self.house.said_seq) = (Some(monotonic()), self.cursor());
        // If it cannot be said, what it is for comes later: the journal keeps more than it has to.
        let _ = self.journal.advance_hub(&self.taken.cursor, IdSource::now().unix_ms);
    }
}
