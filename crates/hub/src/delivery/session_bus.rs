//! Finds a working session bus.
//!
//! A hub may be started where there is no session bus, over ssh or by cron, and it outlives the desktop session that started it.
//! If it cannot show a popup on its own bus, it looks for a bus in the environments of the processes that sent it messages.
//! Senders need not do anything for this.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringer_core::MessageId;
use ringer_deliver::{Desktop, DisplayedPopup, Error, Popup};
use ringer_platform::owned;
use serde_json::{Value, json};

/// The most processes that are remembered: enough for a few terminals and agents.
const MAX_SENDERS: usize = 8;
/// The most bytes that are read of a process's environment. Linux allows more; usual ones have a few KiB.
const MAX_ENVIRONMENT: u64 = 1024 * 1024;

/// The processes that sent the latest messages.
#[derive(Debug, Default)]
pub(crate) struct RecentSenders(VecDeque<u32>);

impl RecentSenders {
    /// Records the sender of a message.
    pub(crate) fn add(&mut self, pid: u32) {
        self.0.retain(|known| *known != pid);
        self.0.push_front(pid);
        self.0.truncate(MAX_SENDERS);
    }

    /// Returns the processes, the latest first.
    pub(crate) fn recent(&self) -> Vec<u32> {
        self.0.iter().copied().collect()
    }
}

/// The desktop, on whichever session bus works.
#[derive(Debug, Clone)]
pub(crate) struct SessionDesktop {
    desktop: Desktop,
    /// The usual path of the session bus socket. It may not exist yet.
    usual: Option<PathBuf>,
    /// Set while the bus was named by a client. Its notification server may be a program that an agent runs, so popups on it get
    /// no buttons that answer prompts.
    is_learnt: Arc<AtomicBool>,
}

impl SessionDesktop {
    pub(crate) fn new(desktop: Desktop, usual: Option<PathBuf>) -> Self {
        Self { desktop, usual, is_learnt: Arc::default() }
    }

    /// Shows a popup, on the bus of one of these processes if the hub's own does not work. The returned text names that bus, or
    /// is empty.
    pub(crate) async fn show(
        &self,
        popup: Popup,
        senders: Vec<u32>,
    ) -> Result<(DisplayedPopup, String), Error> {
        let shown = self.desktop.show(self.for_this_bus(popup.clone())).await;
        if let Err(Error::NoBus(_) | Error::Desktop(_)) = shown
            && let Some(address) = self.learn(senders, None).await
        {
            let shown = self.desktop.show(self.for_this_bus(popup)).await?;
            return Ok((shown, format!(" on another session bus, {address}")));
        }
        shown.map(|shown| (shown, String::new()))
    }

    /// Removes the prompt if the current bus is not trusted.
    fn for_this_bus(&self, popup: Popup) -> Popup {
        if self.is_learnt.load(Ordering::Relaxed) { Popup { prompt: None, ..popup } } else { popup }
    }

    /// Withdraws a popup; see [`Desktop::withdraw`].
    pub(crate) fn withdraw(&self, id: MessageId) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        self.desktop.withdraw(id)
    }

    /// Describes the desktop for a client. The client may offer a bus, which is used if the current one does not work.
    pub(crate) async fn view(&self, offered: Option<String>) -> Value {
        let mut status = self.desktop.status().await;
        if status.server.is_err() && self.learn(Vec::new(), offered).await.is_some() {
            status = self.desktop.status().await;
        }
        match status.server {
            Ok(server) => json!({ "bus": status.bus, "server": server }),
            Err(error) => json!({ "bus": status.bus, "server": null, "error": error.to_string() }),
        }
    }

    /// Switches to the first of these buses that works, and returns its address.
    async fn learn(&self, senders: Vec<u32>, offered: Option<String>) -> Option<String> {
        let usual = self.usual.clone();
        let found = tokio::task::spawn_blocking(move || addresses(&senders, offered, usual.as_deref())).await;
        for address in found.unwrap_or_default() {
            if self.desktop.use_bus(address.clone()).await.is_ok() {
                let usual = self.usual.as_ref().map(|socket| format!("unix:path={}", socket.display()));
                self.is_learnt.store(usual.as_ref() != Some(&address), Ordering::Relaxed);
                return Some(address);
            }
        }
        None
    }
}

/// The bus addresses to try, the best first.
fn addresses(senders: &[u32], offered: Option<String>, usual: Option<&Path>) -> Vec<String> {
    let of_senders = senders.iter().filter_map(|pid| of_process(*pid));
    let usual = usual.map(|socket| format!("unix:path={}", socket.display()));
    let mut found: Vec<String> = Vec::new();
    for address in offered.into_iter().chain(of_senders).chain(usual) {
        for own in address.split(';').filter(|part| is_ours(part)) {
            if !found.iter().any(|known| known == own) {
                found.push(own.to_owned());
            }
        }
    }
    found
}

/// The session bus in a process's environment. Other users' environments cannot be read.
fn of_process(pid: u32) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_ENVIRONMENT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let value = |name: &str| {
        let mut entries = text.split('\0').filter_map(|entry| entry.split_once('='));
        entries.find(|(own, value)| *own == name && !value.is_empty()).map(|(_, value)| value.to_owned())
    };
    value("DBUS_SESSION_BUS_ADDRESS")
        .or_else(|| value("XDG_RUNTIME_DIR").map(|directory| format!("unix:path={directory}/bus")))
}

/// Returns true if this is the address of a socket in the file system that belongs to this user. On any other address somebody
/// else could listen, and would read every notification.
fn is_ours(address: &str) -> bool {
    let Some(fields) = address.strip_prefix("unix:") else { return false };
    // Unusual characters are percent-escaped; no bus has them in its path.
    let Some(path) = fields.split(',').find_map(|field| field.strip_prefix("path=")) else { return false };
    !path.contains('%') && owned::check_socket(Path::new(path)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::net::UnixListener;
    #[cfg(target_os = "linux")]
    use std::process::{Child, Command};

    /// A process with an environment. It is killed at the end of the test.
    #[cfg(target_os = "linux")]
    struct Process(Child);

    #[cfg(target_os = "linux")]
    impl Process {
        fn with(variables: &[(&str, &str)]) -> Self {
            let mut command = Command::new("sleep");
            let child = command.arg("1000").env_clear().envs(variables.iter().copied()).spawn().unwrap();
            let process = Self(child);
            // Waits for the exec after the fork.
            while !fs::read(format!("/proc/{}/cmdline", process.0.id())).unwrap().starts_with(b"sleep\0") {
                std::thread::yield_now();
            }
            process
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn the_last_senders_are_remembered() {
        let mut senders = RecentSenders::default();
        for pid in [1, 2, 3, 1] {
            senders.add(pid);
        }
        assert_eq!(senders.recent(), [1, 3, 2]);
        (10..100).for_each(|pid| senders.add(pid));
        assert_eq!((senders.recent().len(), senders.recent()[0]), (MAX_SENDERS, 99));
    }

    #[test]
    fn only_sockets_of_our_own_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (socket, file, link, foreign) = (path("bus"), path("file"), path("link"), path("foreign"));
        let _listeners = [&socket, &foreign].map(|path| UnixListener::bind(path).unwrap());
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        for (address, expected) in [
            (format!("unix:path={socket}"), true),
            (format!("unix:path={socket},guid=0123"), true),
            (format!("unix:guid=0123,path={socket}"), true),
            (format!("unix:path={file}"), false),
            (format!("unix:path={link}"), true),
            (format!("unix:path={socket}0"), false),
            ("unix:abstract=/tmp/dbus".to_owned(), false),
            ("tcp:host=localhost,port=4711".to_owned(), false),
            ("unixexec:path=/bin/sh".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_ours(&address), expected, "{address}");
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&foreign, Some(65_534), None).unwrap();
            assert!(!is_ours(&format!("unix:path={foreign}")), "another user's");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_bus_of_a_caller_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("bus");
        let _listener = UnixListener::bind(&socket).unwrap();
        let address = format!("unix:path={}", socket.display());
        let several = format!("unix:abstract=/x;{address},guid=12");
        let named = Process::with(&[("DBUS_SESSION_BUS_ADDRESS", &several)]);
        let usual = Process::with(&[("XDG_RUNTIME_DIR", directory.path().to_str().unwrap())]);
        let without = Process::with(&[("DBUS_SESSION_BUS_ADDRESS", "")]);
        let found = |senders: &[&Process]| {
            let pids: Vec<u32> = senders.iter().map(|process| process.0.id()).collect();
            addresses(&pids, None, None)
        };
        assert_eq!(found(&[&without]), Vec::<String>::new());
        assert_eq!(found(&[&named, &without, &usual]), [format!("{address},guid=12"), address.clone()]);
        assert_eq!(addresses(&[u32::MAX], None, Some(&socket)), std::slice::from_ref(&address));
        let offered = addresses(&[usual.0.id()], Some("unix:path=/nowhere".to_owned()), None);
        assert_eq!(offered, [address]);
    }
}
