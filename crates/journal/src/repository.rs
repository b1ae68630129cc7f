//! Finds the repository around a directory, its id and its remote. Reads files, because starting git would cost more than the
//! rest of a command.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringer_core::Scope;
use ringer_core::hash::fnv1a_32;
use ringer_platform::sync_directory;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, linkat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::git::{GitDirectory, branch, of_worktree, origin_url, read_bounded};

/// Ringer's directory in a git directory, and the file in it with the repository's id.
const FOLDER: &str = "ringer";
const ID: &str = "id";
/// Longest id file. An id has 8 characters and a newline; a longer file is not Ringer's.
const MAX_ID: u64 = 64;

/// A worktree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The root of the worktree.
    pub worktree: PathBuf,
    git: GitDirectory,
}

/// What remains after [`Repository::remove_files`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing of Ringer's.
    Nothing,
    /// This directory, because it contains files that Ringer did not create.
    Foreign(PathBuf),
}

impl Repository {
    /// The repository around a directory, if there is one.
    pub fn around(directory: &Path) -> Option<Self> {
        directory
            .ancestors()
            .find_map(|root| Some(Self { git: of_worktree(root)?, worktree: root.to_owned() }))
    }

    /// Returns true if the git directory that `.git` names belongs to this worktree. Otherwise the worktree gets its own scope,
    /// and nothing is written.
    pub fn is_proven(&self) -> bool {
        matches!(self.git, GitDirectory::Own(_))
    }

    /// Returns true for worktrees of the same repository.
    pub fn is_same(&self, other: &Self) -> bool {
        self.git == other.git
    }

    /// Display name: the directory name of the main worktree.
    pub fn name(&self) -> Option<String> {
        let shared = match &self.git {
            GitDirectory::Own(common) if common.ends_with(".git") => common.parent(),
            _ => None,
        };
        let directory = shared.unwrap_or(&self.worktree);
        directory.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// The current branch. `None` unless the git directory belongs to this worktree.
    pub fn branch(&self) -> Option<String> {
        if self.is_proven() { branch(&self.worktree) } else { None }
    }

    /// The remote `origin`, normalised so that it is the same in every clone. `None` unless the git directory belongs to this
    /// worktree.
    pub fn remote(&self) -> Option<String> {
        let GitDirectory::Own(common) = &self.git else { return None };
        normalised_remote(&origin_url(common)?)
    }

    /// The repository's id, created on first use from the caller's random number. Where it cannot be written, a hash of the path,
    /// which is also the same for every worktree.
    pub fn scope(&self, random: u32) -> Scope {
        let id = match &self.git {
            GitDirectory::Own(common) => {
                read_id(common).or_else(|| make_id(common, random)).unwrap_or_else(|| hash_of(common))
            }
            GitDirectory::Unproven(path) => hash_of(path),
        };
        Scope::new(&id).unwrap_or_else(|_| Scope::global())
    }

    /// Ringer's directory in the git directory, if it exists.
    pub fn own_directory(&self) -> Option<PathBuf> {
        let GitDirectory::Own(common) = &self.git else { return None };
        Some(common.join(FOLDER)).filter(|folder| open_folder(folder).is_ok())
    }

    /// Removes the files that Ringer created in the git directory, and their directory if it is then empty.
    pub fn remove_files(&self) -> io::Result<Leftover> {
        let GitDirectory::Own(common) = &self.git else { return Ok(Leftover::Nothing) };
        let path = common.join(FOLDER);
        let folder = match open_folder(&path) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(Leftover::Nothing),
            // Ringer creates neither links nor files with this name.
            Err(Errno::LOOP | Errno::NOTDIR) => return Ok(Leftover::Foreign(path)),
            Err(error) => return Err(error.into()),
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_str().is_ok_and(|name| name == ID || is_draft(name));
            if is_ours && matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
                match unlinkat(&folder, entry.file_name(), AtFlags::empty()) {
                    // A directory, on a file system that does not report types: not Ringer's.
                    Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        match unlinkat(CWD, &path, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(Leftover::Nothing),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Leftover::Foreign(path)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Opens a directory. Refuses a symbolic link.
fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

fn read_id(common: &Path) -> Option<String> {
    read_id_in(&open_folder(&common.join(FOLDER)).ok()?)
}

fn read_id_in(folder: &OwnedFd) -> Option<String> {
    let id = String::from_utf8(read_bounded(folder, Path::new(ID), MAX_ID)?).ok()?;
    let id = id.trim();
    let valid = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| id.to_owned())
}

/// Writes the id under a temporary name and links it into place, so that a partial id is never read and the first writer wins.
fn make_id(common: &Path, random: u32) -> Option<String> {
    let path = common.join(FOLDER);
    match mkdirat(CWD, &path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(_) => return None,
    }
    let folder = open_folder(&path).ok()?;
    let draft = draft_name(random, std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = openat(&folder, &draft, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from);
    let written = written.map(File::from).and_then(|mut file| {
        writeln!(file, "{random:08x}")?;
        file.sync_all()
    });
    // Whichever process linked its id first, that one counts.
    let linked = written.and_then(|()| Ok(linkat(&folder, &draft, &folder, ID, AtFlags::empty())?));
    let _ = unlinkat(&folder, &draft, AtFlags::empty());
    // An id lost in a power failure would be replaced by a different one. If syncing fails, that remains unlikely.
    let _ = rustix::fs::fsync(&folder).map_err(io::Error::from).and_then(|()| sync_directory(common));
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => None,
        _ => read_id_in(&folder),
    }
}

fn draft_name(random: u32, pid: u32) -> String {
    format!("{ID}.{random:08x}.{pid}")
}

/// Returns true for the name of a temporary id file, which a killed process leaves behind.
fn is_draft(name: &str) -> bool {
    let mut parts = name.split('.');
    let (id, random, pid) = (parts.next(), parts.next(), parts.next());
    let random = random.and_then(|random| u32::from_str_radix(random, 16).ok());
    let pid = pid.and_then(|pid| pid.parse().ok());
    id == Some(ID)
        && parts.next().is_none()
        && random.zip(pid).is_some_and(|(random, pid)| draft_name(random, pid) == name)
}

fn hash_of(path: &Path) -> String {
    format!("{:08x}", fnv1a_32(path.as_os_str().as_bytes().iter().copied()))
}

/// Longest accepted remote, in bytes.
const MAX_URL: usize = 512;
/// Longest accepted port, in digits.
const MAX_PORT: usize = 5;

/// Normalises a remote to host and path: `git@github.com:org/repo.git`, `ssh://git@github.com:22/org/repo` and
/// `https://ada:token@github.com/org/repo.git/` all become `github.com/org/repo`. Users, passwords and default ports are removed;
/// any other port is a different server and stays.
///
/// `None` for invalid URLs, and for those that mean something else on another machine or for another user: a local path, a path
/// in a user's home, `localhost`.
pub(crate) fn normalised_remote(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, authority, path) = if let Some((scheme, rest)) = url.split_once("://") {
        let (authority, path) = rest.split_once('/')?;
        (scheme.to_ascii_lowercase(), authority, path)
    } else {
        // scp syntax: `host:path`. With a `/` before the colon it is a path.
        let (authority, path) = url.split_once(':').filter(|(host, _)| !host.contains('/'))?;
        // The path is relative to the user's home. On a git server the user is `git`, or set in the ssh configuration.
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        if !path.starts_with(['/', '~']) && user.is_some_and(|user| user != "git") {
            return None;
        }
        (SCP.to_owned(), authority, path)
    };
    let usual_port = usual_port(&scheme)?;
    let host = authority.rsplit('@').next().unwrap_or(authority).to_ascii_lowercase();
    let (host, port) = host.split_once(':').unwrap_or((host.as_str(), ""));
    // A query or fragment may contain a secret and does not identify the repository.
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = |character: char| !character.is_control() && !character.is_whitespace();
    let is_whole = !host.is_empty() && !path.is_empty() && host.len() + path.len() < MAX_URL;
    // A single letter before the colon is a drive.
    let is_drive = scheme == SCP && host.len() == 1;
    let is_allowed = host.bytes().all(is_host) && path.chars().all(is_path) && !is_drive;
    let is_local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.");
    let is_of_user = path == "~" || path.starts_with("~/");
    if !is_whole || !is_allowed || is_local || is_of_user {
        return None;
    }
    if port.is_empty() || port == usual_port {
        return Some(format!("{host}/{path}"));
    }
    let is_port = port.len() <= MAX_PORT && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then(|| format!("{host}:{port}/{path}"))
}

/// scp syntax (`host:path`), which has neither scheme nor port.
const SCP: &str = "";

/// The default port of a scheme. `None` for schemes that are not used for remotes.
fn usual_port(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "ssh" | "git+ssh" | "ssh+git" => "22",
        "https" => "443",
        "http" => "80",
        "git" => "9418",
        SCP => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn make_git_directory(git: &Path) {
        fs::create_dir_all(git.join("objects")).unwrap();
        fs::create_dir_all(git.join("refs")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    fn repository() -> (tempfile::TempDir, Repository, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        make_git_directory(&directory.path().join(".git"));
        let repository = Repository::around(directory.path()).unwrap();
        let folder = directory.path().canonicalize().unwrap().join(".git/ringer");
        (directory, repository, folder)
    }

    #[test]
    fn where_it_comes_from_is_the_same_in_every_clone() {
        let (directory, repository, _) = repository();
        assert_eq!(repository.remote(), None);
        let config = "[core]\n\turl = wrong\n[remote \"fork\"]\n\turl = https://github.com/ada/api\n\
                      [remote \"origin\"]\n\tfetch = x\n\turl = https://ada:token@github.com/org/api.git ; mine\n";
        fs::write(directory.path().join(".git/config"), config).unwrap();
        assert_eq!(repository.remote().as_deref(), Some("github.com/org/api"));
    }

    #[test]
    fn the_id_is_made_once() {
        let (directory, repository, folder) = repository();
        let scope = repository.scope(0x00c0_ffee);
        assert_eq!(scope.as_str(), "00c0ffee");
        assert_eq!(repository.scope(1), scope);
        fs::create_dir(directory.path().join("deep")).unwrap();
        let deep = Repository::around(&directory.path().join("deep")).unwrap();
        assert_eq!(deep.scope(2), scope);
        let names: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["id"], "no drafts are left");
        assert_eq!(repository.remove_files().unwrap(), Leftover::Nothing);
        assert!(!folder.exists());
        assert_eq!(repository.remove_files().unwrap(), Leftover::Nothing, "twice is no failure");
    }

    #[test]
    fn a_broken_id_or_an_unwritable_place_still_has_one() {
        let (_directory, repository, folder) = repository();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("id"), "../../etc").unwrap();
        assert_eq!(repository.scope(7).as_str(), hash_of(folder.parent().unwrap()));
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
    fn names_of_drafts() {
        for name in [draft_name(0, 1), draft_name(u32::MAX, u32::MAX), "id.0badf00d.77".to_owned()] {
            assert!(is_draft(&name), "{name}");
        }
        for name in
            ["id", "id.", "id.txt", "id.0badf00d", "id.0BADF00D.1", "id.0badf00d.+1", "id.0badf00d.1.bak"]
        {
            assert!(!is_draft(name), "{name}");
        }
    }

    #[test]
    fn twenty_at_once_agree() {
        let (_directory, repository, _) = repository();
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

    #[test]
    fn every_clone_has_the_same_and_no_secret_is_in_it() {
        for url in [
            "git@github.com:org/repo.git",
            "github.com:org/repo",
            "ssh://git@github.com:22/org/repo",
            "https://ada:token@GitHub.com/org/repo.git/",
            "https://ada:to@ken@github.com:443/org/repo",
            "git://github.com/org/repo.git",
            " https://github.com/org/repo?token=secret\n",
            "https://github.com/org/repo.git?token=secret#x",
            "http://github.com:80/org/repo",
        ] {
            assert_eq!(normalised_remote(url).as_deref(), Some("github.com/org/repo"), "{url}");
        }
        for url in [
            "/srv/git/repo.git",
            "../repo",
            "./a:b",
            "file:///srv/git/repo.git",
            "ext::sh -c x",
            "C:/repo",
            "https://github.com",
            "https:///x",
            "host:",
            "",
            "ho st:x",
            "https://host:x/repo",
            "https://host:000443/repo",
        ] {
            assert_eq!(normalised_remote(url), None, "{url}");
        }
        assert_eq!(normalised_remote(&format!("host:{}", "x".repeat(600))), None);
        assert_eq!(normalised_remote(&format!("https://host:{}/repo", "1".repeat(5_000))), None);
    }

    #[test]
    fn two_repositories_are_never_taken_for_one() {
        // Two servers on one host.
        assert_eq!(normalised_remote("https://host:8443/org/repo").as_deref(), Some("host:8443/org/repo"));
        assert_eq!(normalised_remote("http://host:3000/org/repo").as_deref(), Some("host:3000/org/repo"));
        assert_eq!(normalised_remote("http://host:443/org/repo").as_deref(), Some("host:443/org/repo"));
        // Every machine and every user has one of their own.
        for url in [
            "http://localhost:3000/org/repo",
            "git@localhost:org/repo",
            "ssh://git@api.localhost/org/repo",
            "http://127.0.0.1/org/repo",
            "http://[::1]:3000/org/repo",
            "ada@host:repo",
            "host:~/repo",
            "ssh://ada@host/~/repo",
        ] {
            assert_eq!(normalised_remote(url), None, "{url}");
        }
        // The same for everyone.
        assert_eq!(normalised_remote("ada@host:/srv/repo").as_deref(), Some("host/srv/repo"));
        assert_eq!(normalised_remote("ssh://ada@host:29418/repo").as_deref(), Some("host:29418/repo"));
        assert_eq!(normalised_remote("git@git.sr.ht:~ada/repo").as_deref(), Some("git.sr.ht/~ada/repo"));
    }
}
