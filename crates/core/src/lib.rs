//! Attention: what a notification is and what becomes of it.
//!
//! This crate is pure. It has no clock, thread, file, socket, process or randomness of its own: time and random bytes
//! are arguments, everything else is a value in and a value out.
//!
//! [`Engine`] is all of it as one value: `handle(now, Event)` gives [`Order`]s for somebody else to carry out. Each part
//! also works by itself, with an example on its type: [`ToastQueue`], [`DuplicateWindow`], [`Bus`] and [`Fence`],
//! [`Chain`], [`Store`], [`Attention`], [`plan`], [`AgentMachine`], [`tell`], [`Sources`].
//!
//! ```
//! use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
//!
//! let draft = Draft::new(Scope::global(), Sender::system(), Kind::Complete, "Agent a1 completed its goal")?;
//! assert_eq!(draft.recipient, Recipient::Default);
//! assert!(Draft::new(Scope::global(), Sender::system(), Kind::Status, "  ").is_err());
//! # Ok::<(), ringer_core::InvalidWord>(())
//! ```

#![forbid(unsafe_code)]

mod address;
mod agent;
mod attention;
mod bus;
mod chain;
mod delivery;
mod duplicate;
mod engine;
mod fence;
mod hooks;
mod id;
mod in_force;
mod kind;
mod mark;
mod message;
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
mod tier;
mod toast;
mod trail;
mod word;

pub use address::{Agent, Recipient, Scope, Sender};
pub use agent::{AgentMachine, Episode, HOLD, IDLE_AFTER, Notice, Patience, STUCK_AFTER};
pub use attention::{Attention, Badge, GLOW, Reason};
pub use bus::{Arrival, Bus, Displaced, Drained, MAX_DRAIN, MAX_PENDING};
pub use delivery::{Focus, Plan, Popup, Way, plan};
pub use duplicate::{DuplicateWindow, Report, Verdict, WINDOW};
pub use engine::{Engine, MAX_WITH_HOOKS, Preferences};
pub use fence::{Fence, Generation};
pub use hooks::{Answer, Chain, FAILURE_INTERVAL, FailureNotices, Hook, HookIdentity, Next, OnFailure};
pub use id::{MessageId, QuestionId};
pub use in_force::HooksInForce;
pub use kind::{Kind, Mark, Tag};
pub use mark::{Target, apply_mark};
pub use message::{Draft, MAX_BODY, Message, Origin};
pub use now::{DailySpan, Now, TimeOfDay};
pub use order::{Delivery, Event, Incoming, Looking, Order, Sign, Ticket};
pub use policy::{AgentContext, Context, Effects, Envelope, Patch, Text};
pub use record::Record;
pub use resolve::{Caller, Resolved, Surfaces};
pub use rules::{Mute, RateLimit, Rules, Settings, Subject};
pub use session::{NewerSession, Session};
pub use signal::{AgentState, Authority, BlockedOn, Says, Signal};
pub use sources::{Change, Observation, Sources, UnknownSource, names as source_names};
pub use store::{Added, Store};
pub use surface::{Place, SurfaceId, WorkspaceId};
pub use tier::{Telling, Tier, says_waiting, tell};
pub use toast::{Colour, DEFAULT_TIMEOUT, Fold, MAX_QUEUED, Priority, Span, Toast, ToastQueue};
pub use trail::{MAX_STEPS, Step, Trail};
pub use word::{InvalidWord, MAX_WORD, check_text, check_word};
