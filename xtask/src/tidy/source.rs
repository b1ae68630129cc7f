//! Just enough of Rust's lexical rules to tell code from comments and strings.

use std::ops::RangeInclusive;

pub(super) fn is_rust(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "rs")
}

/// Returns true if `text` contains `word` as a whole word: not next to a letter, digit or underscore.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        // A word like `name!` ends with its `!`, so anything may follow.
        !before.is_some_and(is_name) && (!word.ends_with(is_name) || !after.is_some_and(is_name))
    })
}

pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks out comments, strings and character literals. Line numbers do not change.
pub(super) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = not_code(rest, code.chars().next_back());
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    code
}

/// Returns the length of the comment, string or character literal at the start of `rest`, or 0 if it starts with code.
fn not_code(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment(rest)
    } else if rest.starts_with('"') {
        quoted(rest, '"')
    } else if rest.starts_with('\'') {
        character(rest)
    } else if before.is_some_and(is_name) {
        0
    } else {
        raw_string(rest)
    }
}

/// Returns the length of a block comment. Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal like `'x'` or `'\n'`. `'x` alone is a lifetime, which is code.
fn character(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 0,
    }
}

/// Returns the length of `r"…"` or `r#"…"#`, also for bytes and C strings. `r#name` is an identifier.
fn raw_string(rest: &str) -> usize {
    let Some(after) = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix)) else { return 0 };
    let body = after.trim_start_matches('#');
    let hashes = &after[..after.len() - body.len()];
    let Some(body) = body.strip_prefix('"') else { return 0 };
    let end = format!("\"{hashes}");
    match body.find(&end) {
        Some(at) => rest.len() - body.len() + at + end.len(),
        None => rest.len(),
    }
}

/// Returns the lines of items under `#[cfg(test)]`, counted from 1. `code` is the output of [`code_only`].
pub(super) fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    let attributes = code.match_indices("#[cfg(").filter_map(|(start, _)| {
        let end = start + code[start..].find(']')?;
        let condition = &code[start..end];
        (has_word(condition, "test") && !condition.contains("not(test")).then_some((start, end))
    });
    attributes.map(|(start, end)| line_of(code, start)..=line_of(code, item_end(code, end))).collect()
}

/// Returns the end of an item: the brace that closes its first brace, or a semicolon before any brace.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return from + at,
            '}' => depth -= 1,
            ';' if depth == 0 => return from + at,
            _ => {}
        }
    }
    code.len()
}

fn line_of(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::{code_only, has_word, test_lines};

    #[test]
    fn words_stand_alone() {
        fn check(text: &str, word: &str, expect: bool) {
            assert_eq!(has_word(text, word), expect, "{word} in {text}");
        }
        check("a word here", "word", true);
        check("word", "word", true);
        check("swords, words", "word", false);
        check("swords, word", "word", true);
        check("(name!(x))", "name!", true);
        check("name!x", "name!", true);
        check("my_name!(x)", "name!", false);
    }

    #[test]
    fn only_code_is_left() {
        fn check(text: &str, expect: &str) {
            let code = code_only(text);
            assert_eq!(code.lines().count(), text.lines().count(), "lines of {text}");
            assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expect, "{text}");
        }
        check("a // b\nc", "a c");
        check("a /* b /* c */ d\n */ e", "a e");
        check(r#"a("b \" // c") d"#, "a( ) d");
        check("a(r#\"b \" c\"#) d", "a( ) d");
        check("a(br\"\\\") d", "a( ) d");
        check("a(b\"x\") d", "a(b ) d");
        check("r#type bar\"x\" d", "r#type bar d");
        check("fn a<'b>(c: &'b str) { '{' '\\'' '\"' }", "fn a<'b>(c: &'b str) { }");
        check("\"never closed", "");
        check("é /* é */ 'é' ü", "é ü");
    }

    #[test]
    fn test_items_are_found() {
        fn check(text: &str, expect: &[(usize, usize)]) {
            let ranges = test_lines(&code_only(text));
            let ranges: Vec<_> = ranges.iter().map(|range| (*range.start(), *range.end())).collect();
            assert_eq!(ranges, expect, "{text}");
        }
        check("a();\n#[cfg(test)]\nmod tests {\n    b();\n}\nc();\n", &[(2, 5)]);
        check("#[cfg(test)]\nmod tests {\n    const A: &str = r#\"\n}\n\"#;\n}\n", &[(1, 6)]);
        check("#[cfg(test)]\nmod a {\n  mod b {\n    fn c() {}\n  }\n}\nd();\n", &[(1, 6)]);
        check("#[cfg(test)]\nmod tests;\nfn a() {\n}\n", &[(1, 2)]);
        check("#[cfg(all(test, unix))]\nfn a() {}\n", &[(1, 2)]);
        check("#[cfg(not(test))]\nfn a() {}\n#[cfg(feature = \"test\")]\nfn b() {}\n", &[]);
        check("// #[cfg(test)]\nfn a() {}\n", &[]);
    }
}
