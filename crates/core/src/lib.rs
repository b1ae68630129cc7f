//! The notification engine: what a notification is, and what is done with it.
//!
//! This crate is pure: no clock, thread, file, socket, process or random number generator. Time and random bytes are
//! arguments; everything else is values in and values out.
//!
//! [`Engine`] combines all parts: `handle(now, Event)` returns the [`Order`]s that the caller executes. Each part can also
//! be used alone, with an example on its type: [`ToastQueue`], [`DuplicateWindow`], [`ArrivalQueue`] and [`Fence`],
//! [`HookChain`], [`NotificationStore`], [`Attention`], [`plan_delivery`], [`AgentMachine`], [`agent_messages`], [`Sources`].
//!
//! ```
//! use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
//!
//! let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "Agent a1 completed its goal")?;
//! assert_eq!(draft.recipient, Recipient::Default);
//! assert!(Draft::new(Scope::global(), Sender::system(), Kind::Status, "  ").is_err());
//! # Ok::<(), ringer_core::InvalidName>(())
//! ```

#![forbid(unsafe_code)]

mod active_hooks;
mod address;
mod agent;
mod agent_messages;
mod arrival_queue;
mod attention;
mod delivery;
mod duplicate;
mod engine;
mod fence;
mod hook;
mod hooks;
mod id;
mod kind;
mod linked_list;
mod mark;
mod message;
mod names;
mod now;
mod order;
mod policy;
mod record;
mod resolve;
mod rules;
mod session;
mod signal;
mod sources;
mod store;
mod surface;
mod toast;
mod trail;

pub use active_hooks::ActiveHooks;
pub use address::{Agent, Recipient, Scope, Sender};
pub use agent::{AUTHORITY_HOLD, AgentMachine, AgentNotice, AgentTimeouts, Episode, IDLE_AFTER, STUCK_AFTER};
pub use agent_messages::{AgentMessage, Tier, agent_messages, ends_with_waiting_marker};
pub use arrival_queue::{Arrival, ArrivalQueue, Displaced, Drained, MAX_DRAIN, MAX_PENDING};
pub use attention::{Attention, BRIEF_RING, Badge, UnreadReason};
pub use delivery::{DeliveryChannel, DeliveryPlan, PlaceFocus, PopupMode, plan_delivery};
pub use duplicate::{DUPLICATE_WINDOW, DuplicateVerdict, DuplicateWindow, EventReport};
pub use engine::{Engine, MAX_HOOK_CHAINS, Preferences};
pub use fence::{Fence, Generation};
pub use hook::{Hook, HookIdentity, OnFailure};
pub use hooks::{FAILURE_INTERVAL, FailureNotices, HookAnswer, HookChain, HookChainStep};
pub use id::{MessageId, QuestionId};
pub use kind::{Kind, Mark, Tag};
pub use mark::{MarkTarget, apply_mark};
pub use message::{Draft, MAX_BODY, Message, MessageOrigin};
pub use names::{InvalidName, MAX_NAME, validate_name, validate_text};
pub use now::{DailySpan, Now, TimeOfDay};
pub use order::{Delivery, Event, FocusState, IncomingMessage, Order, TerminalSignal, Ticket};
pub use policy::{AgentContext, Effects, Envelope, EnvelopeContext, EnvelopeText, HookPatch};
pub use record::Record;
pub use resolve::{Caller, ResolvedPlace, SurfaceRegistry};
pub use rules::{Mute, RateLimit, RuleSettings, Rules, Subject};
pub use session::{NewerSession, Session};
pub use signal::{AgentState, Authority, BlockedOn, Signal, SignalContent};
pub use sources::{Observation, Sources, ToastChange, UnknownSource, names as source_names};
pub use store::{Added, NotificationStore};
pub use surface::{Place, SurfaceId, WorkspaceId};
pub use toast::{
    Colour, DEFAULT_TOAST_TIMEOUT, Fold, MAX_QUEUED_TOASTS, Priority, Toast, ToastQueue, ToastSpan,
};
pub use trail::{MAX_TRAIL_STEPS, Trail, TrailStep};
