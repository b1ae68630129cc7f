//! Hostile trees: any files under any names that git knows. Reading them terminates and changes nothing outside the worktree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use proptest::prelude::*;
use ringer_journal::Repository;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::git::names;

/// Longer than any read needs; a hanging read would take for ever.
const DEADLINE: Duration = Duration::from_secs(30);

/// An item at a path of the tree.
#[derive(Debug, Clone)]
enum Item {
    Directory,
    Fifo,
    /// A file larger than any limit.
    Huge,
    Link(String),
    Text(String),
    Bytes(Vec<u8>),
}

/// Paths that git or Ringer interprets.
const PLACES: [&str; 18] = [
    ".git",
    ".git/HEAD",
    ".git/objects",
    ".git/refs",
    ".git/commondir",
    ".git/gitdir",
    ".git/config",
    ".git/ringer",
    ".git/ringer/id",
    "other",
    "other/HEAD",
    "other/objects",
    "other/refs",
    "other/commondir",
    "other/gitdir",
    "other/config",
    "other/config.worktree",
    "other/ringer/id",
];

/// Targets of links and files: the victim's repository in every form, and endless files.
const TARGETS: [&str; 16] = [
    "../victim/.git",
    "../victim",
    "../victim/.git/worktrees/side",
    "../victim/.git/worktrees",
    "../../victim/.git",
    "../victim/.git/ringer",
    "../../../victim/.git/ringer/id",
    "other",
    "./.git",
    "..",
    ".",
    "/",
    "/dev/zero",
    "/dev/tty",
    "/proc/self/mem",
    "",
];

fn item() -> impl Strategy<Value = Item> {
    let target = prop::sample::select(TARGETS.to_vec());
    prop_oneof![
        3 => Just(Item::Directory),
        1 => Just(Item::Fifo),
        1 => Just(Item::Huge),
        3 => target.clone().prop_map(|target| Item::Link(target.to_owned())),
        3 => target.clone().prop_map(|target| Item::Text(format!("gitdir: {target}\n"))),
        2 => target.clone().prop_map(|target| Item::Text(format!("{target}\n"))),
        2 => target.prop_map(|target| Item::Text(format!("[core]\nworktree = {target}\n"))),
        2 => Just(Item::Text("ref: refs/heads/main\n".to_owned())),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Item::Bytes),
    ]
}

fn put(path: &Path, item: &Item) {
    // If a parent is a file, this item cannot be created.
    let _ = path.parent().map(fs::create_dir_all);
    let _ = match item {
        Item::Directory => fs::create_dir(path),
        Item::Fifo => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into),
        Item::Huge => fs::File::create_new(path).and_then(|file| file.set_len(1 << 40)),
        Item::Link(target) => symlink(target, path),
        Item::Text(text) => fs::write(path, text),
        Item::Bytes(bytes) => fs::write(path, bytes),
    };
}

fn make_git_directory(git: &Path) {
    for part in ["objects", "refs", "worktrees/side"] {
        fs::create_dir_all(git.join(part)).expect("a directory");
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
}

/// The victim: a repository with a worktree and an id.
fn victim(root: &Path) -> PathBuf {
    let git = root.join("victim/.git");
    make_git_directory(&git);
    fs::create_dir_all(root.join("side")).expect("a directory");
    fs::write(root.join("side/.git"), format!("gitdir: {}\n", git.join("worktrees/side").display()))
        .expect("a file");
    for (name, text) in [
        ("worktrees/side/HEAD", "ref: refs/heads/side\n".to_owned()),
        ("worktrees/side/commondir", "../..\n".to_owned()),
        ("worktrees/side/gitdir", format!("{}\n", root.join("side/.git").display())),
    ] {
        fs::write(git.join(name), text).expect("a file");
    }
    root.join("victim")
}

/// The initial form of `.git` in the worktree, before hostile items are added.
#[derive(Debug, Clone, Copy)]
enum Begin {
    Nothing,
    Real,
    /// A file that points to `other`, a real git directory.
    Named,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn a_hostile_tree_ends_and_changes_nothing_outside(
        begin in prop::sample::select(vec![Begin::Nothing, Begin::Real, Begin::Named]),
        items in prop::collection::vec((prop::sample::select(PLACES.to_vec()), item()), 0..8),
        replace in any::<bool>(),
    ) {
        // In memory if possible: creating an id syncs to disk every time.
        let store = Path::new("/dev/shm");
        let below = if store.is_dir() { store.to_owned() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(below).expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        let victim = victim(&root);
        let scope = Repository::around(&victim).expect("a repository").scope(0x00c0_ffee);
        let (outside, worktree) = (names(&victim), root.join("worktree"));
        fs::create_dir(&worktree).expect("a directory");
        match begin {
            Begin::Nothing => {}
            Begin::Real => make_git_directory(&worktree.join(".git")),
            Begin::Named => {
                make_git_directory(&worktree.join("other"));
                fs::write(worktree.join(".git"), "gitdir: other\n").expect("a file");
            }
        }
        for (place, item) in &items {
            let path = worktree.join(place);
            // Never through a link: only the tree belongs to the attacker.
            if path.ancestors().skip(1).any(|parent| parent.starts_with(&worktree) && parent.is_symlink()) {
                continue;
            }
            if replace {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir_all(&path);
            }
            if fs::symlink_metadata(&path).is_err() {
                put(&path, item);
            }
        }
        let (done, waits) = channel();
        std::thread::spawn(move || {
            let repository = Repository::around(&worktree);
            let scope = repository.as_ref().map(|repository| repository.scope(7));
            let removed = repository.as_ref().map(Repository::remove_files);
            let _ = done.send((repository, scope, removed));
        });
        let Ok((repository, found, _)) = waits.recv_timeout(DEADLINE) else {
            return Err(TestCaseError::fail("it hangs"));
        };
        prop_assert_eq!(names(&victim), outside, "{:?}", repository);
        prop_assert_ne!(found, Some(scope.clone()), "{:?}", repository);
        let after = Repository::around(&root.join("side")).expect("a repository");
        prop_assert_eq!(after.scope(9), scope);
    }
}
