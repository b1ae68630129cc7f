//! The engine: every step from a message to its delivery, as one value.
//!
//! `handle(now, event)` returns the orders to execute; `next_deadline` returns when to call it with [`Event::Tick`].
//! The engine has no clock and performs no side effect, so a test can simulate years of use in a loop.

mod arrivals;
mod away;
mod bulk_marks;
mod decisions;
mod display;
mod escalation;
mod muting;
mod order;
mod records;
mod resolve;
mod snooze;
mod terminal_signals;
mod turn_ends;
mod undo;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::arrival::{
    Arrival, ArrivalQueue, BurstLimit, DuplicateWindow, Fence, SurfaceRegistry, UnlistedMessages,
};
use crate::attention::{
    Attention, AwayPeriod, Badge, Cause, Command, Focus, Presence, ReadReason, Record, Ring, UndoItem,
    UndoLog, UnreadReason,
};
use crate::message::{MessageId, Place, ShownKind, WorkspaceId};
use crate::policy::{
    ActiveHooks, DeliveryChannel, FailureNotices, Hook, HookChain, PopupMode, RequestedMute, RequestedMutes,
    RuleSettings, Rules,
};
use crate::time::Now;
use crate::toast::{Priority, Sources, Toast, ToastChange, ToastQueue};

use terminal_signals::TerminalSignals;
use turn_ends::TurnEnds;

pub use crate::arrival::Caller;
pub use crate::attention::View;
pub use order::{
    Delivery, Event, FeatureValue, IncomingMessage, Order, SavedState, TerminalNotification, TerminalSignal,
    Ticket,
};

/// The most notifications that have hooks running at once. Further ones wait in the queue. Each notification runs one program
/// at a time, so this also limits the processes.
pub const MAX_HOOK_CHAINS: usize = 64;
/// The most deliveries that are tracked. A delivery beyond that is still made, but if it fails no other channel is tried. The
/// hub has at most 1024 in flight, so the limit only bounds memory.
const MAX_IN_FLIGHT: usize = 4096;

/// The settings that the engine needs.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    /// Settings of the built-in rules.
    pub rules: RuleSettings,
    /// Where popups are shown.
    pub popup: PopupMode,
    /// Moves a workspace with something new to the top.
    pub reorder: bool,
    /// Draws no rings at all.
    pub no_rings: bool,
    /// The hook programs, in order.
    pub hooks: Arc<[Hook]>,
    /// Digests of repositories' hooks that the person trusts, in `hooks` or not.
    pub trusted_hooks: HashSet<String>,
    /// The files whose hooks are all in `hooks`.
    pub read_files: HashSet<String>,
    /// Time after which an open notification that needs the person escalates; `None` if escalation is not configured.
    pub escalate_after: Option<Duration>,
    /// Time without input in a host that is evidence that the person is away; `None` if it never is.
    pub away_after: Option<Duration>,
    /// Channels for which nothing is configured.
    pub disabled_channels: Vec<DeliveryChannel>,
    /// Kinds without a sound.
    pub silent_kinds: Vec<ShownKind>,
}

impl Preferences {
    fn active_hooks(&self) -> ActiveHooks {
        ActiveHooks::new(&self.hooks, self.trusted_hooks.clone(), self.read_files.clone())
    }
}

/// A notification between its arrival and its decision.
#[derive(Debug, Clone)]
struct Candidate {
    incoming: IncomingMessage,
    replaces: Option<MessageId>,
    /// What was already done for the message that it replaces.
    done: Vec<DeliveryChannel>,
    /// The messages of its kind that it replaced in the queue.
    others: u32,
    steps: Vec<Cause>,
    /// The hooks of the settings that were active when the notification arrived. They may include hooks of its own worktree,
    /// which later settings no longer have.
    hooks: Arc<[Hook]>,
}

#[derive(Debug, Clone)]
struct RunningChain {
    arrival: Arrival<Candidate>,
    chain: HookChain,
}

/// The engine.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{Draft, Engine, Event, Kind, Message, MessageId, Now, Order, Preferences};
/// use ringer_core::engine::IncomingMessage;
/// use ringer_core::{Scope, Sender};
/// use ringer_core::engine::Caller;
/// use ringer_core::time::TimeOfDay;
///
/// let mut engine = Engine::new(Preferences::default());
/// let now = Now { mono: Duration::ZERO, wall_ms: 0, local: TimeOfDay::default() };
/// let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "done")?;
/// let message = Message { seq: 1, id: MessageId::new(0, [0; 10]), unix_ms: 0, draft, machine: None };
/// let incoming = IncomingMessage { message, caller: Caller::default(), is_subagent: false, pending: false };
/// let orders = engine.handle(now, Event::Message(Box::new(incoming)));
/// assert!(orders.iter().any(|order| matches!(order, Order::SaveRecord { record, is_new: true } if !record.is_read)));
/// assert!(orders.iter().any(|order| matches!(order, Order::Deliver(_))));
/// # Ok::<(), ringer_core::message::InvalidName>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    preferences: Preferences,
    active_hooks: ActiveHooks,
    rules: Rules,
    mutes: RequestedMutes,
    surfaces: SurfaceRegistry,
    focus: Focus,
    presence: Presence,
    away: Option<AwayPeriod>,
    window: DuplicateWindow,
    unlisted: UnlistedMessages,
    queue: ArrivalQueue<Candidate>,
    fence: Fence,
    hook_chains: HashMap<Ticket, RunningChain>,
    /// Hooks that still run for a notification that has ended. Their answers are ignored.
    pointless_hooks: HashSet<Ticket>,
    bursts: BurstLimit,
    /// When a message that waits because of a burst may be shown.
    burst_deadline: Option<Duration>,
    /// Set if the last drain reached its limit and more items in the queue are ready.
    more_to_drain: bool,
    terminal_signals: TerminalSignals,
    next_ticket: u64,
    failures: FailureNotices,
    attention: Attention,
    /// For each delivery in flight, the channels to try next if it fails.
    in_flight: HashMap<(MessageId, DeliveryChannel), (Vec<DeliveryChannel>, Delivery)>,
    /// The notifications that each one superseded, until its popup is shown: the desktop then replaces the old popup with the
    /// new one.
    superseded: HashMap<MessageId, Vec<MessageId>>,
    bulk_marks: BulkMarks,
    undo_log: UndoLog,
    toasts: ToastQueue,
    sources: Sources,
    turn_ends: TurnEnds,
    /// The rings and badges that were last drawn, so that orders are made only for changes.
    lit_rings: HashMap<Place, Ring>,
    badges: HashMap<WorkspaceId, Badge>,
}

impl Engine {
    /// Creates an empty engine.
    pub fn new(preferences: Preferences) -> Self {
        Self {
            rules: Rules::new(preferences.rules.clone()),
            active_hooks: preferences.active_hooks(),
            preferences,
            mutes: RequestedMutes::default(),
            surfaces: SurfaceRegistry::default(),
            focus: Focus::default(),
            presence: Presence::default(),
            away: None,
            window: DuplicateWindow::default(),
            unlisted: UnlistedMessages::default(),
            queue: ArrivalQueue::default(),
            fence: Fence::default(),
            hook_chains: HashMap::new(),
            pointless_hooks: HashSet::new(),
            bursts: BurstLimit::default(),
            burst_deadline: None,
            more_to_drain: false,
            terminal_signals: TerminalSignals::default(),
            next_ticket: 0,
            failures: FailureNotices::default(),
            attention: Attention::default(),
            in_flight: HashMap::new(),
            superseded: HashMap::new(),
            bulk_marks: BulkMarks::default(),
            undo_log: UndoLog::default(),
            toasts: ToastQueue::default(),
            sources: Sources::default(),
            turn_ends: TurnEnds::default(),
            lit_rings: HashMap::new(),
            badges: HashMap::new(),
        }
    }

    /// Replaces the preferences. Notifications that have already arrived keep the hooks of the old ones, as far as the new
    /// ones still allow them. [`Self::redraw_rings`] applies them to what is lit.
    pub fn set_preferences(&mut self, preferences: Preferences) {
        self.rules.set(preferences.rules.clone());
        self.active_hooks = preferences.active_hooks();
        self.preferences = preferences;
    }

    /// Draws the rings and badges that differ from those that were drawn last.
    pub fn redraw_rings(&mut self, now: Now) -> Vec<Order> {
        let mut orders = Vec::new();
        self.redraw_all(now.mono, &mut orders);
        orders
    }

    /// The notifications, badges and rings.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// The shown toast.
    pub fn toast(&self) -> Option<&Toast> {
        self.toasts.current()
    }

    /// The number of notifications that wait in the queue or for their hooks.
    pub fn undecided(&self) -> usize {
        self.queue.len() + self.hook_chains.len()
    }

    /// The ids of the undecided notifications. They are not in the store yet, so a hub that saves arrivals must keep theirs.
    pub fn undecided_ids(&self) -> impl Iterator<Item = &MessageId> {
        let hook_chains = self.hook_chains.values().map(|running| &running.arrival.item);
        self.queue.pending().chain(hook_chains).map(|candidate| &candidate.incoming.message.id)
    }

    /// The settings revisions whose hooks may still be ordered. The caller must keep their programs.
    pub fn hook_revisions(&self) -> HashSet<u64> {
        let waiting = self.queue.pending().map(|candidate| candidate.hooks.as_ref());
        let waiting = waiting.chain([self.preferences.hooks.as_ref()]).filter_map(<[Hook]>::first);
        let waiting = waiting.map(|hook| hook.identity.revision);
        waiting.chain(self.hook_chains.values().filter_map(|running| running.chain.revision())).collect()
    }

    /// Restores what the features of an earlier hub saved, in the order of the keys. Must be called before the first event.
    pub fn restore_state(&mut self, now: Now, states: impl IntoIterator<Item = SavedState>) {
        for state in states {
            if let Some(item) = state.read::<UndoItem>() {
                self.undo_log.restore([item]);
            } else if let Some(mute) = state.read::<RequestedMute>() {
                self.mutes.restore([mute]);
            } else if let Some(away) = state.read::<AwayPeriod>() {
                self.restore_away(now, away);
            }
        }
    }

    /// Returns true if time or the person's return will change something: a snoozed notification comes back, one escalates, or
    /// there will be a digest. The caller must not exit before.
    pub fn is_waiting(&self) -> bool {
        self.has_snoozed() || self.has_escalations() || self.has_digest()
    }

    /// Restores saved notifications, oldest first, and the places that are unread for other reasons.
    pub fn restore(
        &mut self,
        now: Now,
        records: impl IntoIterator<Item = Record>,
        reasons: impl IntoIterator<Item = (UnreadReason, Place)>,
    ) -> Vec<Order> {
        for record in records {
            self.turn_ends.add(&record);
            self.attention.store_mut().restore(record);
        }
        for (reason, place) in reasons {
            self.attention.set(reason, place);
        }
        let mut orders = Vec::new();
        self.redraw_all(now.mono, &mut orders);
        orders
    }

    /// Resumes a delivery that was in flight when the last hub ended. It was to replace the popups of `older`.
    pub fn resume(&mut self, delivery: Delivery, older: Vec<MessageId>) -> Vec<Order> {
        let rest = match (self.preferences.popup, delivery.channel) {
            (PopupMode::Auto, DeliveryChannel::Desktop) => vec![DeliveryChannel::Terminal],
            _ => Vec::new(),
        };
        let mut orders = Vec::new();
        if !older.is_empty() && self.superseded.len() < MAX_IN_FLIGHT {
            self.superseded.insert(delivery.id.clone(), older);
        }
        self.start_delivery(delivery, rest, &mut orders);
        orders
    }

    /// Removes the notifications that were read first from memory, until at most `most` are left, or only unread and open
    /// ones. Saved copies stay.
    pub fn trim(&mut self, most: usize) {
        self.attention.store_mut().trim(most);
    }

    /// Drops the first steps of a notification's trail from memory, because they are saved.
    pub fn forget_trail_steps(&mut self, id: &MessageId, steps: usize) {
        self.attention.store_mut().forget_trail_steps(id, steps);
    }

    /// When to call `handle` with [`Event::Tick`].
    pub fn next_deadline(&self, now: Now) -> Option<Duration> {
        let more = self.more_to_drain.then_some(now.mono);
        let expiry = self.attention.store().next_expiry().map(|expires_ms| now.mono_at(expires_ms));
        let (signals, snooze) = (self.terminal_signals.next_deadline(), self.next_snooze_deadline(now));
        let (escalation, presence) = (self.next_escalation_deadline(now), self.next_presence_change(now));
        [
            more,
            self.burst_deadline,
            signals,
            expiry,
            snooze,
            escalation,
            presence,
            self.unlisted.next_update(),
            self.toasts.next_deadline(),
            self.attention.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Handles an event. Returns the orders to execute, in order.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Order> {
        let mut orders = Vec::new();
        self.accept_due(now, &mut orders);
        let shown = self.toasts.current().map(|toast| (toast.key.clone(), toast.text()));
        self.update_away(now, &mut orders);
        self.handle_event(now, event, &mut orders);
        self.update_away(now, &mut orders);
        self.expire(now, &mut orders);
        self.drain(now, &mut orders);
        self.toasts.tick(now.mono);
        if self.toasts.current().map(|toast| (toast.key.clone(), toast.text())) != shown {
            orders.push(Order::ShowToast(self.toasts.current().cloned()));
        }
        orders
    }

    fn handle_event(&mut self, now: Now, event: Event, orders: &mut Vec<Order>) {
        match event {
            Event::Message(incoming) => self.arrive(now, *incoming, orders),
            Event::HookAnswered { ticket, answer } => {
                self.pointless_hooks.remove(&ticket);
                if let Some(mut running) = self.hook_chains.remove(&ticket) {
                    let next = running.chain.answered(answer, &self.active_hooks);
                    self.continue_hooks(now, ticket, running, next, orders);
                }
            }
            Event::Surface { surface, workspace, tty, reports_focus } => {
                if let Some(forgotten) = self.surfaces.register(surface, workspace, tty, reports_focus) {
                    self.terminal_signals.set_agent(&forgotten, None);
                }
            }
            Event::SurfaceGone(surface) => self.forget_surface(&surface),
            Event::SurfaceClosed(surface) => self.close_surface(now, &surface, orders),
            Event::AgentOnSurface { surface, agent } => self.terminal_signals.set_agent(&surface, agent),
            Event::TerminalSignal { surface, signal, report } => {
                self.terminal_signal(now, surface, signal, report, orders);
            }
            Event::Looks { host, views, present, by_person } => {
                if present && by_person && !views.is_empty() {
                    self.presence.input(now.mono, host, false);
                }
                self.looks(now, host, views, present, orders);
            }
            Event::Glanced { surface, at_ms } => self.glanced(now, surface, at_ms, orders),
            Event::Presence { host, present } => self.presence.set(now.mono, host, present),
            Event::Input { host } => self.presence.input(now.mono, host, true),
            Event::HostGone { host } => {
                self.presence.remove(host);
                self.focus.set(host, Vec::new(), true);
            }
            Event::Desktop(desktop) => self.presence.set_desktop(now.mono, desktop),
            Event::Read(place) => self.read(now, &place, &ReadReason::Place, None, orders),
            Event::ReadAll => self.read_all(now, None, orders),
            Event::Mark { id, read } => {
                if self.attention.store_mut().mark(&id, read, now.wall_ms, &ReadReason::Person) {
                    self.changed_at(now, &id, orders);
                }
            }
            Event::MarkUnread(place) => {
                self.attention.set(UnreadReason::Manual, place.clone());
                self.redraw(now.mono, &place, orders);
            }
            Event::Activity(place) => self.set_unread(now, UnreadReason::Panel, &place, orders),
            // A place with an unread notification needs no other reason.
            Event::Restored(place) if self.attention.store().has_unread(&place) => {}
            Event::Restored(place) => self.set_unread(now, UnreadReason::Restored, &place, orders),
            Event::Remove(id) => {
                if let Some(place) = self.remove_one(id, None, orders) {
                    self.redraw(now.mono, &place, orders);
                }
            }
            Event::RemoveRead => self.remove_read(now, None, orders),
            Event::Clear(place) => self.clear(now, &place, None, orders),
            Event::ClearAll => self.clear_all(now, None, orders),
            Event::QuestionClosed { question, by } => {
                self.end_undo(|record| record.open_question.as_ref() == Some(&question), orders);
                if let Some(id) = self.attention.store_mut().close_question(&question, now.wall_ms, &by) {
                    self.changed_at(now, &id, orders);
                }
            }
            Event::Delivered { id, channel, result, popup } => {
                self.delivered(now, &id, channel, result, popup, orders);
            }
            Event::AddTrailStep { id, cause } => {
                self.attention.store_mut().add_trail_step(&id, now.wall_ms, cause);
                self.changed_without_withdrawing(&id, orders);
            }
            Event::Observed(observation) => match self.sources.observe(&observation) {
                Ok(changes) => {
                    for change in changes {
                        self.apply_toast_change(now, change, orders);
                    }
                }
                Err(unknown) => {
                    self.toasts.add(now.mono, Toast::new("observe", Priority::Low, unknown.to_string()));
                }
            },
            Event::Toast(toast) => self.toasts.add(now.mono, toast),
            Event::RemoveToast(key) => self.toasts.remove(now.mono, &key),
            Event::Tick => {
                for place in self.attention.tick(now.mono) {
                    self.redraw(now.mono, &place, orders);
                }
                self.update_unlisted(now, orders);
                self.end_snoozes(now, orders);
                self.escalate(now, orders);
            }
        }
    }

    fn apply_toast_change(&mut self, now: Now, change: ToastChange, orders: &mut Vec<Order>) {
        match change {
            ToastChange::Add(toast) => self.toasts.add(now.mono, toast),
            ToastChange::Remove(key) => self.toasts.remove(now.mono, &key),
            ToastChange::Indicator { key, text } => orders.push(Order::Indicator { key, text }),
            ToastChange::Notify(notification) => orders.push(Order::NotifyOfSource(notification)),
        }
    }
}

/// Marks on many notifications, applied in pieces: applying one to 100,000 at once would take a second.
///
/// These have not been applied to all of their notifications yet, in the order of arrival.
#[derive(Debug, Clone)]
struct BulkMarks {
    unfinished: VecDeque<BulkMark>,
    /// The most notifications that are changed at once.
    most: usize,
}

impl Default for BulkMarks {
    fn default() -> Self {
        Self { unfinished: VecDeque::new(), most: usize::MAX }
    }
}

/// A mark, and the notifications that it has not been applied to yet. The list is fixed when the mark arrives: later
/// notifications are not affected.
#[derive(Debug, Clone)]
struct BulkMark {
    change: BulkChange,
    rest: std::vec::IntoIter<MessageId>,
    /// The place to redraw at the end; `None` for all places.
    place: Option<Place>,
    /// The person's command, if it can be undone.
    command: Option<Command>,
}

#[derive(Debug, Clone)]
enum BulkChange {
    Read(ReadReason),
    Remove,
    TakeBack,
}

#[cfg(test)]
mod tests;
