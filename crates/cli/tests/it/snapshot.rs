//! Compares what a person reads with the files in `snapshots/`. What differs between machines and runs is replaced first.
//!
//! To accept a changed text: `INSTA_UPDATE=always cargo nextest run -p ringer snapshots`, then read the diff.

use std::path::Path;
use std::process::Command;

use insta::{Settings, assert_snapshot};

/// Regular expressions for what differs, and what is shown instead.
const FILTERS: [(&str, &str); 7] = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}", "[time]"),
    (r"\b\d\d-\d\d \d\d:\d\d:\d\d", "[time]"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]"),
    (r"q-\d{10}-[0-9a-f]{6}", "[question]"),
    (r"\bpid \d+", "pid [pid]"),
    (r"(scope +|repo:|in )[0-9a-f]{8}\b", "${1}[scope]"),
    // clap leaves spaces at the ends of some lines.
    (r"(?m) +$", ""),
];

/// Runs a command and compares its exit code, standard output and standard error with a snapshot. Paths below `directory`
/// are shortened.
#[track_caller]
pub(crate) fn check_command(name: &str, command: &mut Command, directory: &Path) {
    // Without a terminal clap wraps at this width, whatever the machine.
    let output = command.env("COLUMNS", "100").env("TZ", "UTC").env("LC_ALL", "C").output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("an exit code");
    let mut shown = format!("exit {code}\n{}", text(&output.stdout));
    if !output.stderr.is_empty() {
        shown += &format!("--- standard error\n{}", text(&output.stderr));
    }
    let directory = directory.to_str().expect("UTF-8");
    let shown = shown.replace(directory, "[dir]").replace(env!("CARGO_PKG_VERSION"), "[version]");
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, replacement) in FILTERS {
        settings.add_filter(pattern, replacement);
    }
    settings.bind(|| assert_snapshot!(name, shown));
}
