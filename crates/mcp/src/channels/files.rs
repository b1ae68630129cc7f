//! The files of channels in the home: the allowlist of senders, which only the person changes, and the status of the servers,
//! which only the hub writes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_core::conversation::{Access, Allowlist, ChannelSender, Error, Operator, WaitingSender};
use ringer_journal::{Home, HubLock, Lock, Uptime};
use ringer_platform::{Durability, replace_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The most bytes read from a file. A full allowlist is smaller.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Time limit for another command that is changing the list, which takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the allowlist could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The change is not allowed.
    #[error(transparent)]
    Refused(#[from] Error),
    /// A file cannot be read or written, or is damaged.
    #[error("{path}: {error}")]
    File {
        /// The path of the file.
        path: String,
        /// The cause.
        error: io::Error,
    },
}

pub(super) fn allowlist_path(home: &Home) -> PathBuf {
    home.path().join("channels.json")
}

pub(super) fn status_path(home: &Home) -> PathBuf {
    home.path().join("channel-status.json")
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelState {
    /// Started; it has not answered `initialize` yet.
    Starting,
    /// Connected; its messages are accepted.
    Connected,
    /// Refused by a gate; it does not run.
    Refused,
    /// Ended, or could not be started. The hub retries later.
    Failed,
}

/// The state and the counters of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// The server's name.
    pub name: String,
    /// The agent that receives its messages.
    pub to: String,
    /// The current state.
    pub state: ChannelState,
    /// The gate that refuses it, counted from 1.
    pub gate: Option<u8>,
    /// Why it was refused or failed.
    pub why: Option<String>,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The process id, while it runs.
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u64,
    /// Messages delivered to the agent's inbox.
    pub messages: u64,
    /// Messages of senders who may not write.
    pub refused: u64,
    /// Messages over the rate limit.
    pub over_rate: u64,
    /// Lines that were invalid or too long.
    pub invalid: u64,
    /// Answers to permission requests of the agent.
    #[serde(default)]
    pub answers: u64,
    /// Answers that came too late, or to an unknown request.
    #[serde(default)]
    pub late_answers: u64,
}

/// The content of the status file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelsStatus {
    /// The process id of the hub.
    pub(super) hub: u32,
    /// The boot id. The times in `waiting` count from this boot.
    pub(super) boot: String,
    /// The servers.
    pub servers: Vec<ChannelStatus>,
    /// Senders waiting to be paired.
    pub waiting: Vec<WaitingSender>,
}

impl ChannelsStatus {
    /// Reads the status that the running hub wrote. `None` if no hub is running.
    pub fn read(home: &Home) -> Option<Self> {
        let hub = HubLock::owner(home)?.pid;
        let now = Uptime::now();
        let mut status =
            read::<Self>(&status_path(home)).ok().flatten().filter(|status| status.hub == hub)?;
        status.waiting.retain(|waiting| status.boot == now.boot && waiting.until > now.since_boot.as_secs());
        Some(status)
    }
}

/// Allows the sender with this code to write.
pub fn pair(home: &Home, operator: &Operator, code: &str) -> Result<ChannelSender, AccessError> {
    let _lock = lock_allowlist(home)?;
    let now = Uptime::now();
    let path = status_path(home);
    let status: ChannelsStatus = read(&path).map_err(|error| wrong(&path, error))?.unwrap_or_default();
    let waiting = if status.boot == now.boot { status.waiting } else { Vec::new() };
    let mut access = Access::restored(load(home)?)?.with_waiting(now.since_boot, waiting);
    let sender = access.approve(now.since_boot, operator, code)?;
    save(home, &access)?;
    Ok(sender)
}

/// Removes a sender from the allowlist. Returns true if it was listed.
pub fn unpair(home: &Home, operator: &Operator, sender: &ChannelSender) -> Result<bool, AccessError> {
    let _lock = lock_allowlist(home)?;
    let mut access = Access::restored(load(home)?)?;
    let was_on_it = access.revoke(operator, sender);
    if was_on_it {
        save(home, &access)?;
    }
    Ok(was_on_it)
}

/// Serializes commands that change the list.
fn lock_allowlist(home: &Home) -> Result<Lock, AccessError> {
    let path = home.path().join("channels.lock");
    let taken = Lock::take(&path, Some(Instant::now() + LOCK_TIMEOUT))
        .and_then(|lock| lock.ok_or_else(|| io::Error::other("another command is changing who may write")));
    taken.map_err(|error| wrong(&path, error))
}

pub(super) fn load(home: &Home) -> Result<Allowlist, AccessError> {
    let path = allowlist_path(home);
    let list = read(&path).map_err(|error| wrong(&path, error))?;
    Ok(list.unwrap_or_else(|| Access::default().allowlist()))
}

fn save(home: &Home, access: &Access) -> Result<(), AccessError> {
    let path = allowlist_path(home);
    let written = serde_json::to_vec(&access.allowlist()).map_err(io::Error::from);
    let written = written.and_then(|bytes| replace_file(&path, &bytes, Durability::Synced));
    written.map_err(|error| wrong(&path, error))
}

fn wrong(path: &Path, error: io::Error) -> AccessError {
    AccessError::File { path: path.display().to_string(), error }
}

/// Returns `None` if there is no such file.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Identifies the version of the allowlist: a new version has another inode or modification time.
pub(super) fn allowlist_stamp(home: &Home) -> Option<(u64, std::time::SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(allowlist_path(home)).ok()?;
    Some((file.ino(), file.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::conversation::McpServer;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn concurrent_commands_lose_nothing() {
        let sender = |number: usize| {
            ChannelSender::new(McpServer::new("slack").unwrap(), &format!("user {number}")).unwrap()
        };
        let code = |number: usize| format!("a1b2c{number}");
        for _ in 0..30 {
            let directory = tempfile::tempdir().unwrap();
            let home = Home::new(directory.path());
            let now = Uptime::now();
            let until = now.since_boot.as_secs() + 60;
            let waiting =
                (0..3).map(|number| WaitingSender { code: code(number), sender: sender(number), until });
            let status =
                ChannelsStatus { boot: now.boot, waiting: waiting.collect(), ..ChannelsStatus::default() };
            fs::write(status_path(&home), serde_json::to_vec(&status).unwrap()).unwrap();
            let together = std::sync::Barrier::new(3);
            std::thread::scope(|scope| {
                for number in 0..3 {
                    let (home, code, together) = (&home, code(number), &together);
                    scope.spawn(move || {
                        together.wait();
                        pair(home, &Operator::at_the_keyboard(), &code).unwrap();
                    });
                }
            });
            let access = Access::restored(load(&home).unwrap()).unwrap();
            assert!((0..3).all(|number| access.admit(&sender(number)).is_some()));
        }
    }

    #[test]
    fn a_sender_is_paired_once_and_can_be_removed() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let operator = Operator::at_the_keyboard();
        let sender = ChannelSender::new(McpServer::new("slack").unwrap(), "alice").unwrap();
        let now = Uptime::now();
        let waiting = |until| WaitingSender { code: "a1b2c3".to_owned(), sender: sender.clone(), until };
        let write = |status: &ChannelsStatus| {
            fs::write(status_path(&home), serde_json::to_vec(status).unwrap()).unwrap();
        };
        let of = |boot: &str, until| ChannelsStatus {
            boot: boot.to_owned(),
            waiting: vec![waiting(until)],
            ..ChannelsStatus::default()
        };
        let later = now.since_boot.as_secs() + 60;
        assert!(pair(&home, &operator, "a1b2c3").is_err(), "nobody waits");
        write(&of("another boot", later));
        assert!(pair(&home, &operator, "a1b2c3").is_err());
        write(&of(&now.boot, now.since_boot.as_secs().saturating_sub(1)));
        assert!(pair(&home, &operator, "a1b2c3").is_err(), "its hour is over");
        write(&of(&now.boot, later));
        assert!(pair(&home, &operator, "a1b2c4").is_err());
        assert!(!allowlist_path(&home).exists());
        assert_eq!(pair(&home, &operator, " A1B2C3 ").unwrap(), sender);
        let mode = fs::metadata(allowlist_path(&home)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(Access::restored(load(&home).unwrap()).unwrap().admit(&sender).is_some());
        assert!(unpair(&home, &operator, &sender).unwrap() && !unpair(&home, &operator, &sender).unwrap());
        fs::write(allowlist_path(&home), "{").unwrap();
        let error = pair(&home, &operator, "a1b2c3").unwrap_err().to_string();
        assert!(error.contains("channels.json: EOF"), "{error}");
    }
}
