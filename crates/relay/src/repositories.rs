//! Which repository of this machine is a clone of the one that a message of another machine is about.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::Scope;
use ringer_journal::{Error, Journal, Repository};

/// How long a directory may take: it may be on a disk that hangs.
const TAKES_AT_MOST: Duration = Duration::from_millis(500);
/// The directories that are remembered. At the limit all are looked at anew.
const MAX_DIRECTORIES: usize = 256;
/// How long one is remembered: a remote may be added to a repository.
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// Where the repositories of this machine come from.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// By directory.
    remotes: BTreeMap<String, (Instant, Option<String>)>,
}

impl Repositories {
    /// Where the repository around a directory comes from, in the form that is the same on every machine.
    pub(crate) fn remote(&mut self, directory: &str) -> Option<String> {
        if let Some((seen, remote)) = self.remotes.get(directory)
            && seen.elapsed() < REMEMBERED_FOR
        {
            return remote.clone();
        }
        if self.remotes.len() >= MAX_DIRECTORIES {
            self.remotes.clear();
        }
        let remote = look_up(directory);
        self.remotes.insert(directory.to_owned(), (Instant::now(), remote.clone()));
        remote
    }

    /// The scope of an agent here that works in a clone of that repository.
    pub(crate) fn scope_of(&mut self, journal: &mut Journal, remote: &str) -> Result<Option<Scope>, Error> {
        for agent in journal.agent_summaries()? {
            let directory = agent.cwd.as_deref();
            if directory.and_then(|directory| self.remote(directory)).as_deref() == Some(remote) {
                return Ok(Scope::new(&agent.scope).ok());
            }
        }
        Ok(None)
    }
}

/// Looks on a thread of its own, which is left behind if the disk hangs.
fn look_up(directory: &str) -> Option<String> {
    let (sender, receiver) = sync_channel(1);
    let directory = directory.to_owned();
    let look = move || {
        let remote = Repository::around(Path::new(&directory)).and_then(|repository| repository.remote());
        // The other side waits no more if this took too long.
        let _ = sender.send(remote);
    };
    thread::Builder::new().name("repository".to_owned()).spawn(look).ok()?;
    receiver.recv_timeout(TAKES_AT_MOST).ok().flatten()
}
