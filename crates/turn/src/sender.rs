//! The sender of a message over an MCP channel.

use std::fmt;

use ringer_core::message::{InvalidName, validate_name};
use serde::{Deserialize, Serialize};

use crate::channel::ChannelMessage;
use crate::source::McpServer;

/// The sender of a message: one user of a chat service, not the room, which may have guests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "SavedSender")]
pub struct ChannelSender {
    server: McpServer,
    user: String,
}

impl ChannelSender {
    /// Checks a name.
    pub fn new(server: McpServer, user: &str) -> Result<Self, InvalidName> {
        validate_name("user", user)?;
        Ok(Self { server, user: user.to_owned() })
    }

    /// The server that the sender writes through.
    pub fn server(&self) -> &McpServer {
        &self.server
    }

    /// Who it is, as the server says.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The sender of a message: its server, and its `user`. A message that does not say has none.
    pub fn of(message: &ChannelMessage) -> Option<Self> {
        Self::new(message.server().clone(), message.meta().get("user")?).ok()
    }
}

impl fmt::Display for ChannelSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.user, self.server)
    }
}

/// A sender as it is saved, not validated yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSender {
    server: McpServer,
    user: String,
}

impl TryFrom<SavedSender> for ChannelSender {
    type Error = InvalidName;

    fn try_from(saved: SavedSender) -> Result<Self, InvalidName> {
        Self::new(saved.server, &saved.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Meta;
    use crate::operator::Operator;
    use crate::pairing::Access;
    use std::time::Duration;

    fn message(meta: &[(&str, &str)]) -> ChannelMessage {
        let (meta, _) = Meta::filtered(meta.iter().copied());
        ChannelMessage::new(McpServer::new("slack").unwrap(), "hi", meta).unwrap()
    }

    #[test]
    fn the_gate_is_on_the_sender_not_the_room() {
        let alice = ChannelSender::new(McpServer::new("slack").unwrap(), "alice").unwrap();
        let mut access = Access::default();
        let code = access.offer_code(Duration::ZERO, &alice, [1; 3]).unwrap();
        access.approve(Duration::ZERO, &Operator::at_the_keyboard(), &code.to_string()).unwrap();
        let check = |meta: &[(&str, &str)], admitted: bool| {
            let sender = ChannelSender::of(&message(meta));
            assert_eq!(sender.is_some_and(|sender| access.admit(&sender).is_some()), admitted, "{meta:?}");
        };
        check(&[("user", "alice"), ("chat_id", "1")], true);
        check(&[("user", "alice"), ("chat_id", "2")], true);
        check(&[("user", "mallory"), ("chat_id", "1")], false);
        check(&[("chat_id", "1")], false);
        let elsewhere = ChannelSender::new(McpServer::new("discord").unwrap(), "alice").unwrap();
        assert!(access.admit(&elsewhere).is_none(), "the same name on another server is another sender");
    }

    #[test]
    fn a_sender_is_checked_wherever_it_comes_from() {
        let read = |text: &str| serde_json::from_str::<ChannelSender>(text);
        assert_eq!(read(r#"{"server":"slack","user":"alice"}"#).unwrap().to_string(), "alice on slack");
        for text in [
            r#"{"server":"slack","user":""}"#,
            r#"{"server":"slack","user":"a\nb"}"#,
            r#"{"server":"","user":"alice"}"#,
            r#"{"server":"slack","user":"alice","admin":true}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(ChannelSender::of(&message(&[("user", "a\nb")])), None);
    }
}
