//! Sends messages for the agent to the client as channel messages, as soon as they arrive.
//!
//! Clients show them only if configured to, so they do not count as delivered: a message stays pending until a tool result or a
//! hook delivers it, or until the agent marks it as seen.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use ringer_core::conversation::{escape_attribute, escape_tags};
use ringer_core::message::{Agent, MessageId, MessagePart, Tag};
use ringer_core::{Message, Scope};
use ringer_journal::{Error, Home, HookWake, IdSource, Journal};
use ringer_platform::{wake, wake_pair};
use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::{Peer, RoleServer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::agent_inbox::{FindAgent, move_lead_messages};

/// The method of a channel message.
const METHOD: &str = "notifications/claude/channel";
/// The most message ids that are remembered, so that each message is sent once. An agent never has this many pending.
const MAX_REMEMBERED: usize = 1024;
/// The most messages queued for writing. If the client does not read, the thread blocks.
const MAX_QUEUED: usize = 16;

/// The journal, and how to find the client's agent in it.
pub struct PushSource {
    /// The home of the journal.
    pub home: Home,
    /// Finds the agent.
    pub find_agent: FindAgent,
    /// The scope to use for an agent that the journal does not know.
    pub scope: fn() -> Scope,
}

/// Handle of the thread that waits for messages. The thread ends when this is dropped.
pub(super) struct Pushes {
    /// Taken by the thread when it starts.
    source: Mutex<Option<(PushSource, UnixStream)>>,
    waker: UnixStream,
    registered: Arc<Mutex<Option<Agent>>>,
}

impl Pushes {
    pub(super) fn new(source: PushSource) -> std::io::Result<Self> {
        let (woken, waker) = wake_pair()?;
        Ok(Self { source: Mutex::new(Some((source, woken))), waker, registered: Arc::default() })
    }

    /// Starts the thread on the first call.
    pub(super) fn start(&self, peer: &Peer<RoleServer>) {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((source, woken)) = source else { return };
        let (sender, mut queued) = mpsc::channel(MAX_QUEUED);
        let mut thread = McpPushThread {
            source,
            woken,
            registered: Arc::clone(&self.registered),
            sent_ids: VecDeque::new(),
            sender,
        };
        spawn_blocking(move || thread.run());
        let peer = peer.clone();
        tokio::spawn(async move {
            while let Some(message) = queued.recv().await {
                let push = CustomNotification::new(METHOD, Some(channel_message(&message)));
                if peer.send_notification(ServerNotification::CustomNotification(push)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Reports the current agent. If the thread is waiting for another agent's messages, it looks up the agent again.
    pub(super) fn agent_is(&self, agent: Option<&Agent>) {
        let registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if agent.is_some() && registered.as_ref() != agent {
            wake(&self.waker);
        }
    }
}

/// Returns the parameters of the notification. The client wraps them in an element, so text that could close it is escaped.
fn channel_message(message: &Message) -> serde_json::Value {
    let content = MessagePart::whole(message.clone()).text();
    json!({
        "content": escape_tags(&content),
        "meta": {
            "message_id": message.id.as_str(),
            "sender": escape_attribute(message.draft.sender.as_str()),
            "kind": message.draft.tag.as_str(),
        },
    })
}

struct McpPushThread {
    source: PushSource,
    /// Readable when the agent may have changed. The thread ends at end of file.
    woken: UnixStream,
    /// The agent whose messages the thread waits for.
    registered: Arc<Mutex<Option<Agent>>>,
    /// The ids of the last messages sent, oldest first.
    sent_ids: VecDeque<MessageId>,
    sender: mpsc::Sender<Message>,
}

/// Why the thread stopped waiting for an agent's messages.
enum StopReason {
    /// The server is shutting down.
    Ended,
    /// The client belongs to another agent now.
    AgentChanged,
    /// There is no journal, or its home is being removed and the doorbell is gone. The thread does not recreate it: an empty
    /// journal has no messages.
    NoJournal,
}

impl McpPushThread {
    fn run(&mut self) {
        let mut has_retried = false;
        loop {
            match self.push_for_agent() {
                Ok(StopReason::Ended) => return,
                Ok(StopReason::AgentChanged) => has_retried = false,
                // The journal is missing or broken. The next tool call wakes this thread, but not if it created the journal
                // before `registered` was cleared, so the thread checks once more before it sleeps.
                Ok(StopReason::NoJournal) | Err(_) => {
                    self.set_registered(None);
                    if has_retried && self.wait_for_wake() {
                        return;
                    }
                    has_retried = !has_retried;
                }
            }
        }
    }

    fn push_for_agent(&mut self) -> Result<StopReason, Error> {
        let Some(mut journal) = Journal::open_existing(&self.source.home)? else {
            return Ok(StopReason::NoJournal);
        };
        let agent = (self.source.find_agent)(&mut journal);
        let mut waiter = journal.wait_for_messages_of_client(agent.as_ref(), &(self.source.scope)())?;
        drop(journal);
        self.set_registered(agent.clone());
        loop {
            let Some(mut journal) = waiter.journal()? else { return Ok(StopReason::NoJournal) };
            if (self.source.find_agent)(&mut journal) != agent {
                return Ok(StopReason::AgentChanged);
            }
            let pending = match &agent {
                Some(agent) => {
                    move_lead_messages(&mut journal, agent);
                    journal.pending_for(agent, IdSource::now().unix_ms)?
                }
                None => Vec::new(),
            };
            // Keep no connection open while idle.
            drop(journal);
            for part in pending {
                if !self.push(part) {
                    return Ok(StopReason::Ended);
                }
            }
            let reason = waiter.sleep(&[self.woken.as_fd()], None, None)?;
            if reason == HookWake::Other && self.has_ended() {
                return Ok(StopReason::Ended);
            }
        }
    }

    /// Sends a message unless it was sent before. Returns false if the server has ended.
    fn push(&mut self, part: MessagePart) -> bool {
        let message = part.message;
        if self.sent_ids.contains(&message.id) || !matches!(message.draft.tag, Tag::Notice(_)) {
            return true;
        }
        if self.sent_ids.len() == MAX_REMEMBERED {
            self.sent_ids.pop_front();
        }
        self.sent_ids.push_back(message.id.clone());
        self.sender.blocking_send(message).is_ok()
    }

    fn set_registered(&self, agent: Option<Agent>) {
        *self.registered.lock().unwrap_or_else(PoisonError::into_inner) = agent;
    }

    /// Drains the wake-up stream. Returns true if the server has ended.
    fn has_ended(&mut self) -> bool {
        let mut room = [0; 64];
        loop {
            match self.woken.read(&mut room) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Waits until the thread is woken. Returns true if the server has ended.
    fn wait_for_wake(&mut self) -> bool {
        crate::proxy::wait_readable(&self.woken).is_err() || self.has_ended()
    }
}
