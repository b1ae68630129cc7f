//! Values that features keep between hubs. The store knows nothing about them.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::message::MessageId;

/// A value that a feature keeps.
pub trait Saved: Serialize + DeserializeOwned {
    /// The name of the feature.
    const FEATURE: &'static str;

    /// The key, unique within the feature. Values are restored in the order of their keys.
    fn key(&self) -> String;

    /// The notification that the value is about. The value is removed together with its message.
    fn about(&self) -> Option<MessageId> {
        None
    }

    /// The saved form.
    fn saved(&self) -> SavedState {
        SavedState {
            feature: Self::FEATURE.into(),
            key: self.key(),
            about: self.about(),
            // Serialising plain data cannot fail.
            value: Some(serde_json::to_string(self).unwrap_or_default()),
        }
    }
}

/// The saved form of a value, or its removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    /// The name of the feature.
    pub feature: Cow<'static, str>,
    /// The key, unique within the feature.
    pub key: String,
    /// The notification that the value is about.
    #[serde(default)]
    pub about: Option<MessageId>,
    /// The value as JSON; `None` removes it.
    pub value: Option<String>,
}

impl SavedState {
    /// Removes the value with this key.
    pub fn removal<T: Saved>(key: String) -> Self {
        Self { feature: T::FEATURE.into(), key, about: None, value: None }
    }

    /// Returns true if it is a value of this type, or its removal.
    pub fn is<T: Saved>(&self) -> bool {
        self.feature == T::FEATURE
    }

    /// Parses the value. `None` if it is of another type, was removed or is damaged.
    pub fn read<T: Saved>(&self) -> Option<T> {
        let value = self.value.as_deref().filter(|_| self.is::<T>())?;
        serde_json::from_str(value).ok()
    }
}
