//! Reads the parameters of requests.

use ringer_ipc::ApiError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads parameters. Unknown ones are ignored.
pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Result<T, ApiError> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| ApiError::params(error.to_string()))
}

pub(crate) fn missing(what: &str) -> ApiError {
    ApiError::params(format!("{what} is missing"))
}

/// Reads one object, or several in one request, for clients that send without waiting for answers.
pub(crate) fn one_or_several<T: DeserializeOwned>(mut params: Value, name: &str) -> Result<Vec<T>, ApiError> {
    match params.get_mut(name) {
        Some(several) => read(several.take()),
        None => Ok(vec![read(params)?]),
    }
}
