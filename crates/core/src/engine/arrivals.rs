//! What arrives: messages, and signals of terminals, which become signals for an agent's state machine or messages. Finds the
//! surface, drops duplicates, and queues the message; counts messages of other machines that are over their listing limit.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::{Authority, Signal, SignalContent, client_notification};
use crate::arrival::{
    DropReason, DuplicateVerdict, EventReport, MAX_MACHINES, UPDATE_EVERY, UnlistedCount, unlisted_text,
};
use crate::attention::{
    AnsweredWith, Cause, Command, MarkTarget, PlaceReason, ReadReason, Record, ResolvedBy, UndoKind,
    is_open_to_other_machines, snooze_end,
};
use crate::engine::terminal_signals::{BELL_CATEGORY, DelayedSignal};
use crate::engine::{
    Candidate, Engine, Event, IncomingMessage, MAX_HOOK_CHAINS, Order, TerminalNotification, TerminalSignal,
};
use crate::message::{
    CLOSED_UNANSWERED, Draft, EPISODE_KEY_PREFIX, EVIDENCE, Kind, Mark, Message, MessageId, Place, Recipient,
    ShownKind, SurfaceId, Tag,
};
use crate::time::Now;

impl Engine {
    pub(super) fn arrive(&mut self, now: Now, incoming: IncomingMessage, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Notice(kind) = draft.tag else { return self.apply_mark(now, &incoming, orders) };
        let id = incoming.message.id.clone();
        if !incoming.message.is_current(now.wall_ms) {
            return orders.push(Order::AddTrailStep { id, cause: Cause::Expired });
        }
        if matches!(draft.recipient, Recipient::Lead | Recipient::Agent(_)) {
            let cause = Cause::ForAgent { to: draft.recipient.to_string() };
            return orders.push(Order::AddTrailStep { id, cause });
        }
        if let Some(machine) = &incoming.message.machine
            && !self.unlisted.limit.admits(now.mono, machine, draft.sender.as_str())
        {
            return self.count_unlisted(now, &incoming, orders);
        }
        let (place, place_reason) = match self.surfaces.resolve(&incoming.caller) {
            Some(resolved) => (resolved.place, resolved.how),
            None => (Place::own_workspace(draft.scope.as_str()), PlaceReason::Repository),
        };
        let mut steps = vec![Cause::Received { from: draft.sender.to_string(), place: place_reason }];
        let report = EventReport {
            id: Some(id.clone()),
            title: draft.title.clone(),
            body: draft.body.clone(),
            is_bell: draft.category.as_deref() == Some(BELL_CATEGORY),
            kind: Some(kind),
            has_question: draft.question_id.is_some(),
            episode: draft.key.clone().filter(|key| key.starts_with(EPISODE_KEY_PREFIX)),
        };
        let shown_kind = ShownKind::of(kind, draft.category.as_deref());
        let (replaces, done) = match self.window.observe(now.mono, &place, report) {
            DuplicateVerdict::New | DuplicateVerdict::Replaces { older: None, .. } => (None, Vec::new()),
            DuplicateVerdict::Duplicate { of } => {
                return orders.push(Order::AddTrailStep { id, cause: Cause::Duplicate { of } });
            }
            DuplicateVerdict::Replaces { older: Some(older), done } => {
                steps.push(Cause::ReplacesOlder { older: older.clone() });
                self.drop_undecided(&older, &id, orders);
                // A prompt is sent again: the earlier message could not be answered.
                (Some(older), if shown_kind.stays() { Vec::new() } else { done })
            }
        };
        let replaces = self.replace_key(now, draft, orders).or(replaces);
        let hooks = Arc::clone(&self.preferences.hooks);
        // A prompt waits for the person, so it is always shown.
        let kind = Some(shown_kind).filter(|kind| !kind.stays());
        let others = self.queue.like(&place, kind, &self.fence).map_or(0, |older| older.others + 1);
        let candidate = Candidate { incoming, replaces, done, others, steps, hooks };
        let displaced = self.queue.push(place, kind, candidate, &self.fence);
        if let Some((older, why)) = displaced {
            let cause = match why {
                DropReason::ByNewer => Cause::ReplacedByNewer { newer: id },
                DropReason::QueueFull => Cause::QueueFull,
            };
            orders.push(Order::AddTrailStep { id: older.incoming.message.id, cause });
        }
    }

    /// Drops an undecided message, because a newer one says more about the same event.
    fn drop_undecided(&mut self, older: &MessageId, newer: &MessageId, orders: &mut Vec<Order>) {
        let is_older = |candidate: &Candidate| candidate.incoming.message.id == *older;
        let dropped = self.queue.take(is_older).into_iter();
        for arrival in dropped.chain(self.stop_hook_chains(|arrival| is_older(&arrival.item))) {
            let cause = Cause::ReplacedByNewer { newer: newer.clone() };
            orders.push(Order::AddTrailStep { id: arrival.item.incoming.message.id, cause });
        }
    }

    /// Replaces the older messages of a sender and key. Returns the one whose popup the newer message takes over.
    fn replace_key(&mut self, now: Now, draft: &Draft, orders: &mut Vec<Order>) -> Option<MessageId> {
        let key = draft.key.as_deref()?;
        let older = self.attention.store().open_of(Some(draft.sender.as_str()), key);
        let shown = older.filter(|record| !record.is_read).last().map(|record| record.id.clone());
        self.resolve_key(now, Some(draft.sender.as_str()), key, ResolvedBy::Replaced, orders);
        shown
    }

    /// Applies a mark. The key of its message names the target; its text is the id of the person's command, if the command can
    /// be undone.
    fn apply_mark(&mut self, now: Now, incoming: &IncomingMessage, orders: &mut Vec<Order>) {
        let draft = &incoming.message.draft;
        let Tag::Mark(mark) = draft.tag else { return };
        let about = draft.key.as_deref().and_then(MarkTarget::parse);
        if incoming.message.machine.is_some() && !self.may_be_changed_elsewhere(about.as_ref(), draft) {
            return;
        }
        let command = |kind| {
            Some(draft.body.as_str()).filter(|id| !id.is_empty()).map(|id| Command { id: id.into(), kind })
        };
        let event = match (mark, about) {
            (Mark::Read, Some(target)) => {
                return self.read_target(now, target, command(UndoKind::Read), orders);
            }
            (Mark::Clear, Some(target)) => {
                return self.clear_target(now, target, command(UndoKind::Clear), orders);
            }
            (Mark::Undo, _) => return self.undo(now, orders),
            (Mark::Mute, _) => {
                let key = draft.key.as_deref().unwrap_or_default();
                return self.set_mute(now, key, &draft.body, orders);
            }
            (Mark::Unmute, _) => {
                let key = draft.key.as_deref().unwrap_or_default();
                return self.end_mutes(key, command(UndoKind::Mute).as_ref(), orders);
            }
            (Mark::Snooze, Some(MarkTarget::Message(id))) => {
                let Some(until_ms) = snooze_end(&draft.body) else { return };
                return self.snooze(now, &id, until_ms, orders);
            }
            (Mark::Unread, Some(MarkTarget::Message(id))) => Event::Mark { id, read: false },
            (Mark::Unread, Some(MarkTarget::Place(place))) => Event::MarkUnread(place),
            (Mark::Answer, _) => match &draft.question_id {
                Some(question) => {
                    let is_unanswered = draft.category.as_deref() == Some(CLOSED_UNANSWERED);
                    let by = if is_unanswered { ReadReason::ClosedUnanswered } else { ReadReason::Answered };
                    Event::QuestionClosed { question: question.clone(), by }
                }
                None => return,
            },
            (Mark::Resolve, Some(MarkTarget::Key(key))) => {
                return self.resolve_key(now, None, &key, ResolvedBy::named(&draft.body), orders);
            }
            (Mark::Decision, Some(MarkTarget::Key(key))) => {
                return self.note_answer(now, &key, draft, orders);
            }
            (Mark::Resolve, Some(MarkTarget::Message(id))) => {
                self.end_undo(|record| record.id == id, orders);
                return self.resolve_messages(now, vec![id], ResolvedBy::named(&draft.body), orders);
            }
            // A mark of a newer version, which this version cannot apply.
            _ => return,
        };
        self.handle_event(now, event, orders);
    }

    /// Returns true if a mark of another machine may be applied. It must name a message, a key or a question, never a place or
    /// everything.
    fn may_be_changed_elsewhere(&self, about: Option<&MarkTarget>, draft: &Draft) -> bool {
        let store = self.attention.store();
        let hook_chains = self.hook_chains.values().map(|running| &running.arrival.item);
        let mut undecided =
            self.queue.pending().chain(hook_chains).map(|candidate| &candidate.incoming.message);
        match (about, &draft.question_id) {
            (Some(MarkTarget::Message(id)), _) => {
                let waits = undecided.any(|message| message.machine.is_none() && message.id == *id);
                !waits && store.get(id).is_none_or(is_open_to_other_machines)
            }
            (Some(MarkTarget::Key(key)), _) => {
                let has_key = |message: &Message| message.draft.key.as_deref() == Some(key);
                let waits = undecided.any(|message| message.machine.is_none() && has_key(message));
                !waits && store.open_of(None, key).all(is_open_to_other_machines)
            }
            (None, Some(question)) => store.asking(question).is_none_or(is_open_to_other_machines),
            _ => false,
        }
    }

    /// Records who answered a prompt. Its notification stays open until the agent has taken the answer.
    fn note_answer(&mut self, now: Now, key: &str, draft: &Draft, orders: &mut Vec<Order>) {
        let cause = Cause::Answered {
            answer: draft.body.clone(),
            by: draft.sender.to_string(),
            with: AnsweredWith::named(draft.category.as_deref().unwrap_or_default()),
            evidence: draft.origin.meta.get(EVIDENCE).cloned(),
        };
        let ids: Vec<MessageId> =
            self.attention.store().open_of(None, key).map(|record| record.id.clone()).collect();
        for id in ids {
            self.handle_event(now, Event::AddTrailStep { id, cause: cause.clone() }, orders);
        }
    }

    fn read_target(
        &mut self,
        now: Now,
        target: MarkTarget,
        command: Option<Command>,
        orders: &mut Vec<Order>,
    ) {
        match target {
            MarkTarget::Message(id) => {
                let read = self.read_one(now, &id, &ReadReason::Person, command.as_ref(), orders);
                if let Some(place) = read {
                    self.redraw(now.mono, &place, orders);
                }
            }
            MarkTarget::Place(place) => self.read(now, &place, &ReadReason::Place, command, orders),
            MarkTarget::All => self.read_all(now, command, orders),
            MarkTarget::AllRead | MarkTarget::Key(_) => {}
        }
    }

    fn clear_target(
        &mut self,
        now: Now,
        target: MarkTarget,
        command: Option<Command>,
        orders: &mut Vec<Order>,
    ) {
        match target {
            MarkTarget::Message(id) => {
                if let Some(place) = self.remove_one(id, command.as_ref(), orders) {
                    self.redraw(now.mono, &place, orders);
                }
            }
            MarkTarget::Place(place) => self.clear(now, &place, command, orders),
            MarkTarget::All => self.clear_all(now, command, orders),
            MarkTarget::AllRead => self.remove_read(now, command, orders),
            MarkTarget::Key(_) => {}
        }
    }

    /// Starts the hooks of queued messages: one message per surface at a time, and at most [`MAX_HOOK_CHAINS`] in total. In a
    /// burst, messages wait until their surface may show one of their kind again.
    pub(super) fn drain(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut busy: HashSet<Place> =
            self.hook_chains.values().map(|running| running.arrival.place.clone()).collect();
        let pointless = self.pointless_hooks.len();
        let mut burst_deadline: Option<Duration> = None;
        let drained = self.queue.drain(|arrival| {
            let free_at = arrival.kind.map(|kind| self.bursts.free_at(&arrival.place, kind));
            if let Some(free_at) = free_at.filter(|free_at| *free_at > now.mono) {
                burst_deadline = Some(burst_deadline.map_or(free_at, |earlier| earlier.min(free_at)));
                return false;
            }
            let ready = busy.len() + pointless < MAX_HOOK_CHAINS && !busy.contains(&arrival.place);
            if ready && !arrival.item.hooks.is_empty() {
                busy.insert(arrival.place.clone());
            }
            ready
        });
        self.burst_deadline = burst_deadline;
        self.more_to_drain = drained.more;
        for arrival in drained.arrivals {
            let place = arrival.place.clone();
            if let Some(kind) = arrival.kind {
                self.bursts.count(now.mono, &place, kind);
            }
            self.start_hooks(now, arrival, orders);
            // A chain without a hook that may run ends at once. No answer arrives for it that would start the next one of its
            // place.
            let is_running = self.hook_chains.values().any(|running| running.arrival.place == place);
            self.more_to_drain |= !is_running && self.queue.len() > 0;
        }
    }
}

/// The text of a notification that was only a bell.
const BELL_TEXT: &str = "the terminal bell rang";

impl Engine {
    pub(super) fn terminal_signal(
        &mut self,
        now: Now,
        surface: SurfaceId,
        signal: TerminalSignal,
        report: Option<MessageId>,
        orders: &mut Vec<Order>,
    ) {
        let received = DelayedSignal { received_at: now.mono, surface, signal, report };
        match self.terminal_signals.delay(received) {
            Some(received) => self.accept(received, orders),
            None => self.accept_due(now, orders),
        }
    }

    /// Accepts every signal whose delay is over.
    pub(super) fn accept_due(&mut self, now: Now, orders: &mut Vec<Order>) {
        while let Some(delayed) = self.terminal_signals.pop_due(now.mono) {
            self.accept(delayed, orders);
        }
    }

    fn accept(&mut self, received: DelayedSignal, orders: &mut Vec<Order>) {
        let DelayedSignal { received_at, surface, signal, report } = received;
        let (agent, by_hooks) = self.terminal_signals.agent_on(&surface).cloned().unzip();
        let (notification, is_bell) = match signal {
            TerminalSignal::Agent(signal) => {
                return orders.push(Order::ApplySignal { surface, agent, signal });
            }
            TerminalSignal::Withdrawn { id } => {
                return orders.push(Order::WithdrawFromTerminal { surface, id, report });
            }
            TerminalSignal::Bell => {
                (TerminalNotification { body: BELL_TEXT.to_owned(), ..TerminalNotification::default() }, true)
            }
            TerminalSignal::Notified(notification) => (notification, false),
        };
        let TerminalNotification { title, body, kind, .. } = &notification;
        // A surface that no host has registered has no workspace; its signals are not checked for duplicates.
        if let Some(workspace) = self.surfaces.workspace_of(&surface) {
            let place = Place::surface(workspace.clone(), surface.clone());
            // As in the message: a title without a body becomes the text.
            let (title, body) = match title {
                Some(title) if body.trim().is_empty() => (None, title.clone()),
                title => (title.clone(), body.clone()),
            };
            let report = EventReport {
                id: None,
                title,
                body,
                is_bell,
                kind: *kind,
                has_question: false,
                episode: None,
            };
            if let DuplicateVerdict::Duplicate { .. } = self.window.observe(received_at, &place, report) {
                return;
            }
        }
        if agent.is_some() {
            // The agent's state machine decides: a client sends its notification seconds after the event it is about.
            let mut signal = if is_bell {
                Signal::new(Authority::Notification, SignalContent::Notified)
            } else {
                client_notification(title.as_deref(), body)
            };
            // By then its hooks have reported the state in more detail, and their last report may be newer.
            if by_hooks == Some(true) {
                signal.content = SignalContent::Notified;
            }
            signal.kind = *kind;
            orders.push(Order::ApplySignal { surface, agent, signal });
        } else {
            let category = is_bell.then(|| BELL_CATEGORY.to_owned());
            orders.push(Order::AppendToJournal { surface, notification, category, report });
        }
    }
}

impl Engine {
    /// Counts a message that is over its machine's listing limit.
    pub(super) fn count_unlisted(&mut self, now: Now, incoming: &IncomingMessage, orders: &mut Vec<Order>) {
        let message = &incoming.message;
        let Some(machine) = message.machine.as_deref() else { return };
        let cause = Cause::OnlyCounted { machine: machine.to_owned() };
        let store = self.attention.store();
        let is_there = |row: &MessageId| store.get(row).is_some_and(|record| !record.is_read);
        if let Some(count) = self.unlisted.counts.get_mut(machine).filter(|count| is_there(&count.row)) {
            if count.row == message.id {
                return;
            }
            count.messages += 1;
            orders.push(Order::AddTrailStep { id: message.id.clone(), cause });
            return self.update_unlisted(now, orders);
        }
        if self.unlisted.counts.len() >= MAX_MACHINES {
            self.unlisted.counts.retain(|_, count| is_there(&count.row));
        }
        if self.unlisted.counts.len() >= MAX_MACHINES {
            return orders.push(Order::AddTrailStep { id: message.id.clone(), cause });
        }
        let place = self.surfaces.resolve(&incoming.caller).map(|resolved| resolved.place.workspace);
        let place =
            place.map_or_else(|| Place::own_workspace(message.draft.scope.as_str()), Place::workspace);
        let row = Record::from_message(message, place.clone(), Kind::Status, unlisted_text(1, machine));
        let (label, sender) = (Some(machine.into()), machine.into());
        let mut row = Record { key: None, category: None, label, sender, ..row };
        row.add_step(now.wall_ms, cause);
        let count = UnlistedCount { row: message.id.clone(), messages: 1, shown: 1, shown_at: now.mono };
        self.unlisted.counts.insert(machine.to_owned(), count);
        if self.attention.add(row, now.wall_ms).is_new {
            self.added(&message.id, orders);
            self.redraw(now.mono, &place, orders);
        }
    }

    /// Updates the rows whose count has changed, at most once per `UPDATE_EVERY`.
    pub(super) fn update_unlisted(&mut self, now: Now, orders: &mut Vec<Order>) {
        let mut updated = Vec::new();
        for (machine, count) in &mut self.unlisted.counts {
            if count.messages != count.shown && now.mono >= count.shown_at + UPDATE_EVERY {
                (count.shown, count.shown_at) = (count.messages, now.mono);
                updated.push((count.row.clone(), unlisted_text(count.messages, machine)));
            }
        }
        for (row, text) in updated {
            self.attention.store_mut().set_body(&row, &text);
            self.changed_without_withdrawing(&row, orders);
        }
    }
}
