//! Watches for the socket of a hub.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The number and the interval of attempts to connect to a socket that was just created.
#[cfg(target_os = "linux")]
const LISTEN_TRIES: usize = 20;
#[cfg(target_os = "linux")]
const LISTEN_AGAIN: std::time::Duration = std::time::Duration::from_millis(10);

/// Watches the directory of the hub's socket. There is one watch at a time, and it ends when the hub is found.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux reports changes"))]
pub(super) struct HubWatch {
    socket: Option<PathBuf>,
    is_watching: Arc<AtomicBool>,
}

impl HubWatch {
    pub(super) fn new(socket: Option<PathBuf>) -> Self {
        Self { socket, is_watching: Arc::default() }
    }

    /// Calls `found` on another thread once the hub accepts connections. Returns false if the directory cannot be watched.
    #[cfg(target_os = "linux")]
    pub(super) fn begin(&self, found: impl FnOnce() + Send + 'static) -> bool {
        use std::sync::atomic::Ordering;

        use ringer_platform::{DirectoryChanges, owned};

        let Some(socket) = self.socket.clone() else { return false };
        let Some(directory) = socket.parent().filter(|directory| directory.is_dir()) else { return false };
        if self.is_watching.swap(true, Ordering::Relaxed) {
            return true;
        }
        let Ok(changes) = DirectoryChanges::begin([directory].into_iter()) else {
            self.is_watching.store(false, Ordering::Relaxed);
            return false;
        };
        let is_watching = Arc::clone(&self.is_watching);
        std::thread::spawn(move || {
            // The hub may have started before the watch.
            let mut is_there = owned::connect(&socket).is_ok();
            while !is_there {
                match changes.wait() {
                    Ok(paths) if paths.contains(&socket) => is_there = listens(&socket),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
            is_watching.store(false, Ordering::Relaxed);
            found();
        });
        true
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux reports changes")]
    pub(super) fn begin(&self, _found: impl FnOnce() + Send + 'static) -> bool {
        false
    }
}

/// Returns true if the hub accepts connections. Its socket exists a moment before that.
#[cfg(target_os = "linux")]
fn listens(socket: &std::path::Path) -> bool {
    let is_there = || ringer_platform::owned::connect(socket).is_ok();
    (0..LISTEN_TRIES).any(|_| {
        let is_there = is_there();
        if !is_there {
            std::thread::sleep(LISTEN_AGAIN);
        }
        is_there
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_hub_is_found_once_also_if_it_was_there_before() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("hub.sock");
        let watch = HubWatch::new(Some(socket.clone()));
        let (found, finds) = channel();
        let begin = || {
            let found = found.clone();
            watch.begin(move || found.send(()).unwrap())
        };
        assert!(begin() && begin(), "one watch is enough");
        std::fs::write(directory.path().join("other"), "").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        finds.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(finds.try_recv().is_err(), "it was found once");
        assert!(begin());
        finds.recv_timeout(Duration::from_secs(20)).unwrap();
        drop(listener);
        assert!(!HubWatch::new(Some(directory.path().join("nowhere/hub.sock"))).begin(|| {}));
        assert!(!HubWatch::new(None).begin(|| {}));
    }
}
