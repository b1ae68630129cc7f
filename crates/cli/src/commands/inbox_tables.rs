//! What `[keys]` and `[theme]` of the settings may contain: the inbox and the panes know their words.

use ringer_config::TableRule;
use ringer_ui::{KEY_EXAMPLES, KeyMap, Palette};
use ringer_workspace::PaneKeys;

/// `[theme] name`.
pub(super) const THEME_NAME: &str = "name";
/// `[theme] mouse`.
pub(super) const THEME_MOUSE: &str = "mouse";
/// The value that leaves the mouse to the terminal.
pub(super) const MOUSE_OFF: &str = "off";

const MOUSE: [&str; 2] = ["on", MOUSE_OFF];

/// The rules of both tables.
pub(super) fn rules() -> [TableRule; 2] {
    let actions = KeyMap::action_names().into_iter().chain(PaneKeys::names()).collect();
    [
        TableRule { table: "keys", keys: actions, check: check_keys },
        TableRule { table: "theme", keys: vec![THEME_NAME, THEME_MOUSE], check: check_theme },
    ]
}

fn check_keys(_: &str, value: &str) -> Result<(), String> {
    if KeyMap::are_keys(value) {
        return Ok(());
    }
    Err(format!("is {value:?}; expected a key or several with spaces between, like {KEY_EXAMPLES}"))
}

fn check_theme(key: &str, value: &str) -> Result<(), String> {
    let known = if key == THEME_NAME { Palette::names() } else { MOUSE.to_vec() };
    if known.contains(&value) {
        return Ok(());
    }
    Err(format!("is {value:?}; expected one of {}", known.join(", ")))
}
