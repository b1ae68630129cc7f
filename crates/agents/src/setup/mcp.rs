//! Ringer's MCP server in a client's settings: one entry, `ringer`, that runs `ringer mcp`.
//!
//! An entry of that name is Ringer's if it runs a program called `ringer` with the first argument `mcp`. Any other one stays, and
//! the caller is told.

use super::codex_toml;
use super::entries::{MCP_ARGUMENT, MCP_SERVER, RingerProgram, runs_mcp_server};
use super::error::SetupError;
use super::files::read;
use super::find::{SetupScope, Target};
use super::jsonc::{self, JsoncError, Node};
use super::splice::{self, Formatting, NewValue};
use crate::client::{Client, ClientPaths, McpForm};

/// Installs Ringer's server. `None` if there is another server of that name.
pub(crate) fn install(
    target: &Target,
    form: McpForm,
    program: &RingerProgram,
    text: &str,
) -> Result<Option<String>, SetupError> {
    if form == McpForm::Table {
        return codex_toml::install_server(program, text).map_err(|message| toml_error(target, message));
    }
    install_json(form, program, text).map_err(|source| SetupError::jsonc(&target.path, source))
}

/// Removes Ringer's server, and the object of servers if it becomes empty, unless `original` has it.
pub(crate) fn strip(
    target: &Target,
    form: McpForm,
    text: &str,
    original: Option<&str>,
) -> Result<String, SetupError> {
    if form == McpForm::Table {
        return codex_toml::strip_server(text).map_err(|message| toml_error(target, message));
    }
    let keeps_servers = original.is_some_and(|original| has_servers_of_others(form, original));
    strip_json(form, text, keeps_servers).map_err(|source| SetupError::jsonc(&target.path, source))
}

/// Returns true if Ringer's server is in the person's settings of a client.
pub fn has_mcp_server(client: Client, paths: &ClientPaths) -> bool {
    let targets = paths.targets(client, SetupScope::User).unwrap_or_default();
    targets.iter().any(contains_server)
}

/// Returns true if Ringer's server is in a file. An unreadable file counts as false.
pub(crate) fn contains_server(target: &Target) -> bool {
    let text = || String::from_utf8(read(&target.path).ok()??).ok();
    let Some((form, text)) = target.mcp.zip(text()) else { return false };
    // Without Ringer's server, `strip` changes nothing.
    strip(target, form, &text, None).is_ok_and(|left| left != text)
}

fn toml_error(target: &Target, message: String) -> SetupError {
    SetupError::Toml { path: target.path.clone(), message }
}

/// Adds Ringer's server to a JSON file: `{"mcpServers": {"ringer": {"command": "/usr/bin/ringer", "args": ["mcp"]}}}`. Returns
/// `None` if the file has another server of that name.
fn install_json(form: McpForm, program: &RingerProgram, text: &str) -> Result<Option<String>, JsoncError> {
    let document = jsonc::parse(text)?;
    let formatting = Formatting::of(text, document.root.as_ref());
    let (servers_name, new) = (servers_name(form), entry(form, program));
    let Some(root) = &document.root else {
        let servers = NewValue::Object(vec![(MCP_SERVER, new)]);
        let whole = NewValue::Object(vec![(servers_name, servers)]);
        return Ok(Some(splice::document_after(text, &whole, &formatting)));
    };
    if root.object().is_none() {
        return Err(JsoncError::at(text, root.span.start, "the document is not an object"));
    }
    let Some((_, servers)) = root.member(servers_name) else {
        let servers = NewValue::Object(vec![(MCP_SERVER, new)]);
        return Ok(splice::append(text, root, &formatting, Some(servers_name), &servers));
    };
    if servers.object().is_none() {
        return Err(JsoncError::at(text, servers.span.start, "the MCP servers are not an object"));
    }
    let Some((_, found)) = servers.member(MCP_SERVER) else {
        return Ok(splice::append(text, servers, &formatting, Some(MCP_SERVER), &new));
    };
    Ok(ringer_program(form, found).map(|current| match current.text() {
        Some(path) if path == program.as_str() => text.to_owned(),
        _ => splice::replace_text(text, current, program.as_str()),
    }))
}

/// Removes Ringer's servers. An object of servers that becomes empty stays if `keeps_servers`, or if it contains a comment.
fn strip_json(form: McpForm, text: &str, keeps_servers: bool) -> Result<String, JsoncError> {
    let mut text = text.to_owned();
    while let Some(next) = strip_first(form, &text, keeps_servers)? {
        text = next;
    }
    Ok(text)
}

/// Returns true if a text has an object of servers that is not there only for Ringer's.
fn has_servers_of_others(form: McpForm, text: &str) -> bool {
    let stripped = strip_json(form, text, false).ok();
    let root = stripped.as_deref().and_then(|text| jsonc::parse(text).ok()?.root);
    root.is_some_and(|root| root.member(servers_name(form)).is_some())
}

/// Removes the first of Ringer's servers. Duplicate names are handled one by one.
fn strip_first(form: McpForm, text: &str, keeps_servers: bool) -> Result<Option<String>, JsoncError> {
    let document = jsonc::parse(text)?;
    let Some(root) = document.root.as_ref().and_then(Node::object) else { return Ok(None) };
    for (index, member) in root.slots.iter().enumerate() {
        let servers = member.value.object().filter(|_| member.key.as_deref() == Some(servers_name(form)));
        let Some(servers) = servers else { continue };
        let own = servers.slots.iter().position(|server| {
            server.key.as_deref() == Some(MCP_SERVER) && ringer_program(form, &server.value).is_some()
        });
        let Some(own) = own else { continue };
        let is_alone = servers.slots.len() == 1
            && !document.has_comment_around(&member.span(), &servers.slots[own].span());
        return Ok(if is_alone && !keeps_servers {
            splice::remove(text, root, index)
        } else {
            splice::remove(text, servers, own)
        });
    }
    Ok(None)
}

fn servers_name(form: McpForm) -> &'static str {
    match form {
        McpForm::Command { servers, .. } | McpForm::CommandList { servers } => servers,
        McpForm::Table => "mcp_servers",
    }
}

/// The program of an entry, if the entry is Ringer's.
fn ringer_program(form: McpForm, entry: &Node) -> Option<&Node> {
    let element = |name: &str, index: usize| {
        let (_, list) = entry.member(name)?;
        Some(&list.array()?.slots.get(index)?.value)
    };
    let (program, argument) = match form {
        McpForm::CommandList { .. } => (element("command", 0), element("command", 1)),
        _ => (entry.member("command").map(|(_, command)| command), element("args", 0)),
    };
    program.filter(|_| runs_mcp_server(program.and_then(Node::text), argument.and_then(Node::text)))
}

fn entry(form: McpForm, program: &RingerProgram) -> NewValue {
    let text = |text: &str| NewValue::Text(text.to_owned());
    NewValue::Object(match form {
        McpForm::CommandList { .. } => vec![
            ("type", text("local")),
            ("command", NewValue::Array(vec![text(program.as_str()), text(MCP_ARGUMENT)])),
            ("enabled", NewValue::True),
        ],
        McpForm::Command { has_type, .. } => {
            let kind = has_type.then(|| ("type", text("stdio")));
            let command = ("command", text(program.as_str()));
            kind.into_iter().chain([command, ("args", NewValue::Array(vec![text(MCP_ARGUMENT)]))]).collect()
        }
        McpForm::Table => Vec::new(),
    })
}
