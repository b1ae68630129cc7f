use std::fmt;

/// One place that breaks a rule, printed as `path:line: message` because editors jump there.
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

/// Runs one rule over one made-up file and compares the lines it complains about.
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
