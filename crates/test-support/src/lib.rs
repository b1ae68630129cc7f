//! What the tests of all crates share: a test that cannot run where it is says so, and never passes. And a directory that
//! hangs, a session bus, a screen, a notification server, a stand-in for logind, a web server, a stand-in for a
//! model's server, waiting with a deadline, and random numbers with a seed.
//!
//! Rust's test runner has no result for a test that finds out while it runs that something is missing: a right, a
//! version, a program. Such a test asks here, and returns if the answer is no:
//!
//! ```no_run
//! # fn the_home_of_another_user_is_refused() {
//! if !test_support::is_root() {
//!     return;
//! }
//! # }
//! ```
//!
//! `cargo xtask test` names a file in [`SKIPS`]; what is written there is listed when the run is over. Where there is no
//! such file, the list would reach no reader, so the test fails instead. With [`TESTS`]`=all`, which CI sets, it always
//! fails, because CI has every right and every program. Only what a program of this system is too old for
//! ([`unsupported`]) fails nowhere.
//!
//! For `[dev-dependencies]` only; `cargo xtask tidy` refuses it elsewhere.

#![expect(clippy::panic, reason = "a test that can neither run nor be reported as skipped has failed")]

mod desktop_session;
mod files;
#[cfg(feature = "desktop")]
mod login_manager;
#[cfg(feature = "model")]
mod messages_api;
#[cfg(feature = "model")]
mod model;
mod nats_server;
#[cfg(feature = "desktop")]
mod notification_server;
mod random;
mod wait;
mod web_server;

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

pub use desktop_session::{SessionBus, VirtualScreen, first_line};
pub use files::{HangingDirectory, copy_program, make_fifo, make_program};
#[cfg(feature = "desktop")]
pub use login_manager::LoginManager;
#[cfg(feature = "model")]
pub use messages_api::Messages;
#[cfg(feature = "model")]
pub use model::{Answer, Model, ModelRequest, Wire};
pub use nats_server::{NATS_USERS, NatsServer, NatsUser};
#[cfg(feature = "desktop")]
pub use notification_server::{
    BlockingNotificationServer, NotificationServer, NotifyCall, ServerBehaviour, ServerCall, in_time,
};
pub use random::Random;
pub use wait::{DEADLINE, until, until_within};
pub use web_server::{WebRequest, WebResponse, serve};

/// A text without the nonces of the notifications in it, which differ from session to session.
pub fn without_nonces(text: &str) -> String {
    let mut parts = text.split(" nonce=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    // 32 digits and a quotation mark.
    parts.fold(first, |text, part| text + part.get(33..).unwrap_or_default())
}

/// Names the file in which `cargo xtask test` wants to find what was skipped: a line for each, name, tab, reason.
pub const SKIPS: &str = "RINGER_SKIPS";

/// `all` when every test has to run.
pub const TESTS: &str = "RINGER_TESTS";

/// Whether the tests run as root; if not, the test is skipped.
#[must_use = "a test that is skipped has to return"]
#[track_caller]
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("it needs root");
    }
    root
}

/// Whether file systems can be mounted in a namespace of one's own; if not, the test is skipped. Root in a container
/// may lack the right.
#[must_use = "a test that is skipped has to return"]
#[track_caller]
pub fn can_mount() -> bool {
    if !is_root() {
        return false;
    }
    let tried = Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
        .stdin(Stdio::null())
        .output();
    let complaint = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    skip(&format!("it needs the right to mount (`unshare --mount`: {complaint})"));
    false
}

/// Reports the running test as skipped because something is missing that another machine, or root, has.
///
/// # Panics
///
/// Where every test has to run, or where the report would reach no reader.
#[track_caller]
pub fn skip(reason: &str) {
    let test = running_test();
    match Run::this().skip(&test, reason) {
        Ok(()) => say(&test, reason),
        Err(failure) => panic!("{failure}"),
    }
}

/// Reports that a part of the running test was left out because a program of this system is too old for it. Never fails:
/// no right and no package of the system would change that.
pub fn unsupported(reason: &str) {
    let test = running_test();
    Run::this().report(&test, reason);
    say(&test, reason);
}

/// Not with a macro: what a test prints with one is shown only when the test fails.
fn say(test: &str, reason: &str) {
    let _ = io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
}

/// What came of starting a program that the tests need and `cargo xtask test` installs.
///
/// # Panics
///
/// Where it could not be started.
#[track_caller]
pub fn started<T>(program: &str, outcome: io::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("{program} is needed (cargo xtask test installs it): {error}"))
}

/// The crate and the name of the test on this thread.
fn running_test() -> String {
    let thread = thread::current();
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    format!("{package} {}", thread.name().unwrap_or("a test")).trim_start().to_owned()
}

/// What the caller of the tests wants to know of skipped ones.
struct Run {
    everything: bool,
    report: Option<PathBuf>,
}

impl Run {
    fn this() -> Self {
        Self {
            everything: env::var_os(TESTS).is_some_and(|value| value == "all"),
            report: env::var_os(SKIPS).filter(|path| !path.is_empty()).map(PathBuf::from),
        }
    }

    fn skip(&self, test: &str, reason: &str) -> Result<(), String> {
        if self.everything {
            return Err(format!("{test}: {reason}, and {TESTS}=all allows no skipped test"));
        }
        if self.report.is_none() {
            return Err(format!(
                "{test}: {reason}; `cargo xtask test` runs the tests and reports it as skipped"
            ));
        }
        self.report(test, reason);
        Ok(())
    }

    fn report(&self, test: &str, reason: &str) {
        if let Some(path) = &self.report
            && let Err(error) = append(path, &format!("{test}\t{}\n", reason.replace('\n', " ")))
        {
            panic!("{test} cannot be reported as skipped in {}: {error}", path.display());
        }
    }
}

/// One write, so that the lines of tests that run at the same time stay whole.
fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Run, running_test};
    use std::fs;

    #[test]
    fn a_skip_is_written_down() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let run = Run { everything: false, report: Some(file.path().to_owned()) };
        run.skip("ringer a::b", "it needs root").unwrap();
        run.report("ringer a::c", "no such option:\nall");
        let written = fs::read_to_string(file.path()).unwrap();
        assert_eq!(written, "ringer a::b\tit needs root\nringer a::c\tno such option: all\n");
    }

    #[test]
    fn a_skip_fails_where_it_would_be_overlooked() {
        fn check(everything: bool, with_file: bool, expect: &str) {
            let file = tempfile::NamedTempFile::new().unwrap();
            let run = Run { everything, report: with_file.then(|| file.path().to_owned()) };
            let failure = run.skip("ringer a::b", "it needs root").unwrap_err();
            assert!(
                failure.starts_with("ringer a::b: it needs root") && failure.contains(expect),
                "{failure}"
            );
            assert_eq!(fs::read_to_string(file.path()).unwrap(), "");
        }
        check(false, false, "cargo xtask test");
        check(true, false, "RINGER_TESTS=all");
        check(true, true, "RINGER_TESTS=all");
    }

    #[test]
    fn what_is_too_old_fails_nowhere() {
        for everything in [false, true] {
            Run { everything, report: None }.report("ringer a::b", "tmux 3.3");
        }
    }

    #[test]
    fn a_test_knows_its_name() {
        let name = running_test();
        assert!(name.ends_with("tests::a_test_knows_its_name"), "{name}");
    }
}
