use super::complaint::Complaint;
use super::listing::TextFile;
use super::source;

/// Marks a line whose sleep does not wait for something else.
const ESCAPE: &str = "// tidy: sleep is the thing under test";

const CALL: &str = "sleep(";

/// Finds sleeps in tests. A test that sleeps is slow on a fast machine and wrong on a slow one.
pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    if !source::is_rust(&file.path) {
        return Vec::new();
    }
    let code = source::code_only(&file.text);
    let all_is_test = is_test_file(&file.path);
    let test_items = source::test_lines(&code);
    let is_test = |number: usize| all_is_test || test_items.iter().any(|lines| lines.contains(&number));
    (1..)
        .zip(file.text.lines().zip(code.lines()))
        .filter(|(number, (line, code))| {
            is_test(*number) && sleeps(code) && !line.trim_end().ends_with(ESCAPE)
        })
        .map(|(number, _)| {
            let message =
                format!("wait for an event with a deadline instead, or end the line with `{ESCAPE}`");
            Complaint::new(&file.path, number, message)
        })
        .collect()
}

/// Matches files in a folder of integration tests, and the `tests.rs` that a module declares under `cfg(test)`.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Returns true for a call, however it is qualified, but not for `fn sleep(` or `no_sleep(`.
fn sleeps(code: &str) -> bool {
    code.match_indices(CALL).any(|(at, _)| {
        let before = &code[..at];
        !before.ends_with(source::is_name) && !before.trim_end().ends_with("fn")
    })
}

#[cfg(test)]
mod tests {
    use super::ESCAPE;
    use crate::tidy::complaint::check_lines;

    fn check(path: &str, text: &str, expect: &[usize]) {
        check_lines(super::check, path, text, expect);
    }

    #[test]
    fn tests_do_not_sleep() {
        check("crates/hub/tests/it/socket.rs", "fn a() {\n    thread::sleep(b);\n}\n", &[2]);
        check("crates/hub/tests/it/socket.rs", "use std::thread::sleep;\nfn a() { sleep(b) }\n", &[2]);
        check("crates/hub/tests/it/socket.rs", "tokio::time::sleep(b).await;\n", &[1]);
        check("crates/hub/src/feed/tests.rs", "sleep(b);\n", &[1]);
        check("crates/hub/src/feed.rs", "#[cfg(test)]\nmod tests {\n    fn a() { sleep(b) }\n}\n", &[3]);
    }

    #[test]
    fn the_product_may() {
        check("crates/hub/src/feed.rs", "fn a() {\n    thread::sleep(b);\n}\n", &[]);
        check("crates/hub/src/feed.rs", "fn a() { sleep(b) }\n#[cfg(test)]\nmod tests {\n}\n", &[]);
        check("crates/hub/tests/it/slow.sh", "sleep(1)\n", &[]);
    }

    #[test]
    fn only_calls_count() {
        check("tests/a.rs", "// sleep(b)\nlet a = \"sleep(1)\";\nno_sleep(b);\nfn sleep(b: u8) {}\n", &[]);
    }

    #[test]
    fn the_escape_is_for_one_line() {
        check("tests/a.rs", &format!("sleep(b); {ESCAPE}\n"), &[]);
        check("tests/a.rs", &format!("sleep(b); {ESCAPE}\nsleep(b);\n"), &[2]);
        check("tests/a.rs", "sleep(b); // because\n", &[1]);
    }
}
