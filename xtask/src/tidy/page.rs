use super::complaint::Complaint;
use super::listing::TextFile;

/// Checks that a crate's `lib.rs` starts with its documentation.
pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    if !is_door(&file.path) {
        return Vec::new();
    }
    let sentence = file.text.lines().next().and_then(|first| first.strip_prefix("//!"));
    if sentence.is_some_and(|sentence| !sentence.trim().is_empty()) {
        return Vec::new();
    }
    let message = "begin with a `//!` page: purpose, an example, what it never does, its bounds";
    vec![Complaint::new(&file.path, 1, message)]
}

/// Matches `crates/*/src/lib.rs`.
fn is_door(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", "lib.rs"])
}

#[cfg(test)]
mod tests {
    use crate::tidy::complaint::check_lines;

    fn check(path: &str, text: &str, expect: &[usize]) {
        check_lines(super::check, path, text, expect);
    }

    #[test]
    fn a_library_begins_with_its_page() {
        check("crates/term/src/lib.rs", "//! Terminal bytes.\n", &[]);
        check("crates/term/src/lib.rs", "mod scanner;\n", &[1]);
        check("crates/term/src/lib.rs", "\n//! Terminal bytes.\n", &[1]);
        check("crates/term/src/lib.rs", "// Terminal bytes.\n", &[1]);
        check("crates/term/src/lib.rs", "//!\nmod scanner;\n", &[1]);
        check("crates/term/src/lib.rs", "", &[1]);
    }

    #[test]
    fn other_files_need_none() {
        check("crates/term/src/scanner.rs", "mod scanner;\n", &[]);
        check("crates/term/src/osc/lib.rs", "mod scanner;\n", &[]);
    }
}
