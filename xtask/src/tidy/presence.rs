use super::complaint::Complaint;
use super::listing::TextFile;

/// The files that a new contributor looks for, and the script that runs for every change.
const REQUIRED: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/run"];

pub(super) fn check(files: &[TextFile]) -> Vec<Complaint> {
    let is_there = |path: &&str| files.iter().any(|file| file.path == **path);
    let absent = REQUIRED.iter().filter(|path| !is_there(path));
    absent.map(|path| Complaint::new(path, 1, "not in the repository")).collect()
}

#[cfg(test)]
mod tests {
    use super::REQUIRED;
    use crate::tidy::complaint::Complaint;
    use crate::tidy::listing::TextFile;

    fn check(paths: &[&str], expect: &[&str]) {
        let files: Vec<TextFile> =
            paths.iter().map(|path| TextFile { path: (*path).to_owned(), text: String::new() }).collect();
        let expect: Vec<Complaint> =
            expect.iter().map(|path| Complaint::new(path, 1, "not in the repository")).collect();
        assert_eq!(super::check(&files), expect, "{paths:?}");
    }

    #[test]
    fn each_absent_file_is_one_complaint() {
        check(REQUIRED, &[]);
        check(&REQUIRED[1..], &["README.md"]);
        check(
            &["docs/README.md", "CHANGELOG.md", ".ci/run"],
            &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"],
        );
    }
}
