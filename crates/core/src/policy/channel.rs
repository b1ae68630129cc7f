//! The channels through which a notification reaches the person.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A channel through which a notification is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryChannel {
    /// A desktop notification.
    Desktop,
    /// A notification of the terminal.
    Terminal,
    /// A sound.
    Sound,
    /// The person's commands.
    Command,
    /// Webhooks.
    Webhook,
    /// Webhooks for escalation: called when the person is away, or does not react.
    #[serde(rename = "away-webhook")]
    AwayWebhook,
}

impl DeliveryChannel {
    /// All channels.
    pub const ALL: [Self; 6] =
        [Self::Desktop, Self::Terminal, Self::Sound, Self::Command, Self::Webhook, Self::AwayWebhook];

    /// The name used in the trail and in saved deliveries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Terminal => "terminal",
            Self::Sound => "sound",
            Self::Command => "command",
            Self::Webhook => "webhook",
            Self::AwayWebhook => "away-webhook",
        }
    }

    /// Returns true for a popup, which a newer one can replace.
    pub fn is_popup(self) -> bool {
        matches!(self, Self::Desktop | Self::Terminal)
    }

    /// Returns the channel with this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == word)
    }
}

impl fmt::Display for DeliveryChannel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
