//! Probes repositories on a disposable thread, because access to a directory on NFS or FUSE can block forever.
//!
//! A probe that misses its deadline is abandoned: its thread ends when the system call returns, its directory is left alone for a
//! minute, and the next probe gets another thread. At most eight threads may hang.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use ringer_journal::Repository;
use ringer_platform::{FileStamp, file_stamp};
use tokio::sync::mpsc;

use crate::log::Log;
use ringer_config::{REPOSITORY_FILE, load_repository};

/// Deadline of a probe with all its targets.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a directory that hung is left alone. Longer if its thread still hangs.
const RETRY_HUNG_AFTER: Duration = Duration::from_mins(1);
/// The most threads that may hang. Then no repository is probed until one of them returns. Eight, because each holds a stack, and
/// one dead network share usually hangs one or two.
const MAX_HUNG: usize = 8;

/// The settings file of a repository.
#[derive(Debug)]
pub(crate) struct RepositorySettings {
    /// The worktree.
    pub(crate) root: PathBuf,
    stamp: FileStamp,
    pub(crate) settings: ringer_config::RepositorySettings,
}

impl RepositorySettings {
    /// Reads the settings of a worktree, if it has any.
    pub(crate) fn read(root: &Path, home: Option<&Path>) -> Option<Self> {
        let stamp = file_stamp(&root.join(REPOSITORY_FILE))?;
        // A broken file sets nothing; `ringer config check` reports the error.
        let settings = load_repository(root, home).unwrap_or_default();
        Some(Self { root: root.to_owned(), stamp, settings })
    }

    /// Returns true if the file is unchanged.
    fn holds(&self) -> bool {
        file_stamp(&self.root.join(REPOSITORY_FILE)) == Some(self.stamp)
    }

    /// Returns true if both were read from the same, unchanged file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.root == other.root && self.stamp == other.stamp
    }
}

/// A target to probe, with the result of the last probe.
#[derive(Debug, Clone)]
pub(crate) enum ProbeTarget {
    /// The repository around a directory.
    Around { scope: String, cwd: String, known: Option<Arc<RepositorySettings>> },
    /// A known worktree.
    Known { scope: String, own: Arc<RepositorySettings> },
}

/// The result of a probe.
#[derive(Debug, Clone)]
pub(crate) enum ProbeResult {
    /// No repository.
    NoRepository,
    /// A repository without settings.
    NoSettings,
    /// A repository with settings. These are the known ones if the file is unchanged.
    Settings(Arc<RepositorySettings>),
}

impl ProbeTarget {
    pub(crate) fn scope(&self) -> &str {
        match self {
            Self::Around { scope, .. } | Self::Known { scope, .. } => scope,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Around { cwd, .. } => cwd.as_ref(),
            Self::Known { own, .. } => &own.root,
        }
    }

    /// Returns true if this is the target around this directory.
    pub(crate) fn is_around(&self, in_scope: &str, directory: &str) -> bool {
        matches!(self, Self::Around { scope, cwd, .. } if scope == in_scope && cwd == directory)
    }

    /// Probes the target; this may block. `home` is the value of `~` in the settings.
    fn look(&self, home: Option<&Path>) -> ProbeResult {
        let (root, known) = match self {
            Self::Around { cwd, known, .. } => match Repository::around(cwd.as_ref()) {
                Some(repository) => (repository.worktree, known.as_ref()),
                None => return ProbeResult::NoRepository,
            },
            Self::Known { own, .. } => (own.root.clone(), Some(own)),
        };
        let same = known.filter(|own| own.root == root && own.holds());
        let own = same.cloned().or_else(|| RepositorySettings::read(&root, home).map(Arc::new));
        own.map_or(ProbeResult::NoSettings, ProbeResult::Settings)
    }
}

/// The thread that probes, and the threads that hang.
#[derive(Debug)]
pub(crate) struct RepositoryProber {
    home: Option<PathBuf>,
    log: Log,
    ready: Option<Prober>,
    /// At most [`MAX_HUNG`]; pruned on every [`RepositoryProber::send`].
    hung: Vec<HungProber>,
}

/// A thread that waits for requests and ends when their sender is dropped.
#[derive(Debug)]
struct Prober {
    requests: SyncSender<ProbeRequest>,
    alive: Weak<()>,
}

#[derive(Debug)]
struct ProbeRequest {
    targets: VecDeque<ProbeTarget>,
    answers: mpsc::Sender<ProbeResult>,
}

/// A thread that hangs.
#[derive(Debug)]
struct HungProber {
    path: PathBuf,
    until: Duration,
    alive: Weak<()>,
}

/// A probe in flight.
#[derive(Debug)]
pub(crate) struct RunningProbe {
    /// The targets that are not probed yet. The thread is at the first one.
    left: VecDeque<ProbeTarget>,
    found: Vec<(ProbeTarget, ProbeResult)>,
    answers: mpsc::Receiver<ProbeResult>,
    /// When it is abandoned.
    pub(crate) deadline: Duration,
}

impl RepositoryProber {
    pub(crate) fn new(home: Option<PathBuf>, log: Log) -> Self {
        Self { home, log, ready: None, hung: Vec::new() }
    }

    /// Starts a probe. Returns `None` if there is nothing to probe, or no thread for it.
    pub(crate) fn send(
        &mut self,
        targets: impl IntoIterator<Item = ProbeTarget>,
        now: Duration,
    ) -> Option<RunningProbe> {
        self.hung.retain(|hung| hung.until > now || hung.is_alive());
        let is_safe = |target: &ProbeTarget| self.hung.iter().all(|hung| hung.path != target.path());
        let left: VecDeque<ProbeTarget> = targets.into_iter().filter(is_safe).collect();
        if left.is_empty() || self.are_too_many_hung() {
            return None;
        }
        let prober = match self.ready.take().map_or_else(|| Prober::spawn(self.home.clone()), Ok) {
            Ok(prober) => prober,
            Err(error) => {
                self.log.line(format!("cannot look at repositories: {error}"));
                return None;
            }
        };
        let (answer, answers) = mpsc::channel(left.len());
        prober.requests.send(ProbeRequest { targets: left.clone(), answers: answer }).ok()?;
        self.ready = Some(prober);
        Some(RunningProbe { left, found: Vec::new(), answers, deadline: now + PROBE_TIMEOUT })
    }

    /// Ends a probe. Returns its results, and the targets behind a directory that hangs.
    pub(crate) fn end(
        &mut self,
        mut probe: RunningProbe,
        now: Duration,
    ) -> (Vec<(ProbeTarget, ProbeResult)>, VecDeque<ProbeTarget>) {
        while let Ok(result) = probe.answers.try_recv() {
            probe.add(result);
        }
        if let Some(target) = probe.left.pop_front() {
            let path = target.path().to_owned();
            self.log.line(format!("{} does not answer: going on without its settings", path.display()));
            // The thread gets no more requests, so it ends once it returns.
            let alive = self.ready.take().map(|prober| prober.alive).unwrap_or_default();
            self.hung.push(HungProber { path, until: now + RETRY_HUNG_AFTER, alive });
            if self.are_too_many_hung() {
                self.log.line("too many do not answer: no repository is looked at until one does");
            }
        }
        (probe.found, probe.left)
    }

    fn are_too_many_hung(&self) -> bool {
        self.hung.iter().filter(|hung| hung.is_alive()).count() >= MAX_HUNG
    }
}

impl HungProber {
    fn is_alive(&self) -> bool {
        self.alive.strong_count() > 0
    }
}

impl Prober {
    fn spawn(home: Option<PathBuf>) -> io::Result<Self> {
        // At most one request is in flight.
        let (requests, requested) = sync_channel(1);
        let life = Arc::new(());
        let alive = Arc::downgrade(&life);
        thread::Builder::new().name("repository-probe".to_owned()).spawn(move || {
            serve(&requested, home.as_deref());
            drop(life);
        })?;
        Ok(Self { requests, alive })
    }
}

fn serve(requested: &Receiver<ProbeRequest>, home: Option<&Path>) {
    for ProbeRequest { targets, answers } in requested {
        for target in targets {
            // The channel has room for all answers. If the receiver is gone, this thread hung and was abandoned.
            if answers.try_send(target.look(home)).is_err() {
                return;
            }
        }
    }
}

impl RunningProbe {
    /// Waits until all targets are probed or the thread is gone. Cancel safe.
    pub(crate) async fn finished(&mut self) {
        while !self.left.is_empty()
            && let Some(result) = self.answers.recv().await
        {
            self.add(result);
        }
    }

    fn add(&mut self, result: ProbeResult) {
        self.found.extend(self.left.pop_front().map(|target| (target, result)));
    }
}

// The tests create hanging directories with Linux's own calls.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use test_support::{DEADLINE, HangingDirectory};

    use super::*;

    const NOW: Duration = Duration::from_hours(1);

    fn pool(directory: &Path) -> RepositoryProber {
        RepositoryProber::new(None, Log::new(directory.join("hub.log"), false))
    }

    /// Enough for the first of several targets on a busy machine. The second one hangs in any case.
    const LONG_ENOUGH: Duration = Duration::from_secs(3);

    fn repository(directory: &Path, name: &str) -> PathBuf {
        let root = directory.join(name);
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        root
    }

    fn set(root: &Path, hook: &str) {
        let text = format!("[[hook]]\nid = \"{hook}\"\ncommand = [\"true\"]\n");
        fs::write(root.join(REPOSITORY_FILE), text).unwrap();
    }

    fn around(path: &Path, known: Option<&Arc<RepositorySettings>>) -> ProbeTarget {
        let cwd = path.to_str().unwrap().to_owned();
        ProbeTarget::Around { scope: "0a0a0a0a".to_owned(), cwd, known: known.cloned() }
    }

    /// Probes these targets, and waits for at most `within`.
    async fn ask(
        pool: &mut RepositoryProber,
        targets: Vec<ProbeTarget>,
        within: Duration,
    ) -> (Vec<ProbeResult>, usize) {
        let mut probe = pool.send(targets, NOW).expect("a thread");
        let _ = tokio::time::timeout(within, probe.finished()).await;
        let (found, left) = pool.end(probe, NOW);
        (found.into_iter().map(|(_, result)| result).collect(), left.len())
    }

    async fn look_at(pool: &mut RepositoryProber, target: ProbeTarget) -> ProbeResult {
        let (mut found, _) = ask(pool, vec![target], DEADLINE).await;
        found.pop().expect("an answer")
    }

    fn own(result: &ProbeResult) -> &Arc<RepositorySettings> {
        match result {
            ProbeResult::Settings(own) => own,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_known_stays_until_its_file_changes_or_goes() {
        let directory = tempfile::tempdir().unwrap();
        let mut pool = pool(directory.path());
        let root = repository(directory.path(), "one");
        let (deep, other) = (root.join("deep"), repository(directory.path(), "two"));
        assert!(matches!(look_at(&mut pool, around(&deep, None)).await, ProbeResult::NoSettings));
        assert!(matches!(
            look_at(&mut pool, around(directory.path(), None)).await,
            ProbeResult::NoRepository
        ));
        set(&root, "first");
        let first = look_at(&mut pool, around(&deep, None)).await;
        let first = own(&first);
        assert_eq!((first.root.as_path(), first.settings.hooks[0].id.as_str()), (root.as_path(), "first"));
        let again = look_at(&mut pool, around(&deep, Some(first))).await;
        assert!(Arc::ptr_eq(own(&again), first), "nothing is read twice");
        let elsewhere = look_at(&mut pool, around(&other, Some(first))).await;
        assert!(matches!(elsewhere, ProbeResult::NoSettings), "another worktree has its own");
        set(&root, "second!");
        let known = ProbeTarget::Known { scope: "0a0a0a0a".to_owned(), own: Arc::clone(first) };
        let second = look_at(&mut pool, known.clone()).await;
        assert_eq!(own(&second).settings.hooks[0].id, "second!");
        // A removed worktree is not part of the repository around it.
        repository(directory.path(), ".");
        set(directory.path(), "above");
        fs::remove_dir_all(&root).unwrap();
        assert!(matches!(look_at(&mut pool, known).await, ProbeResult::NoSettings));
    }

    #[tokio::test]
    async fn a_broken_file_sets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let root = repository(directory.path(), "one");
        fs::write(root.join(REPOSITORY_FILE), "[[hook]").unwrap();
        let result = look_at(&mut pool(directory.path()), around(&root, None)).await;
        assert_eq!(own(&result).settings, ringer_config::RepositorySettings::default());
    }

    #[tokio::test]
    async fn one_thread_is_asked_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut pool = pool(directory.path());
        look_at(&mut pool, around(directory.path(), None)).await;
        let alive = pool.ready.as_ref().map(|prober| prober.alive.clone()).unwrap();
        for _ in 0..3 {
            look_at(&mut pool, around(directory.path(), None)).await;
        }
        assert!(pool.ready.as_ref().is_some_and(|prober| prober.alive.ptr_eq(&alive)));
        drop(pool);
        test_support::until("the thread ends", || alive.strong_count() == 0);
    }

    #[tokio::test]
    async fn one_that_is_missing_costs_only_the_place_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let mut pool = pool(directory.path());
        let root = repository(directory.path(), "one");
        let Some(hanging) = HangingDirectory::new() else { return };
        set(&root, "x");
        let targets =
            vec![around(&root, None), around(&hanging.path(), None), around(&root.join("deep"), None)];
        let (found, left) = ask(&mut pool, targets.clone(), LONG_ENOUGH).await;
        assert!(matches!(found.as_slice(), [ProbeResult::Settings(_)]), "{found:?}");
        assert_eq!(left, 1, "what is behind it was not looked at");
        // That directory is left alone, and another thread looks at the rest.
        let (found, left) = ask(&mut pool, targets, DEADLINE).await;
        assert!(
            matches!(found.as_slice(), [ProbeResult::Settings(_), ProbeResult::Settings(_)]) && left == 0,
            "{found:?}"
        );
        let later = NOW + RETRY_HUNG_AFTER * 2;
        assert!(pool.send([around(&hanging.path(), None)], later).is_none(), "it is still out there");
        // The thread ends once its directory answers.
        let alive = pool.hung[0].alive.clone();
        let path = hanging.path();
        hanging.release();
        test_support::until("the thread ends", || alive.strong_count() == 0);
        assert!(pool.send([around(&path, None)], NOW + RETRY_HUNG_AFTER / 2).is_none(), "not so soon");
        assert!(pool.send([around(&path, None)], later).is_some());
    }

    #[tokio::test]
    async fn so_many_may_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let mut pool = pool(directory.path());
        let hanging: Option<Vec<_>> = (0..MAX_HUNG).map(|_| HangingDirectory::new()).collect();
        let Some(mut hanging) = hanging else { return };
        for directory in &hanging {
            let probe = pool.send([around(&directory.path(), None)], NOW).expect("one more");
            let (found, _) = pool.end(probe, NOW);
            assert!(found.is_empty());
        }
        let root = repository(directory.path(), "one");
        assert!(pool.send([around(&root, None)], NOW).is_none());
        hanging.pop();
        test_support::until("the thread ends", || !pool.are_too_many_hung());
        assert!(matches!(look_at(&mut pool, around(&root, None)).await, ProbeResult::NoSettings));
    }
}
