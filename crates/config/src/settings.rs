//! The settings of the whole file, and their conversion to the engine's preferences.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use ringer_core::Preferences;
use ringer_core::agent::AgentTimeouts;
use ringer_core::message::ShownKind;
use ringer_core::policy::{DeliveryChannel, PopupMode, RuleSettings};
use ringer_term::Channel;

use crate::entry::{ChannelEntry, HookEntry, Watch, WebhookEntry, WebhookWhen};
use crate::notify::{Matcher, Notify, QuietHours, TitleMark};
use crate::problem::ConfigErrors;
use crate::relay_entry::{MAX_RELAYS, MAX_REPOSITORIES, RelayEntry, RelayLink, RepositoryEntry};
use crate::table::settings;
use crate::trust::Trusted;
use crate::types::{
    Words, at_most, checked_tables, milliseconds, strings, switch, table, tables, unique, word,
};

/// Each MCP server needs a process and a thread of the hub.
const MAX_CHANNELS: usize = 16;

settings! {
    /// The user's settings. All keys are optional.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Config("Config"): Default {
        /// Terminal notification method; `auto` uses the best one that the terminal supports. `notifications_disabled`: no popup
        /// of any kind, on the desktop either.
        pub preferred_channel: Channel = Channel::default() => word(),
        /// How long an agent may work without any event before it counts as stuck, in milliseconds.
        #[key("stuck_threshold_ms")]
        pub stuck_threshold: Duration = AgentTimeouts::default().stuck => milliseconds(),
        /// How notifications are shown.
        #[also_in(repository)]
        pub notify: Notify = Notify::default() => table(),
        /// Programs that read every notification before it is shown and may change it. They run in this order; each reads what
        /// the one before it left.
        #[key("hook")]
        #[also_in(repository)]
        pub hooks: Vec<HookEntry> = Vec::new() => unique("id", tables()),
        /// HTTP endpoints that receive notifications.
        #[key("webhook")]
        pub webhooks: Vec<WebhookEntry> = Vec::new() => unique("id", checked_tables(WebhookEntry::check)),
        /// Files to watch, and what to run when one changes.
        #[key("watch")]
        #[also_in(repository)]
        pub watches: Vec<Watch> = Vec::new() => tables(),
        /// Whether MCP servers may push messages into agents' conversations.
        pub channels: Channels = Channels::default() => table(),
        /// MCP servers that push messages to an agent.
        #[key("channel")]
        pub channel_servers: Vec<ChannelEntry> = Vec::new() => unique("name", at_most(MAX_CHANNELS, tables())),
        /// Keys of the inbox, and of panes (`pane_…`): an action, and its key or keys.
        #[lines("answer = \"a\"", "quit = \"q ctrl-c\"", "pane_prefix = \"ctrl-g\"")]
        pub keys: BTreeMap<String, String> = BTreeMap::new() => strings(),
        /// Colours of the inbox, and the mouse in the inbox and in panes: `name` is `terminal` (its own 16 colours), `dark`,
        /// `light` or `none`; `mouse` is `on` or `off`.
        #[lines("name = \"dark\"", "mouse = \"off\"")]
        pub theme: BTreeMap<String, String> = BTreeMap::new() => strings(),
        /// How Ringer draws in tmux.
        pub tmux: Tmux = Tmux::default() => table(),
        /// Who may answer for you.
        pub answers: Answers = Answers::default() => table(),
        /// Other machines, in one inbox with this one: `ringer relay add` writes these tables. A machine has either `ssh` or
        /// `command`; a team of machines has `nats`.
        #[key("relay")]
        pub relays: Vec<RelayEntry> = Vec::new() => at_most(MAX_RELAYS, checked_tables(RelayEntry::check)),
        /// Names of repositories, by which other machines know them.
        #[key("repository")]
        pub repositories: Vec<RepositoryEntry> = Vec::new() => at_most(MAX_REPOSITORIES, checked_tables(RepositoryEntry::check)),
    } from section {
        /// The file that these settings were read from.
        pub path: PathBuf = section.source().path,
    }
}

settings! {
    /// How Ringer draws in tmux.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tmux("Tmux"): Default {
        /// How a ring shows in a window with one pane, which has no border: `none` (the window list has a badge), `tint` (a dark
        /// blue background), `border` (a line above the pane, which is a line smaller meanwhile).
        pub one_pane: OnePane = OnePane::default() => word(),
    }
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

impl Words for OnePane {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("none", Self::None), ("tint", Self::Tint), ("border", Self::Border)]
    }
}

settings! {
    /// Who may answer for you.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Answers("Answers"): Default {
        /// Whether your own scripts may answer, trust, mute and type into panes for you where no terminal of yours is around
        /// them. What runs below an agent never may. You are told of what they decide.
        pub scripts: bool = false => switch(),
    }
}

settings! {
    /// Whether MCP servers may push messages into agents' conversations.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Channels("Channels"): Default {
        /// The switch for all of them. When it is set to false, every server is stopped at once.
        pub enabled: bool = false => switch(),
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
