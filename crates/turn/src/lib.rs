//! Puts notifications into an agent's conversation.
//!
//! An agent cannot be interrupted in the middle of a turn. An event outside (the person writes, a file changes, a task
//! ends, another agent sends a message) enters its conversation with the next tool result, or as the next message when
//! the agent is idle. This crate is for programs that run such a conversation.
//!
//! Everything here is pure: there is no clock, thread, file, socket, process or randomness. Time is an argument (any
//! clock that does not jump), random bytes are arguments, everything else is a value in and a value out.
//!
//! # Add what is pending to a tool result
//!
//! ```
//! use ringer_core::MessageId;
//! use ringer_core::message::{Agent, SessionNonce};
//! use ringer_turn::{augment, blocks, Injection, InjectionSource};
//!
//! let id = MessageId::parse("m1")?; // usually: the id of the message in the journal
//! let pending = [Injection::new(id, Agent::new("a1")?, InjectionSource::FileWatcher, "src/lib.rs was modified externally")?];
//! let nonce = SessionNonce::new([7; 16]); // usually: random bytes, and `system_prompt` tells the model
//! let content = augment("File updated successfully", &pending, Some(&nonce));
//! assert_eq!(
//!     content,
//!     "File updated successfully\n\n\
//!      <notification source=\"file_watcher\" nonce=\"07070707070707070707070707070707\">\n\
//!      src/lib.rs was modified externally\n</notification>"
//! );
//! assert_eq!(blocks(&content)[0].text, "src/lib.rs was modified externally");
//! # Ok::<(), ringer_turn::Error>(())
//! ```
//!
//! [`system_prompt`] tells the model what that is, and by which nonce it is known. Harnesses that want events of their own use a [`SyntheticPair`] and its
//! [`ToolDefinition`], as `crates/cli/examples/harness.rs` does; the transcript shows a [`NotificationBlock`].
//!
//! What is pending is kept by `ringer-journal`, with a receipt for each agent: a claim leases it, and a later event of the
//! client confirms it. If there is too much for one tool result, the [`InjectionBudget`] merges identical neighbours and
//! lets the rest wait.
//!
//! # Collapse repeated lines of a transcript
//!
//! ```
//! use ringer_turn::{collapse, PlainMessage, Role, TranscriptView};
//!
//! let done = "<task-notification><status>completed</status>\
//!             <summary>Background command \"make\" completed</summary></task-notification>";
//! let messages = vec![PlainMessage::new(Role::User, done); 10];
//! assert_eq!(collapse(messages, TranscriptView { verbose: false, fullscreen: true }).len(), 1);
//! ```
//!
//! # Accept messages of a chat from allowed senders
//!
//! ```
//! use std::time::Duration;
//! use ringer_turn::{Access, ChannelMessage, ChannelSender, RelayedMessage, Meta, Operator, PermissionRelay, McpServer, PermissionVerdict};
//!
//! let (meta, _) = Meta::filtered([("chat_id", "C1"), ("user", "alice")]);
//! let message = ChannelMessage::new(McpServer::new("slack")?, "yes aaaaa", meta)?;
//! assert_eq!(message.wrapped(), r#"<channel source="slack" chat_id="C1" user="alice">yes aaaaa</channel>"#);
//!
//! // The sender is not on the list: there is a code for her, and the person at the keyboard types it in.
//! let (mut access, now) = (Access::default(), Duration::ZERO);
//! let sender = ChannelSender::of(&message).ok_or("a message without a user")?;
//! assert!(access.admit(&sender).is_none());
//! let code = access.offer_code(now, &sender, [0xa1, 0xb2, 0xc3])?; // usually: random bytes
//! access.approve(now, &Operator::at_the_keyboard(), &code.to_string())?;
//!
//! // Now she is admitted, and may answer what waits for a permission.
//! let admitted = access.admit(&sender).ok_or("not on the list")?;
//! let mut relay = PermissionRelay::default();
//! let id = relay.ask(0)?;
//! let answer = RelayedMessage::Answer { id, verdict: PermissionVerdict::Allow };
//! assert_eq!(relay.receive(admitted, message.content()), answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Before that, the server has to pass six checks: [`check_gates`], and [`servers_to_unregister`] when something changed.
//!
//! # What it never does
//!
//! It lets no text close its block, open another, forge an attribute, or hide something from a person that the model
//! reads. It changes no byte of a tool's own result, except with [`escape_tags`]. It gives no sender access because of a text. It panics on no input.
//!
//! # Bounds
//!
//! An injection has at most 64 KiB ([`ringer_core::message::MAX_BODY`]). The rates of [`MAX_SOURCES`] sources are remembered, up
//! to [`MAX_RATE`]. A block draws
//! [`MAX_LINES`]. A channel message has [`MAX_META`] keys of [`MAX_META_TEXT`] bytes; [`MAX_PAIRINGS`] senders wait to be
//! paired, [`MAX_ALLOWED`] are on the list, [`MAX_OPEN_REQUESTS`] permission requests are open.

#![forbid(unsafe_code)]

mod augment;
mod block;
mod channel;
mod collapse;
mod error;
mod escape;
mod gate;
mod injection;
mod injection_budget;
mod pairing;
mod permission;
mod rate;
mod source;
mod synthetic_pair;
mod wrap;

pub use augment::{CallId, ReadBlock, ToolOutcome, ToolResult, augment, blocks, render};
pub use block::{Charset, MAX_LINES, MIN_FRAME, NotificationBlock};
pub use channel::{ChannelMessage, ChannelSender, MAX_META, MAX_META_TEXT, Meta};
pub use collapse::{
    ConversationMessage, PlainMessage, Role, TaskKind, TaskNotification, TaskStatus, TranscriptView,
    collapse, read_task,
};
pub use error::Error;
pub use escape::{escape_attribute, escape_tags, escape_text};
pub use gate::{
    Account, Auth, ChannelCandidate, ChannelPolicy, Gate, GateRefusal, Plugin, check_gates,
    servers_to_unregister,
};
pub use injection::Injection;
pub use injection_budget::{CLAUDE_CODE_MAX_BYTES, DEFAULT_MAX_PENDING, InjectionBudget, SelectedBlock};
pub use pairing::{
    Access, AdmittedSender, Allowlist, CODE_LIFETIME, MAX_ALLOWED, MAX_PAIRINGS, Operator, PairingCode,
    WaitingSender,
};
pub use permission::{
    MAX_OPEN_REQUESTS, PermissionRelay, PermissionRequestId, PermissionVerdict, RelayedMessage, parse_answer,
};
pub use rate::{MAX_RATE, MAX_SOURCES, Rate, RateTracker};
pub use source::{InjectionSource, McpServer};
pub use synthetic_pair::{
    NOTIFICATION_TOOL, NoArguments, SyntheticPair, ToolCall, ToolDefinition, system_prompt,
};
