//! Probes repositories on a disposable thread: a look at a directory on NFS or FUSE can block for ever.
//!
//! A probe that misses its deadline is abandoned: its thread ends when the system lets go of it, its directory is left alone
//! for a minute, and the next probe gets another thread. At most eight threads may hang.

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

/// How long a probe may take for everything it was asked at once.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a directory that hung is left alone, at least; and for as long as its thread hangs.
const RETRY_HUNG_AFTER: Duration = Duration::from_mins(1);
/// Threads that may hang. With this many, no repository is probed until one of them returns. Eight, because each holds
/// a stack, and one dead network share usually hangs one or two.
const MAX_HUNG: usize = 8;

/// A repository's own settings, as they were found.
#[derive(Debug)]
pub(crate) struct RepositorySettings {
    /// The worktree they lie in.
    pub(crate) root: PathBuf,
    /// The stamp of their file.
    stamp: FileStamp,
    /// What they say.
    pub(crate) settings: ringer_config::RepositorySettings,
}

impl RepositorySettings {
    /// The settings at a root, if there are any.
    pub(crate) fn read(root: &Path, home: Option<&Path>) -> Option<Self> {
        let stamp = file_stamp(&root.join(REPOSITORY_FILE))?;
        // A broken file of a repository sets nothing; `ringer config check` says what is wrong with it.
        let settings = load_repository(root, home).unwrap_or_default();
        Some(Self { root: root.to_owned(), stamp, settings })
    }

    /// Whether nothing changed since they were read.
    fn holds(&self) -> bool {
        file_stamp(&self.root.join(REPOSITORY_FILE)) == Some(self.stamp)
    }

    /// Whether these were read from the same file, unchanged.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.root == other.root && self.stamp == other.stamp
    }
}

/// What to look at, and what was found there before.
#[derive(Debug, Clone)]
pub(crate) enum ProbeTarget {
    /// The repository around a directory.
    Around { scope: String, cwd: String, known: Option<Arc<RepositorySettings>> },
    /// A worktree that is known.
    Known { scope: String, own: Arc<RepositorySettings> },
}

/// What there is.
#[derive(Debug, Clone)]
pub(crate) enum ProbeResult {
    /// No repository.
    NoRepository,
    /// A repository that sets nothing.
    NoSettings,
    /// A repository with settings: the known ones, if they are still the same.
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

    /// Whether it is the one around this directory.
    pub(crate) fn is_around(&self, in_scope: &str, directory: &str) -> bool {
        matches!(self, Self::Around { scope, cwd, .. } if scope == in_scope && cwd == directory)
    }

    /// Looks at it, however long that takes. `home` is what `~` means in the settings.
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

/// The thread that probes, and those that hang.
#[derive(Debug)]
pub(crate) struct RepositoryProber {
    home: Option<PathBuf>,
    log: Log,
    ready: Option<Prober>,
    /// At most [`MAX_HUNG`]; pruned on every [`RepositoryProber::send`].
    hung: Vec<HungProber>,
}

/// A thread that waits for requests, and ends when there can be none any more.
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

/// A thread that has not come back.
#[derive(Debug)]
struct HungProber {
    path: PathBuf,
    until: Duration,
    alive: Weak<()>,
}

/// A probe in flight.
#[derive(Debug)]
pub(crate) struct RunningProbe {
    /// What was not looked at yet; the thread is at the first of them.
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

    /// Starts a probe of these. `None` if there is nothing to look at, or no thread to do it.
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

    /// A probe is over. Gives what was found, and what was behind a directory that hangs.
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
            // It gets no more requests, so it ends when it is back.
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
        // Only one question is ever under way.
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
            // There is room for all; if the receiver is gone, this thread hung and was given up.
            if answers.try_send(target.look(home)).is_err() {
                return;
            }
        }
    }
}

impl RunningProbe {
    /// Waits until everything was looked at, or cannot be. Loses nothing if it is not waited for to the end.
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

// Directories that hang are made with Linux's own calls.
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

    /// A repository, and a directory in it.
    /// For the first of several targets on a busy machine; the second one hangs in any case.
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

    /// Sends a prober to these, and waits until it is back, or for so long.
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
        // A worktree that has gone is no part of the repository around it.
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
        // It comes back, and goes nowhere else.
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
