use super::complaint::Complaint;
use super::listing::TextFile;

/// A file is read in one sitting; one that grows past this has two jobs.
const LIMIT: usize = 450;

/// Path and reason. The aim is none.
const EXCEPTIONS: &[(&str, &str)] = &[];

pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    check_against(file, EXCEPTIONS)
}

fn check_against(file: &TextFile, exceptions: &[(&str, &str)]) -> Vec<Complaint> {
    if !is_source(&file.path) {
        return Vec::new();
    }
    let lines = file.text.lines().count();
    let excepted = exceptions.iter().any(|(path, _)| *path == file.path);
    let message = match (lines > LIMIT, excepted) {
        (true, false) => format!("{lines} lines; a file has at most {LIMIT}: give its second job a file"),
        (false, true) => format!("{lines} lines: its exception is no longer needed"),
        _ => return Vec::new(),
    };
    vec![Complaint::new(&file.path, 1, message)]
}

/// `crates/*/src/**.rs` and `xtask/src/**.rs`.
fn is_source(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map(|(_, inside)| inside);
    let inside = inside.or_else(|| path.strip_prefix("xtask/"));
    inside.is_some_and(|inside| inside.starts_with("src/")) && super::source::is_rust(path)
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, check_against};
    use crate::tidy::listing::TextFile;

    fn check(path: &str, lines: usize, exceptions: &[(&str, &str)], expect: bool) {
        let file = TextFile { path: path.to_owned(), text: "x\n".repeat(lines) };
        let complaints = check_against(&file, exceptions);
        assert_eq!(!complaints.is_empty(), expect, "{path}, {lines} lines: {complaints:?}");
    }

    #[test]
    fn long_sources_are_named() {
        check("crates/term/src/scanner.rs", LIMIT, &[], false);
        check("crates/term/src/scanner.rs", LIMIT + 1, &[], true);
        check("crates/term/src/osc/title.rs", LIMIT + 1, &[], true);
        check("xtask/src/main.rs", LIMIT + 1, &[], true);
    }

    #[test]
    fn only_sources_count() {
        check("crates/term/tests/it/main.rs", LIMIT + 1, &[], false);
        check("crates/term/src/widths.txt", LIMIT + 1, &[], false);
        check("fuzz/src/main.rs", LIMIT + 1, &[], false);
    }

    #[test]
    fn an_exception_holds_only_while_it_is_needed() {
        let exceptions = [("crates/term/src/widths.rs", "a table from Unicode")];
        check("crates/term/src/widths.rs", LIMIT + 1, &exceptions, false);
        check("crates/term/src/widths.rs", LIMIT, &exceptions, true);
        check("crates/term/src/scanner.rs", LIMIT + 1, &exceptions, true);
    }
}
