//! What the program prints, compared with a file in `snapshots/`. What differs between two runs is replaced before.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What several commands print, as a person sees it in a terminal.
pub(crate) struct Transcript {
    text: String,
    directory: PathBuf,
}

impl Transcript {
    /// `directory` is the temporary directory of the test, which must not be in a snapshot.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { text: String::new(), directory: directory.to_owned() }
    }

    /// Runs a command and adds its output: standard output, standard error, and an exit code other than 0.
    #[track_caller]
    pub(crate) fn run(&mut self, shown: &str, command: &mut Command) {
        let output = command.env("TZ", "UTC").output().expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let separator = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{separator}$ {shown}");
        self.text += &text(&output.stdout);
        self.text += &text(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(code) => {
                let _ = writeln!(self.text, "(exit code {code})");
            }
            None => panic!("{shown} was ended by a signal: {}", self.text),
        }
    }

    /// Adds what a command showed in a terminal in which something was typed.
    pub(crate) fn add(&mut self, shown: &str, text: &str) {
        let separator = if self.text.is_empty() { "" } else { "\n" };
        let _ = writeln!(self.text, "{separator}$ {shown}\n{}", text.replace("\r\n", "\n").trim_end());
    }

    /// Compares everything with the snapshot of this name.
    #[track_caller]
    pub(crate) fn check(&self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_snapshot_path("snapshots");
        let text = redact(&self.text, &self.directory);
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}

/// Shapes of what differs from run to run: `9` is a digit, `x` a hexadecimal digit, `s` a character of a
/// short id, the rest stands for itself.
const SHAPES: [(&str, &str); 14] = [
    ("backup-99999999-999999", "backup-<time>"),
    ("\"short_id\":\"ssss\"", "\"short_id\":\"<short>\""),
    ("[ssss]", "[<short>]"),
    ("\nssss ", "\n<short> "),
    ("\n ssss ", "\n <short> "),
    ("\n* ssss ", "\n* <short> "),
    ("\n  ssss ", "\n  <short> "),
    ("q-9999999999-xxxxxx", "<question>"),
    ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "<id>"),
    ("9999-99-99T99:99:99+9999", "<time>"),
    ("9999-99-99 99:99:99", "<time>"),
    ("99-99 99:99:99", "<time>"),
    ("99:99:99", "<time>"),
    ("xxxxxxxx", "<scope>"),
];

fn redact(text: &str, directory: &Path) -> String {
    let binary = env!("CARGO_BIN_EXE_ringer");
    let text = text.replace(directory.to_str().expect("UTF-8"), "<dir>").replace(binary, "<ringer>");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "<version>");
    let text = SHAPES.iter().fold(text, |text, (shape, name)| replace_shape(&text, shape, name));
    let text = replace_number_after(&text, "pid ", "<pid>");
    replace_number_after(&text, "for ", "<seconds>")
}

/// Replaces whole words of this shape.
fn replace_shape(text: &str, shape: &str, name: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric();
    let (mut replaced, mut rest, mut before) = (String::new(), text, None);
    while let Some(first) = rest.chars().next() {
        let after = rest.get(shape.len()..);
        let starts = !(before.is_some_and(is_word) && shape.starts_with(is_word))
            && rest.get(..shape.len()).is_some_and(|part| has_shape(part, shape));
        match after {
            Some(after) if starts && !after.starts_with(is_word) => {
                replaced += name;
                (rest, before) = (after, None);
            }
            _ => {
                replaced.push(first);
                (rest, before) = (&rest[first.len_utf8()..], Some(first));
            }
        }
    }
    replaced
}

fn has_shape(part: &str, shape: &str) -> bool {
    part.len() == shape.len()
        && part.bytes().zip(shape.bytes()).all(|(byte, kind)| match kind {
            b'9' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            b's' => b"bcdfghjkmnpqrstvwxz23456789".contains(&byte),
            other => byte == other,
        })
}

fn replace_number_after(text: &str, word: &str, name: &str) -> String {
    let mut parts = text.split(word);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|character: char| character.is_ascii_digit());
        replaced += word;
        replaced += if rest.len() == part.len() { "" } else { name };
        replaced += rest;
    }
    replaced
}

#[test]
fn only_what_differs_is_replaced() {
    let text = "at 2026-11-16T01:30:40+0000 in /tmp/x/home (pid 12), 70ae1457, feedbeefs, 01997a3e-0a1b-7c2d-8e3f-0123456789ab";
    let expect = "at <time> in <dir>/home (pid <pid>), <scope>, feedbeefs, <id>";
    assert_eq!(redact(text, Path::new("/tmp/x")), expect);
}
