//! Values that features keep between hubs. The store knows nothing about them.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Engine, away, muting, undo};
use crate::attention::{AwayPeriod, UndoItem};
use crate::message::MessageId;
use crate::policy::{MuteTarget, RequestedMute};
use crate::time::Now;

/// A value that a feature keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The name of the feature.
    pub feature: Cow<'static, str>,
    /// The key, unique within the feature.
    pub key: String,
    /// The notification that the value is about. The value is removed together with its messages.
    #[serde(default)]
    pub about: Option<MessageId>,
    /// The value as JSON; `None` removes it.
    pub value: Option<String>,
}

impl SavedState {
    fn set(feature: &'static str, key: String, value: &impl Serialize) -> Self {
        // Serialising plain data cannot fail.
        let value = serde_json::to_string(value).unwrap_or_default();
        Self { feature: feature.into(), key, about: None, value: Some(value) }
    }

    fn removed(feature: &'static str, key: String) -> Self {
        Self { feature: feature.into(), key, about: None, value: None }
    }

    /// Parses the value. `None` if it was removed or is damaged.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.value.as_deref()?).ok()
    }
}

impl RequestedMute {
    /// The saved form of the mute.
    pub fn saved(&self) -> SavedState {
        SavedState::set(muting::FEATURE, self.target.to_string(), self)
    }
}

impl MuteTarget {
    /// Removes the saved mute of this target.
    pub fn removed(&self) -> SavedState {
        SavedState::removed(muting::FEATURE, self.to_string())
    }
}

impl AwayPeriod {
    /// The saved form of the period.
    pub fn saved(&self) -> SavedState {
        SavedState::set(away::FEATURE, "last".to_owned(), self)
    }
}

impl UndoItem {
    /// The saved form of the item. Keys sort by number.
    pub fn saved(&self) -> SavedState {
        let about = self.record().map(|record| record.id.clone());
        SavedState { about, ..SavedState::set(undo::FEATURE, undo_key(self.number), self) }
    }

    /// Removes a saved item by its number.
    pub fn removed(number: i64) -> SavedState {
        SavedState::removed(undo::FEATURE, undo_key(number))
    }
}

fn undo_key(number: i64) -> String {
    format!("{number:020}")
}

impl Engine {
    /// Restores what the features of an earlier hub saved, in the order of the keys. Must be called before the first event.
    pub fn restore_state(&mut self, now: Now, states: impl IntoIterator<Item = SavedState>) {
        for state in states {
            match &*state.feature {
                muting::FEATURE => self.mutes.restore(state.read::<RequestedMute>()),
                undo::FEATURE => self.undo_log.restore(state.read::<UndoItem>()),
                away::FEATURE => {
                    if let Some(away) = state.read() {
                        self.restore_away(now, away);
                    }
                }
                _ => {}
            }
        }
    }
}
