use std::fmt;

/// A violation of a rule, printed as `path:line: message`, which editors can jump to.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Complaint {
    path: String,
    line: usize,
    message: String,
}

impl Complaint {
    pub(super) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs a rule on a made-up file and compares the lines of its complaints.
#[cfg(test)]
pub(super) fn check_lines(
    rule: fn(&super::TextFile) -> Vec<Complaint>,
    path: &str,
    text: &str,
    expect: &[usize],
) {
    let complaints = rule(&super::TextFile { path: path.to_owned(), text: text.to_owned() });
    let lines: Vec<usize> = complaints.iter().map(|complaint| complaint.line).collect();
    assert_eq!(lines, expect, "{path} with {text:?} gave {complaints:#?}");
}
