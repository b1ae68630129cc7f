//! Puts notifications into an agent's conversation.
//!
//! An agent cannot be interrupted in the middle of a turn. An outside event (the person writes, a file changes, a task
//! ends, another agent sends a message) enters its conversation with the next tool result, or as the next message when
//! the agent is idle. This module is for programs that run such a conversation.
//!
//! Everything here is pure: no clock, thread, file, socket, process or randomness. The caller passes in the time (from any
//! monotonic clock) and random bytes.
//!
//! # Add what is pending to a tool result
//!
//! ```
//! use ringer_core::MessageId;
//! use ringer_core::message::{Agent, SessionNonce};
//! use ringer_core::conversation::{augment, blocks, Injection, InjectionSource};
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
//! # Ok::<(), ringer_core::conversation::Error>(())
//! ```
//!
//! [`system_prompt`] explains these blocks to the model and tells it the nonce. Harnesses that represent notifications as
//! separate events use a [`SyntheticPair`] and its [`ToolDefinition`], as `crates/cli/examples/harness.rs` does. A transcript
//! shows a [`NotificationBlock`].
//!
//! `ringer-journal` stores pending messages, with a receipt for each agent: a claim leases a message, and a later event of the
//! client confirms it. If there is too much for one tool result, the [`InjectionBudget`] merges identical neighbours and
//! leaves the rest pending.
//!
//! # Collapse repeated lines of a transcript
//!
//! ```
//! use ringer_core::conversation::{collapse, PlainMessage, Role, TranscriptView};
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
//! use ringer_core::conversation::{Access, ChannelMessage, ChannelSender, RelayedMessage, Meta, Operator, PermissionRelay, McpServer, PermissionVerdict};
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
//! Before that, the server has to pass six checks: see [`check_gates`].
//!
//! # What it never does
//!
//! It never lets a text close its block, open another, forge an attribute, or hide from the person something that the model
//! reads. It never changes a tool's own result, except with [`escape_tags`], never gives a sender access because of a text, and
//! never panics.
//!
//! # Bounds
//!
//! An injection has at most 64 KiB ([`crate::message::MAX_BODY`]). Rates are tracked for [`MAX_SOURCES`] sources, up to
//! [`MAX_RATE`]. A block draws at most [`MAX_LINES`] lines. A channel message has at most [`MAX_META`] keys of [`MAX_META_TEXT`]
//! bytes. At most [`MAX_PAIRINGS`] senders wait to be paired, [`MAX_ALLOWED`] are on the allowlist, and [`MAX_OPEN_REQUESTS`]
//! permission requests are open.

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
mod source;
mod synthetic_pair;

pub use augment::{CallId, ReadBlock, ToolOutcome, ToolResult, augment, blocks, render};
pub use block::{Charset, MAX_LINES, MIN_FRAME, NotificationBlock};
pub use channel::{ChannelMessage, ChannelSender, MAX_META, MAX_META_TEXT, Meta};
pub use collapse::{
    ConversationMessage, PlainMessage, Role, TaskKind, TaskNotification, TaskStatus, TranscriptView,
    collapse, read_plain_task, read_task,
};
pub use error::Error;
pub use escape::{escape_attribute, escape_tags, escape_text};
pub use gate::{Account, Auth, ChannelCandidate, ChannelPolicy, Gate, GateRefusal, Plugin, check_gates};
pub use injection::Injection;
pub use injection_budget::{
    CLAUDE_CODE_MAX_BYTES, DEFAULT_MAX_PENDING, InjectionBudget, MAX_RATE, MAX_SOURCES, Rate, RateTracker,
    SelectedBlock,
};
pub use pairing::{
    Access, AdmittedSender, Allowlist, CODE_LIFETIME, MAX_ALLOWED, MAX_PAIRINGS, Operator, PairingCode,
    WaitingSender,
};
pub use permission::{
    MAX_OPEN_REQUESTS, PermissionRelay, PermissionRequestId, PermissionVerdict, RelayedMessage, parse_answer,
};
pub use source::{InjectionSource, McpServer};
pub use synthetic_pair::{
    NOTIFICATION_TOOL, NoArguments, SyntheticPair, ToolCall, ToolDefinition, system_prompt,
};
