//! `[notify]`: how notifications are shown.

use std::path::PathBuf;
use std::time::Duration;

use ringer_core::agent::AgentTimeouts;
use ringer_core::message::ShownKind;
use ringer_core::policy::{Mute, PopupMode, RateLimit};
use ringer_core::time::DailySpan;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::values::{span, word};

/// How notifications are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Notify {
    /// Where popups are shown: `auto` is the desktop, or the terminal if the desktop does not answer.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<PopupMode>")]
    pub popup: PopupMode,
    /// `true` plays the desktop theme's sound; a string is a file to play.
    #[schemars(schema_with = "sound_schema")]
    pub sound: SoundSetting,
    /// A program to run for every notification, and its arguments.
    pub command: Vec<String>,
    /// Whether a pane with an unread notification has a ring.
    pub ring: bool,
    /// Which terminals have a mark in their title while a notification is unread: `auto` where the title can be read back
    /// (tmux panes, kitty, `ringer run`), `always` in others too.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<TitleMark>")]
    pub title_mark: TitleMark,
    /// Whether a pane flashes once when it gets a notification.
    pub flash: bool,
    /// Whether to send the event `reorder` when a workspace gets a notification, for programs that sort workspaces. Ringer itself
    /// moves nothing.
    pub reorder: bool,
    /// Daily time spans without popups, sounds, commands and webhooks, like `22:00-07:00`.
    #[schemars(schema_with = "quiet_hours_schema")]
    pub quiet_hours: Vec<QuietHours>,
    /// What to mute.
    pub mute: Vec<Matcher>,
    /// Maximum rate per sender, like `30/min` (`s`, `min`, `h`) or `off`. The rest is listed as unread only.
    #[serde(serialize_with = "write_rate")]
    #[schemars(schema_with = "rate_schema")]
    pub rate_limit: Option<RateLimit>,
    /// Also notify about subagents.
    pub subagents: bool,
    /// Where it is not known whether you look at the pane, the end of a turn shorter than this makes no popup and no sound.
    /// `0s` turns this off.
    #[serde(serialize_with = "span::serialize")]
    #[schemars(schema_with = "span::schema")]
    pub min_turn: Duration,
    /// How long after the end of a turn to remind you that the agent is waiting, or `off`. The reminder makes no popup and no
    /// sound if the end of the turn made a popup.
    #[serde(serialize_with = "span::serialize_or_off")]
    #[schemars(schema_with = "span::schema_or_off")]
    pub idle_reminder: Option<Duration>,
    /// How long a question, a permission, a stuck agent or an error may stay open before it goes to webhooks with `when = "away"`.
    #[serde(serialize_with = "span::serialize")]
    #[schemars(schema_with = "span::schema")]
    pub escalate_after: Duration,
    /// How long a program that reports your typing may report none before you count as away; or `off`.
    #[serde(serialize_with = "span::serialize_or_off")]
    #[schemars(schema_with = "span::schema_or_off")]
    pub away_after: Option<Duration>,
    /// Other sounds for some kinds: `true`, `false` or a file to play.
    #[serde(serialize_with = "write_sounds")]
    #[schemars(schema_with = "sounds_schema")]
    pub sounds: Vec<(ShownKind, SoundSetting)>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            popup: PopupMode::Auto,
            sound: SoundSetting::Off,
            command: Vec::new(),
            ring: true,
            title_mark: TitleMark::Auto,
            flash: true,
            reorder: false,
            quiet_hours: Vec::new(),
            mute: Vec::new(),
            rate_limit: Some(RateLimit { count: 30, window: Duration::from_mins(1) }),
            subagents: false,
            min_turn: Duration::from_secs(10),
            idle_reminder: AgentTimeouts::default().idle,
            escalate_after: Duration::from_mins(2),
            away_after: Some(Duration::from_mins(3)),
            sounds: Vec::new(),
        }
    }
}

/// The terminals that have a mark in their title while a notification is unread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TitleMark {
    /// Terminals whose title can be read back: tmux panes, kitty, `ringer run`.
    #[default]
    Auto,
    /// Others too, using the terminal's title stack. A title that a program sets in the meantime is lost.
    Always,
    /// No terminal.
    Off,
}

impl word::Word for TitleMark {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("auto", Self::Auto), ("always", Self::Always), ("off", Self::Off)]
    }
}

/// The sound of a notification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SoundSetting {
    /// No sound.
    #[default]
    Off,
    /// The sound of the desktop's theme.
    Theme,
    /// This file.
    File(PathBuf),
}

impl Serialize for SoundSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Theme => serializer.serialize_bool(true),
            Self::File(path) => path.serialize(serializer),
        }
    }
}

impl Notify {
    /// Returns true if notifications of this kind make a sound.
    pub fn is_heard(&self, kind: ShownKind) -> bool {
        *self.sound_of(kind) != SoundSetting::Off
    }

    /// Returns the sound of notifications of this kind.
    pub fn sound_of(&self, kind: ShownKind) -> &SoundSetting {
        self.sounds.iter().find(|(own, _)| *own == kind).map_or(&self.sound, |(_, sound)| sound)
    }
}

fn write_sounds<S: Serializer>(
    sounds: &[(ShownKind, SoundSetting)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(sounds.iter().map(|(kind, sound)| (kind.as_str(), sound)))
}

fn sounds_schema(generator: &mut SchemaGenerator) -> Schema {
    let kinds: serde_json::Map<String, serde_json::Value> =
        ShownKind::all().map(|kind| (kind.to_string(), sound_schema(generator).to_value())).collect();
    json_schema!({ "type": "object", "properties": kinds, "additionalProperties": false })
}

fn sound_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["boolean", "string"], "minLength": 1 })
}

/// A daily time span, with its original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHours {
    text: String,
    span: DailySpan,
}

impl QuietHours {
    /// Parses a span like `22:00-07:00`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self { text: text.to_owned(), span: DailySpan::parse(text)? })
    }

    /// Returns the parsed span.
    pub fn span(&self) -> DailySpan {
        self.span
    }
}

impl Serialize for QuietHours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

fn quiet_hours_schema(_: &mut SchemaGenerator) -> Schema {
    let time = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9]";
    json_schema!({
        "type": "array",
        "items": { "type": "string", "pattern": format!(r"^\s*{time}\s*-\s*{time}\s*$") },
    })
}

/// What to mute. All given fields must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(default, deny_unknown_fields, extend("minProperties" = 1))]
pub struct Matcher {
    /// The sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub agent: Option<String>,
    /// The scope: a repository's id, or `global`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub scope: Option<String>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "word::schema::<ShownKind>")]
    pub kind: Option<ShownKind>,
}

impl Matcher {
    /// Converts the matcher to a rule of the engine.
    pub(crate) fn to_rule(&self) -> Mute {
        Mute { agent: self.agent.clone(), scope: self.scope.clone(), kind: self.kind }
    }
}

const RATE_OFF: &str = "off";

/// The error of [`read_rate`].
pub(crate) struct NotARate;

/// Parses a rate like `30/min`. `off` is `None`.
pub(crate) fn read_rate(text: &str) -> Result<Option<RateLimit>, NotARate> {
    if text == RATE_OFF { Ok(None) } else { RateLimit::parse(text).map(Some).ok_or(NotARate) }
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn write_rate<S: Serializer>(rate: &Option<RateLimit>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(rate) = rate else { return serializer.serialize_str(RATE_OFF) };
    let unit = match rate.window.as_secs() {
        1 => "s",
        60 => "min",
        _ => "h",
    };
    serializer.serialize_str(&format!("{}/{unit}", rate.count))
}

fn rate_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^(off|\s*\+?0*[1-9][0-9]*\s*/\s*(s|min|h)\s*)$" })
}
