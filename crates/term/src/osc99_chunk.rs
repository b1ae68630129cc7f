//! One chunk of OSC 99: its keys and its payload.

use std::borrow::Cow;

use crate::base64;
use crate::event::Osc99Metadata;
use crate::osc99::{MAX_ENCODED, MAX_PLAIN, NotificationId, Occasion, Urgency};

/// The longest value of a key, in bytes; names of sounds and icons are far shorter. Longer ones are ignored.
const MAX_KEY: usize = 256;
/// The most icons or types of one notification. Further ones are ignored, however many chunks add some.
const MAX_LIST: usize = 16;

/// The types of a chunk's payload.
pub(crate) enum PayloadType {
    Title,
    Body,
    Buttons,
    Icon,
    Close,
    Alive,
    Query,
    Unknown,
}

impl PayloadType {
    fn named(name: &str) -> Self {
        match name {
            "title" | "" => Self::Title,
            "body" => Self::Body,
            "buttons" => Self::Buttons,
            "icon" => Self::Icon,
            "close" => Self::Close,
            "alive" => Self::Alive,
            "?" => Self::Query,
            _ => Self::Unknown,
        }
    }
}

/// One key with its value. Keys are applied in the order of arrival.
#[derive(Debug)]
pub(crate) enum Key {
    Urgency(Urgency),
    Occasion(Occasion),
    /// `None` for an action that the value does not name.
    Actions {
        focus: Option<bool>,
        report: Option<bool>,
    },
    ReportClose(bool),
    Application(String),
    Icon(String),
    IconCache(NotificationId),
    Sound(String),
    Type(String),
    Expires(Option<u32>),
}

impl Key {
    /// Its size in memory.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Application(text) | Self::Icon(text) | Self::Sound(text) | Self::Type(text) => {
                    text.len()
                }
                Self::IconCache(id) => id.as_str().len(),
                _ => 0,
            }
    }

    pub(crate) fn apply_to(&self, metadata: &mut Osc99Metadata) {
        match self {
            Self::Urgency(urgency) => metadata.urgency = *urgency,
            Self::Occasion(occasion) => metadata.occasion = *occasion,
            Self::Actions { focus, report } => {
                metadata.actions.focus = focus.unwrap_or(metadata.actions.focus);
                metadata.actions.report = report.unwrap_or(metadata.actions.report);
            }
            Self::ReportClose(report) => metadata.report_close = *report,
            Self::Application(name) => metadata.application = Some(name.clone()),
            Self::Icon(name) if metadata.icons.len() < MAX_LIST => metadata.icons.push(name.clone()),
            Self::IconCache(key) => metadata.icon_key = Some(key.clone()),
            Self::Sound(name) => metadata.sound = Some(name.clone()),
            Self::Type(name) if metadata.types.len() < MAX_LIST => metadata.types.push(name.clone()),
            Self::Icon(_) | Self::Type(_) => {}
            Self::Expires(expires) => metadata.expires_ms = *expires,
        }
    }
}

/// One sequence of OSC 99.
pub(crate) struct Chunk<'a> {
    pub(crate) id: Option<NotificationId>,
    pub(crate) part: PayloadType,
    pub(crate) done: bool,
    pub(crate) keys: Vec<Key>,
    pub(crate) payload: Cow<'a, [u8]>,
}

impl<'a> Chunk<'a> {
    /// Parses a chunk. `None` for one that a terminal would drop: no second `;`, a payload over the limit, or a payload that
    /// is marked as base64 and is not.
    pub(crate) fn parse(chunk: &'a [u8]) -> Option<Self> {
        let semicolon = chunk.iter().position(|byte| *byte == b';')?;
        let metadata = std::str::from_utf8(&chunk[..semicolon]).ok()?;
        let payload = &chunk[semicolon + 1..];
        let (mut id, mut part, mut done, mut encoded, mut keys) = (None, None, None, None, Vec::new());
        for (key, value) in metadata.split(':').filter_map(|pair| pair.split_once('=')) {
            let value = value.trim();
            // For these four keys the first value counts, for the others the last.
            match key.trim() {
                "i" => _ = id.get_or_insert(value),
                "p" => _ = part.get_or_insert(value),
                "d" => _ = done.get_or_insert(value),
                "e" => _ = encoded.get_or_insert(value),
                key => keys.extend(read_key(key, value)),
            }
        }
        let encoded = encoded == Some("1");
        if payload.len() > if encoded { MAX_ENCODED } else { MAX_PLAIN } {
            return None;
        }
        Some(Self {
            id: id.and_then(|id| NotificationId::new(id).ok()),
            part: part.map_or(PayloadType::Title, PayloadType::named),
            done: done != Some("0"),
            keys,
            payload: if encoded { base64::decode(payload)?.into() } else { payload.into() },
        })
    }
}

fn read_key(key: &str, value: &str) -> Option<Key> {
    if value.len() > MAX_KEY {
        return None;
    }
    // A value that does not decode is kept unchanged: older clients sent plain words here.
    let text = || match base64::decode(value.as_bytes()).map(String::from_utf8) {
        Some(Ok(text)) => text,
        _ => value.to_owned(),
    };
    match key {
        "a" => Some(read_actions(value)),
        "u" => match value {
            "0" => Some(Key::Urgency(Urgency::Low)),
            "2" => Some(Key::Urgency(Urgency::Critical)),
            _ => Some(Key::Urgency(Urgency::Normal)),
        },
        "o" => match value {
            "unfocused" => Some(Key::Occasion(Occasion::Unfocused)),
            "invisible" => Some(Key::Occasion(Occasion::Invisible)),
            _ => Some(Key::Occasion(Occasion::Always)),
        },
        "c" => Some(Key::ReportClose(value == "1")),
        "f" => Some(Key::Application(text())),
        "g" => NotificationId::new(value).ok().map(Key::IconCache),
        "n" => Some(Key::Icon(text())),
        "s" => Some(Key::Sound(text())),
        "t" => Some(Key::Type(text())),
        "w" => Some(Key::Expires(value.parse().ok())),
        _ => None,
    }
}

fn read_actions(words: &str) -> Key {
    let (mut focus, mut report) = (None, None);
    for word in words.split(',').map(str::trim) {
        match word {
            "focus" => focus = Some(true),
            "-focus" => focus = Some(false),
            "report" => report = Some(true),
            "-report" => report = Some(false),
            _ => {}
        }
    }
    Key::Actions { focus, report }
}
