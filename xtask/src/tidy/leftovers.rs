use super::complaint::Complaint;
use super::listing::TextFile;
use super::source;

/// Markers of unfinished work and forgotten prints. They are split, so that this file does not match itself.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
    concat!("db", "g!"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// Also checks comments and doctests: notes about unfinished work are never followed up.
pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    if !source::is_rust(&file.path) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for leftover in LEFTOVERS.iter().filter(|leftover| source::has_word(line, leftover)) {
            complaints.push(Complaint::new(
                &file.path,
                number,
                format!("`{leftover}` left over: do it, or drop it"),
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::LEFTOVERS;
    use crate::tidy::complaint::check_lines;

    fn check(path: &str, text: &str, expect: &[usize]) {
        check_lines(super::check, path, text, expect);
    }

    #[test]
    fn every_leftover_is_named() {
        // Spelled again, cut elsewhere: a list compared with itself proves nothing.
        let spelled = [["tod", "o!"], ["un", "implemented!"], ["d", "bg!"], ["F", "IXME"], ["XX", "X"]]
            .map(|halves| halves.concat());
        assert_eq!(spelled, LEFTOVERS);
        for leftover in spelled {
            check("crates/term/src/scanner.rs", &format!("fn f() {{\n    {leftover}(x)\n}}\n"), &[2]);
            check("crates/term/tests/it/main.rs", &format!("// {leftover}: later\n"), &[1]);
        }
    }

    #[test]
    fn only_whole_words_in_rust() {
        let leftover = LEFTOVERS[4];
        check("crates/term/src/scanner.rs", &format!("let template = \"ringer.{leftover}X\";\n"), &[]);
        check("crates/term/src/scanner.rs", &format!("my_{}(x);\n", LEFTOVERS[0]), &[]);
        check("docs/plan.md", leftover, &[]);
    }
}
