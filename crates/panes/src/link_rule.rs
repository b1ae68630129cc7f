//! Decides which links of programs are shown. A link to a file is looked up on a thread, because a file system may hang.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, thread};

use ringer_term::{LinkTarget, file_path, link_target};

/// Timeout for the lookup of a file, for which panes wait. On a local disk it takes microseconds.
const WITHIN: Duration = Duration::from_millis(5);

/// Returns true if a person may follow a link of a program: to a page, to mail, or to a file of this user on this machine.
pub(crate) fn may_be_followed(uri: &str) -> bool {
    match link_target(uri, &host_name()) {
        Some(LinkTarget::Address) => true,
        Some(LinkTarget::File(path)) => is_own_file(Path::new(&path)),
        None => false,
    }
}

/// The thread that looks up files.
struct FileLookup {
    looks: SyncSender<(PathBuf, SyncSender<bool>)>,
    /// A lookup has timed out. No other one is made until it ends.
    hangs: Arc<AtomicBool>,
}

impl FileLookup {
    fn start() -> Option<Self> {
        let (looks, wanted) = sync_channel(1);
        let hangs = Arc::new(AtomicBool::new(false));
        let thread_hangs = Arc::clone(&hangs);
        let run = move || run(&wanted, &thread_hangs);
        thread::Builder::new().name("links".to_owned()).spawn(run).ok()?;
        Some(Self { looks, hangs })
    }

    fn is_own(&self, path: &Path) -> bool {
        if self.hangs.load(Ordering::Acquire) {
            return false;
        }
        let (answer, answered) = sync_channel(1);
        if self.looks.try_send((path.to_owned(), answer)).is_err() {
            return false;
        }
        answered.recv_timeout(WITHIN).unwrap_or_else(|_| {
            self.hangs.store(true, Ordering::Release);
            // The answer may have arrived at this moment.
            let late = answered.try_recv();
            if late.is_ok() {
                self.hangs.store(false, Ordering::Release);
            }
            late.unwrap_or(false)
        })
    }
}

fn run(wanted: &Receiver<(PathBuf, SyncSender<bool>)>, hangs: &AtomicBool) {
    let own = rustix::process::geteuid().as_raw();
    while let Ok((path, answer)) = wanted.recv() {
        let is_own =
            fs::metadata(path).is_ok_and(|found| found.uid() == own && (found.is_file() || found.is_dir()));
        let _ = answer.send(is_own);
        hangs.store(false, Ordering::Release);
    }
}

/// Returns true if a file or directory belongs to this user, and false if that cannot be determined in time.
fn is_own_file(path: &Path) -> bool {
    static LOOKUP: OnceLock<Option<FileLookup>> = OnceLock::new();
    LOOKUP.get_or_init(FileLookup::start).as_ref().is_some_and(|lookup| lookup.is_own(path))
}

/// Parses the directory of OSC 7, which is a URL or a path. Returns `None` for a directory of another machine.
pub(crate) fn reported_directory(reported: &str) -> Option<PathBuf> {
    path_of(reported, &host_name())
}

fn path_of(directory: &str, host: &str) -> Option<PathBuf> {
    let path = match directory.strip_prefix("file:") {
        Some(rest) => file_path(rest, host)?,
        None => directory.to_owned(),
    };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

/// The name of this machine, which shells use in that URL.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_link_only_if_it_is_this_users() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("a b");
        fs::write(&own, "").unwrap();
        let url = |path: &Path| format!("file://localhost{}", path.display()).replace(' ', "%20");
        // A machine under load may need longer than panes wait.
        test_support::until("it is a link", || may_be_followed(&url(&own)));
        assert!(!may_be_followed(&url(&directory.path().join("missing"))));
        assert!(!may_be_followed("file:///dev/null"), "no file");
        let foreign = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&own, Some(65_534), None).unwrap();
            own
        } else {
            PathBuf::from("/etc/passwd")
        };
        assert!(!may_be_followed(&url(&foreign)));
        assert!(may_be_followed("https://example.org/") && !may_be_followed("javascript:alert(1)"));
    }

    #[test]
    fn a_file_system_that_hangs_makes_no_pane_wait_twice() {
        let (looks, wanted) = sync_channel(1);
        let lookup = FileLookup { looks, hangs: Arc::new(AtomicBool::new(false)) };
        assert!(!lookup.is_own(Path::new("/")));
        // The second one is not even looked up.
        assert!(!lookup.is_own(Path::new("/")));
        assert_eq!(wanted.try_iter().count(), 1);
        let directory = tempfile::tempdir().unwrap();
        let hangs = Arc::clone(&lookup.hangs);
        let (answer, answered) = sync_channel(1);
        lookup.looks.try_send((directory.path().to_owned(), answer)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || run(&wanted, &hangs));
            assert!(answered.recv().unwrap());
            drop(lookup);
        });
    }

    #[test]
    fn a_directory_may_come_as_a_url() {
        let check =
            |said: &str, path: Option<&str>| assert_eq!(path_of(said, "box"), path.map(PathBuf::from));
        check("file://box/src/api", Some("/src/api"));
        check("file:///src", Some("/src"));
        check("file://localhost/a%20b/%c3%A4%", Some("/a b/ä%"));
        check("file://box/%zz%+1", Some("/%zz%+1"));
        check("file://elsewhere/src", None);
        check("file://box/%ff", None);
        check("file://box/a%00b", None);
        check("file://box", None);
        check("/src%20", Some("/src%20"));
        check("src", None);
    }
}
