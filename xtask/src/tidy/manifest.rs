//! Reads Cargo's TOML files as flat entries. It supports enough TOML for real manifests, without a dependency to compile
//! before the first command runs. Invalid TOML has already been rejected by Cargo.

/// One `key = value`, with the full key from the root and inline tables expanded:
/// `[dependencies]`, `a = { workspace = true }` is the entry `dependencies`, `a`, `workspace` = `true`.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) key: Vec<String>,
    pub(super) value: String,
}

impl Entry {
    pub(super) fn starts_with(&self, part: &str) -> bool {
        self.key.first().is_some_and(|first| first == part)
    }

    pub(super) fn ends_with(&self, part: &str) -> bool {
        self.key.last().is_some_and(|last| last == part)
    }
}

pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut table = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((line, text)) = lines.next() {
        let mut statement = uncommented(text).trim().to_owned();
        // Arrays, inline tables and multi-line strings span several lines.
        while is_open(&statement)
            && let Some((_, more)) = lines.next()
        {
            statement.push('\n');
            statement.push_str(uncommented(more));
        }
        if let Some(header) = statement.strip_prefix('[').filter(|_| top_level(&statement, '=').len() == 1) {
            table = key_parts(header.trim_matches(['[', ']']));
        } else {
            collect(line, &table, &statement, &mut entries);
        }
    }
    entries
}

/// Adds the entry of one `key = value` in `table`, or the entries of its inline table.
fn collect(line: usize, table: &[String], statement: &str, entries: &mut Vec<Entry>) {
    let Some((key, value)) = assignment(statement) else { return };
    let key = [table, &key_parts(key)].concat();
    match value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => {
            for pair in top_level(inner, ',') {
                collect(line, &key, pair, entries);
            }
        }
        None => entries.push(Entry { line, key, value: value.to_owned() }),
    }
}

fn assignment(statement: &str) -> Option<(&str, &str)> {
    let key = *top_level(statement, '=').first()?;
    let value = statement[key.len()..].strip_prefix('=')?;
    Some((key.trim(), value.trim()))
}

fn key_parts(key: &str) -> Vec<String> {
    top_level(key, '.').into_iter().map(|part| unquoted(part.trim()).to_owned()).collect()
}

pub(super) fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

fn uncommented(line: &str) -> &str {
    top_level(line, '#').first().copied().unwrap_or(line)
}

/// Returns true if a bracket or a multi-line string is still open.
fn is_open(statement: &str) -> bool {
    let mut reader = Reader::default();
    statement.chars().for_each(|c| reader.read(c));
    let long = ["\"\"\"", "'''"].iter().any(|quotes| statement.matches(quotes).count() % 2 == 1);
    reader.depth > 0 || long
}

/// Splits `text` at every `separator` outside strings, brackets and braces.
fn top_level(text: &str, separator: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut reader = Reader::default();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        // A comment also starts inside open brackets.
        let outside = reader.quote.is_none() && (reader.depth == 0 || separator == '#');
        if outside && c == separator {
            pieces.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        reader.read(c);
    }
    pieces.push(&text[start..]);
    pieces
}

/// The state of the TOML reader after some characters.
#[derive(Default)]
struct Reader {
    quote: Option<char>,
    escaped: bool,
    depth: usize,
}

impl Reader {
    fn read(&mut self, c: char) {
        match (self.quote, c) {
            _ if self.escaped => self.escaped = false,
            (Some('"'), '\\') => self.escaped = true,
            (Some(quote), _) if quote == c => self.quote = None,
            (None, '"' | '\'') => self.quote = Some(c),
            (None, '[' | '{') => self.depth += 1,
            (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::entries;

    fn check(text: &str, expect: &[&str]) {
        let found: Vec<String> = entries(text)
            .iter()
            .map(|entry| format!("{}: {} = {}", entry.line, entry.key.join("/"), entry.value))
            .collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn keys_are_spelled_out() {
        check("[dependencies]\na = \"1\"\n", &["2: dependencies/a = \"1\""]);
        check("[dependencies]\na.workspace = true\n", &["2: dependencies/a/workspace = true"]);
        check("[dependencies.a]\nworkspace = true\n", &["2: dependencies/a/workspace = true"]);
        check(
            "[[bin]]\nname = \"a\"\n[lib]\nname = \"b\"\n",
            &["2: bin/name = \"a\"", "4: lib/name = \"b\""],
        );
        check(
            "[target.'cfg(target_os = \"macos\")'.dependencies]\na = \"1\"\n",
            &["2: target/cfg(target_os = \"macos\")/dependencies/a = \"1\""],
        );
        check("[patch.\"https://a.b\"]\nc = \"1\"\n", &["2: patch/https://a.b/c = \"1\""]);
    }

    #[test]
    fn inline_tables_are_opened() {
        check(
            "[dependencies]\na = { git = \"x\", features = [\"b\", \"c\"] }\n",
            &["2: dependencies/a/git = \"x\"", "2: dependencies/a/features = [\"b\", \"c\"]"],
        );
        check("a = { b = { c = 1 }, d = \"}, e = 2\" }\n", &["1: a/b/c = 1", "1: a/d = \"}, e = 2\""]);
    }

    #[test]
    fn values_go_on_over_lines() {
        check("a = [\n  1, # one\n  2,\n]\nb = 3\n", &["1: a = [\n  1, \n  2,\n]", "5: b = 3"]);
        check(
            "[d]\na = { features = [\n  \"x\",\n], git = \"y\" }\nb = 3\n",
            &["2: d/a/features = [\n  \"x\",\n]", "2: d/a/git = \"y\"", "5: d/b = 3"],
        );
        check("a = \"\"\"\ngit = 1\n\"\"\"\nb = 3\n", &["1: a = \"\"\"\ngit = 1\n\"\"\"", "4: b = 3"]);
    }

    #[test]
    fn comments_are_nothing() {
        check("# a = 1\n\nb = \"#\" # c = 2\n", &["3: b = \"#\""]);
    }
}
