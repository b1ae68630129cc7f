//! Matches the repository of another machine's message with a clone on this machine, and holds the names that the person gave to
//! repositories.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringer_config::RepositoryEntry;
use ringer_core::Scope;
use ringer_journal::{Error, Journal, Repository};

/// Time limit for examining a directory, which may be on a disk that hangs.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);
/// The most cached directories. At the limit the cache is cleared.
const MAX_DIRECTORIES: usize = 256;
/// The most directories that may hang at once: each has a thread.
const MAX_PENDING: usize = 8;
/// Lifetime of a cached directory: a remote may be added to a repository.
const CACHE_TTL: Duration = Duration::from_mins(1);

/// The prefix of the identity of a named repository. No remote looks like that: it contains a `/`, and a name does not.
const NAME_PREFIX: &str = "name:";

/// Finds the identities of this machine's repositories, which are the same on every machine.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    names: RepositoryNames,
    /// The repository around each directory.
    cache: BTreeMap<String, (Instant, Option<LocalRepository>)>,
    /// Directories that took too long, with the channels for their results.
    pending: BTreeMap<String, Receiver<Option<LocalRepository>>>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalRepository {
    repository: Repository,
    /// Its remote, in a form that is the same in every clone.
    remote: Option<String>,
}

/// The repository is not known yet.
struct LookupPending;

impl Repositories {
    pub(crate) fn new(names: RepositoryNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// Returns the identity of the repository around a directory, which is the same on every machine: its name, else its remote.
    pub(crate) fn identity(&mut self, directory: &str) -> Option<String> {
        let found = self.around(directory)?;
        for RepositoryEntry { path, name } in self.names.current().iter() {
            // The name belongs to the root of a worktree only. If that was removed, a repository around it must not get the name.
            let named = path.to_str().and_then(|path| self.around(path));
            let mut named = named.into_iter().filter(|named| named.repository.worktree == *path);
            if named.any(|named| named.repository.is_same(&found.repository)) {
                return Some(format!("{NAME_PREFIX}{name}"));
            }
        }
        found.remote
    }

    /// Returns the repository around a directory, if it is known in time.
    fn around(&mut self, directory: &str) -> Option<LocalRepository> {
        if let Some((seen, found)) = self.cache.get(directory)
            && seen.elapsed() < CACHE_TTL
        {
            return found.clone();
        }
        let found = self.look_up(directory).ok()?;
        if self.cache.len() >= MAX_DIRECTORIES {
            self.cache.clear();
        }
        self.cache.insert(directory.to_owned(), (Instant::now(), found.clone()));
        found
    }

    /// Examines a directory on its own thread. A thread that exceeds the timeout is abandoned, but not started again before it
    /// ends.
    fn look_up(&mut self, directory: &str) -> Result<Option<LocalRepository>, LookupPending> {
        if let Some(receiver) = self.pending.get(directory) {
            let found = receiver.try_recv();
            if found != Err(TryRecvError::Empty) {
                self.pending.remove(directory);
            }
            return found.map_err(|_| LookupPending);
        }
        if self.pending.len() >= MAX_PENDING {
            return Err(LookupPending);
        }
        let (sender, receiver) = sync_channel(1);
        let path = directory.to_owned();
        let look = move || {
            let repository = Repository::around(Path::new(&path));
            let found =
                repository.map(|repository| LocalRepository { remote: repository.remote(), repository });
            // The receiver is gone if its link has ended.
            let _ = sender.send(found);
        };
        thread::Builder::new().name("repository".to_owned()).spawn(look).map_err(|_| LookupPending)?;
        receiver.recv_timeout(LOOKUP_TIMEOUT).map_err(|_| {
            self.pending.insert(directory.to_owned(), receiver);
            LookupPending
        })
    }

    /// Returns the scope of a lead agent here that works in the repository with that identity.
    pub(crate) fn scope_of(&mut self, journal: &mut Journal, identity: &str) -> Result<Option<Scope>, Error> {
        for agent in journal.agent_summaries()?.into_iter().filter(|agent| agent.lead) {
            let directory = agent.cwd.as_deref();
            if directory.and_then(|directory| self.identity(directory)).as_deref() == Some(identity) {
                return Ok(Scope::new(&agent.scope).ok());
            }
        }
        Ok(None)
    }
}

/// Returns the names if they may have changed since the last call.
type ReadNames = Box<dyn FnMut() -> Option<Vec<RepositoryEntry>> + Send>;

/// The names of repositories, shared by their source and the connected links.
#[derive(Debug, Clone, Default)]
pub struct RepositoryNames(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    current: Arc<[RepositoryEntry]>,
    read: Option<ReadNames>,
}

impl RepositoryNames {
    /// Returns names that are read again whenever they are needed. `read` returns them if they may have changed.
    pub fn read_with(read: impl FnMut() -> Option<Vec<RepositoryEntry>> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Names { read: Some(Box::new(read)), ..Names::default() })))
    }

    pub(crate) fn set(&self, names: Vec<RepositoryEntry>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).current = names.into();
    }

    /// Returns the current names.
    pub(crate) fn current(&self) -> Arc<[RepositoryEntry]> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = names.read.as_mut().and_then(|read| read()) {
            names.current = changed.into();
        }
        Arc::clone(&names.current)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Names").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;
    use test_support::{HangingDirectory, until};

    use super::*;

    /// Creates a directory with repositories, each with a remote.
    fn with_repositories(names: &[&str]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let git = directory.path().join(name).join(".git");
            for name in ["objects", "refs"] {
                fs::create_dir_all(git.join(name)).unwrap();
            }
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(git.join("config"), format!("[remote \"origin\"]\nurl = host:{name}\n")).unwrap();
        }
        directory
    }

    fn named(names: &[(PathBuf, &str)]) -> (Repositories, RepositoryNames) {
        let shared = RepositoryNames::default();
        shared.set(list(names));
        (Repositories::new(shared.clone()), shared)
    }

    fn list(names: &[(PathBuf, &str)]) -> Vec<RepositoryEntry> {
        let name =
            |(path, name): &(PathBuf, &str)| RepositoryEntry { path: path.clone(), name: (*name).to_owned() };
        names.iter().map(name).collect()
    }

    fn identity(repositories: &mut Repositories, directory: &Path) -> Option<String> {
        repositories.identity(directory.to_str().unwrap())
    }

    #[test]
    fn a_name_covers_the_whole_repository_and_overrides_the_remote() {
        let root = with_repositories(&["api", "web", "api/vendor/lib"]);
        let [api, web, lib] = ["api", "web", "api/vendor/lib"].map(|name| root.path().join(name));
        let deep = api.join("src/deep");
        fs::create_dir_all(&deep).unwrap();
        // A linked worktree, as git creates it.
        let (tree, private) = (root.path().join("tree"), api.join(".git/worktrees/tree"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&private).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", private.display())).unwrap();
        fs::write(private.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        fs::write(private.join("commondir"), "../..\n").unwrap();
        // A checkout that falsely claims to be a worktree of the same repository.
        let hostile = root.path().join("hostile");
        fs::create_dir_all(&hostile).unwrap();
        fs::write(hostile.join(".git"), format!("gitdir: {}\n", private.display())).unwrap();
        let (mut repositories, names) = named(&[(api.clone(), "service")]);
        for inside in [&api, &deep, &tree] {
            assert_eq!(identity(&mut repositories, inside).as_deref(), Some("name:service"), "{inside:?}");
        }
        assert_eq!(identity(&mut repositories, &web).as_deref(), Some("host/web"));
        assert_eq!(identity(&mut repositories, &lib).as_deref(), Some("host/api/vendor/lib"));
        assert_eq!(identity(&mut repositories, &hostile), None);
        names.set(list(&[(tree, "other")]));
        assert_eq!(
            identity(&mut repositories, &api).as_deref(),
            Some("name:other"),
            "the current name applies"
        );
        names.set(Vec::new());
        assert_eq!(identity(&mut repositories, &api).as_deref(), Some("host/api"));
    }

    #[test]
    fn a_name_without_a_repository_matches_no_other_one() {
        let root = with_repositories(&["api"]);
        let api = root.path().join("api");
        let (mut repositories, _) =
            named(&[(api.join("gone"), "gone"), (root.path().to_owned(), "above"), ("".into(), "empty")]);
        assert_eq!(identity(&mut repositories, &api).as_deref(), Some("host/api"));
        fs::remove_file(api.join(".git/config")).unwrap();
        let (mut repositories, _) = named(&[(api.clone(), "api")]);
        assert_eq!(identity(&mut repositories, &api).as_deref(), Some("name:api"), "without a remote, too");
    }

    #[test]
    fn a_hanging_directory_is_examined_once_and_blocks_no_other() {
        let Some(hanging) = HangingDirectory::new() else { return };
        let hangs = hanging.path().join("api");
        let root = with_repositories(&["api"]);
        let other = root.path().join("api");
        let (mut repositories, _) = named(&[(hangs.clone(), "hangs"), (other.clone(), "api")]);
        for _ in 0..2 {
            assert_eq!(identity(&mut repositories, &hangs), None);
            assert_eq!((repositories.pending.len(), repositories.cache.len()), (1, 0), "it is not known");
        }
        until("the other one is known", || {
            identity(&mut repositories, &other).as_deref() == Some("name:api")
        });
        hanging.release();
        until("it is known that there is none", || {
            identity(&mut repositories, &hangs);
            repositories.cache.contains_key(hangs.to_str().unwrap())
        });
        assert!(repositories.pending.is_empty());
    }
}
