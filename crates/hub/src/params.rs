//! The parameters of requests, as they come over the socket. Unknown ones are ignored.

use ringer_core::{MessageId, Observation, Signal};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use ringer_ipc::ApiError;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Create {
    pub(crate) title: Option<String>,
    pub(crate) subtitle: Option<String>,
    pub(crate) body: String,
    pub(crate) kind: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) cwd: Option<String>,
    #[serde(alias = "preferred_workspace_id")]
    pub(crate) workspace_id: Option<String>,
    #[serde(alias = "preferred_surface_id")]
    pub(crate) surface_id: Option<String>,
    pub(crate) caller_tty: Option<String>,
    pub(crate) prefer_tty: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    pub(crate) id: Option<String>,
    pub(crate) workspace_id: Option<String>,
    pub(crate) surface_id: Option<String>,
    pub(crate) all: bool,
    pub(crate) all_read: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Listing {
    pub(crate) unread: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) scope: Option<String>,
    pub(crate) workspace_id: Option<String>,
    pub(crate) surface_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Key {
    pub(crate) key: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AddToast {
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) priority: Option<String>,
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LooksAt {
    pub(crate) app: bool,
    pub(crate) workspace_id: Option<String>,
    pub(crate) surface_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Hears {
    pub(crate) surface_id: String,
    #[serde(default)]
    pub(crate) bell: bool,
    #[serde(default)]
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) signal: Option<Signal>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Offer {
    pub(crate) bus: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subscribe {
    pub(crate) after_seq: Option<u64>,
    pub(crate) names: Vec<String>,
}

pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Result<T, ApiError> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| ApiError::params(error.to_string()))
}

/// One observation, or several in one request: a client that does not wait for answers can send only one.
pub(crate) fn observations(mut params: Value) -> Result<Vec<Observation>, ApiError> {
    match params.get_mut("observations") {
        Some(several) => read(several.take()),
        None => Ok(vec![read(params)?]),
    }
}

pub(crate) fn message_id(text: &str) -> Result<MessageId, ApiError> {
    MessageId::parse(text).map_err(|error| ApiError::params(error.to_string()))
}
