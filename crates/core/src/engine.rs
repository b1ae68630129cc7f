//! The engine: the whole assembly line, as one value.
//!
//! `handle(now, event)` gives the orders to carry out; `next_deadline` says when it wants to be called without an event.
//! It has no clock and does nothing itself, so years of use can be played in a loop.

mod arrive;
mod decide;
mod draw;
mod hear;
mod remember;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::attention::{Attention, Badge, Reason};
use crate::bus::{Arrival, Bus};
use crate::delivery::{Popup, Way};
use crate::duplicate::DuplicateWindow;
use crate::fence::Fence;
use crate::hooks::{Chain, FailureNotices, Hook};
use crate::id::MessageId;
use crate::in_force::HooksInForce;
use crate::kind::{Kind, Tag};
use crate::now::Now;
use crate::order::{Delivery, Event, Incoming, Looking, Order, Ticket};
use crate::record::Record;
use crate::resolve::Surfaces;
use crate::rules::{Rules, Settings};
use crate::session::{NewerSession, Session};
use crate::sources::{Change, Sources};
use crate::surface::{Place, WorkspaceId};
use crate::toast::{Priority, Toast, ToastQueue};
use hear::Hearing;

/// Notifications that may be with the hooks at once. More wait.
pub const MAX_WITH_HOOKS: usize = 64;
/// Notifications whose ways out are followed. Of more, a failure no longer falls through to the next way.
const MAX_OUT: usize = 4096;

/// What the person has set.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    /// For the built-in rules.
    pub rules: Settings,
    /// How popups are wanted.
    pub popup: Popup,
    /// Whether workspaces may move.
    pub reorder: bool,
    /// Whether rings are drawn at all.
    pub no_rings: bool,
    /// The hook programs, in order.
    pub hooks: Arc<[Hook]>,
    /// Digests of repositories' hooks that the person trusts, whether or not `hooks` has them.
    pub trusted_hooks: HashSet<String>,
    /// The files whose hooks are all among `hooks`.
    pub read_files: HashSet<String>,
    /// Ways out that lead nowhere, because the person has set up nothing there.
    pub closed: Vec<Way>,
}

impl Preferences {
    fn hooks_in_force(&self) -> HooksInForce {
        HooksInForce::new(&self.hooks, self.trusted_hooks.clone(), self.read_files.clone())
    }
}

/// A notification between its arrival and its decision.
#[derive(Debug, Clone)]
struct Candidate {
    incoming: Incoming,
    replaces: Option<MessageId>,
    steps: Vec<String>,
    /// Those of the settings that held when it arrived, which may be its own worktree's only then.
    hooks: Arc<[Hook]>,
}

#[derive(Debug, Clone)]
struct WithHooks {
    arrival: Arrival<Candidate>,
    chain: Chain,
}

/// The engine.
///
/// ```
/// use std::time::Duration;
/// use ringer_core::{Draft, Engine, Event, Incoming, Kind, Message, MessageId, Now, Order, Preferences};
/// use ringer_core::{Caller, Scope, Sender, TimeOfDay};
///
/// let mut engine = Engine::new(Preferences::default(), false);
/// let now = Now { mono: Duration::ZERO, wall_ms: 0, local: TimeOfDay::default() };
/// let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "done")?;
/// let message = Message { seq: 1, id: MessageId::new(0, [0; 10]), unix_ms: 0, draft, machine: None };
/// let incoming = Incoming { message, caller: Caller::default(), is_subagent: false, pending: false };
/// let orders = engine.handle(now, Event::Message(Box::new(incoming)));
/// assert!(orders.iter().any(|order| matches!(order, Order::Remember { record, is_new: true } if !record.is_read)));
/// assert!(orders.iter().any(|order| matches!(order, Order::Deliver(_))));
/// # Ok::<(), ringer_core::InvalidWord>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    preferences: Preferences,
    hooks_in_force: HooksInForce,
    rules: Rules,
    surfaces: Surfaces,
    looking: Looking,
    window: DuplicateWindow,
    bus: Bus<Candidate>,
    fence: Fence,
    with_hooks: HashMap<Ticket, WithHooks>,
    /// More can be taken out of the bus at once.
    more: bool,
    /// What terminals told of agents that report by hooks, until their moment is over.
    hearing: Hearing,
    next_ticket: u64,
    failures: FailureNotices,
    attention: Attention,
    /// The ways that are left for each notification and purpose, should the one under way fail.
    out: HashMap<(MessageId, Way), (Vec<Way>, Delivery)>,
    /// What a notification superseded, until its own popup is there: the desktop replaces the one by the other.
    superseded: HashMap<MessageId, Vec<MessageId>>,
    toasts: ToastQueue,
    sources: Sources,
    /// What was last drawn, so that only changes are ordered.
    lit: HashMap<Place, bool>,
    badges: HashMap<WorkspaceId, Badge>,
}

impl Engine {
    /// An engine with nothing in it. `remote` says that the person sits elsewhere: start-up sources are silent then.
    pub fn new(preferences: Preferences, remote: bool) -> Self {
        Self {
            rules: Rules::new(preferences.rules.clone()),
            hooks_in_force: preferences.hooks_in_force(),
            preferences,
            surfaces: Surfaces::default(),
            looking: Looking::default(),
            window: DuplicateWindow::default(),
            bus: Bus::default(),
            fence: Fence::default(),
            with_hooks: HashMap::new(),
            more: false,
            hearing: Hearing::default(),
            next_ticket: 0,
            failures: FailureNotices::default(),
            attention: Attention::default(),
            out: HashMap::new(),
            superseded: HashMap::new(),
            toasts: ToastQueue::default(),
            sources: Sources::new(remote),
            lit: HashMap::new(),
            badges: HashMap::new(),
        }
    }

    /// New preferences. What has arrived goes on with the hooks of the old ones, as far as the new ones allow them.
    pub fn set(&mut self, preferences: Preferences) {
        self.rules.set(preferences.rules.clone());
        self.hooks_in_force = preferences.hooks_in_force();
        self.preferences = preferences;
    }

    /// What asks for attention.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// What the footer shows.
    pub fn toast(&self) -> Option<&Toast> {
        self.toasts.current()
    }

    /// How many notifications wait for hooks, or for their turn.
    pub fn undecided(&self) -> usize {
        self.bus.len() + self.with_hooks.len()
    }

    /// Which ones: they are not in the store yet, so whoever wrote down that they arrived must not forget them.
    pub fn undecided_ids(&self) -> impl Iterator<Item = &MessageId> {
        let with_hooks = self.with_hooks.values().map(|with| &with.arrival.item);
        self.bus.pending().chain(with_hooks).map(|candidate| &candidate.incoming.message.id)
    }

    /// The revisions of settings whose hooks may still be ordered. Their programs have to be kept.
    pub fn hook_revisions(&self) -> HashSet<u64> {
        let waiting = self.bus.pending().map(|candidate| candidate.hooks.as_ref());
        let waiting = waiting.chain([self.preferences.hooks.as_ref()]).filter_map(<[Hook]>::first);
        let waiting = waiting.map(|hook| hook.identity.revision);
        waiting.chain(self.with_hooks.values().filter_map(|with| with.chain.revision())).collect()
    }

    /// The session, to be written down.
    pub fn session(&self, most: usize) -> Session {
        Session::of(&self.attention, most)
    }

    /// Puts back what was remembered elsewhere: notifications, oldest first, and places that are unread for another reason.
    pub fn put_back(
        &mut self,
        now: Now,
        records: impl IntoIterator<Item = Record>,
        reasons: impl IntoIterator<Item = (Reason, Place)>,
    ) -> Vec<Order> {
        for record in records {
            self.attention.store_mut().put_back(record);
        }
        for (reason, place) in reasons {
            self.attention.set(reason, place);
        }
        let mut orders = Vec::new();
        self.redraw_all(now.mono, &mut orders);
        orders
    }

    /// Goes on with a delivery that was under way when everything ended. The older ones are those whose popup it was to
    /// replace.
    pub fn resume(&mut self, delivery: Delivery, older: Vec<MessageId>) -> Vec<Order> {
        let rest = match (self.preferences.popup, delivery.way) {
            (Popup::Auto, Way::Desktop) => vec![Way::Terminal],
            _ => Vec::new(),
        };
        let mut orders = Vec::new();
        if !older.is_empty() && self.superseded.len() < MAX_OUT {
            self.superseded.insert(delivery.id.clone(), older);
        }
        self.send_out(delivery, rest, &mut orders);
        orders
    }

    /// Forgets the oldest that are read, until there are no more than so many. They stay wherever they were written.
    pub fn trim(&mut self, most: usize) {
        self.attention.store_mut().trim(most);
    }

    /// Puts a session back.
    pub fn restore(&mut self, now: Now, session: Session) -> Result<Vec<Order>, NewerSession> {
        let ids = |attention: &Attention| -> Vec<MessageId> {
            attention.store().newest().map(|record| record.id.clone()).collect()
        };
        let before = ids(&self.attention);
        session.restore(&mut self.attention)?;
        let mut orders = Vec::new();
        // What it replaced may still be shown somewhere.
        for id in before {
            if self.attention.store().get(&id).is_none() {
                self.withdraw(&id, &mut orders);
            }
        }
        self.redraw_all(now.mono, &mut orders);
        Ok(orders)
    }

    /// When it wants to be called with [`Event::Tick`].
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let more = self.more.then_some(now);
        let hearing = self.hearing.next_deadline();
        [more, hearing, self.toasts.next_deadline(), self.attention.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes an event. Gives what has to be done, in order.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Order> {
        let mut orders = Vec::new();
        self.release(now, &mut orders);
        let shown = self.toasts.current().map(|toast| (toast.key.clone(), toast.text()));
        self.take(now, event, &mut orders);
        self.drain(now, &mut orders);
        self.toasts.tick(now.mono);
        if self.toasts.current().map(|toast| (toast.key.clone(), toast.text())) != shown {
            orders.push(Order::ShowToast(self.toasts.current().cloned()));
        }
        orders
    }

    fn take(&mut self, now: Now, event: Event, orders: &mut Vec<Order>) {
        match event {
            Event::Message(incoming) => self.arrive(now, *incoming, orders),
            Event::HooksAnswered { ticket, answer } => {
                if let Some(mut with) = self.with_hooks.remove(&ticket) {
                    let next = with.chain.answered(answer, &self.hooks_in_force);
                    self.go_on(now, ticket, with, next, orders);
                }
            }
            Event::Surface { surface, workspace, tty } => self.surfaces.put(surface, workspace, tty),
            Event::SurfaceGone(surface) => {
                self.surfaces.remove(&surface);
                self.hearing.set_agent(&surface, None);
            }
            Event::AgentOn { surface, agent } => self.hearing.set_agent(&surface, agent),
            Event::Heard { surface, sign } => self.hear(now, surface, sign, orders),
            Event::Looks(looking) => self.look(now, looking, orders),
            Event::Read(place) => self.read(now, &place, "the person read it", orders),
            Event::ReadAll => {
                let ids = self.attention.read_all(now.wall_ms, "the person read everything");
                self.changed(&ids, orders);
                self.redraw_all(now.mono, orders);
            }
            Event::Mark { id, read } => {
                if self.attention.store_mut().mark(&id, read, now.wall_ms, "by hand") {
                    self.changed_at(now, &id, orders);
                }
            }
            Event::MarkUnread(place) => {
                self.attention.set(Reason::Manual, place.clone());
                self.redraw(now.mono, &place, orders);
            }
            Event::Activity(place) => {
                self.attention.set(Reason::Panel, place.clone());
                self.redraw(now.mono, &place, orders);
            }
            Event::Remove(id) => self.remove(now, id, orders),
            Event::RemoveRead => {
                let read = self.attention.store().newest().filter(|record| record.is_read);
                let ids: Vec<MessageId> = read.map(|record| record.id.clone()).collect();
                for id in ids {
                    self.remove(now, id, orders);
                }
            }
            Event::Clear(place) => self.clear(now, &place, orders),
            Event::ClearAll => self.clear_all(now, orders),
            Event::Answered(question) => {
                let why = "the question was answered";
                if let Some(id) = self.attention.store_mut().close_question(&question, now.wall_ms, why) {
                    self.changed_at(now, &id, orders);
                }
            }
            Event::Delivered { id, way, result } => self.delivered(now, &id, way, &result, orders),
            Event::Noted { id, text } => {
                self.attention.store_mut().note(&id, now.wall_ms, text);
                self.changed_without_withdrawing(&id, orders);
            }
            Event::Observed(observation) => match self.sources.observe(&observation) {
                Ok(changes) => changes.into_iter().for_each(|change| self.change(now, change, orders)),
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
            }
        }
    }

    fn change(&mut self, now: Now, change: Change, orders: &mut Vec<Order>) {
        match change {
            Change::Add(toast) => self.toasts.add(now.mono, toast),
            Change::Remove(key) => self.toasts.remove(now.mono, &key),
            Change::Indicator { key, text } => orders.push(Order::Indicator { key, text }),
        }
    }
}

fn kind_of(tag: Tag) -> Kind {
    match tag {
        Tag::Notice(kind) => kind,
        Tag::Mark(_) => Kind::Status,
    }
}

#[cfg(test)]
mod tests;
