//! `[notify]`: how notifications are shown.

use std::path::PathBuf;
use std::time::Duration;

use ringer_core::Scope;
use ringer_core::agent::AgentTimeouts;
use ringer_core::message::ShownKind;
use ringer_core::policy::{Mute, PopupMode, RateLimit};
use ringer_core::time::DailySpan;
use serde_json::{Map, Value, json};
use toml::de::DeValue;

use crate::reader::Field;
use crate::table::{FieldType, SettingValue, Settings, Shape, settings};
use crate::types::{
    Words, command, list, name, optional, path, positive_span_or_off, span, span_or_off, switch, table, text,
    word,
};

settings! {
    /// How notifications are shown.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Notify("Notify"): Default {
        /// Where popups are shown: `auto` (the desktop, or the terminal if the desktop does not answer), `desktop`, `terminal`,
        /// `both`, `off`.
        pub popup: PopupMode = PopupMode::Auto => word(),
        /// `false`, `true` (the desktop theme's sound), or a file to play.
        pub sound: SoundSetting = SoundSetting::Off => sound(),
        /// A program to run for every notification, and its arguments, like `["notify-my-lamp", "--blue"]`.
        pub command: Vec<String> = Vec::new() => command(),
        /// Whether a pane with an unread notification has a ring.
        pub ring: bool = true => switch(),
        /// Which terminals have a mark in their title while a notification is unread: `auto` (where the title can be read back:
        /// tmux panes, kitty, `ringer run`), `always` (others too; a program that sets its title meanwhile loses that title),
        /// `off`.
        pub title_mark: TitleMark = TitleMark::Auto => word(),
        /// Whether a pane flashes once when it gets a notification. Tmux and plain terminals do not flash.
        pub flash: bool = true => switch(),
        /// Whether to send the event `reorder` when a workspace gets a notification, for programs that sort workspaces
        /// (`ringer watch`). Ringer itself moves nothing.
        pub reorder: bool = false => switch(),
        /// Daily time spans without popups, sounds, commands and webhooks, like `["22:00-07:00"]`. Rings and badges stay. A span
        /// may cross midnight.
        pub quiet_hours: Vec<QuietHours> = Vec::new() => list(quiet_span(), "a list of spans like \"22:00-07:00\""),
        /// What to mute, by agent, scope or kind, like `[{ agent = "noisy" }, { scope = "global", kind = "status" }]`.
        #[also_in(repository)]
        pub mute: Vec<Matcher> = Vec::new() => list(matcher(), "a list of tables like { agent = \"noisy\" }"),
        /// Maximum rate per sender: a number per `s`, `min` or `h`, or `off`. The rest is listed as unread, but makes no popup,
        /// sound, command or webhook, and does not escalate.
        pub rate_limit: Option<RateLimit> = Some(RateLimit { count: 30, window: Duration::from_mins(1) }) => rate(),
        /// Also notify about subagents.
        pub subagents: bool = false => switch(),
        /// The end of a turn shorter than this makes no popup and no sound where it is not known whether you look at the pane:
        /// you most likely do. `0s` turns this off.
        pub min_turn: Duration = Duration::from_secs(10) => span(),
        /// How long after the end of a turn to remind you that the agent is waiting, or `off`. The reminder makes no popup and
        /// no sound if the end of the turn made a popup.
        pub idle_reminder: Option<Duration> = AgentTimeouts::default().idle => span_or_off(),
        /// How long a question, a permission, a stuck agent or an error may stay open before it goes to webhooks with
        /// `when = "away"`.
        pub escalate_after: Duration = Duration::from_mins(2) => span(),
        /// How long a program that reports your typing may report none before you count as away, or `off`.
        pub away_after: Option<Duration> = Some(Duration::from_mins(3)) => positive_span_or_off(),
        /// Other sounds for some kinds (`complete`, `waiting`, `permission`, `idle`, `question`, `stuck`, `error`, `status`):
        /// `true`, `false` or a file to play.
        #[lines("question = \"~/sounds/ding.oga\"", "complete = false")]
        pub sounds: Vec<(ShownKind, SoundSetting)> = Vec::new() => sounds(),
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

impl Words for TitleMark {
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

/// `true`, `false` or a file to play.
fn sound() -> FieldType<SoundSetting> {
    FieldType::new(
        |field| match field.value() {
            DeValue::Boolean(false) => Some(SoundSetting::Off),
            DeValue::Boolean(true) => Some(SoundSetting::Theme),
            DeValue::String(_) => (path().read)(field).map(SoundSetting::File),
            _ => field.expected("true, false or a file to play"),
        },
        |sound| match sound {
            SoundSetting::Off => SettingValue::Boolean(false),
            SoundSetting::Theme => SettingValue::Boolean(true),
            SoundSetting::File(path) => SettingValue::text(&path.to_string_lossy()),
        },
        sound_schema,
    )
}

fn sound_schema() -> Value {
    json!({ "type": ["boolean", "string"], "minLength": 1 })
}

/// A table of kinds of notifications, each with its sound.
fn sounds() -> FieldType<Vec<(ShownKind, SoundSetting)>> {
    FieldType {
        read: Box::new(|field| {
            let kinds: Vec<&str> = ShownKind::all().map(ShownKind::as_str).collect();
            let section = field.section("a table of kinds")?.with_keys(&kinds, |_| None);
            let read = |kind: ShownKind| Some((kind, (sound().read)(&section.get(kind.as_str())?)?));
            Some(ShownKind::all().filter_map(read).collect())
        }),
        write: Box::new(|sounds| {
            let write = |(kind, own): &(ShownKind, _)| Some((kind.to_string(), (sound().write)(own)?));
            Some(SettingValue::Table(sounds.iter().filter_map(write).collect()))
        }),
        shape: Box::new(|_| {
            let kinds: Map<String, Value> =
                ShownKind::all().map(|kind| (kind.to_string(), sound_schema())).collect();
            Shape::Map(json!({ "type": "object", "properties": kinds, "additionalProperties": false }))
        }),
    }
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

/// A time span of a day.
fn quiet_span() -> FieldType<QuietHours> {
    FieldType::new(
        |field| {
            let text = field.text()?;
            let expected = "expected a span of the day like \"22:00-07:00\"";
            QuietHours::parse(text).or_else(|| field.wrong(format!("has {text:?}; {expected}"), None))
        },
        |hours| SettingValue::text(&hours.text),
        || {
            let time = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9]";
            json!({ "type": "string", "pattern": format!(r"^\s*{time}\s*-\s*{time}\s*$") })
        },
    )
}

settings! {
    /// What to mute. All given fields must match.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Matcher("Matcher"): Default {
        /// The sender.
        pub agent: Option<String> = None => optional(name("agent")),
        /// The scope: a repository's id, or `global`.
        pub scope: Option<String> = None => optional(scope()),
        /// The kind.
        pub kind: Option<ShownKind> = None => optional(word()),
    }
}

impl Matcher {
    /// Converts the matcher to a rule of the engine.
    pub(crate) fn to_rule(&self) -> Mute {
        Mute { agent: self.agent.clone(), scope: self.scope.clone(), kind: self.kind }
    }
}

fn scope() -> FieldType<String> {
    let read = |field: &Field<'_, '_>| {
        let wrong = |invalid| field.wrong(format!("cannot be used: {invalid}"), None);
        Scope::new(field.text()?).map_or_else(wrong, |scope| Some(scope.as_str().to_owned()))
    };
    text(read, || json!({ "minLength": 1 }))
}

/// A table with at least one field of a [`Matcher`].
fn matcher() -> FieldType<Matcher> {
    let read = |field: &Field<'_, '_>| {
        let section = field.section("a table like { agent = \"noisy\" }")?.with_keys(Matcher::KEYS, |_| None);
        let matcher = Matcher::read(&section);
        if section.fields().next().is_none() {
            let what = "has an empty table, which matches nothing; expected agent, scope or kind";
            return field.wrong(what, None);
        }
        matcher
    };
    FieldType { read: Box::new(read), ..table() }
}

const RATE_OFF: &str = "off";

/// A rate like `30/min`, or `off`, which is `None`.
fn rate() -> FieldType<Option<RateLimit>> {
    FieldType::new(
        |field| match field.text()? {
            RATE_OFF => Some(None),
            text => RateLimit::parse(text).map(Some).or_else(|| {
                let expected = "expected a rate like \"30/min\" (per s, min or h), or \"off\"";
                field.wrong(format!("is {text:?}; {expected}"), None)
            }),
        },
        |rate| {
            let Some(rate) = rate else { return SettingValue::text(RATE_OFF) };
            let unit = match rate.window.as_secs() {
                1 => "s",
                60 => "min",
                _ => "h",
            };
            SettingValue::Text(format!("{}/{unit}", rate.count))
        },
        || json!({ "type": "string", "pattern": r"^(off|\s*\+?0*[1-9][0-9]*\s*/\s*(s|min|h)\s*)$" }),
    )
}
