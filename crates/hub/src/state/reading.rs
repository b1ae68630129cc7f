//! Reads the journal in batches and in order, each message with the settings of the worktree from which it came.
//!
//! The repositories of a batch are probed off the loop. Meanwhile the batch is pending and nothing after it is read, which keeps
//! the order; everything else goes on.
//!
//! Each turn reads only a few batches, so a long backlog delays neither requests nor the end of the hub. A request is answered
//! once everything that was in the journal before it has been read, or after a second. The answer then says how many of those
//! messages it does not take into account.

use std::time::Duration;

use ringer_core::attention::{Cause, Record};
use ringer_core::engine::{Caller, IncomingMessage};
use ringer_core::message::{Agent, SurfaceId, Tag, WorkspaceId};
use ringer_core::{Event, Message, Now, Recipient};
use ringer_ipc::part::PartEvent;
use ringer_journal::{Age, Batch, Error, LockTimeout};

use super::maintenance::Due;
use super::request_queue::{QueuedRequest, RequestStep};
use super::{Finish, HubState, RETRY_AFTER};
use crate::journal_maintenance::JournalTasksDone;
use crate::message::{Action, Job};
use crate::repository_probe::{ProbeResult, ProbeTarget};

/// Messages that are read in one transaction.
const BATCH: usize = 32;
/// Batches per turn of the loop, and the time after which a turn starts no other batch. In a release build a batch takes 2 ms.
/// The loop may be away from its `select!` for 20 ms, even while other processes use half of the CPU.
const BATCHES_A_TURN: usize = 4;
const READ_FOR: Duration = Duration::from_millis(4);
/// Pieces of a mark per turn, and the time after which a turn starts no other piece. Writing them takes twice as long again.
const PIECES_A_TURN: usize = if cfg!(test) { 1 } else { 8 };
const MARK_PIECES_FOR: Duration = Duration::from_millis(2);
/// How much longer a request waits for a mark in pieces. Less than its client, which would otherwise repeat the request.
const MARK_FOR: Duration = Duration::from_secs(3);

impl HubState {
    /// Reads messages for one turn at most, while there is room, and answers the requests that waited for them. `rang` is true if
    /// the doorbell rang since the last call.
    pub(crate) fn read_journal(&mut self, now: Now, rang: bool) -> Vec<Action> {
        if rang {
            // The doorbell was drained, so this read must find what it announced, whatever woke the loop: a message, or a change
            // of an agent's state.
            self.ingest.schedule();
            self.agents.mark_stale();
        }
        self.check_settings(now);
        self.continue_marks(now);
        for turn in 0..BATCHES_A_TURN {
            if self.is_late(now, READ_FOR)
                || self.notifications.has_unfinished_marks()
                || self.ingest.is_probing()
                || !self.ingest.has_more_to_read()
                || !self.has_room()
            {
                break;
            }
            if let Err(error) = self.read_batch(now, rang && turn == 0) {
                self.reading_failed(now, &error);
                break;
            }
        }
        self.tell_of_repairs(now);
        self.answer_requests(now);
        self.take_actions()
    }

    /// Returns true if this turn has taken at least `allowed`.
    pub(super) fn is_late(&self, now: Now, allowed: Duration) -> bool {
        self.time.mono(now).saturating_sub(now.mono) >= allowed
    }

    /// Applies unfinished marks piece by piece, for one turn at most and in one transaction.
    fn continue_marks(&mut self, now: Now) {
        if !self.can_continue_marks(now.mono) {
            return;
        }
        for _ in 0..PIECES_A_TURN {
            let orders = self.notifications.continue_marks(now);
            self.execute_orders(now, orders);
            if !self.notifications.has_unfinished_marks() || self.is_late(now, MARK_PIECES_FOR) {
                break;
            }
        }
        if !self.notifications.has_unfinished_marks() && self.ingest.finish_mark() {
            let position = self.ingest.position().clone();
            self.notifications.writes().set_position(position);
        }
        self.write_changes(now);
    }

    /// Handles a doorbell that cannot be read. Requests are still answered.
    pub(crate) fn doorbell_failed(&mut self, now: Now, error: &Error) -> Vec<Action> {
        self.reading_failed(now, error);
        self.answer_requests(now);
        self.take_actions()
    }

    pub(super) fn reading_failed(&mut self, now: Now, error: &Error) {
        match error {
            // Reading writes too, because the states of agents change.
            Error::Full { .. } | Error::NotWritable { .. } | Error::Failing { .. } => {
                self.write_failed(now, "cannot read the journal", error);
            }
            error => self.log(format!("cannot read the journal: {error}")),
        }
        self.ingest.pause(self.time.mono(now));
        // Reading continues after the pause.
        self.ingest.schedule();
    }

    fn read_batch(&mut self, now: Now, rang: bool) -> Result<(), Error> {
        self.journal.refresh()?;
        self.notifications.store().refresh()?;
        if self.unusable_files().is_some() {
            return Ok(());
        }
        self.apply_spool(now);
        self.check_position()?;
        let Batch { messages, unreadable } = self.journal.batch_after(self.ingest.seq(), BATCH)?;
        if !unreadable.is_empty() && !self.is_offline() {
            let ids = self.ids(now);
            self.journal.quarantine_messages(&unreadable, &ids)?;
            self.maintenance.check_repairs();
        }
        self.ingest.set_more_to_read(messages.len() == BATCH);
        // A ring without a message is a change too, of an agent's state.
        self.maintenance.add_changes(messages.len().max(usize::from(rang)));
        if rang || !messages.is_empty() {
            self.parts.tell(PartEvent::PromptsChanged);
        }
        let targets = self.probe_targets(&messages);
        if targets.is_empty() {
            return self.ingest_batch(now, messages, &[]);
        }
        self.ingest.hold(messages);
        self.act(Action::Probe(targets));
        Ok(())
    }

    /// Checks that the journal is still the one that was read up to the position. If it was removed, damaged, or replaced by an
    /// older copy, it is read again from its beginning.
    fn check_position(&mut self) -> Result<(), Error> {
        let position = self.journal.resume_at(self.ingest.position())?;
        let before = self.ingest.seq();
        if position.cursor.seq != before {
            self.log(format!(
                "the journal is not the one that was read up to {before}: reading it from its beginning"
            ));
        }
        if position != *self.ingest.position() {
            self.notifications.writes().set_position(position.clone());
            self.ingest.move_to(position);
        }
        Ok(())
    }

    /// Returns the repositories from which these messages came, and now and then all known ones.
    pub(super) fn probe_targets(&mut self, messages: &[Message]) -> Vec<ProbeTarget> {
        let mut targets: Vec<ProbeTarget> = Vec::new();
        for draft in messages.iter().map(|message| &message.draft) {
            let (Some(cwd), scope) = (&draft.origin.cwd, draft.scope.as_str()) else { continue };
            if !targets.iter().any(|target| target.is_around(scope, cwd)) {
                let known = self.settings.repository(scope);
                targets.push(ProbeTarget::Around { scope: scope.to_owned(), cwd: cwd.clone(), known });
            }
        }
        if self.settings.take_recheck() {
            let others = self.settings.repositories();
            let others = others.filter(|(scope, _)| targets.iter().all(|target| target.scope() != *scope));
            let known =
                others.map(|(scope, own)| ProbeTarget::Known { scope: scope.clone(), own: own.clone() });
            targets.extend(known.collect::<Vec<_>>());
        }
        targets
    }

    /// Ingests the pending batch, whose repositories have been probed.
    pub(super) fn ingest_probed(&mut self, now: Now, results: &[(ProbeTarget, ProbeResult)]) {
        let Some(messages) = self.ingest.take_pending_batch() else { return };
        if let Err(error) = self.ingest_batch(now, messages, results) {
            self.reading_failed(now, &error);
        }
        self.answer_requests(now);
    }

    fn ingest_batch(
        &mut self,
        now: Now,
        messages: Vec<Message>,
        probed: &[(ProbeTarget, ProbeResult)],
    ) -> Result<(), Error> {
        for (target, result) in
            probed.iter().filter(|(target, _)| matches!(target, ProbeTarget::Known { .. }))
        {
            self.repository_probed(now, target.scope(), result);
        }
        // Without messages the position stays, and nothing must reach the disk before a request is answered.
        if !messages.is_empty() {
            self.agents.mark_stale();
            // Trust that was withdrawn before a message came applies to the message.
            self.reload_settings(now);
        }
        let mut ingested = Ok(());
        for message in messages {
            ingested = self.ingest_message(now, message, probed);
            if ingested.is_err() || self.ingest.has_unfinished_mark() {
                break;
            }
            let position = self.ingest.position().clone();
            self.notifications.writes().set_position(position);
        }
        let refreshed = if self.agents.is_stale() { self.refresh_agents(now) } else { Ok(()) };
        self.write_changes(now);
        ingested.and(refreshed)
    }

    /// Ingests a message after the position. A replaced journal may repeat messages, which are known by their ids. Its old
    /// messages that were never read are listed as read: it is too late to ring for them, and their marks refer to an earlier
    /// list.
    fn ingest_message(
        &mut self,
        now: Now,
        message: Message,
        probed: &[(ProbeTarget, ProbeResult)],
    ) -> Result<(), Error> {
        let age = self.ingest.position().age(&message);
        let is_known = age != Age::New && self.notifications.store().knows(&message.id)?;
        let mark = matches!(message.draft.tag, Tag::Mark(_)).then(|| message.clone());
        if mark.is_none() {
            self.ingest.advance(&message);
        }
        match age {
            _ if is_known => {}
            Age::New | Age::MaybeSeen => self.arrive(now, message, probed),
            Age::Old => self.list_as_read(now, &message),
        }
        match mark {
            Some(mark) if self.notifications.has_unfinished_marks() => self.ingest.hold_mark(mark),
            Some(mark) => self.ingest.advance(&mark),
            None => {}
        }
        Ok(())
    }

    fn list_as_read(&mut self, now: Now, message: &Message) {
        let Some(record) = Record::of(message) else { return };
        let mut record = Record { is_read: true, is_resolved: true, open_question: None, ..record };
        record.trail.add(now.wall_ms, Cause::OtherJournal);
        let orders = self.notifications.restore(now, vec![record.clone()], &[]);
        self.execute_orders(now, orders);
        self.save_record(now, record, true);
    }

    /// Passes a message to the engine, after its repository's settings are applied and its surface is registered.
    pub(super) fn arrive(&mut self, now: Now, message: Message, probed: &[(ProbeTarget, ProbeResult)]) {
        let scope = message.draft.scope.as_str();
        if let Some(cwd) = &message.draft.origin.cwd
            && let Some((_, result)) = probed.iter().find(|(target, _)| target.is_around(scope, cwd))
        {
            self.repository_probed(now, scope, result);
        }
        let origin = &message.draft.origin;
        if let Some(pid) = origin.pid {
            self.surfaces.add_sender(pid);
        }
        let surface = origin.surface.as_deref().map(SurfaceId::new);
        let (tty, prefer_tty) = (origin.tty.clone(), origin.pane.is_some());
        if let Some(surface) = &surface
            && let Some(event) = self.surfaces.register(surface, &message)
        {
            self.feed_engine(now, event);
            self.refresh_agent_on(now, surface);
        }
        let workspace = message.draft.origin.workspace.as_deref().map(WorkspaceId::new);
        if message.machine.is_some()
            && let Some(workspace) = &workspace
        {
            self.register_elsewhere(now, workspace, surface.as_ref());
        }
        let caller = Caller { workspace, surface, tty, prefer_tty };
        self.wake_recipients(&message);
        let is_subagent = message.draft.category.as_deref() == Some("subagent");
        let incoming = IncomingMessage { message, caller, is_subagent, pending: false };
        self.feed_engine(now, Event::Message(Box::new(incoming)));
    }

    /// Registers the surface of a message from another machine, which no host has here. Otherwise the message would count for the
    /// workspace that the person has selected on this machine.
    fn register_elsewhere(&mut self, now: Now, workspace: &WorkspaceId, surface: Option<&SurfaceId>) {
        let surface = surface.cloned().unwrap_or_else(|| SurfaceId::new(workspace.as_str()));
        let workspace = workspace.clone();
        self.feed_engine(now, Event::Surface { surface, workspace, tty: None, reports_focus: false });
    }

    /// Wakes the idle agents among the recipients of a message.
    fn wake_recipients(&mut self, message: &Message) {
        let draft = &message.draft;
        match &draft.recipient {
            Recipient::Agent(agent) => self.parts.tell(PartEvent::AgentActive(agent)),
            // A message to all from another machine is not for the agents of this one.
            Recipient::All if message.machine.is_none() => {
                for agent in self.agents.ids() {
                    self.parts.tell(PartEvent::AgentActive(agent));
                }
            }
            Recipient::Default | Recipient::Lead if self.agents.has_any() => {
                let lead = self.journal.lead(&draft.scope).ok().and_then(|lead| lead.agent);
                let lead = lead.filter(|id| id != draft.sender.as_str()).and_then(|id| Agent::new(&id).ok());
                if let Some(lead) = lead {
                    self.parts.tell(PartEvent::AgentActive(&lead));
                }
            }
            Recipient::All | Recipient::Default | Recipient::Lead | Recipient::Person => {}
        }
    }

    /// Applies the events that hooks spooled because they could not write them in time. A failure is retried in a second, and
    /// nothing is lost. Returns true if the spool is empty.
    pub(super) fn apply_spool(&mut self, now: Now) -> bool {
        self.ingest.clear_spool_deadline();
        let Some(spool_lock) = &self.spool_lock else { return true };
        let time = self.time;
        // The time is read once the lock is held: an event that was written directly meanwhile is newer.
        match self.journal.apply_spool(spool_lock, &|| time.mono(now), LockTimeout::LOOP) {
            Ok(progress) => {
                if progress.events > 0 {
                    self.agents.mark_stale();
                    self.log(format!("applied {} spooled events of hooks", progress.events));
                }
                if progress.more {
                    self.ingest.read_spool_at(now.mono);
                }
                !progress.more
            }
            Err(error) => {
                self.write_failed(now, "cannot apply the spooled events of hooks, trying again", &error);
                self.ingest.read_spool_at(self.time.mono(now) + RETRY_AFTER);
                false
            }
        }
    }

    /// Performs the maintenance that is due, at the end of a turn because it may take a while.
    pub(crate) fn maintain(&mut self, now: Now) -> Vec<Action> {
        for due in self.maintenance.take_due(now.mono, self.ingest.seq()) {
            match due {
                Due::Position => self.note_position(now),
                Due::Journal(tasks) => {
                    let ids = self.ids(now);
                    self.execute(Job::MaintainJournal { tasks, ids });
                }
            }
        }
        // While there is more to read, reading comes first; the loop soon calls this again.
        if !self.can_read(now.mono)
            && let Some(pruning) = self.maintenance.take_hub_pruning()
        {
            match self.notifications.store().prune(pruning) {
                Ok(left) => self.maintenance.continue_hub_pruning(left),
                Err(error) => self.log(format!("cannot remove what is old: {error}")),
            }
        }
        self.take_actions()
    }

    pub(super) fn journal_maintained(&mut self, done: JournalTasksDone) {
        done.problems.into_iter().for_each(|problem| self.log(problem));
        self.maintenance.finished(done.kept_from.as_ref());
    }

    /// Answers requests in order. A request that wrote messages is answered when they have been read, and later requests after
    /// it.
    fn answer_requests(&mut self, now: Now) {
        while self.requests.first().is_some_and(|first| self.can_answer(now.mono, first))
            && let Some(request) = self.requests.take_first()
        {
            self.answer_request(now, request);
        }
    }

    /// Returns true if everything that was in the journal before a request has been read, if the request has waited long enough,
    /// or if reading is paused, so that waiting is useless. A request that marks many notifications waits longer, for all of
    /// them.
    fn can_answer(&self, now: Duration, request: &QueuedRequest<Finish>) -> bool {
        let waits_for_mark = self.ingest.has_unfinished_mark() && !self.ingest.is_paused(now);
        if waits_for_mark && matches!(request.step, RequestStep::Finish(_)) {
            return request.deadline + MARK_FOR <= now;
        }
        if self.ingest.seq() >= request.up_to || request.deadline <= now {
            return true;
        }
        if waits_for_mark {
            return false;
        }
        let is_stuck = !self.ingest.has_more_to_read() || !self.has_room() || self.ingest.is_paused(now);
        !self.ingest.is_probing() && is_stuck
    }

    /// Returns the approximate number of unread messages up to this one. Messages that were removed in between count, too.
    pub(super) fn unread_up_to(&mut self, up_to: i64) -> u64 {
        if !self.ingest.has_more_to_read() && !self.ingest.is_probing() && !self.ingest.has_unfinished_mark()
        {
            return 0;
        }
        let next = self.journal.messages_after(self.ingest.seq(), 1).ok();
        let next = next.and_then(|next| next.first().map(|next| next.seq));
        let missing = next.map_or(0, |next| up_to.saturating_sub(next).saturating_add(1));
        u64::try_from(missing).unwrap_or(0)
    }
}
