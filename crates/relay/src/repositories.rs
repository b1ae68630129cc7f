//! Which repository of this machine is a clone of the one that a message of another machine is about.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ringer_core::Scope;
use ringer_journal::{Error, Journal, Repository};

/// How long a directory may take: it may be on a disk that hangs.
const TAKES_AT_MOST: Duration = Duration::from_millis(500);
/// The directories that are remembered. At the limit all are looked at anew.
const MAX_DIRECTORIES: usize = 256;
/// The directories that may hang at once: each has a thread.
const MAX_LATE: usize = 8;
/// How long one is remembered: a remote may be added to a repository.
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// Where the repositories of this machine come from.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// By directory.
    remotes: BTreeMap<String, (Instant, Option<String>)>,
    /// The directories that took too long, and what will tell.
    late: BTreeMap<String, Receiver<Option<String>>>,
}

/// It is not known yet.
struct Late;

impl Repositories {
    /// Where the repository around a directory comes from, in the form that is the same on every machine.
    pub(crate) fn remote(&mut self, directory: &str) -> Option<String> {
        if let Some((seen, remote)) = self.remotes.get(directory)
            && seen.elapsed() < REMEMBERED_FOR
        {
            return remote.clone();
        }
        let remote = self.look_up(directory).ok()?;
        if self.remotes.len() >= MAX_DIRECTORIES {
            self.remotes.clear();
        }
        self.remotes.insert(directory.to_owned(), (Instant::now(), remote.clone()));
        remote
    }

    /// Looks on a thread of its own. One that takes too long is waited for no more, but not started again before it has ended.
    fn look_up(&mut self, directory: &str) -> Result<Option<String>, Late> {
        if let Some(late) = self.late.get(directory) {
            let found = late.try_recv();
            if found != Err(TryRecvError::Empty) {
                self.late.remove(directory);
            }
            return found.map_err(|_| Late);
        }
        if self.late.len() >= MAX_LATE {
            return Err(Late);
        }
        let (sender, receiver) = sync_channel(1);
        let path = directory.to_owned();
        let look = move || {
            let remote = Repository::around(Path::new(&path)).and_then(|repository| repository.remote());
            // The other side waits no more if its link has ended.
            let _ = sender.send(remote);
        };
        thread::Builder::new().name("repository".to_owned()).spawn(look).map_err(|_| Late)?;
        receiver.recv_timeout(TAKES_AT_MOST).map_err(|_| {
            self.late.insert(directory.to_owned(), receiver);
            Late
        })
    }

    /// The scope of a lead agent here that works in a clone of that repository.
    pub(crate) fn scope_of(&mut self, journal: &mut Journal, remote: &str) -> Result<Option<Scope>, Error> {
        for agent in journal.agent_summaries()?.into_iter().filter(|agent| agent.lead) {
            let directory = agent.cwd.as_deref();
            if directory.and_then(|directory| self.remote(directory)).as_deref() == Some(remote) {
                return Ok(Scope::new(&agent.scope).ok());
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{HangingDirectory, until};

    #[test]
    fn a_directory_that_hangs_is_looked_at_once_and_holds_up_no_other() {
        let Some(hanging) = HangingDirectory::new() else { return };
        let other = tempfile::tempdir().unwrap();
        for name in ["objects", "refs"] {
            std::fs::create_dir_all(other.path().join(".git").join(name)).unwrap();
        }
        std::fs::write(other.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(other.path().join(".git/config"), "[remote \"origin\"]\nurl = host:api\n").unwrap();
        let hangs = hanging.path().join("api").to_str().unwrap().to_owned();
        let mut repositories = Repositories::default();
        for _ in 0..2 {
            assert_eq!(repositories.remote(&hangs), None);
            assert_eq!((repositories.late.len(), repositories.remotes.len()), (1, 0), "it is not known");
        }
        let other = other.path().to_str().unwrap();
        until("the other one is known", || repositories.remote(other).as_deref() == Some("host/api"));
        hanging.release();
        until("it is known that there is none", || {
            repositories.remote(&hangs);
            repositories.remotes.contains_key(&hangs)
        });
        assert!(repositories.late.is_empty());
    }
}
