//! What the running hub sees. It shows popups and runs programs with its own environment, not with that of this process.

use std::ffi::OsString;

use ringer_hub::HubOptions;
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::Home;
use serde_json::{Value, json};

use crate::context;

/// What the hub answered.
pub(super) struct HubView {
    /// The session bus that it uses.
    pub(super) bus: Option<String>,
    /// The program that shows its popups, or why there is none.
    pub(super) server: Result<String, String>,
    search_path: Option<String>,
}

impl HubView {
    /// Asks the hub. `None` if none runs, or it is too old to be asked: the next one has what this process has. It is
    /// offered the session bus of this process, which it uses if its own does not work.
    pub(super) fn ask() -> Result<Option<Self>, HubClientError> {
        let Ok(home) = context::home() else { return Ok(None) };
        let asked = HubClient::connect(&home)
            .and_then(|mut hub| hub.call("hub.environment", &json!({ "bus": own_bus() })));
        let answer = match asked {
            Ok(answer) => answer,
            Err(HubClientError::NoHub | HubClientError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let desktop = &answer["desktop"];
        let unknown = || text(&desktop["error"]).unwrap_or_else(|| "it does not say why".to_owned());
        Ok(Some(Self {
            bus: text(&desktop["bus"]),
            server: text(&desktop["server"]).ok_or_else(unknown),
            search_path: text(&answer["search_path"]),
        }))
    }
}

/// The session bus of this process.
pub(super) fn own_bus() -> Option<String> {
    // The home plays no part in it.
    HubOptions::of_process(Home::new("/"), false).bus
}

/// Where the hub looks for programs, or the next one will.
pub(super) fn search_path() -> OsString {
    let hub = HubView::ask().ok().flatten().and_then(|view| view.search_path).map(OsString::from);
    hub.or_else(|| std::env::var_os("PATH")).unwrap_or_default()
}
