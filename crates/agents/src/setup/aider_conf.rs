//! aider's `.aider.conf.yml`: Ringer puts two lines at its top, each ending in [`MARKER`].
//!
//! From its documentation, never run: the pages "Notifications" and "YAML config file" (aider.chat/docs, copies of 2026). With
//! `notifications: true`, aider runs `notifications-command` when it has answered and waits for the person.
//!
//! No YAML parser is needed: at the top of a mapping, two more lines are two more members, whatever follows. So a file must begin
//! as a plain mapping; any other is refused.

use super::entries::{MARKER, RingerProgram};
use super::splice::{newline_of, split_bom};

/// The settings that setup writes, in this order.
const NAMES: [&str; 2] = ["notifications", "notifications-command"];

/// Why the lines cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfError {
    /// The file does not begin as a plain mapping.
    Shape,
    /// The person has set this setting.
    AlreadySet(&'static str),
}

/// Adds Ringer's two lines, unless the person has set these keys.
pub(crate) fn install(program: &RingerProgram, text: &str) -> Result<String, ConfError> {
    let (bom, body) = split_bom(text);
    if let Some(name) = body.lines().filter(|line| !is_ours(line)).find_map(setting) {
        return Err(ConfError::AlreadySet(name));
    }
    let lines = [
        format!("{}: true {MARKER}", NAMES[0]),
        format!("{}: {} {MARKER}", NAMES[1], quoted(&program.waiting_line())),
    ];
    let ours: Vec<&str> = body.lines().filter(|line| is_ours(line)).map(str::trim_end).collect();
    if ours == lines {
        return Ok(text.to_owned());
    }
    let left = without_ours(body);
    let (before, after) = left.split_at(insertion_point(&left)?);
    let newline = newline_of(text);
    Ok(format!("{bom}{before}{}{newline}{}{newline}{after}", lines[0], lines[1]))
}

/// Removes Ringer's lines.
pub(crate) fn strip(text: &str) -> String {
    let (bom, body) = split_bom(text);
    format!("{bom}{}", without_ours(body))
}

fn without_ours(body: &str) -> String {
    body.split_inclusive('\n').filter(|line| !is_ours(line)).collect()
}

/// The offset of the mapping's first line: the start of the text, or after the document marker.
fn insertion_point(body: &str) -> Result<usize, ConfError> {
    let mut at = 0;
    let mut start = None;
    for line in body.split_inclusive('\n') {
        let words = line.trim();
        at += line.len();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        // Without a line end, nothing can follow the marker.
        if start.is_none() && matches!(line, "---\n" | "---\r\n") {
            start = Some(at);
            continue;
        }
        return if is_member(line) { Ok(start.unwrap_or(0)) } else { Err(ConfError::Shape) };
    }
    Ok(start.unwrap_or(0))
}

/// Returns true for `name: value` or `name:`, not indented and with a plain name.
fn is_member(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty()
        && !name.starts_with('-')
        && name.bytes().all(plain)
        && (value.is_empty() || value.starts_with([' ', '\t', '\r', '\n']))
}

fn is_ours(line: &str) -> bool {
    line.trim_end().ends_with(&format!(" {MARKER}"))
        && NAMES.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))
}

/// Which of Ringer's settings a line sets, in any spelling: aider also accepts quoted names and leading dashes.
fn setting(line: &str) -> Option<&'static str> {
    let (name, _) = line.split_once(':')?;
    let name = name.trim_end().trim_matches(['"', '\'']);
    let name = name.strip_prefix("--").unwrap_or(name);
    let name = name.strip_prefix("no-").unwrap_or(name);
    NAMES.into_iter().find(|known| *known == name)
}

/// A string in double quotes. Everything but plain ASCII is escaped: YAML readers ignore some characters and reject others.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        ' '..='~' => character.to_string(),
        _ => format!("\\U{:08x}", u32::from(character)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn program(path: &str) -> RingerProgram {
        RingerProgram::new(Path::new(path)).unwrap()
    }

    #[test]
    fn what_is_written() {
        let out = install(&program("/bin/ringer"), "model: x\n").unwrap();
        let expect = "notifications: true # ringer-hook\n\
            notifications-command: \"[ -x /bin/ringer ] && exec /bin/ringer notify --from \\\"${RINGER_AGENT:-aider}\\\" \
            --type waiting 'aider waits for you' 2>/dev/null || exit 0 # ringer-hook\" # ringer-hook\nmodel: x\n";
        assert_eq!(out, expect);
        assert_eq!(quoted("a \"b\"\\\n\u{e4}\u{1f600}"), r#""a \"b\"\\\U0000000a\U000000e4\U0001f600""#);
    }

    #[test]
    fn the_lines_go_in_and_out_without_a_trace() {
        for text in [
            "",
            "\n",
            "# only a comment",
            "# mine\r\n\r\nmodel: x # mine\r\nread:\r\n- a\r\n",
            "\u{feff}model: x\n",
            "\u{feff}",
            "---\nmodel: x\n",
            "# head\n---\r\n# more\r\nread: [a,\r\n  b]\r\n",
            "dark-mode:\n",
            "lint-cmd: |\n  make lint",
        ] {
            let out = install(&program("/bin/ringer"), text).unwrap();
            assert_eq!(split_bom(&out).1.lines().filter(|line| is_ours(line)).count(), 2, "{out:?}");
            assert_eq!(install(&program("/bin/ringer"), &out).unwrap(), out);
            let moved = install(&program("/opt/ringer"), &out).unwrap();
            assert_eq!(moved, out.replace("/bin/", "/opt/"));
            assert_eq!(strip(&moved), text);
        }
    }

    #[test]
    fn what_the_person_has_set_stays() {
        for (line, name) in [
            ("notifications: false", NAMES[0]),
            ("notifications: true", NAMES[0]),
            ("no-notifications: true", NAMES[0]),
            ("\"notifications\" : true", NAMES[0]),
            ("notifications-command: say done", NAMES[1]),
            ("--notifications-command: say done # not ringer-hook", NAMES[1]),
        ] {
            let text = format!("model: x\n{line}\n");
            assert_eq!(install(&program("ringer"), &text), Err(ConfError::AlreadySet(name)), "{line}");
            assert_eq!(strip(&text), text);
        }
        let commented = "#notifications: false\n#notifications-command: xxx\n";
        assert!(install(&program("ringer"), commented).is_ok(), "as in aider's own sample");
    }

    #[test]
    fn a_file_that_is_no_plain_mapping_is_refused() {
        for text in [
            "{model: x}",
            "- a\n",
            "  model: x\n",
            "%YAML 1.2\n---\n",
            "--- {a: 1}\n",
            "---",
            "word\n",
            "---\n---\n",
        ] {
            assert_eq!(install(&program("ringer"), text), Err(ConfError::Shape), "{text:?}");
        }
    }
}
