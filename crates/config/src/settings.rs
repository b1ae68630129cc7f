//! The settings, and what the engine has to know of them.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use ringer_core::Preferences;
use ringer_core::agent::AgentTimeouts;
use ringer_core::attention::OnePane;
use ringer_core::message::ShownKind;
use ringer_core::policy::{
    DeliveryChannel, McpChannel, McpChannels, PopupMode, RelayLink, RepositoryName, RuleSettings,
};
use ringer_term::Channel;
use schemars::JsonSchema;
use serde::Serialize;

use crate::entry::{ChannelEntry, HookEntry, Watch, WebhookEntry, WebhookWhen};
use crate::notify::{Matcher, Notify, QuietHours};
use crate::relay_entry::RelayEntry;
use crate::repository_entry::RepositoryEntry;
use crate::trust::Trusted;
use crate::{milliseconds, word};

/// The user's settings. All keys are optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "Ringer's config.toml", default, deny_unknown_fields)]
pub struct Config {
    /// Terminal notification method; `auto` uses the best one that the terminal supports.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<Channel>")]
    pub preferred_channel: Channel,
    /// How long an agent may work without any event before it counts as stuck, in milliseconds.
    #[serde(rename = "stuck_threshold_ms", serialize_with = "milliseconds::serialize")]
    #[schemars(schema_with = "milliseconds::schema")]
    pub stuck_threshold: Duration,
    /// How notifications are shown.
    pub notify: Notify,
    /// Programs that read every notification before it is shown and may change it. They run in this order.
    #[serde(rename = "hook")]
    pub hooks: Vec<HookEntry>,
    /// HTTP endpoints that receive notifications.
    #[serde(rename = "webhook")]
    pub webhooks: Vec<WebhookEntry>,
    /// Files to watch, and what to run when one changes.
    #[serde(rename = "watch")]
    pub watches: Vec<Watch>,
    /// Whether MCP servers may push messages into agents' conversations.
    pub channels: Channels,
    /// MCP servers that push messages to an agent.
    #[serde(rename = "channel")]
    pub channel_servers: Vec<ChannelEntry>,
    /// Keys of the inbox, and of panes (`pane_…`): an action, and its key or keys.
    pub keys: BTreeMap<String, String>,
    /// Colours of the inbox, and the mouse in the inbox and in panes: `name` is `terminal`, `dark`, `light` or `none`; `mouse` is `on` or `off`.
    pub theme: BTreeMap<String, String>,
    /// How Ringer draws in tmux.
    pub tmux: Tmux,
    /// Who may answer for you.
    pub answers: Answers,
    /// Other machines.
    #[serde(rename = "relay")]
    pub relays: Vec<RelayEntry>,
    /// Names of repositories, by which other machines know them.
    #[serde(rename = "repository")]
    pub repositories: Vec<RepositoryEntry>,
    /// The file all this is from.
    #[serde(skip)]
    pub path: PathBuf,
}

/// How Ringer draws in tmux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields)]
pub struct Tmux {
    /// How a ring shows in a window with one pane, which has no border: `none`, `tint` is a dark blue background, `border` is a
    /// line above the pane.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<OnePane>")]
    pub one_pane: OnePane,
}

/// Who may answer for you.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields)]
pub struct Answers {
    /// Whether your own scripts may decide for you where no terminal of yours is around them. What runs below an agent never may.
    /// You are told of what they decide.
    pub scripts: bool,
}

/// Whether MCP servers may push messages into agents' conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields)]
pub struct Channels {
    /// The switch for all of them. When it is set to false, every server is stopped at once.
    pub enabled: bool,
}

impl Default for Config {
    fn default() -> Self {
        let timeouts = AgentTimeouts::default();
        Self {
            preferred_channel: Channel::default(),
            stuck_threshold: timeouts.stuck,
            notify: Notify::default(),
            hooks: Vec::new(),
            webhooks: Vec::new(),
            watches: Vec::new(),
            channels: Channels::default(),
            channel_servers: Vec::new(),
            keys: BTreeMap::new(),
            theme: BTreeMap::new(),
            tmux: Tmux::default(),
            answers: Answers::default(),
            relays: Vec::new(),
            repositories: Vec::new(),
            path: PathBuf::new(),
        }
    }
}

/// The settings of a repository (`.ringer.toml`): the few that concern only its own agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// What is muted, in this repository only.
    pub mute: Vec<Matcher>,
    /// Hooks, which run only when they are trusted.
    pub hooks: Vec<HookEntry>,
    /// Watches, which run only when they are trusted.
    pub watches: Vec<Watch>,
    /// The file all this is from.
    pub path: PathBuf,
}

impl Config {
    /// These settings with those of a repository behind them. Whatever the repository mutes, it mutes for its own scope
    /// only: a file that came with a checkout must not silence the agents of other repositories.
    pub fn with_repository(mut self, repository: &RepositorySettings, scope: &str) -> Self {
        let own =
            repository.mute.iter().filter(|mute| mute.scope.as_deref().is_none_or(|named| named == scope));
        let narrowed = own.map(|mute| Matcher { scope: Some(scope.to_owned()), ..mute.clone() });
        self.notify.mute.extend(narrowed);
        let scope = Some(scope.to_owned());
        self.hooks
            .extend(repository.hooks.iter().cloned().map(|hook| HookEntry { scope: scope.clone(), ..hook }));
        self.watches.extend(repository.watches.iter().cloned());
        self
    }

    /// The hooks that are not switched off, in order.
    pub fn enabled_hooks(&self) -> impl Iterator<Item = &HookEntry> {
        self.hooks.iter().filter(|hook| hook.enabled)
    }

    /// What the engine has to know of these settings, under their revision. Which files they were read from is left out.
    pub fn preferences(&self, revision: u64, trusted: &Trusted) -> Preferences {
        let notify = &self.notify;
        Preferences {
            rules: RuleSettings {
                mute: notify.mute.iter().map(Matcher::to_rule).collect(),
                quiet_hours: notify.quiet_hours.iter().map(QuietHours::span).collect(),
                rate_limit: notify.rate_limit,
                subagents: notify.subagents,
                min_turn: notify.min_turn,
                idle_reminder_off: notify.idle_reminder.is_none(),
            },
            popup: match self.preferred_channel {
                Channel::NotificationsDisabled => PopupMode::Off,
                _ => notify.popup,
            },
            reorder: notify.reorder,
            no_rings: !notify.ring,
            hooks: self
                .enabled_hooks()
                .map(|hook| hook.to_rule(revision, trusted.is_trusted(hook)))
                .collect(),
            trusted_hooks: trusted.digests().map(str::to_owned).collect(),
            read_files: HashSet::new(),
            away_after: notify.away_after,
            escalate_after: self.webhooks_of(WebhookWhen::Away).next().map(|_| notify.escalate_after),
            disabled_channels: self.unconfigured_channels(),
            silent_kinds: ShownKind::all().filter(|kind| !notify.is_heard(*kind)).collect(),
        }
    }

    /// The webhooks that are called then.
    pub fn webhooks_of(&self, when: WebhookWhen) -> impl Iterator<Item = &WebhookEntry> {
        self.webhooks.iter().filter(move |webhook| webhook.when == when)
    }

    /// The channels for which nothing is set up, so that nothing is sent there and no trail speaks of them.
    fn unconfigured_channels(&self) -> Vec<DeliveryChannel> {
        let nothing = [
            (DeliveryChannel::Sound, !ShownKind::all().any(|kind| self.notify.is_heard(kind))),
            (DeliveryChannel::Command, self.notify.command.is_empty()),
            (DeliveryChannel::Webhook, self.webhooks_of(WebhookWhen::Always).next().is_none()),
        ];
        nothing.into_iter().filter(|(_, unset)| *unset).map(|(channel, _)| channel).collect()
    }

    /// The MCP servers that push messages.
    pub fn mcp_channels(&self) -> McpChannels {
        let server = |entry: &ChannelEntry| McpChannel {
            name: entry.name.clone(),
            command: entry.command.clone(),
            directory: entry.source.directory().to_owned(),
            to: entry.to.clone(),
            allow: entry.allow.clone(),
            may_answer: entry.may_answer,
        };
        McpChannels {
            enabled: self.channels.enabled,
            servers: self.channel_servers.iter().map(server).collect(),
        }
    }

    /// The links to other machines.
    pub fn relay_links(&self) -> Vec<RelayLink> {
        self.relays.iter().map(RelayEntry::link).collect()
    }

    /// The names of repositories.
    pub fn repository_names(&self) -> Vec<RepositoryName> {
        let name =
            |entry: &RepositoryEntry| RepositoryName { path: entry.path.clone(), name: entry.name.clone() };
        self.repositories.iter().map(name).collect()
    }

    /// How long an agent is waited for.
    pub fn agent_timeouts(&self) -> AgentTimeouts {
        AgentTimeouts { stuck: self.stuck_threshold, idle: self.notify.idle_reminder }
    }

    /// The settings as a file that says the same, defaults included.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}
