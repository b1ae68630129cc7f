//! Codex's `config.toml`: the key `notify`, and the table `[mcp_servers.ringer]`.
//!
//! The TOML library finds the place; the bytes are edited directly, because printing its tree again would turn CRLF into LF.
//! There is only one `notify`: one that is not Ringer's stays, and the caller learns of it. The table goes to the end of the
//! file, after a blank line, and gets a line end only if the file had one there: so a removal knows what was added.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TomlError};

use super::entries::{MCP_ARGUMENT, MCP_SERVER, RingerProgram, is_ringer, runs_mcp_server};
use super::splice::{newline_of, split_bom};

const NOTIFY: &str = "notify";

/// The result of installing `notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotifyOutcome {
    /// The new text.
    Text(String),
    /// Another `notify` with this value is set; nothing changes.
    Foreign(String),
}

/// Installs Ringer's `notify`, unless another one is set.
pub(crate) fn install_notify(program: &RingerProgram, text: &str) -> Result<NotifyOutcome, TomlError> {
    let (bom, body) = split_bom(text);
    let document = Document::parse(body)?;
    let words = [program.as_str(), "hook", "codex", NOTIFY].map(basic_string);
    let value = format!("[{}]", words.join(", "));
    if let Some(found) = find_notify(&document) {
        let current = body.get(found.value.clone()).unwrap_or_default();
        if !found.ours {
            return Ok(NotifyOutcome::Foreign(current.to_owned()));
        }
        if found.words.first().map(String::as_str) == Some(program.as_str()) {
            return Ok(NotifyOutcome::Text(text.to_owned()));
        }
        let (before, after) = (&body[..found.value.start], &body[found.value.end..]);
        return Ok(NotifyOutcome::Text(format!("{bom}{before}{value}{after}")));
    }

    let newline = newline_of(text);
    // A root key must come before the first table: after the last root key, or at the very top.
    let at = last_value(document.as_table()).map_or(0, |end| line_end(body, end));
    let (before, after) = body.split_at(at);
    let new = if before.is_empty() || before.ends_with('\n') {
        format!("{bom}{before}{NOTIFY} = {value}{newline}{after}")
    } else {
        format!("{bom}{before}{newline}{NOTIFY} = {value}{after}")
    };
    Document::parse(split_bom(&new).1)?;
    Ok(NotifyOutcome::Text(new))
}

/// Removes Ringer's `notify`.
pub(crate) fn strip_notify(text: &str) -> Result<String, TomlError> {
    let (bom, body) = split_bom(text);
    let document = Document::parse(body)?;
    let Some(found) = find_notify(&document).filter(|found| found.ours) else { return Ok(text.to_owned()) };
    let mut start = found.key_start;
    let mut end = found.value.end;
    let rest = &body[end..line_end(body, end)];
    if rest.trim().is_empty() {
        end += rest.len();
        if !rest.ends_with('\n') {
            // Ringer's line is the last one and has no line end: the line end before it was added with it.
            let before = &body[..start];
            let before = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n')).unwrap_or(before);
            start = before.len();
        }
    } else {
        // A comment after it is not Ringer's.
        end += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }
    Ok(format!("{bom}{}{}", &body[..start], &body[end..]))
}

struct NotifyEntry {
    key_start: usize,
    value: Range<usize>,
    words: Vec<String>,
    ours: bool,
}

fn find_notify(document: &Document<&str>) -> Option<NotifyEntry> {
    let (key, item) = document.as_table().get_key_value(NOTIFY)?;
    let words: Vec<String> = item.as_array().map_or_else(Vec::new, |array| {
        array.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
    });
    let ours = matches!(words.as_slice(), [program, hook, client, event]
        if is_ringer(program) && hook == "hook" && client == "codex" && event == NOTIFY);
    let value = item.span().unwrap_or_default();
    let key_start = key.span().map(|span| span.start);
    Some(NotifyEntry {
        key_start: key_start.unwrap_or_default(),
        ours: ours && key_start.is_some(),
        value,
        words,
    })
}

/// The end of the last value directly below a table's header, or before the first header for the root. Dotted keys such as `a.b =
/// 1` count, subtables do not.
fn last_value(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(dotted) if dotted.is_dotted() => last_value(dotted),
        _ => None,
    });
    ends.max()
}

/// The end of the line that contains `at`, including the line end.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// A quoted string.
fn basic_string(word: &str) -> String {
    toml_edit::Value::from(word).to_string().trim().to_owned()
}

const SERVERS: &str = "mcp_servers";

/// Installs Ringer's server. `None` if there is another server of that name.
pub(super) fn install_server(program: &RingerProgram, text: &str) -> Result<Option<String>, String> {
    let (bom, body) = split_bom(text);
    let document = parse(body)?;
    let servers = document.as_table().get(SERVERS);
    if servers.is_some_and(|servers| !servers.is_table()) {
        return Err(format!("{SERVERS} is not a table of its own, so no server can be added to it"));
    }
    let name = basic_string(program.as_str());
    if let Some(server) = servers.and_then(|servers| servers.get(MCP_SERVER)) {
        let current = server.as_table().and_then(|server| server.get("command")?.span());
        return Ok(current.filter(|_| is_ringer_table(server)).map(|current| {
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

/// Removes Ringer's server and its subtables.
pub(super) fn strip_server(text: &str) -> Result<String, String> {
    let (bom, body) = split_bom(text);
    let document = parse(body)?;
    let server = document.as_table().get(SERVERS).and_then(|servers| servers.get(MCP_SERVER));
    let Some(server) = server.filter(|server| is_ringer_table(server)).and_then(Item::as_table) else {
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
        // Also remove the blank line before it, and the line end before it if the file had none at its end.
        for _ in 0..if has_line_end { 1 } else { 2 } {
            before = before.strip_suffix('\n').map_or(before, |rest| rest.strip_suffix('\r').unwrap_or(rest));
        }
        // A non-blank line keeps its end.
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

/// Returns true if a server is Ringer's and in a table with its own header, which is the form that setup writes.
fn is_ringer_table(server: &Item) -> bool {
    let Some(table) = server.as_table().filter(|table| !table.is_dotted() && !table.is_implicit()) else {
        return false;
    };
    let argument = table.get("args").and_then(|arguments| arguments.as_array()?.get(0)?.as_str());
    runs_mcp_server(table.get("command").and_then(Item::as_str), argument)
}

/// Collects the spans of a table's parts that have their own header: from the header to the last value.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn installed(text: &str, program: &str) -> String {
        match install_notify(&RingerProgram::new(Path::new(program)).unwrap(), text).unwrap() {
            NotifyOutcome::Text(text) => text,
            NotifyOutcome::Foreign(value) => panic!("foreign: {value}"),
        }
    }

    #[test]
    fn the_line_goes_in_and_out_without_a_trace() {
        for text in [
            "",
            "# only a comment\n",
            "model = \"x\" # mine\n\n[tui]\na = 1\n",
            "# header\r\n\r\n[tui]\r\na = 1",
            "a.b = 1\r\na.c = [\r\n  1,\r\n]\r\n# t\r\n[t]\r\n",
            "a = 1",
            "\u{feff}a = 1\n",
            "[t]",
            "a = 1\n\n\n# end",
        ] {
            let out = installed(text, "/bin/ringer");
            let document = Document::parse(split_bom(&out).1).unwrap();
            assert_eq!(document.as_table()["notify"].as_array().unwrap().len(), 4, "{out:?}");
            assert_eq!(installed(&out, "/bin/ringer"), out);
            let moved = installed(&out, "/opt/ringer");
            assert_eq!(moved, out.replace("/bin/", "/opt/"));
            assert_eq!(strip_notify(&moved).unwrap(), text);
        }
    }

    #[test]
    fn somebody_elses_stays_and_so_does_a_comment() {
        let text = "notify = [\"mine\"]\n";
        let program = RingerProgram::new(Path::new("ringer")).unwrap();
        assert_eq!(install_notify(&program, text).unwrap(), NotifyOutcome::Foreign("[\"mine\"]".to_owned()));
        assert_eq!(strip_notify(text).unwrap(), text);
        let text = "notify = [\"ringer\", \"hook\", \"codex\", \"notify\"] # mine\n";
        assert_eq!(strip_notify(text).unwrap(), "# mine\n");
        assert!(install_notify(&program, "a = \n").is_err());
    }
}
