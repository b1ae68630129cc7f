//! The settings, their conversion to the engine's preferences, and their JSON schema.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use ringer_core::Preferences;
use ringer_core::agent::AgentTimeouts;
use ringer_core::message::ShownKind;
use ringer_core::policy::{DeliveryChannel, PopupMode, RuleSettings};
use ringer_term::Channel;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::entry::{ChannelEntry, HookEntry, Watch, WebhookEntry, WebhookWhen};
use crate::notify::{Matcher, Notify, QuietHours, TitleMark};
use crate::problem::ConfigErrors;
use crate::relay_entry::{RelayEntry, RelayLink, RepositoryEntry};
use crate::rules::Rules;
use crate::trust::Trusted;
use crate::values::{milliseconds, word};

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
    /// The file that these settings were read from.
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

/// How a ring is shown in a window with one pane (`tmux.one_pane`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnePane {
    /// It is not shown: the badge in the window list is enough.
    #[default]
    None,
    /// The background of the pane is dark blue.
    Tint,
    /// The pane gets a title line above it, which counts as a border.
    Border,
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

/// The settings of a repository (`.ringer.toml`), which apply only to its own agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// Mute rules; they apply in this repository only.
    pub mute: Vec<Matcher>,
    /// Hooks. They run only if the person trusts them.
    pub hooks: Vec<HookEntry>,
    /// Watches. They run only if the person trusts them.
    pub watches: Vec<Watch>,
    /// The file that these settings were read from.
    pub path: PathBuf,
}

impl Config {
    /// Appends the settings of a repository. Its mute rules apply to its own scope only: a file that came with a checkout
    /// must not silence the agents of other repositories.
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

    /// Returns the enabled hooks in order.
    pub fn enabled_hooks(&self) -> impl Iterator<Item = &HookEntry> {
        self.hooks.iter().filter(|hook| hook.enabled)
    }

    /// Returns the engine's view of these settings. `revision` identifies them; the list of files that were read stays empty.
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

    /// Returns the webhooks with this `when`.
    pub fn webhooks_of(&self, when: WebhookWhen) -> impl Iterator<Item = &WebhookEntry> {
        self.webhooks.iter().filter(move |webhook| webhook.when == when)
    }

    /// Channels without any configuration. Nothing is sent there, and they do not appear in delivery trails.
    fn unconfigured_channels(&self) -> Vec<DeliveryChannel> {
        let nothing = [
            (DeliveryChannel::Sound, !ShownKind::all().any(|kind| self.notify.is_heard(kind))),
            (DeliveryChannel::Command, self.notify.command.is_empty()),
            (DeliveryChannel::Webhook, self.webhooks_of(WebhookWhen::Always).next().is_none()),
        ];
        nothing.into_iter().filter(|(_, unset)| *unset).map(|(channel, _)| channel).collect()
    }

    /// Returns the links to other machines.
    pub fn relay_links(&self) -> Vec<RelayLink> {
        self.relays.iter().map(RelayEntry::link).collect()
    }

    /// Returns which titles may be marked: none if terminals show no notifications at all.
    pub fn title_mark(&self) -> TitleMark {
        match self.preferred_channel {
            Channel::NotificationsDisabled => TitleMark::Off,
            _ => self.notify.title_mark,
        }
    }

    /// Returns the timeouts after which an agent counts as stuck or gets a reminder.
    pub fn agent_timeouts(&self) -> AgentTimeouts {
        AgentTimeouts { stuck: self.stuck_threshold, idle: self.notify.idle_reminder }
    }

    /// Returns the settings as TOML, defaults included.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// The result of reading the file again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The same settings.
    Unchanged,
    /// New settings, which are now in force.
    Changed,
    /// The file is valid again and equals the last good one.
    Mended,
    /// The file has problems. The last good settings stay in force.
    Broken(ConfigErrors),
}

/// The last valid settings. A file that is temporarily broken changes nothing.
///
/// ```
/// use std::path::Path;
/// use ringer_config::{Change, LastGood, Rules, parse};
///
/// let read = |text| parse(Path::new("config.toml"), None, text, &Rules::default());
/// let mut settings = LastGood::default();
/// assert_eq!(settings.reload(read("[notify]\nring = false")), Change::Changed);
/// assert!(matches!(settings.reload(read("[notify")), Change::Broken(_)));
/// assert!(!settings.config().notify.ring);
/// assert_eq!(settings.reload(read("[notify]\nring = false")), Change::Mended);
/// ```
#[derive(Debug, Clone, Default)]
pub struct LastGood {
    config: Config,
    errors: Option<ConfigErrors>,
}

impl LastGood {
    /// Starts with the result of the first read. If it failed, the defaults are in force.
    pub fn new(result: Result<Config, ConfigErrors>) -> Self {
        let mut settings = Self::default();
        settings.reload(result);
        settings
    }

    /// Applies the result of reading the file.
    pub fn reload(&mut self, result: Result<Config, ConfigErrors>) -> Change {
        match result {
            Err(errors) => {
                self.errors = Some(errors.clone());
                Change::Broken(errors)
            }
            Ok(config) => {
                let was_broken = self.errors.take().is_some();
                if config != self.config {
                    self.config = config;
                    Change::Changed
                } else if was_broken {
                    Change::Mended
                } else {
                    Change::Unchanged
                }
            }
        }
    }

    /// Returns the settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the problems of the last read, if it failed.
    pub fn errors(&self) -> Option<&ConfigErrors> {
        self.errors.as_ref()
    }
}

/// Returns the JSON schema of the person's file (draft 7, which TOML extensions of all editors support).
fn schema(rules: &Rules) -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>().to_value();
    schema["definitions"]["Webhook"]["properties"]["kind"]["enum"] = rules.webhooks.names.clone().into();
    schema
}

/// Returns the text of the schema, as in `docs/config.schema.json`.
pub fn schema_text(rules: &Rules) -> String {
    format!("{:#}\n", schema(rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{ANSWERS, CHANNEL, CHANNELS, HOOK, MATCHER, NOTIFY, ROOT, TMUX, WATCH, WEBHOOK};
    use crate::relay_entry::{RELAY, REPOSITORY};

    #[test]
    fn what_is_read_and_what_is_documented_are_the_same() {
        let schema = schema(&Rules::default());
        let check = |of: &Value, keys: &[&str]| {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            let mut documented: Vec<&str> =
                of["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            documented.sort_unstable();
            assert_eq!(documented, keys);
            assert_eq!(of["additionalProperties"], Value::Bool(false));
            assert!(of["properties"].as_object().unwrap().values().all(|key| key["description"].is_string()));
        };
        check(&schema, &ROOT);
        check(&schema["definitions"]["Notify"], &NOTIFY);
        check(&schema["definitions"]["Tmux"], &TMUX);
        check(&schema["definitions"]["Answers"], &ANSWERS);
        check(&schema["definitions"]["Matcher"], &MATCHER);
        check(&schema["definitions"]["Hook"], &HOOK);
        check(&schema["definitions"]["Webhook"], &WEBHOOK);
        check(&schema["definitions"]["Watch"], &WATCH);
        check(&schema["definitions"]["Channels"], &CHANNELS);
        check(&schema["definitions"]["Channel"], &CHANNEL);
        check(&schema["definitions"]["Relay"], &RELAY);
        check(&schema["definitions"]["Repository"], &REPOSITORY);
    }

    #[test]
    fn the_schema_knows_the_defaults() {
        let schema = schema(&Rules::default());
        assert_eq!(schema["properties"]["stuck_threshold_ms"]["default"], 600_000);
        let notify = &schema["definitions"]["Notify"]["properties"];
        assert_eq!(notify["min_turn"]["default"], "10s");
        assert_eq!(notify["idle_reminder"]["default"], "60s");
        assert_eq!(schema["definitions"]["Notify"]["properties"]["rate_limit"]["default"], "30/min");
        assert_eq!(schema["definitions"]["Hook"]["properties"]["timeout_ms"]["default"], 20_000);
        assert_eq!(schema["definitions"]["Hook"]["required"], serde_json::json!(["id", "command"]));
        assert_eq!(schema["definitions"]["Webhook"]["required"], serde_json::json!(["kind", "url"]));
        assert_eq!(schema["definitions"]["Watch"]["required"], serde_json::json!(["paths", "command"]));
    }
}
