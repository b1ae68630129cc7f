//! Shared test support: skipping tests that cannot run on this machine, a directory that hangs, a session bus, a virtual
//! screen, a notification server, a stand-in for logind, a NATS server, a web server, a stand-in for a model's server,
//! waiting with a deadline, and seeded random numbers.
//!
//! Rust's test runner has no result for a test that discovers at run time that a privilege, a version or a program is
//! missing. Such a test asks here, and returns if the answer is no:
//!
//! ```no_run
//! # fn the_home_of_another_user_is_refused() {
//! if !test_support::is_root() {
//!     return;
//! }
//! # }
//! ```
//!
//! `cargo xtask test` sets [`SKIPS`] to the path of a file, and lists the skipped tests in it at the end of the run. Without
//! such a file nobody would see the list, so the test fails instead. With [`TESTS`]`=all`, which CI sets, a skipped test
//! always fails, because CI has every privilege and every program. Only a program that is too old ([`unsupported`]) never
//! fails a test.
//!
//! For `[dev-dependencies]` only; `cargo xtask tidy` rejects other uses.

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
pub use web_server::{BOT_TOKEN, WebRequest, WebResponse, serve};

/// Removes the nonces of notifications, which differ from session to session.
pub fn without_nonces(text: &str) -> String {
    let mut parts = text.split(" nonce=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    // 32 digits and a quotation mark.
    parts.fold(first, |text, part| text + part.get(33..).unwrap_or_default())
}

/// The variable with the path of the file to which skipped tests are appended: one line each, with name, tab and reason.
pub const SKIPS: &str = "RINGER_SKIPS";

/// The variable that is `all` if no test may be skipped.
pub const TESTS: &str = "RINGER_TESTS";

/// Returns true if the tests run as root; otherwise reports the test as skipped.
#[must_use = "a test that is skipped has to return"]
#[track_caller]
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("it needs root");
    }
    root
}

/// Returns true if the test can mount file systems in its own mount namespace; otherwise reports it as skipped. Root in a
/// container may lack the privilege.
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

/// Reports the running test as skipped because this machine or this user lacks something.
///
/// # Panics
///
/// If no test may be skipped, or if nobody would see the report.
#[track_caller]
pub fn skip(reason: &str) {
    let test = running_test();
    match Run::this().skip(&test, reason) {
        Ok(()) => say(&test, reason),
        Err(failure) => panic!("{failure}"),
    }
}

/// Reports that a part of the running test was left out because an installed program is too old. Never fails: neither a
/// privilege nor a package of the system would change that.
pub fn unsupported(reason: &str) {
    let test = running_test();
    Run::this().report(&test, reason);
    say(&test, reason);
}

/// Writes to standard error directly: the test runner captures the output of `eprintln!` and shows it only for failed tests.
fn say(test: &str, reason: &str) {
    let _ = io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes());
}

/// Unwraps the result of starting a program that `cargo xtask test` installs.
///
/// # Panics
///
/// If the program did not start.
#[track_caller]
pub fn started<T>(program: &str, outcome: io::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("{program} is needed (cargo xtask test installs it): {error}"))
}

/// Returns the crate and the name of the test that runs on this thread.
fn running_test() -> String {
    let thread = thread::current();
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    format!("{package} {}", thread.name().unwrap_or("a test")).trim_start().to_owned()
}

/// How the caller of the tests wants skipped tests to be handled.
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

/// A single write, so that lines of concurrent tests do not interleave.
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
