//! Codex's `notify = [...]` in `config.toml`.
//!
//! The TOML library finds the place; the bytes are changed by hand, because printing its tree again would turn CRLF into
//! LF. There is only one `notify`: one that is not Ringer's stays, and the caller learns of it.

use std::ops::Range;

use toml_edit::{Document, TomlError};

use super::entries::{RingerProgram, is_ringer};
use super::splice::{newline_of, split_bom};
use super::toml_text::{basic_string, last_value, line_end};

/// The name of the key.
const KEY: &str = "notify";

/// What became of a `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It shall have these bytes.
    Text(String),
    /// A `notify` that is not Ringer's is there: this value.
    Foreign(String),
}

/// The text with Ringer's `notify`, unless there is another one.
pub(crate) fn install(program: &RingerProgram, text: &str) -> Result<Outcome, TomlError> {
    let (bom, body) = split_bom(text);
    let document = Document::parse(body)?;
    let words = [program.as_str(), "hook", "codex", KEY].map(basic_string);
    let value = format!("[{}]", words.join(", "));
    if let Some(found) = find(&document) {
        let current = body.get(found.value.clone()).unwrap_or_default();
        if !found.ours {
            return Ok(Outcome::Foreign(current.to_owned()));
        }
        if found.words.first().map(String::as_str) == Some(program.as_str()) {
            return Ok(Outcome::Text(text.to_owned()));
        }
        let (before, after) = (&body[..found.value.start], &body[found.value.end..]);
        return Ok(Outcome::Text(format!("{bom}{before}{value}{after}")));
    }

    let newline = newline_of(text);
    // A root key must stand before the first table: after the last one that is there, or at the very top.
    let at = last_value(document.as_table()).map_or(0, |end| line_end(body, end));
    let (before, after) = body.split_at(at);
    let new = if before.is_empty() || before.ends_with('\n') {
        format!("{bom}{before}{KEY} = {value}{newline}{after}")
    } else {
        format!("{bom}{before}{newline}{KEY} = {value}{after}")
    };
    Document::parse(split_bom(&new).1)?;
    Ok(Outcome::Text(new))
}

/// The text without Ringer's `notify`.
pub(crate) fn strip(text: &str) -> Result<String, TomlError> {
    let (bom, body) = split_bom(text);
    let document = Document::parse(body)?;
    let Some(found) = find(&document).filter(|found| found.ours) else { return Ok(text.to_owned()) };
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
        // A comment behind it is not Ringer's.
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

fn find(document: &Document<&str>) -> Option<NotifyEntry> {
    let (key, item) = document.as_table().get_key_value(KEY)?;
    let words: Vec<String> = item.as_array().map_or_else(Vec::new, |array| {
        array.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
    });
    let ours = matches!(words.as_slice(), [program, hook, client, event]
        if is_ringer(program) && hook == "hook" && client == "codex" && event == KEY);
    let value = item.span().unwrap_or_default();
    let key_start = key.span().map(|span| span.start);
    Some(NotifyEntry {
        key_start: key_start.unwrap_or_default(),
        ours: ours && key_start.is_some(),
        value,
        words,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn installed(text: &str, program: &str) -> String {
        match install(&RingerProgram::new(Path::new(program)).unwrap(), text).unwrap() {
            Outcome::Text(text) => text,
            Outcome::Foreign(value) => panic!("foreign: {value}"),
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
            assert_eq!(strip(&moved).unwrap(), text);
        }
    }

    #[test]
    fn somebody_elses_stays_and_so_does_a_comment() {
        let text = "notify = [\"mine\"]\n";
        let program = RingerProgram::new(Path::new("ringer")).unwrap();
        assert_eq!(install(&program, text).unwrap(), Outcome::Foreign("[\"mine\"]".to_owned()));
        assert_eq!(strip(text).unwrap(), text);
        let text = "notify = [\"ringer\", \"hook\", \"codex\", \"notify\"] # mine\n";
        assert_eq!(strip(text).unwrap(), "# mine\n");
        assert!(install(&program, "a = \n").is_err());
    }
}
