//! Ringer's MCP server in a client's settings: one entry, `ringer`, that starts `ringer mcp`.
//!
//! An entry of that name is Ringer's if it runs a program called `ringer` with `mcp` as its first argument. Another one
//! stays, and the caller learns of it.

mod json;
mod table;

use super::disk::read;
use super::entries::RingerProgram;
use super::error::SetupError;
use super::find::{SetupScope, Target};
use crate::client::{Client, ClientPaths, McpForm};

/// The text with Ringer's server, or `None` if there is another one of its name.
pub(crate) fn install(
    target: &Target,
    form: McpForm,
    program: &RingerProgram,
    text: &str,
) -> Result<Option<String>, SetupError> {
    if form == McpForm::Table {
        return table::install(program, text).map_err(|message| toml(target, message));
    }
    json::install(form, program, text).map_err(|source| SetupError::jsonc(&target.path, source))
}

/// The text without Ringer's server. The object that had nothing else in it goes as well, unless `original` has it.
pub(crate) fn strip(
    target: &Target,
    form: McpForm,
    text: &str,
    original: Option<&str>,
) -> Result<String, SetupError> {
    if form == McpForm::Table {
        return table::strip(text).map_err(|message| toml(target, message));
    }
    let keeps_servers = original.is_some_and(|original| json::has_servers_of_others(form, original));
    json::strip(form, text, keeps_servers).map_err(|source| SetupError::jsonc(&target.path, source))
}

/// Whether Ringer's server is among the person's own of a client.
pub fn has_mcp_server(client: Client, places: &ClientPaths) -> bool {
    let targets = places.targets(client, SetupScope::User).unwrap_or_default();
    targets.iter().any(is_in)
}

/// Whether Ringer's server is in a file. It is not in one that cannot be read.
pub(crate) fn is_in(target: &Target) -> bool {
    let text = || String::from_utf8(read(&target.path).ok()??).ok();
    let Some((form, text)) = target.mcp.zip(text()) else { return false };
    // Without one, there is nothing to take out.
    strip(target, form, &text, None).is_ok_and(|left| left != text)
}

fn toml(target: &Target, message: String) -> SetupError {
    SetupError::Toml { path: target.path.clone(), message }
}
