//! Finds the git directory of a worktree by reading files.
//!
//! A checkout may come from anywhere, so every file in it may be hostile: nothing here blocks on a FIFO or a device or reads
//! without a limit, and a file in the worktree alone does not prove that a git directory belongs to it. Git writes that proof
//! into the git directory: `gitdir` for a linked worktree, `core.worktree` for a submodule.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Longest file with a path: `gitdir: ` and `PATH_MAX` (4096 bytes).
const MAX_POINTER: u64 = 4200;
/// How much of `config` is read. Git writes `[core]` first; real files have a few KiB.
const MAX_CONFIG: u64 = 64 * 1024;

/// The git directory that `.git` in a directory leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GitDirectory {
    /// The repository's common directory, proven to belong to this worktree. Ringer may write to it.
    Own(PathBuf),
    /// `.git` points to a git directory that does not point back to this worktree. Git accepts it, but it may belong to another
    /// repository. Contains the path of `.git` itself.
    Unproven(PathBuf),
}

/// The git directory of the worktree with this root. `None` if this is not the root of a worktree.
pub(crate) fn of_worktree(root: &Path) -> Option<GitDirectory> {
    let git = root.join(".git");
    let kind = fs::symlink_metadata(&git).ok()?.file_type();
    if kind.is_dir() {
        // `commondir` is not followed: git writes it only below `worktrees/`.
        return if is_git_directory(&git) { fs::canonicalize(git).ok().map(GitDirectory::Own) } else { None };
    }
    let named = if kind.is_symlink() {
        fs::canonicalize(&git).ok()?
    } else {
        let text = read_bounded(CWD, &git, MAX_POINTER)?;
        fs::canonicalize(root.join(path_in(text.strip_prefix(b"gitdir:")?))).ok()?
    };
    let root = fs::canonicalize(root).ok()?;
    let (common, is_own) = match read_bounded(CWD, &named.join("commondir"), MAX_POINTER) {
        Some(common) => {
            let common = fs::canonicalize(named.join(path_in(&common))).ok()?;
            let is_listed = named.parent() == Some(&common.join("worktrees"));
            (common, is_listed && names_worktree(&named, &root))
        }
        // A bare repository beside its worktrees (`gitdir: ./.bare`).
        None => (named.clone(), named.parent() == Some(&root) || is_submodule_at(&named, &root)),
    };
    if !is_git_directory(&common) {
        return None;
    }
    Some(if is_own { GitDirectory::Own(common) } else { GitDirectory::Unproven(root.join(".git")) })
}

/// The branch of the worktree with this root. `None` if HEAD is detached or unreadable.
pub(crate) fn branch(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let private = match read_bounded(CWD, &git, MAX_POINTER) {
        Some(text) => root.join(path_in(text.strip_prefix(b"gitdir:")?)),
        None => git,
    };
    let head = String::from_utf8(read_bounded(CWD, &private.join("HEAD"), MAX_POINTER)?).ok()?;
    Some(head.trim_end().strip_prefix("ref: refs/heads/")?.to_owned())
}

/// The same test that git applies: HEAD, objects, refs.
fn is_git_directory(path: &Path) -> bool {
    // In old repositories HEAD is a symbolic link, possibly to an unborn branch. It is not followed.
    let has_head =
        fs::symlink_metadata(path.join("HEAD")).is_ok_and(|head| head.is_file() || head.is_symlink());
    has_head && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Returns true if the private directory of a linked worktree points to this root. A relative path (git 2.48) starts at that
/// directory.
fn names_worktree(private: &Path, root: &Path) -> bool {
    let Some(text) = read_bounded(CWD, &private.join("gitdir"), MAX_POINTER) else { return false };
    let named = private.join(path_in(&text));
    named.file_name() == Some(OsStr::new(".git"))
        && named.parent().is_some_and(|parent| fs::canonicalize(parent).is_ok_and(|parent| parent == root))
}

/// Returns true if `core.worktree` of a git directory points to this root, as git writes it for submodules.
fn is_submodule_at(git: &Path, root: &Path) -> bool {
    // As in git, `config.worktree` overrides `config`.
    let texts = ["config", "config.worktree"].map(|name| read_start(&git.join(name), MAX_CONFIG));
    let worktree = texts.iter().flatten().filter_map(|text| core_worktree(text)).next_back();
    worktree.is_some_and(|path| fs::canonicalize(git.join(path)).is_ok_and(|path| path == root))
}

/// `core.worktree` of a git configuration.
fn core_worktree(config: &[u8]) -> Option<PathBuf> {
    let path = last_value(config, |section| section.eq_ignore_ascii_case(b"core"), b"worktree")?;
    Some(PathBuf::from(OsStr::from_bytes(&path)))
}

/// The URL of the remote `origin`.
pub(crate) fn origin_url(git: &Path) -> Option<String> {
    let config = read_start(&git.join("config"), MAX_CONFIG)?;
    let is_origin = |section: &[u8]| {
        let (name, remote) = section.split_at_checked(6).unwrap_or_default();
        name.eq_ignore_ascii_case(b"remote") && remote.trim_ascii() == b"\"origin\""
    };
    String::from_utf8(last_value(&config, is_origin, b"url")?).ok()
}

/// The last value of a key in the sections that `is_meant` accepts.
fn last_value(config: &[u8], is_meant: impl Fn(&[u8]) -> bool, key: &[u8]) -> Option<Vec<u8>> {
    let mut is_in_section = false;
    let mut found = None;
    for line in config.split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        if let Some(header) = line.strip_prefix(b"[") {
            let Some(end) = header.iter().position(|byte| *byte == b']') else { continue };
            is_in_section = is_meant(header[..end].trim_ascii());
            line = header[end + 1..].trim_ascii();
        }
        let Some(equals) = line.iter().position(|byte| *byte == b'=') else { continue };
        if is_in_section && line[..equals].trim_ascii().eq_ignore_ascii_case(key) {
            found = Some(value(&line[equals + 1..]));
        }
    }
    found
}

/// Parses a value of a git configuration: removes quotes, escapes and the comment.
fn value(raw: &[u8]) -> Vec<u8> {
    let mut bytes = raw.trim_ascii().iter();
    let (mut value, mut is_quoted) = (Vec::new(), false);
    // Spaces before a comment are not part of the value.
    let mut end = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' => value.extend(bytes.next().map(|escaped| match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'b' => 8,
                other => *other,
            })),
            b'#' | b';' if !is_quoted => break,
            other => value.push(*other),
        }
        if is_quoted || !byte.is_ascii_whitespace() {
            end = value.len();
        }
    }
    value.truncate(end);
    value
}

/// Parses a path from a pointer file: leading whitespace and trailing line ends are not part of it.
fn path_in(text: &[u8]) -> &Path {
    let text = text.trim_ascii_start();
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Path::new(OsStr::from_bytes(&text[..end]))
}

/// Reads a regular file of at most `most` bytes. Never blocks: FIFOs and devices are opened non-blocking and refused. Does not
/// follow symbolic links.
pub(crate) fn read_bounded(directory: impl AsFd, path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(directory, path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// The first `most` bytes of a regular file.
fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(CWD, path).and_then(|file| file.take(most).read_to_end(&mut bytes)).ok()?;
    Some(bytes)
}

fn open_regular(directory: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(directory, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_of_a_configuration() {
        let check = |config: &str, expected: Option<&str>| {
            assert_eq!(core_worktree(config.as_bytes()), expected.map(PathBuf::from), "{config}");
        };
        check("[core]\n\tbare = false\n\tworktree = ../../../mod\n", Some("../../../mod"));
        check("[core] worktree=/a b/c  # there\n", Some("/a b/c"));
        check("[CORE]\nWorkTree = \"/a;b \" ; no\n", Some("/a;b "));
        check("[core]\nworktree = \"a\\\"b\\\\c\"\n", Some("a\"b\\c"));
        check("[core]\nworktree = one\n[core]\nworktree = two\n", Some("two"));
        check("[core \"x\"]\nworktree = one\n[remote]\nworktree = two\n", None);
        check("[core\nworktree = one\n= \n[core]\nworktree\n", None);
        check("", None);
    }

    #[test]
    fn paths_in_files_of_git() {
        let check = |text: &str, expected: &str| {
            assert_eq!(path_in(text.as_bytes()), Path::new(expected), "{text:?}");
        };
        check(" ../a b \r\n", "../a b ");
        check("x", "x");
        check("\n", "");
        check("", "");
    }
}
