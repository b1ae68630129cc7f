use super::complaint::Complaint;
use super::listing::TextFile;

/// The longest file, in lines. A longer one probably has two jobs.
const LIMIT: usize = 800;

pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    let lines = file.text.lines().count();
    if !is_source(&file.path) || lines <= LIMIT {
        return Vec::new();
    }
    let message = format!("{lines} lines; a file has at most {LIMIT}: give its second job a file");
    vec![Complaint::new(&file.path, 1, message)]
}

/// Matches `crates/*/src/**.rs` and `xtask/src/**.rs`.
fn is_source(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(_, inside)| inside);
    let inside = inside.or_else(|| path.strip_prefix("xtask/"));
    inside.is_some_and(|inside| inside.starts_with("src/")) && super::source::is_rust(path)
}

#[cfg(test)]
mod tests {
    use super::LIMIT;
    use crate::tidy::listing::TextFile;

    fn check(path: &str, lines: usize, expect: bool) {
        let file = TextFile { path: path.to_owned(), text: "x\n".repeat(lines) };
        let complaints = super::check(&file);
        assert_eq!(!complaints.is_empty(), expect, "{path}, {lines} lines: {complaints:?}");
    }

    #[test]
    fn long_sources_are_named() {
        check("crates/term/src/scanner.rs", LIMIT, false);
        check("crates/term/src/scanner.rs", LIMIT + 1, true);
        check("crates/term/src/osc/title.rs", LIMIT + 1, true);
        check("xtask/src/main.rs", LIMIT + 1, true);
    }

    #[test]
    fn only_sources_count() {
        check("crates/term/tests/it/main.rs", LIMIT + 1, false);
        check("crates/term/src/widths.txt", LIMIT + 1, false);
        check("fuzz/src/main.rs", LIMIT + 1, false);
    }
}
