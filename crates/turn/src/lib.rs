//! An agent's conversation: what enters it and how.
//!
//! An agent in the middle of a turn cannot be rung up. What happens outside (the person writes, a file changes, a task
//! ends, another agent has something to say) enters its conversation with the next tool result, or as its next message
//! when it is idle. This crate is for whoever runs such a conversation.
//!
//! Everything here is pure: there is no clock, thread, file, socket, process or randomness. Time is an argument (any
//! clock that does not jump), random bytes are arguments, everything else is a value in and a value out.
//!
//! # Add what is pending to a tool result
//!
//! ```
//! use ringer_core::{Agent, MessageId};
//! use ringer_turn::{augment, blocks, Injection, Source};
//!
//! let id = MessageId::parse("m1")?; // usually: the id of the message in the journal
//! let pending = [Injection::new(id, Agent::new("a1")?, Source::FileWatcher, "src/lib.rs was modified externally")?];
//! let content = augment("File updated successfully", &pending);
//! assert_eq!(
//!     content,
//!     "File updated successfully\n\n\
//!      <notification source=\"file_watcher\">\nsrc/lib.rs was modified externally\n</notification>"
//! );
//! assert_eq!(blocks(&content)[0].text, "src/lib.rs was modified externally");
//! # Ok::<(), ringer_turn::Error>(())
//! ```
//!
//! [`SYSTEM_PROMPT`] tells the model what that is. Harnesses that want events of their own use a [`SyntheticPair`] and its
//! [`ToolDefinition`]; the transcript shows a [`NotificationBlock`].
//!
//! # Keep what waits for an agent until it has been read
//!
//! ```
//! use std::time::Duration;
//! use ringer_core::{Agent, MessageId};
//! use ringer_turn::{Activity, CallId, Carrier, Inbox, Injection, Settings, Source, Turn, TurnEvent};
//!
//! let at = Duration::from_secs;
//! let mut inbox = Inbox::new(Agent::new("a1")?, Settings::default());
//! inbox.set_activity(at(0), Activity::Working);
//! inbox.accept(at(1), Injection::new(MessageId::parse("m1")?, Agent::new("a1")?, Source::User, "use port 8080")?)?;
//!
//! // A tool has finished: claim, write, flush, and only then say so.
//! let carrier = Carrier::ToolResult { call: CallId::new("edit_1")?, turn: Turn(1) };
//! if let Some(claim) = inbox.claim(at(2), &carrier) {
//!     println!("{}", ringer_turn::augment("File updated", &claim.injections));
//!     inbox.hand_over(at(2), claim.lease)?;
//! }
//! // The next thing that the client does in that turn proves that the model has read it.
//! let confirmed = inbox.observe(at(9), &TurnEvent::of(Turn(1)));
//! assert_eq!(confirmed.len(), 1);
//! # Ok::<(), ringer_turn::Error>(())
//! ```
//!
//! Whoever dies between two of these steps leaves it pending: it comes again, under the same id. Only in a [`Storm`] do
//! identical neighbours become one, and does a part wait for the tool result after.
//!
//! # Show a transcript without ten times the same line
//!
//! ```
//! use ringer_turn::{collapse, PlainMessage, Role, View};
//!
//! let done = "<task-notification><status>completed</status>\
//!             <summary>Background command \"make\" completed</summary></task-notification>";
//! let messages = vec![PlainMessage::new(Role::User, done); 10];
//! assert_eq!(collapse(messages, View { verbose: false, fullscreen: true }).len(), 1);
//! ```
//!
//! # Let a chat in, if it may come in
//!
//! ```
//! use std::time::Duration;
//! use ringer_turn::{Access, ChannelMessage, ChannelSender, Heard, Meta, Operator, PermissionRelay, Server, Verdict};
//!
//! let (meta, _) = Meta::sorted_out([("chat_id", "C1"), ("user", "alice")]);
//! let message = ChannelMessage::new(Server::new("slack")?, "yes aaaaa", meta)?;
//! assert_eq!(message.wrapped(), r#"<channel source="slack" chat_id="C1" user="alice">yes aaaaa</channel>"#);
//!
//! // She is a stranger: she gets a code, and the person at the keyboard types it.
//! let (mut access, now) = (Access::default(), Duration::ZERO);
//! let sender = ChannelSender::of(&message).ok_or("a message without a user")?;
//! assert!(access.admit(&sender).is_none());
//! let code = access.offer(now, &sender, [0xa1, 0xb2, 0xc3])?; // usually: random bytes
//! access.approve(now, &Operator::at_the_keyboard(), &code.to_string())?;
//!
//! // Now she is admitted, and may answer what waits for a permission.
//! let admitted = access.admit(&sender).ok_or("not on the list")?;
//! let mut relay = PermissionRelay::default();
//! let id = relay.ask(0)?;
//! let answer = Heard::Answer { id, verdict: Verdict::Allow };
//! assert_eq!(relay.hear(admitted, message.content()), answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Before any of that, its server has to pass the six gates: [`pass_gates`], and [`to_unregister`] when something changed.
//!
//! # What it never does
//!
//! It lets no text close its block, open another, forge an attribute, or hide something from a person that the model
//! reads. It changes no byte of a tool's own result. It drops nothing that it accepted, and hands over nothing that was
//! confirmed. It gives nobody access because of something they wrote. It panics on no input.
//!
//! # Bounds
//!
//! An injection has at most 64 KiB ([`ringer_core::MAX_BODY`]). An inbox holds [`MAX_HELD`] and refuses more; it
//! remembers [`MAX_REMEMBERED`] confirmed ids, and the rates of [`MAX_SOURCES`] sources up to [`MAX_RATE`]. A block draws
//! [`MAX_LINES`]. A channel message has [`MAX_META`] keys of [`MAX_META_TEXT`] bytes; [`MAX_PAIRINGS`] senders wait to be
//! paired, [`MAX_ALLOWED`] are on the list, [`MAX_OPEN`] permission requests are open.

#![forbid(unsafe_code)]

mod applicant;
mod augment;
mod block;
mod call;
mod channel;
mod collapse;
mod entry;
mod error;
mod escape;
mod gate;
mod inbox;
mod injection;
mod operator;
mod pair;
mod pairing;
mod permission;
mod rate;
mod receipt;
mod sender;
mod source;
mod storm;
mod wrap;

pub use applicant::{Account, Applicant, Auth, Circumstances, Plugin};
pub use augment::{Outcome, ReadBlock, ToolResult, augment, blocks, render};
pub use block::{Charset, MAX_LINES, MIN_FRAME, NotificationBlock};
pub use call::{CallId, Turn, TurnEvent};
pub use channel::{ChannelMessage, MAX_META, MAX_META_TEXT, Meta};
pub use collapse::{
    ConversationMessage, PlainMessage, Role, TaskKind, TaskNotification, TaskStatus, View, collapse,
    read_task,
};
pub use entry::{Activity, Entry};
pub use error::Error;
pub use escape::{escape_attribute, escape_text};
pub use gate::{ApiError, Gate, pass_gates, to_unregister};
pub use inbox::{Accepted, Claim, Inbox, MAX_HELD, MAX_REMEMBERED, Settings};
pub use injection::Injection;
pub use operator::Operator;
pub use pair::{NOTIFICATION_TOOL, NoArguments, SYSTEM_PROMPT, SyntheticPair, ToolCall, ToolDefinition};
pub use pairing::{Access, Admitted, Allowlist, CODE_LIFE, MAX_ALLOWED, MAX_PAIRINGS, PairingCode};
pub use permission::{Heard, MAX_OPEN, PermissionRelay, RequestId, Verdict, read_answer};
pub use rate::{MAX_RATE, MAX_SOURCES, Rate, Rates};
pub use receipt::{CONFIRM_WITHIN, Carrier, LEASE, LeaseId, Receipt, Stage};
pub use sender::ChannelSender;
pub use source::{Server, Source};
pub use storm::{CLAUDE_CODE_BUDGET, Chosen, STORM_PENDING, Storm};
