//! Which repository is this? Found by looking at files, because starting git costs more than everything else we do.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringer_core::Scope;

use crate::home::sync_directory;

/// A place in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The root of the worktree.
    pub worktree: PathBuf,
    /// The directory that all worktrees of the repository share.
    pub common: PathBuf,
}

impl Repository {
    /// The repository around a directory, if there is one.
    pub fn around(directory: &Path) -> Option<Self> {
        directory.ancestors().find_map(|worktree| {
            let git = git_directory(&worktree.join(".git"))?;
            let common = match fs::read_to_string(git.join("commondir")) {
                Ok(relative) => fs::canonicalize(git.join(relative.trim())).ok()?,
                Err(_) => git,
            };
            Some(Self { worktree: worktree.to_owned(), common })
        })
    }

    /// Where Ringer keeps what belongs to the repository.
    pub fn folder(&self) -> PathBuf {
        self.common.join("ringer")
    }

    /// The repository's id. Made on first use, out of the caller's randomness; where it cannot be written, a hash of
    /// the path, which is the same for every worktree too.
    pub fn scope(&self, random: u32) -> Scope {
        let id = self.read_id().or_else(|| self.make_id(random)).unwrap_or_else(|| hash_of(&self.common));
        Scope::new(&id).unwrap_or_else(|_| Scope::global())
    }

    fn read_id(&self) -> Option<String> {
        let id = fs::read_to_string(self.folder().join("id")).ok()?;
        let id = id.trim();
        let valid = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| id.to_owned())
    }

    /// Makes the id under another name and links it in place, so that nobody ever reads half of it and the first one
    /// wins.
    fn make_id(&self, random: u32) -> Option<String> {
        let folder = self.folder();
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let draft = folder.join(format!("id.{:08x}.{}", random, std::process::id()));
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).and_then(|mut file| {
                writeln!(file, "{random:08x}")?;
                file.sync_all()
            });
        // Whether ours or somebody else's got the name, what is there now counts.
        let linked = written.and_then(|()| fs::hard_link(&draft, folder.join("id")));
        let _ = fs::remove_file(&draft);
        // An id that is lost with the power would be another one afterwards; where this fails, that is still rare.
        let _ = sync_directory(&folder).and_then(|()| sync_directory(&self.common));
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => None,
            _ => self.read_id(),
        }
    }
}

/// `.git` is a directory, or in a worktree or submodule a file that names one.
fn git_directory(git: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(git).ok()?;
    if metadata.is_dir() {
        // An empty `.git` is no repository.
        return git.join("HEAD").exists().then(|| fs::canonicalize(git).ok())?;
    }
    let text = fs::read_to_string(git).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    fs::canonicalize(git.parent()?.join(named)).ok()
}

/// FNV-1a: only has to be the same everywhere and always.
fn hash_of(path: &Path) -> String {
    let hash = path
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, Repository) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join(".git")).unwrap();
        fs::write(directory.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let repository = Repository::around(directory.path()).unwrap();
        (directory, repository)
    }

    #[test]
    fn the_id_is_made_once() {
        let (directory, repository) = repository();
        let scope = repository.scope(0x00c0_ffee);
        assert_eq!(scope.as_str(), "00c0ffee");
        assert_eq!(repository.scope(1), scope);
        fs::create_dir(directory.path().join("deep")).unwrap();
        let deep = Repository::around(&directory.path().join("deep")).unwrap();
        assert_eq!(deep.scope(2), scope);
        let names: Vec<_> =
            fs::read_dir(repository.folder()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["id"], "no drafts are left");
    }

    #[test]
    fn worktrees_share_it() {
        let (directory, repository) = repository();
        let worktree = tempfile::tempdir().unwrap();
        let git = directory.path().join(".git/worktrees/w");
        fs::create_dir_all(&git).unwrap();
        fs::write(git.join("commondir"), "../..\n").unwrap();
        fs::write(worktree.path().join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
        let other = Repository::around(worktree.path()).unwrap();
        assert_eq!(other.worktree, worktree.path());
        assert_eq!(other.scope(1), repository.scope(2));
    }

    #[test]
    fn a_broken_id_or_an_unwritable_place_still_has_one() {
        let (_directory, repository) = repository();
        fs::create_dir(repository.folder()).unwrap();
        fs::write(repository.folder().join("id"), "../../etc").unwrap();
        assert_eq!(repository.scope(7).as_str(), hash_of(&repository.common));
        assert_eq!(hash_of(Path::new("/a")), hash_of(Path::new("/a")));
        assert_ne!(hash_of(Path::new("/a")), hash_of(Path::new("/b")));
    }

    #[test]
    fn outside_there_is_none() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".git")).unwrap();
        assert_eq!(Repository::around(directory.path()), None, "an empty .git is no repository");
    }

    #[test]
    fn twenty_at_once_agree() {
        let (_directory, repository) = repository();
        let scopes: Vec<Scope> = std::thread::scope(|threads| {
            let racers: Vec<_> = (0..20)
                .map(|n| {
                    threads.spawn({
                        let r = &repository;
                        move || r.scope(n)
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert!(scopes.iter().all(|scope| scope == &scopes[0]));
    }
}
