//! What is decided about a notification: the built-in rules, the hook programs, and the channels it is delivered through.

mod active_hooks;
mod channel;
mod delivery;
mod hook;
mod hook_chain;
mod hook_input;
mod mcp_channel;
mod relay_link;
mod requested_mute;
mod rules;

pub(crate) use active_hooks::ActiveHooks;
pub use channel::DeliveryChannel;
pub use delivery::PopupMode;
pub(crate) use delivery::{DeliveryPlan, plan_delivery};
pub use hook::{Hook, HookIdentity, OnFailure};
pub use hook_chain::HookAnswer;
pub(crate) use hook_chain::{FailureNotices, HookChain, HookChainStep};
pub use hook_input::{AgentContext, Effects, HookInput, HookInputContext, HookInputText, HookPatch};
pub use mcp_channel::{McpChannel, McpChannels};
pub use relay_link::{RelayLink, RepositoryName, TeamLink};
pub use requested_mute::{EVERY_MUTE, MAX_REQUESTED_MUTES, MuteTarget, RequestedMute, RequestedMutes};
pub use rules::{Mute, RateLimit, RuleSettings};
pub(crate) use rules::{Rules, Subject};
