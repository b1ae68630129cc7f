use super::complaint::Complaint;
use super::listing::TextFile;
use super::source;

/// The page whose tables name the tests that prove its statements.
const PAGE: &str = "docs/reliability.md";
/// The heading of the column with the tests.
const COLUMN: &str = "shown by";

/// The nextest profiles. One selects tests by their full path: `test(=hub::inbox::the_walk)`.
const PROFILES: &str = ".config/nextest.toml";

/// Checks that named tests exist. After a rename or removal, the page would claim something that no test proves, and the
/// profile would run one test less.
pub(super) fn check(files: &[TextFile]) -> Vec<Complaint> {
    let tests: Vec<String> = files.iter().flat_map(tests).collect();
    let is_test = |name: &str| tests.iter().any(|test| test.contains(&format!("::{name}::")));
    let complaints = |path: &str, names: fn(&str) -> Vec<(usize, &str)>| {
        let text = files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
        let missing = names(text).into_iter().filter(|(_, name)| !is_test(name));
        let complaint =
            |(line, name)| Complaint::new(path, line, format!("no test or file of tests is called `{name}`"));
        missing.map(complaint).collect::<Vec<_>>()
    };
    let mut found = complaints(PAGE, names);
    found.extend(complaints(PROFILES, chosen));
    found
}

/// Returns the tests that a profile selects by path, each with its line.
fn chosen(profiles: &str) -> Vec<(usize, &str)> {
    let lines = (1..).zip(profiles.lines());
    lines
        .filter_map(|(number, line)| Some((number, line.split_once("test(=")?.1.split_once(')')?.0)))
        .collect()
}

/// Returns the test names in the last column of these tables, each with its line. Quoted text with a space is a command.
fn names(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // `Some(true)` if this line is in a table with the column of tests.
    let mut names_tests = None;
    for (number, line) in (1..).zip(page.lines()) {
        let Some(cell) = last_cell(line) else {
            names_tests = None;
            continue;
        };
        if *names_tests.get_or_insert(cell == COLUMN) {
            let quoted = cell.split('`').skip(1).step_by(2);
            found.extend(quoted.filter(|name| !name.contains(' ')).map(|name| (number, name)));
        }
    }
    found
}

fn last_cell(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    row.rsplit('|').next().map(str::trim)
}

/// Returns the tests of a file by their names in the test runner, between colons: `::hub::stopped::hooks_end_…::`.
fn tests(file: &TextFile) -> Vec<String> {
    if !source::is_rust(&file.path) {
        return Vec::new();
    }
    let code = source::code_only(&file.text);
    let module = module(&file.path);
    let mut found = Vec::new();
    let mut is_marked = false;
    for line in code.lines().map(str::trim) {
        is_marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let Some((_, rest)) = line.split_once("fn ").filter(|_| is_marked) else { continue };
        let name: String = rest.chars().take_while(|c| source::is_name(*c)).collect();
        found.push(format!("::{module}{name}::"));
        is_marked = false;
    }
    found
}

/// Returns `hub::stopped::` for `crates/cli/tests/it/hub/stopped.rs`. The directory in `tests` is a program, not a module.
fn module(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let inside = match (path.split_once("/tests/"), path.split_once("/src/")) {
        (Some((_, program)), _) => program.split_once('/').map_or("", |(_, inside)| inside),
        (None, Some((_, inside))) => inside,
        (None, None) => path,
    };
    let parts = inside.split('/').filter(|part| !matches!(*part, "" | "main" | "lib" | "mod"));
    parts.map(|part| format!("{part}::")).collect()
}

#[cfg(test)]
mod tests {
    use super::{PAGE, PROFILES};
    use crate::tidy::listing::TextFile;

    const STOPPED: (&str, &str) =
        ("crates/cli/tests/it/hub/stopped.rs", "#[test]\n#[cfg(unix)]\nfn hooks_end() {}\nfn helper() {}\n");
    const SERVER: (&str, &str) =
        ("crates/hub/src/server.rs", "    #[tokio::test]\n    async fn lines_come() {}\n");

    /// The lines of the page that are complained about.
    #[track_caller]
    fn check(page: &str, expect: &[usize]) {
        let file = |(path, text): (&str, &str)| TextFile { path: path.to_owned(), text: text.to_owned() };
        let complaints = super::check(&[STOPPED, (PAGE, page), SERVER].map(file));
        let found: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        let lines = expect.iter().map(|line| format!("{PAGE}:{line}: "));
        assert_eq!(found.len(), expect.len(), "{found:?}");
        assert!(found.iter().zip(lines).all(|(found, line)| found.starts_with(&line)), "{found:?}");
    }

    /// A table that names tests, with this in its last column.
    fn table(cell: &str) -> String {
        format!("| fault | shown by |\n|---|---|\n| `no_such_test` | {cell} |\n")
    }

    #[test]
    fn a_profile_chooses_tests_by_their_whole_path() {
        let file = |(path, text): (&str, &str)| TextFile { path: path.to_owned(), text: text.to_owned() };
        let profiles = "kind(lib)\n| test(=hub::stopped::hooks_end)\n| test(=hub::stopped::renamed)\n";
        let complaints = super::check(&[STOPPED, (PROFILES, profiles)].map(file));
        let found: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        let expected = format!("{PROFILES}:3: no test or file of tests is called `hub::stopped::renamed`");
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_test_and_a_file_of_tests_are_known() {
        for name in ["hooks_end", "stopped::hooks_end", "hub::stopped", "stopped", "lines_come", "server"] {
            check(&table(&format!("`{name}`")), &[]);
        }
        check(&table("`hooks_end`, `lines_come`, `cargo xtask stress`"), &[]);
    }

    #[test]
    fn what_is_not_there_is_told_with_its_line() {
        for name in ["hooks_ended", "hooks", "helper", "cli::stopped", "it::hub", "hub::hooks_end"] {
            check(&table(&format!("`{name}`")), &[3]);
        }
        check(&table("`gone`, `hooks_end`, `gone_as_well`"), &[3, 3]);
        check(&format!("{}\n{}", table("`hooks_end`"), table("`gone`")), &[7]);
    }

    #[test]
    fn other_columns_tables_and_text_are_passed_over() {
        check("| command | what it counted |\n|---|---|\n| x | `gone` |\n", &[]);
        check("`gone`\n| fault |\n", &[]);
    }
}
