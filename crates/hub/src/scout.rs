//! The scout: a thread that looks at repositories, because any directory may be on a file system that hangs.
//!
//! It is asked about some spots and tells of one after the other. Whoever asks waits for so long and no longer: a scout
//! that has not come back by then is missing. Its thread ends when the system lets go of it; where it went, nobody else
//! is sent for a while; and the next question goes to another one.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use ringer_journal::Repository;
use tokio::sync::mpsc;

use crate::log::Log;
use crate::settings::look;
use ringer_config::{REPOSITORY_FILE, load_repository};

/// How long a scout may take for everything it was asked at once.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// How long the place where one went missing is left alone, at least; and for as long as it is missing.
const LEFT_ALONE: Duration = Duration::from_mins(1);
/// Scouts that may be missing. With so many, no repository is looked at until one of them is back.
const MAX_MISSING: usize = 8;

/// A repository's own settings, as they were found.
#[derive(Debug)]
pub(crate) struct Own {
    /// The worktree they lie in.
    pub(crate) root: PathBuf,
    /// When their file was changed and how long it is.
    look: (SystemTime, u64),
    /// What they say.
    pub(crate) settings: ringer_config::Repository,
}

impl Own {
    /// The settings at a root, if there are any.
    pub(crate) fn read(root: &Path, home: Option<&Path>) -> Option<Self> {
        let look = look(&root.join(REPOSITORY_FILE))?;
        // A broken file of a repository sets nothing; `ringer config check` says what is wrong with it.
        let settings = load_repository(root, home).unwrap_or_default();
        Some(Self { root: root.to_owned(), look, settings })
    }

    /// Whether nothing changed since they were read.
    fn holds(&self) -> bool {
        look(&self.root.join(REPOSITORY_FILE)) == Some(self.look)
    }

    /// Whether these were read from the same file, unchanged.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.root == other.root && self.look == other.look
    }
}

/// What to look at, and what was found there before.
#[derive(Debug, Clone)]
pub(crate) enum Spot {
    /// The repository around a directory.
    Around { scope: String, cwd: String, known: Option<Arc<Own>> },
    /// A worktree that is known.
    Known { scope: String, own: Arc<Own> },
}

/// What there is.
#[derive(Debug, Clone)]
pub(crate) enum Sight {
    /// No repository.
    Nothing,
    /// A repository that sets nothing.
    Bare,
    /// A repository with settings: the known ones, if they are still the same.
    Set(Arc<Own>),
}

impl Spot {
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
    fn look(&self, home: Option<&Path>) -> Sight {
        let (root, known) = match self {
            Self::Around { cwd, known, .. } => match Repository::around(cwd.as_ref()) {
                Some(repository) => (repository.worktree, known.as_ref()),
                None => return Sight::Nothing,
            },
            Self::Known { own, .. } => (own.root.clone(), Some(own)),
        };
        let same = known.filter(|own| own.root == root && own.holds());
        let own = same.cloned().or_else(|| Own::read(&root, home).map(Arc::new));
        own.map_or(Sight::Bare, Sight::Set)
    }
}

/// Whoever can be sent to look at repositories.
#[derive(Debug)]
pub(crate) struct Scouts {
    home: Option<PathBuf>,
    log: Log,
    ready: Option<Scout>,
    /// Few: each of them made somebody wait, and they are forgotten again.
    missing: Vec<Missing>,
}

/// A thread that waits for questions, and ends when nobody can ask any more.
#[derive(Debug)]
struct Scout {
    questions: SyncSender<Question>,
    alive: Weak<()>,
}

#[derive(Debug)]
struct Question {
    spots: VecDeque<Spot>,
    answers: mpsc::Sender<Sight>,
}

/// One that has not come back.
#[derive(Debug)]
struct Missing {
    path: PathBuf,
    until: Duration,
    alive: Weak<()>,
}

/// A scout under way.
#[derive(Debug)]
pub(crate) struct Round {
    /// What it has not told of yet; it is at the first of them.
    left: VecDeque<Spot>,
    found: Vec<(Spot, Sight)>,
    answers: mpsc::Receiver<Sight>,
    /// When it is missing.
    pub(crate) deadline: Duration,
}

impl Scouts {
    pub(crate) fn new(home: Option<PathBuf>, log: Log) -> Self {
        Self { home, log, ready: None, missing: Vec::new() }
    }

    /// Sends a scout to these. `None` if there is nothing to look at, or nobody to send.
    pub(crate) fn send(&mut self, spots: impl IntoIterator<Item = Spot>, now: Duration) -> Option<Round> {
        self.missing.retain(|missing| missing.until > now || missing.is_alive());
        let is_safe = |spot: &Spot| self.missing.iter().all(|missing| missing.path != spot.path());
        let left: VecDeque<Spot> = spots.into_iter().filter(is_safe).collect();
        if left.is_empty() || self.are_too_many_missing() {
            return None;
        }
        let scout = match self.ready.take().map_or_else(|| Scout::hire(self.home.clone()), Ok) {
            Ok(scout) => scout,
            Err(error) => {
                self.log.line(format!("cannot look at repositories: {error}"));
                return None;
            }
        };
        let (answer, answers) = mpsc::channel(left.len());
        scout.questions.send(Question { spots: left.clone(), answers: answer }).ok()?;
        self.ready = Some(scout);
        Some(Round { left, found: Vec::new(), answers, deadline: now + PATIENCE })
    }

    /// A round is over. Gives what was found, and what the scout did not get to because it is missing.
    pub(crate) fn end(&mut self, mut round: Round, now: Duration) -> (Vec<(Spot, Sight)>, VecDeque<Spot>) {
        while let Ok(sight) = round.answers.try_recv() {
            round.tell(sight);
        }
        if let Some(spot) = round.left.pop_front() {
            let path = spot.path().to_owned();
            self.log.line(format!("{} does not answer: going on without its settings", path.display()));
            // Nobody asks it any more, so it ends when it is back.
            let alive = self.ready.take().map(|scout| scout.alive).unwrap_or_default();
            self.missing.push(Missing { path, until: now + LEFT_ALONE, alive });
            if self.are_too_many_missing() {
                self.log.line("too many do not answer: no repository is looked at until one does");
            }
        }
        (round.found, round.left)
    }

    fn are_too_many_missing(&self) -> bool {
        self.missing.iter().filter(|missing| missing.is_alive()).count() >= MAX_MISSING
    }
}

impl Missing {
    fn is_alive(&self) -> bool {
        self.alive.strong_count() > 0
    }
}

impl Scout {
    fn hire(home: Option<PathBuf>) -> io::Result<Self> {
        // Only one question is ever under way.
        let (questions, asked) = sync_channel(1);
        let life = Arc::new(());
        let alive = Arc::downgrade(&life);
        thread::Builder::new().name("scout".to_owned()).spawn(move || {
            serve(&asked, home.as_deref());
            drop(life);
        })?;
        Ok(Self { questions, alive })
    }
}

fn serve(asked: &Receiver<Question>, home: Option<&Path>) {
    for Question { spots, answers } in asked {
        for spot in spots {
            // There is room for all; if nobody waits for it any more, it was missing.
            if answers.try_send(spot.look(home)).is_err() {
                return;
            }
        }
    }
}

impl Round {
    /// Waits until the scout is back, or can never be. Loses nothing if it is not waited for to the end.
    pub(crate) async fn back(&mut self) {
        while !self.left.is_empty()
            && let Some(sight) = self.answers.recv().await
        {
            self.tell(sight);
        }
    }

    fn tell(&mut self, sight: Sight) {
        self.found.extend(self.left.pop_front().map(|spot| (spot, sight)));
    }
}

// Directories that hang are made with Linux's own calls.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use test_support::HangingDirectory;

    use super::*;

    const NOW: Duration = Duration::from_hours(1);

    fn scouts(directory: &Path) -> Scouts {
        Scouts::new(None, Log::open(directory.join("hub.log"), false))
    }

    /// A repository, and a directory in it.
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

    fn around(path: &Path, known: Option<&Arc<Own>>) -> Spot {
        let cwd = path.to_str().unwrap().to_owned();
        Spot::Around { scope: "0a0a0a0a".to_owned(), cwd, known: known.cloned() }
    }

    /// Sends a scout to these, and waits until it is back or missing.
    async fn ask(scouts: &mut Scouts, spots: Vec<Spot>) -> (Vec<Sight>, usize) {
        let mut round = scouts.send(spots, NOW).expect("somebody to send");
        let _ = tokio::time::timeout(PATIENCE, round.back()).await;
        let (found, left) = scouts.end(round, NOW);
        (found.into_iter().map(|(_, sight)| sight).collect(), left.len())
    }

    async fn look_at(scouts: &mut Scouts, spot: Spot) -> Sight {
        let (mut found, _) = ask(scouts, vec![spot]).await;
        found.pop().expect("an answer")
    }

    fn own(sight: &Sight) -> &Arc<Own> {
        match sight {
            Sight::Set(own) => own,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_known_stays_until_its_file_changes_or_goes() {
        let directory = tempfile::tempdir().unwrap();
        let mut scouts = scouts(directory.path());
        let root = repository(directory.path(), "one");
        let (deep, other) = (root.join("deep"), repository(directory.path(), "two"));
        assert!(matches!(look_at(&mut scouts, around(&deep, None)).await, Sight::Bare));
        assert!(matches!(look_at(&mut scouts, around(directory.path(), None)).await, Sight::Nothing));
        set(&root, "first");
        let first = look_at(&mut scouts, around(&deep, None)).await;
        let first = own(&first);
        assert_eq!((first.root.as_path(), first.settings.hooks[0].id.as_str()), (root.as_path(), "first"));
        let again = look_at(&mut scouts, around(&deep, Some(first))).await;
        assert!(Arc::ptr_eq(own(&again), first), "nothing is read twice");
        let elsewhere = look_at(&mut scouts, around(&other, Some(first))).await;
        assert!(matches!(elsewhere, Sight::Bare), "another worktree has its own");
        set(&root, "second!");
        let known = Spot::Known { scope: "0a0a0a0a".to_owned(), own: Arc::clone(first) };
        let second = look_at(&mut scouts, known.clone()).await;
        assert_eq!(own(&second).settings.hooks[0].id, "second!");
        // A worktree that has gone is no part of the repository around it.
        repository(directory.path(), ".");
        set(directory.path(), "above");
        fs::remove_dir_all(&root).unwrap();
        assert!(matches!(look_at(&mut scouts, known).await, Sight::Bare));
    }

    #[tokio::test]
    async fn a_broken_file_sets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let root = repository(directory.path(), "one");
        fs::write(root.join(REPOSITORY_FILE), "[[hook]").unwrap();
        let sight = look_at(&mut scouts(directory.path()), around(&root, None)).await;
        assert_eq!(own(&sight).settings, ringer_config::Repository::default());
    }

    #[tokio::test]
    async fn one_thread_is_asked_again_and_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut scouts = scouts(directory.path());
        look_at(&mut scouts, around(directory.path(), None)).await;
        let alive = scouts.ready.as_ref().map(|scout| scout.alive.clone()).unwrap();
        for _ in 0..3 {
            look_at(&mut scouts, around(directory.path(), None)).await;
        }
        assert!(scouts.ready.as_ref().is_some_and(|scout| scout.alive.ptr_eq(&alive)));
        drop(scouts);
        until(|| alive.strong_count() == 0);
    }

    /// Waits until something is so that tells nobody when it becomes so.
    fn until(is_so: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it never happened");
            thread::yield_now();
        }
    }

    #[tokio::test]
    async fn one_that_is_missing_costs_only_the_place_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let mut scouts = scouts(directory.path());
        let root = repository(directory.path(), "one");
        let Some(hanging) = HangingDirectory::new() else { return };
        set(&root, "x");
        let spots =
            vec![around(&root, None), around(&hanging.path(), None), around(&root.join("deep"), None)];
        let (found, left) = ask(&mut scouts, spots.clone()).await;
        assert!(matches!(found.as_slice(), [Sight::Set(_)]), "{found:?}");
        assert_eq!(left, 1, "what is behind it was not looked at");
        // Nobody is sent there again, and another one looks at the rest.
        let (found, left) = ask(&mut scouts, spots).await;
        assert!(matches!(found.as_slice(), [Sight::Set(_), Sight::Set(_)]) && left == 0, "{found:?}");
        let later = NOW + LEFT_ALONE * 2;
        assert!(scouts.send([around(&hanging.path(), None)], later).is_none(), "it is still out there");
        // It comes back, and goes nowhere else.
        let alive = scouts.missing[0].alive.clone();
        let path = hanging.path();
        hanging.release();
        until(|| alive.strong_count() == 0);
        assert!(scouts.send([around(&path, None)], NOW + LEFT_ALONE / 2).is_none(), "not so soon");
        assert!(scouts.send([around(&path, None)], later).is_some());
    }

    #[tokio::test]
    async fn so_many_may_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let mut scouts = scouts(directory.path());
        let hanging: Option<Vec<_>> = (0..MAX_MISSING).map(|_| HangingDirectory::new()).collect();
        let Some(mut hanging) = hanging else { return };
        for directory in &hanging {
            let round = scouts.send([around(&directory.path(), None)], NOW).expect("one more");
            let (found, _) = scouts.end(round, NOW);
            assert!(found.is_empty());
        }
        let root = repository(directory.path(), "one");
        assert!(scouts.send([around(&root, None)], NOW).is_none());
        hanging.pop();
        until(|| !scouts.are_too_many_missing());
        assert!(matches!(look_at(&mut scouts, around(&root, None)).await, Sight::Bare));
    }
}
