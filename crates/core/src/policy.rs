//! Decisions about a notification: the built-in rules, the hook programs, and the channels it is delivered through.

mod channel;
mod delivery;
mod hook_chain;
mod hook_input;
mod requested_mute;
mod rules;

pub use channel::DeliveryChannel;
pub use delivery::PopupMode;
pub(crate) use delivery::{DeliveryPlan, plan_delivery};
pub(crate) use hook_chain::{ActiveHooks, FailureNotices, HookChain, HookChainStep};
pub use hook_chain::{Hook, HookAnswer, HookIdentity, OnFailure};
pub use hook_input::{AgentContext, Effects, HookInput, HookInputContext, HookInputText, HookPatch};
pub use requested_mute::{EVERY_MUTE, MAX_REQUESTED_MUTES, MuteTarget, RequestedMute, RequestedMutes};
pub use rules::{Mute, RateLimit, RuleSettings};
pub(crate) use rules::{Rules, Subject};
