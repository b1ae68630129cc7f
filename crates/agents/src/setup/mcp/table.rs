//! MCP servers in TOML: the table `[mcp_servers.ringer]` of Codex.
//!
//! As for `notify`, the TOML library finds the places and the bytes are changed by hand. The table goes to the end of the file,
//! after a blank line, and has no line end of its own if the file had none there: so a removal knows what was added.

use toml_edit::{Document, Item, Table};

use super::super::entries::{MCP_ARGUMENT, MCP_SERVER, RingerProgram, runs_mcp_server};
use super::super::splice::{newline_of, split_bom};
use super::super::toml_text::{basic_string, last_value, line_end};

/// The name of the table of tables.
const SERVERS: &str = "mcp_servers";

/// The text with Ringer's server, or `None` if there is another one of its name.
pub(super) fn install(program: &RingerProgram, text: &str) -> Result<Option<String>, String> {
    let (bom, body) = split_bom(text);
    let document = parse(body)?;
    let servers = document.as_table().get(SERVERS);
    if servers.is_some_and(|servers| !servers.is_table()) {
        return Err(format!("{SERVERS} is not a table of its own, so no server can be added to it"));
    }
    let name = basic_string(program.as_str());
    if let Some(server) = servers.and_then(|servers| servers.get(MCP_SERVER)) {
        let current = server.as_table().and_then(|server| server.get("command")?.span());
        return Ok(current.filter(|_| is_ours_table(server)).map(|current| {
            if body.get(current.clone()) == Some(&name) {
                return text.to_owned();
            }
            format!("{bom}{}{name}{}", &body[..current.start], &body[current.end..])
        }));
    }
    let newline = newline_of(text);
    let table = format!(
        "[{SERVERS}.{MCP_SERVER}]{newline}command = {name}{newline}args = [{}]",
        basic_string(MCP_ARGUMENT)
    );
    let new = match body {
        "" => format!("{bom}{table}{newline}"),
        _ if body.ends_with('\n') => format!("{text}{newline}{table}{newline}"),
        _ => format!("{text}{newline}{newline}{table}"),
    };
    parse(split_bom(&new).1)?;
    Ok(Some(new))
}

/// The text without Ringer's server, and without the tables below it.
pub(super) fn strip(text: &str) -> Result<String, String> {
    let (bom, body) = split_bom(text);
    let document = parse(body)?;
    let server = document.as_table().get(SERVERS).and_then(|servers| servers.get(MCP_SERVER));
    let Some(server) = server.filter(|server| is_ours_table(server)).and_then(Item::as_table) else {
        return Ok(text.to_owned());
    };
    let mut blocks = Vec::new();
    find_blocks(server, &mut blocks);
    blocks.sort_unstable();
    let mut left = body.to_owned();
    for (header, end) in blocks.into_iter().rev() {
        // A header may be indented.
        let start = left[..header].rfind('\n').map_or(0, |at| at + 1);
        let end = line_end(&left, end);
        let has_line_end = left[start..end].ends_with('\n');
        let mut before = &left[..start];
        // The blank line before it, and before the last one of a file without a line end at its end also the line end.
        for _ in 0..if has_line_end { 1 } else { 2 } {
            before = before.strip_suffix('\n').map_or(before, |rest| rest.strip_suffix('\r').unwrap_or(rest));
        }
        // A line that is not blank keeps its end.
        if has_line_end && !before.is_empty() && !before.ends_with('\n') {
            before = &left[..start];
        }
        left = format!("{before}{}", &left[end..]);
    }
    parse(&left)?;
    Ok(format!("{bom}{left}"))
}

fn parse(body: &str) -> Result<Document<&str>, String> {
    Document::parse(body).map_err(|error| error.to_string().trim_end().to_owned())
}

/// Whether a server is Ringer's: in a table of its own, which is the form that the setup writes.
fn is_ours_table(server: &Item) -> bool {
    let Some(table) = server.as_table().filter(|table| !table.is_dotted() && !table.is_implicit()) else {
        return false;
    };
    let argument = table.get("args").and_then(|arguments| arguments.as_array()?.get(0)?.as_str());
    runs_mcp_server(table.get("command").and_then(Item::as_str), argument)
}

/// Where the parts of a table are that stand under a header of their own: from the header to the last value.
fn find_blocks(table: &Table, blocks: &mut Vec<(usize, usize)>) {
    if let Some(span) = table.span().filter(|_| !table.is_dotted() && !table.is_implicit()) {
        blocks.push((span.start, last_value(table).map_or(span.end, |end| end.max(span.end))));
    }
    for (_, item) in table {
        if let Item::Table(inner) = item {
            find_blocks(inner, blocks);
        }
    }
}
